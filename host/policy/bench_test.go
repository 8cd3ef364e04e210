package policy

import (
	"context"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
)

func BenchmarkDecide(b *testing.B) {
	p := load(b, grantsToP("tool:cdp.*", "env:LANG", "clock"), "")
	ask := host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "p", Tool: "t", Effect: "read", Digest: digestA,
		Capabilities: everything(true)}
	for b.Loop() {
		if _, err := p.Decide(context.Background(), ask); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	dir := folderOf(b, grantsToP("tool:cdp.*", "env:LANG", "clock"), "")
	for b.Loop() {
		if _, err := Load(dir, Env{}); err != nil {
			b.Fatal(err)
		}
	}
}
