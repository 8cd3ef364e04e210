package call

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// checkResult validates a result. For built-in tools and tools of kind http it only adds warnings, because Chrome may
// be newer than the compiled schemas, and a server newer than the document of its API.
func (r *run) checkResult(data json.RawMessage) error {
	isDocument := r.isBuiltin() || r.address.Tool.HTTP != nil
	returnsSchema, err := r.address.SchemaOf(r.address.Tool.Returns, "returns")
	if err != nil {
		return err
	}
	if isDocument && (returnsSchema == nil || len(data) > host.MaxParams) {
		return nil
	}
	value, err := jsontext.Decode(data, jsontext.Limits{Bytes: max(len(data), 1)})
	if malformed, ok := errors.AsType[*jsontext.SyntaxError](err); ok && malformed.TooMany {
		return &host.Error{Code: host.LimitExceeded,
			Message: fmt.Sprintf("%s returned more values than can be validated", r.answer.Tool), Cause: err}
	}
	if err != nil {
		return &host.Error{Code: host.InvalidResult, Message: fmt.Sprintf("%s returned invalid JSON: %v", r.answer.Tool, err),
			Cause: err}
	}
	if returnsSchema == nil {
		return nil
	}
	violations, err := returnsSchema.Validate(value)
	if isDocument {
		for _, v := range violations[:min(3, len(violations))] {
			r.answer.Warnings = append(r.answer.Warnings,
				manifest.CleanLine(fmt.Sprintf("result %s: expected %s, got %s", v.Pointer, v.Expected, v.Provided)))
		}
		return nil
	}
	if err != nil {
		return &host.Error{Code: host.LimitExceeded,
			Message: fmt.Sprintf("validating the result of %s would exceed the cost limit", r.answer.Tool), Cause: err}
	}
	if len(violations) == 0 {
		return nil
	}
	e := host.Errorf(host.InvalidResult, "%s returned a result that does not match its schema: %s", r.answer.Tool,
		manifest.Plural(len(violations), "violation"))
	e.Details = lists.Map(violations, advice.DetailOf)
	return e.WithSteps(step.Describe(r.address.Name(), manifest.Tier3))
}

func (r *run) filter() host.Filter {
	if r.call.Filter != nil {
		return r.call.Filter
	}
	return r.host.cfg.Filter
}

// checkFilter refuses an expression that is invalid before anything runs.
func (r *run) checkFilter(ctx context.Context) error {
	if r.call.Options.JQ == "" {
		return nil
	}
	if r.filter() == nil {
		return host.Errorf(host.Unavailable, "this host has no filter for results: call without the option jq")
	}
	corrected, err := r.filter().Check(ctx, r.call.Options.JQ)
	if err == nil {
		return nil
	}
	e := host.AsError(err)
	if corrected == "" {
		return e
	}
	again := step.Call(r.address.Name(), r.params.Given)
	again.Options = r.call.Given
	again.Options.JQ = corrected
	return e.WithSteps(again)
}

// filterResult applies Options.JQ to the result, until the call's deadline.
func (r *run) filterResult(ctx context.Context) error {
	if r.call.Options.JQ == "" {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, r.deadline)
	defer cancel()
	filtered, err := r.filter().Filter(ctx, r.call.Options.JQ, r.answer.Data)
	if err != nil {
		r.redactor.RedactError(host.AsError(err))
		return err
	}
	r.answer.Data, r.answer.Returns = filtered, nil
	return nil
}

// cutResult cuts the result to Options.MaxBytes. The whole result is stored with the session.
func (r *run) cutResult() {
	limit := r.call.Options.MaxBytes
	if limit <= 0 || len(r.answer.Data) <= limit {
		return
	}
	whole := r.answer.Data
	text := string(jsontext.Cut(whole, limit))
	if text == "" { // the first value alone is longer than that
		text = strings.ToValidUTF8(string(whole[:limit]), "")
	}
	cut := truncated{Truncated: true, TotalBytes: len(whole), ShownBytes: len(text), Text: text}
	if r.keepWhole(r.redactor.RedactAllJSON(whole)) {
		cut.Next = "parley://result/" + r.answer.CallID
		if r.call.Render != nil {
			cut.Next = r.call.Render(step.Operator(step.OpResult, r.answer.CallID))
		}
	}
	r.answer.Cut = true
	r.answer.Data, _ = manifest.Marshal(cut)
	r.answer.Warnings = append(r.answer.Warnings,
		fmt.Sprintf("the result was cut: %d of %d bytes are shown", len(text), len(whole)))
}

type truncated struct {
	Truncated  bool   `json:"truncated"`
	TotalBytes int    `json:"total_bytes"`
	ShownBytes int    `json:"shown_bytes"`
	Text       string `json:"text"`
	Next       string `json:"next,omitempty"` // how to read the whole result
}

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

// extensionOf returns the file extension for a media type, ".bin" for an uncommon one.
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
