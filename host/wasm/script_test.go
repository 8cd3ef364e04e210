package wasm

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest/sections"
)

const tideManifest = `{"manifest":1,"name":"tide","version":"1.0.0","kind":"script","engine":{"name":"js","version":"1"},
	"docs":{"brief":"Greet people"},"tools":[{"name":"greet","docs":{"brief":"Greet one person"},"effect":"read",
	"params":{"type":"object","properties":{"name":{"type":"string","description":"e.g. \"Ada\"."}}}}]}`

const tideText = `export const greet = ({ name }, { caller }) => name + caller;`

// scriptProvider returns a script whose engine is the plugin js, bound to a digest of the engine.
func scriptProvider(t *testing.T, e *Engine, text, pin string) *Provider {
	t.Helper()
	engine := shipped(t, e, "js")
	e.cfg.ScriptEngine = func(name, _ string) (*Provider, error) {
		if name != "js" {
			return nil, nil
		}
		return engine, nil
	}
	src := sourceOf(sections.WriteSource("tide.js", []byte(text)), loadManifest(t, []byte(tideManifest)))
	src.Engine = pin
	return e.Provider(src)
}

// TestScript runs a script at each level of isolation. Its compiled code is that of the engine, and it has a runner of
// its own.
func TestScript(t *testing.T) {
	for _, level := range []string{isolateNone, isolateProcess, isolateCall} {
		if level != isolateNone && len(MissingIsolation(false)) > 0 {
			continue
		}
		e := runnerEngine(t)
		p := scriptProvider(t, e, tideText, "")
		r := requestFor(t, p, "greet", `{"name":"Ada "}`)
		r.Isolate = level
		result, err := invokeRequest(t, p, r)
		if err != nil || string(result.Data) != `"Ada cli"` {
			t.Fatalf("%s: %v %v", level, result, err)
		}
		engine, err2 := p.runsOn()
		must(t, err2)
		own, err2 := p.moduleKey()
		must(t, err2)
		if key, _ := engine.moduleKey(); own != key || key == "" {
			t.Errorf("%s: the code of the script is %s, that of the engine %s", level, own, key)
		}
		if found := Runners(e.cfg.RunDir); level == isolateProcess && (len(found) != 1 || found[0].Plugin != "tide") {
			t.Errorf("runners: %+v", found)
		}
	}
}

// TestScriptEngineIsPinned refuses to run a script on another build of the engine than it was installed for.
func TestScriptEngineIsPinned(t *testing.T) {
	e := testEngine(t)
	digest, err := scriptProvider(t, e, tideText, "").EngineDigest()
	must(t, err)
	if _, err := invoke(t, scriptProvider(t, e, tideText, digest), "greet", `{}`); err != nil {
		t.Fatal(err)
	}
	_, refused := invoke(t, scriptProvider(t, e, tideText, "sha256:other"), "greet", `{}`)
	wantError(t, "another engine", refused, host.Integrity, "was installed for another build of its engine js")

	dir := t.TempDir()
	s := store.Open(dir, nil)
	c := &store.Candidate{Path: "/tide.js", Wasm: sections.WriteSource("tide.js", []byte(tideText)),
		ManifestJSON: []byte(tideManifest), Manifest: loadManifest(t, []byte(tideManifest)), Engine: digest}
	c.Digest = store.Digest(c.Wasm, c.ManifestJSON)
	for _, engine := range []string{digest, "sha256:" + fmt.Sprintf("%064d", 1)} { // an installation binds it again
		c.Engine = engine
		_, _, err := s.Install(c, false)
		must(t, err)
		entry, err := s.Find("tide")
		must(t, err)
		if entry.Engine != engine || s.Source(entry).Engine != engine {
			t.Errorf("bound to %s, want %s", entry.Engine, engine)
		}
	}
}

// TestScriptIsChecked names what is missing in a text, and what the engine says of one that does not load.
func TestScriptIsChecked(t *testing.T) {
	e := testEngine(t)
	for text, want := range map[string]string{
		tideText:                                "",
		"export default { greet() {} }":         "",
		"export const Greet = () => 1":          "tide.js exports no function for the tool greet; add export function greet",
		"export const greet = 1":                "exports no function for the tool greet",
		"export const greet = (":                "tide.js cannot be loaded: SyntaxError: ",
		"\n\nnull.a; export function greet(){}": "(tide.js:3:",
	} {
		err := scriptProvider(t, e, text, "").CheckScript(context.Background())
		if want == "" {
			must(t, err)
			continue
		}
		wantError(t, text, err, host.InvalidPlugin, want)
	}
	if err := testGuest(t, e, "echo", "echo").CheckScript(context.Background()); err != nil {
		t.Error(err) // not a script
	}
}

// TestScriptModule refuses files that claim to be scripts.
func TestScriptModule(t *testing.T) {
	m := loadManifest(t, []byte(tideManifest))
	whole := sections.WriteSource("a\nb.js", []byte("x\ny"))
	text, err := sections.ReadSource(whole)
	must(t, err)
	if *text != (sections.SourceFile{File: "a", Source: "x\ny"}) {
		t.Errorf("%+v", text)
	}
	must(t, module.Check(whole, m))
	withCode, err := sections.WriteManifest(readFile(t, guestDir+"/echo.wasm"), json.RawMessage(tideManifest))
	must(t, err)
	wantError(t, "code", module.Check(withCode, m), host.InvalidPlugin, "the file has code")
	wantError(t, "nothing", module.Check(whole[:8], m), host.InvalidPlugin, "no text of a script")
	wantError(t, "bytes", module.Check(sections.WriteSource("a.js", []byte("\xff")), m), host.InvalidPlugin, "not UTF-8")
	wantError(t, "size", module.Check(sections.WriteSource("a.js", make([]byte, sections.MaxSource+1)), m),
		host.InvalidPlugin,
		"the limit is 1048576")
}

// TestScriptsKeepDigits sends integers of 1 to 400 digits through a script and through a program, there and back.
func TestScriptsKeepDigits(t *testing.T) {
	e := testEngine(t)
	script := scriptProvider(t, e, "export const greet = (params) => params;", "")
	program := shipped(t, e, "js")
	random := rand.New(rand.NewPCG(1, 2))
	integer := func(most int) string {
		digits := []byte{byte('1' + random.IntN(9))}
		for range random.IntN(most) {
			digits = append(digits, byte('0'+random.IntN(10)))
		}
		return strings.Repeat("-", random.IntN(2)) + string(digits)
	}
	for range 40 {
		values := fmt.Sprintf(`{"a":%s,"b":[%s,{"c":%s}],"d":"%s","e":1.5}`,
			integer(400), integer(20), integer(17), integer(20))
		for p, r := range map[*Provider]*host.Request{
			script:  requestFor(t, script, "greet", values),
			program: requestFor(t, program, "run", `{"source":"return inputs","inputs":`+values+`}`),
		} {
			if result, err := invokeRequest(t, p, r); err != nil || string(result.Data) != values {
				t.Fatalf("%s: sent %s, got %v %v", r.Tool, values, result, err)
			}
		}
	}
}
