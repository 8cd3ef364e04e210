package main

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest/lint"

	"github.com/parley-tools/parley/bench/internal/ranked"
	"github.com/parley-tools/parley/bench/internal/tree"
)

// lines reads a file of this folder.
func lines[T any](t *testing.T, name string) []T {
	t.Helper()
	if err := tree.Enter(); err != nil {
		t.Fatal(err)
	}
	list, err := read[T](name)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// listed returns the qualified names of all tools.
func listed(t *testing.T) map[string]bool {
	all := map[string]bool{}
	for _, d := range lines[digest](t, "lists.jsonl") {
		for _, tool := range d.Tools {
			all[d.Server+"."+tool] = true
		}
	}
	return all
}

// TestServers checks that each server has a digest, and comes from a package.
func TestServers(t *testing.T) {
	digests := lines[digest](t, "lists.jsonl")
	var packages struct{ Dependencies map[string]string }
	data, err := os.ReadFile("bench/catalogs/package.json")
	if err == nil {
		err = json.Unmarshal(data, &packages)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(servers) != 30 || len(digests) != 30 || len(packages.Dependencies) != 30 {
		t.Errorf("%d servers, %d digests, %d packages, want 30", len(servers), len(digests), len(packages.Dependencies))
	}
	for i, s := range servers {
		if d := digests[i]; d.Server != s.Name || len(d.SHA256) != 64 || len(d.Tools) == 0 {
			t.Errorf("%s: %v", s.Name, d)
		}
		from := func(name string) bool { return strings.HasPrefix(s.Command[0], name+"/") }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(packages.Dependencies)), from) {
			t.Errorf("%s: %s is in no package", s.Name, s.Command[0])
		}
	}
}

// TestQueries checks that the tasks are for tools that exist, five for each server, and that the wishes have none.
func TestQueries(t *testing.T) {
	tools, seen, halves, kinds := listed(t), map[string]bool{}, map[string]int{}, map[string]int{}
	others, err := ranked.Foreign("testdata/search/others_tools.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	tasks, wishes := lines[query](t, "queries.jsonl"), lines[query](t, "wishes.jsonl")
	if len(tasks) != 5*len(servers) || len(wishes) != 100 {
		t.Errorf("%d tasks, %d wishes", len(tasks), len(wishes))
	}
	for i, q := range slices.Concat(tasks, wishes) {
		if seen[q.Query] {
			t.Errorf("%q is there twice", q.Query)
		}
		seen[q.Query] = true
		best := 0.0
		for name, grade := range q.Relevant {
			if best = max(best, grade); !tools[name] || grade != 2 && grade != 3 {
				t.Errorf("%q: there is no tool %s, or its grade is %g", q.Query, name, grade)
			}
		}
		if i >= len(tasks) {
			halves["wish "+q.Half]++
			if len(q.Relevant) > 0 || q.Kind != "" {
				t.Errorf("wish %q: %v %s", q.Query, q.Relevant, q.Kind)
			}
			for _, name := range q.Except {
				if !slices.ContainsFunc(others, func(p ranked.Plugin) bool { return p.About.Name == name }) {
					t.Errorf("wish %q: there is no server %s", q.Query, name)
				}
			}
			continue
		}
		halves[q.Half]++
		kinds[q.Kind]++
		of := func(name string) bool { return strings.HasPrefix(name, servers[i/5].Name+".") }
		if best != 3 || !slices.ContainsFunc(slices.Collect(maps.Keys(q.Relevant)), of) {
			t.Errorf("%q: %v", q.Query, q.Relevant)
		}
	}
	if !maps.Equal(halves, map[string]int{"a": 75, "b": 75, "wish a": 50, "wish b": 50}) {
		t.Errorf("halves: %v", halves)
	}
	if kinds["sentence"] < 75 || len(kinds) != 3 {
		t.Errorf("kinds: %v", kinds)
	}
}

// TestLanguages checks that there are as many English queries as others, in ten languages.
func TestLanguages(t *testing.T) {
	count := map[string]int{}
	for _, l := range lines[struct{ Query, Language string }](t, "languages.jsonl") {
		count[l.Language]++
	}
	for language, n := range count {
		if want := map[bool]int{true: 20, false: 2}[language == "en"]; n != want {
			t.Errorf("%d queries in %s, want %d", n, language, want)
		}
	}
	if len(count) != 11 {
		t.Errorf("languages: %v", count)
	}
}

// TestContradictions checks that the contradictions are in tools that exist, each in another text.
func TestContradictions(t *testing.T) {
	tools, places, kinds := listed(t), map[string]bool{}, map[string][2]int{}
	all := lines[contradiction](t, "contradictions.jsonl")
	for _, c := range all {
		place := c.Server + "." + c.Tool + c.At
		if !tools[c.Server+"."+c.Tool] || !strings.HasSuffix(c.At, "/description") || c.Truth == "" || places[place] {
			t.Errorf("%s: %+v", place, c)
		}
		places[place] = true
		kinds[c.Kind] = [2]int{kinds[c.Kind][0] + 1}
	}
	kinds["all"] = [2]int{len(all)}
	text := prose(kinds, 1, 0)
	for kind := range kinds {
		if !strings.Contains(text, "| "+kind+" | ") {
			t.Errorf("the report has no line for %s", kind)
		}
	}
	if len(all) != 30 {
		t.Errorf("%d contradictions", len(all))
	}
}

// TestDigest checks that a digest is that of the list, however it is written.
func TestDigest(t *testing.T) {
	of := func(tool string) string {
		d, err := digestOf("x", []json.RawMessage{json.RawMessage(tool)})
		if err != nil || !slices.Equal(d.Tools, []string{"a"}) {
			t.Fatal(d, err)
		}
		return d.SHA256
	}
	one := of(`{"name":"a","inputSchema":{"maximum":9007199254740993}}`)
	if of(`{ "inputSchema": {"maximum": 9007199254740993}, "name": "a"}`) != one {
		t.Error("the order of keys or white space changes the digest")
	}
	if of(`{"name":"a","inputSchema":{"maximum":9007199254740992}}`) == one {
		t.Error("another maximum has the same digest")
	}
	if check(map[string][]json.RawMessage{}) == nil {
		t.Error("lists without tools are those of lists.jsonl")
	}
}

func TestJudge(t *testing.T) {
	task := query{Relevant: map[string]float64{"git.log": 3, "git.show": 1, "other.log": 2}}
	wish := query{Except: []string{"music"}}
	here, apart := map[string]bool{"git": true}, map[string]bool{"music": true}
	below := []string{"a.a", "a.b", "a.c", "a.d", "a.e", "git.log"}
	for name, c := range map[string]struct {
		query query
		found found
		has   map[string]bool
		want  tally
	}{
		"right":                   {task, found{names: []string{"a.b", "git.log"}}, here, tally{answered: 1}},
		"right, warned":           {task, found{names: []string{"git.log"}, weak: true}, here, tally{answered: 1, warned: 1}},
		"another server, related": {task, found{names: []string{"git.show"}}, here, tally{}},
		"below the first five":    {task, found{names: below}, here, tally{}},
		"not there":               {task, found{names: []string{"a.b"}}, apart, tally{unanswerable: 1, trusted: 1}},
		"not there, warned":       {task, found{weak: true}, apart, tally{unanswerable: 1}},
		"wish":                    {wish, found{}, here, tally{unanswerable: 1, trusted: 1}},
		"wish of a server":        {wish, found{}, apart, tally{}},
	} {
		if got := judge(c.query, c.found, c.has); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
	_, _, sum := tally{4, 1, 2, 1}.rates()
	if text := row("5", "b", []tally{{4, 1, 2, 1}}); sum != 0.75 ||
		text != "| 5 | b | 4 | 0.250 | 2 | 0.500 | 0.750 (0.750 to 0.750) |\n" {
		t.Errorf("%g, %s", sum, text)
	}
}

// TestReplaced checks that a text is replaced in its place, and that a finding is matched with it.
func TestReplaced(t *testing.T) {
	tool := json.RawMessage(`{"name":"a","description":"Do it. Or not","inputSchema":{"properties":{"n":{"description":"x"}}}}`)
	raw, err := replaced(tool, "/inputSchema/properties/n/description", "y")
	if err != nil || !strings.Contains(string(raw), `"n":{"description":"y"}`) {
		t.Errorf("%s, %v", raw, err)
	}
	if _, err := replaced(tool, "/inputSchema/properties/m/description", "y"); err == nil {
		t.Error("a parameter that is missing was replaced")
	}
	got, err := importedTool(raw)
	if err != nil || got.Docs.Brief != "Do it" || got.Docs.Standard != "Or not" || !strings.Contains(string(got.Params), `"y"`) {
		t.Errorf("%+v, %v", got, err)
	}
	field, whole := contradiction{At: "/inputSchema/properties/n/description"}, contradiction{At: "/description"}
	for pointer, want := range map[string][2]bool{
		"/tools/0/params/properties/n":             {true, true},
		"/tools/0/params/properties/n/description": {true, true},
		"/tools/0/params/properties/no":            {false, true},
		"/tools/0/docs/brief":                      {false, true},
		"/tools/1/params/properties/n":             {false, false},
	} {
		if f := (lint.Finding{Pointer: pointer}); field.names(f) != want[0] || whole.names(f) != want[1] {
			t.Errorf("%s: %t for the field, %t for the tool", pointer, field.names(f), whole.names(f))
		}
	}
}
