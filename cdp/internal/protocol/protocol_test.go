package protocol

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/parley-tools/parley/manifest/schema"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sourceCounts is a source document, decoded without this package's types.
type sourceCounts struct {
	Domains []struct {
		Domain   string
		Commands []struct {
			Name, Description        string
			Deprecated, Experimental bool
			Parameters               []struct{ Name, Description string }
		}
		Events []struct{ Name, Description string }
		Types  []struct{ ID string }
	}
}

func TestCountsEqualTheSource(t *testing.T) {
	p := Embedded()
	bare, err := Build("test", Notes{}, sources(t)...)
	if err != nil {
		t.Fatal(err)
	}
	added := map[string]bool{} // described by the reviewed table
	for _, name := range bare.Undescribed() {
		added[name] = true
	}
	want := Coverage{}
	for _, raw := range sources(t) {
		var doc sourceCounts
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		for _, d := range doc.Domains {
			row, ok := p.Domain(d.Domain)
			if !ok || row.Commands != len(d.Commands) || row.Events != len(d.Events) || row.Types != len(d.Types) {
				t.Errorf("domain %s: %+v, the source has %d, %d, %d", d.Domain, row, len(d.Commands), len(d.Events), len(d.Types))
			}
			if n := len(p.Members(d.Domain)); n != len(d.Commands)+len(d.Events)+len(d.Types) {
				t.Errorf("domain %s lists %d members", d.Domain, n)
			}
			want.Domains++
			want.Commands += len(d.Commands)
			want.Events += len(d.Events)
			want.Types += len(d.Types)
			for _, c := range d.Commands {
				want.Parameters += len(c.Parameters)
				want.ExperimentalCommands += btoi(c.Experimental)
				want.DeprecatedCommands += btoi(c.Deprecated)
				name := d.Domain + "." + c.Name
				want.DescribedCommands += btoi(c.Description != "" || added[name])
				for _, q := range c.Parameters {
					want.DescribedParameters += btoi(q.Description != "" || added[name+"."+q.Name])
				}
				found, ok := p.Command(d.Domain + "." + c.Name)
				if !ok || found.Name != d.Domain+"."+c.Name {
					t.Errorf("command %s.%s is not found", d.Domain, c.Name)
				}
			}
			for _, e := range d.Events {
				want.DescribedEvents += btoi(e.Description != "")
				if found, ok := p.Event(d.Domain + "." + e.Name); !ok || found.Name != d.Domain+"."+e.Name {
					t.Errorf("event %s.%s is not found", d.Domain, e.Name)
				}
			}
			for _, y := range d.Types {
				if found, ok := p.Type(d.Domain + "." + y.ID); !ok || found.Name != d.Domain+"."+y.ID {
					t.Errorf("type %s.%s is not found", d.Domain, y.ID)
				}
			}
		}
	}
	for _, name := range p.Names() {
		c, _ := p.Command(name)
		if len(p.Examples(c)) == 0 {
			t.Errorf("%s has no example", name)
		}
	}
	if got := p.Coverage(); got != want {
		t.Errorf("coverage\n got %+v\nwant %+v", got, want)
	}
	if got := len(p.Names()); got != want.Commands {
		t.Errorf("%d names, %d commands", got, want.Commands)
	}
	if p.Version() != "1.3" || !strings.HasPrefix(p.Revision(), "0.0.") {
		t.Errorf("version %q, revision %q", p.Version(), p.Revision())
	}
}

// TestEverythingIsDescribed checks that no command or parameter is described by its name alone, and that the texts of
// the protocol itself stay as they are.
func TestEverythingIsDescribed(t *testing.T) {
	p := Embedded()
	for _, name := range p.Undescribed() {
		t.Errorf("the description of %s only repeats the name; add one to descriptions.tsv", name)
	}
	bare, err := Build("test", Notes{}, sources(t)...)
	if err != nil {
		t.Fatal(err)
	}
	undescribed := bare.Undescribed()
	if len(undescribed) < 200 {
		t.Fatalf("%d are described by the reviewed table", len(undescribed))
	}
	for _, name := range p.Names() {
		got, _ := p.Command(name)
		want, _ := bare.Command(name)
		if got.Description != want.Description && !slices.Contains(undescribed, name) {
			t.Errorf("%s: %q, the protocol has %q", name, got.Description, want.Description)
		}
		for _, q := range got.Params {
			own := want.Params[slices.IndexFunc(want.Params, func(o Param) bool { return o.Name == q.Name })]
			if q.Binary != own.Binary || q.Description != own.Description && !slices.Contains(undescribed, name+"."+q.Name) {
				t.Errorf("%s of %s: %q, the protocol has %q", q.Name, name, q.Description, own.Description)
			}
		}
	}
	// What a newer browser describes itself is not replaced, and what it does not describe gets the known text.
	live, err := Parse([]byte(`{"version":{"major":"1","minor":"3"},"domains":[{"domain":"Profiler","commands":[{"name":"start",` +
		`"description":"Chrome's own text."},{"name":"stop"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	start, _ := live.Command("Profiler.start")
	stop, _ := live.Command("Profiler.stop")
	known, _ := p.Command("Profiler.stop")
	if start.Description != "Chrome's own text." || stop.Description != known.Description {
		t.Errorf("start: %q, stop: %q", start.Description, stop.Description)
	}
}

func TestLookup(t *testing.T) {
	p := Embedded()
	for _, name := range []string{"Network.getCookies", "network.getcookies", "NETWORK.GETCOOKIES"} {
		if c, ok := p.Command(name); !ok || c.Name != "Network.getCookies" {
			t.Errorf("%s: found %v, %v", name, c, ok)
		}
	}
	for _, name := range []string{"", ".", "Network", "Network.", "Network.getCookie", "Network.getCookiesX", "getCookies",
		"Network.getCookies.x", "Ñetwork.getCookies", "\x00"} {
		if c, ok := p.Command(name); ok {
			t.Errorf("%q: found %s", name, c.Name)
		}
		if p.Members(name) != nil && name != "Network" {
			t.Errorf("%q has members", name)
		}
	}
	if d, ok := p.Domain("cacheSTORAGE"); !ok || d.Name != "CacheStorage" {
		t.Errorf("cacheSTORAGE: %+v, %v", d, ok)
	}
	// Commands, events and types are separate.
	if _, ok := p.Event("Network.getCookies"); ok {
		t.Error("Network.getCookies is found as an event")
	}
	if e, ok := p.Event("Network.requestWillBeSent"); !ok || len(e.Fields) == 0 || e.Fields[0].Ref != "Network.RequestId" {
		t.Errorf("Network.requestWillBeSent: %+v", e)
	}
	if y, ok := p.Type("DOM.Quad"); !ok || y.Fields != nil {
		t.Errorf("DOM.Quad: %+v", y)
	}
	if y, ok := p.Type("Network.Cookie"); !ok || len(y.Fields) < 10 {
		t.Errorf("Network.Cookie: %+v", y)
	}
}

func TestRedirects(t *testing.T) {
	p := Embedded()
	for name, target := range map[string]string{
		"DOM.hideHighlight":                 "Overlay.hideHighlight",
		"DOM.highlightNode":                 "Overlay.highlightNode",
		"DOM.highlightRect":                 "Overlay.highlightRect",
		"Network.setUserAgentOverride":      "Emulation.setUserAgentOverride",
		"Page.setDeviceMetricsOverride":     "Emulation.setDeviceMetricsOverride",
		"Page.setTouchEmulationEnabled":     "Emulation.setTouchEmulationEnabled",
		"Page.setDeviceOrientationOverride": "DeviceOrientation.setDeviceOrientationOverride",
		"Runtime.setAsyncCallStackDepth":    "Debugger.setAsyncCallStackDepth",
	} {
		c, _ := p.Command(name)
		own, ok := p.Command(target)
		if !ok || c.Redirect != target {
			t.Errorf("%s redirects to %q, expected %s", name, c.Redirect, target)
			continue
		}
		if a, b := p.ParamsSchema(c), p.ParamsSchema(own); !bytes.Equal(a, b) {
			t.Errorf("%s accepts\n%s\nbut %s accepts\n%s", name, a, target, b)
		}
	}
	// A command whose target does not exist keeps its own parameters.
	c, _ := p.Command("Page.deleteCookie")
	if c.Redirect != "" || len(c.Params) != 2 || c.Params[0].Name != "cookieName" {
		t.Errorf("Page.deleteCookie: %+v", c)
	}
}

func TestDeprecated(t *testing.T) {
	p := Embedded()
	for _, name := range p.Names() {
		c, _ := p.Command(name)
		if !c.Deprecated {
			if c.DeprecationMessage != "" || c.Use != "" {
				t.Errorf("%s is not deprecated but has the message %q", name, c.DeprecationMessage)
			}
			continue
		}
		if c.DeprecationMessage == "" {
			t.Errorf("%s is deprecated without a replacement", name)
		}
		if c.Use != "" {
			if use, ok := p.Command(c.Use); !ok || use.Deprecated || !strings.Contains(c.DeprecationMessage, c.Use) {
				t.Errorf("%s: %q does not name a command that can be used instead", name, c.DeprecationMessage)
			}
		}
	}
	// For commands of a live protocol that are not reviewed, the replacement is read from the protocol's own text.
	bare, err := Build("test", Notes{}, sources(t)...)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Browser.grantPermissions":       "Browser.setPermission",
		"CSS.setContainerQueryText":      "CSS.setContainerQueryConditionText",
		"DOM.getFlattenedDocument":       "DOMSnapshot.captureSnapshot",
		"Debugger.getWasmBytecode":       "Debugger.getScriptSource",
		"Network.getAllCookies":          "Storage.getCookies",
		"Page.addScriptToEvaluateOnLoad": "Page.addScriptToEvaluateOnNewDocument",
		"Page.clearGeolocationOverride":  "Emulation.clearGeolocationOverride",
		"Storage.getStorageKeyForFrame":  "Storage.getStorageKey",
		"Emulation.canEmulate":           "",
		"Console.enable":                 "",
	} {
		c, _ := bare.Command(name)
		if c.Use != want || c.DeprecationMessage == "" {
			t.Errorf("%s: read %q (%q) from the text, expected %q", name, c.Use, c.DeprecationMessage, want)
		}
	}
}

func TestEnums(t *testing.T) {
	p := Embedded()
	for _, test := range []struct{ command, param, first string }{
		{"Page.captureScreenshot", "format", "jpeg"},                                           // its own
		{"Network.setCookie", "sameSite", "Strict"},                                            // of its type
		{"DOMDebugger.setBreakOnCSPViolation", "violationTypes", "trustedtype-sink-violation"}, // of the type of its items
		{"Emulation.setUserAgentOverride", "userAgent", ""},
	} {
		c, _ := p.Command(test.command)
		i := slices.IndexFunc(c.Params, func(q Param) bool { return q.Name == test.param })
		if i < 0 {
			t.Fatalf("%s has no %s", test.command, test.param)
		}
		if q := c.Params[i]; test.first == "" && q.Enum != nil || test.first != "" &&
			(len(q.Enum) == 0 || q.Enum[0] != test.first) {
			t.Errorf("%s %s: %v, expected %q first", test.command, test.param, q.Enum, test.first)
		}
	}
}

func TestEffects(t *testing.T) {
	p := Embedded()
	for name, want := range map[string]Effect{
		"Network.getCookies": Read, "Network.enable": Read, "Page.captureScreenshot": Read, "Page.navigate": Write,
		"Runtime.evaluate": Write,
		"Fetch.enable":     Write, "Browser.close": Destructive, "Network.clearBrowserCookies": Destructive,
		"Storage.clearDataForOrigin":    Destructive,
		"Target.exposeDevToolsProtocol": Destructive, "DOMStorage.setDOMStorageItem": Write,
	} {
		if c, _ := p.Command(name); c.Effect != want {
			t.Errorf("%s is %s, expected %s", name, c.Effect, want)
		}
	}
	for _, name := range p.Names() {
		c, _ := p.Command(name)
		if c.Effect != Read && c.Effect != Write && c.Effect != Destructive {
			t.Errorf("%s has effect %q", name, c.Effect)
		}
	}
	for name, want := range map[string]struct {
		reach          Reach
		plugin, client bool // whether it can be granted
	}{
		"Page.navigate": {Page, true, true}, "Storage.getCookies": {Context, true, true},
		"Browser.close": {Browser, false, true}, "Target.sendMessageToTarget": {Browser, false, false},
		"DOM.setFileInputFiles": {Machine, true, true}, "Novel.reach": {Machine, true, true},
		"Target.novel": {Machine, false, true}, "Tracing.novel": {Machine, false, true}, "Page.novel": {Machine, true, true},
	} {
		r := p.Rights(name)
		if r.Reach != want.reach || (r.Refusal(true) == "") != want.plugin || (r.Refusal(false) == "") != want.client {
			t.Errorf("%s: %+v, expected %+v", name, r, want)
		}
	}
	for _, name := range []string{"getEverything", "enable", "inspect"} {
		if guessEffect(name) == Read {
			t.Errorf("%s, which is not reviewed, counts as harmless", name)
		}
	}
}

func TestTexts(t *testing.T) {
	p := Embedded()
	line := func(name, s string, size int) {
		t.Helper()
		if s == "" || utf8.RuneCountInString(s) > size || strings.ContainsAny(s, "\n\t") || s != strings.TrimSpace(s) {
			t.Errorf("%s: %q is not a line of at most %d characters", name, s, size)
		}
	}
	list := 0
	for _, d := range p.Domains() {
		line(d.Name, d.Brief, LineSize)
		list += len(fmt.Sprintf("%s %d/%d ", d.Name, d.Commands, d.Events))
		total, commands, events := 0, 0, 0
		for _, l := range p.Members(d.Name) {
			line(d.Name+"."+l.Name, l.Brief, LineSize)
			switch l.Kind {
			case KindCommand:
				commands++
				total += len(l.Name) + len(l.Brief) + len(p.Rights(d.Name+"."+l.Name).Effect) + 5
			case KindEvent:
				events += len(l.Name) + 1
			}
		}
		// 22 tokens a method on average, 1,050 for a domain with the names of its events, at 4.5 bytes a token.
		if total > 99*commands {
			t.Errorf("a line of %s has %d bytes on average", d.Name, total/commands)
		}
		if d.Name == "Network" && total+events > 4725 {
			t.Errorf("the list of Network has %d bytes", total+events)
		}
	}
	if list > 1000 {
		t.Errorf("the list of all domains has %d bytes", list)
	}
	for _, name := range p.Names() {
		c, _ := p.Command(name)
		line(name, c.Brief, BriefSize)
		if c.Description == "" {
			t.Errorf("%s has no description", name)
		}
		for _, q := range slices.Concat(c.Params, c.Returns) {
			if q.Name == "" || q.Description == "" || strings.Contains(q.Description, binaryMark) {
				t.Errorf("%s: %+v", name, q)
			}
		}
	}
}

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"One. Two.":               "One",
		"Takes e.g. a node. Two.": "Takes e.g. a node",
		"Over\ntwo lines":         "Over two lines",
		"Version 1.3 of it. Two":  "Version 1.3 of it",
		"Done!":                   "Done",
	} {
		if got := sentence(text); got != want {
			t.Errorf("%q: %q, expected %q", text, got, want)
		}
	}
	for name, want := range map[string]string{
		"setEmulatedMedia": "Set emulated media", "getDOMCounters": "Get DOM counters", "enable": "Enable",
		"AXNodeId": "AX node id", "requestURL": "Request URL",
		"pushNodesByBackendIds": "Push nodes by backend ids", "x": "X", "snake_case": "Snake case", "": "", "CSS": "CSS",
	} {
		if got := words(name); got != want {
			t.Errorf("%q: %q, expected %q", name, got, want)
		}
	}
	for size := 2; size < 60; size++ {
		if got := cut("Überträgt die Größe, and then some more words of the text", size); utf8.RuneCountInString(got) > size {
			t.Errorf("%q has more than %d characters", got, size)
		}
	}
}

func TestSchemas(t *testing.T) {
	p := Embedded()
	for _, name := range p.Names() {
		c, _ := p.Command(name)
		params, returns := p.ParamsSchema(c), p.ReturnsSchema(c)
		for _, raw := range [][]byte{params, returns} {
			if _, err := schema.CompileTrusted(raw); err != nil {
				t.Errorf("%s: %v\n%s", name, err, raw)
			}
			if bytes.Contains(raw, []byte("\n")) {
				t.Errorf("%s: the schema is not on one line", name)
			}
		}
		if problems := validate(t, params, []byte(`{"noSuchParameter":1}`)); len(problems) == 0 {
			t.Errorf("%s accepts an unknown parameter", name)
		}
		var order struct{ Properties json.RawMessage }
		if err := json.Unmarshal(params, &order); err != nil {
			t.Fatal(err)
		}
		at := -1
		for _, q := range c.Params {
			i := bytes.Index(order.Properties, []byte(`"`+q.Name+`":{`))
			if i < 0 {
				t.Errorf("%s: the schema has no %s", name, q.Name)
			}
			if len(c.Params) < 3 && i < at {
				t.Errorf("%s: the position of %s differs from the protocol", name, q.Name)
			}
			at = i
		}
	}
	for _, d := range p.Domains() {
		for _, l := range p.Members(d.Name) {
			raw, ok := []byte("{}"), true
			switch l.Kind {
			case KindEvent:
				raw, ok = entrySchema(p.Event(d.Name + "." + l.Name))
			case KindType:
				raw, ok = entrySchema(p.Type(d.Name + "." + l.Name))
			}
			if _, err := schema.CompileTrusted(raw); !ok || err != nil {
				t.Errorf("%s %s.%s: %v\n%s", l.Kind, d.Name, l.Name, err, raw)
			}
		}
	}
	for _, test := range []struct{ command, part string }{
		{"Page.captureScreenshot", `"contentEncoding":"base64","contentMediaType":"image/png"`},
		{"Page.printToPDF", `"contentEncoding":"base64","contentMediaType":"application/pdf"`},
		{"DOM.getDocument", `"#/definitions/DOM.Node"`},
	} {
		c, _ := p.Command(test.command)
		if raw := p.ReturnsSchema(c); !bytes.Contains(raw, []byte(test.part)) {
			t.Errorf("%s has the result schema %s; expected it to contain %s", test.command, raw, test.part)
		}
	}
	c, _ := p.Command("DOM.getDocument")
	if n := bytes.Count(p.ReturnsSchema(c), []byte(`"DOM.Node":{`)); n != 1 {
		t.Errorf("DOM.Node is defined %d times", n)
	}
	if _, ok := entrySchema(p.Type("Network.Cookie")); !ok {
		t.Error("Network.Cookie has no schema")
	}
	if raw, ok := entrySchema(p.Event("Network.requestWillBeSent")); !ok || !bytes.Contains(raw, []byte(`"Network.Request":{`)) {
		t.Errorf("Network.requestWillBeSent has the schema %s", raw)
	}
	if _, ok := entrySchema(p.Type("Network.NoSuchType")); ok {
		t.Error("a type that does not exist has a schema")
	}
}

// TestBinaryExamples decodes the examples of binary parameters.
func TestBinaryExamples(t *testing.T) {
	p := Embedded()
	binary := 0
	for _, name := range p.Names() {
		c, _ := p.Command(name)
		for _, x := range p.Examples(c) {
			var params map[string]any
			if err := json.Unmarshal(x.Params, &params); err != nil {
				t.Fatal(err)
			}
			for _, q := range c.Params {
				s, ok := params[q.Name].(string)
				if !q.Binary || !ok {
					continue
				}
				binary++
				if _, err := base64.StdEncoding.DecodeString(s); err != nil {
					t.Errorf("%s, %s: %s is not base64: %v", name, x.Title, q.Name, err)
				}
			}
		}
	}
	if binary == 0 {
		t.Error("no example has a binary parameter")
	}
}

func TestGolden(t *testing.T) {
	p := Embedded()
	for _, name := range []string{"Network.getCookies", "Page.captureScreenshot", "DOM.highlightNode", "Page.deleteCookie",
		"Input.dispatchMouseEvent"} {
		c, _ := p.Command(name)
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(map[string]any{"command": c, "params": json.RawMessage(p.ParamsSchema(c)),
			"returns": json.RawMessage(p.ReturnsSchema(c)), "examples": p.Examples(c)}); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%s differs from %s; go test -update rewrites it after review:\n%s", name, file, b.Bytes())
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	p := Embedded()
	names := p.Names()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := i; j < len(names); j += 8 {
				c, ok := p.Command(names[j])
				if !ok || len(p.ParamsSchema(c)) == 0 || len(p.Examples(c)) == 0 {
					t.Errorf("%s is not found", names[j])
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkCommand(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Embedded().Command("Network.getCookies"); !ok {
			b.Fatal("Network.getCookies is missing")
		}
	}
}

func BenchmarkDescribe(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		p := Embedded()
		c, _ := p.Command("Network.setCookie")
		p.ParamsSchema(c)
		p.ReturnsSchema(c)
		p.Examples(c)
	}
}

func BenchmarkDomains(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Embedded().Domains()
	}
}

func BenchmarkMembers(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Embedded().Members("Network")
	}
}

// TestAliases checks that no alias of a parameter is the name or an alias of another one of the same command, and that
// every row of the table is used.
func TestAliases(t *testing.T) {
	p := Embedded()
	used := map[string]bool{}
	for _, name := range p.Names() {
		c, _ := p.Command(name)
		owner := map[string]string{}
		for _, q := range c.Params {
			owner[strings.ToLower(q.Name)] = q.Name
		}
		for _, q := range c.Params {
			for _, alias := range aliasesOf(q.Name) {
				if other := owner[strings.ToLower(alias)]; other != "" {
					t.Errorf("%s: %s is an alias of %s and %s", name, alias, other, q.Name)
				}
				owner[strings.ToLower(alias)] = q.Name
				used[q.Name] = true
			}
		}
	}
	source, err := os.ReadFile("aliases.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile(`case "(\w+)"`).FindAllSubmatch(source, -1) {
		if !used[string(row[1])] {
			t.Errorf("no command has a parameter %s", row[1])
		}
	}
}

// entrySchema returns the schema of an event or a type, if there is one of the name.
func entrySchema(e *Entry, ok bool) ([]byte, bool) {
	if !ok {
		return nil, false
	}
	return Embedded().EntrySchema(e), true
}
