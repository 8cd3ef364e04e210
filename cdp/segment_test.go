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
	if !bytes.Equal(built, shippedSegment) {
		t.Fatal("segment.bin differs from what the protocol and the verbs generate; run go generate ./cdp/...")
	}
}
