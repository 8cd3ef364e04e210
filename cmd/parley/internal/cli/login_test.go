package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptAuthorize starts an authorization server, $AS, with an API at /api that takes its access tokens and repeats
// them. A request to /end makes it refuse what it has issued.
func scriptAuthorize(ts *testscript.TestScript, _ bool, _ []string) {
	var issued, valid atomic.Int64
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	ts.Defer(server.Close)
	ts.Setenv("AS", server.URL)
	respond := func(path string, text func(r *http.Request) string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, text(r))
		})
	}
	respond("/.well-known/oauth-authorization-server", func(*http.Request) string {
		return fmt.Sprintf(`{"issuer":%[1]q,"authorization_endpoint":"%[2]s/authorize","token_endpoint":"%[2]s/token",`+
			`"registration_endpoint":"%[2]s/register","revocation_endpoint":"%[2]s/revoke",`+
			`"code_challenge_methods_supported":["S256"]}`, server.URL, server.URL)
	})
	respond("/register", func(*http.Request) string { return `{"client_id":"c","token_endpoint_auth_method":"none"}` })
	respond("/revoke", func(*http.Request) string { return `` })
	respond("/end", func(*http.Request) string { valid.Store(-1); return `` })
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		back := url.Values{"code": {"k"}, "state": {q.Get("state")}}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		old := r.FormValue("refresh_token")
		if old != "" && old != fmt.Sprintf("canary-refresh-%d", valid.Load()) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":"invalid_grant"}`)
			return
		}
		n := issued.Add(1)
		valid.Store(n)
		fmt.Fprintf(w, `{"access_token":"canary-access-%d","token_type":"Bearer","expires_in":3600,`+
			`"refresh_token":"canary-refresh-%d"}`, n, n)
	})
	mux.HandleFunc("/api", func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Authorization")
		if got != fmt.Sprintf("Bearer canary-access-%d", valid.Load()) {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprintf(w, "token %d: %s", valid.Load(), got)
	})
}

// browse stands for the browser of a person who is logged in: it follows the redirects of a page.
func browse() {
	response, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}
