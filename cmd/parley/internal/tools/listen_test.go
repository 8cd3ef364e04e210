package tools

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestLastEvent checks which event ends a stream.
func TestLastEvent(t *testing.T) {
	const event = `{"seq":7,"method":"Network.responseReceived",
		"params":{"response":{"status":404,"url":"http://a/"},"big":12345678901234567890}}`
	for _, c := range []struct {
		condition, event string
		fresh, want      bool
		failed           string
	}{
		{condition: ".response.status == 404", event: event, want: true},
		{condition: ".response.status == 500", event: event},
		{condition: ".response.status", event: event, want: true},
		{condition: ".response.none", event: event},
		{condition: "empty", event: event},
		{condition: "false, null, true", event: event, want: true},
		{condition: `.response.url | test("^http://a")`, event: event, want: true},
		{condition: ".response.url.host", event: event, failed: "expected an object"},
		{condition: ".seq == 7", event: event}, // of the parameters, not of the record
		{condition: "true", event: `{"seq":7,"dropped":3}`, want: true},
		{condition: "true", event: strings.Replace(event, `"seq"`, `"replayed":true,"seq"`, 1), want: true},
		{condition: "true", event: strings.Replace(event, `"seq"`, `"replayed":true,"seq"`, 1), fresh: true},
		{condition: "def f: f; f", event: event, failed: "deadline"},
		{condition: "true", event: "no JSON"},
	} {
		l, err := newLastEvent(t.Context(), c.condition, true, c.fresh)
		if err != nil {
			t.Errorf("%s: %v", c.condition, err)
			continue
		}
		began := time.Now()
		if got := l.isLast(json.RawMessage(c.event)); got != c.want {
			t.Errorf("%s of %.40s: %v", c.condition, c.event, got)
		}
		if (l.failed == nil) != (c.failed == "") || l.failed != nil && !strings.Contains(l.failed.Error(), c.failed) {
			t.Errorf("%s: failed with %v, want %q", c.condition, l.failed, c.failed)
		}
		if took := time.Since(began); took > 10*conditionTime {
			t.Errorf("%s took %s", c.condition, took)
		}
	}
	if l, err := newLastEvent(t.Context(), "", false, true); err != nil || !l.isLast(json.RawMessage(event)) {
		t.Errorf("without a condition: %v", err)
	}
	if _, err := newLastEvent(t.Context(), ".a ==", true, false); err == nil || !strings.Contains(err.Error(), "--until") {
		t.Errorf("an invalid expression: %v", err)
	}
}
