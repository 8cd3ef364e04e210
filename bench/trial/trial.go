package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/bench/internal/tree"
	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/manifest"
)

//go:embed site
var site embed.FS

// page is the prepared page that every example starts from.
const page = "https://example.com/"

type options struct {
	binary, effect, kind, table string
	paste                       string // the page to paste first examples on; "" for none
	tasks                       string // a file of tasks to do instead of the examples; "" for none
	only                        *regexp.Regexp
	part, parallel              int
	verbose                     bool
	replies, agent              bool
}

// provider has the commands, as they are in the catalog of a host.
var provider = cdp.New(cdp.Config{})

// commands returns all commands, in the order of the table. A verb of the plugin is not one.
func commands() (all []*manifest.Tool, err error) {
	names, err := provider.Names()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	for _, name := range names {
		if !strings.Contains(name, ".") {
			continue
		}
		command, err := provider.Tool(name)
		if err != nil {
			return nil, err
		}
		all = append(all, command)
	}
	return all, nil
}

// inPart returns the first of every so many; all if part is not more than 1.
func inPart[T any](all []T, part int) (kept []T) {
	for i := 0; i < len(all); i += max(part, 1) {
		kept = append(kept, all[i])
	}
	return kept
}

// Outcomes of an example, as the table has them.
const (
	verified = "verified" // it did what the command is for
	failed   = "failed"   // it ended in an error, or returned nothing
	hung     = "hung"     // the page or the browser did not respond any more
	skipped  = "skipped"  // it was not run: it changes the machine, or requires what the browser does not have
	unknown  = "unknown"  // the browser does not know the command
)

// example is one example of a command, with what it needs.
type example struct {
	command *manifest.Tool
	cdp.Example
	before []advice.PlanCall
	with   json.RawMessage // the parameters, with references to the calls before

	status  string // one of the outcomes
	message string
	result  json.RawMessage
	replies []reply
	opened  bool // the page was ready
}

func run(ctx context.Context, o options, out io.Writer) error {
	if o.tasks != "" {
		return runTasks(ctx, o, out)
	}
	if o.paste != "" {
		return runPaste(ctx, o, out)
	}
	if o.agent {
		return runAgent(ctx, o, out)
	}
	examples, err := load(o)
	if err != nil {
		return err
	}
	l, err := newLab(ctx, o.binary)
	if err != nil {
		return err
	}
	defer l.close()
	l.runAll(ctx, examples, o.parallel, func(e *example) {
		if o.verbose || e.status == failed || e.status == hung {
			fmt.Fprintf(out, "%-9s %s %q %s\n", e.status, e.command.Name, e.Title, e.message)
		}
		for i, a := range e.replies {
			if line := batchOf(e, "")[i]; o.replies {
				raw, _ := json.Marshal(line)
				fmt.Fprintf(out, "  %s\n    %s %s\n", raw, manifest.Clip(string(a.Data), 2000), a.Error.Message)
			}
		}
	})
	counts := map[string]int{}
	for _, e := range examples {
		counts[e.status]++
	}
	fmt.Fprintf(out, "%s: %d examples: %v\n", l.product, len(examples), counts)
	if o.table != "" {
		return write(o.table, examples, l.product)
	}
	return ctx.Err()
}

// load returns the examples to run, in the order of the commands.
func load(o options) ([]*example, error) {
	catalog, err := host.NewCatalog(provider)
	if err != nil {
		return nil, err
	}
	list, err := commands()
	if err != nil {
		return nil, err
	}
	var all []*example
	for _, c := range list {
		if !o.only.MatchString(c.Name) || o.effect != "" && c.Effect != o.effect {
			continue
		}
		for _, x := range provider.Examples(c.Name) {
			if o.kind != "" && x.Kind != o.kind {
				continue
			}
			e := &example{command: c, Example: x}
			e.before, e.with, err = advice.BeforeExample(catalog, cdp.Name+"."+c.Name, x.Params, x.Needs)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			all = append(all, e)
		}
	}
	return inPart(all, o.part), nil
}

// lab is a browser of its own, with the prepared pages.
type lab struct {
	binary, home string
	remove       []func()
	server       *httptest.Server
	product      string // of the browser: "Chrome/148.0.7778.167"

	params string // with which the browser is opened

	mu      sync.Mutex
	session int
	alone   sync.Mutex
}

// newLab builds parley, unless a binary is given, and opens the browser.
func newLab(ctx context.Context, binary string) (*lab, error) {
	home, err := os.MkdirTemp("", "trial-")
	if err != nil {
		return nil, err
	}
	l := &lab{binary: binary, home: home, remove: []func(){func() { os.RemoveAll(home) }}}
	if binary == "" {
		if l.binary, err = tree.Build(ctx, home); err != nil {
			os.RemoveAll(home)
			return nil, err
		}
	}
	l.server = httptest.NewTLSServer(http.HandlerFunc(serve))
	l.remove = append(l.remove, l.server.Close)
	if err := l.open(ctx); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lab) close() {
	_, _ = l.parley(context.Background(), 20*time.Second, nil, "cdp", "close", "--all")
	for _, f := range slices.Backward(l.remove) {
		f()
	}
}

var pixel, _ = base64.StdEncoding.DecodeString(
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")

// serve serves the site, to which every name resolves.
func serve(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	data, err := fs.ReadFile(site, path.Join("site", cmp.Or(name, "index.html")))
	switch {
	case name == "private":
		w.Header().Set("WWW-Authenticate", `Basic realm="harbour"`)
		w.WriteHeader(http.StatusUnauthorized)
	case name == "icon.png":
		w.Header().Set("Content-Type", "image/png")
		data = pixel
	case name == "tone.wav":
		w.Header().Set("Content-Type", "audio/wav")
		data = tone()
	case name == "report.csv":
		w.Header().Set("Content-Type", "text/csv")
		w.Header().Set("Content-Disposition", "attachment")
		data = []byte("a,b\n1,2\n")
	case name == "app.webmanifest":
		w.Header().Set("Content-Type", "application/manifest+json")
	case err != nil: // the other pages that examples name
		w.Header().Set("Content-Type", "text/html")
		data = []byte("<!DOCTYPE html><title>Page</title><p>" + name)
	case strings.HasSuffix(name, ".html") || name == "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
	case strings.HasSuffix(name, ".txt"):
		w.Header().Set("Content-Type", "text/plain")
	case strings.HasSuffix(name, ".js"):
		w.Header().Set("Content-Type", "text/javascript")
	case strings.HasSuffix(name, ".css"):
		w.Header().Set("Content-Type", "text/css")
	}
	w.Header().Set("Cache-Control", "max-age=600")
	_, _ = w.Write(data)
}

// tone is one second of silence.
func tone() []byte {
	const rate = 8000
	b := bytes.NewBufferString("RIFF")
	put := func(n, size int) {
		for range size {
			b.WriteByte(byte(n))
			n >>= 8
		}
	}
	put(36+rate, 4)
	b.WriteString("WAVEfmt ")
	put(16, 4)
	put(1, 2)
	put(1, 2)
	put(rate, 4)
	put(rate, 4)
	put(1, 2)
	put(8, 2)
	b.WriteString("data")
	put(rate, 4)
	b.Write(bytes.Repeat([]byte{128}, rate))
	return b.Bytes()
}

// open starts the browser.
func (l *lab) open(ctx context.Context) error {
	chrome, err := chromium()
	if err != nil {
		return err
	}
	at, _ := url.Parse(l.server.URL)
	key := sha256.Sum256(l.server.Certificate().RawSubjectPublicKeyInfo)
	wrapper := filepath.Join(l.home, "chromium")
	script := fmt.Sprintf("#!/bin/sh\nexec %s --host-resolver-rules='MAP * %s' \\\n"+
		"  --ignore-certificate-errors-spki-list=%s \"$@\"\n", chrome, at.Host, base64.StdEncoding.EncodeToString(key[:]))
	if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
		return err
	}
	params, _ := json.Marshal(map[string]string{"chrome": wrapper, "url": page})
	l.params = string(params)
	if out, err := l.parley(ctx, time.Minute, nil, "cdp", "open", "--params", l.params); err != nil {
		return fmt.Errorf("open the browser: %w: %s", err, out)
	}
	out, err := l.parley(ctx, time.Minute, nil, "cdp", "Browser.getVersion")
	if err != nil {
		return fmt.Errorf("version of the browser: %w: %s", err, out)
	}
	var version struct{ Product string }
	if err := json.Unmarshal(out, &version); err != nil {
		return err
	}
	l.product = strings.Replace(strings.TrimPrefix(version.Product, "Headless"), "/", " ", 1)
	return nil
}

// chromium returns the browser of this machine.
func chromium() (string, error) {
	for _, name := range []string{os.Getenv("PARLEY_CHROME"), "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); name != "" && err == nil {
			return found, nil
		}
	}
	return "", errors.New("no Chromium is installed")
}

// parley runs a command of parley and returns its standard output and error.
func (l *lab) parley(ctx context.Context, limit time.Duration, input []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.binary, args...)
	cmd.Env = append(os.Environ(), "PARLEY_HOME="+l.home)
	cmd.Stdin = bytes.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	return out.Bytes(), err
}

// runAll runs examples and reports each. A browser that has ended or hangs is started again.
func (l *lab) runAll(ctx context.Context, examples []*example, parallel int, report func(*example)) {
	work := make(chan *example)
	var wait sync.WaitGroup
	var reporting sync.Mutex
	for range max(1, parallel) {
		wait.Go(func() {
			for e := range work {
				l.try(ctx, e)
				reporting.Lock()
				report(e)
				reporting.Unlock()
			}
		})
	}
	for _, e := range examples {
		if ctx.Err() != nil {
			break
		}
		work <- e
	}
	close(work)
	wait.Wait()
}

// try runs one example.
func (l *lab) try(ctx context.Context, e *example) {
	if reason := skipReason(e.command); reason != "" {
		e.status, e.message = skipped, reason
		return
	}
	l.attempt(ctx, e)
	if !e.opened && ctx.Err() == nil { // another example has broken the browser
		l.mu.Lock()
		_, _ = l.parley(ctx, 20*time.Second, nil, "cdp", "close", "--all")
		_ = l.open(ctx)
		l.mu.Unlock()
		l.attempt(ctx, e)
	}
}

// reply is the answer to one line of a batch.
type reply struct {
	ID    json.RawMessage
	OK    bool
	Data  json.RawMessage
	Error struct {
		Code, Message string
		CDP           struct {
			Code    int
			Message string
		}
	}
}

// attempt runs an example in a session of its own.
func (l *lab) attempt(ctx context.Context, e *example) {
	l.mu.Lock()
	l.session++
	session := fmt.Sprintf("trial%d", l.session)
	l.mu.Unlock()
	defer func() {
		_, _ = l.parley(ctx, 20*time.Second, nil, "cdp", "close", "--session", session)
	}()
	answers := l.batch(ctx, batchOf(e, ""), "--session", session)
	if n := len(answers); n > 0 && strings.Contains(answers[n-1].Error.Message, "the pages of others") {
		answers = l.batchAlone(ctx, e) // sessions do not reach the whole browser
	}
	e.status, e.message, e.result, e.replies = failed, "no answer", nil, answers
	e.opened = len(answers) > opening || len(answers) == opening && answers[opening-1].OK
	for i, a := range answers {
		last := i == len(batchOf(e, ""))-1
		switch {
		case a.Error.Code == "timeout":
			e.status, e.message = hung, fmt.Sprintf("line %s: %s", a.ID, a.Error.Message)
		case !a.OK && a.Error.CDP.Code == methodNotFound:
			e.status, e.message = unknown, ""
		case !a.OK && strings.Contains(a.Error.Message, "Failed to deserialize"):
			e.status, e.message = unknown, a.Error.CDP.Message
		case !a.OK && last:
			e.message = cmp.Or(a.Error.CDP.Message, a.Error.Message)
		case !a.OK:
			e.message = fmt.Sprintf("line %s: %s: %s", a.ID, a.Error.Code, a.Error.Message)
		case last:
			e.status, e.message, e.result = verified, "", a.Data
			if why := disappoints(e); why != "" {
				e.status, e.message = failed, why
			}
		}
	}
}

// methodNotFound is Chrome's code for a command that it does not know.
const methodNotFound = -32601

// callTime bounds one call of an example.
const callTime = "10s"

// line is a call of a batch.
type line struct {
	ID      any             `json:"id,omitempty"`
	Tool    string          `json:"tool"`
	Params  json.RawMessage `json:"params,omitempty"`
	Options map[string]any  `json:"options,omitempty"`
}

// lines returns the calls before an example.
func (e *example) lines() (calls []line) {
	for _, c := range e.before {
		one := line{Tool: c.Tool, Params: c.Params}
		if c.Options != nil {
			raw, _ := json.Marshal(c.Options)
			_ = json.Unmarshal(raw, &one.Options)
		}
		calls = append(calls, one)
	}
	return calls
}

// opening is the number of the calls with which every batch begins.
const opening = 2

// openPage returns the calls that open the prepared page and wait until it is ready.
func openPage(browser string) []any {
	return []any{
		line{"open", "cdp.open", json.RawMessage(`{"url":"` + page + `"}`), lineOptions(browser)},
		line{"ready", "cdp.Runtime.evaluate",
			json.RawMessage(`{"expression":"globalThis.ready","awaitPromise":true,"returnByValue":true}`), lineOptions(browser)},
	}
}

func lineOptions(browser string) map[string]any {
	options := map[string]any{"timeout": callTime}
	if browser != "" {
		options["browser"] = browser
	}
	return options
}

// batchOf returns the calls of an example as a batch: they open the prepared page and wait until it is ready.
func batchOf(e *example, browser string) []any {
	timeout, all := lineOptions(browser), openPage(browser)
	for i, c := range e.lines() {
		options := maps.Clone(timeout)
		maps.Copy(options, c.Options)
		all = append(all, line{i + 1, c.Tool, c.Params, options})
	}
	return append(all, line{"call", cdp.Name + "." + e.command.Name, e.with, timeout})
}

// batchAlone runs a batch in a browser of its own, as the person who opened it.
func (l *lab) batchAlone(ctx context.Context, e *example) []reply {
	l.alone.Lock()
	defer l.alone.Unlock()
	const browser = "alone"
	defer func() {
		_, _ = l.parley(ctx, 20*time.Second, nil, "cdp", "close", "--browser", browser)
	}()
	_, _ = l.parley(ctx, time.Minute, nil, "cdp", "open", "--params", l.params, "--browser", browser)
	return l.batch(ctx, batchOf(e, browser))
}

func (l *lab) batch(ctx context.Context, lines []any, options ...string) (answers []reply) {
	var input bytes.Buffer
	for _, line := range lines {
		raw, _ := json.Marshal(line)
		input.Write(append(raw, '\n'))
	}
	out, _ := l.parley(ctx, time.Minute, input.Bytes(), append([]string{"batch", "-"}, options...)...)
	scan := bufio.NewScanner(bytes.NewReader(out))
	scan.Buffer(nil, 64<<20)
	for scan.Scan() {
		var a reply
		if json.Unmarshal(scan.Bytes(), &a) == nil && a.ID != nil {
			answers = append(answers, a)
		}
	}
	return answers
}
