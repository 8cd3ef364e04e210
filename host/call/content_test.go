package call_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
)

func TestContentCheck(t *testing.T) {
	for _, c := range []struct {
		content host.Content
		says    string
	}{
		{host.Content{Type: host.ContentText, Text: "a"}, ""},
		{host.Content{Type: host.ContentText}, "requires text"},
		{host.Content{Type: host.ContentImage, Data: "aGk=", MIME: "image/png"}, ""},
		{host.Content{Type: host.ContentImage, Data: "aGk="}, "requires mime"},
		{host.Content{Type: host.ContentAudio, MIME: "audio/wav"}, "requires data"},
		{host.Content{Type: host.ContentAudio, Data: "a b", MIME: "audio/wav"}, "not valid base64"},
		{host.Content{Type: host.ContentResource, URI: "file:///a", Text: "a"}, ""},
		{host.Content{Type: host.ContentResource, URI: "file:///a"}, "requires data or text"},
		{host.Content{Type: host.ContentResource, Text: "a"}, "requires uri"},
		{host.Content{Type: host.ContentLink, URI: "https://a.test"}, ""},
		{host.Content{Type: host.ContentLink}, "requires uri"},
		{host.Content{Type: "video", Data: "aGk="}, `type "video" is not one of`},
	} {
		err := c.content.Check()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.content, err, c.says)
		}
	}
}

// TestCallContent checks that content comes with the data, cleaned, and never with an error.
func TestCallContent(t *testing.T) {
	f := newFake(t, shop, map[string]handler{"echo": func(_ context.Context, r *host.Request) (*host.Result, error) {
		data := json.RawMessage(`{}`)
		if strings.Contains(string(r.Params), "broken") {
			data = json.RawMessage(`{`)
		}
		return &host.Result{Data: data, Content: []host.Content{{Type: host.ContentText, Text: "a\u202eb\x1b[31m"}}}, nil
	}})
	h := newHost(t, call.Config{}, f)
	a := makeCall(t, h, "shop.echo", `{}`)
	if len(a.Content) != 1 || a.Content[0].Text != "a\u202eb\x1b[31m" {
		t.Errorf("got %+v, %v", a.Content, a.Err)
	}
	if a := makeCall(t, h, "shop.echo", `{"broken":true}`); a.Err == nil || a.Content != nil {
		t.Errorf("a failed call has the content %+v", a.Content)
	}
}
