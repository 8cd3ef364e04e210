package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// TestStateIsBounded checks that a state of up to 16 MiB is saved, and no larger one.
func TestStateIsBounded(t *testing.T) {
	whole := len(scan.Marshal(State{Local: map[string]json.RawMessage{"https://a.test": json.RawMessage(`""`)}}))
	for over := range 2 {
		text := `"` + strings.Repeat("x", MaxState-whole+over) + `"`
		err := State{Local: map[string]json.RawMessage{"https://a.test": json.RawMessage(text)}}.CheckSize()
		if (err != nil) != (over > 0) || err != nil && err.Code != CodeLimitExceeded {
			t.Errorf("%d bytes over the limit: %v", over, err)
		}
	}
}

// TestCookieParam checks that a cookie is set with the reach that it had.
func TestCookieParam(t *testing.T) {
	for want, c := range map[string]Cookie{
		`{"httpOnly":true,"name":"n","path":"/p","secure":false,"url":"http://a.test/p","value":"v"}`: {
			Name: "n", Value: "v", Domain: "a.test", Path: "/p", Expires: -1, HTTPOnly: true},
		`{"domain":".a.test","expires":9,"httpOnly":false,"name":"n","path":"/","sameSite":"Lax","secure":true,` +
			`"url":"https://a.test/","value":""}`: {
			Name: "n", Domain: ".a.test", Path: "/", Expires: 9, Secure: true, SameSite: "Lax"},
	} {
		if got := string(scan.Marshal(c.Param())); got != want {
			t.Errorf("%+v is set by %s, want %s", c, got, want)
		}
	}
}
