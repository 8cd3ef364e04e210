package cdp

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/learn/eval"
	"github.com/parley-tools/parley/host/search"
)

func searchHost(t testing.TB) *call.Host {
	catalog, err := host.NewCatalog(New(Config{}))
	if err != nil {
		t.Fatal(err)
	}
	h, err := call.New(call.Config{Catalog: catalog, Policy: host.DenyAll{}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestSearch checks that search over the protocol keeps the scores that it reached on the sets of queries.
func TestSearch(t *testing.T) {
	h := searchHost(t)
	for file, least := range map[string]map[string]eval.Score{ // by kind, on all rows
		"cdp.jsonl": {
			"exact":   {Success1: 1, Success5: 1},
			"partial": {Success1: 0.95, Success5: 1},
			"typo":    {Success1: 0.97, Success5: 1},
			"concept": {Success1: 0.8, Success5: 0.95, NDCG10: 0.85},
		},
		"cdp_later.jsonl": {"concept": {Success1: 0.55, Success5: 0.8, NDCG10: 0.6}},
		"cdp_holdout.jsonl": {
			"exact":   {Success1: 1, Success5: 1},
			"partial": {Success1: 0.95, Success5: 1},
			"typo":    {Success1: 0.97, Success5: 1},
			"param":   {Success1: 0.65, Success5: 0.85, NDCG10: 0.65},
			"concept": {Success1: 0.8, Success5: 0.95, NDCG10: 0.8},
		},
		"cdp_hostile.jsonl": {
			"exact":   {Success1: 1, Success5: 1},
			"partial": {Success1: 0.9, Success5: 1},
			"typo":    {Success1: 0.97, Success5: 1},
			"param":   {Success1: 0.8, Success5: 1, NDCG10: 0.8},
			"concept": {Success1: 0.8, Success5: 0.95, NDCG10: 0.8},
		},
	} {
		t.Run(file, func(t *testing.T) {
			f, err := os.Open("../testdata/search/" + file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			set, err := eval.Read(f)
			if err != nil {
				t.Fatal(err)
			}
			r := eval.Evaluate(set, h.Catalog(), search.Order{})
			if len(r.Unknown) > 0 {
				t.Errorf("the set names tools that do not exist: %v", r.Unknown)
			}
			for _, s := range r.Scores {
				t.Logf("%1s %-8s %3d queries: success@1 %.3f, success@5 %.3f, MRR %.3f, NDCG@10 %.3f", s.Half, s.Kind, s.Queries,
					s.Success1, s.Success5, s.MRR, s.NDCG10)
				if l := least[s.Kind]; s.Success1 < l.Success1 || s.Success5 < l.Success5 || s.NDCG10 < l.NDCG10 {
					t.Errorf("%s of half %q: %+v, expected at least %+v", s.Kind, s.Half, s, l)
				}
			}
			halves := 3 // both, a and b
			if set[0].Half == "" {
				halves = 1
			}
			if want := halves * (len(least) + 1); len(r.Scores) != want {
				t.Errorf("%d rows, expected %d", len(r.Scores), want)
			}
		})
	}
}

// TestNavigateAndWait checks that what goes to a page and waits for it in one call is found first, and that its second
// tier names the option.
func TestNavigateAndWait(t *testing.T) {
	h := searchHost(t)
	expectFirst(t, h, map[string]string{
		"navigate and wait":                         "Page.navigate",
		"navigate and wait for load":                "Page.navigate",
		"navigate to a url and wait until loaded":   "Page.navigate",
		"go to url and wait for load":               "Page.navigate",
		"wait for navigation":                       "Page.navigate",
		"wait until the page is loaded":             "Page.navigate",
		"open a page and wait until it is loaded":   "open",
		"open a page and wait for it to load":       "open",
		"reload and wait":                           "Page.reload",
		"reload the page and wait until it is idle": "Page.reload",
		"go back and wait":                          "Page.navigateToHistoryEntry",
	})
	for _, name := range []string{"Page.navigate", "Page.reload", "Page.navigateToHistoryEntry"} {
		docs, err := h.Describe(t.Context(), caller.Principal{}, "cdp."+name, 2)
		if err != nil || !strings.Contains(docs.When, "option wait (load, idle, none)") {
			t.Errorf("tier 2 of %s, %v: when %q", name, err, docs.When)
		}
	}
}

// TestUndoing checks that a tool that undoes something comes first only if the query has a word for that.
func TestUndoing(t *testing.T) {
	expectFirst(t, searchHost(t), map[string]string{
		"override device metrics":       "Emulation.setDeviceMetricsOverride",
		"clear device metrics override": "Emulation.clearDeviceMetricsOverride",
		"reset the overridden metrics":  "Emulation.clearDeviceMetricsOverride",
		"clear browser cookies":         "Network.clearBrowserCookies",
	})
}

// TestWhatOpensAPage checks that whatever a caller calls opening a page leads to the tools that do it, and the page's
// own script to the one that runs it.
func TestWhatOpensAPage(t *testing.T) {
	h := searchHost(t)
	for _, query := range []string{
		"open a page", "open a website", "open a url", "open example.com", "open example.com in the browser",
		"go to a website", "go to google.com", "goto url", "visit a site", "visit https://example.com/",
		"browse to a page", "load a page", "load url",
		"navigate", "navigate to example.com", "show a web page", "open the site", "open link",
	} {
		if got := first(t, h, query); got != "open" && got != "Page.navigate" {
			t.Errorf("%q: %s is first", query, got)
		}
	}
	for _, query := range []string{
		"execute javascript", "run javascript", "run JavaScript", "execute JavaScript", "evaluate JavaScript inside the page",
		"execute a script in the page", "eval",
	} {
		if got := first(t, h, query); got != "Runtime.evaluate" {
			t.Errorf("%q: %s is first", query, got)
		}
	}
	data, _, err := h.Search(t.Context(), caller.Principal{}, search.Query{Text: "read the page"})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range data.Results {
		if r.Name == "cdp.Log.enable" && (i < 2 || r.Confidence == "high") {
			t.Errorf("reading the page: result %d is %s, %s", i, r.Name, r.Confidence)
		}
	}
}

// TestEveryPhrase finds each command by each of its own phrases.
func TestEveryPhrase(t *testing.T) {
	p := New(Config{})
	h := searchHost(t)
	var missed []string
	phrases := 0
	eachCommand(t, func(name, _, _ string) {
		tool, err := p.Tool(name)
		if err != nil || tool == nil {
			t.Fatal(name, err)
		}
		if len(tool.Tasks) == 0 {
			t.Errorf("%s has no phrase", name)
		}
		for _, task := range tool.Tasks {
			phrases++
			data, _, err := h.Search(t.Context(), caller.Principal{}, search.Query{Text: task, Limit: 5})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(data.Results, func(r search.Result) bool { return r.Name == "cdp."+name }) {
				missed = append(missed, name+": "+task)
			}
		}
	})
	if len(missed) > 0 {
		t.Errorf("%d of %d phrases do not find their command among the first five:\n%s", len(missed), phrases,
			strings.Join(missed, "\n"))
	}
}

// TestEveryName finds each command by its name in every naming style.
func TestEveryName(t *testing.T) {
	h := searchHost(t)
	turn := 0
	eachCommand(t, func(name, domain, bare string) {
		turn++
		for i, query := range []string{
			name, "cdp." + name, strings.ToLower(name), strings.ToUpper(name), domain + " " + bare, snake(domain) + "." +
				snake(bare),
			strings.ReplaceAll(snake(name), ".", "_"), "cdp__" + domain + "__" + bare, bare, strings.ToLower(bare), snake(bare),
			strings.ReplaceAll(snake(bare), "_", "-"), strings.ReplaceAll(snake(bare), "_", " "),
		} {
			if (i+turn)%3 != 0 {
				continue // a third of the styles for each name, to save time
			}
			if got := first(t, h, query); got != name && (strings.Contains(query, domain) ||
				!strings.EqualFold(bareOf(got), bare)) {
				t.Errorf("%q: %s is first, expected %s", query, got, name)
			}
		}
	})
}

// TestEveryNameMistyped makes one typo in each command's name: a letter omitted, doubled, wrong or swapped with the
// next.
func TestEveryNameMistyped(t *testing.T) {
	h := searchHost(t)
	r := rand.New(rand.NewPCG(1, 2))
	missed, tried := []string{}, 0
	eachCommand(t, func(name, domain, bare string) {
		if len(bare) < 6 {
			return // "cleer" has the same distance to others
		}
		for _, query := range []string{misspell(r, bare), domain + "." + misspell(r, bare),
			misspell(r, strings.ReplaceAll(snake(bare), "_", " "))} {
			tried++
			if got := first(t, h, query); got != name && !strings.EqualFold(bareOf(got), bare) {
				missed = append(missed, fmt.Sprintf("%q finds %s", query, got))
			}
		}
	})
	least := 0.97
	if !hammer {
		least = 0.88 // of about 200 typos, of which 0.98 are corrected, fewer are by chance once in a billion samples
	}
	if share := 1 - float64(len(missed))/float64(tried); share < least {
		t.Errorf("%.4f of %d typos were corrected:\n%s", share, tried, strings.Join(missed, "\n"))
	} else {
		t.Logf("%.4f of %d typos were corrected", share, tried)
	}
}

// eachCommand calls f with one command in ten: which ones depends on a seed, which is printed, and which PARLEY_SEED
// sets. With PARLEY_HAMMER it calls f with all.
func eachCommand(t *testing.T, f func(name, domain, bare string)) {
	names, err := New(Config{}).Names()
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	if given, err := strconv.ParseUint(os.Getenv("PARLEY_SEED"), 10, 64); err == nil {
		seed = given
	}
	if !hammer {
		t.Logf("PARLEY_SEED=%d", seed)
	}
	sample := rand.New(rand.NewPCG(seed, 0))
	for _, name := range names {
		if domain, bare, ok := strings.Cut(name, "."); ok && (hammer || sample.IntN(10) == 0) {
			f(name, domain, bare)
		}
	}
}

// hammer makes tests take all commands, not a sample of them.
var hammer = os.Getenv("PARLEY_HAMMER") != ""

// expectFirst checks which tool is the first result of each query.
func expectFirst(t *testing.T, h *call.Host, tools map[string]string) {
	t.Helper()
	for query, want := range tools {
		if got := first(t, h, query); got != want {
			t.Errorf("%q: %s is first, expected %s", query, got, want)
		}
	}
}

func first(t *testing.T, h *call.Host, query string) string {
	data, _, err := h.Search(t.Context(), caller.Principal{}, search.Query{Text: query, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(data.Results) == 0 {
		return ""
	}
	return strings.TrimPrefix(data.Results[0].Name, "cdp.")
}

func bareOf(name string) string { return name[strings.IndexByte(name, '.')+1:] }

// snake writes a name in snake case: get_outer_html.
func snake(name string) string {
	var b strings.Builder
	lower := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c >= 'A' && c <= 'Z' && i > 0 && name[i-1] != '.' && (lower(name[i-1]) || i+1 < len(name) && lower(name[i+1])) {
			b.WriteByte('_')
		}
		b.WriteByte(c)
	}
	return strings.ToLower(b.String())
}

// misspell changes one letter after the first.
func misspell(r *rand.Rand, name string) string {
	for {
		i := 1 + r.IntN(len(name)-2)
		wrong := name
		switch r.IntN(4) {
		case 0:
			wrong = name[:i] + name[i+1:]
		case 1:
			wrong = name[:i] + name[i:i+1] + name[i:]
		case 2:
			wrong = name[:i] + string(rune('a'+r.IntN(26))) + name[i+1:]
		case 3:
			wrong = name[:i] + name[i+1:i+2] + name[i:i+1] + name[i+2:]
		}
		if !strings.EqualFold(wrong, name) && strings.Count(wrong, ".") == strings.Count(name, ".") &&
			wrong[len(wrong)-1] != '.' {
			return wrong
		}
	}
}
