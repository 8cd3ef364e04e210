//lint:file-ignore SA1019 clients of revisions before 2026-07-28 have roots

package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/mcp"
)

// TestRoots names files as a client on stdio: it may name those in its roots, or in the working folder if it knows no
// roots, unless the policy lists folders. A name may be relative to them. Roots are asked for again when they change.
// Each refusal has its true reason and says how to allow the file.
func TestRoots(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"one/a.txt", "two/b.txt", "listed/c.txt", "work/d.txt", "two/sub/e.txt",
		"one/sub/x.txt"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(dir, "work"))
	var files []string // of the policy
	f, err := newFake(`{"manifest": 1, "name": "web", "version": "1.0.0", "kind": "parley/1", "docs": {"brief": "Send files"},
	  "tools": [{"name": "send", "docs": {"brief": "Send a file"}, "effect": "write", "reach": "machine", "files": ["/file"],
	   "params": {"type": "object", "properties": {"file": {"type": "string"}}}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	f.handlers = map[string]handler{"send": func(_ context.Context, r *host.Request) (*job.Result, error) {
		return &job.Result{Data: r.Params}, nil
	}}
	s, err := newServer(mcp.Minimal, hostcall.Config{Policy: policy(func(host.Ask) (host.Decision, error) {
		return host.Decision{Verdict: host.Allow, Files: files}, nil
	})}, nil, f)
	if err != nil {
		t.Fatal(err)
	}
	connect := func(revision string, roots *sdk.RootCapabilities) (*sdk.Client, *sdk.ClientSession) {
		toServer, fromClient := io.Pipe()
		toClient, fromServer := io.Pipe()
		go func() { _ = s.Stdio(context.Background(), toServer, fromServer) }()
		t.Cleanup(func() { _ = fromClient.Close() })
		c := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"},
			&sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{RootsV2: roots}})
		session, err := c.Connect(t.Context(), &sdk.IOTransport{Reader: toClient, Writer: fromClient},
			&sdk.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		return c, session
	}
	_, plain := connect("2025-11-25", nil)
	rooted, session := connect("2025-11-25", &sdk.RootCapabilities{ListChanged: true})
	_, stateless := connect("2026-07-28", &sdk.RootCapabilities{}) // cannot be asked
	send := func(by *sdk.ClientSession, name string) string {
		t.Helper()
		arguments, _ := json.Marshal(map[string]any{"name": "web.send", "arguments": map[string]string{"file": name}})
		r, err := by.CallTool(t.Context(), &sdk.CallToolParams{Name: "call_tool", Arguments: json.RawMessage(arguments)})
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(r.Content[0].(*sdk.TextContent).Text, dir, "")
	}
	check := func(by *sdk.ClientSession, name, want string) {
		t.Helper()
		if got := send(by, name); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	const denied, relative, counts = ", nor in a root of the client", "; a relative path needs a root of the client",
		"which allows only reading, and only if the policy has no files for the client"
	in := func(path string) string { return filepath.Join(dir, path) }
	check(plain, "d.txt", `{"file":"/work/d.txt"}`)
	check(plain, in("work/d.txt"), `{"file":"/work/d.txt"}`)
	check(stateless, "d.txt", `{"file":"/work/d.txt"}`)
	check(plain, in("one/a.txt"), `, nor in the server's working folder; nothing was run; the operator can add \"/one\" to files in `+
		`[callers.\"mcp:c\"] of policy.toml; that list replaces the current one, so also list \"/work\"`)
	check(plain, "../one/a.txt", `/one/a.txt is not a file in a folder that the policy lists under files for mcp:c, nor in the server's `+
		`working folder; nothing was run; the operator can add \"/one\" to files in [callers.\"mcp:c\"] of policy.toml`)
	for _, name := range []string{"../work/d.txt", "none/../d.txt", "./d.txt", ".//d.txt",
		in("one/../work/d.txt"), in("work//d.txt")} {
		check(plain, name, `{"file":"/work/d.txt"}`)
	}
	check(plain, "../../../../../../../../../../etc/hostname", `the operator can add \"/etc\" to files`)
	check(plain, "none.txt", "does not exist")
	check(session, "d.txt", relative) // it lists no root yet
	check(session, in("work/d.txt"), `nor in a root of the client, which lists none, or only /; nothing was run; the operator can add \"/work\" to files in `+
		`[callers.\"mcp:c\"] of policy.toml`)
	rooted.AddRoots(&sdk.Root{URI: "file:///"}, &sdk.Root{URI: "https://a.test/"})
	check(session, "d.txt", relative)
	check(session, in("work/d.txt"), denied+", which lists none, or only /")
	rooted.RemoveRoots("file:///")
	rooted.AddRoots(&sdk.Root{URI: "file://" + in("one")}, &sdk.Root{URI: "file://localhost" + in("two")})
	check(session, "a.txt", `{"file":"/one/a.txt"}`)
	check(session, "b.txt", `{"file":"/two/b.txt"}`)
	check(session, in("two/b.txt"), `{"file":"/two/b.txt"}`)
	check(session, "sub/e.txt", `{"file":"/two/sub/e.txt"}`)
	check(session, "../two/b.txt", `{"file":"/two/b.txt"}`)
	check(session, "sub/../../one/a.txt", `{"file":"/one/a.txt"}`)
	for _, name := range []string{"../listed/c.txt", "../listed/none.txt"} { // whether it exists is not told
		check(session, name, "/listed"+strings.TrimPrefix(name, "../listed")+
			" is not a file in a folder that the policy lists")
	}
	check(session, in("work/d.txt"), denied)
	rooted.RemoveRoots("file://localhost" + in("two"))
	check(session, in("two/b.txt"), denied)
	files = []string{in("listed"), in("one/sub")} // what the policy lists is all
	check(session, in("listed/c.txt"), `{"file":"/listed/c.txt"}`)
	check(session, "sub/x.txt", `{"file":"/one/sub/x.txt"}`)
	check(session, "a.txt", "it is in a root of the client, "+counts+`; nothing was run; the operator can add \"/one\" to files in `+
		`[callers.\"mcp:c\"] of policy.toml; that list replaces the current one, so also list \"/listed\", `)
	check(plain, "d.txt", "it is in the server's working folder, "+counts)
	check(session, in("work/d.txt"), "under files for mcp:c; nothing was run; the operator can add")
	files = []string{}
	check(plain, "d.txt", counts)
	files = nil
	t.Setenv("HOME", in("work/home"))
	check(plain, in("work/d.txt"), ", nor in the server's working folder, which is / or holds the home folder")
}
