package history

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record/audit"
	"github.com/parley-tools/parley/host/record/trace"
)

// TestSubjects checks that both lists say what a call acted on, and the audit's what an operator changed, once each.
func TestSubjects(t *testing.T) {
	const subject = `button "Save" of https://a.example/`
	called := audit.Record{Op: "call", Tool: "page.click", Outcome: &audit.Outcome{Code: "ok"}, Subject: subject}
	if row, more := auditRow(called), auditMore(called); row[2] != "page.click" ||
		!slices.Equal(more, []string{"on " + subject}) {
		t.Errorf("%q %q", row, more)
	}
	called.Usage = host.Usage{CPUMS: 2500, PeakBytes: 5 << 20}
	if more := auditMore(called); !slices.Contains(more, "took 2.5 s of CPU time, 5 MiB of memory") {
		t.Errorf("%q", more)
	}
	changed := audit.Record{Op: "grant", Subject: "echo"}
	if row, more := auditRow(changed), auditMore(changed); row[2] != "grant echo" || len(more) != 0 {
		t.Errorf("%q %q", row, more)
	}
	if line := traceLine(trace.Record{Tool: "page.click", Subject: subject, Code: "ok"}); !strings.Contains(line,
		"page.click on "+subject+"  ok") {
		t.Error(line)
	}
}
