package frame

import (
	"bytes"
	"strconv"
	"testing"
)

// TestReplayIsBounded checks that what is stored of a session does not grow with its requests, that the stream that
// lasts as long as the session goes on, and that nothing is stored after the session has ended.
func TestReplayIsBounded(t *testing.T) {
	ctx, r := t.Context(), &Replay{}
	_ = r.Open(ctx, "s", "")
	for i := range 1000 {
		stream := strconv.Itoa(i)
		_ = r.Open(ctx, "s", stream)
		_ = r.Append(ctx, "s", stream, bytes.Repeat([]byte("x"), 20<<10))
	}
	_ = r.Append(ctx, "s", "", []byte("last"))
	if streams := len(r.sessions["s"].streams); streams > maxReplayStreams || r.size > maxReplayBytes {
		t.Errorf("%d streams of %d bytes are stored", streams, r.size)
	}
	for stream, want := range map[string]string{"": "last", "999": "x", "0": "", "unknown": ""} {
		for data, err := range r.After(ctx, "s", stream, -1) {
			if (err == nil) != (want != "") || want != "" && !bytes.HasPrefix(data, []byte(want)) {
				t.Errorf("the stream %q has %.10q, %v", stream, data, err)
			}
		}
	}
	if _ = r.SessionClosed(ctx, "s"); r.size != 0 || len(r.sessions) != 0 {
		t.Errorf("after the end of the session %d bytes are stored", r.size)
	}
}
