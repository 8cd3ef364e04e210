package tools

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/host/reference"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

var batchCommand = &command.Command[*batchOptions]{
	Use: "batch FILE|-", Run: runBatch,
	Short: "Run calls from a file, one per line",
	Long: `Each line is {"id":1,"tool":"cdp.Page.navigate","params":{..},"options":{..}} and gets a reply of one line ` +
		"with the same id\n(default: the line's number). \"${1.frameId}\" in params or options is replaced by data of the " +
		"call with the id 1,\nwith its type; \"${param.url}\" by what --param gives; $${ stands for ${. Options are " +
		"those of a call, such as\n" + `{"wait":"load","max_bytes":1000,"out":"page.png"}, or until, an event to wait for.`,
	Example: "parley batch calls.ndjson\nparley batch login.ndjson --param url=https://example.com",
}

// runBatch prints one line for each call as soon as its answer has arrived. It exits with the code of the first call
// that failed.
func runBatch(ctx context.Context, app *command.App, opts *batchOptions) error {
	runtime.GOMAXPROCS(1) // calls run one at a time, and waking a second processor for each costs more than it saves
	ctx = command.CountDocs(ctx, func(w io.Writer, d *host.Docs) {
		_ = command.WriteJSON(w, app.WithCommands(d.ToolDocs), false)
	})
	return callLines(ctx, app, *opts)
}

// reply prints the answer to a call as a line of JSON.
func (b *batch) reply(id json.RawMessage, answer *host.Answer) error {
	answer.Warnings, b.warnings = append(answer.Warnings, b.warnings...), nil
	env := b.app.Envelope(answer)
	b.app.MoveSaid(env)
	raw, err := manifest.Marshal(newBatchReply(id, env))
	if err == nil {
		err = printRecord(b.app, raw)
	}
	return err
}

// batchOptions are the options of a batch.
type batchOptions struct {
	Path     string       `word:""` // a file of calls, one JSON object per line; "-" is [App.Input]
	Lines    io.Reader    // the calls themselves, instead of Path
	Plan     *advice.Plan // the plan that the calls come from
	Warnings []string     // warnings for the first reply

	ContinueOnError bool     `flag:"continue-on-error" usage:"continue after a call that failed"`
	Set             []string `flag:"param" usage:"KEY=VALUE for ${param.KEY}, repeatable"`
	Params          string   `flag:"params" usage:"all parameters: JSON, @FILE or -" once:"one object has all"`
}

// batchReply is the line with the answer to one call of a batch. It is an envelope without empty fields, because
// agents pay for each line.
type batchReply struct {
	ID json.RawMessage `json:"id"`
	*command.Envelope
	Data     json.RawMessage `json:"data,omitempty"` // absent if it is {} or null
	Warnings []string        `json:"warnings,omitempty"`
	Next     []string        `json:"next,omitempty"`
	Meta     *command.Meta   `json:"meta,omitempty"` // only for a call that failed
}

// newBatchReply returns the reply to the call with this id.
func newBatchReply(id json.RawMessage, env *command.Envelope) batchReply {
	r := batchReply{ID: id, Envelope: env, Data: env.Data, Warnings: env.Warnings, Next: env.Next}
	if data := string(bytes.TrimSpace(env.Data)); data == "{}" || data == "null" {
		r.Data = nil
	}
	if !env.OK {
		r.Meta = env.Meta
	}
	return r
}

// batchLine is one call of a batch.
type batchLine struct {
	ID      json.RawMessage `json:"id,omitempty"`
	Tool    string          `json:"tool"`
	Params  json.RawMessage `json:"params,omitempty"`
	Options json.RawMessage `json:"options,omitempty"`
}

// callLines runs calls in order. It prints the answer to each before the call is recorded, so that the sender of the
// calls can continue meanwhile. The error says that the calls could not be read, or has the exit code of the first
// call that failed.
func callLines(ctx context.Context, app *command.App, o batchOptions) error {
	input := o.Lines
	switch {
	case input != nil:
	case o.Path == "-":
		input = app.Input(ctx)
	default:
		file, err := os.Open(o.Path)
		if err != nil {
			return host.Errorf(host.InvalidArgs, "batch: %s", manifest.CleanLine(err.Error()))
		}
		defer file.Close()
		input = file
	}
	h, principal, err := app.HostPrincipal(ctx)
	if err != nil {
		return err
	}
	earlier := reference.Results{}
	if o.Path == "-" && o.Params == "-" {
		return host.Errorf(host.InvalidArgs, "batch: only one of FILE and --params can be -")
	}
	if o.Params != "" || len(o.Set) > 0 {
		free := &manifest.Tool{Params: []byte("{}")}
		params, err := buildParams(ctx, app, free, &CallOptions{Params: o.Params, Set: o.Set})
		if err != nil {
			return err
		}
		earlier[reference.Params] = params
	}
	b := &batch{app: app, host: h, principal: principal, earlier: earlier, plan: o.Plan, warnings: o.Warnings}
	var status error // the error of the first call that failed
	lines := bufio.NewReaderSize(input, 64<<10)
	for number := 1; ; number++ {
		line, err := readLine(lines, host.MaxParams)
		if err != nil && !errors.Is(err, io.EOF) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return host.Errorf(host.InvalidArgs, "batch: line %d: %v", number, err)
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			answer, err := b.call(ctx, text, number)
			if err != nil {
				return cmp.Or(command.WriteError(err), status)
			}
			if answer.Err != nil && status == nil {
				status = &command.ExitStatus{Code: answer.Err.ExitCode()}
			}
			if answer.Err != nil && (!o.ContinueOnError || ctx.Err() != nil) {
				return status
			}
		}
		if err != nil {
			return status
		}
	}
}

// batch is a batch that is running.
type batch struct {
	app       *command.App
	host      *call.Host
	principal caller.Principal // for lines that name no session
	earlier   reference.Results
	plan      *advice.Plan // nil for the calls of a file
	warnings  []string     // for the next reply
}

// readLine reads a line of at most limit bytes. The last one may end without a newline.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > limit {
			return nil, fmt.Errorf("it is longer than %d bytes", limit)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// lineSchema is the schema of a line of a batch.
var lineSchema = sync.OnceValue(func() *schema.Schema {
	s, err := schema.CompileTrusted([]byte(`{"type":"object","additionalProperties":false,"required":["tool"],` +
		`"properties":{"id":{"description":"any value, the number of the line if absent"},` +
		`"tool":{"type":"string","minLength":1,"description":"its qualified name",` +
		`"x-aliases":["name","tool_name","function","method","command"]},` +
		`"params":{"type":"object","x-aliases":["arguments","args","input","parameters","param","kwargs"]},` +
		`"options":{"type":"object","x-aliases":["opts","call_options"]}}}`))
	if err != nil {
		panic("command: the schema of a line: " + err.Error())
	}
	return s
})

// checkLine returns the error for a line that is not a call, with its probable meaning: fields with other names are
// renamed, and fields that no call has become options or parameters.
func (b *batch) checkLine(text []byte, number int) *host.Error {
	_, _, e := advice.CheckValues("batch", lineSchema(), text)
	if e == nil {
		return nil
	}
	e.Message = fmt.Sprintf("line %d: %s", number, describeFault(e.Details))
	var meant batchLine
	var given map[string]json.RawMessage
	whole := e.Corrected
	if whole == nil { // leave out fields that no call has
		whole = e.Template
	}
	// A string may be the name of a tool.
	if whole == nil || json.Unmarshal(whole, &meant) != nil || json.Unmarshal(text, &given) != nil && text[0] != '"' {
		return e
	}
	at, err := b.host.Catalog().Find(meant.Tool)
	if err != nil && e.Corrected == nil {
		return e
	}
	if err != nil || at.Tool == nil { // the corrected line does not name a tool
		e.Corrected, e.Changes = nil, nil
		for i := range e.Details {
			e.Details[i].Suggestion = nil
		}
		return e
	}
	meant.take(given, at.Tool, e)
	e.Corrected, _ = manifest.Marshal(meant)
	if slices.ContainsFunc(e.Changes, func(c schema.Change) bool { return c.How == schema.Dropped }) {
		e.Corrected, e.Template = nil, e.Corrected
		return e
	}
	e.Template = nil
	retry := step.Call(at.Name(), meant.Params)
	if options, local, err := option.ParseLocal(meant.Options); err == nil {
		retry.Options = options.StepOptions()
		retry.Options.Out, retry.Options.File = local.Out != "", local.Out
		retry = retry.In(local.Session)
	}
	if at.Tool.Effect == manifest.EffectDestructive {
		retry.Options.DryRun = true
	}
	e.Retry, e.Steps = &retry, append([]step.Step{retry}, e.Steps...)
	return e
}

// take turns fields that no call has into options or parameters of the tool, unless these already have one with that
// name.
func (m *batchLine) take(given map[string]json.RawMessage, tool *manifest.Tool, e *host.Error) {
	for i := range e.Changes {
		c := &e.Changes[i]
		from := jsontext.UnescapeToken(strings.TrimPrefix(c.From, "/"))
		isParam := func(p manifest.Param) bool { return p.Name == from }
		to, pointer := &m.Options, "/options/"
		name, isOption := strings.CutPrefix(c.To, "options.")
		if given[from] == nil || !isOption && c.How != schema.Dropped {
			continue
		} else if !isOption {
			name = from
			if !option.IsLocal(from) || slices.ContainsFunc(manifest.Params(tool.Params), isParam) {
				to, pointer = &m.Params, "/params/"
			}
		}
		var members map[string]json.RawMessage
		_ = json.Unmarshal(*to, &members)
		if _, taken := members[name]; taken {
			continue
		}
		if members == nil {
			members = map[string]json.RawMessage{}
		}
		members[name] = given[from]
		*to = jsontext.Marshal(members)
		c.How, c.To = schema.Moved, pointer+jsontext.EscapeToken(name)
		for j := range e.Details {
			if e.Details[j].Parameter == c.From {
				e.Details[j].Suggestion = step.TextSuggestion("move it to " + manifest.CleanLine(c.To))
			}
		}
	}
}

// describeFault says what is wrong with a line: its unknown fields, or else the first violation.
func describeFault(details []host.Detail) string {
	var unknown []string
	for _, d := range details {
		if d.Keyword == "additionalProperties" {
			unknown = append(unknown, jsontext.QuoteShort(jsontext.UnescapeToken(strings.TrimPrefix(d.Parameter, "/"))))
		}
	}
	switch {
	case len(unknown) > 0:
		return manifest.CleanLine("unknown field " + strings.Join(unknown, ", ") + "; expected id, tool, params or options")
	case len(details) == 0:
		return "not a call"
	case details[0].Keyword == "required":
		return `"tool" is missing`
	}
	d := details[0]
	where := cmp.Or(d.Parameter, "the line")
	text := fmt.Sprintf("%s: expected %s, got %s", where, d.Expected, d.Provided)
	return manifest.CleanLine(text + command.When(d.Parameter == "", "; write each call on its own line"))
}

// call runs one line and replies to it. It returns an error if the reply failed.
func (b *batch) call(ctx context.Context, text []byte, number int) (*host.Answer, error) {
	id := json.RawMessage(strconv.Itoa(number))
	refuse := func(err error) (*host.Answer, error) {
		answer := failedAnswer("", host.AsError(err).WithNext("parley help batch"))
		return answer, b.reply(id, answer)
	}
	invalid := func(message string) *host.Error { return host.Errorf(host.InvalidArgs, "line %d: %s", number, message) }
	if _, err := jsontext.Decode(text, jsontext.Limits{Bytes: host.MaxParams}); err != nil {
		return refuse(invalid(manifest.CleanLine(err.Error()) + // perhaps it is a command line
			`; expected one call in one line, such as {"tool":"text.hash","params":{"text":"hello"}}`).
			WithNext("parley " + strings.TrimPrefix(string(text), "parley ")))
	}
	var line batchLine
	_ = json.Unmarshal(text, &line) // checkLine reports what is wrong with it
	if len(line.ID) > 0 && string(line.ID) != "null" {
		id = line.ID
	}
	if e := b.checkLine(text, number); e != nil {
		return refuse(e)
	}
	if string(line.Options) == "null" {
		line.Options = nil
	}
	key := idKey(id)
	if _, used := b.earlier[key]; used {
		return refuse(invalid(fmt.Sprintf("id %s was used before", manifest.CleanLine(key))))
	}
	if err := b.checkFound(number, line.Params); err != nil {
		answer := failedAnswer(line.Tool, err)
		return answer, b.reply(id, answer)
	}
	params, err := b.earlier.Substitute(line.Params)
	given, failed := b.earlier.Substitute(line.Options)
	if err = cmp.Or(err, failed); err != nil {
		return refuse(err)
	}
	options, local, err := option.ParseLocal(given)
	if err != nil {
		return refuse(err)
	}
	call := hostCall(b.app, line.Tool, b.principal, options, local.Out)
	call.Params = params
	if local.Session != "" {
		call.Principal.Session = caller.Session{Name: local.Session}
		call.Render = func(s step.Step) string { return b.app.Command(s.In(local.Session)) }
	}
	var unsent error
	reply := func(answer *host.Answer) {
		stepsIn(answer, local.Session)
		unsent = b.reply(id, answer)
	}
	isPlain := local.Out == "" && local.Until == ""
	if isPlain {
		call.BeforeRecord = reply
	}
	answer := b.callUntil(ctx, call, local.Until, func(ctx context.Context) *host.Answer {
		call.At, _ = b.host.Catalog().Find(call.Name)
		answer, err := callInto(ctx, b.host, call)
		if answer == nil { // the file could not be written
			return failedAnswer(call.Name, err)
		}
		return answer
	})
	if !isPlain {
		reply(answer)
	}
	if answer.Err == nil {
		b.earlier[key] = answer.Data
		if answer.Whole != nil {
			b.earlier[key] = answer.Whole
		}
	}
	return answer, unsent
}

// checkFound returns an error with exit code 10 if the parameters of a planned call refer to something that an
// earlier call did not find.
func (b *batch) checkFound(number int, params json.RawMessage) error {
	if b.plan == nil {
		return nil
	}
	ref := b.earlier.Empty(params)
	if ref == "" {
		return nil
	}
	id, path, _ := strings.Cut(ref, ".")
	from, _ := strconv.Atoi(id)
	where := "there is none"
	if at, err := b.host.Catalog().Find(b.plan.Tool); err == nil && at.Provider.Features().MissingPage != nil {
		where = "this page has no match"
	}
	next := step.Describe(b.plan.Tool, 0)
	if len(b.plan.Step.Params) > 0 { // the given values may refer to something that does not exist
		next = step.Plan(b.plan.Tool, nil)
	}
	return &host.Error{Code: host.ToolFailed, Exit: 10, Tool: &host.ToolError{Exit: 10, Name: "no_match"},
		Message: fmt.Sprintf("%s: call %d, %s, returned no %s, which call %d, %s, requires", where, from,
			b.plan.Calls[from-1].Tool, path, number, b.plan.Calls[number-1].Tool),
		Steps: []step.Step{next}}
}

// stepsIn adds the session of the call, unless it is "", to the steps of an answer.
func stepsIn(answer *host.Answer, session string) {
	for i := range answer.Steps {
		answer.Steps[i] = answer.Steps[i].In(session)
	}
	if e := answer.Err; e != nil && e.Retry != nil {
		retry := e.Retry.In(session)
		e.Retry = &retry
	}
}

// callUntil makes the call of a line with run, and waits for an event of the same plugin that comes after the call
// was sent. If the event does not come within the call's time, the answer is an error. Without an event the answer is
// run's.
func (b *batch) callUntil(ctx context.Context, call host.Call, until string,
	run func(context.Context) *host.Answer) *host.Answer {
	if until == "" || call.Options.DryRun {
		return run(ctx)
	}
	fail := func(err error) *host.Answer { return failedAnswer(call.Name, err) }
	plugin, _, _ := strings.Cut(call.Name, ".")
	if _, err := b.host.Catalog().FindIn(plugin, "events"); err != nil {
		return fail(host.Errorf(host.InvalidArgs, "options: until: %s has no events", plugin))
	}
	event, condition, conditional := strings.Cut(until, ":")
	last, err := newLastEvent(ctx, condition, conditional, true)
	if err != nil {
		return fail(err)
	}
	patience := cmp.Or(call.Options.Timeout, defaultUntil)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	events := eventCall(plugin, []string{event}, event, 0, patience, call.Principal,
		job.Options{Place: call.Options.Place})
	var ran chan *host.Answer // nil until the stream has begun
	events.Sink.Last = last.isLast
	events.Sink.Event = func(e job.Event) error {
		if e.Kind == job.EventStarted {
			ran = make(chan *host.Answer, 1)
			go func() {
				answer := run(ctx)
				if ran <- answer; answer.Err != nil {
					cancel() // there is nothing to wait for any more
				}
			}()
		}
		return nil
	}
	stream, _ := b.host.Call(ctx, events)
	if ran == nil {
		return fail(cmp.Or(stream.Err, host.Errorf(host.Unavailable, "the stream of events ended at once")))
	}
	answer := <-ran
	if answer.Err != nil {
		return answer
	}
	var end streamEnd
	if stream.Err == nil {
		_ = json.Unmarshal(stream.Data, &end)
	}
	if end.End != "until" {
		answer.Data = nil
		answer.Err = host.Errorf(host.Timeout, "%s has run, but %s did not come within %s", answer.Tool,
			manifest.CleanLine(event), patience)
	}
	return answer
}

// defaultUntil is how long a line without a timeout waits for its event.
const defaultUntil = 30 * time.Second

// failedAnswer returns the answer of a call that was not made.
func failedAnswer(tool string, err error) *host.Answer {
	e := host.AsError(err)
	return &host.Answer{Tool: tool, Err: e, Result: job.Result{Steps: e.Steps}}
}

// idKey returns an id in the form of references: a string without its quotes.
func idKey(id json.RawMessage) string {
	if text, isText := jsontext.Unquote(id); isText {
		return text
	}
	return string(id)
}

var planCommand = &command.Command[*planOptions]{
	Use: "plan TOOL", Run: runPlan, Words: command.CompleteNames, AnyWords: true,
	Short: "List or run the calls a tool needs",
	Long: `Prints the shortest chain of calls that ends with a call of TOOL, as lines for parley batch. "${2.nodeId}"` +
		"\nis a part of the result of call 2, and \"<name: type, meaning>\" a value that you have to choose. What it\n" +
		"chooses itself, such as the element, it says: give --param selector=CSS for another one. With words instead of\n" +
		"a tool, it plans the first hit of a search.",
	Example: "parley plan cdp.DOM.getBoxModel --run\nparley plan cdp.DOM.getBoxModel --param selector=h1 --run",
}

// runPlan prints the calls that lead to a call of a tool, or makes them. If no tool has the name, it plans for the
// first hit of a search for it. The error is not_found if there is none.
func runPlan(ctx context.Context, app *command.App, opts *planOptions) error {
	name := strings.Join(opts.Words, " ")
	if name == "" {
		return command.MissingWord("plan", "a TOOL, or words that say what to do", "parley plan cdp.DOM.getBoxModel")
	}
	h, principal, err := app.HostPrincipal(ctx)
	if err != nil {
		return err
	}
	tool := &manifest.Tool{Params: []byte("{}")}
	if at, err := h.Catalog().Find(name); err == nil && at.Tool != nil {
		tool = at.Tool
	}
	params, err := buildParams(ctx, app, tool, &CallOptions{Params: opts.Params, Set: opts.Set})
	if err != nil {
		return err
	}
	plan, warnings, err := h.Plan(ctx, advice.PlanQuery{Tool: name, Params: params, Principal: principal,
		Place: step.Place(opts.place), Example: opts.Example, Estimate: !opts.Run})
	if err != nil {
		return err
	}
	if chosen := chosenWarning(plan); chosen != "" {
		warnings = append(warnings, chosen)
	}
	var lines bytes.Buffer // the lines of a batch
	for _, call := range plan.Calls {
		raw, _ := manifest.Marshal(call)
		lines.Write(append(manifest.EscapeJSON(raw), '\n'))
	}
	if opts.Run {
		if err := checkPlan(plan); err != nil {
			return err
		}
		return callLines(ctx, app, batchOptions{Lines: &lines, Plan: plan, Warnings: warnings})
	}
	var next []string
	switch {
	case plan.Guesses():
	case len(plan.Holes) == 0:
		next = append(next, app.Command(plan.Step))
	default:
		warnings = append(warnings, "values that only you can choose: "+strings.Join(plan.Holes, ", "))
	}
	if e := plan.Estimate; e != nil && e.Of > 0 && !app.JSON {
		app.Notice(e.String())
	}
	return app.PrintWarned(plan, warnings, next, func(w io.Writer) { _, _ = lines.WriteTo(w) })
}

// planOptions are the options of a plan. Its place applies to all calls.
type planOptions struct {
	Words []string `word:""` // a qualified name, or words to search for
	place
	Set     []string `flag:"param" usage:"KEY=VALUE, repeatable"`
	Params  string   `flag:"params" usage:"JSON, @FILE or -" once:"one object has all parameters"`
	Example int      `flag:"example" usage:"plan example N of tier 3 instead"`
	Run     bool     `flag:"run" usage:"make the calls"`
}

// checkPlan refuses to make the calls of a plan that has holes, or that destroys something that the caller did not
// name.
func checkPlan(plan *advice.Plan) error {
	if plan.Guesses() {
		step := plan.Step
		step.Options.DryRun = true
		return host.Errorf(host.InvalidArgs, "%s is destructive, and its target was not given: the plan would take the "+
			"first one found. Give it, or read the calls and run them with parley batch", plan.Tool).WithSteps(step)
	}
	if len(plan.Holes) > 0 {
		return host.Errorf(host.InvalidArgs, "%s requires values that only you can choose: %s",
			plan.Tool, strings.Join(plan.Holes, ", ")).WithSteps(step.Describe(plan.Tool, 0))
	}
	return nil
}

// chosenWarning says which values a plan chose and how to give others, or returns "" if it chose none.
func chosenWarning(plan *advice.Plan) string {
	if len(plan.Chosen) == 0 {
		return ""
	}
	var texts, names []string
	for _, c := range plan.Chosen {
		texts = append(texts, manifest.Clip(c.String(), 120))
		if !slices.Contains(names, c.Parameter) {
			names = append(names, c.Parameter)
		}
	}
	return "the plan chose " + strings.Join(texts, ", ") + "; to use another value: --param " +
		strings.Join(names, "=VALUE --param ") + "=VALUE"
}
