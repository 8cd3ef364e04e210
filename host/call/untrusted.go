package call

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// untrustedMark is the member of a schema that says that a text of a result was written by neither the tool nor its
// caller, such as the text of a web page: true, or untrustedLong for a value of any type, whose short texts callers use
// as they are.
const (
	untrustedMark = "x-untrusted"
	untrustedLong = "long"
)

// longText is the size in bytes above which a text of one line is more than a name or a title.
const longText = 100

// markUntrusted puts the texts of the result that its schema marks as untrusted between two lines that nobody can
// foresee, so that a reader can tell where such a text ends, whatever it says. The text itself is kept to the byte.
// All long texts of a server's response are marked. The result of a call by a plugin stays as it is, because the
// plugin puts it into its own result. A result that cannot be read fails the call.
func (r *run) markUntrusted() error {
	marked := func(of *authorization) bool {
		return of.params.At.Tool.HTTP != nil || bytes.Contains(of.params.At.Tool.Returns, []byte(untrustedMark))
	}
	if r.behalf.parentID != "" || !marked(r.auth) && !slices.ContainsFunc(r.auth.steps, marked) {
		return nil
	}
	value, err := jsontext.Decode(r.answer.Data, jsontext.Limits{Bytes: max(len(r.answer.Data), 1)})
	if err != nil {
		return host.Errorf(host.InvalidResult, "%s returned a result whose texts cannot be marked as untrusted: %v",
			r.answer.Tool, err)
	}
	var random [8]byte
	_, _ = rand.Read(random[:])
	boundary := fmt.Sprintf("%08d", binary.BigEndian.Uint64(random[:])%1e8) // digits have fewer tokens than letters
	if object, ok := value.(map[string]any); ok && len(r.auth.steps) > 0 {
		results, _ := object["results"].([]any)
		for _, one := range results {
			r.markStep(one, boundary)
		}
	}
	data := jsontext.Marshal(bounded(value, returnsOf(r.address.Tool), boundary))
	if bytes.Contains(data, []byte(boundary)) {
		r.answer.Data = data
	}
	return nil
}

// markStep marks the untrusted texts in the result of a step, {"step": NUMBER, "result": RESULT}.
func (r *run) markStep(one any, boundary string) {
	object, _ := one.(map[string]any)
	number, err := strconv.Atoi(fmt.Sprint(object["step"]))
	if err == nil && number > 0 && number <= len(r.auth.steps) {
		object["result"] = bounded(object["result"], returnsOf(r.auth.steps[number-1].params.At.Tool), boundary)
	}
}

func returnsOf(t *manifest.Tool) (returns any) {
	if t.HTTP != nil {
		return map[string]any{untrustedMark: untrustedLong}
	}
	_ = json.Unmarshal(t.Returns, &returns)
	return returns
}

// marked matches a text between the lines that [run.markUntrusted] puts around it.
var marked = lazy.Pattern(`(?s)^<page (\d{8})>\n(.*)\n</page (\d{8})>$`)

// Unmarked returns a text of a result as it was before it was marked as untrusted. Any other text stays as it is.
func Unmarked(text string) string {
	if at := marked().FindStringSubmatch(text); at != nil && at[1] == at[3] {
		return at[2]
	}
	return text
}

// bounded returns a value with its untrusted texts inside a boundary. It follows properties and items of the schema.
func bounded(value, of any, boundary string) any {
	schema, _ := of.(map[string]any)
	long := schema[untrustedMark] == untrustedLong
	switch v := value.(type) {
	case string:
		if schema[untrustedMark] == true && v != "" || long && (len(v) > longText || strings.Contains(v, "\n")) {
			v = "<page " + boundary + ">\n" + v + "\n</page " + boundary + ">"
		}
		return v
	case []any:
		items := schema["items"]
		if long {
			items = schema
		}
		for i := range v {
			v[i] = bounded(v[i], items, boundary)
		}
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for name := range v {
			inner := properties[name]
			if long && inner == nil {
				inner = schema
			}
			v[name] = bounded(v[name], inner, boundary)
		}
	}
	return value
}
