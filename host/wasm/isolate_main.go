package wasm

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
)

// Exit codes of the process of an isolated call.
const (
	isolateOK = iota
	_         // the Go runtime's exit codes of a crash are 1 and 2
	_
	isolateMisused
	isolateOrphan
)

// IsolateMain runs one isolated call and returns the exit code of the process. It opens the compiled code, gives up
// every right that the call does not need, and only then instantiates the guest. It serves one job from stdin and
// ends when its parent is gone.
func IsolateMain() int {
	in := bufio.NewReader(os.Stdin)
	kind, body, err := readFrame(in, 4*host.MaxParams)
	var j job
	if err != nil || kind != frameJob || json.Unmarshal(body, &j) != nil || j.Manifest == nil ||
		len(j.Manifest.Tools) != 1 {
		fmt.Fprintln(os.Stderr, "parley starts the process of an isolated call itself; it cannot be started by hand")
		return isolateMisused
	}
	parent := &parentProcess{out: os.Stdout, replies: make(chan []byte)}
	result, err := parent.runJob(&j, in)
	o := outcome{}
	if err != nil {
		o.Err = failureOf(asHostError(err))
	} else {
		o.Data, o.Content, o.Warnings = result.Data, result.Content, result.Warnings
	}
	parent.send(frameDone, marshal(o))
	return isolateOK
}

// parentProcess is the connection to the host. It serves host functions by asking the parent.
type parentProcess struct {
	mu      sync.Mutex
	out     io.Writer
	replies chan []byte
}

func (p *parentProcess) runJob(j *job, in io.Reader) (*host.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), j.Remaining)
	defer cancel()
	e := New(Config{HostVersion: j.Host, Limits: j.Defaults})
	code := slot{j.Slot, j.Key}
	sums, err := code.read()
	if err != nil {
		return nil, host.Errorf(host.Unavailable, "the compiled code of %s is missing or damaged (%v); call the tool again",
			j.Manifest.Name, err)
	}
	plugin, err := openSlot(code, sums)
	if err != nil {
		return nil, host.Errorf(host.Unavailable, "the compiled code of %s cannot be opened (%v); call the tool again",
			j.Manifest.Name, err)
	}
	tool := &j.Manifest.Tools[0]
	r := &host.Request{
		Tool: tool.Name, Def: tool, Params: j.Params, Caller: j.Caller, Session: j.Session, CallID: j.CallID,
		Grant: j.Grant, Guard: j.Guard, Limits: j.Limits, Options: j.Options, Settings: j.Settings,
		RecordUse: func(what string) { p.send(frameUse, []byte(what)) },
	}
	if j.Log {
		r.Log = func(level int, message string) { p.send(frameLog, marshal(report{Level: level, Message: message})) }
	}
	if j.Progress {
		r.Progress = func(done, total float64, message string) {
			p.send(frameProgress, marshal(report{Done: done, Total: total, Message: message}))
		}
	}
	c := newCall(e, plugin, j.Manifest, r, p)
	for _, lack := range lockDown(c.limits, j.Grant.FS, sums.Code.Size) {
		p.send(frameMissing, []byte(lack))
	}
	go p.readReplies(in)
	return c.run(ctx)
}

// readReplies forwards replies. If the parent is gone, the process ends.
func (p *parentProcess) readReplies(in io.Reader) {
	for {
		kind, body, err := readFrame(in, 1<<30)
		if err != nil || kind != frameReply {
			os.Exit(isolateOrphan)
		}
		p.replies <- body
	}
}

func (p *parentProcess) send(kind byte, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if writeFrame(p.out, kind, body) != nil {
		os.Exit(isolateOrphan)
	}
}

func (p *parentProcess) dispatch(ctx context.Context, function string, request []byte) []byte {
	p.send(frameRequest, append([]byte(function+"\n"), request...))
	select {
	case body := <-p.replies:
		return body
	case <-ctx.Done():
		return nil // the guest is stopped before it could read this
	}
}

func (p *parentProcess) deny(right, why string) *host.Error {
	p.send(frameDeny, []byte(right+"\n"+why))
	return host.Errorf(host.Denied, "not granted: %s", right)
}

// processMemory is the memory of a child in addition to its guest's memory and code: Go's heap, which holds a large
// result twice.
const processMemory = 768 << 20

// processLimits returns the kernel limits of the child. They back the limits that the child enforces itself.
func processLimits(l limits, code int64) (cpu time.Duration, memory, open uint64) {
	return l.timeout + time.Second, uint64(l.pages)*pageBytes + uint64(2*code) + processMemory, uint64(l.openFiles) + 64
}
