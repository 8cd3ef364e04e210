package index

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func corpus(t testing.TB) []*Segment {
	return []*Segment{open(t, "cdp", browserDocs), open(t, "text", textDocs), open(t, "github", issueDocs),
		open(t, "flite", audioDocs)}
}

func full(h Hit) string { return h.Plugin + "." + h.Name }

func TestSearch(t *testing.T) {
	segs := corpus(t)
	for _, c := range []struct {
		query, want string // want: the first hit, or with "in N:" before it one of the first N
		why         string // what Why begins with; empty: anything
	}{
		// Names in every style.
		{"getAllCookies", "cdp.Network.getAllCookies", "name"},
		{"get_cookies", "in 2:cdp.Network.getCookies", "name"},
		{"network.getcookies", "cdp.Network.getCookies", "name"},
		{"Network getCookies", "cdp.Network.getCookies", "name"},
		{"NETWORK.GETCOOKIES", "cdp.Network.getCookies", "name"},
		{"cdp__Network__getCookies", "cdp.Network.getCookies", "name"},
		{"cdp.Network.getCookies", "cdp.Network.getCookies", "name"},
		{"network-get-cookies", "cdp.Network.getCookies", "name"},
		{"issue list", "github.issue.list", "name"},
		{"github.issue.list", "github.issue.list", "name"},
		{"encodeBase64", "text.encode_base64", "name"},
		{"jsonToYaml", "text.json-to-yaml", "name"},
		{"how do I call Page.captureScreenshot?", "cdp.Page.captureScreenshot", "name"},
		{"hash", "text.hash", "name"},
		{"find", "text.find", "name"},
		// Parts of names.
		{"captureScreen", "cdp.Page.captureScreenshot", "name part"},
		{"screenshot", "cdp.Page.captureScreenshot", ""},
		{"geolocation", "in 2:cdp.Emulation.setGeolocationOverride", "name part"},
		{"throttling", "cdp.Emulation.setCPUThrottlingRate", "name part"},
		{"outerhtml", "cdp.DOM.getOuterHTML", "name part"},
		{"getResp", "cdp.Network.getResponseBody", "name part"},
		{"base64", "in 2:text.encode_base64", ""},
		// Typos.
		{"getCokies", "in 2:cdp.Network.getCookies", "typo"},
		{"Netwrok.getCokies", "cdp.Network.getCookies", "typo"},
		{"captureScreenshto", "cdp.Page.captureScreenshot", "typo"},
		{"set geolocaton", "cdp.Emulation.setGeolocationOverride", "typo"},
		{"evalaute", "in 2:cdp.Runtime.evaluate", "typo"},
		{"screenshoot", "cdp.Page.captureScreenshot", "typo"},
		{"brekpoint", "cdp.Debugger.setBreakpoint", "typo brekpoint≈breakpoint"},
		{"accesibility tree", "cdp.Accessibility.getFullAXTree", ""},
		{"isue.lst", "github.issue.list", "typo"},
		{"querySelctor", "cdp.DOM.querySelector", "typo"},
		// Addresses.
		{"visit https://shop.example/cart?item=cookie", "cdp.Page.navigate", ""},
		{"navigate http://127.0.0.1:8080/reload", "cdp.Page.navigate", "name"},
		// Other forms of words.
		{"cookie", "in 3:cdp.Network.setCookie", "name part"},
		{"navigating", "cdp.Page.navigate", "name"},
		{"reloaded pages", "cdp.Page.reload", ""},
		{"merging pull requests", "github.pull.merge", ""},
		// Words run together and apart.
		{"useragent", "cdp.Network.setUserAgentOverride", ""},
		{"java script breakpoint", "cdp.Debugger.setBreakpoint", ""},
		{"localstorage", "cdp.DOMStorage.getDOMStorageItems", ""},
		{"query selector all", "cdp.DOM.querySelectorAll", ""},
		// Aliases, tasks, keywords.
		{"refresh", "cdp.Page.reload", `alias "refresh"`},
		{"goto", "cdp.Page.navigate", `alias "goto"`},
		{"take a picture", "cdp.Page.captureScreenshot", `task "take a picture of the page"`},
		{"picture of page", "cdp.Page.captureScreenshot", `task "take a picture of the page"`},
		{"playwright screenshot full page", "cdp.Page.captureScreenshot", `alias "full page screenshot"`},
		{"upload a file", "cdp.DOM.setFileInputFiles", `task "upload a file"`},
		{"simulate slow internet", "cdp.Network.emulateNetworkConditions", "task"},
		{"dark mode", "cdp.Emulation.setEmulatedMedia", "task"},
		{"memory leak", "cdp.HeapProfiler.takeHeapSnapshot", "task"},
		{"tts", "flite.speak", "keyword"},
		{"text to speech", "flite.speak", "task"},
		{"wc", "text.count", "alias"},
		{"javascript execution", "in 3:cdp.Runtime.evaluate", `task "javascript execution"`},
		{"javascript execution", "in 4:cdp.Debugger.evaluateOnCallFrame", ""},
		// Synonyms.
		{"make a photo of the page", "cdp.Page.captureScreenshot", ""},
		{"erase cookies", "in 2:cdp.Network.deleteCookies", ""},
		{"visit a website", "cdp.Page.navigate", ""},
		{"checksum", "text.hash", ""},
		{"swap text pattern", "text.replace", ""},
		{"pretty print json", "text.format_json", ""},
		{"spoof location", "in 2:cdp.Emulation.setGeolocationOverride", ""},
		// Parameters and their values.
		{"captureBeyondViewport", "cdp.Page.captureScreenshot", "parameter"},
		{"mousePressed", "cdp.Input.dispatchMouseEvent", "parameter mousepressed"},
		{"cellular3g", "cdp.Network.emulateNetworkConditions", "parameter cellular3g"},
		{"squash", "github.pull.merge", "parameter squash"},
		{"sha256", "text.hash", "parameter sha256"},
		// Words of descriptions only.
		{"onbeforeunload", "cdp.Page.handleJavaScriptDialog", "description"},
		{"emoji keyboard", "cdp.Input.insertText", "description"},
		// Other alphabets.
		{"天気予報", "flite.wetter", "description"},
		{"zürich", "flite.wetter", "description"},
		// The name of a plugin limits the search to it.
		{"github search", "github.file.search_code", ""},
		{"flite convert", "flite.convert", "name"},
	} {
		r := Search(segs, Query{Text: c.query})
		want, n := c.want, 1
		if rest, ok := strings.CutPrefix(want, "in "); ok {
			fmt.Sscanf(rest, "%d", &n)
			_, want, _ = strings.Cut(rest, ":")
		}
		i := slices.IndexFunc(r.Hits, func(h Hit) bool { return full(h) == want })
		if i < 0 || i >= n {
			var got []string
			for _, h := range r.Hits[:min(5, len(r.Hits))] {
				got = append(got, fmt.Sprintf("%s %.2f (%s)", full(h), h.Score, h.Why))
			}
			t.Errorf("%q: %s is not among the first %d of %s", c.query, want, n, strings.Join(got, ", "))
			continue
		}
		if h := r.Hits[i]; !strings.HasPrefix(h.Why, c.why) {
			t.Errorf("%q: the reason of %s is %q, expected %q", c.query, want, h.Why, c.why)
		}
	}
}

func TestDeprecatedRankLower(t *testing.T) {
	segs := corpus(t)
	for _, c := range []struct{ query, better, worse string }{
		{"override geolocation", "Emulation.setGeolocationOverride", "Page.setGeolocationOverride"},
		{"setGeolocationOverride", "Emulation.setGeolocationOverride", "Page.setGeolocationOverride"},
		{"browser cookies", "Storage.getCookies", "Network.getAllCookies"},
	} {
		hits := Search(segs, Query{Text: c.query}).Hits
		at := func(name string) int { return slices.IndexFunc(hits, func(h Hit) bool { return h.Name == name }) }
		if better, worse := at(c.better), at(c.worse); better < 0 || worse < better || !hits[worse].Deprecated {
			t.Errorf("%q: %s is hit %d, deprecated %s is hit %d", c.query, c.better, better, c.worse, worse)
		}
	}
}

// TestHarmlessFirst checks that among equal matches read-only tools come first, then those that write, then
// destructive ones.
func TestHarmlessFirst(t *testing.T) {
	seg := open(t, "jar", []Doc{
		{Name: "eat_cookie", Effect: "destructive"}, {Name: "add_cookie", Effect: "write"},
		{Name: "see_cookie", Effect: "read"}, {Name: "old_cookie", Effect: "read", Deprecated: true},
	})
	var got []string
	for _, h := range Search([]*Segment{seg}, Query{Text: "cookies"}).Hits {
		got = append(got, h.Name)
	}
	if want := []string{"see_cookie", "add_cookie", "eat_cookie", "old_cookie"}; !slices.Equal(got, want) {
		t.Errorf("got %v, expected %v", got, want)
	}
	for _, query := range []string{"cookie", "cookies"} {
		if h := Search(corpus(t), Query{Text: query}).Hits[0]; full(h) != "cdp.Network.getCookies" {
			t.Errorf("%q: %s is first", query, full(h))
		}
	}
	for query, want := range map[string]string{"add a cookie": "add_cookie", "put a cookie": "add_cookie",
		"which cookies": "see_cookie", "list cookies": "see_cookie"} { // its first word says what it is to do
		if h := Search([]*Segment{seg}, Query{Text: query}).Hits[0]; h.Name != want {
			t.Errorf("%q: %s is first", query, h.Name)
		}
	}
	// A query for its name still puts a destructive tool first.
	if h := Search([]*Segment{seg}, Query{Text: "eat cookie"}).Hits[0]; h.Name != "eat_cookie" || h.Confidence != "high" {
		t.Errorf("got %+v", h)
	}
}

func TestTotalCountsEveryMatch(t *testing.T) {
	want := 0
	for _, d := range browserDocs {
		if d.Kind == "" && strings.Contains(strings.ToLower(d.Name+d.Brief), "cookie") {
			want++
		}
	}
	r := Search(corpus(t)[:1], Query{Text: "cookie", Limit: 2})
	if r.Total != want || len(r.Hits) != 2 {
		t.Errorf("total %d with %d hits, expected %d with 2", r.Total, len(r.Hits), want)
	}
	if r := Search(corpus(t), Query{Text: "cookie", Limit: -1}); len(r.Hits) != r.Total || r.Total != want {
		t.Errorf("without limit: total %d with %d hits, expected %d", r.Total, len(r.Hits), want)
	}
}

func TestFilters(t *testing.T) {
	segs := corpus(t)
	for _, c := range []struct {
		name string
		q    Query
		ok   func(Hit) bool
	}{
		{"group", Query{Text: "cookies", Group: "storage"}, func(h Hit) bool { return h.Group == "Storage" }},
		{"qualified group", Query{Text: "cookies", Group: "cdp.Network"}, func(h Hit) bool { return h.Group == "Network" }},
		{"effect", Query{Text: "cookies", Effect: "destructive"}, func(h Hit) bool { return h.Effect == "destructive" }},
		{"category", Query{Text: "json", Category: "generation"}, func(h Hit) bool { return h.Category == "generation" }},
		{"event", Query{Text: "page request", Kind: "event"}, func(h Hit) bool { return h.Kind == "event" }},
		{"type", Query{Text: "cookie", Kind: "type"}, func(h Hit) bool { return h.Name == "Network.Cookie" }},
		{"tools only", Query{Text: "cookie"}, func(h Hit) bool { return h.Kind == "tool" }},
	} {
		r := Search(segs, c.q)
		if len(r.Hits) == 0 || r.Total < len(r.Hits) {
			t.Errorf("%s: %d hits of %d", c.name, len(r.Hits), r.Total)
		}
		for _, h := range r.Hits {
			if !c.ok(h) {
				t.Errorf("%s: %+v does not pass", c.name, h)
			}
		}
	}
	for _, q := range []Query{{Text: "cookies", Group: "nosuch"}, {Text: "cookies", Kind: "nosuch"}} {
		if r := Search(segs, q); r.Total != 0 || !r.Weak {
			t.Errorf("%+v: %d hits", q, r.Total)
		}
	}
}

func TestConfidence(t *testing.T) {
	segs := corpus(t)
	for query, want := range map[string]string{
		"Page.captureScreenshot":                 "high",
		"take a picture of the page":             "high",
		"upload a file":                          "high",
		"cookies":                                "medium",
		"unfold the purple origami page quickly": "low",
	} {
		r := Search(segs, Query{Text: query})
		if len(r.Hits) == 0 || r.Hits[0].Confidence != want {
			t.Errorf("%q: expected confidence %s of %+v", query, want, r.Hits)
		}
		if r.Weak != (want == "low") || r.Weak != (len(r.Groups) > 0) {
			t.Errorf("%q: weak %v with groups %v", query, r.Weak, r.Groups)
		}
	}
}

// TestAliasesOfOthers checks that an alias, which anybody can give a tool, ranks below the tool of that name.
func TestAliasesOfOthers(t *testing.T) {
	segs := append(corpus(t), open(t, "aaa", []Doc{{Name: "get_it", Brief: "Get it", Params: []Param{{Name: "url"}},
		Aliases: []string{"hash", "capture screenshot", "captureScreenshot", "Page.captureScreenshot", "get cookies"}}}),
		open(t, "text", []Doc{{Name: "hash", Brief: "Compute a digest of a text"}}))
	for query, want := range map[string]string{
		"hash": "text.hash", "text hash": "text.hash", "captureScreenshot": "cdp.Page.captureScreenshot",
		"capture screenshot": "cdp.Page.captureScreenshot", "Page.captureScreenshot": "cdp.Page.captureScreenshot",
		"capturescreenshot": "cdp.Page.captureScreenshot", "getCookies": "cdp.Network.getCookies",
		"get cookies": "cdp.Network.getCookies",
	} {
		if got := names(Search(segs, Query{Text: query})); len(got) == 0 || got[0] != want {
			t.Errorf("%q: got %v, want %s first", query, got, want)
		}
	}
}

func TestNothingFits(t *testing.T) {
	segs := corpus(t)
	if r := Search(segs, Query{Text: "xqzw vwkj"}); r.Total != 0 || !r.Weak || r.Hits != nil {
		t.Errorf("got %+v", r)
	}
	// The documents share no word with the query, but the name of a group is similar.
	seg := open(t, "kitchen", []Doc{{Name: "boil", Group: "Kettle"}, {Name: "bake", Group: "Oven"}})
	if r := Search([]*Segment{seg}, Query{Text: "ktle"}); !slices.Contains(r.Groups, "kitchen.Kettle") {
		t.Errorf("nearest groups %v", r.Groups)
	}
}

func TestExplain(t *testing.T) {
	segs := corpus(t)
	r := Search(segs, Query{Text: "take a picture", Explain: true})
	sum := 0.0
	for _, p := range r.Hits[0].Parts {
		sum += p.Score
	}
	if d := sum - r.Hits[0].Score; d > 0.01 || d < -0.01 {
		t.Errorf("the parts add up to %.4f, the score is %.4f: %+v", sum, r.Hits[0].Score, r.Hits[0].Parts)
	}
	if r := Search(segs, Query{Text: "take a picture"}); r.Hits[0].Parts != nil {
		t.Error("parts without Explain")
	}
}

func TestOrderIsStable(t *testing.T) {
	segs := corpus(t)
	for _, q := range []string{"enable", "cookies", "get page", "evalaute", "json", "list open things of the repository",
		"geolocaton pictre"} {
		want := Search(segs, Query{Text: q})
		reversed := slices.Clone(segs)
		slices.Reverse(reversed)
		for range 10 {
			if got := Search(segs, Query{Text: q}); !reflect.DeepEqual(got, want) {
				t.Fatalf("%q: two searches differ", q)
			}
		}
		if got := Search(reversed, Query{Text: q}); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: the order of the segments changes the result:\n%+v\n%+v", q, got, want)
		}
		for i := 1; i < len(want.Hits); i++ {
			a, b := want.Hits[i-1], want.Hits[i]
			if a.Score < b.Score || a.Score == b.Score && full(a) > full(b) {
				t.Errorf("%q: %s %.4f before %s %.4f", q, full(a), a.Score, full(b), b.Score)
			}
		}
	}
	r := Search(segs, Query{Text: "enable"})
	for i, want := range []string{"cdp.Network.enable", "cdp.Page.enable", "cdp.Runtime.enable"} {
		if full(r.Hits[i]) != want {
			t.Errorf("hit %d is %s, expected %s", i, full(r.Hits[i]), want)
		}
	}
}

// TestFleetIsFair checks that many small plugins do not hide a tool of a large one, nor the large one a tool of a small
// one.
func TestFleetIsFair(t *testing.T) {
	segs, _ := fleet(t, 300, 10)
	segs = append(segs, corpus(t)...)
	for query, want := range map[string]string{
		"take a picture of the page": "cdp.Page.captureScreenshot",
		"clear browser cookies":      "cdp.Network.clearBrowserCookies",
		"evaluate expression":        "cdp.Runtime.evaluate",
		"network conditions":         "cdp.Network.emulateNetworkConditions",
		"say text aloud":             "flite.speak",
		"merge a pull request":       "github.pull.merge",
		"set geolocaton":             "cdp.Emulation.setGeolocationOverride",
		"list voices":                "flite.voices",
	} {
		if r := Search(segs, Query{Text: query}); len(r.Hits) == 0 || full(r.Hits[0]) != want {
			var got []string
			for _, h := range r.Hits[:min(4, len(r.Hits))] {
				got = append(got, fmt.Sprintf("%s %.2f (%s)", full(h), h.Score, h.Why))
			}
			t.Errorf("%q: expected %s, got %s", query, want, strings.Join(got, ", "))
		}
	}
}

func TestOddQueries(t *testing.T) {
	segs := corpus(t)
	for _, q := range []string{
		"", " ", "\x00", "\x00\x00cookies\x00", "🎉", "🍪🍪", "\xff\xfe", "...", "a", "the", "of the to",
		strings.Repeat("cookie ", 2000), strings.Repeat("x", 10<<10), strings.Repeat("aB", 6000),
		strings.Repeat("ab cd", 3000),
		strings.Repeat("é", 9000), strings.Repeat("猫", 5000), strings.Repeat("'", 9000), strings.Repeat("._", 9000),
		".*", "(a+)+$", "[", "get.*Cookies", "'; DROP TABLE tools; --", "\" OR 1=1", "%s%n", "../../etc/passwd", "<script>",
		"печенье", "ملفات", "쿠키 가져오기", "ͣͣͣͣ", "İ", "ﬀ", "ǅ", "\u202ecookies", "get\u200bCookies", "Äpfel_Birnen.Größe",
	} {
		for _, kind := range []string{"", "event", "type"} {
			r := Search(segs, Query{Text: q, Kind: kind, Limit: -1, Explain: true})
			for _, h := range r.Hits {
				if h.Score < 0 || h.Score > 1 || h.Why == "" || h.Confidence == "" {
					t.Errorf("%.40q: %+v", q, h)
				}
			}
		}
	}
	for q, want := range map[string]bool{"": false, "\x00": false, "🎉": false, "\x00\x00cookies\x00": true,
		"get.*Cookies": true, "SELECT * FROM cookies": true} {
		if r := Search(segs, Query{Text: q}); r.Total > 0 != want {
			t.Errorf("%q: %d hits", q, r.Total)
		}
	}
	if r := Search(nil, Query{Text: "cookies"}); r.Total != 0 || !r.Weak {
		t.Errorf("without segments: %+v", r)
	}
}

func FuzzSearch(f *testing.F) {
	segs := corpus(f)
	for _, q := range []string{"getCookies", "take a picture", "Netwrok.getCokies", "天気 予報", "useragent", "x\x00y", "",
		"🎉 don't"} {
		f.Add(q, "", "", 0)
	}
	f.Add("cookies", "cdp.Network", "type", -1)
	f.Fuzz(func(t *testing.T, text, group, kind string, limit int) {
		q := Query{Text: text, Group: group, Kind: kind, Limit: min(limit, 1000), Explain: true}
		r := Search(segs, q)
		if len(r.Hits) > r.Total || r.Weak != (len(r.Hits) == 0 || r.Hits[0].Confidence == "low") {
			t.Fatalf("%d hits of %d, weak %v", len(r.Hits), r.Total, r.Weak)
		}
		for i, h := range r.Hits {
			if !(h.Score >= 0 && h.Score <= 1) || h.Why == "" || i > 0 && h.Score > r.Hits[i-1].Score {
				t.Fatalf("hit %d: %+v", i, h)
			}
		}
		if again := Search(segs, q); !reflect.DeepEqual(r, again) {
			t.Fatal("two searches differ")
		}
	})
}

// TestNameAfterPlugin checks that the text after a plugin's name matches a whole name before it matches the end of one.
func TestNameAfterPlugin(t *testing.T) {
	seg := open(t, "cdp", []Doc{{Name: "Page.close", Effect: "read"}, {Name: "IO.close"},
		{Name: "close", Effect: "destructive"}})
	for _, query := range []string{"cdp.close", "cdp close", "cdp__close", "CDP.CLOSE"} {
		if h := Search([]*Segment{seg}, Query{Text: query}).Hits; len(h) != 3 || h[0].Name != "close" {
			t.Errorf("%q: %+v", query, h)
		}
	}
}

// TestParameterWithStopWord checks that a parameter matches as a whole even if all its parts but one are stop words.
func TestParameterWithStopWord(t *testing.T) {
	seg := open(t, "cdp", []Doc{
		{Name: "Network.setCookie", Brief: "Set a cookie", Params: []Param{{Name: "sameSite", Enum: []string{"Strict"}}}},
		{Name: "Network.fetchSite", Brief: "Fetch the site of an origin"},
	})
	for _, h := range Search([]*Segment{seg}, Query{Text: "sameSite"}).Hits {
		if h.Name == "Network.setCookie" && h.Why != "parameter samesite" {
			t.Errorf("found for %q", h.Why)
		}
	}
}

// TestBriefInFull checks that a tool whose brief is what the query says comes before those whose names have more of it.
func TestBriefInFull(t *testing.T) {
	docs := []Doc{{Name: "post", Brief: "Create a customer"}}
	for _, part := range strings.Fields("card source session balance coupon invoice") {
		docs = append(docs, Doc{Name: "post-customer-" + part, Brief: "Create a " + part})
	}
	seg := open(t, "shop", docs)
	for _, query := range []string{"create a customer", "create customers", "how do I create a new customer"} {
		if hits := Search([]*Segment{seg}, Query{Text: query}).Hits; len(hits) == 0 || hits[0].Name != "post" {
			t.Errorf("%s: %v", query, hits)
		}
	}
}

// TestTwoTyposInShortWord checks that two typos in a word of five letters are corrected only if that word is the whole
// query, because then there is no other evidence.
func TestTwoTyposInShortWord(t *testing.T) {
	var events []Doc // their words come first and do not match
	for _, name := range []string{"abash", "abate", "about", "above", "annul", "apish"} {
		events = append(events, Doc{Name: name, Kind: "event"})
	}
	seg := open(t, "cdp", append(events, Doc{Name: "Page.launch"}, Doc{Name: "Page.enable"}))
	for query, want := range map[string]string{"lunhc": "Page.launch", "enbal": "Page.enable"} {
		r := Search([]*Segment{seg}, Query{Text: query})
		if len(r.Hits) == 0 || r.Hits[0].Name != want || !strings.HasPrefix(r.Hits[0].Why, "typo") {
			t.Errorf("%q: %+v", query, r.Hits)
		}
	}
	if r := Search([]*Segment{seg}, Query{Text: "paper lunhc"}); r.Total != 0 {
		t.Errorf("beside another word: %+v", r.Hits)
	}
}

// TestExplainedPartsAddUp checks that the parts of a score add up to it.
func TestExplainedPartsAddUp(t *testing.T) {
	for _, query := range []string{"getCookies", "take a picture", "delete cookies", "override geolocation", "refresh",
		"captureScrenshot"} {
		for _, h := range Search(corpus(t), Query{Text: query, Explain: true}).Hits {
			sum := 0.0
			for _, p := range h.Parts {
				sum += p.Score
			}
			if math.Abs(sum-h.Score) > 0.001 {
				t.Errorf("%q: %s has %.4f, its parts %.4f", query, full(h), h.Score, sum)
			}
		}
	}
}
