package access_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parley-tools/parley/host/mcp/access"
)

// TestTokenFile reads a file of tokens while it changes.
func TestTokenFile(t *testing.T) {
	var notices []string
	f := &access.File{
		Path: filepath.Join(t.TempDir(), "tokens"), Notice: func(text string) { notices = append(notices, text) },
	}
	for _, c := range []struct {
		text string
		want []access.Token // nil: an error
	}{
		{"# mine\nclaude=0123456789abcdef\n\nfedcba9876543210==\n",
			[]access.Token{{Name: "claude", Token: "0123456789abcdef"}, {Token: "fedcba9876543210=="}}},
		{"claude=0123456789abcdef0\n", []access.Token{{Name: "claude", Token: "0123456789abcdef0"}}},
		{"claude=0123456789abcdef  session=research\n0123456789abcdefgh session=research\n0123456789abcdefghi session=b",
			[]access.Token{{Name: "claude", Token: "0123456789abcdef", Session: "research"},
				{Token: "0123456789abcdefgh", Session: "research"}, {Token: "0123456789abcdefghi", Session: "b"}}},
		{"claude=0123456789abcdef session=a/b\n", nil},
		{"claude=0123456789abcdef session=\n", nil},
		{"claude=0123456789abcdef session=a b\n", nil},
		{"claude=0123456789abcdef sesion=a\n", nil},
		{"short session=a\n", nil},
		{"a b=0123456789abcdef\n", nil},
		{"ann@example.org=0123456789abcdef\n", nil},
		{"a=0123456789abcdef\nb=0123456789abcdef\n", nil},
		{"a=0123456789abcdef\na=0123456789abcdef session=s\n", nil},
		{"a=0123456789abcdef\na=0123456789abcdef\n",
			[]access.Token{{Name: "a", Token: "0123456789abcdef"}, {Name: "a", Token: "0123456789abcdef"}}},
		{"short\n", nil},
		{"\n", nil},
		{"0123456789abcdefg\n", []access.Token{{Token: "0123456789abcdefg"}}},
	} {
		if err := os.WriteFile(f.Path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := f.Tokens()
		if (err == nil) != (c.want != nil) || len(got) != len(c.want) {
			t.Errorf("%q: %v, %v", c.text, got, err)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%q: %+v", c.text, got[i])
			}
		}
	}
	if want := []string{
		"clients whose token is bound to your session research work in it: they share its pages, cookies and logins",
		"clients whose token is bound to your session b work in it: they share its pages, cookies and logins",
	}; !slices.Equal(notices, want) {
		t.Errorf("the notices %q, want %q", notices, want)
	}
}

// TestWhileAccepted serves requests whose token is no longer accepted: streams end, and a call that began before them
// does not.
func TestWhileAccepted(t *testing.T) {
	refuse := func(context.Context, string) (access.Token, error) {
		return access.Token{}, errors.New("the token has expired")
	}
	serve := func(method, of string, handler http.HandlerFunc) {
		r := httptest.NewRequestWithContext(t.Context(), method, "/mcp", nil)
		r.Header.Set("Authorization", "Bearer some-token-of-16")
		r.Header.Set("Mcp-Method", of)
		access.WhileAccepted(handler, refuse).ServeHTTP(httptest.NewRecorder(), r)
	}
	serve(http.MethodPost, "tools/call", func(_ http.ResponseWriter, r *http.Request) {
		for _, stream := range [][2]string{{http.MethodGet, ""}, {http.MethodPost, "subscriptions/listen"}} {
			serve(stream[0], stream[1], func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		}
		if r.Context().Err() != nil {
			t.Error("a call was ended")
		}
	})
}
