//go:build !unix

package wasm

import (
	"io/fs"
	"os"
	"testing"
)

// makePipe creates a plain file, because there are no named pipes here.
func makePipe(t testing.TB, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func makeSocket(t testing.TB, path string) { makePipe(t, path) }

func linksTo(fs.FileInfo) uint64 { return 1 }
