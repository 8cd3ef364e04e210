package api

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"html"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// response is the response of a server, in the form in which [job.AskHTTP] returns it.
type response struct {
	Status  int         `json:"status"`
	Headers [][2]string `json:"headers"`
	Text    *string     `json:"body"`
	Binary  []byte      `json:"body_base64"`

	request *request
	url     string
	body    []byte
}

// header returns the first value of a header, which is named in lower case.
func (p *response) header(name string) string {
	for _, h := range p.Headers {
		if h[0] == name {
			return h[1]
		}
	}
	return ""
}

// kinds of bodies, by what becomes of them.
const (
	kindJSON = iota
	kindText
	kindBytes
)

// read returns the body as text if it is one, and its media type.
func (p *response) read() (kind int, media, text string) {
	media, parameters, err := mime.ParseMediaType(p.header("content-type"))
	if err != nil {
		media = "" // without a type, the content decides
	}
	text, isText := decode(p.body, parameters["charset"])
	switch {
	case !isText:
		return kindBytes, media, ""
	case media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json"):
		return kindJSON, media, text
	case media == "" && jsontext.LooksLikeJSON(text):
		return kindJSON, media, text
	case media == "", strings.HasPrefix(media, "text/"), strings.HasSuffix(media, "+xml"),
		strings.HasSuffix(media, "/xml"), strings.HasSuffix(media, "javascript"), strings.HasSuffix(media, "ndjson"),
		strings.HasSuffix(media, "yaml"), media == "application/x-www-form-urlencoded":
		return kindText, media, text
	}
	return kindBytes, media, text
}

// result makes the result of a call that succeeded.
func (p *response) result() (*job.Result, error) {
	if p.Status == http.StatusNoContent || p.request.binding.Method == http.MethodHead || len(p.body) == 0 {
		return &job.Result{Data: []byte("null")}, nil
	}
	if limit := p.request.Limits.OutputBytes; limit > 0 && len(p.body) > limit {
		return nil, host.Errorf(host.LimitExceeded, "the response has %s; the plugin's limit is %s; request less",
			host.SizeOf(len(p.body)), host.SizeOf(limit))
	}
	switch kind, media, text := p.read(); kind {
	case kindJSON:
		if strings.TrimSpace(text) == "" {
			return &job.Result{Data: []byte("null")}, nil
		}
		if _, err := jsontext.Decode([]byte(text), jsontext.Limits{Bytes: len(text)}); err != nil {
			return &job.Result{Data: jsontext.AppendString(nil, text), Warnings: []string{fmt.Sprintf(
				"the response says %s, but is not JSON (%v); the result is its text", manifest.CleanLine(media), err)}}, nil
		}
		return &job.Result{Data: []byte(text)}, nil
	case kindText:
		return &job.Result{Data: jsontext.AppendString(nil, text)}, nil
	default:
		return p.bytes(media)
	}
}

// bytes returns a body that is not a text: as base64 where the tool says so, else as content.
func (p *response) bytes(media string) (*job.Result, error) {
	media = cmp.Or(manifest.CleanLine(media), "application/octet-stream")
	encoded := base64.StdEncoding.EncodeToString(p.body)
	var returns struct{ ContentEncoding string }
	_ = jsontext.Unmarshal(p.request.Def.Returns, &returns)
	if returns.ContentEncoding == "base64" {
		return &job.Result{Data: jsontext.AppendString(nil, encoded)}, nil
	}
	uri, _, _ := strings.Cut(p.url, "?")
	content := job.Content{Type: job.ContentResource, Data: encoded, MIME: media, URI: uri}
	switch kind, _, _ := strings.Cut(media, "/"); kind {
	case "image", "audio":
		content.Type, content.URI = job.ContentType(kind), ""
	}
	data, err := manifest.Marshal(map[string]any{"mime": media, "bytes": len(p.body)})
	return &job.Result{Data: data, Content: []job.Content{content}}, err
}

// windows1252 are the characters 0x80 to 0x9F of the character set that servers mean by iso-8859-1.
var windows1252 = []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")

// decode returns a body as text. isText is false if it is not text in the given character set, or in one that is
// unknown.
func decode(body []byte, charset string) (text string, isText bool) {
	switch strings.ToLower(charset) {
	case "", "utf-8", "utf8", "us-ascii":
		return string(bytes.TrimPrefix(body, []byte("\ufeff"))), utf8.Valid(body)
	case "iso-8859-1", "latin1", "windows-1252":
		var b strings.Builder
		for _, c := range body {
			if r := rune(c); c >= 0x80 && c < 0xa0 {
				b.WriteRune(windows1252[c-0x80])
			} else {
				b.WriteRune(r)
			}
		}
		return b.String(), true
	case "utf-16", "utf-16le", "utf-16be":
		big := strings.HasSuffix(strings.ToLower(charset), "be") || bytes.HasPrefix(body, []byte{0xfe, 0xff})
		units := make([]uint16, len(body)/2)
		for i := range units {
			high, low := body[2*i+1], body[2*i]
			if big {
				high, low = low, high
			}
			units[i] = uint16(high)<<8 | uint16(low)
		}
		return strings.TrimPrefix(string(utf16.Decode(units)), "\ufeff"), len(body)%2 == 0
	}
	return "", false
}

// maxDetails limits the JSON value of a server's error that is passed on, in bytes.
const maxDetails = 4 << 10

// failure makes the error of a call that did not succeed. What the server says is quoted.
func (p *response) failure() *host.Error {
	details := map[string]any{"status": p.Status}
	e := &host.Error{Code: host.ToolFailed, Tool: &host.ToolError{Exit: 1}}
	outcome := manifest.StatusExit(p.Status)
	if outcome != nil {
		e.Tool.Exit, e.Tool.Name = outcome.Code, outcome.Name
		e.Exit, e.Code = outcome.Code, host.Code(outcome.Name)
	}
	e.Message = strings.TrimSpace("the server answered " + strconv.Itoa(p.Status) + " " + http.StatusText(p.Status))
	if outcome == nil && p.Status != http.StatusNotModified {
		e.Message += ", a redirect that was not followed"
	}
	kind, _, text := p.read()
	said := plainText(text)
	if kind == kindJSON {
		if parsed, err := jsontext.Decode([]byte(text), jsontext.Limits{Bytes: len(text)}); err == nil {
			said = messageOf(parsed, 0)
			if encoded := jsontext.Marshal(parsed); len(encoded) <= maxDetails {
				details["response"] = manifest.CleanJSON(encoded)
			}
		}
	}
	if said != "" {
		e.Message += "; it says: " + quoted(said, 300)
	}
	if seconds, ok := retryAfter(p.header("retry-after"), time.Now()); ok {
		details["retry_after"] = seconds
		e.Message += "; retry after " + strconv.Itoa(seconds) + " s"
	}
	e.Tool.Details, _ = manifest.Marshal(details)
	if p.Status == http.StatusUnauthorized {
		e.Steps = p.request.credentialSteps()
	}
	return e
}

// credentialSteps returns the step that gives the plugin a credential, or a new value for the one that it has.
func (q *request) credentialSteps() []step.Step {
	if granted := q.Grant.Secrets; len(granted) > 0 {
		if granted[0].Login != "" {
			return []step.Step{step.Operator(step.OpLogin, granted[0].Login)}
		}
		return []step.Step{step.Operator(step.OpSecretSet, granted[0].Name)}
	}
	if asked := q.plugin.Capabilities.Secrets; len(asked) > 0 {
		return []step.Step{step.Operator(step.OpPolicyGrant, q.plugin.Name, "secret:"+asked[0].Name)}
	}
	return nil
}

// retryAfter returns the seconds that a Retry-After header gives, as a number or as a date.
func retryAfter(text string, now time.Time) (seconds int, ok bool) {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return int(n), true
	}
	at, err := http.ParseTime(text)
	return max(0, int(math.Ceil(at.Sub(now).Seconds()))), err == nil
}

// messageOf returns the text in a server's error that is for people, "" if none is found.
func messageOf(v any, depth int) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		if len(v) > 0 && depth < 4 {
			return messageOf(v[0], depth+1)
		}
	case map[string]any:
		for _, name := range []string{"message", "error_description", "detail", "error", "title", "errors", "reason"} {
			if said := ""; depth < 4 && v[name] != nil {
				if said = messageOf(v[name], depth+1); said != "" {
					return said
				}
			}
		}
	}
	return ""
}

// markup matches what is not text in HTML.
var markup = lazy.Pattern(`(?is)<script.*?</script>|<style.*?</style>|<!--.*?-->|<[^>]*>`)

// plainText returns the start of a text without the tags of HTML, on one line.
func plainText(text string) string {
	text = manifest.Clip(text, 4<<10)
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		text = html.UnescapeString(markup().ReplaceAllString(text, " "))
	}
	return strings.Join(strings.Fields(text), " ")
}
