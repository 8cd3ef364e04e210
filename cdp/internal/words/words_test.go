package words

import (
	"embed"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

//go:embed testdata/tools
var files embed.FS

// TestReadsItsOwnFileAlone finds tools in a folder in which another tool's file cannot be read.
func TestReadsItsOwnFileAlone(t *testing.T) {
	tools := New(files, "testdata/tools", "good")
	if got := strings.Join(tools.Names(), " "); got != "good also bad" {
		t.Errorf("in the order of lists: %s", got)
	}
	if tool := tools.Tool("good"); tool == nil || tool.Name != "good" || tools.Tool("good") != tool {
		t.Errorf("%+v", tool)
	}
	if tool := tools.Tool("none"); tool != nil {
		t.Errorf("%+v", tool)
	}
	defer func() {
		if recover() == nil {
			t.Error("a file that is not JSON is a tool")
		}
	}()
	tools.Tool("bad")
}

func TestManifest(t *testing.T) {
	m := Manifest([]byte(`{"docs":{"standard":"More."}}`), host.Info{Name: "a", Version: "1.0.0", Brief: "Do it"})
	if m.Name != "a" || m.Version != "1.0.0" || m.Kind != manifest.KindBuiltin || m.Docs.Brief != "Do it" ||
		m.Docs.Standard != "More." || m.Manifest != manifest.Version {
		t.Errorf("%+v", m)
	}
}
