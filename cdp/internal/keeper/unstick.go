package keeper

import (
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/manifest"
)

// This file handles what keeps a call from being sent or from returning.

// checkSendable returns the reason why a call cannot be sent now, or nil.
func (s *sender) checkSendable(t *target, method string) *api.Error {
	switch {
	case s.mux.Err() != nil:
		return s.mux.Err()
	case t == nil:
		return nil
	case t.evictErr != nil:
		return t.evictErr
	case t.closed:
		return closedTarget(t)
	case t.crashed && !revives(method):
		return crashedTarget(t)
	case t.Session == "":
		return api.Errorf(api.CodeNotFound, "target %s (%s) is no longer attached; try again", t.ID, manifest.Clip(t.url, 80))
	}
	if d := t.root().dialog; d != nil && !endsDialog(d, method) {
		return blockedTarget(t, d)
	}
	return nil
}

func closedTarget(t *target) *api.Error {
	e := api.Errorf(api.CodeNotFound, "target %s (%s) was closed", t.ID, manifest.Clip(t.url, 80))
	e.Target = t.ID
	return e
}

func crashedTarget(t *target) *api.Error {
	e := api.Errorf(api.CodeTargetCrashed,
		"the renderer of target %s (%s) has crashed; Page.reload or Page.navigate revives it",
		t.ID, manifest.Clip(t.url, 80))
	e.Target = t.ID
	return e
}

// revives reports whether a command revives a crashed target.
func revives(method string) bool {
	return method == page.CommandNavigate || method == page.CommandReload || method == page.CommandClose
}

// unstick checks whether a target whose call timed out is busy with a script. If so, it terminates the script. It
// returns a description of what it found, or "". A target that only waits, for example for a promise, responds to
// the probe and is left alone.
func (s *sender) unstick(t *target) string {
	if t == nil {
		return ""
	}
	s.mux.Lock()
	unresponsive := s.mux.Err() != nil || t.closed || t.crashed || t.Session == "" || t.root().dialog != nil
	s.mux.Unlock()
	if unresponsive {
		return ""
	}
	responded, forget, err := s.probe(t)
	defer forget()
	if err != nil {
		return "the browser has stopped reading"
	}
	select {
	case <-responded:
		return ""
	case <-time.After(probeTimeout):
	}
	s.mux.Lock()
	pendingURL := t.root().pendingURL
	if pendingURL == "" {
		postCommand(s.mux, t, runtime.TerminateExecution, cdp.Empty{}, nil)
	}
	s.mux.Unlock()
	if pendingURL != "" { // messages now reach the new page, whose script must not be terminated
		return "a navigation to " + manifest.Clip(pendingURL, 200) + " is under way, and its server has not responded"
	}
	select {
	case <-responded:
		return "the page was busy with a script that did not end, which was stopped"
	case <-time.After(terminateTimeout):
		return "the page does not respond, and its script could not be stopped; Page.reload may help, or close the page"
	}
}

// probe sends a command to which an idle target responds at once.
func (s *sender) probe(t *target) (responded <-chan mux.Reply, forget func(), err *api.Error) {
	s.mux.Lock()
	defer s.mux.Unlock()
	p := &mux.Pending{Method: runtime.CommandEvaluate, To: t.at()}
	err = s.mux.Send(p, scan.Marshal(runtime.EvaluateParams{Expression: "0", Silent: new(true)}))
	return p.Done, func() {
		s.mux.Lock()
		s.mux.Forget(p)
		s.mux.Unlock()
	}, err
}

const (
	// probeTimeout leaves a page on a slow machine enough time to respond, so that its script is not terminated.
	probeTimeout     = time.Second
	terminateTimeout = 2 * time.Second // for a script to terminate
)
