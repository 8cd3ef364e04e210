//go:build !unix

package wasm

import (
	"os"
	"testing"
)

// makePipe makes a plain file where there are no named pipes.
func makePipe(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
