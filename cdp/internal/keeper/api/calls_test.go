package api

import (
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// The status that callers other than the command line get names the browser, and neither the machine nor others.
func TestPublicStatus(t *testing.T) {
	all := Status{
		Browser: "default", Mode: "launched", Product: "Chrome/1", Executable: "/opt/secret", FoundBy: "secret",
		Why: "secret", Endpoint: "ws://secret", Profile: "/home/secret", KeeperPID: 1, ChromePID: 2, UptimeMS: 3, Calls: 4,
		Clients: 5, Events: RingInfo{Kept: 6}, Log: "/run/secret", Notes: []string{"secret"},
	}
	got := all.Public()
	if raw := string(scan.Marshal(got)); strings.Contains(raw, "secret") || got.KeeperPID+got.ChromePID+got.Clients != 0 ||
		got.UptimeMS+got.Calls != 0 || got.Events != (RingInfo{}) || got.Product != all.Product {
		t.Errorf("the public status is %s", raw)
	}
}
