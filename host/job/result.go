package job

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/parley-tools/parley/host/step"
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
	if _, err := base64.StdEncoding.DecodeString(c.Data); err != nil {
		return fmt.Errorf("data is not valid base64")
	}
	return nil
}

// Trace says where a guest crashed, and what it wrote last. Its texts are cleaned.
type Trace struct {
	Frames  []Frame  `json:"frames"`            // innermost first, at most 30
	Unnamed bool     `json:"unnamed,omitempty"` // the module has no names of functions
	Stderr  []string `json:"stderr,omitempty"`  // the last lines, at most 20
	Log     []string `json:"log,omitempty"`     // the last lines of the guest's own log, at most 20
}

// Frame is a function that a guest was in.
type Frame struct {
	Function int    `json:"function"` // its index in the module
	Name     string `json:"name,omitempty"`
}

// Result is what a tool returned.
type Result struct {
	Data     json.RawMessage
	Content  []Content // for the client to display, in addition to Data
	Warnings []string
	Written  int64 // bytes sent as output instead of Data; 0 if there were none
	Raw      bool  // the output is the content itself, not JSON
	Steps    []step.Step
	// Subject is for records: what the tool acted on, such as the role and name of an element and the address of its
	// document. Only built-in providers set it.
	Subject string
}
