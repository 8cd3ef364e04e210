package service

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/internal/foreign"
)

// program returns a command that runs a program of testdata/programs.
func program(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	const root = "../../../.."
	_, node := foreign.NodeForTest(t, root)
	cmd := exec.CommandContext(t.Context(), node, append([]string{name}, args...)...)
	cmd.Dir = filepath.Join(root, "testdata", "programs")
	return cmd
}

// authorize starts an authorization server at a port, with a signing key of its own and a clock that is behind by some
// seconds. Its tokens live for some seconds.
func authorize(t *testing.T, port string, life, behind int) (stop func()) {
	t.Helper()
	cmd := program(t, "authorize.mjs", fmt.Sprint(life), port, fmt.Sprint(behind))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasSuffix(line, port+"\n") {
		t.Fatalf("the authorization server says %q, %v", line, err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// object sends a request and returns the object that it answers.
func object(t *testing.T, answer *http.Response, err error) map[string]any {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	var value map[string]any
	if err := json.Unmarshal(text, &value); err != nil || answer.StatusCode >= 300 {
		t.Fatalf("%s: %d %s", answer.Request.URL, answer.StatusCode, text)
	}
	return value
}

// tokenFrom finds the authorization server of a service as a client does, registers, and gets a token for a resource;
// "" is that of the service.
func tokenFrom(t *testing.T, service, resource string) string {
	t.Helper()
	answer, err := http.Get(service + "/.well-known/oauth-protected-resource/mcp")
	about := object(t, answer, err)
	if resource == "" {
		resource = about["resource"].(string)
	}
	answer, err = http.Get(about["authorization_servers"].([]any)[0].(string) + "/.well-known/openid-configuration")
	server := object(t, answer, err)
	answer, err = http.Post(server["registration_endpoint"].(string), "application/json", strings.NewReader(
		`{"grant_types":["client_credentials"],"response_types":[],"redirect_uris":[]}`))
	client := object(t, answer, err)
	answer, err = http.PostForm(server["token_endpoint"].(string), url.Values{
		"grant_type": {"client_credentials"}, "resource": {resource}, "scope": {"read"},
		"client_id": {client["client_id"].(string)}, "client_secret": {client["client_secret"].(string)},
	})
	return object(t, answer, err)["access_token"].(string)
}

// freePort returns a port of loopback at which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	_, port, _ := net.SplitHostPort(free.Addr().String())
	return port
}

// TestRealIssuer accepts tokens of a third-party authorization server, for this resource alone, before and after it
// changes its key.
func TestRealIssuer(t *testing.T) {
	port := freePort(t)
	stop := authorize(t, port, 1, 0)
	defer func() { stop() }()
	f := start(t, `
[oauth]
issuer = "http://127.0.0.1:`+port+`"
audience = "https://tools.example/mcp"
[[oauth.callers]]
claim = "groups"
value = "platform"
caller = "platform"
`)
	accepts := func(name, token string, want bool) {
		t.Helper()
		s, err := connect(f.url+"/mcp", client{token: token})
		if err == nil {
			_ = s.Close()
		}
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	short := tokenFrom(t, f.url, "")
	accepts("a token", short, true)
	fetched := time.Now()
	accepts("for another resource", tokenFrom(t, f.url, "https://other.example/mcp"), false)
	stop()
	accepts("while the server is gone", short, true)
	stop = authorize(t, port, 600, 0)
	time.Sleep(time.Until(fetched.Add(10 * time.Second))) // the least time between two requests for keys
	accepts("by the new key", tokenFrom(t, f.url, ""), true)
	accepts("by the key of before", short, false)
}

// TestLogin has a person log in by the OAuth client of a third-party SDK: it finds the authorization server from a 401,
// registers, gets a token by a code with PKCE, and another one when that has expired. The clock of the server is behind
// by the skew that counts as none, so that its tokens expire when they say.
func TestLogin(t *testing.T) {
	const life = 3
	port, own := freePort(t), freePort(t)
	defer authorize(t, port, life, 60)()
	f := start(t, `listen = ["127.0.0.1:`+own+`"]
[oauth]
issuer = "http://127.0.0.1:`+port+`"
audience = "http://127.0.0.1:`+own+`/mcp"
[[oauth.callers]]
claim = "sub"
value = "ada"
caller = "ada"
`)
	cmd := program(t, "login.mjs", f.url+"/mcp", fmt.Sprint(life))
	cmd.Stderr = f.log
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	got := map[string]any{}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	const hash = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
	next := "resource_metadata=\"" + f.url + "/.well-known/oauth-protected-resource/mcp\""
	for name, want := range map[string]string{"first": hash, "again": hash, "challenge": "S256", "tokens": "2",
		"expired": next, "foreignToken": next, "foreign": "401"} {
		if text := fmt.Sprint(got[name]); !strings.Contains(text, want) ||
			want == next && !strings.HasPrefix(text, "401 Bearer ") {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
	records, _ := os.ReadFile(f.parley.AuditLog().Path())
	if n := strings.Count(string(records), `"caller":"mcp-http:ada"`); n != 2 {
		t.Errorf("%d records of ada: %s", n, records)
	}
}
