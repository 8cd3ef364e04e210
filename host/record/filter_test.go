package record

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func TestFilter(t *testing.T) {
	call := Keys{Time: noon, Op: "call", Tool: "cdp.Page.navigate", Caller: "mcp:a/b", Session: "s", Code: "denied",
		ExitCode: 82}
	grant := Keys{Time: noon, Op: "grant", Subject: "echo", Caller: "cli"}
	begin := Keys{Time: noon, Op: "begin", Tool: "text.hash", Caller: "cli"}
	ended := Keys{Time: noon, Op: "call", Tool: "text.hash", Caller: "cli", Code: "ok"}
	for _, tt := range []struct {
		filter                      Filter
		call, grant, begin, isEnded bool
	}{
		{Filter{}, true, true, true, true},
		{Filter{Since: noon}, true, true, true, true},
		{Filter{Since: noon.Add(1)}, false, false, false, false},
		{Filter{Until: noon}, false, false, false, false},
		{Filter{Until: noon.Add(1)}, true, true, true, true},
		{Filter{Op: "call"}, true, false, false, true},
		{Filter{Op: "grant"}, false, true, false, false},
		{Filter{Session: "s"}, true, false, false, false},
		{Filter{Failed: true}, true, false, false, false},
		{Filter{Code: "DENIED"}, true, false, false, false},
		{Filter{Code: "82"}, true, false, false, false},
		{Filter{Code: "0"}, false, false, false, true},
		{Filter{Caller: "CLI"}, false, true, true, true},
		{Filter{Caller: "mcp:*"}, true, false, false, false},
		{Filter{Caller: "mcp:a/b"}, true, false, false, false},
		{Filter{Tool: "cdp"}, true, false, false, false},
		{Filter{Tool: "cdp.page"}, true, false, false, false},
		{Filter{Tool: "*.hash"}, false, false, true, true},
		{Filter{Tool: "ec*"}, false, true, false, false},
		{Filter{Tool: "text.has"}, false, false, false, false},
		{Filter{Tool: "["}, false, false, false, false},
		{Filter{Tool: "text", Code: "ok"}, false, false, false, true},
	} {
		for i, want := range []bool{tt.call, tt.grant, tt.begin, tt.isEnded} {
			if k := []Keys{call, grant, begin, ended}[i]; tt.filter.Matches(k) != want {
				t.Errorf("%+v selects %+v: %v", tt.filter, k, !want)
			}
		}
	}
}

// A file is read if a record of it may match, and removed as a whole only if all of them do.
func TestFilterCovers(t *testing.T) {
	day := File{Since: noon, Until: noon.Add(time.Hour)}
	for _, tt := range []struct {
		filter   Filter
		file     File
		any, all bool
	}{
		{Filter{}, day, true, true},
		{Filter{Since: day.Since}, day, true, true},
		{Filter{Since: day.Since.Add(1)}, day, true, false},
		{Filter{Since: day.Until.Add(-1)}, day, true, false},
		{Filter{Since: day.Until}, day, false, false},
		{Filter{Until: day.Until}, day, true, true},
		{Filter{Until: day.Until.Add(-1)}, day, true, false},
		{Filter{Until: day.Since.Add(1)}, day, true, false},
		{Filter{Until: day.Since}, day, false, false},
		{Filter{Since: day.Since, Until: day.Until}, day, true, true},
		{Filter{Op: "call"}, day, true, false},
		{Filter{Failed: true}, day, true, false},
		{Filter{Session: "s", Until: day.Until}, day, true, false},
		{Filter{}, File{}, true, true},
		{Filter{Since: noon}, File{}, true, false},
		{Filter{Until: noon}, File{}, true, false},
	} {
		if got := tt.filter.Covers(tt.file); got != tt.any {
			t.Errorf("%+v of %v to %v: covers %v", tt.filter, tt.file.Since, tt.file.Until, got)
		}
		if got := tt.filter.CoversAll(tt.file); got != tt.all {
			t.Errorf("%+v of %v to %v: covers all %v", tt.filter, tt.file.Since, tt.file.Until, got)
		}
	}
}
