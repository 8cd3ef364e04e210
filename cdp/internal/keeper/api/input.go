package api

import "encoding/json"

// TypeRequest types a secret into the focused element of a target.
type TypeRequest struct {
	Target string `json:"target,omitempty"` // as in CallRequest
	Text   string `json:"text"`
	// Origins are those into whose documents the text may go, in canonical spelling.
	Origins []string `json:"origins"`
	Submit  bool     `json:"submit,omitempty"` // press Enter afterwards
}

// Typed is the result of a TypeRequest.
type Typed struct {
	Target string `json:"target"` // the page, or the frame if that is a target of its own
	Origin string `json:"origin"` // of the document that has the text now
}

// InputRequest sends input events to a page, one directly after the other.
type InputRequest struct {
	// Events have the parameters of the command that their type belongs to; see inputCommand. A [Drag] stands alone.
	Events []json.RawMessage `json:"events"`
}

// InputSent is the result of an InputRequest.
type InputSent struct {
	Target string `json:"target"`
	Events int    `json:"events"`
	// Dragged says that the page left a [Drag] to the browser, which has dropped what was dragged.
	Dragged bool `json:"dragged,omitempty"`
}

// Drag is an event that presses the mouse at a point, moves it to another one and releases it there. Where the page
// leaves the drag to the browser, as it does that of a draggable element, the browser drops the data as trusted events.
type Drag struct {
	Type string  `json:"type"` // "drag"
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	ToX  float64 `json:"toX"`
	ToY  float64 `json:"toY"`
}

// UploadFolder is the result of [Client.UploadFolder].
type UploadFolder struct {
	Path string `json:"path"`
}
