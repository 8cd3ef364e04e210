package wasm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/internal/wasmtest"
)

// TestStderrLimit checks that the log reports how much of stderr it does not contain.
func TestStderrLimit(t *testing.T) {
	p := attack{wasmtest.Attack{Source: "wasi: "}}.provider(t, testEngine(t))
	line := strings.Repeat("x", 99)
	for _, tt := range []struct {
		script string
		want   []string // the last lines
	}{
		{"fd_write 2 <'one\ntwo'> @; fd_write 2 <' and more\n\n\nthree'> @", []string{"one", "two and more", "three"}},
		{"fd_write 2 <'" + strings.Repeat("y", 5000) + "\nend'> @", []string{strings.Repeat("y", world.StderrExcerpt) +
			"… (5000 bytes in all)", "end"}},
		{"fd_write 2 <'" + strings.Repeat("y", 3000) + "'*2> @", []string{strings.Repeat("y", world.StderrExcerpt) +
			"… (6000 bytes in all)"}},
		// One MiB is forwarded with the rest of the line that crosses it; further lines are counted.
		{"20000x fd_write 2 <'" + line + "\n'> @", []string{line, fmt.Sprintf("… (%d more bytes on stderr are not shown)",
			20_000*100-(world.DefaultLogBytes/100+1)*100)}},
		{"20x fd_write 2 <'" + strings.Repeat("\n", 100_000) + "'> @",
			[]string{fmt.Sprintf("… (%d more bytes on stderr are not shown)", 2_000_000-world.DefaultLogBytes-1)}},
	} {
		r := requestFor(t, p, "run", string(guest.Marshal(map[string]string{"script": tt.script})))
		var lines []string
		on(r, job.EventLog, func(e job.Event) { lines = append(lines, strings.TrimPrefix(e.Message, "hostile: ")) })
		if _, err := invokeRequest(t, p, r); err != nil {
			t.Fatal(err)
		}
		got := lines[max(0, len(lines)-len(tt.want)):]
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
			t.Errorf("%.60s: got %.300q, want %.300q", tt.script, got, tt.want)
		}
	}
}
