package keeper

import (
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/parley-tools/parley/manifest"
)

// What keeps a call from being sent, or from ending.

// checkSendable says why a call cannot be sent now.
func (e *engine) checkSendable(t *target, method string, o callOptions) *Error {
	switch {
	case e.closeErr != nil:
		return e.closeErr
	case t == nil:
		return nil
	case t.evictErr != nil:
		return t.evictErr
	case t.closed:
		return closedTarget(t)
	case t.crashed && !revives(method):
		return crashedTarget(t)
	case t.session == "":
		return errf(CodeNotFound, "target %s (%s) is not attached any more; try again", t.id, manifest.Clip(t.url, 80))
	}
	if d := t.root().dialog; d != nil && !d.endedBy(method) && o.onDialog != DialogAccept && o.onDialog != DialogDismiss {
		return blockedTarget(t, d)
	}
	return nil
}

func closedTarget(t *target) *Error {
	e := errf(CodeNotFound, "target %s (%s) was closed", t.id, manifest.Clip(t.url, 80))
	e.Target = t.id
	return e
}

func crashedTarget(t *target) *Error {
	e := errf(CodeTargetCrashed, "the renderer of target %s (%s) has crashed; Page.reload or Page.navigate revives it", t.id, manifest.Clip(t.url, 80))
	e.Target = t.id
	return e
}

func blockedTarget(t *target, d *Dialog) *Error {
	way := `{"accept":true}, or reload or close the page`
	if d.Type == beforeUnload {
		way = `{"accept":true}, which leaves the page, or {"accept":false}, which stays`
	}
	e := errf(CodeBusy, "a JavaScript dialog is open and blocks the page: %s %q; answer it with Page.handleJavaScriptDialog %s", d.Type, manifest.Clip(d.Message, 300), way)
	e.Target, e.Dialog = t.id, d
	return e
}

// revives names the commands that a crashed target takes.
func revives(method string) bool {
	return method == page.CommandNavigate || method == page.CommandReload || method == page.CommandClose
}

// beforeUnload is the type of the dialog that asks whether the page may be left.
const beforeUnload = "beforeunload"

// endedBy reports whether a command ends the dialog. While a page asks whether it may be left, Chrome takes what would leave it and does nothing.
func (d *Dialog) endedBy(method string) bool {
	return method == page.CommandHandleJavaScriptDialog || revives(method) && d.Type != beforeUnload
}

// unstick looks whether a target whose call was given up is busy with a script, stops
// the script, and says what it found. A target that only waits, as for a promise,
// answers the probe and is left alone.
func (e *engine) unstick(t *target) string {
	if t == nil {
		return ""
	}
	e.mu.Lock()
	unresponsive := e.closeErr != nil || t.closed || t.crashed || t.session == "" || t.root().dialog != nil
	e.mu.Unlock()
	if unresponsive {
		return ""
	}
	answered, forget, err := e.probe(t)
	defer forget()
	if err != nil {
		return "the browser has stopped reading"
	}
	select {
	case <-answered:
		return ""
	case <-time.After(probeTimeout):
	}
	e.mu.Lock()
	pendingURL := t.root().pendingURL
	if pendingURL == "" {
		postCommand(e, t, runtime.TerminateExecution, cdp.Empty{}, nil)
	}
	e.mu.Unlock()
	if pendingURL != "" { // what is sent now goes to the page that comes, whose script must not be stopped
		return "a navigation to " + manifest.Clip(pendingURL, 200) + " is under way, which has not been answered"
	}
	select {
	case <-answered:
		return "the page was busy with a script that did not end, which was stopped"
	case <-time.After(terminateTimeout):
		return "the page does not answer at all, and its script could not be stopped; Page.reload or closing it may help"
	}
}

// probe asks a target for what costs nothing.
func (e *engine) probe(t *target) (answered <-chan reply, forget func(), err *Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &pending{method: runtime.CommandEvaluate, target: t}
	err = e.send(p, mustJSON(runtime.EvaluateParams{Expression: "0", Silent: new(true)}))
	return p.done, func() {
		e.mu.Lock()
		delete(e.pending, p.id)
		e.mu.Unlock()
	}, err
}

const (
	// probeTimeout is long enough for a page on a busy machine: one that is only slow must not lose its script.
	probeTimeout     = time.Second
	terminateTimeout = 2 * time.Second // for a script to be stopped
)
