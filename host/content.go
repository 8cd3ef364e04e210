package host

import (
	"encoding/base64"
	"fmt"

	"github.com/parley-tools/parley/manifest"
)

// Content is a block of a result that the client itself displays, in addition to the data. Type decides which fields
// are set.
type Content struct {
	Type ContentType `json:"type"`
	Text string      `json:"text,omitempty"` // a text, or the title of a resource or link
	Data string      `json:"data,omitempty"` // base64 of an image, audio or embedded resource
	MIME string      `json:"mime,omitempty"` // media type of Data, or of the target of a link
	URI  string      `json:"uri,omitempty"`  // address of a resource or a link
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

// Check returns an error if a required field is missing, the type is unknown or Data is not base64.
func (c Content) Check() error {
	if _, err := base64.StdEncoding.DecodeString(c.Data); err != nil {
		return fmt.Errorf("data is not valid base64")
	}
	type field struct{ name, value string }
	media, uri := []field{{"data", c.Data}, {"mime", c.MIME}}, field{"uri", c.URI}
	required, known := map[ContentType][]field{
		ContentText: {{"text", c.Text}}, ContentImage: media, ContentAudio: media, ContentLink: {uri},
		ContentResource: {uri, {"data or text", c.Data + c.Text}},
	}[c.Type]
	if !known {
		return fmt.Errorf("type %q is not one of text, image, audio, resource, link", manifest.CleanLine(string(c.Type)))
	}
	for _, f := range required {
		if f.value == "" {
			return fmt.Errorf("a block of type %s requires %s", c.Type, f.name)
		}
	}
	return nil
}
