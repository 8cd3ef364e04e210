package environment

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

type recordParams struct {
	Action string `json:"action"` // start, stop, or "" for both
	For    int64  `json:"for"`    // milliseconds
	Trace  bool   `json:"trace"`
}

// recording says how a page spent its time, in milliseconds. Only tasks of the main thread count.
type recording struct {
	Started   bool   `json:"started,omitempty"`
	Recorded  int64  `json:"recorded,omitempty"`
	Busy      int64  `json:"busy,omitempty"`
	LongTasks int    `json:"long_tasks,omitempty"` // over 50 ms
	Longest   int64  `json:"longest_task,omitempty"`
	Text      string `json:"text,omitempty"`
	LeftOut   string `json:"left_out,omitempty"`
	Data      []byte `json:"data,omitempty"` // the trace
}

// Step implements [page.Step].
func (r *recording) Step() (string, any) {
	if r.Started {
		return "", nil
	}
	return "", r
}

// tracing configures a recording. Its buffer has 16 MiB, which Chrome writes as about twice as much JSON.
var tracing = page.Object{"transferMode": "ReturnAsStream", "traceConfig": page.Object{
	"includedCategories": []string{"devtools.timeline", "disabled-by-default-devtools.timeline", "loading", "v8.execute",
		"disabled-by-default-v8.cpu_profiler", "disabled-by-default-v8.cpu_profiler.hires", "blink.user_timing"},
	"excludedCategories": []string{"*"}, "recordMode": "recordUntilFull", "traceBufferSizeInKb": 16 << 10}}

// record records what the page does, and reports how much time that took.
func record(v *page.Visit, p recordParams) (*recording, *api.Error) {
	if p.Action != "stop" {
		err := trace(v, "Tracing.start", tracing, nil)
		if err != nil && err.Chrome != nil {
			err = page.Exit("not_met", "the browser is already recording; page.record stop ends the recording of this page", nil)
		}
		if err != nil || p.Action == "start" {
			return &recording{Started: true}, err
		}
		v.Pause(v.Within(time.Duration(p.For) * time.Millisecond))
	}
	file, lost, err := endTrace(v)
	if err != nil {
		return nil, err
	}
	own, events := ownEvents(file)
	r := summaryOf(events)
	if lost {
		r.LeftOut = "the end, because the buffer of the trace was full"
	}
	if p.Trace {
		r.Data = scan.Marshal(page.Object{"traceEvents": own})
	}
	return r, nil
}

// trace sends a command of a recording. It sends it as the keeper, not as the caller, because the command reaches all
// pages of the browser.
func trace(v *page.Visit, method string, params page.Object, into any) *api.Error {
	result, err := v.Keeper.Tracker.Sender.Do(v.Ctx, v.Page, method, scan.Marshal(params))
	if err == nil && into != nil {
		return api.Decode(result, into)
	}
	return err
}

// flushTime is how long Chrome may need to add its last samples. It adds them 100 at a time.
const flushTime = 100 * time.Millisecond

// endTrace ends the recording and returns its trace. lost says that the end is missing.
func endTrace(v *page.Visit) (file []byte, lost bool, err *api.Error) {
	_, since := v.Records(0)
	v.Pause(flushTime)
	if err = trace(v, "Tracing.end", page.Object{}, nil); err != nil && err.Chrome != nil {
		err = page.Exit("not_met", "nothing is recorded; page.record start begins", nil)
	}
	if err != nil {
		return nil, false, err
	}
	var done struct {
		Stream string
		Loss   bool `json:"dataLossOccurred"`
	}
	if err := v.Keeper.Events.AwaitRecords(v.Ctx, func() bool {
		records, _ := v.Records(since, "Tracing.tracingComplete")
		return len(records) > 0 && json.Unmarshal(records[len(records)-1].Params, &done) == nil
	}); err != nil {
		return nil, false, err
	}
	file, err = readStream(v, done.Stream, math.MaxInt)
	return file, done.Loss, err
}

// readStream reads a stream of Chrome. The stream may have at most most bytes.
func readStream(v *page.Visit, handle string, most int) (all []byte, err *api.Error) {
	for {
		var part struct {
			Data   string
			Base64 bool `json:"base64Encoded"`
			EOF    bool
		}
		if err := trace(v, "IO.read", page.Object{"handle": handle, "size": 1 << 20}, &part); err != nil {
			return nil, err
		}
		data := []byte(part.Data)
		if part.Base64 {
			data, _ = base64.StdEncoding.DecodeString(part.Data)
		}
		if all = append(all, data...); len(all) > most {
			err = api.Errorf(api.CodeLimitExceeded, "it has more than %d MiB", most>>20)
		}
		if part.EOF || err != nil {
			return all, cmp.Or(err, trace(v, "IO.close", page.Object{"handle": handle}, nil))
		}
	}
}

// traceEvent is an event of a trace, as far as a summary needs it. Times are in microseconds.
type traceEvent struct {
	Name, Ph, ID, Cat string
	PID, TID          int64
	TS, Dur           float64
	Args              struct {
		Name string // of a process or thread
		Data struct {
			ProcessID      int64
			Frames         []struct{ ProcessID int64 }
			RequestID, URL string
			TimeDeltas     []float64
			CPUProfile     struct {
				Nodes []struct {
					ID, Parent int64
					CallFrame  callFrame
				}
				Samples []int64
			}
		}
	}
}

// ofFrames reports whether the event is one in which the browser says in which processes the page's frames run. Its
// category is checked, too, because a page can give its own marks the names of such events.
func (e *traceEvent) ofFrames() bool {
	return strings.HasSuffix(e.Name, "InBrowser") && e.Cat == "disabled-by-default-devtools.timeline"
}

// ownEvents returns the events of a trace that belong to the page. Chrome records the events of all pages.
func ownEvents(file []byte) (own []json.RawMessage, events []traceEvent) {
	var all struct{ TraceEvents []json.RawMessage }
	_ = json.Unmarshal(file, &all)
	events, ours, browser := make([]traceEvent, len(all.TraceEvents)), map[int64]bool{}, int64(0)
	for i, raw := range all.TraceEvents {
		e := &events[i]
		_ = json.Unmarshal(raw, e) // members of other types are ignored
		if !e.ofFrames() {
			continue
		}
		browser, ours[e.Args.Data.ProcessID] = e.PID, true
		for _, f := range e.Args.Data.Frames {
			ours[f.ProcessID] = true
		}
	}
	delete(ours, 0)
	kept := events[:0]
	for i, e := range events {
		if ours[e.PID] || e.ofFrames() || e.PID == browser && e.Ph == "M" {
			own, kept = append(own, all.TraceEvents[i]), append(kept, e)
		}
	}
	return own, kept
}

// works are kinds of work of a main thread, by the names of their events.
var works = map[string]string{"UpdateLayoutTree": "style", "Layout": "layout", "Paint": "paint", "ParseHTML": "parsing",
	"MajorGC": "garbage collection", "MinorGC": "garbage collection"}

// cost is how often something happened, and how long that took.
type cost struct {
	name  string
	count int
	took  float64 // microseconds
}

// costs are costs by name.
type costs map[string]*cost

func (c costs) add(name string, took float64) {
	if c[name] == nil {
		c[name] = &cost{name: name}
	}
	c[name].count++
	c[name].took += took
}

// first returns lines for the largest costs: at most most of them, and the largest in any case, others only if they
// took at least least microseconds.
func (c costs) first(most int, least float64, format func(*cost) string) (lines []string) {
	for _, one := range slices.SortedFunc(maps.Values(c), func(a, b *cost) int {
		return cmp.Or(cmp.Compare(b.took, a.took), strings.Compare(a.name, b.name))
	}) {
		if len(lines) == 0 || len(lines) < most && one.took >= least {
			lines = append(lines, fmt.Sprintf("%.0f ms ", one.took/1000)+format(one))
		}
	}
	return lines
}

// summaryOf sums up how a page spent its time by the events of a trace.
func summaryOf(events []traceEvent) *recording {
	r, busy, longest, begin, end := &recording{}, 0.0, 0.0, 0.0, 0.0
	self, work, requests := costs{}, costs{}, costs{}
	main, sent, profiles := map[int64]bool{}, map[string]*traceEvent{}, map[string]*profile{}
	slices.SortStableFunc(events, func(a, b traceEvent) int { return cmp.Compare(a.TS, b.TS) })
	for i := range events {
		e := &events[i]
		if e.TS > 0 {
			begin, end = cmp.Or(begin, e.TS), max(end, e.TS+e.Dur)
		}
		data := &e.Args.Data
		switch {
		case e.Ph == "M" && e.Name == "thread_name": // these have no time, and come first
			main[e.TID] = e.Args.Name == "CrRendererMain"
		case e.Name == "RunTask" && main[e.TID]:
			if busy, longest = busy+e.Dur, max(longest, e.Dur); e.Dur > 50_000 {
				r.LongTasks++
			}
		case works[e.Name] != "" && e.Ph == "X":
			work.add(works[e.Name], e.Dur)
		case e.Name == "ResourceSendRequest":
			sent[data.RequestID] = e
		case e.Name == "ResourceFinish" && sent[data.RequestID] != nil:
			requests.add(shortURL(sent[data.RequestID].Args.Data.URL), e.TS-sent[data.RequestID].TS)
		case e.Name == "ProfileChunk":
			key := fmt.Sprint(e.PID, e.ID)
			if profiles[key] == nil {
				profiles[key] = &profile{calls: map[int64]callFrame{}}
			}
			profiles[key].read(e, self)
		}
	}
	r.Recorded, r.Busy, r.Longest = int64(end-begin)/1000, int64(busy)/1000, int64(longest)/1000
	r.Text = strings.Join(slices.Concat(
		self.first(8, busy/20, func(c *cost) string { return c.name }),
		work.first(5, busy/20, func(c *cost) string { return fmt.Sprintf("%s, %d times", c.name, c.count) }),
		requests.first(3, (end-begin)/10, func(c *cost) string { return "request " + c.name }),
	), "\n")
	return r
}

// profile is the profile of a thread, which comes in chunks.
type profile struct {
	calls map[int64]callFrame
	last  int64 // the call at the last sample
}

// read adds the time between the samples of a chunk to the functions that ran. A function without a URL, such as one
// of the browser, counts as the function that called it. Time without a function that has a URL counts as evaluated
// code, or as a state of the browser, whose name is in parentheses.
func (p *profile) read(e *traceEvent, self costs) {
	data := &e.Args.Data
	for _, node := range data.CPUProfile.Nodes {
		call, by := node.CallFrame, p.calls[node.Parent]
		switch {
		case call.URL != "":
		case by.URL != "" || strings.HasPrefix(call.Function, "("):
			call = by
		default:
			call.URL = "evaluated"
		}
		p.calls[node.ID] = call
	}
	for i, sample := range data.CPUProfile.Samples[:min(len(data.CPUProfile.Samples), len(data.TimeDeltas))] {
		if call := p.calls[p.last]; call.URL != "" {
			self.add(page.Clip(cmp.Or(call.Function, "(anonymous)"), 60)+" "+call.position(), data.TimeDeltas[i])
		}
		p.last = sample
	}
}
