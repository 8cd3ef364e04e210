package dataset

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/eval"
	"github.com/parley-tools/parley/host/learn/judge"
	"github.com/parley-tools/parley/host/overlay"
	"github.com/parley-tools/parley/host/search"
)

const toolList = `{"tools":[
  {"name":"text__hash","description":"Compute a digest\nOf a text.","inputSchema":{"type":"object","additionalProperties":false,
   "required":["text"],"properties":{"text":{"type":"string"}}}},
  {"name":"text__case","description":"Change the case of letters","inputSchema":{"type":"object"}},
  {"name":"lookup","description":"Look an address up","inputSchema":{"type":"object"}}]}`

func tools(t testing.TB) *host.Catalog {
	t.Helper()
	catalog, err := ToolList([]byte(toolList))
	if err != nil {
		t.Fatal(err)
	}
	return catalog
}

// records are six sessions: each searches, calls with a wrong name, and then as it should.
func records() (all []host.Record) {
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, session := range strings.Fields("a b c d e f") {
		for i, r := range []host.Record{
			{Op: "search", Query: "digest of CANARY " + session, Code: "ok"},
			{Tool: "text.hash", Params: json.RawMessage(`{"txt":"CANARY"}`), Code: string(host.InvalidArgs), ExitCode: 81},
			{Tool: "text.hash", Params: json.RawMessage(`{"text":"CANARY"}`), Code: "ok", MS: 2},
			{Tool: "text.CANARY", Params: json.RawMessage(`{}`), Code: string(host.NotFound), ExitCode: 83},
		} {
			r.Session, r.Time = session, at.Add(time.Duration(i)*time.Second)
			all = append(all, r)
		}
	}
	return all
}

func options(t testing.TB, values bool) Options {
	return Options{Records: records(), Catalog: tools(t), Values: values,
		Shapes: func(json.RawMessage) json.RawMessage { return json.RawMessage(`{"text":"string(6)"}`) },
		Verdict: func(*judge.Session) *judge.Verdict {
			return &judge.Verdict{Score: 1, Passed: true, Reasoning: "CANARY"}
		},
		Edits: []Edit{{Plugin: "text", Manifest: "sha256:1", Edit: overlay.Edit{Tool: "hash", Field: "when", Value: "x"}}}}
}

// TestDataset checks that a file has what was given, and that reading it gives the same.
func TestDataset(t *testing.T) {
	d := New(options(t, true))
	if c := d.Card; c.Sessions != 6 || c.Calls != 18 || c.Queries != 6 || c.Edits != 1 || !c.Values {
		t.Errorf("%+v", c)
	}
	s := d.Sessions[0]
	if s.Query != "digest of CANARY a" || len(s.Calls) != 3 || s.Errors != 2 || s.Iterations != 4 ||
		s.DurationMS != 3000 || s.Successful || s.Score == nil || *s.Score != 1 {
		t.Errorf("%+v", s)
	}
	var b bytes.Buffer
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := Read(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, d) {
		t.Errorf("read\n%+v\nwritten\n%+v", got, d)
	}
}

// TestDatasetWithoutValues checks that nothing that a caller wrote is left, except for names of arguments.
func TestDatasetWithoutValues(t *testing.T) {
	var b bytes.Buffer
	if err := New(options(t, false)).Write(&b); err != nil {
		t.Fatal(err)
	}
	if at := strings.Index(b.String(), "CANARY"); at >= 0 {
		t.Errorf("a value is left: %s", b.String()[max(0, at-100):])
	}
	if !strings.Contains(b.String(), `"shapes":true`) {
		t.Error(b.String())
	}
}

// TestScope checks that a file about one plugin has no session and no edit of another.
func TestScope(t *testing.T) {
	o := options(t, true)
	o.Scope = "tools"
	if c := New(o).Card; c.Sessions+c.Queries+c.Edits+len(c.Plugins) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestRead(t *testing.T) {
	const card = `{"card":{"format":"parley-dataset/1","queries":1}}` + "\n"
	for text, want := range map[string]string{
		"":                              "it is empty",
		"{":                             "line 1: unexpected end of JSON input",
		`{"query":{}}`:                  "line 1: expected {\"card\":{\"format\":\"parley-dataset/1\",..}} first",
		card + `{}`:                     "line 2: expected a session, a query with relevant tools, or an edit",
		card + card:                     "line 2: expected a session, a query with relevant tools, or an edit",
		card + `{"query":1}`:            "line 2: query has another type: it is a JSON number",
		card + `[]`:                     "line 2: the line has another type: it is a JSON array",
		card:                            "it has fewer or more lines than its card says; a part may be missing",
		`{"card":{"format":"other/1"}}`: "line 1: expected {\"card\":{\"format\":\"parley-dataset/1\",..}} first",
		card + `{"query":{"query":"x","relevant":{"a.b":3}}}`: "",
	} {
		_, err := Read(strings.NewReader(text))
		if got := errorText(err); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestEvaluate checks the figures of calls and of search, and that they are the same each time.
func TestEvaluate(t *testing.T) {
	d, catalog := New(options(t, true)), tools(t)
	got := d.Evaluate(catalog)
	c := got.Calls
	if c.Calls != 18 || c.Unknown != 6 || c.Values != 12 || c.Succeeded != 6 || c.Accepted != 6 || c.Failed != 6 ||
		c.Refused != 6 || c.AcceptedShare == nil {
		t.Errorf("%+v", c)
	}
	if got.Search == nil || got.Search.Scores[len(got.Search.Scores)-1].Queries != 6 {
		t.Errorf("%+v", got.Search)
	}
	if again := d.Evaluate(catalog); !reflect.DeepEqual(got, again) {
		t.Errorf("%+v, and then %+v", got, again)
	}
	if c := New(options(t, false)).Evaluate(catalog).Calls; c.Values != 0 || c.AcceptedShare != nil {
		t.Errorf("shapes are validated: %+v", c)
	}
}

// TestChoices checks how the answers of a model are counted.
func TestChoices(t *testing.T) {
	d := &Dataset{}
	for range batchSize + 2 {
		d.Queries = append(d.Queries, eval.Query{Query: "digest",
			Relevant: map[string]float64{"text.hash": 3, "text.case": 1}})
	}
	questions := d.Questions(tools(t))
	if len(questions) != 2 || !strings.Contains(questions[0].Text, "text.hash(text: string): Compute a digest") ||
		!strings.Contains(questions[1].Text, "2. digest\n") || strings.Contains(questions[1].Text, "3. digest\n") {
		t.Errorf("%+v", questions)
	}
	var c Choices
	d.Count(&c, 0, "no JSON")
	d.Count(&c, 1, `{"calls":[{"id":1,"tool":"text__hash"},{"id":2,"tool":"text.case"}]}`)
	if c.Queries != 2 || c.Right != 1 || c.Malformed != batchSize || c.Share != nil {
		t.Errorf("%+v", c)
	}
}

func TestToolList(t *testing.T) {
	names := map[string]bool{}
	for _, p := range tools(t).Providers() {
		local, err := p.Names()
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range local {
			names[p.Info().Name+"."+n] = true
		}
	}
	if len(names) != 3 || !names["text.hash"] || !names["text.case"] || !names["tools.lookup"] {
		t.Errorf("%v", names)
	}
	for text, want := range map[string]string{
		`[]`:           "it is not a list of tools: ",
		`{"tools":[]}`: "it has no tools; expected ",
		`{"tools":[{"name":"a__b"},{"name":"a.b"}]}`: "a.b is listed twice",
		`{"tools":[{"name":"4"}]}`:                   `"4" is not the name of a tool`,
		`{"tools":[{"name":"a____b"}]}`:              `"a____b" is not the name of a tool`,
	} {
		if _, err := ToolList([]byte(text)); !strings.HasPrefix(errorText(err), want) || err == nil {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := New(options(f, true)).Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	catalog := tools(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		d, err := Read(bytes.NewReader(file))
		if err != nil {
			return
		}
		d.Evaluate(catalog)
		d.Questions(catalog)
	})
}

func FuzzToolList(f *testing.F) {
	f.Add([]byte(toolList))
	f.Fuzz(func(t *testing.T, list []byte) {
		catalog, err := ToolList(list)
		if err != nil {
			return
		}
		eval.Evaluate([]eval.Query{{Query: "text", Relevant: map[string]float64{"text.hash": 1}}}, catalog, search.Order{})
	})
}
