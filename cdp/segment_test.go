package cdp

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write generated and golden files")

func TestSegment(t *testing.T) {
	built := New(Config{}).buildSegment()
	if *update {
		if err := os.WriteFile("segment.bin", built, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(built, segment) {
		t.Fatal("segment.bin is not what the protocol and the verbs make; run go generate ./cdp/...")
	}
}
