package cdp

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// TestOpenRetries opens a browser that ends during the opening.
func TestOpenRetries(t *testing.T) {
	ended := api.Errorf(api.CodeChromeConnection, "the browser was closed")
	for _, c := range []struct {
		name     string
		fails    int
		err      error
		attempts int
		opened   int
		want     string
	}{
		{"closed three times", 3, ended, maxOpenAttempts, 4, ""},
		{"closed each time", 99, ended, maxOpenAttempts, maxOpenAttempts, "another caller closes it: the browser was closed"},
		{"attached to", 99, ended, 1, 1, "the browser was closed"},
		{"another failure", 99, errors.New("no room"), maxOpenAttempts, 1, "no room"},
	} {
		opened := 0
		err := retryOpen(t.Context(), c.attempts, "", func() error {
			if opened++; opened <= c.fails {
				return c.err
			}
			return nil
		})
		if opened != c.opened || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: opened %d times, %v", c.name, opened, err)
		}
	}
	if ended.Message != "the browser was closed" {
		t.Errorf("the shared error was changed: %s", ended.Message)
	}
}
