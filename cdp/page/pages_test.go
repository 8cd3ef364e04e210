package page_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"
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

// nodesScript returns role and name of each interactive element, for the comparison with Chrome's own tree. In that
// tree an element that can be edited has no role of its own.
const nodesScript = `
exports.nodes = function () {
	readAgain();
	partial = false;
	deadline = clock() + 20_000;
	return allElements().filter((el) => visible(el) && interactive.has(role(el)) &&
		!(editable(el) && !has(el, "role"))).map((el) => ({role: role(el), name: name(el)}));
};
`

// differ compares role and name of each interactive element of the current page with Chrome's own tree. It returns how
// many agree, how many there are on either side, and a line for each difference.
func (c *chrome) differ(t *testing.T) (same, union int, differences []string) {
	t.Helper()
	var ours []node
	script := c.script
	c.script = append(slices.Clone(script), nodesScript...)
	c.call(t, &ours, "nodes")
	c.script = script
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

// TestNamedTargets chooses 100 controls of the same pages whose role and name Chrome's own tree has once, whatever the
// script thinks of them. An agent that is told the name gets nearly each from the first snapshot or by one search of at
// most 150 tokens.
func TestNamedTargets(t *testing.T) {
	const wanted, limit = 100, 150
	c := startChrome(t)
	var pages []string
	for _, page := range must(filepath.Glob("testdata/*.html")) {
		pages = append(pages, filepath.Base(page))
	}
	for _, set := range readPages(t) {
		for i := 5; i < len(set.pages); i += 16 {
			pages = append(pages, set.pages[i])
		}
	}
	random := rand.New(rand.NewPCG(18, 0))
	shown, found, tried := 0, 0, 0
	for i, page := range pages {
		url := string(must(json.Marshal(map[string]string{"url": c.site.URL + "/" + page})))
		c.wait = "load"
		_, err := c.invoke(t.Context(), "Page.navigate", url)
		if c.wait = ""; err != nil {
			t.Fatal(err)
		}
		counts := map[node]int{}
		for _, n := range c.chromeNodes(t) {
			counts[n]++
		}
		var targets []node
		for _, n := range slices.SortedFunc(maps.Keys(counts), func(a, b node) int {
			return strings.Compare(a.Role+a.Name, b.Role+b.Name)
		}) {
			if counts[n] == 1 && n.Name != "" {
				targets = append(targets, n)
			}
		}
		random.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
		share := min((wanted-tried)/(len(pages)-i)+4, wanted-tried) // some pages have few
		snapshot, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500})
		if err != nil {
			t.Fatalf("%s: %v", page, err)
		}
		for _, n := range targets[:min(share, len(targets))] {
			tried++
			role := strings.Replace(n.Role, "DisclosureTriangle", "summary", 1)
			if strings.Contains(snapshot.Text, fmt.Sprintf("%s \"%s", role, clip(n.Name, 39))) {
				shown++
				continue
			}
			r, err := run(t, c, Find, FindParams{Element: fmt.Sprintf("%s %q", n.Role, n.Name), Limit: 5})
			if size := len(effects(r)) / bytesPerToken; err == nil && r.Total == 1 && size <= limit {
				found++
				continue
			}
			t.Logf("%s: %s %q is not in the snapshot, and the search returns %s, %v", page, n.Role, n.Name, effects(r), err)
		}
	}
	t.Logf("%d pages, %d targets: %d in the snapshot, %d by a search", len(pages), tried, shown, found)
	if 100*(shown+found) < 95*tried || tried < wanted*9/10 && os.Getenv("CI") == "true" {
		t.Errorf("of %d targets %d were in the snapshot and %d found", tried, shown, found)
	}
}

// TestManyElements looks at a page of more than 12,000 elements, which takes at most one second in the page, asserted
// at ten times that.
func TestManyElements(t *testing.T) {
	c := startChrome(t)
	c.open(t, cards(2000))
	if n := c.evaluate(t, "document.querySelectorAll('*').length"); must(strconv.Atoi(n)) < 12000 {
		t.Fatalf("the page has %s elements", n)
	}
	for _, function := range []string{"snapshot", "text", "find"} {
		var result any
		arg := map[string]any{}
		if function == "find" {
			arg["word"] = "Buy 1999"
		}
		began := time.Now()
		c.call(t, &result, function, arg)
		took := time.Since(began)
		if t.Logf("%s: %s", function, took.Round(time.Millisecond)); took > 10*time.Second {
			t.Errorf("%s takes %s", function, took)
		}
	}
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
