package command

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// replacement is a file that is either replaced as a whole or left unchanged. If the path is not a regular file, such
// as a pipe or /dev/stdout, it is written to directly.
type replacement struct {
	*os.File
	path string
	mode fs.FileMode
	temp string // the name until done; "" if path is not a regular file
}

var errIsFolder = errors.New("it is a folder")

func replace(path string, mode fs.FileMode) (*replacement, error) {
	r := &replacement{path: path, mode: mode}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, errIsFolder
	case err == nil && !info.Mode().IsRegular():
		r.File, err = os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	default:
		if r.File, err = os.CreateTemp(filepath.Dir(path), ".parley-out-*"); err == nil {
			r.temp = r.Name()
		}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// done closes the file and renames it to its path.
func (r *replacement) done() (err error) {
	if r.temp != "" {
		err = r.Chmod(r.mode)
	}
	if err = errors.Join(err, r.Close()); err == nil && r.temp != "" {
		err = os.Rename(r.temp, r.path)
	}
	return err
}

// discard removes a file unless it is done: its temporary name then no longer exists.
func (r *replacement) discard() {
	_ = r.Close()
	if r.temp != "" {
		_ = os.Remove(r.temp)
	}
}

// WriteFile replaces a file as a whole. If it fails, the old file is unchanged.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	r, err := replace(path, mode)
	if err != nil {
		return err
	}
	defer r.discard()
	if _, err := r.Write(content); err != nil {
		return err
	}
	return r.done()
}

// HeadSize is the number of bytes by which the media type of a content is detected.
const HeadSize = 512

// OutFile is the file of --out. It receives a result as a whole or in pieces. It contains the content if the schema
// declares the result as binary, the text if the result is one, and JSON otherwise. A result in pieces never counts
// as a text.
type OutFile struct {
	Path    string
	Returns json.RawMessage // the schema of the result
	Raw     bool            // the pieces are the content itself, not JSON
	// Filtered says that a filter produced the result, which is then JSON in any case.
	Filtered bool

	file   *replacement // nil before the first piece
	decode *decoder
	head   []byte // the first bytes of the content, at most HeadSize
	bytes  int64
	media  string
}

const invalidBase64 = "the tool declares base64 but returned invalid base64: %v"

// Check reports, before anything runs, that no file can have this path.
func (o *OutFile) Check() error {
	if info, err := os.Stat(o.Path); err == nil && info.IsDir() {
		return host.AsError(o.failed(errIsFolder)).WithNext("--out with the name of a file")
	}
	if _, err := os.Stat(filepath.Dir(o.Path)); errors.Is(err, fs.ErrNotExist) {
		return host.AsError(o.failed(errors.New("its folder does not exist"))).
			WithNext("mkdir -p " + ShellQuote(filepath.Dir(o.Path)))
	}
	return nil
}

// Write writes a piece of the result.
func (o *OutFile) Write(piece []byte) (int, error) {
	if o.file == nil {
		if err := o.begin(piece); err != nil {
			return 0, err
		}
	}
	content := piece
	if o.decode != nil {
		var err error
		if content, err = o.decode.next(piece); err != nil {
			return 0, host.Errorf(host.InvalidResult, invalidBase64, err)
		}
	}
	return len(piece), o.put(content)
}

// begin opens the file. Unless the kind of the result is known, it is detected from the first piece.
func (o *OutFile) begin(piece []byte) (err error) {
	if !o.Raw && o.media == "" {
		o.media = "application/json"
		if at, media := binaryAt(piece, o.Returns); at >= 0 {
			o.media, o.decode = media, &decoder{skip: at}
		}
	}
	o.file, err = replace(o.Path, 0o644)
	return o.failed(err)
}

func (o *OutFile) put(content []byte) error {
	o.head = append(o.head, content[:min(len(content), HeadSize-len(o.head))]...)
	o.bytes += int64(len(content))
	_, err := o.file.Write(content)
	return o.failed(err)
}

func (o *OutFile) failed(err error) error {
	if err == nil {
		return nil
	}
	return host.Errorf(host.Unavailable, "cannot write --out %s: %v", manifest.CleanLine(o.Path), err)
}

// takenOut replaces the content in a result from which it was taken.
const takenOut = `[[null]]`

// content returns what to write to the file: the content of the member that the schema declares as base64, text or
// JSON, without its boundary; or the result itself if it is a text; or else the result as JSON. beside are the other
// members.
func (o *OutFile) content(data json.RawMessage) (content []byte, beside map[string]json.RawMessage, err error) {
	taken := false
	o.media = "application/json"
	rest := manifest.ReplaceBinary(data, o.Returns, func(text, media string) any {
		if taken {
			return nil
		}
		taken, o.Raw, o.media = true, true, media
		content, err = base64.StdEncoding.DecodeString(text)
		return json.RawMessage(takenOut)
	})
	switch {
	case err != nil:
		return nil, nil, host.Errorf(host.InvalidResult, invalidBase64, err)
	case taken:
		_ = json.Unmarshal(rest, &beside) // there are no members if the result is only the content
		maps.DeleteFunc(beside, func(_ string, value json.RawMessage) bool { return string(value) == takenOut })
		return content, beside, nil
	case o.Filtered:
		return data, nil, nil
	}
	var schema struct {
		Properties map[string]struct{ ContentMediaType, ContentEncoding string }
	}
	_ = json.Unmarshal(o.Returns, &schema) // a schema without properties has none
	for name, of := range schema.Properties {
		isJSON := of.ContentMediaType == "application/json"
		isDeclared := isJSON || strings.HasPrefix(of.ContentMediaType, "text/") || of.ContentEncoding != ""
		if !isDeclared || json.Unmarshal(data, &beside) != nil {
			continue
		}
		text, isText := jsontext.Unquote(beside[name])
		if isJSON && !isText {
			text = string(beside[name])
		}
		if isText || text != "" {
			o.Raw, o.media = true, of.ContentMediaType
			delete(beside, name)
			return []byte(call.Unmarked(text)), beside, nil
		}
	}
	if text, isText := jsontext.Unquote(bytes.TrimSpace(data)); isText {
		o.Raw, o.media = true, "text/plain"
		return []byte(text), nil, nil
	}
	return data, nil, nil
}

// Whole writes a result that is in memory, and finishes the file. If the result contains a content, it writes that,
// and also returns the other members.
func (o *OutFile) Whole(data json.RawMessage) (json.RawMessage, error) {
	content, beside, err := o.content(data)
	if err != nil {
		return nil, err
	}
	if _, err := o.Write(content); err != nil {
		return nil, err
	}
	done, err := o.Done()
	for _, own := range []string{"out", "bytes", "mime"} { // fields that describe the file
		delete(beside, own)
	}
	if rest, _ := manifest.Marshal(beside); err == nil && len(beside) > 0 && !o.Filtered {
		done = append(append(done[:len(done)-1], ','), rest[1:]...)
	}
	return done, err
}

// Done renames the file to its path and returns a [session.File].
func (o *OutFile) Done() (json.RawMessage, error) {
	if o.file == nil { // an empty stream creates an empty file
		if _, err := o.Write(nil); err != nil {
			return nil, err
		}
	}
	if !o.Raw && o.decode == nil {
		if err := o.put([]byte{'\n'}); err != nil {
			return nil, err
		}
	}
	if err := o.file.done(); err != nil {
		return nil, o.failed(err)
	}
	mime := o.media
	if o.Raw || o.decode != nil {
		mime = session.MediaType(o.head, o.media)
	}
	return manifest.Marshal(session.File{Out: o.Path, Bytes: o.bytes, MIME: mime})
}

// Discard removes a file that was begun but not finished.
func (o *OutFile) Discard() {
	if o.file != nil {
		o.file.discard()
	}
}

// binaryAt returns the offset at which the base64 text that the schema declares begins in the beginning of a result,
// and its media type. The offset is -1 if there is no such text.
func binaryAt(beginning []byte, returns json.RawMessage) (at int, media string) {
	if _, media, ok := manifest.Binary(json.RawMessage(`""`), returns); ok && bytes.HasPrefix(beginning, []byte{'"'}) {
		return 1, media
	}
	dec := json.NewDecoder(bytes.NewReader(beginning))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return -1, ""
	}
	for {
		t, err := dec.Token()
		name, isName := t.(string)
		if err != nil || !isName {
			return -1, ""
		}
		probe, _ := json.Marshal(map[string]string{name: ""})
		_, media, ok := manifest.Binary(probe, returns)
		rest := beginning[dec.InputOffset():]
		value := bytes.TrimLeft(rest, ": \t\r\n")
		if ok && bytes.HasPrefix(value, []byte{'"'}) {
			return len(beginning) - len(value) + 1, media
		}
		var skipped json.RawMessage
		if dec.Decode(&skipped) != nil {
			return -1, ""
		}
	}
}

// decoder decodes a base64 text that arrives in pieces. It begins after skip bytes of the first piece and ends at a
// quote.
type decoder struct {
	skip  int
	rest  []byte // fewer than four characters that are not decoded yet
	ended bool
}

func (d *decoder) next(piece []byte) ([]byte, error) {
	piece = piece[d.skip:]
	d.skip = 0
	if d.ended {
		return nil, nil
	}
	text := append(d.rest, piece...)
	if end := bytes.IndexByte(text, '"'); end >= 0 {
		text, d.ended = text[:end], true
	}
	whole := len(text)
	if !d.ended {
		whole -= whole % 4
	}
	d.rest = append([]byte(nil), text[whole:]...)
	content := make([]byte, base64.StdEncoding.DecodedLen(whole))
	n, err := base64.StdEncoding.Decode(content, text[:whole])
	return content[:n], err
}
