package policy

import (
	"fmt"
	"testing"
)

// TestQuotas checks that each limit of a caller is that of the most specific entry which has it, and under which name
// its use is counted.
func TestQuotas(t *testing.T) {
	p := load(t, `
[callers.cli]
concurrent = 2
[callers."mcp:*"]
rate = "10/s"
daily_calls = 1000
[callers."mcp:big*"]
rate = "100/m"
[callers."mcp-http:*"]
daily_calls = 50
[callers."mcp-http:alice"]
rate = "5/h"
daily_bytes = 1_000_000
`, "[callers.cli]\ndaily_calls = 7\nconcurrent = 9\n")
	for _, c := range []struct {
		caller string
		bound  bool
		want   string // "" is no quota
	}{
		{"cli", false, "cli 0/0s 2 7 0 map[concurrent:policy.toml:3 daily_calls:grants.toml:2]"},
		{"mcp:small", false, "mcp:small 10/1s 0 1000 0 map[daily_calls:policy.toml:6 rate:policy.toml:5]"},
		{"mcp:BIGGER", false, "mcp:BIGGER 100/1m0s 0 1000 0 map[daily_calls:policy.toml:6 rate:policy.toml:8]"},
		{"mcp-http:alice", true,
			"mcp-http:alice 5/1h0m0s 0 50 1000000 " +
				"map[daily_bytes:policy.toml:13 daily_calls:policy.toml:10 rate:policy.toml:12]"},
		{"mcp-http:bob", true, "mcp-http:bob 10/1s 0 50 0 map[daily_calls:policy.toml:10 rate:policy.toml:5]"},
		// whoever gives a name without a token for it counts with all others
		{"mcp-http:alice", false, "mcp-http:* 10/1s 0 50 0 map[daily_calls:policy.toml:10 rate:policy.toml:5]"},
		{"plugin:text", false, ""},
	} {
		ask := call(c.caller, "text.hash", "read", false)
		ask.Principal.Bound = c.bound
		got := ""
		if q := decide(t, p, ask).Quota; q != nil {
			got = fmt.Sprintf("%s %d/%v %d %d %d %v", q.Account, q.Rate, q.Per, q.Concurrent, q.DailyCalls, q.DailyBytes,
				q.In)
		}
		if got != c.want {
			t.Errorf("%s: %s", c.caller, got)
		}
	}
	if d := decide(t, Default(), call("cli", "text.hash", "read", false)); d.Quota != nil {
		t.Errorf("without files: %+v", d.Quota)
	}
}
