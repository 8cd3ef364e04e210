package page_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest/sections"
)

// maxMinified is the limit of page.js in bytes, minified.
// It grew for what is around an element, dropped files, Markdown, the main content, image maps, frames of PDFs, fields
// and lists that pages make, of which some are behind what is drawn for them, main content in several places, escapes
// and definitions in Markdown, groups and suggestions of lists, what a page makes of a field when it is left, the days
// that calendars mark, texts that become tags, closed branches, drags beyond the view, what a call without an element
// is limited to, why a pointer does not reach an element, or its click does not, for the tags of lists of several,
// lists that have only what is in view, branches chosen on the way to what is refused, labels of custom elements,
// words with which a part of a name begins, lists that grow at their end, frames in boxes that scroll, and names with
// a mistake.
const maxMinified = 65_000

// minify prints how long the script that it reads is, minified.
const minify = `import {minify} from "rolldown/experimental";
let text = "";
for await (const part of process.stdin) text += part;
const {code, errors} = await minify("page.js", "(function (exports) {" + text + "})(globalThis.exports)", {compress: true, mangle: true});
if (errors.length) throw new Error(errors[0].message);
console.log(code.length);`

// TestScriptSize measures page.js as a minifier leaves it.
func TestScriptSize(t *testing.T) {
	if text := must(os.ReadFile(scriptPath)); len(text) > sections.MaxScript {
		t.Errorf("page.js has %d bytes, at most %d are allowed", len(text), sections.MaxScript)
	}
	out := runModule(t, "rolldown", minify, string(must(os.ReadFile(scriptPath))))
	size, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || size == 0 || size > maxMinified {
		t.Errorf("page.js has %d bytes minified, at most %d are allowed: %v", size, maxMinified, err)
	}
}

// runModule runs a module that needs a package, and returns what it prints.
func runModule(t *testing.T, needs, module, input string) []byte {
	t.Helper()
	if _, err := os.Stat(filepath.Join(packages, needs)); errors.Is(err, os.ErrNotExist) {
		if os.Getenv("CI") == "true" {
			t.Fatal("a package is missing: make programs")
		}
		t.Skip("needs the programs of testdata: make programs")
	}
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "--eval", module)
	cmd.Dir, cmd.Stdin, cmd.Stderr = packages, strings.NewReader(input), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}
