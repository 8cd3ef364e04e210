package cli

import (
	"context"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// quietApp returns an app that prints nothing and knows no variables.
func quietApp() *App {
	return newApp(&Streams{Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }}, nil)
}

// parsed parses a command line with a run function that only stores the options, and returns them. They are nil if
// the command line is refused.
func parsed[O any](
	t *testing.T, app *App, newCommand func(*App, runFunc[O]) *cobra.Command, line ...string,
) (*O, error) {
	t.Helper()
	var kept *O
	cmd := newCommand(app, func(_ context.Context, opts *O) error {
		kept = opts
		return nil
	})
	checkAll(cmd)
	cmd.SetArgs(line)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetFlagErrorFunc(app.flagError)
	err := cmd.ExecuteContext(t.Context())
	return kept, err
}

// TestOptions checks which options command lines set, without running the commands.
func TestOptions(t *testing.T) {
	app := quietApp()
	call := func(o command.CallOptions) callOptions {
		return callOptions{app: app, tier: manifest.Tier2, CallOptions: o}
	}
	search := func(o command.SearchOptions) searchOptions { return searchOptions{app: app, SearchOptions: o} }
	for _, c := range []struct {
		line  string
		parse func(*testing.T, ...string) (any, error)
		want  any
	}{
		{"text.hash hello", parse(app, newCall), call(command.CallOptions{Tool: "text.hash", Words: []string{"hello"}})},
		{
			"text.hash --param text=a,b --param algorithm=md5 --timeout 5s --max-bytes 20 --dry-run", parse(app, newCall),
			call(command.CallOptions{
				Tool: "text.hash", Words: []string{}, Set: []string{"text=a,b", "algorithm=md5"},
				Options: host.Options{Timeout: 5 * time.Second, MaxBytes: 20, DryRun: true},
			}),
		},
		{
			"cdp.Page.printToPDF --params {} --out page.pdf --drain --jq . --browser b --target 2 --on-dialog accept " +
				"--isolate process --send-anyway --all", parse(app, newCall),
			call(command.CallOptions{
				Tool: "cdp.Page.printToPDF", Words: []string{}, Params: "{}", Out: "page.pdf", Drain: true, All: true,
				Options: host.Options{
					JQ: ".", Browser: "b", Target: "2", OnDialog: "accept", Isolate: "process", SendAnyway: true,
				},
			}),
		},
		{
			"take a picture", parse(app, newSearch),
			search(command.SearchOptions{
				SearchQuery: host.SearchQuery{Text: "take a picture", Kind: "tool", Limit: 10}, Detail: "names",
			}),
		},
		{
			"cookie --plugin cdp --group Network --effect read --category query --kind event --limit 3 --detail full --explain",
			parse(app, newSearch),
			search(command.SearchOptions{
				SearchQuery: host.SearchQuery{
					Text: "cookie", Plugin: "cdp", Group: "Network", Effect: "read", Category: "query", Kind: "event", Limit: 3,
					Explain: true,
				},
				Detail: "full",
			}),
		},
		{
			"calls.ndjson", parse(app, newBatch),
			batchOptions{app: app, BatchOptions: command.BatchOptions{Path: "calls.ndjson"}},
		},
		{
			"program.js --param a=1 --timeout 5s --max-bytes 0", parse(app, newCode),
			codeOptions{app: app, CodeOptions: command.CodeOptions{Path: "program.js", CallOptions: command.CallOptions{
				Set: []string{"a=1"}, Options: host.Options{Timeout: 5 * time.Second, Unlimited: true}}}},
		},
		{
			"- --continue-on-error", parse(app, newBatch),
			batchOptions{app: app, BatchOptions: command.BatchOptions{Path: "-", ContinueOnError: true}},
		},
		{"", parse(app, newList), listOptions{app: app, words: []string{}}},
		{"cdp Network", parse(app, newList), listOptions{app: app, words: []string{"cdp", "Network"}}},
		{
			"text --mode minimal", parse(app, newDocsAudit),
			docsAuditOptions{app: app, DocsAuditOptions: command.DocsAuditOptions{Mode: "minimal", Names: []string{"text"}}},
		},
		{
			"--coverage", parse(app, newDocsAudit),
			docsAuditOptions{app: app, DocsAuditOptions: command.DocsAuditOptions{Names: []string{}}, coverage: true},
		},
		{
			"text json --format skill --out skills", parse(app, newDocsExport),
			docsExportOptions{app: app, DocsExportOptions: command.DocsExportOptions{
				Format: "skill", Names: []string{"text", "json"}, Out: "skills",
			}},
		},
		{
			"hello.wasm --grant clock --grant tool:text.* --signature s --downgrade --yes", parse(app, newPluginInstall),
			pluginInstallOptions{app: app, InstallOptions: command.InstallOptions{
				Path: "hello.wasm", Grants: []string{"clock", "tool:text.*"}, Signature: "s", Downgrade: true, Yes: true,
			}},
		},
		{"", parse(app, newPluginList), pluginListOptions{app}},
		{"text", parse(app, newPluginShow), pluginShowOptions{app, "text"}},
		{"text", parse(app, newPluginRemove), pluginRemoveOptions{app, "text"}},
		{"text", parse(app, newPluginCheck), pluginCheckOptions{app, "text"}},
		{"", parse(app, newPluginBuild), pluginBuildOptions{app: app}},
		{
			"hello --out h.wasm.gz --manifest m.json", parse(app, newPluginBuild),
			pluginBuildOptions{app: app, BuildOptions: command.BuildOptions{
				Dir: "hello", Out: "h.wasm.gz", Manifest: "m.json",
			}},
		},
		{
			"hello.wasm --key k --password-file p", parse(app, newPluginSign),
			pluginSignOptions{app: app, SignOptions: command.SignOptions{Path: "hello.wasm", Key: "k", PasswordFile: "p"}},
		},
		{
			"--new-key k --password-file p", parse(app, newPluginSign),
			pluginSignOptions{app: app, newKey: "k", SignOptions: command.SignOptions{PasswordFile: "p"}},
		},
		{
			"hello --key k --signature s", parse(app, newPluginVerify),
			pluginVerifyOptions{app: app, VerifyOptions: command.VerifyOptions{Plugin: "hello", Key: "k", Signature: "s"}},
		},
		{
			"my.pub --name me --yes", parse(app, newPluginTrust),
			pluginTrustOptions{app: app, TrustOptions: command.TrustOptions{Key: "my.pub", Name: "me", Yes: true}},
		},
		{
			"--remove me", parse(app, newPluginTrust),
			pluginTrustOptions{app: app, remove: true, TrustOptions: command.TrustOptions{Key: "me"}},
		},
		{"--list", parse(app, newPluginTrust), pluginTrustOptions{app: app, list: true}},
		{"", parse(app, newPolicyCheck), policyCheckOptions{app}},
		{"text.hash", parse(app, newPolicyExplain), policyExplainOptions{app, "text.hash"}},
		{
			"echo clock env:HOME --yes", parse(app, newPolicyGrant),
			policyGrantOptions{app: app, GrantOptions: command.GrantOptions{
				Plugin: "echo", Rights: []string{"clock", "env:HOME"}, Yes: true,
			}},
		},
		{
			"echo", parse(app, newPolicyRevoke),
			policyRevokeOptions{app: app, GrantOptions: command.GrantOptions{Plugin: "echo", Rights: []string{}}},
		},
		{"", parse(app, newAuditShow), auditShowOptions{app: app, AuditOptions: command.AuditOptions{Limit: 50}}},
		{
			"--tool cdp.* --caller mcp:* --code denied --since 24h --limit 3", parse(app, newAuditShow),
			auditShowOptions{app: app, AuditOptions: command.AuditOptions{
				Tool: "cdp.*", Caller: "mcp:*", Code: "denied", Since: "24h", Limit: 3,
			}},
		},
		{"--head sha256:1", parse(app, newAuditVerify), auditVerifyOptions{app, "sha256:1"}},
		{"", parse(app, newAuditHead), auditHeadOptions{app}},
		{"TOKEN", parse(app, newSecretSet), secretSetOptions{app, "TOKEN"}},
		{"", parse(app, newSecretList), secretListOptions{app}},
		{"TOKEN", parse(app, newSecretRemove), secretRemoveOptions{app, "TOKEN"}},
		{"", parse(app, newConfigList), configListOptions{app}},
		{"", parse(app, newLearn), learnOptions{app: app}},
		{"text", parse(app, newLearn), learnOptions{app: app, plugin: "text"}},
		{"--docs full", parse(app, newMCP), mcpOptions{app: app, MCPOptions: command.MCPOptions{Docs: "full"}}},
		{
			"--http :8931 --token-file t --tls-cert c --tls-key k --allow-host a --allow-host b", parse(app, newMCP),
			mcpOptions{app: app, MCPOptions: command.MCPOptions{
				HTTP: ":8931", TokenFile: "t", TLSCert: "c", TLSKey: "k", Hosts: []string{"a", "b"},
			}},
		},
		{
			"--client codex --docs minimal --write", parse(app, newMCPConfig),
			mcpConfigOptions{app: app, MCPConfigOptions: command.MCPConfigOptions{
				Client: "codex", Docs: "minimal", Write: true,
			}},
		},
		{
			"c1 --jq .a --out a.json", parse(app, newResult),
			resultOptions{app, command.ResultOptions{ID: "c1", JQ: ".a", Out: "a.json"}},
		},
		{"text.hash --max-bytes 0", parse(app, newCall), call(command.CallOptions{
			Tool: "text.hash", Words: []string{}, Options: host.Options{Unlimited: true},
		})},
		{"--clean", parse(app, newDoctor), doctorOptions{app, command.DoctorOptions{Clean: true}}},
		{"text", parse(app, newRunnerStop), runnerStopOptions{app, command.StopRunnersOptions{Plugin: "text"}}},
		{"", parse(app, newVersion), versionOptions{app}},
	} {
		got, err := c.parse(t, strings.Fields(c.line)...)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %v\n got %+v\nwant %+v", c.line, err, got, c.want)
		}
	}
}

// parse returns parsed for a command, with the options as a value.
func parse[O any](app *App, newCommand func(*App, runFunc[O]) *cobra.Command) func(*testing.T, ...string) (any, error) {
	return func(t *testing.T, line ...string) (any, error) {
		opts, err := parsed(t, app, newCommand, line...)
		if opts == nil {
			return nil, err
		}
		return *opts, err
	}
}

// TestRootOptions checks the options of the root, whose flags are those of several modes.
func TestRootOptions(t *testing.T) {
	app := quietApp()
	opts, err := parsed(t, app, newRoot, "cdp", "--listen", "Network.*", "--listen", "Page.*",
		"--until", "Page.loadEventFired", "--max", "10", "--trigger", "Page.reload", "--timeout", "20s", "--jq", ".method")
	if err != nil {
		t.Fatal(err)
	}
	want := &rootOptions{
		app:   app,
		words: []string{"cdp"}, given: []string{"jq", "listen", "max", "timeout", "trigger", "until"}, tier: 2,
		listen: []string{"Network.*", "Page.*"}, until: "Page.loadEventFired", max: 10, trigger: "Page.reload",
		CallOptions: command.CallOptions{Options: host.Options{JQ: ".method", Timeout: 20 * time.Second}},
	}
	if got := *opts; !sameOptions(&got, want) {
		t.Errorf("\n got %+v\nwant %+v", opts, want)
	}
	if opts.isCall() || opts.firstOf("all", "max") != "max" || opts.check() != nil {
		t.Errorf("a stream counts as a call, lost --max, or was refused: %v", opts.check())
	}
}

// sameOptions compares options of the root. The order in which options were given does not matter.
func sameOptions(got, want *rootOptions) bool {
	for _, name := range want.given {
		if !got.has(name) {
			return false
		}
	}
	same := len(got.given) == len(want.given)
	got.given, want.given, got.flags = nil, nil, nil
	return same && reflect.DeepEqual(got, want)
}

// TestRefusedOptions checks command lines that are refused before anything runs.
func TestRefusedOptions(t *testing.T) {
	app := quietApp()
	for _, c := range []struct {
		line  string
		parse func(*testing.T, ...string) (any, error)
		want  string
	}{
		{"", parse(app, newCall), "requires NAME"},
		{"text.hash --nonsense", parse(app, newCall), "unknown option --nonsense"},
		{"text.hash --timeout soon", parse(app, newCall), `option --timeout: "soon" is not a valid duration`},
		{"text.hash --jq", parse(app, newCall), "option --jq requires a value"},
		{"cookie --limit 0", parse(app, newSearch), "--limit: 0 is not between 1 and 1000"},
		{"--eval set --plugin cdp", parse(app, newSearch), "--plugin cannot be combined with --eval"},
		{"--eval set cookie", parse(app, newSearch), `unexpected word "cookie"`},
		{"", parse(app, newBatch), "requires FILE"},
		{"", parse(app, newCode), "requires FILE"},
		{"", parse(app, newResult), "requires ID"},
		{"c1 --out -", parse(app, newResult), "--out requires the name of a file"},
		{"one two", parse(app, newBatch), `takes FILE|- only; unexpected "two"`},
		{"text --coverage", parse(app, newDocsAudit), "it takes no --mode and no names"},
		{"--format mcp --out=", parse(app, newDocsExport), "--out requires the name of a folder"},
		{"", parse(app, newPluginInstall), "requires FILE|DIR"},
		{"one two", parse(app, newPluginShow), `takes NAME only; unexpected "two"`},
		{"one two", parse(app, newPluginBuild), `takes [DIR] only; unexpected "two"`},
		{"hello.wasm", parse(app, newPluginSign), "requires one FILE and --key"},
		{"hello.wasm --new-key k", parse(app, newPluginSign), "makes a key and signs nothing"},
		{"my.pub --list", parse(app, newPluginTrust), "requires one KEY or FILE.pub"},
		{"--remove me --name you", parse(app, newPluginTrust), "requires one KEY or FILE.pub"},
		{"echo", parse(app, newPolicyGrant), "requires RIGHT..."},
		{"", parse(app, newPolicyRevoke), "requires PLUGIN"},
		{"--limit 0", parse(app, newAuditShow), "--limit must be at least 1"},
		{"--head=", parse(app, newAuditVerify), "--head is empty"},
		{"text json", parse(app, newLearn), `unexpected "json"`},
		{"--no-token", parse(app, newMCP), "--no-token requires --http"},
		{"--tls-cert c", parse(app, newMCP), "--tls-cert requires --http"},
		{"--http 1 --tls-cert c", parse(app, newMCP), "expected both --tls-cert and --tls-key"},
		{"--http 1 --tls-key k", parse(app, newMCP), "expected both --tls-cert and --tls-key"},
		{"--http 1 --tls-cert c --tls-key k --plain-http", parse(app, newMCP), "or --plain-http"},
		{"--http 1 --no-token --token-file t", parse(app, newMCP), "cannot be combined"},
		{"", parse(app, newMCPConfig), "requires --client"},
		{"extra", parse(app, newDoctor), "takes no words"},
		{"extra", parse(app, newVersion), "takes no words"},
		{"", parse(app, newCompletion), "requires SHELL"},
		{"csh", parse(app, newCompletion), `"csh" is not one of bash`},
	} {
		got, err := c.parse(t, strings.Fields(c.line)...)
		if err == nil || got != nil || host.AsError(err).Code != host.InvalidArgs || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, %+v; want an error with %q", c.line, err, got, c.want)
		}
	}
}
