package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
)

// quietApp returns an app that prints nothing and knows no variables.
func quietApp() *command.App {
	return command.NewApp(&command.Streams{Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }}, nil)
}

// TestRefusedOptions checks command lines that are refused before anything runs.
func TestRefusedOptions(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"call", "requires NAME"},
		{"call text.hash --nonsense", "unknown option --nonsense"},
		{"call text.hash --timeout soon", `option --timeout: "soon" is not a valid duration`},
		{"call text.hash --jq", "option --jq requires a value"},
		{"search cookie --limit 0", "--limit: 0 is not between 1 and 1000"},
		{"search --eval set --plugin cdp", "--plugin cannot be combined with --eval"},
		{"search --eval set cookie", `unexpected word "cookie"`},
		{"batch", "requires FILE"},
		{"code", "requires FILE"},
		{"result", "requires ID"},
		{"result c1 --out -", "--out requires the name of a file"},
		{"batch one two", `takes FILE|- only; unexpected "two"`},
		{"docs audit text --coverage", "it takes no --mode and no names"},
		{"docs export --format mcp --out=", "--out requires the name of a folder"},
		{"plugin install", "requires FILE|DIR"},
		{"plugin show one two", `takes NAME only; unexpected "two"`},
		{"plugin build one two", `takes [DIR] only; unexpected "two"`},
		{"plugin sign hello.wasm", "requires one FILE and --key"},
		{"plugin sign hello.wasm --new-key k", "makes a key and signs nothing"},
		{"plugin trust my.pub --list", "requires one KEY or FILE.pub"},
		{"plugin trust --remove me --name you", "requires one KEY or FILE.pub"},
		{"policy grant echo", "requires RIGHT..."},
		{"policy revoke", "requires PLUGIN"},
		{"audit show --limit 0", "--limit must be at least 1"},
		{"audit verify --head=", "--head is empty"},
		{"learn text json", `unexpected "json"`},
		{"mcp --no-token", "--no-token requires --http"},
		{"mcp --tls-cert c", "--tls-cert requires --http"},
		{"mcp --http 1 --tls-cert c", "expected both --tls-cert and --tls-key"},
		{"mcp --http 1 --tls-key k", "expected both --tls-cert and --tls-key"},
		{"mcp --http 1 --tls-cert c --tls-key k --plain-http", "or --plain-http"},
		{"mcp --http 1 --no-token --token-file t", "cannot be combined"},
		{"mcp config", "requires --client"},
		{"doctor extra", "takes no words"},
		{"version extra", "takes no words"},
		{"completion", "requires SHELL"},
		{"completion csh", `"csh" is not one of bash`},
	} {
		app := quietApp()
		root := newRoot(app, nil)
		root.SetArgs(strings.Fields(c.line))
		err := root.ExecuteContext(t.Context())
		if err == nil || host.AsError(err).Code != host.InvalidArgs || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want an error with %q", c.line, err, c.want)
		}
	}
}
