package service

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/internal/foreign"
)

// authorize starts an authorization server at a port, with a signing key of its own. Its tokens live for some seconds.
func authorize(t *testing.T, port string, life int) (stop func()) {
	t.Helper()
	const root = "../../../.."
	_, node := foreign.NodeForTest(t, root)
	cmd := exec.Command(node, "authorize.mjs", fmt.Sprint(life), port)
	cmd.Dir = filepath.Join(root, "testdata", "programs")
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

// TestRealIssuer accepts tokens of a third-party authorization server, for this resource alone, before and after it
// changes its key.
func TestRealIssuer(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	stop := authorize(t, port, 1)
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
	accepts("for another resource", tokenFrom(t, f.url, "https://other.example/mcp"), false)
	stop()
	accepts("while the server is gone", short, true)
	stop = authorize(t, port, 600)
	time.Sleep(10 * time.Second) // the least time between two requests for keys
	accepts("by the new key", tokenFrom(t, f.url, ""), true)
	accepts("by the key of before", short, false)
}
