package protocol

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sources reads the pinned documents in the order of the embedded form, with the names that the generator corrects.
func sources(t testing.TB) [][]byte {
	t.Helper()
	var list [][]byte
	names, err := os.ReadFile("../gen/names.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"browser_protocol", "js_protocol"} {
		f, err := os.Open("source/" + name + ".json.gz")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(names)) {
			name, right, _ := strings.Cut(strings.TrimSpace(line), "\t")
			if !strings.HasPrefix(line, "#") && right != "-" {
				raw = regexp.MustCompile(`(\W|\\n)`+name+`\b`).ReplaceAll(raw, []byte("${1}"+right))
			}
		}
		list = append(list, raw)
	}
	return list
}

// rebuild reconstructs the source documents from the flat form.
func rebuild(p *Protocol) []document {
	var docs []document
	type placed struct {
		domainRecord
		source sourceDomain
	}
	var all []placed
	count, _ := p.index(kindDomain)
	for i := range count {
		d := p.at(kindDomain, i).domain()
		s := sourceDomain{Domain: d.Name, Description: d.Description, Experimental: d.Experimental, Deprecated: d.Deprecated,
			Dependencies: d.Dependencies}
		for k, list := range []*[]node{&s.Commands, &s.Events, &s.Types} {
			members := make([]memberRecord, d.count[k])
			for j := range members {
				members[j] = p.at(kinds[k], d.first[k]+j).member()
			}
			slices.SortFunc(members, func(a, b memberRecord) int { return cmp.Compare(a.ordinal, b.ordinal) })
			for _, m := range members {
				n := m.node
				if kinds[k] == KindType {
					n.ID, n.Name = n.Name, ""
				}
				*list = append(*list, n)
			}
		}
		all = append(all, placed{d, s})
	}
	slices.SortFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.file, b.file),
			cmp.Compare(a.ordinal, b.ordinal))
	})
	for _, d := range all {
		for len(docs) <= d.file {
			doc := document{}
			doc.Version.Major, doc.Version.Minor = p.Version()[:1], p.Version()[2:]
			docs = append(docs, doc)
		}
		docs[d.file].Domains = append(docs[d.file].Domains, d.source)
	}
	return docs
}

// withoutAdded replaces the descriptions that a reviewed table adds by those of the sources, and restores the order of
// parameters.
func withoutAdded(t *testing.T, docs []document) {
	bare, err := Build("test", Notes{}, sources(t)...)
	if err != nil {
		t.Fatal(err)
	}
	added := map[string]bool{}
	for _, name := range bare.Undescribed() {
		added[name] = true
	}
	own := rebuild(bare)
	for f := range docs {
		for i := range docs[f].Domains {
			d := &docs[f].Domains[i]
			for j := range d.Commands {
				c, from := &d.Commands[j], own[f].Domains[i].Commands[j]
				name := d.Domain + "." + c.Name
				if added[name] {
					c.Description = from.Description
				}
				slices.SortFunc(c.Parameters, func(a, b node) int { // another table reorders them
					at := func(q node) int {
						return slices.IndexFunc(from.Parameters, func(f node) bool { return f.Name == q.Name })
					}
					return cmp.Compare(at(a), at(b))
				})
				for k := range c.Parameters {
					if q := &c.Parameters[k]; added[name+"."+q.Name] {
						q.Description = from.Parameters[k].Description
					}
				}
			}
		}
	}
}

func TestEmbeddedEqualsSource(t *testing.T) {
	docs := rebuild(Embedded())
	withoutAdded(t, docs)
	for i, raw := range sources(t) {
		var want, got any
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(docs[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("document %d: the embedded form differs from its source:\n%s", i, firstDifference("", want, got))
		}
	}
}

// firstDifference describes the first difference between two JSON values.
func firstDifference(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for k, v := range w {
			if !reflect.DeepEqual(v, g[k]) {
				return firstDifference(path+"/"+k, v, g[k])
			}
		}
		for k := range g {
			if _, ok := w[k]; !ok {
				return path + "/" + k + " is not in the source"
			}
		}
	case []any:
		g, _ := got.([]any)
		for i, v := range w {
			if i >= len(g) || !reflect.DeepEqual(v, g[i]) {
				if i < len(g) {
					return firstDifference(path+"/"+string(rune('0'+i%10)), v, g[i])
				}
				return path + " is shorter"
			}
		}
	}
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(got)
	return path + ": source " + string(a) + ", embedded " + string(b)
}
