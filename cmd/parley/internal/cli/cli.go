// Package cli is Parley's command line: flags and printing, one file for each command. Package command does the work.
//
// A command has three parts: a struct with its options, newX, which returns the cobra command that fills them, and
// runX, which calls package command and prints. newX takes a function that runs in place of runX, so that tests see the
// options of a command line without running it; nil means runX.
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

// Streams are what a command reads and writes. Commands never use os.Stdin or os.Stdout.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) string
	OutTTY   bool
	ErrTTY   bool
	Width    int // columns of the terminal; 0 without a terminal
}

// System returns the streams of this process.
func System() *Streams {
	protect.CleanEnvironment()
	s := &Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv}
	s.OutTTY, s.ErrTTY = term.IsTerminal(int(os.Stdout.Fd())), term.IsTerminal(int(os.Stderr.Fd()))
	if s.OutTTY {
		s.Width, _, _ = term.GetSize(int(os.Stdout.Fd()))
	}
	return s
}

// Main runs one command line and returns its exit code.
func Main(args []string, streams *Streams) (code int) {
	app := newFront(streams, args)
	defer app.deps.Close()
	// Libraries log foreign text, so their lines are cleaned, and shown with --debug only.
	log.SetFlags(0)
	log.SetOutput(lines(func(line string) { app.debugf("%s", manifest.CleanLine(line)) }))
	defer func() {
		if fault := recover(); fault != nil {
			app.debugf("%s", debug.Stack())
			code = app.fail(host.Errorf(host.Internal, "internal error: %v", fault))
		}
	}()

	root := newRootFor(app, args, runRoot)
	root.SetArgs(args)
	err := root.ExecuteContext(countDocs(app.signaled, app.writeErrorDocs))
	if err == nil {
		err = app.helpErr // cobra's help cannot fail
	}
	if err == nil {
		return 0
	}
	var again *retyped
	if errors.As(err, &again) {
		return Main(again.args, streams)
	}
	var ended *exitStatus
	if errors.As(err, &ended) {
		return ended.code // everything has been printed
	}
	return app.fail(err)
}

// exitStatus is the error of a command that has printed its failure on stdout: batch, --listen and mcp.
type exitStatus struct{ code int }

func (e *exitStatus) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// signaledContext is a context that SIGINT, SIGTERM and SIGHUP cancel. The cause is the error with whose exit code the
// process ends. A second signal ends the process at once.
//
// Signals are handled from when something first waits for the end of the context, because handling them takes threads.
// Until then, and thus in a command that only prints, the system ends the process, as while it starts. Signals are
// handled until the process ends, since to stop that takes as long as to start it.
type signaledContext struct {
	context.Context
	handle func() // starts to handle signals, once
	later  func() // calls handle after a moment, once

	// brief means that most commands of this kind end within a moment; those that do not handle signals after it.
	brief bool
}

func newSignaledContext() *signaledContext {
	const moment = 5 * time.Millisecond
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &signaledContext{Context: ctx, handle: sync.OnceFunc(func() { handleSignals(cancel) })}
	c.later = sync.OnceFunc(func() { time.AfterFunc(moment, c.handle) })
	return c
}

func (c *signaledContext) Done() <-chan struct{} {
	if c.brief {
		c.later()
	} else {
		c.handle()
	}
	return c.Context.Done()
}

// handleSignals cancels a context when signals come.
func handleSignals(cancel context.CancelCauseFunc) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup has it ignored
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		for n := 0; ; n++ {
			e := host.Errorf(host.Interrupted, "interrupted")
			if s := <-signals; s != os.Interrupt {
				e = host.Errorf(host.Terminated, "terminated")
			}
			if n > 0 {
				os.Exit(e.ExitCode())
			}
			cancel(e)
		}
	}()
}

// App is one run of the command line: its streams, its global options and the dependencies of its commands.
type App struct {
	*Streams
	deps     *command.Deps
	args     []string // the command line, as given
	failing  bool     // the command has failed
	commands []string // the names of all commands
	// meant returns the step that a refused command line means in the form of another product, nil if it means none.
	meant    func(host.Code) *host.Step
	json     bool
	full     bool  // --help with all options
	helpErr  error // what failed while printing help
	signaled *signaledContext
	// maxTokens limits what lists, descriptions and searches print; 0 means that they print everything.
	maxTokens int

	// mu guards lines, notices and what notice and debugf print, because plugins are compiled in the background of calls.
	mu      sync.Mutex
	lines   []string // debug lines
	notices []string // notices for the envelope, with --json
	// admissions are the reports on loaded plugins, with --json.
	admissions []*parley.Admission
}

// runFunc runs a command with the options that its flags and words gave.
type runFunc[O any] func(ctx context.Context, opts *O) error

func newApp(streams *Streams, args []string) *App {
	app := &App{Streams: streams, args: args, signaled: newSignaledContext()}
	app.deps = &command.Deps{
		Env: streams.Env, Command: app.command, Notice: app.notice, Input: app.input, Debug: app.debugf,
		Approver: &terminal{}, ApproveChange: approveOnTerminal, Admitted: app.admitted,
	}
	// The error of an invalid flag must be printed in the right form, also if --json comes after it.
	for _, a := range args {
		if a == "--" {
			break
		}
		app.json = app.json || a == "--json" || a == "--json=true"
		app.deps.Debugging = app.deps.Debugging || a == "--debug" || a == "--debug=true"
	}
	return app
}

// debugf prints a line with --debug: to stderr at once, or with --json in the envelope.
func (a *App) debugf(format string, args ...any) {
	if !a.deps.Debugging {
		return
	}
	line := manifest.CleanLine(fmt.Sprintf(format, args...))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.json {
		a.lines = append(a.lines, line)
		return
	}
	fmt.Fprintln(a.Err, "debug: "+line)
}

// notice prints what is not part of the result, such as a first compilation: to stderr, or with --json as a warning.
func (a *App) notice(text string) {
	text = manifest.CleanLine(text)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.json {
		a.notices = append(a.notices, text)
		return
	}
	fmt.Fprintln(a.Err, "note: "+text)
}

// said returns the lines that notice and debugf have stored for the envelope.
func (a *App) said() (notices, lines []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.notices), slices.Clone(a.lines)
}

// forget removes what notice, debugf and reports have stored, so that the next envelope does not repeat it.
func (a *App) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notices, a.lines, a.admissions = nil, nil, nil
}

// print prints the result of a command: with --json the envelope, otherwise text. A nil text means the data as JSON.
func (a *App) print(data any, next []string, text func(w io.Writer)) error {
	raw, err := manifest.Marshal(data)
	if err != nil {
		return err
	}
	env := &command.Envelope{OK: true, Data: raw, Warnings: []string{}, Next: append([]string{}, next...)}
	return a.printEnvelope(env, text)
}

// printEnvelope prints an envelope in the way of [App.print].
func (a *App) printEnvelope(env *command.Envelope, text func(w io.Writer)) error {
	if a.json {
		notices, lines := a.said()
		env.Warnings = append(append([]string{}, env.Warnings...), notices...)
		env.Debug, env.Admission = lines, a.admissions
		return a.printDocument(env)
	}
	for _, w := range env.Warnings {
		fmt.Fprintln(a.Err, "warning: "+manifest.CleanLine(w))
	}
	if text != nil {
		var b strings.Builder
		text(&b)
		_, err := io.WriteString(a.Out, b.String())
		return writeError(err)
	}
	return a.printDocument(env.Data)
}

// printDocument prints one JSON document: indented on a terminal, one line in a pipe.
func (a *App) printDocument(v any) error { return writeError(writeJSON(a.Out, v, a.OutTTY)) }

// writeJSON writes one JSON document and a line break. On a terminal, where it is indented, hidden characters are
// escaped; a program reads each value to the byte.
func writeJSON(w io.Writer, v any, indented bool) error {
	raw, written := v.(json.RawMessage)
	var err error
	if !written {
		if raw, err = manifest.Marshal(v); err != nil {
			return err
		}
	}
	if indented {
		raw = indent(manifest.EscapeJSON(raw))
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

func writeError(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil // the reader has closed the pipe, such as head
	}
	return err
}

// fail prints an error and returns its exit code.
func (a *App) fail(err error) int {
	a.failing = true
	e := host.AsError(err)
	const nothingSuch = "no_match" // as tools call it that look for what the words name
	mayMean := slices.Contains([]host.Code{host.NotFound, host.InvalidArgs, nothingSuch}, e.Code) && e.Corrected == nil
	if mayMean && a.meant != nil {
		if step := a.meant(e.Code); step != nil {
			e.Steps = append([]host.Step{*step}, e.Steps...)
			if step.Op == host.OpCall {
				e.Retry, e.Corrected, e.Template, e.Changes = step, step.Params, nil, nil
			}
		}
	}
	e = e.Bounded()
	next := a.deps.Next(e.Steps, e.Next)
	if len(next) == 0 {
		next = a.nextFor(e.Code)
	}
	if a.json {
		a.lines = append(a.lines, traceText(e.Trace)...)
		env := &command.Envelope{Error: a.deps.ErrorObject(e), Warnings: []string{}}
		var f *failure
		if errors.As(err, &f) {
			f.envelope.Error, env = env.Error, f.envelope
		}
		env.Next = next
		notices, lines := a.said()
		env.Warnings = append(env.Warnings, notices...)
		env.Debug, env.Admission = lines, a.admissions
		raw, _ := manifest.Marshal(env)
		raw = manifest.EscapeJSON(raw)
		if a.ErrTTY {
			raw = indent(raw)
		}
		fmt.Fprintf(a.Err, "%s\n", raw)
		return e.ExitCode()
	}
	var f *failure
	if errors.As(err, &f) {
		for _, w := range f.envelope.Warnings {
			fmt.Fprintln(a.Err, "warning: "+manifest.CleanLine(w))
		}
	}
	writeErrorText(a, e, next)
	return e.ExitCode()
}

// nextFor returns what to do about an error that names no next step itself.
func (a *App) nextFor(code host.Code) []string {
	switch code {
	case host.InvalidArgs, host.NotFound:
		return []string{"parley --help"}
	case host.InvalidPlugin:
		return []string{"parley help plugin build"}
	case host.ConfigError, host.Unavailable, host.ChromeLaunch:
		return []string{"parley doctor"}
	case host.Trapped, host.InvalidResult:
		return []string{"run it again with --debug and report the output to the plugin's author"}
	case host.LimitExceeded:
		return []string{"ask for less at once"}
	case host.Internal:
		return []string{"run it again with --debug and report the output"}
	}
	return nil
}

// failure is the error of a call, with the envelope that identifies the call.
type failure struct {
	err      *host.Error
	envelope *command.Envelope
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// failed returns the error of a call that has failed.
func (a *App) failed(answer *host.Answer) error {
	a.failing = true
	return &failure{answer.Err, a.deps.Envelope(answer)}
}

// earlierShown is how many earlier errors of the session the text of an error names; --json has all that are stored.
const earlierShown = 3

// writeErrorText prints an error for people: what is wrong, what was probably meant, and the first two next steps.
func writeErrorText(a *App, e *host.Error, next []string) {
	w := a.Err
	red, reset := a.color(a.ErrTTY, red), a.color(a.ErrTTY, reset)
	message := manifest.Clean(e.Message)
	if e.Code == host.InvalidArgs && strings.HasPrefix(message, "Tool '") {
		fmt.Fprintf(w, "%s%s%s\n", red, message, reset)
	} else {
		fmt.Fprintf(w, "%sError:%s %s\n", red, reset, message)
	}
	for _, d := range e.Details {
		where := d.Parameter
		if where == "" {
			where = "parameters"
		}
		line := fmt.Sprintf("%s: expected %s, got %s", where, d.Expected, d.Provided)
		if d.Provided == "" {
			line = where + ": " + d.Expected
		}
		if d.Suggestion != nil {
			line += " (" + d.Suggestion.String() + ")"
		}
		fmt.Fprintln(w, wrapped("  "+manifest.CleanLine(line), a.columns(), "      "))
	}
	if len(e.Earlier) > 0 {
		latest := e.Earlier[max(0, len(e.Earlier)-earlierShown):]
		fmt.Fprintln(w, wrapped("Errors of this session before: "+strings.Join(latest, "; "), a.columns(), "  "))
	}
	for _, line := range traceText(e.Trace) {
		fmt.Fprintln(w, "  "+line)
	}
	for _, d := range e.Denied {
		fmt.Fprintf(w, "  %s: %s\n", d.Right, manifest.CleanLine(d.Why))
	}
	if e.Docs != nil {
		fmt.Fprintln(w, "Detailed parameter documentation:")
		a.docsText(w, a.deps.WithCommands(e.Docs.ToolDocs))
	}
	for i, s := range e.DidYouMean {
		label := "Did you mean:"
		if i > 0 {
			label = strings.Repeat(" ", len(label))
		}
		fmt.Fprintf(w, "%s  %s (edit distance: %d)\n", label, s.Name, s.Distance)
	}
	for i, n := range next {
		if i == 2 {
			break // --json has all
		}
		label := "Tip:"
		if i > 0 {
			label = "    "
		}
		fmt.Fprintf(w, "%s %s\n", label, manifest.CleanLine(n))
	}
}

// traceText says where a guest crashed and what it wrote last, in lines. It is empty without a trace.
func traceText(t *host.Trace) (lines []string) {
	if t == nil {
		return nil
	}
	if len(t.Frames) > 0 {
		lines = append(lines, "functions of the plugin, innermost first:")
	}
	for _, f := range t.Frames {
		line := fmt.Sprintf("  function %d", f.Function)
		if f.Name != "" {
			line = "  " + f.Name
		}
		lines = append(lines, line)
	}
	if t.Unnamed && len(t.Frames) > 0 {
		lines = append(lines, "to see their names, build with parley plugin build --names, or with the compiler's own "+
			"means: C without -s, Rust with -C strip=none, Go with -ldflags=-w in place of -s")
	}
	for _, of := range []struct {
		name  string
		lines []string
	}{{"stderr", t.Stderr}, {"log", t.Log}} {
		if len(of.lines) > 0 {
			lines = append(lines, "the last lines of its "+of.name+":")
		}
		for _, line := range of.lines {
			lines = append(lines, "  "+line)
		}
	}
	return lines
}

// docsText prints documentation wrapped to the width of the terminal. Commands are not wrapped, so that they can be
// copied.
func (a *App) docsText(w io.Writer, d *manifest.ToolDocs) {
	shown := *d
	shown.Deeper = "--tier 3"
	for line := range strings.Lines(shown.Text()) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "Example:") {
			line = wrapped(line, a.columns(), "    ")
		}
		fmt.Fprintln(w, line)
	}
}

// wrapped breaks a line at spaces, and a long union of types between them, so that it has at most width columns. Each
// further line begins with indent.
func wrapped(line string, width int, indent string) string {
	var b strings.Builder
	lead := line[:len(line)-len(strings.TrimLeft(line, " "))]
	column := 0
	words := strings.Fields(line)
	for i := 0; i < len(words); i++ {
		word := words[i]
		n := utf8.RuneCountInString(word)
		if room := max(width-len(indent), 20); n > room {
			if at := strings.LastIndexByte(word[:room], '|'); at > 0 {
				words = slices.Insert(words, i+1, word[at+1:])
				word = word[:at+1]
				n = utf8.RuneCountInString(word)
			}
		}
		switch {
		case column == 0:
			b.WriteString(lead)
			column = len(lead)
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// lines is a writer that passes each write to a function.
type lines func(string)

func (f lines) Write(p []byte) (int, error) {
	f(string(p))
	return len(p), nil
}

// color returns a terminal sequence, or "" if the stream is not a terminal or the user wants no colours.
func (a *App) color(tty bool, sequence string) string {
	if !tty || a.Env("NO_COLOR") != "" || a.Env("TERM") == "dumb" {
		return ""
	}
	return sequence
}

// columns returns the width to which text is wrapped.
func (a *App) columns() int {
	if a.Width > 20 {
		return a.Width
	}
	return 80
}

func indent(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return raw
	}
	return b.Bytes()
}
