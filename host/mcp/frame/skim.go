package frame

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/parley-tools/parley/manifest/jsontext"
)

const (
	// maxDepth is how deeply encoding/json reads.
	maxDepth = 10_000
	// maxSkimmedID bounds the id of a message that is not held.
	maxSkimmedID = 64 << 10
)

// skimmer finds the id of a message in a text that is passed to it in pieces and not held: the value of "id" in the
// outermost object.
type skimmer struct {
	depth    int
	quoted   bool
	escaped  bool
	isObject bool   // the outermost value is an object
	inValue  bool   // at depth 1: behind a colon
	text     []byte // text of a key or of the value of an id, at depth 1
	isID     bool   // text is the value of an id
	ids      []json.RawMessage
	tooDeep  bool
}

func (s *skimmer) write(data []byte) {
	for _, c := range data {
		s.step(c)
	}
}

func (s *skimmer) step(c byte) {
	switch {
	case s.quoted:
		s.quoted = s.escaped || c != '"'
		s.escaped = c == '\\' && !s.escaped
	case c == '"':
		s.quoted = true
	case c == '{' || c == '[':
		if s.depth++; s.depth == 1 {
			s.isObject = c == '{'
			return
		}
		s.tooDeep = s.tooDeep || s.depth > maxDepth
	case c == '}' || c == ']':
		if s.depth--; s.depth == 0 {
			s.endValue()
			return
		}
	case s.depth != 1:
	case c == ':':
		name, _ := jsontext.Unquote(bytes.TrimSpace(s.text))
		s.inValue, s.isID, s.text = true, s.isObject && name == "id", nil
		return
	case c == ',':
		s.endValue()
		return
	}
	if s.depth >= 1 && (s.isID || !s.inValue) && len(s.text) <= maxSkimmedID {
		s.text = append(s.text, c)
	}
}

// endValue ends a member of the outermost object.
func (s *skimmer) endValue() {
	if id := bytes.TrimSpace(s.text); s.isID && len(s.ids) < 2 {
		s.ids = append(s.ids, id)
	}
	s.inValue, s.isID, s.text = false, false, nil
}

// found returns the id, or nil if there is no valid one.
func (s *skimmer) found() json.RawMessage {
	if len(s.ids) != 1 || len(s.ids[0]) > maxSkimmedID || !isID(s.ids[0]) || !json.Valid(s.ids[0]) {
		return nil
	}
	return s.ids[0]
}

// skim reads a message that is too long to be held, up to an error or its end, and returns its id, nil if it has no
// valid one.
func skim(r io.Reader) json.RawMessage {
	var s skimmer
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.Read(buffer)
		s.write(buffer[:n])
		if err != nil {
			return s.found()
		}
	}
}
