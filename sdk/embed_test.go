package sdk

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestGoIsComplete fails if a source file of the SDK is not embedded. The files are listed, because a
// pattern would include the tests.
func TestGoIsComplete(t *testing.T) {
	files, err := filepath.Glob("go/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		name = filepath.ToSlash(name)
		_, err := Go.ReadFile(name)
		if test := strings.HasSuffix(name, "_test.go"); test == (err == nil) {
			t.Errorf("%s: embedded is %v, want %v", name, err == nil, !test)
		}
	}
}

func TestABINamesItsVersionFirst(t *testing.T) {
	if !strings.HasPrefix(ABI, "# parley/1:") {
		t.Errorf("abi.md begins with %.40q", ABI)
	}
}
