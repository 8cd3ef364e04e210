package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// Exchange is a line of a recording: a question and what came of it. It never has a key.
type Exchange struct {
	Time   time.Time `json:"t,omitzero"`
	Digest string    `json:"digest"` // digest of the model and the question
	Kind   string    `json:"kind"`
	Model  string    `json:"model"`
	System string    `json:"system"`
	Text   string    `json:"text"`
	Limit  int       `json:"limit"`
	// Answer is nil for an exchange that failed, for which Error says why.
	Answer    *string `json:"answer,omitempty"`
	Error     string  `json:"error,omitempty"`
	In        int     `json:"tokens_in"`
	Out       int     `json:"tokens_out"`
	Estimated bool    `json:"estimated,omitempty"` // the endpoint did not count tokens
	MS        float64 `json:"ms,omitempty"`
}

// maxRecording bounds a recording, in bytes.
const maxRecording = 256 << 20

// Recording is a file of exchanges, one JSON object a line. Questions with an answer in it are not asked again.
type Recording struct {
	Path    string
	Models  []string // of the exchanges in it
	Damaged int      // lines that are not exchanges, such as one that was being written when the machine stopped

	answers map[string]*Exchange
	open    bool // the last line has no line break
}

// OpenRecording reads a recording. A missing file counts as an empty one, if it may be new.
func OpenRecording(path string, mayBeNew bool) (*Recording, error) {
	r := &Recording{Path: path, answers: map[string]*Exchange{}}
	raw, err := protect.Read(path, maxRecording)
	if mayBeNew && errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, r.unusable(err)
	}
	for line := range bytes.Lines(raw) {
		r.open = line[len(line)-1] != '\n'
		x := &Exchange{}
		if json.Unmarshal(line, x) != nil || x.Digest == "" {
			r.Damaged++
			continue
		}
		if x.Answer != nil {
			r.answers[x.Digest] = x
		}
		r.Models = lists.Add(r.Models, x.Model)
	}
	return r, nil
}

// append adds an exchange to the file before anything is done with the answer.
func (r *Recording) append(x *Exchange) error {
	line, _ := manifest.Marshal(x) // texts and numbers always encode
	line = append(line, '\n')
	if r.open {
		line = append([]byte{'\n'}, line...)
	}
	if err := os.MkdirAll(filepath.Dir(r.Path), 0o700); err != nil {
		return r.unusable(err)
	}
	f, _, err := protect.Append(r.Path)
	if err != nil {
		return r.unusable(err)
	}
	_, err = f.Write(line)
	if err = errors.Join(err, f.Close()); err != nil {
		return r.unusable(err)
	}
	r.open = false
	if x.Answer != nil {
		r.answers[x.Digest] = x
	}
	return nil
}

func (r *Recording) unusable(err error) error {
	if refused := (*protect.FileError)(nil); errors.As(err, &refused) {
		return host.Errorf(host.ConfigError, "the recording %s", refused).WithNext("name another file")
	}
	return host.Errorf(host.Unavailable, "the recording %s cannot be used: %s", r.Path,
		manifest.CleanLine(host.WithoutPath(err).Error())).WithNext("name another file")
}
