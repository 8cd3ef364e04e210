package approve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
)

// Approver asks all who may answer an approval at once: the person at hand, and whoever sees it in the store. The first
// answer counts. It implements [approval.Approver] and is safe for concurrent use.
type Approver struct {
	Store *Store
	// AtHand asks the person at hand: at the terminal, or at the client of MCP.
	AtHand approval.Approver
	// Patience returns how long a call waits for an answer; zero, or a nil Patience, means as long as the person at hand
	// is asked.
	Patience func(context.Context, *approval.Approval) time.Duration
	// Closing, once closed, ends the waiting of all calls as if their time were over. Their approvals stay open.
	Closing <-chan struct{}
}

// lookEvery is the time between two looks at an open approval.
const lookEvery = 100 * time.Millisecond

// Approve implements [approval.Approver]. A known answer decides at once. Otherwise the approval is open, and the first
// answer is the reply. If none comes in time, the reply has no answer.
func (p *Approver) Approve(ctx context.Context, a *approval.Approval) (approval.Reply, error) {
	for {
		known, err := p.Store.begin(a)
		if errors.Is(err, host.Unavailable) { // the person at hand can answer all the same
			reply, asking := p.AtHand.Approve(ctx, a)
			if _, isNobody := errors.AsType[approval.NoApproverError](asking); isNobody {
				return approval.Reply{}, err
			}
			return reply, asking
		}
		if err != nil || known.Answer != "" {
			return known, err
		}
		reply, err := p.await(ctx, a)
		if err != nil || reply.Answer == "" || reply.Answer == approval.Always {
			return reply, err
		}
		// One of the waiting calls takes what is allowed once; the others ask for approval again.
	}
}

// Open implements [approval.Keeper].
func (p *Approver) Open(a *approval.Approval) error {
	_, err := p.Store.begin(a)
	return err
}

// Known implements [approval.Keeper]. Without an answer it takes no lock.
func (p *Approver) Known(a *approval.Approval) (approval.Reply, error) {
	all, err := p.Store.read()
	if other, reply := p.Store.same(all, a); other == nil || reply.Answer == "" {
		return approval.Reply{}, err
	}
	return p.Store.begin(a)
}

// await waits until an open approval is answered. Without an answer in time the reply says why.
func (p *Approver) await(ctx context.Context, a *approval.Approval) (approval.Reply, error) {
	var wait time.Duration
	var over <-chan time.Time
	if p.Patience != nil {
		wait = p.Patience(ctx, a)
	}
	if wait > 0 {
		over = time.After(wait)
	}
	asked, answered, leave := p.ask(ctx, a, wait)
	defer leave()
	nobody := ""
	for {
		var ended error
		select {
		case ended = <-asked:
			asked = nil
		case <-answered:
		case <-over:
			return approval.Reply{Nobody: cmp.Or(nobody, fmt.Sprintf("nobody answered within %s", wait))}, nil
		case <-p.Closing:
			return approval.Reply{Nobody: "the service shuts down before anybody answered"}, nil
		case <-ctx.Done():
			return approval.Reply{}, context.Cause(ctx)
		}
		now := p.Store.readOne(a.ID)
		reason, isNobody := errors.AsType[approval.NoApproverError](ended)
		switch {
		case now == nil || now.State == approval.Expired:
			return approval.Reply{Nobody: "nobody answered in time"}, nil
		case now.State != approval.Open:
			return *now.Answered, nil
		case isNobody && wait == 0:
			return approval.Reply{Nobody: reason.Error()}, nil
		case isNobody:
			nobody = reason.Error()
		case ended != nil:
			return approval.Reply{}, ended
		}
	}
}

// ask asks the person at hand about an open approval and stores the answer. asked receives the error of that, or nil.
// answered is closed once the approval is no longer open, which also ends the question. leave must be called when the
// call no longer waits. If wait is 0, it ends the question; otherwise the person may answer after the call is over.
func (p *Approver) ask(ctx context.Context, a *approval.Approval, wait time.Duration) (asked <-chan error,
	answered <-chan struct{}, leave func()) {
	if wait > 0 {
		ctx = context.WithoutCancel(ctx)
	}
	open, end := context.WithCancel(ctx)
	of, ended, stopped, left := *a, make(chan error, 1), make(chan struct{}), make(chan struct{})
	go func() {
		reply, err := p.AtHand.Approve(open, &of)
		if err == nil {
			_, err = p.Store.Answer(of.ID, reply)
		}
		if errors.Is(err, host.AlreadyExists) || open.Err() != nil {
			err = nil // somebody else was first
		}
		ended <- err
		close(stopped)
		<-left
		end()
	}()
	go p.endWhenAnswered(open, end, of.ID)
	return ended, open.Done(), func() {
		close(left)
		if wait == 0 {
			end()
			<-stopped
		}
	}
}

// endWhenAnswered ends a context once an approval is no longer open.
func (p *Approver) endWhenAnswered(ctx context.Context, end func(), id string) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-look.C:
			if now := p.Store.readOne(id); now == nil || now.State != approval.Open {
				end()
			}
		}
	}
}
