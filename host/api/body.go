package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"mime/multipart"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// body makes the body from the parameters that are in neither the path, the query nor a header. media is "" if the
// request has none.
func (q *request) body(ctx context.Context) (media string, data []byte, err error) {
	whole, hasWhole := q.take(q.binding.Whole)
	rest := slices.DeleteFunc(slices.Clone(q.params), func(m member) bool { return q.taken[m.name] })
	raw, isRaw := strings.CutPrefix(q.binding.Body, "raw:")
	switch {
	case q.binding.Body == "" || q.binding.Whole != "" && !hasWhole || len(rest) == 0 && q.binding.Whole == "" &&
		!carriesBody(q.binding.Method):
		return "", nil, nil
	case isRaw:
		f, err := q.content(ctx, q.binding.Whole, whole)
		return raw, f.data, err
	case q.binding.Body == "json" && hasWhole:
		return "application/json", whole, nil
	case q.binding.Body == "json":
		return "application/json", q.object(rest), nil
	case hasWhole:
		rest = whole.members()
	}
	if q.binding.Body == "multipart" {
		return q.multipart(ctx, rest)
	}
	var form []string
	n := notation{escape: escapeForm, isNamed: true}
	for _, m := range rest {
		name := q.wire(m.name)
		if m.isNested() && strings.HasSuffix(q.properties()[m.name].Media, "json") {
			form = append(form, escapeForm(name)+"="+escapeForm(string(m.value)))
		} else if m.isList() && !slices.ContainsFunc(m.items(), value.isNested) {
			form = append(form, n.styled(name, manifest.StyleRepeat, m.value)...)
		} else { // the brackets of a name such as ids[] are added again
			form = append(form, n.styled(strings.TrimSuffix(name, "[]"), manifest.StyleDeep, m.value)...)
		}
	}
	return "application/x-www-form-urlencoded", []byte(strings.Join(form, "&")), nil
}

// object writes parameters as a JSON object, each as it was given.
func (q *request) object(params []member) []byte {
	b := []byte{'{'}
	for i, m := range params {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsontext.AppendString(b, q.wire(m.name)), ':')
		b = append(b, m.value...)
	}
	return append(b, '}')
}

// multipart writes a part for each parameter, and for each item of a list without a media type of its own. An
// object is JSON, or has a part for each value in it if its name has brackets.
func (q *request) multipart(ctx context.Context, params []member) (media string, data []byte, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, m := range params {
		name := q.wire(m.name)
		parts := []member{{name, m.value}}
		if stem, isDeep := strings.CutSuffix(name, "[]"); isDeep && m.isObject() {
			parts = m.deep(stem)
		} else if m.isList() && q.properties()[m.name].Media == "" {
			parts = lists.Map(m.items(), func(v value) member { return member{name, v} })
		}
		for _, p := range parts {
			f, err := q.content(ctx, m.name, p.value)
			if err != nil {
				return "", nil, err
			}
			header, disposition := textproto.MIMEHeader{}, `form-data; name="`+inQuotes.Replace(lines.Replace(p.name))+`"`
			if f.name != "" {
				disposition += `; filename="` + inQuotes.Replace(f.name) + `"`
			}
			header.Set("Content-Disposition", disposition)
			if f.media != "" {
				header.Set("Content-Type", f.media)
			} else {
				f.data = []byte(lines.Replace(string(f.data)))
			}
			part, err := w.CreatePart(header)
			if err == nil {
				_, err = part.Write(f.data)
			}
			if err != nil {
				return "", nil, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return "", nil, err
	}
	return w.FormDataContentType(), b.Bytes(), nil
}

// Names and texts in a form are written as browsers do (HTML, section 4.10.22.8).
var (
	lines    = strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n")
	inQuotes = strings.NewReplacer("\r", "%0D", "\n", "%0A", `"`, "%22")
)

// part is the content of a part of a body. One without a name is not a file.
type part struct {
	name, media string
	data        []byte
}

// content returns what a value of a parameter stands for: the content of a file, the bytes of a text in base64, or the
// text itself.
func (q *request) content(ctx context.Context, name string, v value) (part, error) {
	p := q.properties()[name]
	if p.Items != nil && p.Media == "" {
		p = *p.Items
	}
	switch text := v.text(); {
	case strings.HasPrefix(text, job.SharedFilePrefix) && p.Handed:
		return q.file(ctx, text, p.Media)
	case p.Encoding == "base64":
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return part{}, host.Errorf(host.InvalidArgs, "%s is not base64: expected padded base64 of the standard alphabet; "+
				"nothing was sent", name)
		}
		return part{name: name, media: cmp.Or(p.Media, "application/octet-stream"), data: data}, nil
	case v.isObject():
		return part{media: cmp.Or(p.Media, "application/json"), data: v}, nil
	default:
		return part{media: p.Media, data: []byte(text)}, nil
	}
}

// maxFile limits the size of a file in a request: with the body as base64, the request must stay below
// [host.MaxParams].
const maxFile = 10 << 20

// file returns the content of a file that the caller named. text is what the host gave for it.
func (q *request) file(ctx context.Context, text, media string) (part, error) {
	var size int
	var name string
	_, described, _ := strings.Cut(text, "/")
	if _, err := fmt.Sscanf(described, "%d/", &size); err != nil || size > maxFile {
		_, name, _ = strings.Cut(described, "/")
		return part{}, host.Errorf(host.LimitExceeded, "%s has %s; the limit of a file in a request is %s; nothing was sent",
			manifest.CleanLine(name), host.SizeOf(size), host.SizeOf(maxFile))
	}
	folder, err := os.MkdirTemp("", "parley-*")
	if err != nil {
		return part{}, host.Errorf(host.Unavailable, "a file cannot be read: %v", host.WithoutPath(err))
	}
	defer os.RemoveAll(folder)
	argument, _ := manifest.Marshal(job.SharedFileArgument{Text: text, Folder: folder})
	copied, err := q.Ask(ctx, job.AskSharedFile, argument)
	if err != nil {
		return part{}, err
	}
	var path string
	if err := json.Unmarshal(copied.Data, &path); err != nil {
		return part{}, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return part{}, host.Errorf(host.Unavailable, "a file cannot be read: %v", host.WithoutPath(err))
	}
	media = cmp.Or(media, mime.TypeByExtension(filepath.Ext(path)), "application/octet-stream")
	return part{name: filepath.Base(path), media: media, data: data}, nil
}
