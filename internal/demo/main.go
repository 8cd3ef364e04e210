// Command demo shows the main job of Parley with a real browser and a page of its own: from no knowledge to the
// results of a browser and of a plugin, one command after the other, with the cost of each.
//
// It works in a temporary PARLEY_HOME. It fails if a step fails or leaves a process running. With -update FILE it also
// writes the transcript between the markers in that file.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

const (
	startMark = "<!-- transcript: written by `go run ./internal/demo -update README.md` -->"
	endMark   = "<!-- /transcript -->"

	title   = "Harbour at dawn"
	columns = 100 // the width at which lines of output are cut
)

func main() {
	binary := flag.String("parley", "", "the parley to show; default: built now")
	update := flag.String("update", "", "write the transcript between the markers in this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *binary, *update); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary, update string) error {
	if binary == "" {
		built, remove, err := build(ctx)
		if err != nil {
			return err
		}
		defer remove()
		binary = built
	}
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	var transcript bytes.Buffer
	d := demo{binary: binary, out: io.MultiWriter(os.Stdout, &transcript), warn: update == ""}
	if err := d.show(ctx); err != nil {
		return err
	}
	if update == "" {
		return nil
	}
	return write(update, transcript.String())
}

// build compiles parley into a temporary folder.
func build(ctx context.Context) (binary string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "parley-demo-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	binary = filepath.Join(dir, "parley.exe") // a name that every system runs
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/parley-tools/parley/cmd/parley")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		remove()
		return "", nil, fmt.Errorf("build parley: %w", err)
	}
	return binary, remove, nil
}

// write replaces the text between the markers of a file.
func write(file, transcript string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(old), startMark+"\n")
	_, after, ok2 := strings.Cut(rest, endMark)
	if !ok || !ok2 {
		return fmt.Errorf("the markers are missing in %s: %s and %s", file, startMark, endMark)
	}
	return os.WriteFile(file, []byte(before+startMark+"\n```text\n"+transcript+"```\n"+endMark+after), 0o644)
}

// step is one command of the demo.
type step struct {
	args  []string
	lines int    // lines of output to show
	want  string // a part of the expected output
}

// story returns the commands of the demo, in order. url is the address of the page.
func story(url string) []step {
	return []step{
		{[]string{"--help", "--json"}, 1, `"exit_codes"`},
		{[]string{"--list"}, 3, "cdp "},
		{[]string{"cdp", "--list"}, 2, "Network"},
		{[]string{"cdp", "Network", "--list"}, 2, "getCookies"},
		{[]string{"cdp", "Network.getCookies", "--describe"}, 1, `"cdp.Network.getCookies"`},
		{[]string{"cdp", "open", url}, 1, title},
		{[]string{"cdp", "Runtime.evaluate", "--params", `{"expression":"document.title","returnByValue":true}`}, 1, title},
		{[]string{"text", "--list"}, 2, "hash"},
		{[]string{"text", "hash", "--describe"}, 1, `"text.hash"`},
		{[]string{"text", "hash", "hello", "--param", "algorithm=md5"}, 1, "5d41402abc4b2a76b9719d911017c592"},
		{[]string{"cdp", "close"}, 1, "closed"},
		{[]string{"runner", "stop"}, 1, ""}, // on some systems there is none
	}
}

// untilBrowser is the number of steps from the first command to the result of the browser.
const untilBrowser = 7

// demo runs the story.
type demo struct {
	binary string
	out    io.Writer
	warn   bool // show warnings, which depend on the user who runs the demo
	home   string
}

func (d *demo) show(ctx context.Context) (err error) {
	home, err := os.MkdirTemp("", "parley-demo-home-")
	if err != nil {
		return err
	}
	d.home = home
	defer os.RemoveAll(home)
	url, stop, err := serve()
	if err != nil {
		return err
	}
	defer stop()
	defer func() {
		if err != nil { // end processes that a failed step has left
			for _, args := range [][]string{{"cdp", "close"}, {"runner", "stop"}} {
				end := exec.Command(d.binary, args...)
				end.Env = d.env()
				_ = end.Run()
			}
		}
	}()

	fmt.Fprintln(d.out, "From knowing nothing, with nothing but the binary (tokens: bytes/4.5):")
	total := 0
	for i, s := range story(url) {
		tokens, err := d.play(ctx, s)
		if err != nil {
			return err
		}
		if total += tokens; i+1 == untilBrowser {
			fmt.Fprintf(d.out, "= %d calls, %d tokens from nothing to the browser's answer. A plugin is used the same way:\n",
				untilBrowser, total)
		}
	}
	if err := d.awaitExit(ctx); err != nil {
		return err
	}
	fmt.Fprintf(d.out, `Nothing is left running. What next, for
  an agent           bin/parley search "take a picture of the page"
  a plugin author    bin/parley plugin build plugins/text --out /tmp/text.wasm
  an operator        bin/parley doctor
`)
	return nil
}

// play runs one command, prints it with the beginning of its output, and returns the tokens of the output.
func (d *demo) play(ctx context.Context, s step) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, d.binary, s.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = d.env(), &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start)
	line := "parley " + quoted(s.args)
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", line, err, stderr.String())
	}
	answer := stdout.String()
	if !strings.Contains(answer, s.want) {
		return 0, fmt.Errorf("%s printed %q; want %q in it", line, answer, s.want)
	}
	tokens := int(math.Round(float64(len(answer)) / 4.5))
	fmt.Fprintf(d.out, "%4d tokens %5d ms  $ %s\n", tokens, took.Milliseconds(), line)
	for l := range strings.Lines(stderr.String()) {
		if d.warn || strings.HasPrefix(l, "note:") {
			fmt.Fprintf(d.out, "    %s\n", cut(strings.TrimRight(l, "\n"), false))
		}
	}
	lines := strings.Split(strings.TrimRight(answer, "\n"), "\n")
	for i, l := range lines[:min(s.lines, len(lines))] {
		fmt.Fprintf(d.out, "    %s\n", cut(l, i+1 == s.lines && len(lines) > s.lines))
	}
	return tokens, nil
}

// env returns the environment of a new user.
func (d *demo) env() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PARLEY_") || strings.HasPrefix(v, "PARLEY_CHROME=") {
			env = append(env, v)
		}
	}
	return append(env, "PARLEY_HOME="+d.home, "NO_COLOR=1")
}

// awaitExit waits up to five seconds until all processes that belong to the home of the demo have exited.
func (d *demo) awaitExit(ctx context.Context) error {
	deadline := time.Now().Add(5 * time.Second)
	for {
		running, err := processes(d.home)
		if err != nil || len(running) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("still running after parley cdp close and runner stop: %s", strings.Join(running, ", "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// serve serves one page on the loopback interface.
func serve() (url string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!doctype html><title>%s</title><h1>%[1]s</h1>", title)
	})}
	go server.Serve(listener)
	return "http://" + listener.Addr().String() + "/", func() { server.Close() }, nil
}

// quoted returns a command line as a user would type it.
func quoted(args []string) string {
	var words []string
	for _, a := range args {
		if strings.ContainsAny(a, `{}"$ `) {
			a = "'" + a + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

func cut(line string, more bool) string {
	if runes := []rune(line); len(runes) > columns {
		return string(runes[:columns]) + "…"
	}
	if more {
		return line + " …"
	}
	return line
}
