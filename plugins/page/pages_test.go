package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// node is an interactive element.
type node struct{ Role, Name string }

// interactiveRoles are those that are compared. Options of a native select are not in the page.
var interactiveRoles = strings.Fields("button link textbox searchbox combobox listbox checkbox radio switch slider " +
	"spinbutton tab menuitem menuitemcheckbox menuitemradio treeitem scrollbar DisclosureTriangle ColorWell Date " +
	"DateTime InputTime")

// chromeNodes returns the interactive elements of Chrome's own accessibility tree.
func (c *chrome) chromeNodes(t *testing.T) (all []node) {
	t.Helper()
	raw, err := c.invoke(t.Context(), "Accessibility.getFullAXTree", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value string }
			Node       int    `json:"backendDOMNodeId"`
			ID         string `json:"nodeId"`
			Parent     string `json:"parentId"`
		}
	}
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	inPicker := map[string]bool{}  // what Chrome shows in its own controls
	for _, n := range tree.Nodes { // parents come first
		inPicker[n.ID] = inPicker[n.Parent]
		if inPicker[n.ID] {
			continue
		}
		inPicker[n.ID] = slices.Contains([]string{"Date", "DateTime", "InputTime", "Audio", "Video"}, n.Role.Value)
		if !n.Ignored && n.Node != 0 && slices.Contains(interactiveRoles, n.Role.Value) {
			all = append(all, node{n.Role.Value, strings.Join(strings.Fields(n.Name.Value), " ")})
		}
	}
	return all
}

// differ compares role and name of each interactive element of the current page with Chrome's own tree. It returns how
// many agree, how many there are on either side, and a line for each difference.
func (c *chrome) differ(t *testing.T) (same, union int, differences []string) {
	t.Helper()
	var ours []node
	c.call(t, &ours, "nodes")
	ours = slices.DeleteFunc(ours, func(n node) bool { return n.Role == "option" })
	counts := map[node][2]int{}
	for side, all := range [][]node{ours, c.chromeNodes(t)} {
		for _, n := range all {
			k := counts[n]
			k[side]++
			counts[n] = k
		}
	}
	for n, k := range counts {
		same += min(k[0], k[1])
		union += max(k[0], k[1])
		if k[0] != k[1] {
			differences = append(differences, fmt.Sprintf("%s %q: the script has %d, Chrome %d", n.Role, n.Name, k[0], k[1]))
		}
	}
	sort.Strings(differences)
	return same, union, differences
}

// packages is where the pages of others are; see testdata/pages.
var packages = filepath.Join("..", "..", "testdata", "programs", "node_modules")

// pageSet is a set of pages on which the script agrees with Chrome.
type pageSet struct {
	name    string
	pages   []string
	overall float64 // part of all nodes that agree
	each    float64 // on each page; 0: not checked
}

// readPages returns the sets of testdata/pages.
func readPages(t *testing.T) (sets []pageSet) {
	t.Helper()
	for line := range strings.Lines(string(must(os.ReadFile("testdata/pages")))) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		switch fields := strings.Fields(line); {
		case len(fields) == 0:
		case fields[0] == "set":
			s := pageSet{name: fields[1], overall: must(strconv.ParseFloat(fields[2], 64))}
			if len(fields) > 3 {
				s.each = must(strconv.ParseFloat(fields[3], 64))
			}
			sets = append(sets, s)
		case fields[0] == "-":
			s := &sets[len(sets)-1]
			s.pages = slices.DeleteFunc(s.pages, func(page string) bool { return page == "foreign/"+fields[1] })
		default:
			found := must(filepath.Glob(filepath.Join(packages, filepath.FromSlash(line))))
			if len(found) == 0 && os.Getenv("CI") == "true" {
				t.Fatalf("%s: there are no such pages: make programs", line)
			}
			s := &sets[len(sets)-1]
			for _, path := range found {
				s.pages = append(s.pages, "foreign/"+filepath.ToSlash(must(filepath.Rel(packages, path))))
			}
		}
	}
	return sets
}

// TestRolesAndNames compares role and name of each interactive element with Chrome's own tree, on pages of testdata and
// of others. Of those of others it takes every tenth; PARLEY_HAMMER=1 takes all.
func TestRolesAndNames(t *testing.T) {
	c := startChrome(t)
	own := pageSet{"testdata", nil, 0.99, 0.95}
	for _, page := range must(filepath.Glob("testdata/*.html")) {
		own.pages = append(own.pages, filepath.Base(page))
	}
	for _, set := range append([]pageSet{own}, readPages(t)...) {
		same, union := 0, 0
		for i, page := range set.pages {
			if strings.HasPrefix(page, "foreign/") && i%10 != 0 && os.Getenv("PARLEY_HAMMER") == "" {
				continue
			}
			url := string(must(json.Marshal(map[string]string{"url": c.site.URL + "/" + page})))
			c.wait = "load"
			_, err := c.invoke(t.Context(), "Page.navigate", url)
			if c.wait = ""; err != nil {
				t.Fatal(err)
			}
			pageSame, pageUnion, differences := c.differ(t)
			if len(differences) > 0 {
				t.Logf("%s: %d of %d agree\n%s", page, pageSame, pageUnion, strings.Join(differences, "\n"))
			}
			if float64(pageSame) < set.each*float64(pageUnion) {
				t.Errorf("%s: only %d of %d nodes agree", page, pageSame, pageUnion)
			}
			same, union = same+pageSame, union+pageUnion
		}
		t.Logf("%s: %d of %d nodes agree", set.name, same, union)
		if float64(same) < set.overall*float64(union) {
			t.Errorf("%s: %d of %d nodes agree, less than %.0f %%", set.name, same, union, 100*set.overall)
		}
	}
}
