package call

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/manifest"
)

// keepWhole stores the whole of a result that is cut, without secrets, and reports whether it could.
func (r *run) keepWhole(data json.RawMessage) bool {
	ending := session.ResultExt
	if r.call.Options.JQ == "" {
		ending = "." + r.answer.Tool + session.ResultExt
	}
	return r.host.cfg.Sessions.StoreResult(r.call.Principal.Session, r.answer.CallID, ending, data) != ""
}

// keepBinary stores the binary parts of the answer, puts a [session.File] in the place of each, and reports whether
// there were any. What cannot be stored stays as it is.
func (r *run) keepBinary() bool {
	if !r.call.KeepBinary {
		return false
	}
	count := 0
	keep := func(encoded, media string) *session.File {
		content, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(content) == 0 || r.redactor.RedactAll(string(content)) != string(content) {
			return nil
		}
		count++
		media = session.MediaType(content, media)
		ending := extensionOf(media)
		if count > 1 {
			ending = "-" + strconv.Itoa(count) + ending
		}
		path := r.host.cfg.Sessions.StoreResult(r.call.Principal.Session, r.answer.CallID, ending, content)
		if path == "" {
			return nil
		}
		return &session.File{Out: path, Bytes: int64(len(content)), MIME: media}
	}
	r.answer.Data = manifest.ReplaceBinary(r.answer.Data, r.answer.Returns, func(encoded, media string) any {
		if file := keep(encoded, media); file != nil {
			return file
		}
		return nil
	})
	for i := range r.answer.Content {
		c := &r.answer.Content[i]
		if file := keep(c.Data, c.MIME); c.Data != "" && file != nil {
			c.Data, c.MIME, c.URI = "", file.MIME, file.Out
		}
	}
	return count > 0
}

// extensionOf returns the extension of files of a media type, ".bin" for one that is not frequent.
func extensionOf(media string) string {
	switch media {
	case "image/png", "image/webp", "image/gif", "audio/mpeg", "audio/wav", "application/pdf":
		_, name, _ := strings.Cut(media, "/")
		return "." + strings.Replace(name, "mpeg", "mp3", 1)
	case "image/jpeg":
		return ".jpg"
	}
	return ".bin"
}
