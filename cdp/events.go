package cdp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

type eventsParams struct {
	Match     []string        `json:"match"`
	URL       string          `json:"url"`
	Status    json.RawMessage `json:"status"` // a number or a string
	Since     *int64          `json:"since"`
	Limit     int             `json:"limit"`
	Until     string          `json:"until"`
	Max       int             `json:"max"`
	TimeoutMS int64           `json:"timeout_ms"`
}

// status returns the status as the keeper expects it.
func (q eventsParams) status() string { return strings.Trim(string(q.Status), `"`) }

// prepareEvents decodes and checks a request for events and connects to the browser.
func (p *Provider) prepareEvents(ctx context.Context, r *host.Request) (q eventsParams, c *keeper.Client, err error) {
	if err = json.Unmarshal(r.Params, &q); err != nil {
		return q, nil, err
	}
	for i := range q.Match {
		q.Match[i] = localEvent(q.Match[i])
	}
	q.Until = localEvent(q.Until)
	if err = p.protocol.checkEvents(r, append(q.Match, q.Until)); err != nil {
		return q, nil, err
	}
	c, err = p.browsers.clientFor(ctx, r)
	return q, c, err
}

// localEvent returns a pattern for events without the name of the plugin: "cdp.Network.*" means "Network.*".
func localEvent(pattern string) string { return strings.TrimPrefix(pattern, Name+".") }

func (p *Provider) events(ctx context.Context, r *host.Request) (*job.Result, error) {
	q, c, err := p.prepareEvents(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.Wants.Records {
		return stream(ctx, c, r, q)
	}
	request := api.EventsRequest{Patterns: q.Match, URL: q.URL, Status: q.status(), Target: r.Options.Target,
		Newest: q.Since == nil, Limit: q.Limit}
	if q.Since != nil {
		request.Since = *q.Since
	}
	found, err := keeper.Ask(ctx, c, api.OpEvents, request)
	if err != nil {
		return nil, err
	}
	found.Events = append([]json.RawMessage{}, found.Events...)
	var warnings []string
	if request.Since > found.LastSeq {
		warnings = append(warnings, fmt.Sprintf("since is %d, but fewer events were sent: the browser was restarted and "+
			"counts from 1 again; these are its events", request.Since))
	}
	return result(found, warnings...)
}

// checkEvents rejects patterns that match no event of the protocol: waiting for them would never end.
func (t translation) checkEvents(r *host.Request, patterns []string) error {
	if r.Options.SendAnyway {
		return nil
	}
	var names []string
	for _, pattern := range patterns {
		if e, ok := t.Event(pattern); pattern == "" || ok && e.Name == pattern {
			continue
		}
		if names == nil {
			names = t.eventNames()
		}
		if slices.ContainsFunc(names, func(name string) bool { ok, _ := path.Match(pattern, name); return ok }) {
			continue
		}
		e := host.Errorf(host.NotFound, "no event is named %s", manifest.CleanLine(pattern)).WithSteps(step.Step{
			Op: step.OpSearch, Query: manifest.CleanLine(strings.Trim(pattern, "*.")), Options: step.Options{Kind: "event"},
		})
		e.DidYouMean = host.Nearest(Name, pattern, names)
		return e
	}
	return nil
}

func (t translation) eventNames() []string {
	var names []string
	for _, d := range t.Domains() {
		for _, m := range t.Members(d.Name) {
			if m.Kind == protocol.KindEvent {
				names = append(names, d.Name+"."+m.Name)
			}
		}
	}
	return names
}

// stream emits events as they arrive. Its result says why it ended.
func stream(ctx context.Context, c *keeper.Client, r *host.Request, q eventsParams) (*job.Result, error) {
	request := api.ListenRequest{Patterns: q.Match, URL: q.URL, Status: q.status(), Target: r.Options.Target,
		Until: q.Until, Max: q.Max, TimeoutMS: q.TimeoutMS}
	emit := r.Emit
	if q.Until != "" && r.Wants.Until {
		if q.URL != "" || len(q.Status) > 0 {
			return nil, host.Errorf(host.InvalidArgs, "a stream that ends with an event of this call takes no url and no status")
		}
		// The keeper sends all events that could be the last one; the filter decides which one is.
		request.Patterns, request.Until, request.Max = append(slices.Clone(q.Match), q.Until), "", 0
		emit = untilFilter(q, r.Emit, func(record json.RawMessage) bool {
			last, err := host.AskFor[bool](ctx, r, job.AskLast, record)
			return err != nil || last
		})
	}
	end, err := c.Listen(ctx, request, r.Started, emit)
	if over, ok := errors.AsType[streamEnd](err); ok {
		end, err = api.ListenEnd{End: string(over)}, nil
	}
	if err != nil {
		return nil, err
	}
	return result(end, warnNotEnabled(q.Match)...)
}

// warnNotEnabled warns about patterns that enable no domain, so that only events of domains that are already enabled
// arrive. These are patterns without a literal domain, and patterns of domains that listening does not enable.
func warnNotEnabled(patterns []string) (warnings []string) {
	for _, pattern := range patterns {
		switch domain, _, _ := strings.Cut(pattern, "."); {
		case strings.ContainsAny(domain, "*?["):
			warnings = append(warnings, fmt.Sprintf("%s enables no domain, so only events of domains that were already "+
				"enabled arrived; name the domain, such as Network.*", manifest.CleanLine(pattern)))
		case !api.ListenEnables(domain):
			warnings = append(warnings, fmt.Sprintf("%s does not enable %s, because that changes more than what is "+
				"reported: call %s.%s.enable first", manifest.CleanLine(pattern), domain, Name, domain))
		}
	}
	return warnings
}

// untilFilter returns a function that emits the requested records of a stream. last decides which event is the last
// one.
func untilFilter(q eventsParams, emit func(json.RawMessage) error, last func(json.RawMessage) bool) func(
	json.RawMessage) error {
	emitted := 0
	return func(record json.RawMessage) error {
		var event struct {
			Method string `json:"method"` // empty: reports lost events
		}
		if err := json.Unmarshal(record, &event); err != nil {
			return err
		}
		isLast := api.Matches([]string{q.Until}, event.Method) && last(record)
		if event.Method != "" && !isLast && !api.Matches(q.Match, event.Method) {
			return nil
		}
		if err := emit(record); err != nil || event.Method == "" {
			return err
		}
		emitted++
		switch {
		case isLast:
			return streamEnd("until")
		case q.Max > 0 && emitted >= q.Max:
			return streamEnd("max")
		}
		return nil
	}
}

// streamEnd is the error with which the reader of a stream ends it. Its text is the reason.
type streamEnd string

func (o streamEnd) Error() string { return "the stream ended: " + string(o) }

// eventStarts lists commands with the events that Chrome never sends before them, even while the domain is enabled.
var eventStarts = []struct {
	command string
	events  []string
}{
	{"BackgroundService.startObserving", []string{
		"BackgroundService.backgroundServiceEventReceived", "BackgroundService.recordingStateChanged"}},
	{"Browser.setDownloadBehavior", []string{"Browser.downloadWillBegin", "Browser.downloadProgress"}},
	{"CSS.trackComputedStyleUpdates", []string{"CSS.computedStyleUpdated"}},
	{"DOM.requestChildNodes", []string{"DOM.setChildNodes"}},
	{"Emulation.setVirtualTimePolicy", []string{"Emulation.virtualTimeBudgetExpired"}},
	{"HeapProfiler.startTrackingHeapObjects", []string{"HeapProfiler.heapStatsUpdate", "HeapProfiler.lastSeenObjectId"}},
	{"HeapProfiler.takeHeapSnapshot", []string{
		"HeapProfiler.addHeapSnapshotChunk", "HeapProfiler.reportHeapSnapshotProgress"}},
	{"Input.setInterceptDrags", []string{"Input.dragIntercepted"}},
	{"Overlay.setInspectMode", []string{
		"Overlay.inspectNodeRequested", "Overlay.nodeHighlightRequested", "Overlay.inspectModeCanceled"}},
	{"Page.setInterceptFileChooserDialog", []string{"Page.fileChooserOpened"}},
	{"Page.startScreencast", []string{"Page.screencastFrame", "Page.screencastVisibilityChanged"}},
	{"PerformanceTimeline.enable", []string{"PerformanceTimeline.timelineEventAdded"}},
	{"Profiler.start", []string{"Profiler.consoleProfileStarted"}},
	{"Profiler.startPreciseCoverage", []string{"Profiler.preciseCoverageDeltaUpdate"}},
	{"Runtime.addBinding", []string{"Runtime.bindingCalled"}},
	{"Storage.setStorageBucketTracking", []string{
		"Storage.storageBucketCreatedOrUpdated", "Storage.storageBucketDeleted"}},
	{"Storage.trackCacheStorageForOrigin", []string{
		"Storage.cacheStorageContentUpdated", "Storage.cacheStorageListUpdated"}},
	{"Storage.trackIndexedDBForOrigin", []string{
		"Storage.indexedDBContentUpdated", "Storage.indexedDBListUpdated"}},
	{"Tethering.bind", []string{"Tethering.accepted"}},
	{"Tracing.end", []string{"Tracing.dataCollected", "Tracing.tracingComplete"}},
	{"Tracing.start", []string{"Tracing.bufferUsage"}},
	{"WebAuthn.addVirtualAuthenticator", []string{"WebAuthn.credentialAdded", "WebAuthn.credentialAsserted"}},
}

// eventNeeds returns the calls without which an event never comes, as qualified names: what starts it, or what enables
// its domain. A stream enables most domains itself.
func eventNeeds(event, domain string) (needs []string) {
	enable := domain + ".enable"
	if _, ok := protocol.Embedded().Command(enable); ok && !api.ListenEnables(domain) {
		needs = append(needs, Name+"."+enable)
	}
	for _, start := range eventStarts {
		if slices.Contains(start.events, event) && !slices.Contains(needs, Name+"."+start.command) {
			needs = append(needs, Name+"."+start.command)
		}
	}
	return needs
}
