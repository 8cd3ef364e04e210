package login_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/egress"
	"github.com/parley-tools/parley/host/login"
	"github.com/parley-tools/parley/host/policy/secret"
	"github.com/parley-tools/parley/internal/foreign"
)

// startProvider starts a third-party authorization server, whose access tokens live for some seconds, and returns its
// issuer.
func startProvider(t *testing.T, seconds int) (issuer string) {
	t.Helper()
	modules, node := foreign.NodeForTest(t, "../..")
	cmd := exec.Command(node, "authorize.mjs", fmt.Sprint(seconds))
	cmd.Dir = filepath.Dir(modules)
	out, err := cmd.StdoutPipe()
	if err == nil {
		cmd.Stderr = &strings.Builder{}
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "http://") {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return lines.Text()
		}
	}
	t.Fatalf("the server did not start: %v\n%s", lines.Err(), cmd.Stderr)
	return ""
}

var formAction = regexp.MustCompile(`action="([^"]+)"`)

// logIn follows the pages of the server as a person does who logs in and consents.
func logIn(t *testing.T) func(page string) error {
	return func(page string) error {
		jar, err := cookiejar.New(nil)
		if err != nil {
			return err
		}
		browser := &http.Client{Jar: jar, Timeout: time.Minute}
		go func() {
			response, err := browser.Get(page)
			for range 5 {
				if err != nil {
					t.Error(err)
					return
				}
				body, _ := io.ReadAll(response.Body)
				_ = response.Body.Close()
				action := formAction.FindSubmatch(body)
				if action == nil {
					if !strings.Contains(string(body), "Close this page") {
						t.Errorf("the last page is %d %s", response.StatusCode, body)
					}
					return
				}
				to, failed := response.Request.URL.Parse(string(action[1]))
				if failed != nil {
					t.Error(failed)
					return
				}
				form := url.Values{"login": {"me"}, "password": {"any"}, "prompt": {"login"}}
				if !strings.Contains(string(body), `name="login"`) {
					form = url.Values{"prompt": {"consent"}}
				}
				response, err = browser.PostForm(to.String(), form)
			}
			t.Error("the pages do not end")
		}()
		return nil
	}
}

// TestRealServer logs in at a third-party authorization server, refreshes, and logs out.
func TestRealServer(t *testing.T) {
	issuer := startProvider(t, 3600)
	client := newClient(t)
	r := login.Request{Secret: "KEY", Again: []string{"shop"}, Issuer: issuer, Scopes: []string{"openid", "read"},
		Resource: "https://api.example.com", Open: logIn(t)}
	l, err := client.Login(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Until(l.Expires); l.RefreshToken == "" || d < 50*time.Minute || d > time.Hour {
		t.Errorf("refresh token %v, for %v", l.RefreshToken != "", d)
	}
	first, err := client.Token(context.Background(), "KEY")
	if err != nil || first != l.AccessToken {
		t.Errorf("%v", err)
	}
	for range 3 { // each with the refresh token that the one before got
		expire(t, client)
		again, err := client.Token(context.Background(), "KEY")
		if err != nil || again == first {
			t.Fatalf("not refreshed: %v", err)
		}
		first = again
	}
	l, err = client.Store.Login("KEY")
	if err != nil {
		t.Fatal(err)
	}
	if failed, err := client.Logout(context.Background(), "KEY"); failed != nil || err != nil {
		t.Errorf("%v, %v", failed, err)
	}
	// The server has revoked them: what is put back cannot be refreshed.
	if err := client.Store.SetLogin("KEY", l); err != nil {
		t.Fatal(err)
	}
	expire(t, client)
	if _, err := client.Token(context.Background(), "KEY"); code(err) != host.Denied {
		t.Error(err)
	}
}

// TestRealServerExpires checks that a token that the server lets live for 2 s only is refreshed when it is asked for.
func TestRealServerExpires(t *testing.T) {
	client := newClient(t)
	r := login.Request{Secret: "KEY", Again: []string{"shop"}, Issuer: startProvider(t, 2), Scopes: []string{"read"},
		Resource: "https://api.example.com", Open: logIn(t)}
	l, err := client.Login(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if token, err := client.Token(context.Background(), "KEY"); err != nil || token == l.AccessToken {
		t.Errorf("refreshed: %v, %v", token != l.AccessToken, err)
	}
}

// TestRealServerIsWrong checks that an issuer that is not quite the server's is refused, and one that moved is, too.
func TestRealServerIsWrong(t *testing.T) {
	issuer := startProvider(t, 3600)
	for of, says := range map[string]string{
		strings.Replace(issuer, "127.0.0.1", "localhost", 1): "does not match",
		issuer + "/moved": "redirected there",
	} {
		client := newClient(t)
		r := login.Request{Secret: "KEY", Issuer: of, Open: func(string) error { t.Error("opened a page"); return nil }}
		_, err := client.Login(context.Background(), r)
		if code(err) != host.Unavailable || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", of, err)
		}
	}
}

// refresherVariable makes this test binary a process that asks for a token, of the store that it names.
const refresherVariable = "PARLEY_TEST_STORE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(refresherVariable); dir != "" {
		client := &login.Client{Store: secret.Store{Dir: dir}, Egress: egress.New(egress.Config{})}
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // so that all begin at once
		token, err := client.Token(context.Background(), "KEY")
		if err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		fmt.Println(token)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestRealServerManyProcesses lets processes refresh at once, several times. The server ends the login of a refresh
// token that comes twice.
func TestRealServerManyProcesses(t *testing.T) {
	issuer := startProvider(t, 3600)
	client := newClient(t)
	r := login.Request{Secret: "KEY", Again: []string{"shop"}, Issuer: issuer, Scopes: []string{"openid", "read"},
		Resource: "https://api.example.com", Open: logIn(t)}
	if _, err := client.Login(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 3, 3} {
		expire(t, client)
		outs, cmds := make([]strings.Builder, n), make([]*exec.Cmd, n)
		begin, release, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		for i := range cmds {
			cmds[i] = exec.Command(self)
			cmds[i].Env = append(os.Environ(), refresherVariable+"="+client.Store.Dir)
			cmds[i].Stdin, cmds[i].Stdout, cmds[i].Stderr = begin, &outs[i], &outs[i]
			if err := cmds[i].Start(); err != nil {
				t.Fatal(err)
			}
		}
		_ = begin.Close()
		_ = release.Close() // all read its end
		for i, cmd := range cmds {
			if err := cmd.Wait(); err != nil || outs[i].String() != outs[0].String() {
				t.Errorf("of %d, process %d: %v, %s", n, i, err, outs[i].String())
			}
		}
	}
}
