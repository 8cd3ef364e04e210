package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host/egress"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/internal/testhome"
)

// namesVariable is an environment variable with host names for the keepers of these tests: words of the form
// NAME=ADDRESS[,ADDRESS]... Each look-up of a name takes its next address; the last one is taken from then on.
const namesVariable = "PARLEY_TEST_NAMES"

// namingKeeper runs a keeper that resolves the names of namesVariable, if the environment has them.
func namingKeeper() (code int, entered bool) {
	text := os.Getenv(namesVariable)
	if os.Getenv("PARLEY_CHILD") != cdp.KeeperJob || text == "" {
		return 0, false
	}
	var mu sync.Mutex
	names := map[string][]string{}
	for _, word := range strings.Fields(text) {
		name, addresses, _ := strings.Cut(word, "=")
		names[name] = strings.Split(addresses, ",")
	}
	resolve := func(_ context.Context, name string) ([]netip.Addr, error) {
		mu.Lock()
		defer mu.Unlock()
		all := names[name]
		if name == "localhost" || strings.HasSuffix(name, ".localhost") {
			all = []string{"127.0.0.1"}
		}
		if len(all) == 0 {
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		}
		if len(all) > 1 {
			names[name] = all[1:]
		}
		a, err := netip.ParseAddr(all[0])
		return []netip.Addr{a}, err
	}
	p := parley.New(parley.Config{})
	return cdp.KeeperMain(func() (outbound.Egress, error) {
		rules, err := p.Policy()
		if err != nil {
			return nil, err
		}
		return egress.New(egress.Config{Rules: rules.Egress, Resolve: resolve}), nil
	}), true
}

// secret is in everything that a plugin must not get: responses of the forbidden servers, the person's page and its
// cookie.
const secret = "kept-from-plugins"

// outcome is the required outcome of an attempt, which is that of its last step.
type outcome struct {
	wild  string // with the grant tool:cdp.* alone
	named string // with everything that the manifest requests granted by name
	says  string // part of the result
}

const (
	ok       = "ok"
	denied   = "denied"
	notFound = "not_found"
	either   = "" // any outcome without the secret
)

func same(code string) outcome { return outcome{wild: code, named: code} }

func saying(text string) outcome { return outcome{wild: ok, named: ok, says: text} }

// outside is the outcome of a command that a wildcard does not grant.
func outside(named string) outcome { return outcome{wild: denied, named: named} }

var outcomes = map[string]outcome{
	"nothing-special": outside(ok),

	"file": same(denied), "file-shouted": same(denied), "file-new-target": outside(denied),
	"file-open": outside(denied), "file-twice": same("invalid_args"), "file-resource": outside(denied),
	"chrome": same(denied), "view-source": same(denied), "data": same(denied), "javascript": same(denied),
	"devtools": same(denied), "ftp": same("invalid_url"), "file-by-script": saying("file-by-script"),
	"data-by-script": saying("data-by-script"), "file-in-frame": same(ok), "file-pop-up": same(ok),
	"file-redirect": same("navigation_failed"), "blob-by-script": same(either),

	"loopback": same(denied), "loopback-open": outside(denied), "loopback-new-target": outside(denied),
	"loopback-6": same(denied), "loopback-mapped": same(denied), "loopback-number": same(denied),
	"loopback-other": same(denied), "localhost": same(denied), "localhost-below": same(denied),
	"unspecified": same(denied), "tls": same(denied), "metadata": same(denied), "redirect": same(denied),
	"name-of-loopback": same(denied), "rebinding": saying("refused,refused,refused"),

	"fetch": saying("refused"), "fetch-opaque": saying("refused"), "image": saying("refused"), "frame": saying("over"),
	"form": same(either), "web-socket": saying("refused"), "worker": saying("refused"),
	"service-worker": saying("refused"), "beacon": saying("sent"), "pop-up": saying("over"),
	"speculation": saying("over"), "web-rtc": same(ok), "download": saying("over"),

	"others-list": outside(ok), "others-targets": outside(ok), "others-status": same(ok), "others-events": same(ok),
	"others-contexts": outside(ok), "others-page": same(notFound), "others-page-by-url": same(notFound),
	"others-page-by-index": same(notFound), "others-attach": outside(notFound),
	"others-attach-within": outside(notFound), "others-info": outside(notFound), "others-close": outside(notFound),
	"others-close-verb": outside(notFound), "others-activate": outside(notFound), "others-window": outside(notFound),
	"others-context": outside(denied), "others-context-end": outside(notFound), "others-cookies": outside(notFound),
	"others-cookies-own": outside(ok), "others-cookies-of-browser": outside(denied), "others-cookies-all": outside(ok),
	"others-storage": same("protocol_error"), "others-storage-by-key": same("protocol_error"),
	"others-databases": same("protocol_error"), "others-caches": same("protocol_error"), "others-usage": outside(ok),
	"others-cookies-set": outside(ok), "others-cookies-clear": outside(ok), "others-data-clear": outside(ok),
	"others-cookies-clear-page": outside(ok), "others-requests": same(denied), "others-downloads": outside(denied),

	"new-context": outside(denied), "new-context-proxy": outside(denied), "browser-session": outside(denied),
	"tunnel": outside(denied), "protocol-in-page": outside(denied), "auto-attach": outside(denied),
	"discover": outside(denied), "remote": outside(denied), "browser-close": outside(denied),
	"browser-crash": outside(denied), "trace": outside(denied), "system": same(denied), "port": outside(denied),
	"extension": outside(denied), "unknown": same(denied), "program": outside(denied), "profile": outside(denied),
	"attach": outside(denied),

	"screens": outside(denied), "paste": saying("pasted"), "paste-by-key": saying("pasted"),
	"paste-by-key-name": saying("pasted"), "paste-by-native-key": saying("pasted"), "paste-by-insert": saying("pasted"),
	"paste-by-script": saying("pasted"),

	"file-input": outside(denied), "file-input-link": outside(denied), "file-input-up": outside("invalid_args"),
	"file-input-granted": {wild: ok, named: ok}, "file-drop": outside(denied), "file-download": outside(denied),
	"file-download-default": outside(denied), "file-download-read-only": outside(denied),
}

// TestPluginsHaveNoWayOut runs attempts of a plugin with the browser granted to escape. A person's page is open in the
// same browser, and servers that were not granted listen on several addresses of this machine.
func TestPluginsHaveNoWayOut(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs several loopback addresses")
	}
	needBrowser(t)
	t.Run("by a wildcard", func(t *testing.T) {
		tryAll(t, []string{"tool:cdp.*"}, func(o outcome) string { return o.wild })
	})
	t.Run("by name", func(t *testing.T) {
		var asked struct {
			Capabilities struct{ Tools []struct{ Name string } }
		}
		raw, err := os.ReadFile(fixture("escape.manifest.json"))
		if err == nil {
			err = json.Unmarshal(raw, &asked)
		}
		if err != nil {
			t.Fatal(err)
		}
		var grants []string
		for _, tool := range asked.Capabilities.Tools {
			grants = append(grants, "tool:"+tool.Name)
		}
		tryAll(t, grants, func(o outcome) string { return o.named })
	})
}

func fixture(name string) string { return filepath.Join("../../../../testdata/wasm", name) }

func tryAll(t *testing.T, grants []string, want func(outcome) string) {
	w := newEscapeWorld(t, grants)
	var ways []string
	w.parley(&ways, "escape", "ways")
	for way := range outcomes {
		if !slices.Contains(ways, way) {
			t.Errorf("the plugin has no attempt %s", way)
		}
	}
	lines := &bytes.Buffer{}
	for _, way := range ways {
		fmt.Fprintf(lines, `{"id":%q,"tool":"escape.try","params":{"way":%q,"with":%s}}`+"\n", way, way, w.with)
	}
	for line := range strings.Lines(w.run(lines, "batch", "-", "--continue-on-error")) {
		var a struct {
			ID    string
			OK    bool
			Error struct{ Message string }
			Data  struct {
				Answers []struct {
					OK     bool
					Result json.RawMessage
					Error  struct{ Code, Message string }
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		expected, known := outcomes[a.ID]
		if !known || !a.OK || len(a.Data.Answers) == 0 {
			t.Errorf("%s: %s", a.ID, line)
			continue
		}
		last := a.Data.Answers[len(a.Data.Answers)-1]
		got := last.Error.Code
		if last.OK {
			got = ok
		}
		if code := want(expected); code != either && got != code {
			t.Errorf("%s: %s (%s %.300s), want %s", a.ID, got, last.Error.Message, last.Result, code)
		}
		given := strings.Contains(string(last.Result), "of-the-plugin")
		if a.ID == "file-input-granted" && given != (len(grants) > 1) {
			t.Errorf("the page got the plugin's own file: %v; %s", given, line)
		}
		if got == ok && !strings.Contains(string(last.Result), expected.says) {
			t.Errorf("%s: %.300s, want %q in it", a.ID, last.Result, expected.says)
		}
		for _, kept := range []string{secret, "root:", `d":"` + w.person, w.context, w.home + "/"} {
			if strings.Contains(line, kept) {
				t.Errorf("%s: the plugin got %s: %s", a.ID, kept, line)
			}
		}
		if strings.HasSuffix(a.ID, "-by-script") && strings.Contains(string(last.Result), "gone-astray") {
			t.Errorf("%s shows %s", a.ID, last.Result)
		}
		if testing.Verbose() {
			t.Logf("%-26s %-18s %.160s", a.ID, got, strings.ReplaceAll(last.Error.Message+string(last.Result), "\n", " "))
		}
	}
	for path := range w.reached() {
		t.Errorf("%s reached a server that was not granted", path)
	}
	var kept struct{ Result struct{ Value string } }
	w.parley(&kept, "cdp", "Runtime.evaluate", "--target", w.person,
		"--params", `{"expression":"keptAll()","awaitPromise":true,"returnByValue":true}`)
	if want := "kept=" + secret + " " + secret + " " + secret + " " + secret; kept.Result.Value != want {
		t.Errorf("the person's page has %q, want %q", kept.Result.Value, want)
	}
	type target struct{ ID, URL string }
	var listed struct{ Targets []target }
	w.parley(&listed, "cdp", "targets")
	isPerson := func(x target) bool { return x.ID == w.person && strings.Contains(x.URL, "/person") }
	if !slices.ContainsFunc(listed.Targets, isPerson) {
		t.Errorf("the person's page has changed: %+v", listed.Targets)
	}
	filepath.WalkDir(w.home, func(path string, _ os.DirEntry, _ error) error {
		if strings.HasSuffix(path, "planted.txt") {
			t.Errorf("a page wrote %s", path)
		}
		return nil
	})
}

// personsScript stores the secret in every kind of storage that a page has.
const personsScript = `<script>
const secret = document.title
localStorage.kept = secret
const database = new Promise(r => { const q = indexedDB.open(secret); q.onsuccess = () => r(q.result) })
const cache = caches.open(secret)
function copySecret() {
	const text = document.createElement("textarea")
	text.value = secret
	document.body.append(text)
	text.select()
	return document.execCommand("copy")
}
async function keptAll() {
	await database
	return document.cookie + " " + localStorage.kept + " " + (await indexedDB.databases()).map(d => d.name) + " " + await caches.keys()
}
</script>`

// escapeWorld is a browser with a person's page in it, a policy, and servers.
type escapeWorld struct {
	t       *testing.T
	env     []string
	plugin  string // the wasm
	home    string
	person  string // the id of the person's page
	context string // the id of its browser context
	with    json.RawMessage

	mu   sync.Mutex
	hits map[string]bool
}

func newEscapeWorld(t *testing.T, grants []string) *escapeWorld {
	w := &escapeWorld{t: t, home: testhome.New(t), hits: map[string]bool{}}
	respond := func(w2 http.ResponseWriter) {
		http.SetCookie(w2, &http.Cookie{Name: "kept", Value: secret})
		w2.Header().Set("Access-Control-Allow-Origin", "*")
		w2.Header().Set("Supports-Loading-Mode", "credentialed-prerender")
		io.WriteString(w2, "<title>"+secret+"</title>"+secret)
	}
	forbidden := func(w2 http.ResponseWriter, r *http.Request) {
		w.hit(r.URL.Path)
		respond(w2)
	}
	closed := w.closed("127.0.0.1:0", forbidden)
	other := w.closed("127.0.0.2:0", forbidden)
	six := w.closed("[::1]:0", forbidden)
	var person bool
	persons := w.serve("127.0.0.1:0", func(w2 http.ResponseWriter, r *http.Request) {
		if person && r.URL.Path != "/favicon.ico" { // the browser requests it for the person's page at any time
			w.hit(r.URL.Path)
		}
		respond(w2)
		io.WriteString(w2, personsScript)
	})
	home := w.serve("127.0.0.1:0", func(w2 http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/to":
			w2.Header().Set("Location", r.URL.RawQuery)
			w2.WriteHeader(http.StatusFound)
		case "/worker.js":
			w2.Header().Set("Content-Type", "text/javascript")
			io.WriteString(w2, "onmessage = e => fetch('http://' + location.search.slice(1))"+
				".then(() => e.source.postMessage('answered'), () => e.source.postMessage('refused'))")
		case "/download":
			w2.Header().Set("Content-Disposition", "attachment; filename=planted.txt")
			io.WriteString(w2, "planted")
		default:
			w2.Header().Set("Content-Type", "text/html")
			io.WriteString(w2, "<body>home "+r.URL.RawQuery+"</body>")
		}
	})
	// turn.test resolves first to this server, whose address is within the operator's networks, and then to a forbidden
	// server on the same port.
	turning := w.serve("127.0.0.3:0", func(w2 http.ResponseWriter, _ *http.Request) {
		io.WriteString(w2, "<body>turning</body>")
	})
	_, port3, _ := net.SplitHostPort(turning)
	w.closed("127.0.0.1:"+port3, forbidden)
	udp := w.listenUDP()

	_, port, _ := net.SplitHostPort(closed)
	_, port2, _ := net.SplitHostPort(other)
	_, port6, _ := net.SplitHostPort(six)
	w.load(map[string]string{
		"http://127.0.0.1": "http://" + home,
		"http://turn.test": "http://turn.test:" + port3,
		"http://loop.test": "http://loop.test:" + port,
	})
	files := filepath.Join(w.home, "files")
	w.check(
		os.MkdirAll(files, 0o755), os.WriteFile(filepath.Join(files, "plain"), []byte("of-the-plugin"), 0o644),
		os.Symlink("/etc/passwd", filepath.Join(files, "link")),
	)
	grants = append(slices.Clone(grants), "fs:ro:"+files+"=/files", "http:GET:http://"+home,
		"http:GET:http://turn.test:"+port3, "http:GET:http://loop.test:"+port)

	w.env = append(os.Environ(), "PARLEY_HOME="+w.home, "HOME="+w.home,
		namesVariable+"=turn.test=127.0.0.3,127.0.0.1 loop.test=127.0.0.1")
	w.grant(grants)
	var opened struct{ Target string }
	w.parley(&opened, "cdp", "open", "http://"+persons+"/person")
	person = true
	w.person = opened.Target
	w.parley(new(any), "cdp", "Page.bringToFront", "--target", w.person) // Chrome 156 gives a new page no focus
	var copied struct{ Result struct{ Value bool } }
	w.parley(&copied, "cdp", "Runtime.evaluate", "--target", w.person,
		"--params", `{"expression":"copySecret()","userGesture":true}`)
	if !copied.Result.Value {
		t.Fatal("the person's page did not write to the clipboard")
	}
	t.Cleanup(func() { w.run(nil, "cdp", "close", "--all") })
	var info struct {
		Info struct{ BrowserContextID string } `json:"targetInfo"`
	}
	w.parley(&info, "cdp", "Target.getTargetInfo", "--param", "targetId="+w.person)
	w.context = info.Info.BrowserContextID
	with, err := json.Marshal(map[string]string{
		"HOME": home, "SECRET": closed, "PORT": port, "PORT2": port2, "PORT3": port3, "PORT6": port6, "UDP": udp,
		"PERSONS": persons, "PERSON": w.person, "CONTEXT": w.context,
	})
	w.check(err)
	w.with = with
	w.mu.Lock()
	clear(w.hits) // requests of the person's own page
	w.mu.Unlock()
	return w
}

func (w *escapeWorld) check(errs ...error) {
	w.t.Helper()
	for _, err := range errs {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *escapeWorld) hit(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hits[what] = true
}

func (w *escapeWorld) reached() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hits
}

func (w *escapeWorld) serve(address string, handler http.HandlerFunc) string {
	l, err := net.Listen("tcp", address)
	w.check(err)
	return w.serveOn(l, handler)
}

// closed serves at an address to which no connection must be made.
func (w *escapeWorld) closed(address string, handler http.HandlerFunc) string {
	l, err := net.Listen("tcp", address)
	w.check(err)
	return w.serveOn(&counting{l, w}, handler)
}

type counting struct {
	net.Listener
	w *escapeWorld
}

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.w.hit("a connection to " + conn.LocalAddr().String())
	}
	return conn, err
}

func (w *escapeWorld) serveOn(l net.Listener, handler http.HandlerFunc) string {
	s := httptest.NewUnstartedServer(handler)
	s.Listener.Close()
	s.Listener = l
	s.Start()
	w.t.Cleanup(s.Close)
	return l.Addr().String()
}

// listenUDP records packets that arrive by UDP, which bypasses every proxy.
func (w *escapeWorld) listenUDP() string {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	w.check(err)
	w.t.Cleanup(func() { conn.Close() })
	go func() {
		for b := make([]byte, 2048); ; {
			if _, _, err := conn.ReadFrom(b); err != nil {
				return
			}
			w.hit("UDP")
		}
	}()
	return conn.LocalAddr().String()
}

// load writes the plugin with its manifest, in which it replaces addresses.
func (w *escapeWorld) load(addresses map[string]string) {
	wasm, err := os.ReadFile(fixture("escape.wasm"))
	w.check(err)
	text, err := os.ReadFile(fixture("escape.manifest.json"))
	w.check(err)
	for from, to := range addresses {
		text = bytes.ReplaceAll(text, []byte(`"`+from+`"`), []byte(`"`+to+`"`))
	}
	w.plugin = filepath.Join(w.home, "escape.wasm")
	w.check(
		os.WriteFile(w.plugin, wasm, 0o644),
		os.WriteFile(filepath.Join(w.home, "escape.manifest.json"), text, 0o644),
	)
}

// grant writes the policy.
func (w *escapeWorld) grant(grants []string) {
	var shown struct{ Digest string }
	w.parley(&shown, "plugin", "show", "escape")
	list, err := json.Marshal(grants)
	w.check(err)
	policy := fmt.Sprintf("[operator]\nnetworks = [\"127.0.0.3/32\"]\n[plugin.escape]\ndigest = %q\ngrants = %s\n",
		shown.Digest, list)
	config := filepath.Join(w.home, "config")
	w.check(os.MkdirAll(config, 0o700), os.WriteFile(filepath.Join(config, "policy.toml"), []byte(policy), 0o600))
}

// run runs a command and returns its output, whatever its exit code.
func (w *escapeWorld) run(in io.Reader, args ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "parley", append(args, "--load", w.plugin)...)
	cmd.Env, cmd.Stdin = w.env, in
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && out.Len() == 0 {
		w.t.Fatalf("parley %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

// parley runs a command and reads its data.
func (w *escapeWorld) parley(into any, args ...string) {
	w.t.Helper()
	out := w.run(nil, append(args, "--json")...)
	var envelope struct {
		OK   bool
		Data json.RawMessage
	}
	if err := json.Unmarshal([]byte(out), &envelope); err != nil || !envelope.OK {
		w.t.Fatalf("parley %s: %s", strings.Join(args, " "), out)
	}
	w.check(json.Unmarshal(envelope.Data, into))
}
