package guest

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/internal/world"
)

// TestReadContent checks that a response's content is decoded, and that decoding ends at the limit of blocks.
func TestReadContent(t *testing.T) {
	r,
		err := readResponse([]byte(`{"ok":true,"result":{},"content":[{"type":"text","text":"a"},{"type":"link","uri":"b"}]}`))
	if err != nil || len(r.Content) != 2 || r.Content[1].URI != "b" {
		t.Errorf("got %+v, %v", r.Content, err)
	}
	many := `{"ok":true,"content":[` + strings.Repeat(`{},`, 1_000_000) + `{}]}`
	if r, err := readResponse([]byte(many)); err != nil || len(r.Content) != maxContent+1 {
		t.Errorf("a million blocks: %d decoded, %v", len(r.Content), err)
	}
	for _, wrong := range []string{`{"ok":true,"content":{}}`, `{"ok":true,"content":[1]}`, `{"ok":true,"content":"a"}`} {
		if _, err := readResponse([]byte(wrong)); err == nil {
			t.Errorf("%s was accepted", wrong)
		}
	}
	for _, empty := range []string{`{"ok":true}`, `{"ok":true,"content":null}`, `{"ok":true,"content":[]}`} {
		if r, err := readResponse([]byte(empty)); err != nil || len(r.Content) != 0 {
			t.Errorf("%s: %+v, %v", empty, r.Content, err)
		}
	}
}

// TestPartsOfResponsesAreBounded checks that no part but the result and its content is decoded if it is large.
func TestPartsOfResponsesAreBounded(t *testing.T) {
	large := strings.Repeat(`{},`, world.MaxResponsePart/3) + `{}`
	for _, part := range []string{"warnings", "message", "details", "invalid", "Invalid", "INVALID"} {
		r, err := readResponse([]byte(`{"ok":false,"` + part + `":[` + large + `]}`))
		if !errors.Is(err, host.LimitExceeded) || len(r.Invalid)+len(r.Warnings)+len(r.Message) > 0 {
			t.Errorf("%s: %v, and %d violations", part, err, len(r.Invalid))
		}
	}
}
