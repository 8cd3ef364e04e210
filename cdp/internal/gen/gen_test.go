package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/protocol"
)

func TestEmbeddedIsGenerated(t *testing.T) {
	p, err := generate("../protocol", ".")
	if err != nil {
		t.Fatal(err)
	}
	if p.Encoded() != protocol.Embedded().Encoded() {
		t.Error("protocol.bin differs from what its sources and tables generate; run go generate ./cdp/...")
	}
	again, err := generate("../protocol", ".")
	if err != nil {
		t.Fatal(err)
	}
	if again.Encoded() != p.Encoded() {
		t.Error("two runs generate different forms")
	}
}

func TestReadmeNamesTheRevision(t *testing.T) {
	text, err := os.ReadFile("../protocol/source/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), revision) {
		t.Errorf("source/README.md does not name revision %s", revision)
	}
}

// TestInvalidTables changes one table at a time and expects an error.
func TestInvalidTables(t *testing.T) {
	documents, err := readDocuments("../protocol")
	if err != nil {
		t.Fatal(err)
	}
	bare, err := protocol.Build(revision, protocol.Notes{}, documents...)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ table, old, new, message string }{
		"a command without effect": {effectsTable, "Page.navigate\twrite\tpage\t/url\t-\t-\n", "",
			"command Page.navigate is missing"},
		"an unknown command": {effectsTable, "Page.navigate\t", "Page.noSuch\tread\tpage\t-\t-\t-\nPage.navigate\t",
			"there is no command Page.noSuch"},
		"an effect twice": {effectsTable, "Page.navigate\t",
			"Page.navigate\twrite\tpage\t/url\t-\t-\nPage.navigate\t", "twice"},
		"an unknown effect": {effectsTable, "Page.navigate\twrite", "Page.navigate\tharmless",
			`effect "harmless"`},
		"a name in the wrong case": {effectsTable, "Page.navigate\t", "page.navigate\t",
			"there is no command page.navigate"},
		"a missing column": {effectsTable, "Page.navigate\twrite\tpage\t/url\t-\t-\n",
			"Page.navigate\twrite\n", "2 columns: expected 6"},
		"a missing reach": {effectsTable, "Page.navigate\twrite\tpage\t", "Page.navigate\twrite\t-\t", `reach "-"`},
		"a URL that is not reviewed": {effectsTable, "\tpage\t/url\t-\t-\n", "\tpage\t-\t-\t-\n",
			"has the parameter url, which is not reviewed"},
		"an unknown parameter": {effectsTable, "Page.navigate\twrite\tpage\t/url", "Page.navigate\twrite\tpage\t/uri",
			"Page.navigate has no parameter /uri"},
		"a file that is not reviewed": {effectsTable, "\t/files\t", "\t-\t", "which is not reviewed"},
		"a file within a page": {effectsTable, "\tmachine\t-\t/files\t", "\tpage\t-\t/files\t",
			"its reach is page"},
		"an invalid caller":                       {effectsTable, "\t/url\t-\t-\n", "\t/url\t-\tagent: no\n", `callers "agent: no"`},
		"a domain whose enabling is not reviewed": {enablesTable, "\nPage\t", "\n# ", "domain Page is missing"},
		"a domain that cannot be enabled": {enablesTable, "\nPage\t", "\nIO\tall\t-\t-\tx\nPage\t",
			"there is no command IO.enable"},
		"an enabling twice":              {enablesTable, "\nPage\t", "\nPage\tall\t-\t-\tx\nPage\t", "twice"},
		"an enabling for some":           {enablesTable, "\nPage\tall\t", "\nPage\tsome\t", `enabled for "some"`},
		"an enabling after no domain":    {enablesTable, "\nCSS\tall\tDOM\t", "\nCSS\tall\tTree\t", "CSS needs Tree"},
		"an enabling kept by no command": {enablesTable, "\tDOM.*,", "\tDOM.keep*,", "matches no command"},
		"a domain without brief":         {domainsTable, "\nPage\t", "\n# ", "domain Page is missing"},
		"a long brief":                   {domainsTable, "\nPage\t", "\nPage\t" + strings.Repeat("x", 60), "the limit is 50"},
		"a deprecation without reason": {deprecatedTable, "Network.getAllCookies\t", "# ",
			"command Network.getAllCookies is missing"},
		"a replacement that does not exist": {deprecatedTable, "\tStorage.getCookies\t", "\tStorage.getAll\t",
			"names Storage.getAll as its replacement"},
		"a message without the replacement": {deprecatedTable, "Use Storage.getCookies instead.", "Gone.",
			"does not name its replacement"},
		"parameters that are not JSON": {examplesTable, `{"ignoreCache":true}`, `{"ignoreCache":yes}`, "not a JSON object"},
		"a phrase with spaces":         {phrasesTable, "Page.reload\t", "Page.reload\t ; ", "has the phrase"},
		"a value of an unknown parameter": {valuesTable, "Page.navigate.url\t", "Page.navigate.uri\t",
			"Page.navigate has no uri"},
		"a value that is not JSON": {valuesTable, "DOM.NodeId\t1\n", "DOM.NodeId\tone\n", "is not JSON"},
		"a value twice":            {valuesTable, "DOM.NodeId\t1\n", "DOM.NodeId\t1\nDOM.NodeID\t2\n", "twice"},
		"a brief twice":            {briefsTable, "PWA.install\t", "PWA.install\tInstall\nPWA.install\t", "twice"},
		"a use twice":              {whenTable, "Page.reload\t", "Page.reload\tagain\t-\t-\nPage.reload\t", "twice"},
		"a use instead that does not exist": {whenTable, "Page.reload\t", "Page.crash\tx\ty: Page.stop\t-\nPage.reload\t",
			"Page.stop does not exist"},
		"a related tool without a reason": {whenTable, "Page.reload\t", "Page.crash\tx\t-\tPage.close\nPage.reload\t",
			"expected another tool, a colon and why"},
		"an example with an unknown parameter": {examplesTable, `{"ignoreCache":true}`, `{"ignoreCaches":true}`,
			"which is not a parameter"},
		"an example with an unknown source": {examplesTable, "/nodeId=heading node", "/nodeId=footing node",
			`takes "footing node"`},
		"a description twice": {descriptionsTable, "Profiler.stop\t", "Profiler.stop\tStops.\nProfiler.stop\t", "twice"},
		"a description of what has one": {descriptionsTable, "Profiler.stop\t", "Page.reload\tReloads.\nProfiler.stop\t",
			"the protocol describes Page.reload"},
		"a description of nothing": {descriptionsTable, "Profiler.stop\t", "Page.*.nothing\tNone.\nProfiler.stop\t",
			"has nothing of this name"},
		"a source that calls nothing": {sourcesTable, "DOM.NodeId\tDOM.querySelector\t", "DOM.NodeId\tDOM.queryAll\t",
			"calls DOM.queryAll, which does not exist"},
		"a source without a value": {sourcesTable, "DOM.NodeId\tDOM.querySelector\t/nodeId",
			"DOM.NodeId\tDOM.querySelector\t/id", "the result of DOM.querySelector has no /id"},
		"a source with an unknown parameter": {sourcesTable, `{"selector":"body"}`, `{"css":"body"}`,
			"with css, which is not a parameter"},
		"a source whose parameters are not JSON": {sourcesTable, `{"selector":"body"}`, `{selector}`,
			"are not a JSON object"},
		"a source of an unknown type": {sourcesTable, "DOM.NodeId\tDOM.querySelector\t", "DOM.NoId\tDOM.querySelector\t",
			"there is no type DOM.NoId"},
		"a source of unknown age": {sourcesTable, "\twhen the page navigates or DOM is disabled\n", "\t-\n",
			"does not say when its values end"},
		"a source that nothing takes": {fromTable, "\tpopover button\n", "\tDOM.NodeId\n",
			"no parameter takes popover button"},
		"a parameter from an unknown source": {fromTable, "\tfocusable node\n", "\tfocused node\n",
			`comes from "focused node"`},
		"an unknown parameter with a source": {fromTable, "DOM.focus.nodeId\t", "DOM.focus.node\t",
			"there is no parameter DOM.focus.node"},
		"a parameter with two sources": {fromTable, "DOM.focus.nodeId\t",
			"DOM.focus.nodeId\tDOM.NodeId\nDOM.focus.nodeId\t", "occurs twice"},
		"a need that does not exist": {needsTable, "DOM.disable\tDOM.enable\n", "DOM.disable\tDOM.start\n",
			"calls DOM.start, which does not exist"},
		"a need that waits for no event": {needsTable, "-> Debugger.paused\n", "-> Debugger.stopped\n",
			"is not an event"},
		"needs twice":            {needsTable, "DOM.disable\t", "DOM.disable\tDOM.enable\nDOM.disable\t", "twice"},
		"a run that is not JSON": {ranTable, "\t{}\t", "\t{\t", "are not JSON"},
		"runs in no browser":     {ranTable, "# Ran on: ", "# ", "the first line does not begin"},
		"a long use": {whenTable, "Page.reload\t", "Page.reload\t" + strings.Repeat("x", 121),
			"the limit is 120"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for _, table := range []string{domainsTable, effectsTable, enablesTable, briefsTable, phrasesTable, deprecatedTable,
				examplesTable, valuesTable, whenTable, descriptionsTable, sourcesTable, fromTable, needsTable, ranTable} {
				text, err := os.ReadFile(table)
				if err != nil {
					t.Fatal(err)
				}
				changed := string(text)
				if table == test.table {
					if changed = strings.Replace(changed, test.old, test.new, 1); changed == string(text) {
						t.Fatalf("%s does not contain %q", table, test.old)
					}
				}
				if err := os.WriteFile(filepath.Join(folder, table), []byte(changed), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := readTables(folder, bare); err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("error %v; expected %q in it", err, test.message)
			}
		})
	}
	if _, err := readTables(t.TempDir(), bare); err == nil {
		t.Error("missing tables cause no error")
	}
}

// TestNamesInDescriptions corrects a protocol whose descriptions name what it has, what it does not have, and others.
func TestNamesInDescriptions(t *testing.T) {
	const source = `{"version":{"major":"1","minor":"3"},"domains":[{"domain":"Page","commands":[{"name":"getTree",` +
		`"description":"%s"}]}]}`
	for text, want := range map[string]string{
		"As getTree and Page.getTree":        "As getTree and Page.getTree",
		`Ends with\ncancelTree, not Tree.be`: `Ends with\ngetTree, not Tree.be`,
		"cancelTree, then Page.cancel":       "a description names Page.cancel, which the protocol does not have",
		"cancelTree and noTree":              "a description names noTree, which the protocol does not have",
		"See https://example.com/noTree":     "no description names cancelTree",
	} {
		folder := t.TempDir()
		for _, table := range []string{descriptionsTable, briefsTable, whenTable, deprecatedTable, namesTable} {
			rows := ""
			if table == namesTable && text != "As getTree and Page.getTree" {
				rows = "cancelTree\tgetTree\n"
			}
			if err := os.WriteFile(filepath.Join(folder, table), []byte(rows), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		document := fmt.Appendf(nil, source, text)
		p, err := protocol.Build("test", protocol.Notes{}, document)
		if err != nil {
			t.Fatal(err)
		}
		got, err := correctNames(folder, [][]byte{document}, p)
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && string(got[0]) != fmt.Sprintf(source, want) {
			t.Errorf("%s: %s, %v; expected %s", text, got, err, want)
		}
	}
}
