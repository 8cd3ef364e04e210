package host

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// Content is a block of a result that the client itself displays, in addition to the data. Type decides which fields
// are set.
type Content struct {
	Type ContentType `json:"type"`
	Text string      `json:"text,omitempty"` // a text, or the title of a resource or link
	Data string      `json:"data,omitempty"` // base64, of an image, audio or embedded resource
	MIME string      `json:"mime,omitempty"` // of Data, or of the target of a link
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

// Check returns an error if a required field is missing, the type is unknown or Data is not base64.
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

// Clean returns the block without secrets, and with its type and its URI on one line without hidden characters.
func (c Content) Clean(redact func(string) string) Content {
	c.Text, c.Data = redact(c.Text), redact(c.Data)
	c.MIME, c.URI = redact(manifest.CleanLine(c.MIME)), redact(manifest.CleanLine(c.URI))
	return c
}

// File names a file that holds a result, or a part of one.
type File struct {
	Out   string `json:"out"` // the path
	Bytes int64  `json:"bytes"`
	MIME  string `json:"mime"`
}

// MediaType returns the media type of content by its first 512 bytes. They come before the declared type, because a
// caller may have chosen another format than the schema of a tool names. Where they do not tell, it is the declared
// type. The type of unknown content is application/octet-stream.
func MediaType(content []byte, declared string) string {
	found, _, _ := strings.Cut(http.DetectContentType(content), ";")
	switch {
	case found == "audio/wave":
		return "audio/wav"
	case found == "application/x-gzip":
		return "application/gzip"
	case strings.HasPrefix(found, "image/"), strings.HasPrefix(found, "audio/"), found == "application/pdf":
		return found
	case strings.HasPrefix(string(content), `{"`): // such as a trace of the browser, which declares nothing
		return "application/json"
	}
	if declared = manifest.CleanLine(declared); declared != "" {
		return declared
	}
	return "application/octet-stream"
}
