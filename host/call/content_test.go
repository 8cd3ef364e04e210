package call_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/job"
)

func TestContentCheck(t *testing.T) {
	for _, c := range []struct {
		content job.Content
		says    string
	}{
		{job.Content{Type: job.ContentText, Text: "a"}, ""},
		{job.Content{Type: job.ContentText}, "requires text"},
		{job.Content{Type: job.ContentImage, Data: "aGk=", MIME: "image/png"}, ""},
		{job.Content{Type: job.ContentImage, Data: "aGk="}, "requires mime"},
		{job.Content{Type: job.ContentAudio, MIME: "audio/wav"}, "requires data"},
		{job.Content{Type: job.ContentAudio, Data: "a b", MIME: "audio/wav"}, "not valid base64"},
		{job.Content{Type: job.ContentResource, URI: "file:///a", Text: "a"}, ""},
		{job.Content{Type: job.ContentResource, URI: "file:///a"}, "requires data or text"},
		{job.Content{Type: job.ContentResource, Text: "a"}, "requires uri"},
		{job.Content{Type: job.ContentLink, URI: "https://a.test"}, ""},
		{job.Content{Type: job.ContentLink}, "requires uri"},
		{job.Content{Type: "video", Data: "aGk="}, `type "video" is not one of`},
	} {
		err := c.content.Check()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.content, err, c.says)
		}
	}
}

// TestCallContent checks that content comes with the data, cleaned, and never with an error.
func TestCallContent(t *testing.T) {
	f := newFake(t, shop, map[string]handler{"echo": func(_ context.Context, r *host.Request) (*job.Result, error) {
		data := json.RawMessage(`{}`)
		if strings.Contains(string(r.Params), "broken") {
			data = json.RawMessage(`{`)
		}
		return &job.Result{Data: data, Content: []job.Content{{Type: job.ContentText, Text: "a\u202eb\x1b[31m"}}}, nil
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
