package call

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/redact"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// markUntrusted puts the texts of the result that its schema marks as untrusted between two lines that nobody can
// foresee, so that a reader can tell where such a text ends, whatever it says. The text itself is kept to the byte.
// All long texts of a server's response are marked. The result of a call by a plugin stays as it is, because the
// plugin puts it into its own result. A result that cannot be read fails the call.
func (r *run) markUntrusted() error {
	marked := func(of *authorization) bool {
		return of.params.At.Tool.HTTP != nil || bytes.Contains(of.params.At.Tool.Returns, []byte(redact.UntrustedMark))
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
	data := jsontext.Marshal(redact.Mark(value, returnsOf(r.address.Tool), boundary))
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
		object["result"] = redact.Mark(object["result"], returnsOf(r.auth.steps[number-1].params.At.Tool), boundary)
	}
}

func returnsOf(t *manifest.Tool) (returns any) {
	if t.HTTP != nil {
		return map[string]any{redact.UntrustedMark: redact.UntrustedLong}
	}
	_ = json.Unmarshal(t.Returns, &returns)
	return returns
}

// Unmarked is [redact.Unmarked].
var Unmarked = redact.Unmarked
