package trace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/step"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 345e6, time.UTC)

func refused() host.Event {
	return host.Event{
		Time: noon, Op: "call", CallID: "c1", Session: "s1", Caller: "mcp:claude", Tool: "cdp.Network.getCookies",
		Digest: "sha256:ab", Mode: "progressive", Tiers: []int{1, 2},
		Params: json.RawMessage(`{"urls": ["https://example.com"]}`),
		Err: &host.Error{Code: host.InvalidArgs, Details: []host.Detail{
			{Parameter: "/urls/0", Keyword: "type", Provided: "the secret", Expected: "string",
				Suggestion: step.TextSuggestion("the secret")}}},
		Duration: 1234 * time.Microsecond, OutBytes: 120, DocsTokens: 95, RetryOf: "c0", SuggestionUsed: true,
		By: "policy", Approval: "a1", Changes: []string{"renamed", "coerced"},
	}
}

func TestLines(t *testing.T) {
	tests := []struct {
		name   string
		values bool
		event  host.Event
		want   string
	}{
		{"refused", false, refused(),
			`{"v":1,"t":"2026-07-01T12:00:00.345Z","call":"c1","session":"s1","caller":"mcp:claude",` +
				`"tool":"cdp.Network.getCookies","manifest":"sha256:ab","mode":"progressive","tiers":[1,2],` +
				`"params":{"urls":"array[1]<string(19)>"},"errors":[{"pointer":"/urls/0","keyword":"type","expected":"string"}],` +
				`"code":"invalid_args","exit_code":81,"ms":1.234,"out_bytes":120,"docs_tokens":95,"retry_of":"c0","suggestion_used":true,"by":"policy","approval":"a1","changes":["renamed","coerced"]}`},
		{"only a tool", false, host.Event{Time: noon, Op: "call", Tool: "text.hash"},
			`{"v":1,"t":"2026-07-01T12:00:00.345Z","tool":"text.hash","code":"ok","exit_code":0,"ms":0}`},
		{"a tool's own exit code", false, host.Event{Time: noon, Tool: "a.b",
			Err: &host.Error{Code: host.ToolFailed, Exit: 10}},
			`{"v":1,"t":"2026-07-01T12:00:00.345Z","tool":"a.b","code":"tool_failed","exit_code":10,"ms":0}`},
		{"a subject", false, host.Event{Time: noon, Tool: "a.b", Subject: "button \"a\nb\""},
			`{"v":1,"t":"2026-07-01T12:00:00.345Z","tool":"a.b","code":"ok","exit_code":0,"ms":0,"subject":"button \"a b\""}`},
		{"search without values", false,
			host.Event{Time: noon, Op: "search", CallID: "c2", Query: "take a picture", Hits: []string{"cdp.screenshot",
				"text\n.hash"}},
			`{"v":1,"t":"2026-07-01T12:00:00.345Z","op":"search","call":"c2","code":"ok","exit_code":0,"ms":0,` +
				`"hits":["cdp.screenshot","text .hash"]}`},
		{"search with values", true, host.Event{Time: noon, Op: "search", CallID: "c2", Query: "take a\n\x1b[31mpicture"},
			`{"v":1,"t":"2026-07-01T12:00:00.345Z","op":"search","call":"c2","query":"take a \\u001b[31mpicture","code":"ok","exit_code":0,"ms":0}`},
		{"params that are not JSON", true, host.Event{Time: noon, Tool: "a.b", Params: json.RawMessage(`{"a":`)},
			`{"v":1,"t":"2026-07-01T12:00:00.345Z","tool":"a.b","params":"invalid(5)","code":"ok","exit_code":0,"ms":0}`},
		{"params with values", true, host.Event{Time: noon, Tool: "a.b", Params: json.RawMessage("{\"a\": [1,\n \"<x>\"]}")},
			`{"v":1,"t":"2026-07-01T12:00:00.345Z","tool":"a.b","params":{"a":[1,"<x>"]},"code":"ok","exit_code":0,"ms":0}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			Open(dir, Config{Values: tt.values, Warn: func(err error) { t.Error(err) }}).Record(tt.event)
			if got := content(t, filepath.Join(dir, "2026-07-01.jsonl")); got != tt.want+"\n" {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
		})
	}
}

// Traces contain no values while values are off.
func TestNoValues(t *testing.T) {
	dir := t.TempDir()
	e := refused()
	e.Params = json.RawMessage(`{"urls":["hunter2"],"o":{"password":"hunter2","n":[["hunter2"],"hunter2"]}}`)
	e.Query, e.Result = "hunter2", json.RawMessage(`"hunter2"`)
	e.Err.Corrected, e.Err.Message = e.Params, "hunter2"
	e.Err.Steps = []step.Step{step.Call("hunter2", e.Params)}
	Open(dir, Config{}).Record(e)
	line := content(t, filepath.Join(dir, "2026-07-01.jsonl"))
	if strings.Contains(line, "hunter2") || strings.Contains(line, "the secret") {
		t.Error(line)
	}
}

func TestBounds(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("ä", 100_000)
	e := host.Event{Time: noon, Op: "call", CallID: long, Session: long, Caller: long, Tool: long, RetryOf: long,
		Query:  long,
		Params: json.RawMessage(`{"` + long + `":"` + long + `","b":["` + long + `"]}`),
		Err:    &host.Error{Code: host.InvalidArgs}}
	for range 1000 {
		e.Hits, e.Changes = append(e.Hits, long), append(e.Changes, long)
		e.Err.Details = append(e.Err.Details, host.Detail{Parameter: "/" + long, Keyword: long, Expected: long})
	}
	Open(dir, Config{Values: true}).Record(e)
	line := content(t, filepath.Join(dir, "2026-07-01.jsonl"))
	if len(line) > 64<<10 {
		t.Errorf("the line has %d bytes", len(line))
	}
	r := only(t, dir, nil)
	if !strings.HasSuffix(r.Tool, "…") || len(r.Errors) != maxErrors {
		t.Errorf("tool %q, %d errors", r.Tool, len(r.Errors))
	}
	if want := `"b":"array[1]<string(100000)>"`; !strings.Contains(string(r.Params), want) {
		t.Errorf("params %s, want the shape %s", r.Params, want)
	}
}

func TestFilesAreForTheUserAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	dir := filepath.Join(t.TempDir(), "state", "traces")
	open := filepath.Join(dir, "2026-07-02.jsonl")
	rec := Open(dir, Config{})
	rec.Record(host.Event{Time: noon})
	if err := os.WriteFile(open, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	rec.Record(host.Event{Time: noon.AddDate(0, 0, 1)})
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "2026-07-01.jsonl"): 0o600,
		open: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", path, info.Mode().Perm(), err, want)
		}
	}
}

func TestOffWritesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "traces")
	Open(dir, Config{Off: true}).Record(refused())
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder was created: %v", err)
	}
}

func TestDaysRollOver(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 7, 1, 23, 59, 59, 0, time.UTC)
	rec := Open(dir, Config{})
	for i := range 3 {
		rec.Record(host.Event{CallID: fmt.Sprint(i), Time: now})
		now = now.Add(time.Second)
	}
	// 01:00 in Moscow is still the day before.
	rec.Record(host.Event{CallID: "3", Time: time.Date(2026, 7, 3, 1, 0, 0, 0, time.FixedZone("MSK", 3*3600))})
	if got := strings.Join(daysIn(t, dir), " "); got != "2026-07-01 2026-07-02" {
		t.Errorf("files of the days %s", got)
	}
	for day, want := range map[string]string{"2026-07-01": "0", "2026-07-02": "123"} {
		got := ""
		for r, err := range Records(dir, nil).Read(record.Filter{Since: must(time.Parse(dayFormat, day)),
			Until: must(time.Parse(dayFormat, day)).AddDate(0, 0, 1)}) {
			if err != nil {
				t.Fatal(err)
			}
			got += r.Call
		}
		if got != want {
			t.Errorf("%s: calls %q, want %q", day, got, want)
		}
	}
}

func TestWarnsOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	warned := 0
	rec := Open(filepath.Join(file, "traces"), Config{Warn: func(error) { warned++ }})
	for range 3 {
		rec.Record(refused())
	}
	if warned != 1 {
		t.Errorf("warned %d times", warned)
	}
	Open(filepath.Join(file, "traces"), Config{}).Record(refused()) // without Warn there is no panic
}

// Two recorders represent two processes.
func TestConcurrentWritersKeepLinesWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "traces")
	const writers, lines = 8, 100
	recorders := []host.Recorder{Open(dir, Config{Values: true}), Open(dir, Config{Values: true})}
	params := json.RawMessage(`{"text":"` + strings.Repeat("x", 9000) + `"}`) // more than a page
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range lines {
				recorders[w%2].Record(host.Event{Time: noon, CallID: fmt.Sprintf("%d-%d", w, i), Params: params})
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for r, err := range Records(dir, func(path string, line int) {
		t.Errorf("%s:%d is damaged", path, line)
	}).Read(record.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		seen[r.Call] = true
	}
	if len(seen) != writers*lines {
		t.Errorf("%d lines, want %d", len(seen), writers*lines)
	}
}

func TestTornLineDamagesNoOther(t *testing.T) {
	const half = `{"v":1,"t":"2026-07-01T1`
	dir := t.TempDir()
	path := filepath.Join(dir, "2026-07-01.jsonl")
	if err := os.WriteFile(path, []byte(half), 0o600); err != nil {
		t.Fatal(err)
	}
	rec := Open(dir, Config{})
	rec.Record(refused())
	var damaged []int
	if r := only(t, dir, func(_ string, line int) { damaged = append(damaged, line) }); r.Call != "c1" {
		t.Errorf("got %+v", r)
	}
	if fmt.Sprint(damaged) != "[1]" {
		t.Errorf("damaged lines %v", damaged)
	}
	// Another process leaves half a line after one of ours.
	if err := os.WriteFile(path, []byte(half+"\n"+half), 0o600); err != nil {
		t.Fatal(err)
	}
	rec.Record(refused())
	if r := only(t, dir, nil); r.Call != "c1" {
		t.Errorf("got %+v", r)
	}
}

// A file that was removed, for example by pruning, is created again.
func TestRemovedFileIsReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "traces")
	rec := Open(dir, Config{})
	for _, gone := range []string{filepath.Join(dir, "2026-07-01.jsonl"), dir} {
		rec.Record(refused())
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
		rec.Record(refused())
		if r := only(t, dir, nil); r.Call != "c1" {
			t.Errorf("%s: got %+v", gone, r)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadSkipsDamagedLines(t *testing.T) {
	dir := t.TempDir()
	good := `{"v":1,"t":"2026-07-01T12:00:00Z","call":"good","code":"ok","exit_code":0,"ms":1,"later":{"field":1}}`
	lines := []string{
		"", "null", "[]", `{"v":2,"t":"2026-07-01T12:00:00Z"}`, `{"v":1}`, `{"v":1,"t":"yesterday"}`,
		good[:40], "\x00\xff", strings.Repeat("[", 100_000), `{"v":1,"t":"2026-07-01T12:00:00Z","session":"` +
			strings.Repeat("x", maxLine) + `"}`, good,
	}
	write(t, filepath.Join(dir, "2026-07-01.jsonl"), strings.Join(lines, "\n"))
	write(t, filepath.Join(dir, "notes.jsonl"), good+"\n")
	write(t, filepath.Join(dir, "2026-13-01.jsonl"), good+"\n")
	damaged := 0
	if r := only(t, dir, func(string, int) { damaged++ }); r.Call != "good" {
		t.Errorf("got %+v", r)
	}
	if want := len(lines) - 2; damaged != want {
		t.Errorf("%d damaged lines, want %d", damaged, want)
	}
}

func TestFilter(t *testing.T) {
	dir := t.TempDir()
	rec := Open(dir, Config{})
	rec.Record(host.Event{Time: noon, Op: "call", CallID: "1", Tool: "text.hash", Session: "a"})
	rec.Record(host.Event{Time: noon.Add(time.Hour), Op: "describe", CallID: "2", Tool: "text.hash", Session: "b"})
	rec.Record(host.Event{Time: noon.AddDate(0, 0, 1), Op: "search", CallID: "3", Session: "a"})
	rec.Record(host.Event{Time: noon.AddDate(0, 0, 2), Op: "call", CallID: "4", Tool: "json.diff"})
	tests := []struct {
		name   string
		filter record.Filter
		want   string
	}{
		{"all", record.Filter{}, "1234"},
		{"calls", record.Filter{Op: "call"}, "14"},
		{"searches", record.Filter{Op: "search"}, "3"},
		{"a tool", record.Filter{Tool: "Text.Hash"}, "12"},
		{"a session", record.Filter{Session: "a"}, "13"},
		{"since", record.Filter{Since: noon.Add(time.Minute)}, "234"},
		{"until", record.Filter{Until: noon.AddDate(0, 0, 1)}, "12"},
		{"until later that day", record.Filter{Until: noon.AddDate(0, 0, 1).Add(time.Minute)}, "123"},
		{"between", record.Filter{Since: noon.Add(time.Hour), Until: noon.AddDate(0, 0, 2)}, "23"},
		{"nothing", record.Filter{Tool: "no.such"}, ""},
	}
	for _, tt := range tests {
		got := ""
		for r, err := range Records(dir, nil).Read(tt.filter) {
			if err != nil {
				t.Fatal(err)
			}
			got += r.Call
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	for r := range Records(dir, nil).Read(record.Filter{}) {
		if r.Call != "1" {
			t.Error("the iteration continued after the first")
		}
		break
	}
	for range Records(filepath.Join(dir, "none"), nil).Read(record.Filter{}) {
		t.Error("a folder that does not exist yields something")
	}
}

// Follow reads what other recorders write, across days, and continues at a cursor.
func TestFollow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "traces")
	add := func(days int) {
		Open(dir, Config{}).Record(host.Event{Time: noon.AddDate(0, 0, days), Op: "call", CallID: fmt.Sprint(days),
			Tool: "text.hash"})
	}
	add(0)
	stop := errors.New("enough")
	got := ""
	var from record.Cursor
	for _, until := range []string{"2", "4"} {
		calls := record.Filter{Op: "call"}
		err := Records(dir, nil).Follow(t.Context(), calls, from, func(r Record, next record.Cursor) error {
			got, from = got+r.Call, next
			if r.Call == until {
				return stop
			}
			add(len(got))
			return nil
		})
		if err != stop {
			t.Fatal(err)
		}
		add(3)
	}
	if got != "01234" {
		t.Errorf("got %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Records(dir, nil).Follow(ctx, record.Filter{}, record.Cursor{}, nil); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

func TestPrune(t *testing.T) {
	const kept = "2026-01-01.txt other.jsonl" // not traces
	for _, tt := range []struct {
		name     string
		keepDays int
		maxBytes int64
		want     string
	}{
		{"by age", 2, 1000, "2026-06-30 2026-07-01 2026-07-02"},
		{"today alone", 1, 1000, "2026-07-01 2026-07-02"},
		{"by size", 1000, 250, "2026-06-30 2026-07-01 2026-07-02"},
		{"by both", 4, 150, "2026-07-01 2026-07-02"},
		{"never today or later", 1000, 1, "2026-07-01 2026-07-02"},
		{"nothing", 1000, 1000, "2026-06-01 2026-06-29 2026-06-30 2026-07-01 2026-07-02"},
	} {
		dir := t.TempDir()
		for _, name := range []string{"2026-06-01", "2026-06-29", "2026-06-30", "2026-07-02"} {
			write(t, filepath.Join(dir, name+suffix), strings.Repeat("x", 100))
		}
		for _, name := range strings.Fields(kept) {
			write(t, filepath.Join(dir, name), "x")
		}
		warn := func(err error) { t.Errorf("%s: %v", tt.name, err) }
		Open(dir, Config{KeepDays: tt.keepDays, MaxBytes: tt.maxBytes, Warn: warn}).Record(host.Event{Time: noon})
		if got := strings.Join(daysIn(t, dir), " "); got != tt.want {
			t.Errorf("%s: remaining %s, want %s", tt.name, got, tt.want)
		}
		for _, name := range strings.Fields(kept) {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
	}
}

// Only the first record of a day prunes.
func TestPrunesWithEachDay(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "2026-05-01.jsonl")
	write(t, old, "")
	rec := Open(dir, Config{Warn: func(err error) { t.Error(err) }})
	rec.Record(refused())
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Error("a file of two months ago remains")
	}
	write(t, old, "")
	rec.Record(refused())
	Open(dir, Config{}).Record(refused())
	if _, err := os.Stat(old); err != nil {
		t.Error("a call that did not begin a file pruned")
	}
	next := refused()
	next.Time = noon.AddDate(0, 0, 30)
	rec.Record(next)
	if got := strings.Join(daysIn(t, dir), " "); got != "2026-07-31" {
		t.Errorf("remaining %s", got)
	}
}

// Recorders that begin the same days at the same time, as processes do, lose no line and report no error.
func TestConcurrentPruning(t *testing.T) {
	dir := t.TempDir()
	const writers, days = 8, 20
	var all sync.WaitGroup
	for range writers {
		rec := Open(dir, Config{KeepDays: days + 1, MaxBytes: 1 << 20, Warn: func(err error) { t.Error(err) }})
		all.Go(func() {
			for day := range days {
				write(t, filepath.Join(dir, "2020-01-01.jsonl"), "old")
				rec.Record(host.Event{Time: noon.AddDate(0, 0, day), Op: "call", Tool: "text.hash"})
			}
		})
	}
	all.Wait()
	records := 0
	for _, err := range Records(dir, nil).Read(record.Filter{Since: noon.AddDate(0, 0, -1)}) {
		if err != nil {
			t.Fatal(err)
		}
		records++
	}
	if records != writers*days {
		t.Errorf("%d records, want %d", records, writers*days)
	}
}

func FuzzRead(f *testing.F) {
	line, err := encode(recordOf(refused(), true))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add([]byte("{}\n\n" + string(line) + "half"))
	f.Add([]byte(`{"v":1,"t":"2026-07-01T12:00:00.345Z","params":null,"tiers":[9]}`))
	path := filepath.Join(f.TempDir(), "2026-07-01.jsonl")
	f.Fuzz(func(t *testing.T, data []byte) {
		write(t, path, string(data))
		damaged := 0
		for r, err := range Records(filepath.Dir(path), func(string, int) { damaged++ }).Read(record.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			line, err := encode(r)
			if err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			if again, _, err := decode(record.Line{Text: line}); err != nil {
				t.Fatalf("%s: read as %+v, %v", line, again, err)
			}
		}
		if lines := strings.Count(string(data), "\n") + 1; damaged > lines {
			t.Fatalf("%d damaged of %d lines", damaged, lines)
		}
	})
}

func only(t *testing.T, dir string, damaged func(string, int)) Record {
	t.Helper()
	var all []Record
	for r, err := range Records(dir, damaged).Read(record.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if len(all) != 1 {
		t.Fatalf("%d records, want 1", len(all))
	}
	return all[0]
}

// daysIn returns the days that have a file.
func daysIn(t *testing.T, dir string) (days []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		for _, file := range listDays([]string{e.Name()}) {
			days = append(days, file.ID)
		}
	}
	return days
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestUsed(t *testing.T) {
	dir := t.TempDir()
	r := Open(dir, Config{})
	write := func(n int, e host.Event) {
		for range n {
			r.Record(e)
		}
	}
	event := host.Event{Time: noon, Op: "call", Caller: "mcp:a", Tool: "text.hash"}
	write(3, event)
	other := event
	other.Tool = "text.count"
	write(4, other)
	other.Tool, other.Err = "text.find", &host.Error{Code: host.InvalidArgs}
	write(5, other)
	other = event
	other.Caller, other.Tool = "mcp:b", "json.query"
	write(5, other)
	other = event
	other.Tool = "text.encode"
	write(2, other)
	other.Time = noon.AddDate(0, 0, -1)
	write(2, other)
	if got := Used(dir, "mcp:a", 3, noon.Add(-time.Hour)); !slices.Equal(got, []string{"text.count", "text.hash"}) {
		t.Errorf("used are %q", got)
	}
	if got := Used(filepath.Join(dir, "none"), "mcp:a", 1, noon); len(got) > 0 {
		t.Errorf("without traces, used are %q", got)
	}
}

func TestCosts(t *testing.T) {
	dir := t.TempDir()
	r := Open(dir, Config{})
	for i, ms := range []int{40, 10, 30} {
		r.Record(host.Event{Time: noon, Op: "call", Tool: "text.hash", Duration: time.Duration(ms) * time.Millisecond,
			OutBytes: 45 * (i + 1)})
	}
	r.Record(host.Event{Time: noon, Op: "call", Tool: "text.count", Err: &host.Error{Code: host.Timeout}})
	r.Record(host.Event{Time: noon, Op: "call", Tool: "text.find"})
	got := Costs(dir, []string{"text.hash", "text.count"}, noon)
	want := map[string]host.Cost{"text.hash": {Calls: 3, MS: 30, Tokens: 20}}
	if !maps.Equal(got, want) {
		t.Errorf("costs are %v, want %v", got, want)
	}
}
