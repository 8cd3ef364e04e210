// Package command has what all commands share: the [App] with its streams, options and parts of the host, the envelope
// and the text of results and errors, flags, completion, settings, and questions to a person.
//
// A command has three parts, in one file of the package for its kind: a struct with its options, whose tags say which
// flags and words they are, the [Command], and runX, which does the work and prints. The data that --json prints is a
// type beside them. Errors are [*host.Error].
package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Note records a change by the operator. The change has already been made, so if the log cannot be written, that is
// only reported.
func (a *App) Note(op, subject string, details ...string) {
	if err := a.Parley().AuditLog().Note(op, subject, details...); err != nil {
		a.Notice(err.Error())
	}
}

// Caller is the name of the command line as a caller, in the policy and in records.
const Caller = "cli"

// Parley returns the host's parts. Here, settings that cannot be read count as not set; commands that depend on
// settings call [App.Settings].
func (a *App) Parley() *parley.Parley {
	if a.parley == nil {
		cfg := parley.Config{
			Env: a.Env, Plugins: a.Plugins, Accept: a.Accept, Notice: a.Notice,
			Admitted: func(report *admit.Report) { admitted(a, report) },
			Replace:  func(name, owner string) error { return replaceLoaded(a, name, owner) },
			Approver: &terminal{},
		}
		if a.Debug {
			cfg.Debug = a.Debugf
		}
		if s, err := a.Settings(); err == nil {
			cfg.Chrome, cfg.BrowserIdle, cfg.Mode, cfg.Prefer = s.Chrome, s.BrowserIdle, s.DocMode, s.Prefer
			if cfg.RunnerIdle = s.RunnerIdle; !s.Runner {
				cfg.RunnerIdle = -1
			}
			cfg.Traces = parley.Traces{
				Off: s.TracesOff, Values: s.TracesValues, KeepDays: s.TracesDays, MaxBytes: int64(s.TracesMiB) << 20,
			}
		}
		a.parley = parley.New(cfg)
	}
	return a.parley
}

// Settings returns the configuration. The error is config_error for a file or a variable with an invalid value.
func (a *App) Settings() (*Settings, error) {
	if a.settings == nil {
		s, err := loadSettings(a.Env, a.Dirs().Config)
		if err != nil {
			return nil, err
		}
		a.settings = s
	}
	return a.settings, nil
}

// Dirs returns the folders of the host.
func (a *App) Dirs() parley.Dirs { return parley.FindDirs("", a.Env) }

// sessionVariable is the environment variable that names the session of calls.
const sessionVariable = "PARLEY_SESSION"

// Principal returns the principal of the command line, with its session. If the session has an invalid name, the
// error is invalid_args for SessionName, or config_error for the variable.
func (a *App) Principal() (caller.Principal, error) {
	name := cmp.Or(a.SessionName, a.Env(sessionVariable))
	p := caller.Principal{Name: Caller, Session: caller.Session{Name: name}}
	if name == "" {
		return p, nil
	}
	err := session.CheckName(name)
	if err != nil && a.SessionName == "" {
		err = host.Errorf(host.ConfigError, "%s: %s", sessionVariable, err).WithNext("correct or unset " + sessionVariable)
	}
	return p, err
}

// Catalog returns all plugins. It depends on the settings.
func (a *App) Catalog() (*host.Catalog, error) {
	if _, err := a.Settings(); err != nil {
		return nil, err
	}
	return a.Parley().Catalog()
}

// PluginNames returns the names of all plugins, none if there is no catalog.
func PluginNames(a *App) (names []string) {
	if catalog, err := a.Catalog(); err == nil {
		names = Map(catalog.Providers(), func(p host.Provider) string { return p.Info().Name })
	}
	return names
}

// toolOf returns the tool of a qualified name, or nil.
func toolOf(a *App, name string) *manifest.Tool {
	at, _ := a.Find(name)
	return at.Tool
}

// Find returns the address of a qualified name in the catalog of all plugins.
func (a *App) Find(name string) (at host.Address, err error) {
	catalog, err := a.Catalog()
	if err == nil {
		at, err = catalog.Find(name)
	}
	return at, err
}

// Plugin returns the address of a plugin.
func (a *App) Plugin(name string) (at host.Address, err error) {
	catalog, err := a.Catalog()
	if err == nil {
		at, err = catalog.FindIn(name, "")
	}
	return at, err
}

// HostPrincipal returns the host, and the principal of the command line.
func (a *App) HostPrincipal(ctx context.Context) (*call.Host, caller.Principal, error) {
	h, err := a.Host(ctx)
	principal, invalid := a.Principal()
	return h, principal, cmp.Or(err, invalid)
}

// Host returns the host through which calls are made. It depends on the settings, the catalog, the policy and, with
// Live, a browser.
func (a *App) Host(ctx context.Context) (*call.Host, error) {
	s, err := a.Settings()
	if err != nil {
		return nil, err
	}
	if a.Live {
		if err := a.Parley().Chrome().Live(ctx, cmp.Or(a.LiveBrowser, s.Browser)); err != nil {
			return nil, err
		}
	}
	return a.Parley().Host()
}

// Close ends everything that commands have started in this process.
func (a *App) Close() {
	if a.parley != nil {
		_ = a.parley.Close()
	}
}

// NamedPath is a folder of the host, as shown by commands.
type NamedPath struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// Folders returns the folders of the host with their names.
func Folders(app *App) []NamedPath {
	dirs := app.Dirs()
	return []NamedPath{
		{"config", dirs.Config}, {"data", dirs.Data}, {"state", dirs.State}, {"cache", dirs.Cache}, {"run", dirs.Run},
	}
}

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

// ExitStatus is the error of a command that has printed its failure on stdout: batch, --listen and mcp.
type ExitStatus struct{ Code int }

func (e *ExitStatus) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// signaledContext is a context that SIGINT, SIGTERM and SIGHUP cancel. The cause is an error; its exit code is the
// exit code of the process. A second signal ends the process at once.
//
// Signal handling starts when something first waits for the end of the context, because it takes threads. Until then
// a signal ends the process by default. This includes commands that only print. Handling never stops, because
// stopping it takes as long as starting it.
type signaledContext struct {
	context.Context
	handle func() // starts to handle signals, once
	later  func() // calls handle after a moment, once

	// Brief says that most commands of this kind end within a moment. Commands that do not, then start to handle
	// signals.
	Brief bool
}

func newSignaledContext() *signaledContext {
	const moment = 5 * time.Millisecond
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &signaledContext{Context: ctx, handle: sync.OnceFunc(func() { handleSignals(cancel) })}
	c.later = sync.OnceFunc(func() { time.AfterFunc(moment, c.handle) })
	return c
}

func (c *signaledContext) Done() <-chan struct{} {
	if c.Brief {
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
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores SIGHUP
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

// App is one run of the command line: its streams, its options and what commands need. Methods create each part on
// first use, so a command that needs nothing, such as help, reads and starts nothing. An App is not safe for
// concurrent use before [App.Host] has returned.
type App struct {
	*Streams
	Global
	Args     []string                          // the command line, as given
	Commands Help                              // all commands
	LeadsTo  func(group, word string) []string // the commands to suggest for an unknown word
	Help     string                            // the line that explains the running command; "" for a call
	Words    string                            // its words, such as "policy grant"; "" for a call
	Failing  bool                              // the command has failed
	Waits    bool                              // it waits for an approval, and must be run again
	HelpErr  error                             // what failed while printing help
	Signaled *signaledContext
	// Offers reports whether a line may be offered as a next step. Nil means that every line may.
	Offers func(line string) bool
	// Meant returns the step that a refused command line in the form of another product means, or nil if it means none.
	Meant func() *step.Step
	// AskNobody denies changes that a person would have to approve.
	AskNobody bool

	said     said
	settings *Settings
	parley   *parley.Parley
	Files    []GivenFile
}

// Global are the options that every command has.
type Global struct {
	JSON  bool `flag:"json" usage:"print JSON"`
	Full  bool // with --help: all options
	Debug bool `flag:"debug" usage:"print what is done and why"`
	// MaxTokens limits the output of lists, descriptions and searches. 0 means no limit.
	MaxTokens int
	// Plugins are wasm files to load in addition to the installed plugins.
	Plugins []string `flag:"load" usage:"load the plugin FILE.wasm for this command"`
	// Accept are rules of manifest/RULES.md. A plugin to install or load may break them, even those that would refuse
	// it.
	Accept []string `flag:"accept" usage:"accept a plugin that breaks RULE"`
	// Replace are names that plugins may take over from another owner, if the operator approves.
	Replace []string `flag:"replace" usage:"let a plugin take the NAME of another owner"`
	// SessionName names the session of the calls. "" means PARLEY_SESSION or, if that is not set, no session.
	SessionName string
	// Live replaces the embedded protocol by that of a running browser.
	Live bool `flag:"live" usage:"use the protocol of the running browser"`
	// LiveBrowser names the browser of Live. "" means the configured one.
	LiveBrowser string
}

// AddOptions adds the options that every command has.
func (a *App) AddOptions(root *cobra.Command) {
	global := root.PersistentFlags()
	addFlags(root, global, reflect.ValueOf(&a.Global).Elem(), nil)
	global.Var((*sessionName)(&a.SessionName), "session", "work in this session: pages and cookies of its own")
	completeOption(a, root, "session", CompleteSessions)
	global.BoolP("help", "h", false, "explain a command")
}

// said collects the output that is not part of the result, for the envelope of --json. It needs a lock, because
// plugins are compiled in the background of calls.
type said struct {
	mu         sync.Mutex
	debug      []string
	notices    []string
	admissions []*admit.Report // reports on loaded plugins
}

// NewApp returns an App for a command line. It asks people at the controlling terminal.
func NewApp(streams *Streams, args []string) *App {
	app := &App{
		Streams: streams, Args: args, Signaled: newSignaledContext(),
		LeadsTo: func(string, string) []string { return nil },
	}
	// The error of an invalid flag must be printed in the right form, even if --json comes after that flag.
	for _, a := range args {
		if a == "--" {
			break
		}
		app.JSON = app.JSON || a == "--json" || a == "--json=true"
		app.Debug = app.Debug || a == "--debug" || a == "--debug=true"
	}
	return app
}

// Debugf prints a line with --debug: to stderr at once, or with --json in the envelope.
func (a *App) Debugf(format string, args ...any) {
	if a.Debug {
		a.say("debug: ", &a.said.debug, fmt.Sprintf(format, args...))
	}
}

// Notice prints a message that is not part of the result, such as about a first compilation: on stderr, or with
// --json as a warning.
func (a *App) Notice(text string) { a.say("note: ", &a.said.notices, text) }

// say prints a line after its kind, or stores it with --json.
func (a *App) say(kind string, stored *[]string, text string) {
	text = manifest.CleanLine(text)
	a.said.mu.Lock()
	defer a.said.mu.Unlock()
	if a.JSON {
		*stored = append(*stored, text)
		return
	}
	fmt.Fprintln(a.Err, kind+text)
}

// MoveSaid moves the collected output to an envelope.
func (a *App) MoveSaid(env *Envelope) {
	a.said.mu.Lock()
	defer a.said.mu.Unlock()
	env.Debug, env.Admission = a.said.debug, a.said.admissions
	env.Warnings = append(append([]string{}, env.Warnings...), a.said.notices...)
	a.said.debug, a.said.notices, a.said.admissions = nil, nil, nil
}

// ToText ends the effect of --json: notices that are not yet in an envelope are printed as text, and so is all later
// output.
func (a *App) ToText() {
	a.said.mu.Lock()
	notices := a.said.notices
	a.JSON, a.said.notices = false, nil
	a.said.mu.Unlock()
	for _, text := range notices {
		a.Notice(text)
	}
}

// Print prints the result of a command: with --json the envelope, otherwise text. A nil text means the data as JSON.
func (a *App) Print(data any, next []string, text func(w io.Writer)) error {
	return a.PrintWarned(data, nil, next, text)
}

// PrintNext prints a result like [App.Print]. The text ends with the first of the next steps.
func (a *App) PrintNext(data any, next []string, text func(w io.Writer)) error {
	return a.Print(data, next, func(w io.Writer) {
		text(w)
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

// PrintWarned prints a result with warnings, like [App.Print].
func (a *App) PrintWarned(data any, warnings, next []string, text func(w io.Writer)) error {
	env, err := newEnvelope(data, warnings, next)
	if err != nil {
		return err
	}
	return a.PrintEnvelope(env, text)
}

// PrintEnvelope prints an envelope like [App.Print].
func (a *App) PrintEnvelope(env *Envelope, text func(w io.Writer)) error {
	if a.JSON {
		a.MoveSaid(env)
		return a.PrintDocument(env)
	}
	WriteLines(a.Err, "warning: ", Map(env.Warnings, manifest.CleanLine))
	if text != nil {
		return WriteText(a, text)
	}
	WriteLines(a.Err, "content ", contentLines(env.Content))
	if err := a.PrintDocument(env.Data); err != nil {
		return err
	}
	WriteLines(a.Err, "Next: ", env.Next[:min(len(env.Next), 1)])
	return nil
}

// contentLines describes the blocks of a result other than its data, and where their content is.
func contentLines(blocks []job.Content) (lines []string) {
	for i, c := range blocks {
		where := c.URI
		if c.Data != "" {
			where = "--json prints it"
		}
		what := []string{cmp.Or(c.MIME, string(c.Type)), c.Text, where}
		what = slices.DeleteFunc(what, func(part string) bool { return part == "" })
		lines = append(lines, fmt.Sprintf("%d: %s", i+1, manifest.CleanLine(strings.Join(what, ", "))))
	}
	return lines
}

// Text returns a function that writes a formatted text.
func Text(format string, args ...any) func(w io.Writer) {
	return func(w io.Writer) { fmt.Fprintf(w, format, args...) }
}

// WriteText writes a text to stdout in one write.
func WriteText(a *App, text func(io.Writer)) error {
	var b strings.Builder
	text(&b)
	_, err := io.WriteString(a.Out, b.String())
	return WriteError(err)
}

// PrintDocument prints one JSON document: indented on a terminal, one line in a pipe.
func (a *App) PrintDocument(v any) error { return WriteError(WriteJSON(a.Out, v, a.OutTTY)) }

// WriteJSON writes one JSON document and a line break. If it is indented, for a terminal, hidden characters are
// escaped. A program gets every value byte for byte.
func WriteJSON(w io.Writer, v any, indented bool) error {
	raw, written := v.(json.RawMessage)
	var err error
	if !written {
		if raw, err = manifest.Marshal(v); err != nil {
			return err
		}
	}
	if indented {
		var b bytes.Buffer
		_ = json.Indent(&b, manifest.EscapeJSON(raw), "", "  ") // raw is valid JSON
		raw = b.Bytes()
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

// Transfer returns a function that prints how much of a file has been transferred, or nil if no person sees it.
func Transfer(a *App) func(done, total int64) {
	if !a.ErrTTY || a.JSON {
		return nil
	}
	last := int64(-1)
	return func(done, total int64) {
		if total > 0 && done*100/total != last {
			last = done * 100 / total
			end := When(done == total, "\n")
			const width = 30
			filled := int(last) * width / 100
			fmt.Fprintf(a.Err, "\r[%s%s] %3d%%%s", strings.Repeat("#", filled), strings.Repeat(" ", width-filled), last, end)
		}
	}
}

// WriteError returns an error of writing output. It returns nil if the reader, such as head, has closed the pipe.
func WriteError(err error) error {
	failed, ok := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, syscall.EPIPE):
		return nil
	case ok:
		return host.Errorf(host.Unavailable, "the output cannot be written: %v", failed.Err)
	}
	return err
}

// Fail prints an error and returns its exit code.
func (a *App) Fail(err error) int {
	e := host.AsError(err)
	a.Failing, a.Waits = true, e.Approval != ""
	const nothingSuch = "no_match" // code of tools that find nothing for the given words
	var f *failure
	codes := []host.Code{host.InvalidArgs, nothingSuch, host.NotFound}
	if errors.As(err, &f) && toolOf(a, f.envelope.Meta.Tool) != nil {
		codes = codes[:2] // the tool itself says what it did not find
	}
	if a.Meant != nil && slices.Contains(codes, e.Code) && e.Corrected == nil {
		if then := a.Meant(); then != nil {
			e.Steps = append([]step.Step{*then}, e.Steps...)
			if then.Op == step.OpCall {
				e.Retry, e.Corrected, e.Template, e.Changes = then, then.Params, nil, nil
			}
		}
	}
	if line := renamed(a, e); line != "" {
		e.Steps = append([]step.Step{{Op: step.OpSystem, Args: []string{line}}}, e.Steps...)
	}
	named := slices.DeleteFunc(slices.Clone(e.Steps), func(s step.Step) bool { return !namesFiles(a, s) })
	e = e.Bounded()
	next := a.Next(append(named, e.Steps...), e.Next)
	hint := cmp.Or(nextFor[e.Code], a.Help)
	if e.Code == host.InvalidArgs || e.Code == host.NotFound || e.Code == host.InvalidPlugin {
		hint = cmp.Or(a.Help, hint)
	}
	if len(next) == 0 && hint != "" {
		next = []string{hint}
	}
	env := &Envelope{Warnings: []string{}}
	if f != nil {
		env = f.envelope
	}
	if !a.JSON {
		WriteLines(a.Err, "warning: ", Map(env.Warnings, manifest.CleanLine))
		writeErrorText(a, e, next)
		return e.ExitCode()
	}
	env.Error, env.Next = a.ErrorObject(e), next
	a.MoveSaid(env)
	env.Debug = append(env.Debug, traceText(e.Trace)...)
	raw, _ := manifest.Marshal(env)
	_ = WriteJSON(a.Err, json.RawMessage(manifest.EscapeJSON(raw)), a.ErrTTY)
	return e.ExitCode()
}

// renamed returns the line of a command with the nearest name in place of one that does not exist, "" if no word is
// near to it. For a tool, its list is offered.
func renamed(a *App, e *host.Error) string {
	if a.Words == "" || e.Code != host.NotFound || len(e.DidYouMean) == 0 || e.DidYouMean[0].Distance == 0 {
		return ""
	}
	name := e.DidYouMean[0].Name
	at := slices.IndexFunc(a.Args, func(arg string) bool { return len(Nearest(arg, []string{name})) > 0 })
	if at < 1 {
		return ""
	}
	return Instead(a.Args, a.Args[at], name)
}

// nextFor has the next steps for errors that name none themselves.
var nextFor = map[host.Code]string{
	host.InvalidArgs: "parley --help", host.NotFound: "parley --help", host.InvalidPlugin: "parley help plugin build",
	host.ConfigError: "parley doctor", host.Unavailable: "parley doctor", host.ChromeLaunch: "parley doctor",
	host.Trapped:       "run it again with --debug and report the output to the plugin's author",
	host.InvalidResult: "run it again with --debug and report the output to the plugin's author",
	host.LimitExceeded: "request less at once", host.Internal: "run it again with --debug and report the output",
}

// failure is the error of a call, with the envelope that identifies the call.
type failure struct {
	err      *host.Error
	envelope *Envelope
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// Failed returns the error of a call that has failed.
func (a *App) Failed(answer *host.Answer) error {
	a.Failing, a.Waits = true, answer.Err.Approval != ""
	return &failure{answer.Err, a.Envelope(answer)}
}

// earlierShown is the number of earlier errors of the session in the text of an error. With --json, all stored ones
// are shown.
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
		where, provided := cmp.Or(d.Parameter, "parameters"), d.Provided
		if strings.TrimSpace(provided) != provided {
			provided = strconv.Quote(provided)
		}
		line := where + ": " + Either(provided == "", d.Expected, "expected "+d.Expected+", got "+provided)
		if d.Suggestion != nil {
			line += " (" + d.Suggestion.String() + ")"
		}
		a.Wrap(w, "      ", "  %s", manifest.CleanLine(line))
	}
	writeDone(w, e.Tool)
	if latest := e.Earlier[max(0, len(e.Earlier)-earlierShown):]; len(latest) > 0 {
		a.Wrap(w, "  ", "Errors of this session before: %s", strings.Join(latest, "; "))
	}
	WriteLines(w, "  ", traceText(e.Trace))
	for _, d := range e.Denied {
		fmt.Fprintf(w, "  %s: %s\n", d.Right, manifest.CleanLine(d.Why))
	}
	if e.Docs != nil {
		fmt.Fprintln(w, "Detailed parameter documentation:")
		a.DocsText(w, a.WithCommands(e.Docs.ToolDocs))
	}
	WriteLabelled(w, "Did you mean:", Map(e.DidYouMean, func(n spelling.Near) string {
		return " " + n.Name + When(n.Distance > 0, fmt.Sprintf(" (edit distance: %d)", n.Distance))
	}))
	WriteLabelled(w, "Tip:", Map(next[:min(2, len(next))], manifest.CleanLine)) // --json has all
}

// writeDone prints what a tool reports that it has done or caused before it failed, because no later answer reports
// it.
func writeDone(w io.Writer, e *host.ToolError) {
	var said struct{ Before, Results, Caused json.RawMessage }
	if e == nil || json.Unmarshal(e.Details, &said) != nil {
		return
	}
	PrintIf(w, len(said.Before) > 0, "Caused by an earlier act: %s\n", manifest.CleanLine(string(said.Before)))
	PrintIf(w, len(said.Results) > 0, "Done before: %s\n", manifest.CleanLine(string(said.Results)))
	PrintIf(w, len(said.Caused) > 0, "Caused: %s\n", manifest.CleanLine(string(said.Caused)))
}

// PrintIf prints a formatted text if a condition is true.
func PrintIf(w io.Writer, on bool, format string, args ...any) {
	if on {
		fmt.Fprintf(w, format, args...)
	}
}

// Map returns the results of a function for the items of a list.
func Map[T, R any](list []T, of func(T) R) []R {
	all := make([]R, len(list))
	for i, item := range list {
		all[i] = of(item)
	}
	return all
}

// Strings returns the texts of a list.
func Strings[T fmt.Stringer](list []T) []string { return Map(list, T.String) }

// WriteManifestDiff prints how a manifest differs from another one, or nothing if there is no difference.
func WriteManifestDiff(w io.Writer, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintln(w, "  how its manifest differs (- before, + now):")
		WriteLines(w, "    ", lines)
	}
}

// WriteLines writes lines, each after a prefix.
func WriteLines(w io.Writer, prefix string, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(w, prefix+line)
	}
}

// WriteLabelled writes a label, followed by lines that are aligned below each other. Without lines it writes nothing.
func WriteLabelled(w io.Writer, label string, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(w, label+" "+line)
		label = strings.Repeat(" ", len(label))
	}
}

// traceText returns lines that say where a guest crashed and what it wrote last. Without a trace there are none.
func traceText(t *job.Trace) (lines []string) {
	if t == nil {
		return nil
	}
	if len(t.Frames) > 0 {
		lines = append(lines, "functions of the plugin, innermost first:")
	}
	for _, f := range t.Frames {
		lines = append(lines, "  "+cmp.Or(f.Name, fmt.Sprintf("function %d", f.Function)))
	}
	if t.Unnamed && len(t.Frames) > 0 {
		lines = append(lines, "to see their names, build with parley plugin build --names, or with the compiler's own "+
			"options: C without -s, Rust with -C strip=none, Go with -ldflags=-w in place of -s")
	}
	for i, last := range [][]string{t.Stderr, t.Log} {
		if len(last) > 0 {
			lines = append(lines, "the last lines of its "+[]string{"stderr", "log"}[i]+":")
		}
		lines = append(lines, Map(last, func(line string) string { return "  " + line })...)
	}
	return lines
}

// DocsText prints documentation wrapped to the width of the terminal. Commands are not wrapped, so that they can be
// copied.
func (a *App) DocsText(w io.Writer, d *manifest.ToolDocs) {
	for line := range strings.Lines(d.Text()) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "Example:") {
			line = Wrapped(line, a.Columns(), "    ")
		}
		fmt.Fprintln(w, line)
	}
}

// Wrap prints a formatted line, wrapped to the width of the terminal; see [Wrapped].
func (a *App) Wrap(w io.Writer, indent, format string, args ...any) {
	fmt.Fprintln(w, Wrapped(fmt.Sprintf(format, args...), a.Columns(), indent))
}

// Wrapped breaks a line at spaces, and a long union of types between them, so that it has at most width columns. Each
// further line begins with indent.
func Wrapped(line string, width int, indent string) string {
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

// color returns a terminal sequence, or "" if the stream is not a terminal or the user wants no colours.
func (a *App) color(tty bool, sequence string) string {
	return When(tty && a.Env("NO_COLOR") == "" && a.Env("TERM") != "dumb", sequence)
}

// Columns returns the width to which text is wrapped.
func (a *App) Columns() int {
	return Either(a.Width > 20, a.Width, 80)
}

// Progress returns a function that prints the progress of a call, or nil if no person sees it: it is only for a
// terminal without --json.
func (a *App) Progress() func(done, total float64, message string) {
	if !a.ErrTTY || a.JSON {
		return nil
	}
	return func(done, total float64, message string) {
		if total > 0 {
			fmt.Fprintf(a.Err, "%3.0f%% %s\n", 100*done/total, manifest.CleanLine(message))
		} else {
			fmt.Fprintf(a.Err, "%s\n", manifest.CleanLine(message))
		}
	}
}
