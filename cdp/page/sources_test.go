package page_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// bundled is a script, and bundle prints it minified with its map.
const (
	bundled = "function boom(value) {\n  if (value) {\n    throw new TypeError(\"deep \" + value);\n  }\n}\n" +
		"globalThis.start = function () {\n  setTimeout(function later() {\n    boom(1);\n  });\n};\n"
	bundle = `import {minify} from "rolldown/experimental";
let text = "";
for await (const part of process.stdin) text += part;
const {code, map} = await minify("../src/app.ts", text, {compress: true, mangle: true, sourcemap: true});
console.log(JSON.stringify({code, map: {...map, sources: ["../src/app.ts"]}}));`
)

// TestSourceMaps checks where errors of minified scripts are said to be, with maps of several kinds and without.
func TestSourceMaps(t *testing.T) {
	c := startChrome(t)
	var made struct {
		Code string
		Map  json.RawMessage
	}
	if err := json.Unmarshal(runModule(t, "rolldown", bundle, bundled), &made); err != nil {
		t.Fatal(err)
	}
	var script, file, header string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		switch r.URL.Path {
		case "/assets/app.js":
			w.Header().Set("Content-Type", "text/javascript")
			if header != "" {
				w.Header().Set("SourceMap", header)
			}
			_, _ = io.WriteString(w, script)
		case "/assets/app.js.map":
			_, _ = io.WriteString(w, file)
		case "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<title>App</title><script src=/assets/app.js></script><script>start()</script>")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	on := true
	if _, err := run(t, c, Console, ConsoleParams{Limit: 1, AsyncStacks: &on}); err != nil {
		t.Fatal(exit(err))
	}
	defer func() {
		on = false
		_, _ = run(t, c, Console, ConsoleParams{Limit: 1, AsyncStacks: &on})
	}()
	const comment, mapped = "\n//# sourceMappingURL=", "boom /src/app.ts:3:15 < /src/app.ts:8:5 <" +
		" async setTimeout globalThis.start /src/app.ts:7:3 < /:1:63"
	const served = `boom /assets/app.js:1:\d+ < /assets/app.js:1:\d+ < async setTimeout .*`
	encoded := base64.StdEncoding.EncodeToString(made.Map)
	for name, test := range map[string]struct{ comment, file, header, want, left string }{
		"a file":           {"app.js.map", string(made.Map), "", mapped, ""},
		"a root":           {"/assets/app.js.map", string(made.Map), "", mapped, ""},
		"a guard":          {"app.js.map", ")]}'\n" + string(made.Map), "", mapped, ""},
		"a header":         {"", string(made.Map), "app.js.map", mapped, ""},
		"base64":           {"data:application/json;base64," + encoded, "", "", mapped, ""},
		"percent":          {"data:application/json," + url.PathEscape(string(made.Map)), "", "", mapped, ""},
		"parts":            {"app.js.map", `{"sections":[{"offset":{},"map":` + string(made.Map) + `}]}`, "", mapped, ""},
		"none":             {"", "", "", served, ""},
		"nothing there":    {"gone.map", "", "", served, "HTTP status 404"},
		"another origin":   {"https://example.com/a.map", "", "", served, "it is of another origin"},
		"not JSON":         {"app.js.map", "<html>", "", served, "invalid character '<' looking for beginning of value"},
		"not a map":        {"app.js.map", `{"mappings":"!"}`, "", served, `"!" is not a mapping`},
		"too large":        {"app.js.map", strings.Repeat(" ", 17<<20), "", served, "it has more than 16 MiB"},
		"a hostile source": {"app.js.map", strings.Replace(string(made.Map), "../src/app.ts", `x\nerror (`, 1), "", served, ""},
	} {
		script, file, header = made.Code, test.file, test.header
		if test.comment != "" {
			script += comment + test.comment + "\n"
		}
		c.show(t, s.URL+"/", "")
		var r *ConsoleResult
		waitUntil(t, name, func() bool {
			var err error
			r, err = run(t, c, Console, ConsoleParams{Limit: 10, Level: "error"})
			return err == nil && r.Errors == 1 && !strings.Contains(r.LeftOut, "not read within")
		})
		want := regexp.MustCompile(`^error Uncaught TypeError: deep 1 \(` + test.want + `\)$`)
		if !want.MatchString(r.Text) || strings.TrimPrefix(r.LeftOut, "source map of /assets/app.js: ") != test.left {
			t.Errorf("%s: %s, left out: %s\nwant %s, %s", name, r.Text, r.LeftOut, want, test.left)
		}
	}
}
