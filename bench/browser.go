package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/parley-tools/parley/bench/internal/tree"
)

// peerSource is the smallest program that evaluates an expression in a page: it dials, sends and exits. For each
// further argument it sends once more. It prints the time of each reply.
const peerSource = `package main

import (
	"fmt"
	"os"
	"time"

	"github.com/gorilla/websocket"
)

func main() {
	ws, _, err := websocket.DefaultDialer.Dial(os.Args[1], nil)
	for range os.Args[1:] {
		start := time.Now()
		if err == nil {
			err = ws.WriteMessage(websocket.TextMessage, []byte("{\"id\":1,\"method\":\"Runtime.evaluate\",\"params\":{\"expression\":\"6*7\"}}"))
		}
		if err == nil {
			_, _, err = ws.ReadMessage()
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(time.Since(start).Nanoseconds())
	}
}
`

const (
	// oneCall is the same evaluation as a line of a batch; %q is a target.
	oneCall = `{"tool":"cdp.Runtime.evaluate","params":{"expression":"6*7","returnByValue":true},"options":{"target":%q}}`

	roundTrips  = 500
	navigations = 1000
	floodTime   = 3 * time.Second
)

// browser times calls in a browser: first in one with a port, so that other programs can use the same one, then in one
// that the keeper starts.
func (b *bench) browser() error {
	chrome, err := tree.Chrome(b.parley, b.env("own"))
	if errors.Is(err, tree.ErrNoChrome) {
		fmt.Fprintln(b.out, "\nNo browser was found; its figures are left out:", err)
		return nil
	}
	if err != nil {
		return err
	}
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!doctype html><title>%s</title><p>%s", r.URL.Path, strings.Repeat("text ", 200))
	}))
	defer pages.Close()
	return errors.Join(
		b.compareEvaluate(chrome, pages.URL), b.withOwnBrowser(pages.URL, b.flood), b.keeperAlone(),
		b.withOwnBrowser(pages.URL, func(batch *batch, page, _ string) error { return b.navigate(batch, page, pages.URL) }))
}

// keeperAlone runs such floods in the keeper's package, which shows how much of the delay is the keeper's: without
// Chrome, and with it beside a client that has no keeper.
func (b *bench) keeperAlone() error {
	const pkg = "./cdp/internal/keeper"
	for _, flood := range []struct{ benchmark, what string }{
		{"BenchmarkFlood", "The same of the keeper alone: its browser is a goroutine at the other end of the pipe"},
		{"BenchmarkBesideFlood", "Calls beside a page that logs 10,000 messages a second, and by turns is silent: by a " +
			"bare\nclient that hears them, through a keeper that does not record that page, and through one that does"},
	} {
		out, err := exec.Command("go", "test", "-run", "^$", "-bench", "^"+flood.benchmark+"$", "-benchtime",
			floodTime.String(), pkg).CombinedOutput()
		if err != nil {
			return fmt.Errorf("go test -bench %s %s: %w\n%s", flood.benchmark, pkg, err, out)
		}
		fmt.Fprintln(b.out, "\n"+flood.what)
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, flood.benchmark+"/") {
				fmt.Fprint(b.out, "  ", line)
			}
		}
	}
	return nil
}

// compareEvaluate times an evaluation by Parley, the bare round trip and the smallest program in the same page of one
// browser.
func (b *bench) compareEvaluate(chrome, url string) error {
	endpoint, end, err := b.launch(chrome)
	if err != nil {
		return err
	}
	defer end()
	host := strings.TrimPrefix(strings.Split(endpoint, "/devtools/")[0], "ws://")
	var page struct {
		Target string `json:"target"`
	}
	opened, err := b.output("attached", "cdp", "open", url+"/page", "--param", "attach="+endpoint)
	if err == nil {
		err = json.Unmarshal(opened, &page)
	}
	if err != nil {
		return err
	}
	defer b.closeBrowser("attached")
	pageURL := "ws://" + host + "/devtools/page/" + page.Target
	source := filepath.Join("bench", "peer.tmp.go") // in the tree, for its dependency
	if err := os.WriteFile(source, []byte("//go:build ignore\n\n"+peerSource), 0o644); err != nil {
		return err
	}
	defer os.Remove(source)
	least := filepath.Join(b.work, "peer.exe")
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", least,
		source).CombinedOutput(); err != nil {
		return fmt.Errorf("build the peer: %w\n%s", err, out)
	}

	bare, err := bareRoundTrips(least, pageURL)
	if err != nil {
		return err
	}
	batch, err := b.startBatch("attached")
	if err != nil {
		return err
	}
	batched, err := batch.calls(page.Target, roundTrips)
	if err = errors.Join(err, batch.end()); err != nil {
		return err
	}
	program := &subject{name: "the smallest Go program: dials, evaluates, exits", args: []string{least, pageURL}}
	cold := b.command("parley cdp Runtime.evaluate", "attached", "cdp", "Runtime.evaluate", "--params",
		`{"expression":"6*7","returnByValue":true}`, "--target", page.Target)
	for round := range b.rounds + 1 {
		for _, s := range []*subject{program, cold} {
			if err := b.time(s); err != nil {
				return err
			}
			if round == 0 {
				s.took = nil
			}
		}
	}
	fmt.Fprintf(b.out, "\nRuntime.evaluate in one page of one browser\n")
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "median ms\tover bare\t  ")
	for _, r := range []struct {
		name string
		took []time.Duration
	}{
		{"bare round trip over an open websocket", bare},
		{"an open parley batch (aim: at most 0.3 over bare)", batched},
		{program.name, program.took},
		{"cold process: " + cold.name + " (aim: at most 8 over bare)", cold.took},
	} {
		fmt.Fprintf(w, "%.2f\t%.2f\t  %s\n", milliseconds(median(r.took)), milliseconds(median(r.took)-median(bare)), r.name)
	}
	return w.Flush()
}

// launch starts a browser with a port and returns its address.
func (b *bench) launch(chrome string) (endpoint string, end func(), err error) {
	profile := filepath.Join(b.work, "profile")
	cmd := exec.Command(chrome, "--headless", "--disable-gpu", "--no-sandbox", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--remote-debugging-port=0", "--user-data-dir="+profile, "about:blank")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		_ = cmd.Process.Signal(os.Interrupt) // so that it stops its helper processes too
		_ = cmd.Wait()
	}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if _, address, ok := strings.Cut(lines.Text(), "DevTools listening on "); ok {
			go io.Copy(io.Discard, stderr)
			return strings.TrimSpace(address), end, nil
		}
	}
	end()
	return "", nil, errors.New("the browser did not print its address")
}

// bareRoundTrips times replies over one open websocket.
func bareRoundTrips(program, pageURL string) (took []time.Duration, err error) {
	args := []string{pageURL}
	for range roundTrips {
		args = append(args, "again")
	}
	out, err := exec.Command(program, args...).Output()
	for line := range strings.Lines(string(out)) {
		n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Duration(n))
	}
	return took, err
}

// flood times calls to one page while another one makes some 10,000 events a second, which go into the ring. The events
// are calls of a binding, which cost Chrome the least: on few processors, producing the events is what delays calls.
func (b *bench) flood(batch *batch, quiet, loud string) error {
	idle, err := batch.callsFor(quiet, floodTime)
	if err != nil {
		return err
	}
	before, err := b.status()
	if err != nil {
		return err
	}
	for _, line := range []string{
		fmt.Sprintf(`{"tool":"cdp.Runtime.enable","options":{"target":%q}}`, loud),
		fmt.Sprintf(`{"tool":"cdp.Runtime.addBinding","params":{"name":"tell"},"options":{"target":%q}}`, loud),
		fmt.Sprintf(`{"tool":"cdp.Runtime.evaluate","params":{"expression":"setInterval(() => { for (let i = 0; i < 40; i++) tell('event') }, 4); 0"},"options":{"target":%q}}`, loud),
	} {
		if _, err := batch.send(line); err != nil {
			return err
		}
	}
	if _, err := batch.callsFor(quiet, floodTime); err != nil { // until the ring is full
		return err
	}
	full, err := b.status()
	if err != nil {
		return err
	}
	start := time.Now()
	busy, err := batch.callsFor(quiet, 2*floodTime)
	if err != nil {
		return err
	}
	after, err := b.status()
	if err != nil {
		return err
	}
	rate := float64(after.Events.LastSeq-full.Events.LastSeq) / time.Since(start).Seconds()
	fmt.Fprintf(b.out, "\nCalls to one page while another makes %.0f events a second\n", rate)
	fmt.Fprintf(b.out, "  p99 %.2f ms, idle %.2f ms: %.1f times (aim: at most 3)\n",
		milliseconds(p99(busy)), milliseconds(p99(idle)), float64(p99(busy))/float64(p99(idle)))
	fmt.Fprintf(b.out, "  median %.2f ms, idle %.2f ms\n", milliseconds(median(busy)), milliseconds(median(idle)))
	fmt.Fprintf(b.out, "  the keeper takes %.1f MB, %.1f with its ring full, %.1f some %.0f events later\n",
		megabytes(before), megabytes(full), megabytes(after), float64(after.Events.LastSeq-full.Events.LastSeq))
	return nil
}

// withOwnBrowser runs a measurement in a browser that the keeper starts, with a batch open and two pages.
func (b *bench) withOwnBrowser(url string, measure func(batch *batch, one, two string) error) error {
	defer b.closeBrowser("own")
	var pages [2]struct {
		Target string `json:"target"`
	}
	for i := range pages {
		raw, err := b.output("own", "cdp", "open", url+"/page")
		if err == nil {
			err = json.Unmarshal(raw, &pages[i])
		}
		if err != nil {
			return err
		}
	}
	batch, err := b.startBatch("own")
	if err != nil {
		return err
	}
	defer batch.end()
	return measure(batch, pages[1].Target, pages[0].Target)
}

// navigate prints the memory of the keeper while a page navigates from one document to another.
func (b *bench) navigate(batch *batch, page, url string) error {
	fmt.Fprintf(b.out, "\nThe keeper's memory over %d navigations\n ", navigations)
	for i := range navigations + 1 {
		line := fmt.Sprintf(`{"tool":"cdp.Page.navigate","params":{"url":"%s/%d"},"options":{"target":%q}}`, url, i, page)
		if _, err := batch.send(line); err != nil {
			return err
		}
		if i%(navigations/5) == 0 {
			s, err := b.status()
			if err != nil {
				return err
			}
			fmt.Fprintf(b.out, " after %d: %.1f MB, %d events kept;", i, megabytes(s), s.Events.Kept)
		}
	}
	fmt.Fprintln(b.out)
	return nil
}

// keeperStatus is the part of cdp.status that is about the keeper.
type keeperStatus struct {
	PID    int `json:"keeper_pid"`
	Events struct {
		LastSeq int64 `json:"last_seq"`
		Kept    int   `json:"kept"`
	} `json:"events"`
	rss int64 // KiB
}

func (b *bench) status() (keeperStatus, error) {
	var data struct {
		Browsers []keeperStatus `json:"browsers"`
	}
	raw, err := b.output("own", "cdp", "status")
	if err == nil {
		err = json.Unmarshal(raw, &data)
	}
	if err != nil || len(data.Browsers) != 1 {
		return keeperStatus{}, fmt.Errorf("no status of the keeper: %w", err)
	}
	s := data.Browsers[0]
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID))
	if _, after, ok := strings.Cut(string(text), "VmRSS:"); ok {
		_, err = fmt.Sscan(after, &s.rss)
	}
	return s, err
}

func megabytes(s keeperStatus) float64 { return float64(s.rss) / 1000 }

func p99(took []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[len(sorted)*99/100]
}

// output runs Parley and returns its stdout.
func (b *bench) output(home string, args ...string) ([]byte, error) {
	cmd := exec.Command(b.parley, args...)
	cmd.Env = b.env(home)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("parley %s: %w\n%s", strings.Join(args, " "), err, exit.Stderr)
	}
	return out, err
}

// closeBrowser closes the browser of a home.
func (b *bench) closeBrowser(home string) { _, _ = b.output(home, "cdp", "close", "--all") }

// batch is an open parley batch.
type batch struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
	cancel  context.CancelFunc
}

func (b *bench) startBatch(home string) (*batch, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	one := &batch{cmd: exec.CommandContext(ctx, b.parley, "batch", "-"), cancel: cancel}
	one.cmd.Env, one.cmd.Stderr = b.env(home), os.Stderr
	var err error
	if one.in, err = one.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := one.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	one.answers = bufio.NewReader(out)
	return one, one.cmd.Start()
}

// send sends one line and returns the time until its reply.
func (t *batch) send(line string) (time.Duration, error) {
	start := time.Now()
	if _, err := io.WriteString(t.in, line+"\n"); err != nil {
		return 0, err
	}
	answer, err := t.answers.ReadString('\n')
	took := time.Since(start)
	if err == nil && !strings.Contains(answer, `"ok":true`) {
		err = errors.New(answer)
	}
	return took, err
}

// calls times n evaluations, after a few that fill caches.
func (t *batch) calls(target string, n int) (took []time.Duration, err error) {
	for range n + 20 {
		one, err := t.send(fmt.Sprintf(oneCall, target))
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return took[20:], nil
}

// callsFor times evaluations for a duration.
func (t *batch) callsFor(target string, duration time.Duration) (took []time.Duration, err error) {
	for end := time.Now().Add(duration); time.Now().Before(end); {
		some, err := t.calls(target, 100)
		if err != nil {
			return nil, err
		}
		took = append(took, some...)
	}
	return took, nil
}

func (t *batch) end() error {
	defer t.cancel()
	return errors.Join(t.in.Close(), t.cmd.Wait())
}
