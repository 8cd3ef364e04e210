package sdk

// Content is a block of a result that the client itself displays, in addition to
// the result: a picture, a sound, a text. Type decides which of the other fields
// are needed.
type Content struct {
	Type ContentType `json:"type"`
	Text string      `json:"text,omitempty"` // of a text or a resource; the title of a link
	Data []byte      `json:"data,omitempty"` // of an image, an audio or a resource without Text
	MIME string      `json:"mime,omitempty"` // such as "image/png"; required with an image and an audio
	URI  string      `json:"uri,omitempty"`  // of a resource or a link
}

// ContentType is the kind of a [Content].
type ContentType string

// The kinds of content.
const (
	ContentText     ContentType = "text"     // needs Text
	ContentImage    ContentType = "image"    // needs Data and MIME
	ContentAudio    ContentType = "audio"    // needs Data and MIME
	ContentResource ContentType = "resource" // needs URI, and Text or Data
	ContentLink     ContentType = "link"     // needs URI
)

// Show adds blocks of content to the response, in this order. A response has at
// most 64 of them; with more, or with one that lacks what its type needs, the
// call fails. A call that ends with an error sends none.
func (c *Call) Show(blocks ...Content) { c.content = append(c.content, blocks...) }

// Shown returns the content added so far.
func (c *Call) Shown() []Content { return c.content }
