package overlay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Fields of a tool that an [Edit] can change. There is none for a schema, an effect, a right or an exit code.
const (
	Brief    = "brief"
	Standard = "standard"
	Full     = "full"
	When     = "when"
	WhenNot  = "when_not"

	Alias   = "alias" // these add to a list
	Keyword = "keyword"
	Task    = "task"
	Phrase  = "phrase" // a task that search does not count as the author's
	Need    = "need"
	Example = "example" // comes first, or replaces the example with its title

	Deprecated = "deprecated" // the message of a deprecation, which then names no replacement

	Param      = "param"       // the description of a parameter
	ParamAlias = "param_alias" // another name of a parameter, for corrections
	From       = "from"        // an item of a parameter's x-from
	Rare       = "rare"        // tier 2 has only the parameter's name
)

// Fields returns all fields, in the order in which documentation has them.
func Fields() []string {
	return []string{Brief, Standard, Full, When, WhenNot, Alias, Keyword, Task, Phrase,
		Need, Example, Deprecated, Param, ParamAlias, From, Rare}
}

// texts are the fields whose edits replace a text of a tool, beside [Param].
var texts = map[string]func(*manifest.Tool) *string{
	Brief:    func(t *manifest.Tool) *string { return &t.Docs.Brief },
	Standard: func(t *manifest.Tool) *string { return &t.Docs.Standard },
	Full:     func(t *manifest.Tool) *string { return &t.Docs.Full },
	When:     func(t *manifest.Tool) *string { return &t.When },
	WhenNot:  func(t *manifest.Tool) *string { return &t.WhenNot },
}

// additions are the fields whose edits add to a list of a tool.
var additions = map[string]func(*manifest.Tool) *[]string{
	Alias:   func(t *manifest.Tool) *[]string { return &t.Aliases },
	Keyword: func(t *manifest.Tool) *[]string { return &t.Keywords },
	Task:    func(t *manifest.Tool) *[]string { return &t.Tasks },
	Need:    func(t *manifest.Tool) *[]string { return &t.Needs },
}

// FromSchema is the origin of an edit that corrects what contradicts a schema.
const FromSchema = "schema"

// Edit is a change of a tool's documentation that the operator applied.
type Edit struct {
	Tool  string `json:"tool"` // local
	Field string `json:"field"`
	Param string `json:"param,omitempty"` // for those fields that are about a parameter
	Value string `json:"value,omitempty"`
	// Example is the value of the field [Example].
	Example *manifest.Example `json:"example,omitempty"`
	Origin  string            `json:"origin,omitempty"` // what proposed it, such as "rule enum"
	// Scores are the scores of the tool's texts before and after this edit and those applied with it, if measured.
	Scores  *Scores   `json:"scores,omitempty"`
	Applied time.Time `json:"applied,omitzero"`
}

// Scores are the scores of a tool's texts before and after edits.
type Scores struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// Replaced returns the text of a tool that an edit replaces, "" if it adds something.
func (e *Edit) Replaced(t *manifest.Tool) string {
	if t == nil {
		return ""
	}
	text, i := texts[e.Field], e.Place(t)
	p := lists.Find(manifest.Params(t.Params), func(p *manifest.Param) bool { return p.Name == e.Param })
	switch {
	case text != nil:
		return *text(t)
	case e.Field == Deprecated && t.Deprecated != nil:
		return t.Deprecated.Text()
	case i >= 0:
		return t.Examples[i].Title + ": " + string(t.Examples[i].Params)
	case e.Field == Param && p != nil:
		return p.Description
	}
	return ""
}

// ID identifies an edit by what it changes, and by its value.
func (e *Edit) ID() string {
	example, _ := manifest.Marshal(e.Example)
	sum := sha256.Sum256([]byte(strings.Join([]string{e.Tool, e.Field, e.Param, e.Value, string(example)}, "\x00")))
	return "e" + hex.EncodeToString(sum[:4])
}

// Replaces reports whether an edit takes the place of another one.
func (e *Edit) Replaces(other *Edit) bool {
	isText := texts[e.Field] != nil || e.Field == Param || e.Field == Deprecated
	return strings.EqualFold(e.Tool, other.Tool) && e.Field == other.Field && e.Param == other.Param &&
		(isText || e.ID() == other.ID())
}

// Overlay are the edits of one plugin. Applying them changes no byte of it.
type Overlay struct {
	Edits []Edit `json:"edits"`
}

// Apply returns a tool with the edits of the overlay, or the tool itself if there are none for it.
func (o *Overlay) Apply(t *manifest.Tool) *manifest.Tool {
	if t == nil {
		return nil
	}
	edited := t
	for e := range o.of(t.Name) {
		if edited == t {
			edited = new(*t)
			for _, list := range additions {
				*list(edited) = slices.Clip(*list(edited))
			}
		}
		e.apply(edited)
	}
	return edited
}

// of yields the edits of a tool.
func (o *Overlay) of(tool string) iter.Seq[*Edit] {
	return func(yield func(*Edit) bool) {
		for i := range o.Edits {
			if e := &o.Edits[i]; strings.EqualFold(e.Tool, tool) && !yield(e) {
				return
			}
		}
	}
}

func (e *Edit) apply(t *manifest.Tool) {
	if text := texts[e.Field]; text != nil {
		*text(t) = e.Value
	}
	if list := additions[e.Field]; list != nil {
		*list(t) = lists.Add(*list(t), e.Value)
	}
	switch e.Field {
	case Example:
		if i := e.Place(t); i >= 0 {
			t.Examples = slices.Clone(t.Examples)
			t.Examples[i] = *e.Example
		} else if e.Example != nil {
			t.Examples = append([]manifest.Example{*e.Example}, t.Examples...)
		}
	case Deprecated:
		if t.Deprecated != nil {
			d := *t.Deprecated
			d.Use, d.Message = "", e.Value
			t.Deprecated = &d
		}
	case Param:
		t.Params = annotate(t.Params, e.Param, "description", func(any) any { return e.Value })
	case ParamAlias:
		t.Params = annotate(t.Params, e.Param, "x-aliases", addTo(e.Value))
	case From:
		t.Params = annotate(t.Params, e.Param, "x-from", addTo(e.Value))
	}
}

// Place returns the index of the example of a tool that the edit replaces, -1 if it replaces none.
func (e *Edit) Place(t *manifest.Tool) int {
	return slices.IndexFunc(t.Examples, func(x manifest.Example) bool {
		return e.Example != nil && x.Title == e.Example.Title
	})
}

func addTo(value string) func(any) any {
	return func(before any) any {
		list, _ := before.([]any)
		return lists.Add(slices.Clip(list), any(value))
	}
}

// annotate sets a keyword that no validator reads in the schema of a parameter.
func annotate(params json.RawMessage, name, keyword string, change func(any) any) json.RawMessage {
	root, err := jsontext.Decode(params, jsontext.Limits{Bytes: host.MaxParams})
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
	for e := range o.of(tool) {
		if e.Field == field {
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
