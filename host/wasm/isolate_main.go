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

// Exit codes of the process of a guest.
const (
	isolateOK = iota
	_         // 1 and 2 are a crash
	_
	isolateMisused
	isolateOrphan
)

// IsolateMain is the process of one isolated call. It opens the compiled code, gives up every right that the call does not need, and only
// then makes an instance of the guest. It serves one job from stdin and ends when its starter is gone.
func IsolateMain() int {
	in := bufio.NewReader(os.Stdin)
	kind, body, err := readFrame(in, 4*host.MaxParams)
	var j job
	if err != nil || kind != frameJob || json.Unmarshal(body, &j) != nil || j.Manifest == nil || len(j.Manifest.Tools) != 1 {
		fmt.Fprintln(os.Stderr, "the process of a guest is started by parley itself, not by hand")
		return isolateMisused
	}
	s := &starter{out: os.Stdout, answers: make(chan []byte)}
	result, err := s.serve(&j, in)
	o := outcome{}
	if err != nil {
		o.Err = failureOf(asHostError(err))
	} else {
		o.Data, o.Warnings = result.Data, result.Warnings
	}
	s.send(frameDone, marshal(o))
	return isolateOK
}

// starter is the host, seen from the process of a guest.
type starter struct {
	mu      sync.Mutex
	out     io.Writer
	answers chan []byte
}

func (s *starter) serve(j *job, in io.Reader) (*host.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), j.Left)
	defer cancel()
	e := New(Config{HostVersion: j.Host, Limits: j.Defaults})
	code := slot{j.Slot, j.Key}
	sealed, err := code.read()
	if err != nil {
		return nil, host.Errorf(host.Unavailable, "the compiled code of %s is gone or damaged (%v); call it again", j.Manifest.Name, err)
	}
	u, err := open(code, sealed)
	if err != nil {
		return nil, host.Errorf(host.Unavailable, "the compiled code of %s cannot be opened (%v); call it again", j.Manifest.Name, err)
	}
	tool := &j.Manifest.Tools[0]
	r := &host.Request{
		Tool: tool.Name, Def: tool, Params: j.Params, Caller: j.Caller, Session: j.Session, CallID: j.CallID,
		Grant: j.Grant, Limits: j.Limits, Options: j.Options, Settings: j.Settings,
		Touch: func(what string) { s.send(frameTouch, []byte(what)) },
	}
	if j.Log {
		r.Log = func(level int, message string) { s.send(frameLog, marshal(report{Level: level, Message: message})) }
	}
	if j.Progress {
		r.Progress = func(done, total float64, message string) {
			s.send(frameProgress, marshal(report{Done: done, Total: total, Message: message}))
		}
	}
	c := newCall(e, u, j.Manifest, r, s)
	for _, lack := range lockDown(c.limits, j.Grant.FS, sealed.Code.Size) {
		s.send(frameLacks, []byte(lack))
	}
	go s.listen(in)
	return c.run(ctx)
}

// listen passes on answers; without a starter there is nobody left to work for.
func (s *starter) listen(in io.Reader) {
	for {
		kind, body, err := readFrame(in, 1<<30)
		if err != nil || kind != frameAnswer {
			os.Exit(isolateOrphan)
		}
		s.answers <- body
	}
}

func (s *starter) send(kind byte, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if writeFrame(s.out, kind, body) != nil {
		os.Exit(isolateOrphan)
	}
}

func (s *starter) answer(ctx context.Context, function string, question []byte) []byte {
	s.send(frameAsk, append([]byte(function+"\n"), question...))
	select {
	case body := <-s.answers:
		return body
	case <-ctx.Done():
		return nil // the guest is ended before it could see this
	}
}

func (s *starter) deny(right, why string) *host.Error {
	s.send(frameDeny, []byte(right+"\n"+why))
	return host.Errorf(host.Denied, "not granted: %s", right)
}

// processMemory is what a process needs beside the memory and the code of its guest: Go's heap, twice a large result.
const processMemory = 768 << 20

// limitsOfProcess are the kernel's bounds of a guest's process; they stand behind those that the process keeps itself.
func limitsOfProcess(l limits, code int64) (cpu time.Duration, memory, open uint64) {
	return l.timeout + time.Second, uint64(l.pages)*pageBytes + uint64(2*code) + processMemory, uint64(l.openFiles) + 64
}
