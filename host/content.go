package host

import (
	"encoding/base64"
	"fmt"

	"github.com/parley-tools/parley/manifest"
)

// Content is a block of a result that a client shows itself, beside the data. Which fields it has depends on Type.
type Content struct {
	Type ContentType `json:"type"`
	Text string      `json:"text,omitempty"` // of a text; of a resource or a link its title
	Data string      `json:"data,omitempty"` // of an image or audio, and of a resource that is carried along: base64
	MIME string      `json:"mime,omitempty"` // of Data, or of what a link leads to
	URI  string      `json:"uri,omitempty"`  // of a resource or a link
}

// ContentType is the kind of a [Content].
type ContentType string

// The kinds of content.
const (
	ContentText     ContentType = "text"
	ContentImage    ContentType = "image"
	ContentAudio    ContentType = "audio"
	ContentResource ContentType = "resource"
	ContentLink     ContentType = "link"
)

// Check returns what is wrong with a block that came from a plugin, or nil.
func (c Content) Check() error {
	if _, err := base64.StdEncoding.DecodeString(c.Data); err != nil {
		return fmt.Errorf("data is not valid base64")
	}
	missing := ""
	switch c.Type {
	case ContentText:
		if c.Text == "" {
			missing = "text"
		}
	case ContentImage, ContentAudio:
		if c.Data == "" {
			missing = "data"
		} else if c.MIME == "" {
			missing = "mime"
		}
	case ContentResource:
		if c.URI == "" {
			missing = "uri"
		} else if c.Data == "" && c.Text == "" {
			missing = "data or text"
		}
	case ContentLink:
		if c.URI == "" {
			missing = "uri"
		}
	default:
		return fmt.Errorf("type %q is not one of text, image, audio, resource, link", manifest.CleanLine(string(c.Type)))
	}
	if missing != "" {
		return fmt.Errorf("a block of type %s requires %s", c.Type, missing)
	}
	return nil
}

// clean returns the block without what hides in its texts, and without secrets.
func (c Content) clean(redact func(string) string) Content {
	c.Text, c.Data = redact(manifest.Clean(c.Text)), redact(c.Data)
	c.MIME, c.URI = redact(manifest.CleanLine(c.MIME)), redact(manifest.CleanLine(c.URI))
	return c
}
