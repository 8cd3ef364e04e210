package index

import (
	"bytes"
	"slices"
	"testing"
)

func open(t testing.TB, plugin string, docs []Doc) *Segment {
	t.Helper()
	seg, err := Open(Build(Plugin{Name: plugin}, docs))
	if err != nil {
		t.Fatal(err)
	}
	return seg
}

func TestBuildIsDeterministic(t *testing.T) {
	docs := []Doc{
		{Name: "Network.getCookies", Group: "Network", Brief: "Returns all browser cookies",
			Aliases: []string{"list cookies"}},
		{Name: "Page.captureScreenshot", Group: "Page", Brief: "Capture page screenshot"},
		{Name: "Page.loadEventFired", Kind: "event", Group: "Page"},
	}
	want := Build(Plugin{Name: "cdp"}, docs)
	for range 20 {
		if !bytes.Equal(Build(Plugin{Name: "cdp"}, docs), want) {
			t.Fatal("two builds of the same documents differ")
		}
	}
	slices.Reverse(docs)
	if !bytes.Equal(Build(Plugin{Name: "cdp"}, docs), want) {
		t.Error("the order of the documents changes the bytes")
	}
}
