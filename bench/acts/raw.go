package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// raw is a browser over its pipe, without anything between. It shows what part of a click is the browser's.
type raw struct {
	cmd     *exec.Cmd
	in      *os.File
	replies *bufio.Reader
	out     *os.File
	session string
	last    int
	arrived map[int]response // replies that were read before they were waited for
}

// response is the reply to a command.
type response struct {
	ID     int
	Result json.RawMessage
	Error  *struct{ Message string }
}

// startRaw starts a browser with one page.
func startRaw(chrome, profile, url string) (r *raw, err error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), in.Close())
	}
	r = &raw{in: in, out: out, replies: bufio.NewReader(out), arrived: map[int]response{}}
	r.cmd = exec.Command(chrome, "--headless", "--disable-gpu", "--no-sandbox", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
		"--user-data-dir="+profile, "about:blank")
	r.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	err = r.cmd.Start()
	_, _ = theirIn.Close(), theirOut.Close()
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	var target struct{ TargetID string }
	var attached struct{ SessionID string }
	err = r.send(&target, "Target.createTarget", map[string]any{"url": url})
	if err == nil {
		err = r.send(&attached, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true})
	}
	r.session = attached.SessionID
	for ready := false; err == nil && !ready; {
		var state struct{ Result struct{ Value string } }
		err = r.send(&state, "Runtime.evaluate", map[string]any{"expression": "document.readyState + location.href"})
		ready = state.Result.Value == "complete"+url
	}
	if err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

func (r *raw) end() {
	_, _ = r.in.Close(), r.out.Close() // the browser ends with its pipe
	_ = r.cmd.Wait()
}

// click finds an element, clicks on it and asks for the page once more, as the least tool that does not wait would.
func (r *raw) click(selector string) (time.Duration, error) {
	start := time.Now()
	var box struct {
		Result struct {
			Value []float64
		}
	}
	err := r.send(&box, "Runtime.evaluate", map[string]any{"returnByValue": true, "expression": fmt.Sprintf(
		"(b => [b.x + b.width / 2, b.y + b.height / 2])(document.querySelector(%q).getBoundingClientRect())", selector)})
	if err != nil || len(box.Result.Value) != 2 {
		return 0, errors.Join(err, fmt.Errorf("%s has the box %v", selector, box.Result.Value))
	}
	event := func(kind, button string, count int) map[string]any {
		return map[string]any{"type": kind, "x": box.Result.Value[0], "y": box.Result.Value[1], "button": button,
			"clickCount": count}
	}
	var ids []int
	for _, params := range []map[string]any{event("mouseMoved", "none", 0), event("mousePressed", "left", 1),
		event("mouseReleased", "left", 1)} {
		id, err := r.write("Input.dispatchMouseEvent", params)
		if err != nil {
			return 0, err
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		if err := r.wait(id, nil); err != nil {
			return 0, err
		}
	}
	err = r.send(nil, "Runtime.evaluate", map[string]any{"expression": "document.title"})
	return time.Since(start), err
}

func (r *raw) send(result any, method string, params map[string]any) error {
	id, err := r.write(method, params)
	if err != nil {
		return err
	}
	return r.wait(id, result)
}

func (r *raw) write(method string, params map[string]any) (id int, err error) {
	r.last++
	message := map[string]any{"id": r.last, "method": method, "params": params}
	if r.session != "" {
		message["sessionId"] = r.session
	}
	text, err := json.Marshal(message)
	if err == nil {
		_, err = r.in.Write(append(text, 0))
	}
	return r.last, err
}

// wait reads until the reply to a command.
func (r *raw) wait(id int, result any) error {
	for {
		if reply, ok := r.arrived[id]; ok {
			delete(r.arrived, id)
			if reply.Error != nil {
				return errors.New(reply.Error.Message)
			}
			if result == nil {
				return nil
			}
			return json.Unmarshal(reply.Result, result)
		}
		text, err := r.replies.ReadBytes(0)
		if err != nil {
			return errors.Join(err, io.ErrUnexpectedEOF)
		}
		var reply response
		if err := json.Unmarshal(text[:len(text)-1], &reply); err != nil {
			return err
		}
		if reply.ID != 0 { // not an event
			r.arrived[reply.ID] = reply
		}
	}
}
