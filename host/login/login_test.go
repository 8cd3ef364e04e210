package login_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/egress"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/login"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/host/policy/secret"
	"github.com/parley-tools/parley/host/step"
)

// server is an authorization server that keeps to the rules, but for what a test changes.
type server struct {
	*httptest.Server
	meta   map[string]any    // what it publishes
	answer map[string]string // what it sends the browser back with; "" leaves a parameter out
	tokens map[string]any    // what the token endpoint responds with besides the tokens; nil removes a member
	serve  map[string]http.HandlerFunc

	mu       sync.Mutex
	asked    []url.Values // of the token endpoint
	revoked  []string
	page     url.Values // of the authorization endpoint
	issued   int
	refresh  string // the valid refresh token
	reused   bool   // a refresh token came twice, so the login is revoked
	headers  []string
	register map[string]any
}

const idOfClient, tokenPart = "client-1", "canary-token"

func newServer(t *testing.T) *server {
	s := &server{answer: map[string]string{}, tokens: map[string]any{}, serve: map[string]http.HandlerFunc{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.handle))
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	s.meta = map[string]any{
		"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token",
		"registration_endpoint": s.URL + "/register", "revocation_endpoint": s.URL + "/revoke",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	return s
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, code string) {
	write(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": "because \x1b[31mred"})
}

func (s *server) handle(w http.ResponseWriter, r *http.Request) {
	if serve := s.serve[r.URL.Path]; serve != nil {
		serve(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		write(w, http.StatusOK, s.meta)
	case "/register":
		_ = json.NewDecoder(r.Body).Decode(&s.register)
		answer := maps.Clone(s.register)
		answer["client_id"] = idOfClient
		write(w, http.StatusCreated, answer)
	case "/authorize":
		s.page = r.URL.Query()
		back := url.Values{}
		for name, value := range map[string]string{"code": "code-1", "state": s.page.Get("state"), "iss": s.URL} {
			if changed, ok := s.answer[name]; ok {
				value = changed
			}
			if value != "" {
				back.Set(name, value)
			}
		}
		if s.answer["error"] != "" {
			back.Set("error", s.answer["error"])
			back.Del("code")
		}
		http.Redirect(w, r, s.page.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
	case "/token":
		s.token(w, r)
	case "/revoke":
		_ = r.ParseForm()
		s.revoked = append(s.revoked, r.Form.Get("token"))
	default:
		http.NotFound(w, r)
	}
}

func (s *server) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.asked, s.headers = append(s.asked, r.Form), append(s.headers, r.Header.Get("Authorization"))
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		challenge := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if base64.RawURLEncoding.EncodeToString(challenge[:]) != s.page.Get("code_challenge") ||
			r.Form.Get("redirect_uri") != s.page.Get("redirect_uri") {
			refuse(w, "invalid_grant")
			return
		}
	case "refresh_token":
		if r.Form.Get("refresh_token") != s.refresh || s.reused {
			s.reused = true // as RFC 9700, section 4.14.2, has it
			refuse(w, "invalid_grant")
			return
		}
	}
	s.issued++
	s.refresh = fmt.Sprintf("%s-refresh-%d", tokenPart, s.issued)
	answer := map[string]any{"access_token": fmt.Sprintf("%s-%d", tokenPart, s.issued), "token_type": "Bearer",
		"expires_in": 3600, "refresh_token": s.refresh}
	for name, value := range s.tokens {
		if answer[name] = value; value == nil {
			delete(answer, name)
		}
	}
	write(w, http.StatusOK, answer)
}

func newClient(t *testing.T) *login.Client {
	return &login.Client{Store: secret.Store{Dir: filepath.Join(t.TempDir(), "data", "secrets")},
		Egress: egress.New(egress.Config{}), Wait: 20 * time.Second, Limit: 20 * time.Second}
}

// request is a request whose browser follows redirects, as one in which the person is logged in at the server.
func (s *server) request() login.Request {
	return login.Request{Secret: "KEY", Again: []string{"shop"}, Issuer: s.URL, Scopes: []string{"read"},
		Resource: "https://api.example.com", Open: browse}
}

func browse(page string) error {
	go func() {
		if response, err := http.Get(page); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}()
	return nil
}

func code(err error) host.Code {
	if err == nil {
		return host.OK
	}
	return host.AsError(err).Code
}

// never responds until the client goes away.
func never(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func endless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"access_token":"`)
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, strings.Repeat("a", 64<<10)); err != nil {
			return
		}
	}
}

func page(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html>"+tokenPart)
	}
}

// TestServersThatLie logs in at servers that break a rule each: nothing is stored, and the error says what is wrong.
func TestServersThatLie(t *testing.T) {
	elsewhere := newServer(t)
	redirect := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL+r.URL.Path, status) }
	}
	const metadata = "/.well-known/oauth-authorization-server"
	meta := func(name string, value any) func(*server) {
		return func(s *server) {
			if s.meta[name] = value; value == nil {
				delete(s.meta, name)
			}
		}
	}
	serve := func(path string, h http.HandlerFunc) func(*server) { return func(s *server) { s.serve[path] = h } }
	answer := func(name, value string) func(*server) { return func(s *server) { s.answer[name] = value } }
	tokens := func(name string, value any) func(*server) { return func(s *server) { s.tokens[name] = value } }
	for _, c := range []struct {
		name string
		lie  func(*server)
		code host.Code
		says string
	}{
		{"another issuer", meta("issuer", "https://evil.example"), host.Unavailable, "evil.example"},
		{"issuer with two slashes", func(s *server) { s.meta["issuer"] = s.URL + "//" }, host.Unavailable, "does not match"},
		{"issuer with a path", func(s *server) { s.meta["issuer"] = s.URL + "/tenant" }, host.Unavailable, "/tenant"},
		{"no issuer", meta("issuer", nil), host.Unavailable, "does not match"},
		{"no metadata", serve(metadata, http.NotFound), host.Unavailable, "publishes no metadata"},
		{"metadata elsewhere", serve(metadata, redirect(302)), host.Unavailable, "redirected there"},
		{"metadata as HTML", serve(metadata, page(200)), host.Unavailable, "content type"},
		{"metadata fails", serve(metadata, page(500)), host.Unavailable, "500"},
		{"metadata without end", serve(metadata, endless), host.LimitExceeded, "more than"},
		{"metadata never comes", serve(metadata, never), host.Timeout, "did not respond within"},
		{"no PKCE", meta("code_challenge_methods_supported", nil), host.Unavailable, "PKCE"},
		{"PKCE without S256", meta("code_challenge_methods_supported", []string{"plain"}), host.Unavailable, "S256"},
		{"no token endpoint", meta("token_endpoint", nil), host.Unavailable, "not a plain URL"},
		{"token endpoint by http", meta("token_endpoint", "http://as.example/token"), host.Unavailable, "http"},
		{"revocation by http", meta("revocation_endpoint", "http://as.example/revoke"), host.Unavailable, "not https"},
		{"script as a page", meta("authorization_endpoint", "javascript:alert(1)"), host.Unavailable, "javascript"},
		{"endpoint with a password", meta("token_endpoint", "https://a:b@as.example/"), host.Unavailable, "not a plain URL"},
		{"registration refused", serve("/register", func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, "invalid_client_metadata")
		}), host.Unavailable, "invalid_client_metadata because"},
		{"registration forbidden", serve("/register", page(403)), host.Unavailable, "did not register a client"},
		{"registration as HTML", serve("/register", page(201)), host.Unavailable, "did not register a client"},
		{"registration elsewhere", serve("/register", redirect(307)), host.Unavailable, "redirected there"},
		{"no registration", meta("registration_endpoint", nil), host.Unavailable, "no dynamic registration"},
		{"access denied", answer("error", "access_denied"), host.Denied, "access_denied"},
		{"another state", answer("state", "other"), host.Timeout, "nobody logged in"},
		{"no state", answer("state", ""), host.Timeout, "nobody logged in"},
		{"another iss", answer("iss", "https://evil.example"), host.Unavailable, "evil.example"},
		{"no iss, which was promised", answer("iss", ""), host.Unavailable, `the issuer ""`},
		{"no code", answer("code", ""), host.Unavailable, "no code"},
		{"nobody logs in", serve("/authorize", page(200)), host.Timeout, "nobody logged in"},
		{"token elsewhere", serve("/token", redirect(307)), host.Unavailable, "redirected there"},
		{"token elsewhere by GET", serve("/token", redirect(302)), host.Unavailable, "redirected there"},
		{"token never comes", serve("/token", never), host.Timeout, "did not respond within"},
		{"token as HTML", serve("/token", page(200)), host.Unavailable, "the JSON of a token"},
		{"token without end", serve("/token", endless), host.LimitExceeded, "more than"},
		{"token of a number", tokens("access_token", 7), host.Unavailable, "the JSON of a token"},
		{"no token", tokens("access_token", nil), host.Unavailable, "without access_token"},
		{"token with a line break", tokens("access_token", "a\r\nX-Evil: 1"), host.Unavailable, "cannot be sent"},
		{"token too long", tokens("access_token", strings.Repeat("a", 17<<10)), host.Unavailable, "cannot be sent"},
		{"token that is signed for", tokens("token_type", "DPoP"), host.Unavailable, "DPoP"},
		{"refused with status 200", tokens("error", "invalid_request"), host.Unavailable, "invalid_request"},
		{"token endpoint fails", serve("/token", page(503)), host.Unavailable, "503"},
		{"code refused", serve("/token", func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, "invalid_grant")
		}), host.Unavailable, "invalid_grant"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, client := newServer(t), newClient(t)
			if c.lie(s); c.code == host.Timeout {
				client.Wait, client.Limit = 300*time.Millisecond, 300*time.Millisecond
			}
			_, err := client.Login(context.Background(), s.request())
			if code(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v; want %s with %q", code(err), err, c.code, c.says)
			}
			if err != nil && (strings.Contains(err.Error(), tokenPart) || strings.Contains(err.Error(), "\x1b")) {
				t.Errorf("the error repeats what was sent: %q", err)
			}
			if names, err := client.Store.Names(); err != nil || len(names) > 0 {
				t.Errorf("stored: %q, %v", names, err)
			}
		})
	}
	t.Cleanup(func() {
		if len(elsewhere.asked) > 0 || elsewhere.register != nil {
			t.Errorf("another host was sent %v, %v", elsewhere.asked, elsewhere.register)
		}
	})
}

// TestIssuers checks which addresses an issuer may have. None of these is asked anything.
func TestIssuers(t *testing.T) {
	for issuer, says := range map[string]string{
		"http://as.example": "not https", "ftp://127.0.0.1/": "not https", "": "not a plain URL",
		"as.example":               "not a plain URL",
		"https://me:pw@as.example": "not a plain URL", "https://as.example/#a": "not a plain URL",
		"https://10.0.0.1": "non-public", "https://169.254.169.254/latest": "metadata",
	} {
		client := newClient(t)
		_, err := client.Login(context.Background(), login.Request{Secret: "KEY", Issuer: issuer, Open: browse})
		if code(err) != host.Unavailable || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", issuer, err)
		}
	}
}

// TestPublicIssuerOnThisMachine checks that an issuer on the network cannot point to services of this machine.
func TestPublicIssuerOnThisMachine(t *testing.T) {
	s, client := newServer(t), newClient(t)
	s.meta["issuer"] = "https://as.example"
	client.Egress = rewriting{client.Egress, "https://as.example", s.URL}
	r := s.request()
	r.Issuer = "https://as.example"
	_, err := client.Login(context.Background(), r)
	if code(err) != host.Unavailable || !strings.Contains(err.Error(), "on this machine, where the issuer is not") {
		t.Error(err)
	}
}

// rewriting sends the requests for one origin to another.
type rewriting struct {
	outbound.Egress
	from, to string
}

func (r rewriting) Send(ctx context.Context, q *outbound.Request, _ outbound.Rights) (*outbound.Response, error) {
	q.URL = strings.Replace(q.URL, r.from, r.to, 1)
	return r.Egress.Send(ctx, q, outbound.Rights{HTTP: []grant.HTTP{{URL: r.to, Methods: []string{q.Method}}}})
}

// TestOddButHonest logs in at servers that are lax where that does no harm.
func TestOddButHonest(t *testing.T) {
	hour := time.Now().Add(time.Hour)
	for _, c := range []struct {
		name    string
		change  func(*server)
		expires time.Time // within a minute
		lasts   bool
	}{
		{"plain", func(*server) {}, hour, true},
		{"no token type", func(s *server) { s.tokens["token_type"] = nil }, hour, true},
		{"iss that was not promised", func(s *server) {
			delete(s.meta, "authorization_response_iss_parameter_supported")
		}, hour, true},
		{"expires as text", func(s *server) { s.tokens["expires_in"] = "7200" }, hour.Add(time.Hour), true},
		{"expires absent", func(s *server) { s.tokens["expires_in"] = nil }, hour, true},
		{"expires at once", func(s *server) { s.tokens["expires_in"] = 0 }, time.Now(), true},
		{"expires before", func(s *server) { s.tokens["expires_in"] = -5 }, time.Now(), true},
		{"never expires", func(s *server) {
			s.tokens["expires_in"], s.tokens["refresh_token"] = nil, nil
		}, time.Time{}, true},
		{"expires after all of us", func(s *server) { s.tokens["expires_in"] = 1e300 },
			time.Now().Add(1e9 * time.Second), true},
		{"OpenID Connect", func(s *server) {
			s.serve["/.well-known/oauth-authorization-server"] = http.NotFound
			s.serve["/.well-known/openid-configuration"] = func(w http.ResponseWriter, _ *http.Request) { write(w, 200, s.meta) }
		}, hour, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, client := newServer(t), newClient(t)
			c.change(s)
			l, err := client.Login(context.Background(), s.request())
			if err != nil {
				t.Fatal(err)
			}
			if d := l.Expires.Sub(c.expires); d > time.Minute || d < -time.Minute {
				t.Errorf("expires %v, want %v", l.Expires, c.expires)
			}
			want := l.AccessToken
			if !l.Valid(0) {
				want = tokenPart + "-2" // refreshed
			}
			token, err := client.Token(context.Background(), "KEY")
			if err != nil || token != want || !strings.HasPrefix(token, tokenPart) {
				t.Errorf("%q, %v; want %q", token, err, want)
			}
			if text, lasts := l.State(); lasts != c.lasts {
				t.Error(text)
			}
		})
	}
}

// TestForeignAnswers checks that answers to other logins neither end a login nor count for it.
func TestForeignAnswers(t *testing.T) {
	s, client := newServer(t), newClient(t)
	r := s.request()
	r.Open = func(page string) error {
		go func() {
			u, _ := url.Parse(page)
			for _, foreign := range []string{"?code=evil&state=other", "?code=evil", "?error=access_denied", ""} {
				response, err := http.Get(u.Query().Get("redirect_uri") + foreign)
				if err != nil || response.StatusCode != http.StatusBadRequest {
					t.Errorf("%q: %v, %v", foreign, response, err)
				}
			}
			_ = browse(page)
		}()
		return nil
	}
	if l, err := client.Login(context.Background(), r); err != nil || l.AccessToken == "" {
		t.Errorf("%v, %v", l, err)
	}
}

// TestIssuersWithSlash logs in where the manifest or the metadata of the server has a slash at the end of the issuer.
// From then on only the spelling of the metadata counts.
func TestIssuersWithSlash(t *testing.T) {
	for _, c := range []struct{ asked, named, answered string }{
		{"", "/", "/"}, {"/", "", ""}, {"/", "/", "/"}, {"", "/", ""},
	} {
		s, client := newServer(t), newClient(t)
		s.meta["issuer"], s.answer["iss"] = s.URL+c.named, s.URL+c.answered
		r := s.request()
		r.Issuer = s.URL + c.asked
		l, err := client.Login(context.Background(), r)
		if c.named != c.answered {
			if code(err) != host.Unavailable || !strings.Contains(err.Error(), "the answer names the issuer") {
				t.Errorf("%+v: %v", c, err)
			}
		} else if err != nil || l.Issuer != s.URL+c.named {
			t.Errorf("%+v: %+v, %v", c, l, err)
		}
	}
}

// TestResourceRefused checks that a server which refuses the name of an API leads to a login without it, wherever it
// refuses.
func TestResourceRefused(t *testing.T) {
	refused := func(w http.ResponseWriter, _ *http.Request) { refuse(w, "invalid_target") }
	for name, fail := range map[string]func(t *testing.T) error{
		"answer": func(t *testing.T) error {
			s, client := newServer(t), newClient(t)
			s.answer["error"] = "invalid_target"
			_, err := client.Login(context.Background(), s.request())
			return err
		},
		"token": func(t *testing.T) error {
			s, client := newServer(t), newClient(t)
			s.serve["/token"] = refused
			_, err := client.Login(context.Background(), s.request())
			return err
		},
		"refresh": func(t *testing.T) error {
			s, client := loggedIn(t)
			s.serve["/token"] = refused
			_, err := client.Token(context.Background(), "KEY")
			return err
		},
	} {
		err := fail(t)
		if err == nil || fmt.Sprint(host.AsError(err).Steps) != "[login shop --resource none]" {
			t.Errorf("%s: %v, steps %v", name, err, host.AsError(err).Steps)
		}
	}
}

// TestIssuerWithPath logs in at an issuer that is one of several on its host.
func TestIssuerWithPath(t *testing.T) {
	for _, path := range []string{"/.well-known/oauth-authorization-server/tenant",
		"/tenant/.well-known/openid-configuration"} {
		s, client := newServer(t), newClient(t)
		s.meta["issuer"], s.answer["iss"] = s.URL+"/tenant", s.URL+"/tenant"
		s.serve[path] = func(w http.ResponseWriter, _ *http.Request) { write(w, 200, s.meta) }
		r := s.request()
		r.Issuer += "/tenant"
		if _, err := client.Login(context.Background(), r); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestWhatIsSent checks the requests of a login.
func TestWhatIsSent(t *testing.T) {
	s, client := newServer(t), newClient(t)
	s.meta["scopes_supported"] = []string{"read", "offline_access"}
	s.meta["authorization_endpoint"] = s.URL + "/authorize?tenant=7"
	l, err := client.Login(context.Background(), s.request())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"response_type": "code", "client_id": idOfClient, "tenant": "7",
		"scope": "read offline_access", "prompt": "consent", "resource": "https://api.example.com",
		"code_challenge_method": "S256"} {
		if got := s.page.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	form := s.asked[0]
	if n := len(form.Get("code_verifier")); n < 43 || n > 128 {
		t.Errorf("the verifier has %d characters", n)
	}
	if form.Get("resource") != "https://api.example.com" || form.Get("client_id") != idOfClient {
		t.Error(form)
	}
	if to := s.page.Get("redirect_uri"); !strings.HasPrefix(to, "http://127.0.0.1:") ||
		!slices.Equal(s.register["redirect_uris"].([]any), []any{to}) {
		t.Errorf("redirect %q, registered %v", to, s.register["redirect_uris"])
	}
	// The address is gone.
	if _, err := http.Get(s.page.Get("redirect_uri")); err == nil {
		t.Error("the listener is still there")
	}
	if l.ClientID != idOfClient || l.TokenURL != s.URL+"/token" || l.RevocationURL != s.URL+"/revoke" {
		t.Errorf("%+v", l)
	}
}

// TestGivenClient logs in as a client that is registered, with its secret in the form that the server takes.
func TestGivenClient(t *testing.T) {
	for _, method := range []string{"client_secret_basic", "client_secret_post"} {
		s, client := newServer(t), newClient(t)
		s.meta["token_endpoint_auth_methods_supported"] = []string{method}
		delete(s.meta, "registration_endpoint")
		r := s.request()
		r.ClientID, r.ClientSecret = "given:id", "given secret"
		if _, err := client.Login(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("given%3Aid:given+secret"))
		inForm := s.asked[0].Get("client_secret") == "given secret"
		if isBasic := s.headers[0] == basic; isBasic == inForm || isBasic != (method == "client_secret_basic") {
			t.Errorf("%s: %q, %v", method, s.headers[0], s.asked[0])
		}
	}
}

// loggedIn returns a server and a client with a login whose access token has expired.
func loggedIn(t *testing.T) (*server, *login.Client) {
	t.Helper()
	s, client := newServer(t), newClient(t)
	if _, err := client.Login(context.Background(), s.request()); err != nil {
		t.Fatal(err)
	}
	expire(t, client)
	return s, client
}

func expire(t *testing.T, client *login.Client) {
	t.Helper()
	l, err := client.Store.Login("KEY")
	if err == nil {
		l.Expires = time.Now().Add(-time.Second)
		err = client.Store.SetLogin("KEY", l)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRefresh checks that a token is refreshed once it has expired, for the same client and API.
func TestRefresh(t *testing.T) {
	s, client := loggedIn(t)
	for range 2 {
		token, err := client.Token(context.Background(), "KEY")
		if err != nil || token != tokenPart+"-2" {
			t.Errorf("%q, %v", token, err)
		}
	}
	form := s.asked[1]
	if len(s.asked) != 2 || form.Get("client_id") != idOfClient || form.Get("resource") != "https://api.example.com" {
		t.Error(s.asked)
	}
	if l, err := client.Store.Login("KEY"); err != nil || l.RefreshToken != s.refresh {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestShortLived checks that a token which lives shorter than it may take on its way is refreshed for each call, by one
// request.
func TestShortLived(t *testing.T) {
	s, client := loggedIn(t)
	s.tokens["expires_in"] = 5
	for i := range 3 {
		token, err := client.Token(context.Background(), "KEY")
		if want := fmt.Sprintf("%s-%d", tokenPart, i+2); err != nil || token != want || len(s.asked) != i+2 {
			t.Errorf("%q, %v, after %d requests; want %q", token, err, len(s.asked), want)
		}
	}
}

// TestRefreshAtOnce checks that of many that need a token one refreshes it: a refresh token that comes twice ends the
// login.
func TestRefreshAtOnce(t *testing.T) {
	s, client := loggedIn(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			own := *client
			if token, err := own.Token(context.Background(), "KEY"); err != nil || token != tokenPart+"-2" {
				t.Errorf("%q, %v", token, err)
			}
		})
	}
	all.Wait()
	if len(s.asked) != 2 || s.reused {
		t.Errorf("%d requests, reused %v", len(s.asked), s.reused)
	}
}

// TestRefreshFails checks what a failed refresh leaves, and that nothing is asked twice.
func TestRefreshFails(t *testing.T) {
	refusal := func(code string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { refuse(w, code) }
	}
	for _, c := range []struct {
		name  string
		token http.HandlerFunc
		code  host.Code
		kept  bool
	}{
		{"ended", refusal("invalid_grant"), host.Denied, false},
		{"client is unknown", refusal("invalid_client"), host.Denied, true},
		{"fails", page(500), host.Unavailable, true},
		{"too many", page(429), host.Unavailable, true},
		{"HTML", page(200), host.Unavailable, true},
		{"never", never, host.Timeout, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, client := loggedIn(t)
			client.Limit = 300 * time.Millisecond
			requests := 0
			s.serve["/token"] = func(w http.ResponseWriter, r *http.Request) {
				requests++
				c.token(w, r)
			}
			for try := range 2 {
				_, err := client.Token(context.Background(), "KEY")
				if code(err) != c.code || strings.Contains(err.Error(), tokenPart) {
					t.Errorf("try %d: %s: %v", try, code(err), err)
				}
				next := step.Operator(step.OpLogin, "shop")
				asksToLogIn := err != nil && slices.ContainsFunc(host.AsError(err).Steps, func(s step.Step) bool {
					return s.String() == next.String()
				})
				if asksToLogIn != (c.code == host.Denied) {
					t.Errorf("steps %v", host.AsError(err).Steps)
				}
			}
			want := 2
			if !c.kept {
				want = 1 // the second knows that it is of no use
			}
			if requests != want {
				t.Errorf("%d requests, want %d", requests, want)
			}
			delete(s.serve, "/token")
			token, err := client.Token(context.Background(), "KEY")
			if c.kept && (err != nil || token != tokenPart+"-2") || !c.kept && err == nil {
				t.Errorf("then %q, %v", token, err)
			}
		})
	}
}

// TestNoRefreshToken checks that an expired token which cannot be refreshed needs a login, and that nothing is asked.
func TestNoRefreshToken(t *testing.T) {
	s, client := newServer(t), newClient(t)
	s.tokens["refresh_token"] = nil
	if _, err := client.Login(context.Background(), s.request()); err != nil {
		t.Fatal(err)
	}
	expire(t, client)
	_, err := client.Token(context.Background(), "KEY")
	if code(err) != host.Denied || len(host.AsError(err).Steps) != 1 || len(s.asked) != 1 {
		t.Error(err, s.asked)
	}
}

// TestRefreshOutlivesItsCall checks that a refresh whose call was interrupted is stored: the old token is of no use.
func TestRefreshOutlivesItsCall(t *testing.T) {
	s, client := loggedIn(t)
	ctx, cancel := context.WithCancel(context.Background())
	s.serve["/token"] = func(w http.ResponseWriter, r *http.Request) {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.token(w, r)
	}
	_, _ = client.Token(ctx, "KEY")
	l, err := client.Store.Login("KEY")
	if err != nil || l.RefreshToken != s.refresh || !l.Valid(0) {
		t.Errorf("%+v, %v; valid is %s", l, err, s.refresh)
	}
}

// TestStoredBeforeUse checks that a token that cannot be stored is not returned as if all were well.
func TestStoredBeforeUse(t *testing.T) {
	s, client := loggedIn(t)
	s.serve["/token"] = func(w http.ResponseWriter, r *http.Request) {
		if err := os.RemoveAll(client.Store.Dir); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(client.Store.Dir, nil, 0o600); err != nil { // in place of the folder
			t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.token(w, r)
	}
	if token, err := client.Token(context.Background(), "KEY"); err == nil || token != "" {
		t.Errorf("%q, %v", token, err)
	}
}

// TestLogout checks that the tokens are revoked where that is possible, and removed in any case.
func TestLogout(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*server, *secret.Login)
		says   string // why they are not revoked
	}{
		"revoked":     {func(*server, *secret.Login) {}, ""},
		"no endpoint": {func(_ *server, l *secret.Login) { l.RevocationURL = "" }, "no revocation endpoint"},
		"fails":       {func(s *server, _ *secret.Login) { s.serve["/revoke"] = page(500) }, "500"},
		"is gone":     {func(s *server, _ *secret.Login) { s.Close() }, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := loggedIn(t)
			l, err := client.Store.Login("KEY")
			if err != nil {
				t.Fatal(err)
			}
			c.change(s, l)
			if err := client.Store.SetLogin("KEY", l); err != nil {
				t.Fatal(err)
			}
			failed, err := client.Logout(context.Background(), "KEY")
			if err != nil || (failed == nil) != (c.says == "") || failed != nil && !strings.Contains(failed.Error(), c.says) {
				t.Errorf("%v, %v", failed, err)
			}
			if failed == nil && !slices.Equal(s.revoked, []string{tokenPart + "-refresh-1", tokenPart + "-1"}) {
				t.Error(s.revoked)
			}
			if names, _ := client.Store.Names(); len(names) > 0 {
				t.Errorf("left: %q", names)
			}
			if _, err := client.Logout(context.Background(), "KEY"); code(err) != host.NotFound {
				t.Error(err)
			}
		})
	}
}

// TestInterrupted checks that a login ends with its context, and that the listener does, too.
func TestInterrupted(t *testing.T) {
	s, client := newServer(t), newClient(t)
	s.serve["/authorize"] = page(200)
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	r := s.request()
	to := ""
	r.Open = func(page string) error {
		u, err := url.Parse(page)
		to = u.Query().Get("redirect_uri")
		cancel(stop)
		return err
	}
	if _, err := client.Login(ctx, r); !errors.Is(err, stop) {
		t.Error(err)
	}
	if _, err := http.Get(to); err == nil {
		t.Error("the listener is still there")
	}
}
