package host

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Fields of a tool that an [Edit] can change. There is none for a schema, an effect, a right or an exit code.
const (
	EditBrief    = "brief"
	EditStandard = "standard"
	EditFull     = "full"
	EditWhen     = "when"
	EditWhenNot  = "when_not"

	EditAlias   = "alias" // these add to a list
	EditKeyword = "keyword"
	EditTask    = "task"
	EditPhrase  = "phrase" // as a task, of which search knows that it is not the author's
	EditNeed    = "need"
	EditExample = "example" // comes first

	EditParam      = "param"       // the description of a parameter
	EditParamAlias = "param_alias" // another name of it, that corrections know
	EditFrom       = "from"        // an item of its x-from
	EditRare       = "rare"        // tier 2 has only its name
)

// EditFields are all fields, in the order in which documentation has them.
func EditFields() []string {
	return []string{EditBrief, EditStandard, EditFull, EditWhen, EditWhenNot, EditAlias, EditKeyword, EditTask, EditPhrase,
		EditNeed, EditExample, EditParam, EditParamAlias, EditFrom, EditRare}
}

// Edit is a change of a tool's documentation that the operator applied.
type Edit struct {
	Tool  string `json:"tool"` // local
	Field string `json:"field"`
	Param string `json:"param,omitempty"` // for those fields that are about a parameter
	Value string `json:"value,omitempty"`
	// Example is the value of EditExample.
	Example *manifest.Example `json:"example,omitempty"`
	Origin  string            `json:"origin,omitempty"` // what proposed it, such as "rule enum"
	// Scores are those of the texts before and after it and the edits that it was applied with, if they were measured.
	Scores  *EditScores `json:"scores,omitempty"`
	Applied time.Time   `json:"applied,omitzero"`
}

// EditScores are the scores of a tool's texts before and after edits.
type EditScores struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// Replaced returns the text of a tool that an edit replaces, "" if it adds something.
func (e *Edit) Replaced(t *manifest.Tool) string {
	if t == nil {
		return ""
	}
	switch e.Field {
	case EditBrief:
		return t.Docs.Brief
	case EditStandard:
		return t.Docs.Standard
	case EditFull:
		return t.Docs.Full
	case EditWhen:
		return t.When
	case EditWhenNot:
		return t.WhenNot
	case EditParam:
		for _, p := range manifest.Params(t.Params) {
			if p.Name == e.Param {
				return p.Description
			}
		}
	}
	return ""
}

// ID identifies an edit by what it changes, and by its value.
func (e *Edit) ID() string {
	example, _ := manifest.Marshal(e.Example)
	sum := sha256.Sum256([]byte(strings.Join([]string{e.Tool, e.Field, e.Param, e.Value, string(example)}, "\x00")))
	return "e" + hex.EncodeToString(sum[:4])
}

// adds reports whether the edit adds to a list; others replace a text.
func (e *Edit) adds() bool {
	switch e.Field {
	case EditBrief, EditStandard, EditFull, EditWhen, EditWhenNot, EditParam:
		return false
	}
	return true
}

// Replaces reports whether an edit takes the place of another one.
func (e *Edit) Replaces(other *Edit) bool {
	return strings.EqualFold(e.Tool, other.Tool) && e.Field == other.Field && e.Param == other.Param &&
		(!e.adds() || e.ID() == other.ID())
}

// Overlay are the edits of one plugin. Applying them changes no byte of it.
type Overlay struct {
	Edits []Edit `json:"edits"`
}

// Apply returns a tool with the edits of the overlay, or the tool itself if there are none for it.
func (o *Overlay) Apply(t *manifest.Tool) *manifest.Tool {
	if t == nil || !slices.ContainsFunc(o.Edits, func(e Edit) bool { return strings.EqualFold(e.Tool, t.Name) }) {
		return t
	}
	edited := *t
	for _, list := range []*[]string{&edited.Aliases, &edited.Keywords, &edited.Tasks, &edited.Needs} {
		*list = slices.Clip(*list)
	}
	for i := range o.Edits {
		if e := &o.Edits[i]; strings.EqualFold(e.Tool, t.Name) {
			e.apply(&edited)
		}
	}
	return &edited
}

func (e *Edit) apply(t *manifest.Tool) {
	switch e.Field {
	case EditBrief:
		t.Docs.Brief = e.Value
	case EditStandard:
		t.Docs.Standard = e.Value
	case EditFull:
		t.Docs.Full = e.Value
	case EditWhen:
		t.When = e.Value
	case EditWhenNot:
		t.WhenNot = e.Value
	case EditAlias:
		t.Aliases = AppendNew(t.Aliases, e.Value)
	case EditKeyword:
		t.Keywords = AppendNew(t.Keywords, e.Value)
	case EditTask:
		t.Tasks = AppendNew(t.Tasks, e.Value)
	case EditNeed:
		t.Needs = AppendNew(t.Needs, e.Value)
	case EditExample:
		if e.Example != nil {
			t.Examples = append([]manifest.Example{*e.Example}, t.Examples...)
		}
	case EditParam:
		t.Params = annotate(t.Params, e.Param, "description", func(any) any { return e.Value })
	case EditParamAlias:
		t.Params = annotate(t.Params, e.Param, "x-aliases", addTo(e.Value))
	case EditFrom:
		t.Params = annotate(t.Params, e.Param, "x-from", addTo(e.Value))
	}
}

// AppendNew appends a value unless the list has it.
func AppendNew(list []string, value string) []string {
	if slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}

func addTo(value string) func(any) any {
	return func(before any) any {
		list, _ := before.([]any)
		if slices.Contains(list, any(value)) {
			return list
		}
		return append(slices.Clip(list), value)
	}
}

// annotate sets a keyword of a property that no validator reads.
func annotate(params json.RawMessage, name, keyword string, change func(any) any) json.RawMessage {
	root, err := jsontext.Decode(params, jsontext.Limits{Bytes: MaxParams})
	if err != nil {
		return params
	}
	path := []string{"properties", name}
	property, ok := jsontext.Lookup(root, path)
	object, isObject := property.(map[string]any)
	if !ok || !isObject {
		return params
	}
	return jsontext.Set(params, path, keyword, jsontext.Marshal(change(object[keyword])))
}

// Values returns the values of a field for a tool.
func (o *Overlay) Values(tool, field string) (values []string) {
	for _, e := range o.Edits {
		if e.Field == field && strings.EqualFold(e.Tool, tool) {
			values = append(values, e.Value)
		}
	}
	return values
}

// Merge returns the overlay with further edits, which take the place of those that they replace.
func (o *Overlay) Merge(edits []Edit) *Overlay {
	merged := &Overlay{Edits: slices.Clone(o.Edits)}
	for i := range edits {
		merged.Edits = slices.DeleteFunc(merged.Edits, func(old Edit) bool { return edits[i].Replaces(&old) })
		merged.Edits = append(merged.Edits, edits[i])
	}
	return merged
}

// Base returns the plugin below an overlay, or the plugin itself.
func Base(p Provider) Provider {
	if o, ok := p.(interface{ Base() Provider }); ok {
		return o.Base()
	}
	return p
}
