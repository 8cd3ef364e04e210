package protocol

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// live returns the pinned protocol as a browser serves it: as one document.
func live(t testing.TB) []byte {
	t.Helper()
	all := document{}
	for _, raw := range sources(t) {
		var doc document
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		all.Version = doc.Version
		all.Domains = append(all.Domains, doc.Domains...)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestParseEqualsEmbedded(t *testing.T) {
	p, err := Parse(live(t))
	if err != nil {
		t.Fatal(err)
	}
	if p.Revision() != "live" || p.Version() != Embedded().Version() {
		t.Errorf("version %q, revision %q", p.Version(), p.Revision())
	}
	if got, want := p.Coverage(), Embedded().Coverage(); got != want {
		t.Errorf("coverage %+v, expected %+v", got, want)
	}
	if !reflect.DeepEqual(p.Domains(), Embedded().Domains()) {
		t.Error("the domains differ")
	}
	for _, d := range p.Domains() {
		if !reflect.DeepEqual(p.Members(d.Name), Embedded().Members(d.Name)) {
			t.Errorf("the members of %s differ", d.Name)
		}
	}
	for _, name := range p.Names() {
		a, _ := p.Command(name)
		b, _ := Embedded().Command(name)
		if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(p.Examples(a), Embedded().Examples(b)) {
			t.Errorf("%s differs", name)
		}
	}
}

// documentOf wraps domains in a document.
func documentOf(domains string) string {
	return `{"version":{"major":"1","minor":"3"},"domains":[` + domains + `]}`
}

func TestParseNewerProtocol(t *testing.T) {
	p, err := Parse([]byte(documentOf(`{"domain":"Page","unheardOf":{"a":[1]},"commands":[
		{"name":"navigate","parameters":[{"name":"url","type":"string"},{"name":"bytes","type":"binary","optional":true},{"name":"mode","$ref":"NoSuchType","optional":true}]},
		{"name":"clearEverything"},{"name":"getNews","deprecated":true,"description":"Use navigate instead."},
		{"name":"captureScreenshot","parameters":[{"name":"shape","$ref":"Shape"}],"returns":[{"name":"self","$ref":"Loop"}]}],
		"types":[{"id":"Odd","type":"bigint"},{"id":"Shape","type":"string","enum":["round","square"]},{"id":"Loop","type":"object","properties":[{"name":"next","$ref":"Loop"},{"name":"also","$ref":"Loop"}]}]}`)))
	if err != nil {
		t.Fatal(err)
	}
	c, _ := p.Command("Page.navigate")
	if c.Effect != Write || len(c.Tasks) == 0 {
		t.Errorf("the reviewed facts about Page.navigate were not adopted: %+v", c)
	}
	odd, ok := p.Type("Page.Odd")
	if !ok || strings.Contains(string(p.EntrySchema(odd)), "bigint") {
		t.Errorf("Page.Odd: %v, %+v", ok, odd)
	}
	if c.Params[1].Name != "bytes" || !c.Params[1].Binary {
		t.Errorf("a binary parameter is %+v", c.Params[1])
	}
	if c, _ := p.Command("Page.clearEverything"); c.Effect != Destructive {
		t.Errorf("Page.clearEverything is %s", c.Effect)
	}
	if c, _ := p.Command("Page.getNews"); c.Effect != Write || c.Use != "Page.navigate" {
		t.Errorf("Page.getNews is %s, use %q", c.Effect, c.Use)
	}
	// Common examples with unknown parameters are omitted.
	c, _ = p.Command("Page.captureScreenshot")
	for _, x := range p.Examples(c) {
		if string(x.Params) != `{"shape":"round"}` {
			t.Errorf("example %s", x.Params)
		}
	}
	if len(p.ReturnsSchema(c)) > 1000 {
		t.Error("a recursive type is defined more than once")
	}
}

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","items":`, 40) + `{"type":"string"}` + strings.Repeat(`}`, 40)
	for name, test := range map[string]struct{ document, message string }{
		"empty":         {``, "unexpected end"},
		"not an object": {`[]`, "not a protocol as served at /json/protocol"},
		"no domains":    {`{}`, `no "domains"`},
		"a string":      {documentOf(`"Page"`), "not a protocol as served at /json/protocol"},
		"no version":    {`{"domains":[{"domain":"Page"}]}`, "version"},
		"bad domain":    {documentOf(`{"domain":"Pa ge"}`), "Pa ge"},
		"hidden domain": {documentOf(`{"domain":"Page\u202e"}`), "expected letters"},
		"two domains":   {documentOf(`{"domain":"Page"},{"domain":"page"}`), "two domains"},
		"two commands":  {documentOf(`{"domain":"Page","commands":[{"name":"a"},{"name":"A"}]}`), "two commands"},
		"nameless":      {documentOf(`{"domain":"Page","commands":[{}]}`), "command 0 of Page"},
		"dotted":        {documentOf(`{"domain":"Page","commands":[{"name":"a.b"}]}`), "a.b"},
		"two parameters": {documentOf(`{"domain":"Page","commands":[{"name":"a","parameters":[{"name":"x"},{"name":"x"}]}]}`),
			`"x"`},
		"deep": {documentOf(`{"domain":"Page","types":[{"id":"T","type":"array","items":` + deep + `}]}`),
			"nested deeper"},
		"bad type":       {documentOf(`{"domain":"Page","types":[{"id":"T","type":"\u001b[31m"}]}`), "name of a type"},
		"bad reference":  {documentOf(`{"domain":"Page","types":[{"id":"T","$ref":"A.B.C"}]}`), "$ref"},
		"bad redirect":   {documentOf(`{"domain":"Page","commands":[{"name":"a","redirect":"x y"}]}`), "redirect"},
		"bad dependency": {documentOf(`{"domain":"Page","dependencies":["\u0007"]}`), "depends on"},
		"hidden enum": {documentOf(`{"domain":"Page","types":[{"id":"T","type":"string","enum":["a\u200b"]}]}`),
			"hidden characters"},
		"too large":        {strings.Repeat(" ", maxDocument+1), "the limit is 16777216"},
		"too many domains": {documentOf(strings.Repeat(`{"domain":"A"},`, maxDomains) + `{"domain":"A"}`), "domains"},
	} {
		_, err := Parse([]byte(test.document))
		if err == nil || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: the error is %v, expected %q in it", name, err, test.message)
		}
	}
	p, err := Parse([]byte(documentOf(`{"domain":"Page","description":"a\u001b[31mb\u202ec"}`)))
	if err != nil {
		t.Fatal(err)
	}
	if d, _ := p.Domain("Page"); d.Description != `a\u001b[31mb\u202ec` {
		t.Errorf("the description is %q", d.Description)
	}
}

// TestParseExplosion parses types whose smallest value would be infinitely deep and wide.
func TestParseExplosion(t *testing.T) {
	var properties []string
	for i := range 900 {
		properties = append(properties, fmt.Sprintf(`{"name":"p%d","$ref":"T"}`, i))
	}
	p, err := Parse([]byte(documentOf(`{"domain":"Page","commands":[{"name":"a","parameters":[{"name":"x","$ref":"T"}]}],
		"types":[{"id":"T","type":"object","properties":[` + strings.Join(properties, ",") + `]}]}`)))
	if err != nil {
		t.Fatal(err)
	}
	c, _ := p.Command("Page.a")
	for _, x := range p.Examples(c) {
		if len(x.Params) > 1<<20 || !json.Valid(x.Params) {
			t.Errorf("an example of %d bytes", len(x.Params))
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(documentOf(`{"domain":"Page","commands":[{"name":"navigate","parameters":[{"name":"url","type":"string"},{"name":"t","$ref":"T","optional":true}],"returns":[{"name":"data","type":"string","description":"x (Encoded as a base64 string when passed over JSON)"}]}],"events":[{"name":"e"}],"types":[{"id":"T","type":"object","properties":[{"name":"next","$ref":"T"}]}]}`)))
	f.Add([]byte(documentOf(`{"domain":"A","deprecated":true,"commands":[{"name":"b","redirect":"C","deprecated":true,"description":"Deprecated. Use C.b"}]},{"domain":"C","commands":[{"name":"b","redirect":"A"}]}`)))
	f.Add([]byte(documentOf(`{"domain":"A","types":[{"id":"L","type":"array","items":{"$ref":"L"}}],"commands":[{"name":"x","parameters":[{"name":"l","$ref":"L"},{"name":"e","type":"string","enum":[]}]}]}`)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := Parse(raw)
		if err != nil {
			return
		}
		for _, d := range p.Domains() {
			p.Members(d.Name)
		}
		for _, name := range p.Names() {
			c, ok := p.Command(name)
			if !ok || c.Name != name {
				t.Fatalf("%s is listed but not found", name)
			}
			if !json.Valid(p.ParamsSchema(c)) || !json.Valid(p.ReturnsSchema(c)) {
				t.Fatalf("%s: a schema is not JSON", name)
			}
			for _, x := range p.Examples(c) {
				if !json.Valid(x.Params) {
					t.Fatalf("%s: an example is not JSON: %s", name, x.Params)
				}
			}
		}
		p.Coverage()
	})
}
