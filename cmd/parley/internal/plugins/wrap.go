package plugins

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/api/openapi"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/oci"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

var pluginWrapCommand = &command.Command[*pluginWrapOptions]{
	Use: "wrap FILE [WORD...]", Run: runPluginWrap,
	Short: "Write a manifest for a WASI command, an Extism plugin or an API",
	Long: "The words after -- are the command line: {name} is a parameter, {name?} an optional one, {count?:integer}\n" +
		"has a type; an option before an optional parameter is left out with it. Without words, the options that --help\n" +
		"lists become optional parameters. The command runs with --help in the sandbox, and what it prints drafts the\n" +
		"texts. Output that is not UTF-8 is refused when the tool runs, unless --output is bytes. An Extism plugin lists\n" +
		"its tools as MCP does, and the manifest has what it lists. Of an OpenAPI document (.json, .yaml), each\n" +
		"operation becomes a tool; --server, --tag and --auth say what the document does not.",
	Example: "parley plugin wrap rev.wasm --output lines -- -n '{lines?:integer}' '{text}'\n" +
		"parley plugin wrap api.yaml --tag orders --effect orders.find=read",
}

// runPluginWrap writes a manifest for a WASI command. It runs the command with --help in the sandbox, without rights,
// to draft the texts. The host refuses output that is not UTF-8 and not declared as bytes, so nothing is lost. For an
// Extism plugin it writes the tools that the plugin lists.
func runPluginWrap(ctx context.Context, app *command.App, opts *pluginWrapOptions) error {
	stem := opts.Path
	for _, end := range []string{".gz", ".wasm", ".json", ".yaml", ".yml"} {
		stem = strings.TrimSuffix(stem, end)
	}
	out := cmp.Or(opts.Out, stem+".manifest.json")
	_, err := os.Lstat(out)
	switch {
	case oci.IsRemote(opts.Path):
		return host.Errorf(host.InvalidArgs, "URLs are not fetched; download %s first, and wrap the file",
			manifest.CleanLine(opts.Path)).WithNext("curl -fLO " + command.ShellQuote(opts.Path))
	case len(opts.Words) > 0 && opts.Flags.ArgsLenAtDash() != 1:
		return command.MissingWord("plugin wrap", "one FILE, and the command line after --",
			"parley plugin wrap rev.wasm -- '{text}'")
	case !errors.Is(err, fs.ErrNotExist):
		return host.Errorf(host.AlreadyExists, "%s exists already; nothing was written", manifest.CleanLine(out)).
			WithSteps(step.Operator(step.OpPluginCheck, command.Either(isDocument(opts.Path), out, opts.Path)))
	case isDocument(opts.Path):
		return wrapDocument(ctx, app, opts, out)
	}
	code, err := store.ReadModule(opts.Path)
	if err != nil {
		return err
	}
	odd := regexp.MustCompile(`[^A-Za-z0-9-]+`)
	name := cmp.Or(opts.Name, strings.Trim(odd.ReplaceAllString(filepath.Base(stem), "-"), "-"))
	if err := checkName(name, step.OpPluginWrap, opts.Path, "--name"); err != nil {
		return err
	}
	var described []byte
	w := &wrapper{o: opts, props: map[string]any{}}
	if store.IsExtism(code) {
		described, err = extismManifest(ctx, app, opts, code, name)
	} else {
		const own = "--brief --effect --env --file --mime --name --out --output --stdin --tool WORD"
		if err = opts.check("a WASI command", own); err == nil {
			w.help = commandHelp(ctx, app, opts.Path, code, name)
			described, err = w.manifest(name)
		}
	}
	if err != nil {
		return err
	}
	c, err := store.Pack(opts.Path, code, described, out, parley.Version)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, append(described, '\n'), 0o644); err != nil {
		return host.Errorf(host.Unavailable, "cannot write the manifest: %v", err)
	}
	tools := command.Map(c.Manifest.Tools, func(t manifest.Tool) string { return t.Name })
	data := &wrapData{Manifest: out, Plugin: name, Tool: tools[0], Tools: tools,
		Parameters: append([]string{}, w.order...), Help: w.help != ""}
	data.Admission, err = app.Parley().Admission().Admit(ctx, c, admit.Signer{}, nil)
	if err != nil {
		return err
	}
	path := command.ShellQuote(opts.Path)
	next := command.Either(opts.Out == "", []string{"parley plugin install " + path, "parley plugin check " + path},
		[]string{"parley plugin pack " + path + " --manifest " + command.ShellQuote(opts.Out)})
	return app.PrintNext(data, next, func(w io.Writer) {
		if data.Admission.Kind == manifest.KindExtism {
			fmt.Fprintf(w, "Wrote %s: %s with the tools %s\n", data.Manifest, data.Plugin, strings.Join(data.Tools, ", "))
			fmt.Fprintln(w, "  it asks for no right and has no setting; add what the plugin needs")
		} else {
			fmt.Fprintf(w, "Wrote %s: %s.%s(%s)\n", data.Manifest, data.Plugin, data.Tool, strings.Join(data.Parameters, ", "))
			command.PrintIf(w, !data.Help, "  the command printed no help, so the texts say little; edit them\n")
		}
		command.WriteAdmission(w, data.Admission)
	})
}

// pluginWrapOptions say how to make a plugin of a WASI command. For an Extism plugin only Path, Name, Effect, Brief
// and Out are used.
type pluginWrapOptions struct {
	Flags *pflag.FlagSet
	// Path is the wasm file of the command.
	Path string `word:""`
	// Words are the command line after the command's name. {name} is a required parameter, {name?} an optional one. A
	// type follows a colon: {count?:integer}. If an optional parameter is left out, an option before it is, too. Without
	// words, the options that --help lists become optional parameters.
	Words []string `word:""`
	// Brief says what the tool does. "" means the first sentence of the help.
	Brief string `flag:"brief" usage:"what the tool does, in at most 64 characters"`
	// Effect is the effect of the tool. "" means read, because without rights a command changes nothing. For an Extism
	// plugin it is the effect of all tools, and "" means what the plugin says about each.
	Effect string   `flag:"effect" usage:"read (default), write or destructive; TOOL=EFFECT,... for a document"`
	Auth   string   `flag:"auth" usage:"of an API: header:NAME, query:NAME, basic, bearer, oauth:ISSUER or none"`
	Server string   `flag:"server" usage:"of an API: the URL before all paths"`
	Tags   []string `flag:"tag" usage:"of an API: take operations with this tag only; repeatable"`
	Env    []string `flag:"env" usage:"NAME=VALUE, such as LANG={lang?}; repeatable"`
	Files  []string `flag:"file" usage:"/PATH={name}: a file with the value of a parameter; repeatable"`
	MIME   string   `flag:"mime" usage:"media type of bytes, such as audio/wav"`
	Name   string   `flag:"name" usage:"of the plugin; default that of FILE"`
	Out    string   `flag:"out" usage:"default FILE.manifest.json"` // it must not exist
	Output string   `flag:"output" usage:"text (default), json, lines, bytes or file:/PATH"`
	Stdin  string   `flag:"stdin" usage:"the standard input, such as {text}"`
	Tool   string   `flag:"tool" usage:"name of the tool; default run"`
}

// check refuses options and words that are for another kind of file.
func (o *pluginWrapOptions) check(kind, own string) error {
	const all = "--auth --brief --effect --env --file --mime --name --out --output --server --stdin --tag --tool WORD"
	for _, name := range strings.Fields(all) {
		isGiven := o.Flags.Changed(strings.TrimPrefix(name, "--")) || name == "WORD" && len(o.Words) > 0
		if isGiven && !slices.Contains(strings.Fields(own), name) {
			return host.Errorf(host.InvalidArgs, "%s is %s, and takes no %s; expected %s", manifest.CleanLine(o.Path), kind,
				name, strings.ReplaceAll(own, " ", ", "))
		}
	}
	return nil
}

// checkName refuses a name that no plugin can have. The error's step uses another name, after its arguments.
func checkName(name string, op step.Op, args ...string) error {
	switch {
	case manifest.Reserved(name):
		return host.Errorf(host.AlreadyExists, "a plugin cannot be named %q: the name is reserved by Parley", name).
			WithSteps(step.Operator(op, append(args, "my-"+name)...))
	case len(name) > 40 || strings.Contains(name, "__") || !regexp.MustCompile(`^[A-Za-z][\w-]*$`).MatchString(name):
		return host.Errorf(host.InvalidArgs, "%s is not the name of a plugin; expected at most 40 letters, digits, - and _, "+
			"a letter first, without __", host.Printable(name)).WithSteps(step.Operator(op, append(args, "my-plugin")...))
	}
	return nil
}

// wrapData describes the manifest that was written.
type wrapData struct {
	Manifest   string        `json:"manifest"` // path of the manifest
	Plugin     string        `json:"plugin"`
	Tool       string        `json:"tool"` // the first one
	Tools      []string      `json:"tools"`
	Parameters []string      `json:"parameters"` // parameters of a WASI command
	Help       bool          `json:"help"`       // the texts are taken from the command's --help
	Admission  *admit.Report `json:"admission"`
}

// wrapper makes a manifest.
type wrapper struct {
	o        *pluginWrapOptions
	help     string
	props    map[string]any // the schemas of parameters
	order    []string       // names of the parameters, in order
	required []string
}

// hole is a parameter in a word of a command line: {name}, {name?} or {name:type}.
var hole = lazy.Pattern(`\{([A-Za-z_][A-Za-z0-9_]*)(\?)?(?::([a-z]+))?\}`)

// use declares the parameters in a text, and returns the text in the form of a manifest. optional says that one of
// them may be left out.
func (w *wrapper) use(text, about string) (template string, optional bool, err error) {
	template = hole().ReplaceAllStringFunc(text, func(s string) string {
		m := hole().FindStringSubmatch(s)
		kind := cmp.Or(m[3], "string")
		if !slices.Contains([]string{"string", "integer", "number", "boolean", "object", "array"}, kind) {
			err = host.Errorf(host.InvalidArgs, "%s has the type %s; expected string, integer, number, boolean, object or array",
				s, kind)
		}
		optional = optional || m[2] != ""
		if w.props[m[1]] == nil {
			w.order = append(w.order, m[1])
			w.props[m[1]] = map[string]any{"type": kind, "description": cmp.Or(about, "Value of "+m[1]+".")}
			if m[2] == "" {
				w.required = append(w.required, m[1])
			}
		}
		return "{" + m[1] + "}"
	})
	return template, optional, err
}

// manifest returns the manifest as JSON.
func (w *wrapper) manifest(name string) ([]byte, error) {
	put := func(into map[string]any, key string, value any, isGiven bool) {
		if isGiven {
			into[key] = value
		}
	}
	wasi := map[string]any{"output": cmp.Or(w.o.Output, "text")}
	argv, err := w.argv()
	stdin, _, invalid := w.use(w.o.Stdin, "Standard input of the command.")
	if err = cmp.Or(err, invalid); err != nil {
		return nil, err
	}
	put(wasi, "argv", argv, len(argv) > 0)
	put(wasi, "stdin", stdin, stdin != "")
	var files []any
	for _, f := range w.o.Files {
		path, value, ok := strings.Cut(f, "=")
		from, _, err := w.use(value, "Content of the file "+path+".")
		if !ok || err != nil || !strings.HasPrefix(path, "/") {
			return nil, host.Errorf(host.InvalidArgs, "--file %q: expected /PATH={name}", manifest.CleanValue(f))
		}
		files = append(files, map[string]any{"path": path, "from": from})
	}
	put(wasi, "files", files, files != nil)
	env := map[string]string{}
	for _, e := range w.o.Env {
		key, value, ok := strings.Cut(e, "=")
		if env[key], _, err = w.use(value, "Variable "+key+" of the environment."); err != nil || !ok {
			return nil, host.Errorf(host.InvalidArgs, "--env %q: expected NAME=VALUE", manifest.CleanValue(e))
		}
	}
	put(wasi, "env", env, len(env) > 0)
	brief := cmp.Or(w.o.Brief, w.brief(name))
	params := map[string]any{"type": "object", "properties": w.props, "additionalProperties": false}
	put(params, "required", w.required, len(w.required) > 0)
	docs := map[string]any{"brief": brief}
	put(docs, "full", w.help, w.help != "")
	tool := map[string]any{
		"name": cmp.Or(w.o.Tool, "run"), "docs": docs, "params": params, "returns": w.returns(),
		"effect": cmp.Or(w.o.Effect, manifest.EffectRead), "wasi": wasi,
	}
	put(tool, "positional", w.required, len(w.required) > 0)
	example := map[string]any{"title": "Without parameters", "kind": "minimal", "params": map[string]any{}}
	put(tool, "examples", []any{example}, w.required == nil)
	return json.MarshalIndent(map[string]any{
		"manifest": 1, "name": name, "version": "0.1.0", "kind": manifest.KindWASI,
		"docs": map[string]any{"brief": brief}, "tools": []any{tool},
	}, "", " ")
}

// argv returns the words of the command line in the form of a manifest. An option and its optional value are a list.
func (w *wrapper) argv() (argv []any, err error) {
	words := w.o.Words
	described := map[string]string{}
	for _, option := range helpOptions(w.help) {
		described[option.flag] = option.about
		general := option.flag == "--help" || option.flag == "--version"
		if len(w.o.Words) == 0 && w.o.Stdin == "" && len(w.o.Files) == 0 && !general {
			name := strings.ReplaceAll(strings.TrimLeft(option.flag, "-"), "-", "_")
			words = append(words, option.flag, "{"+name+"?:"+option.kind()+"}")
		}
	}
	flag := ""
	for _, word := range words {
		before, _, _ := strings.Cut(word, "=")
		template, optional, err := w.use(word, described[cmp.Or(flag, before)])
		switch {
		case err != nil:
			return nil, err
		case optional && flag != "":
			argv[len(argv)-1] = []any{flag, template}
		case optional:
			argv = append(argv, []any{template})
		default:
			argv = append(argv, template)
		}
		flag = ""
		if strings.HasPrefix(word, "-") && template == word {
			flag = word
		}
	}
	return argv, nil
}

// returns returns the schema of the result.
func (w *wrapper) returns() map[string]any {
	switch output := cmp.Or(w.o.Output, "text"); {
	case output == "json":
		return map[string]any{}
	case output == "lines":
		return map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	case output == "bytes" || w.o.MIME != "":
		return map[string]any{"type": "string", "contentEncoding": "base64",
			"contentMediaType": cmp.Or(w.o.MIME, "application/octet-stream")}
	}
	return map[string]any{"type": "string"}
}

// maxBrief is the size limit of a brief, in bytes.
const maxBrief = 64

// brief drafts the brief: the first line of the help that is a sentence, not usage.
func (w *wrapper) brief(name string) string {
	for line := range strings.Lines(w.help) {
		line = strings.TrimSpace(line)
		if _, after, found := strings.Cut(line, ": "); found && strings.HasPrefix(line, name) {
			line = after
		}
		line, _, _ = strings.Cut(line, ". ")
		line = strings.TrimSuffix(line, ".")
		usage := strings.HasPrefix(strings.ToLower(line), "usage") || strings.HasPrefix(line, "-")
		if !usage && len(strings.Fields(line)) > 2 && len(line) <= maxBrief {
			return strings.ToUpper(line[:1]) + line[1:]
		}
	}
	return "Run " + name
}

// helpOption is an option that a help text lists.
type helpOption struct{ flag, value, about string }

func (o helpOption) kind() string {
	switch value := strings.ToLower(o.value); {
	case value == "":
		return "boolean"
	case slices.Contains([]string{"n", "num", "number", "count", "int"}, value):
		return "integer"
	}
	return "string"
}

// optionLine is a line of a help text such as "  -n, --lines NUM   at most so many lines".
var optionLine = lazy.Pattern(`^\s+(-[A-Za-z0-9])?(?:[ ,|/]+)?(--[a-z][a-z0-9-]*)?(?:[ =]<?([A-Za-z_]+)>?)?` +
	`(?:\s{2,}|\t)(\S.*)$`)

func helpOptions(help string) (options []helpOption) {
	const most = 40
	for line := range strings.Lines(help) {
		m := optionLine().FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || m[1]+m[2] == "" || len(options) == most {
			continue
		}
		options = append(options, helpOption{cmp.Or(m[2], m[1]), m[3], manifest.Clip(strings.TrimSpace(m[4]), 200)})
	}
	return options
}

// Bounds of the help of a command.
const (
	helpTimeout = 5 * time.Second
	maxHelp     = 8 << 10
)

// commandHelp returns the output of a command for --help, or else for -h. It takes stdout, or if the command fails,
// stderr. The command runs in the sandbox, without rights. If there is no help, it returns "".
func commandHelp(ctx context.Context, app *command.App, path string, code []byte, name string) string {
	for _, flag := range []string{"--help", "-h"} {
		data, err := probe(ctx, app, path, code, name, manifest.KindWASI, "help",
			map[string]any{"wasi": map[string]any{"argv": []any{flag}}})
		text := ""
		if err == nil {
			_ = json.Unmarshal(data, &text)
		} else if e := host.AsError(err); e.Code == host.ToolFailed {
			text = e.Message
		}
		text = strings.TrimSpace(manifest.Clip(manifest.Clean(text), maxHelp))
		if strings.Contains(strings.ToLower(text), "usage") || len(helpOptions(text)) > 0 {
			return text
		}
	}
	return ""
}

// probe calls a tool of a module in the sandbox, without rights. The manifest has only this tool. A module of kind
// MCP lists its tools.
func probe(ctx context.Context, app *command.App, path string, code []byte, name, kind, tool string,
	fields map[string]any) (json.RawMessage, error) {
	docs := map[string]any{"brief": "Probe"}
	described := map[string]any{"name": tool, "docs": docs, "effect": "read", "params": map[string]any{"type": "object"}}
	maps.Copy(described, fields)
	m := jsontext.Marshal(map[string]any{
		"manifest": 1, "name": name, "version": "0.0.0", "kind": kind, "docs": docs, "tools": []any{described},
	})
	c, err := store.Pack(path, code, m, path, parley.Version)
	if err != nil {
		return nil, err
	}
	provider := app.Parley().Engine().Provider(c.Source())
	if err := provider.Prepare(ctx); err != nil {
		return nil, err
	}
	request := &host.Request{Job: job.Job{Params: json.RawMessage("{}"), Caller: command.Caller}}
	if kind != manifest.KindExtism {
		request.Tool, request.Def = tool, c.Manifest.Tool(tool)
	}
	limited, cancel := context.WithTimeout(ctx, helpTimeout)
	defer cancel()
	result, err := provider.Invoke(limited, request)
	if err != nil {
		return nil, err
	}
	return result.Data, nil
}

// extismTool is a tool as an Extism plugin lists it.
type extismTool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  struct {
		ReadOnly    bool  `json:"readOnlyHint"`
		Destructive *bool `json:"destructiveHint"`
	} `json:"annotations"`
}

// extismManifest returns the manifest of an Extism plugin, as JSON, with the tools that it lists. It requests no
// rights, since the plugin does not say which it needs.
func extismManifest(ctx context.Context, app *command.App, o *pluginWrapOptions, code []byte, name string) ([]byte,
	error) {
	if err := o.check("an Extism plugin, which lists its tools itself", "--brief --effect --name --out"); err != nil {
		return nil, err
	}
	data, err := probe(ctx, app, o.Path, code, name, manifest.KindExtism, "list", nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Tools []extismTool `json:"tools"`
	}
	if err := json.Unmarshal(data, &list); err != nil || len(list.Tools) == 0 {
		return nil, host.Errorf(host.InvalidPlugin, "%s: it lists no tools; expected {\"tools\":[..]}%s", name,
			strings.TrimSuffix(fmt.Sprintf(": %v", err), ": <nil>"))
	}
	tools, groups := []any{}, []any{}
	named := map[string]bool{}
	for _, t := range list.Tools {
		brief, rest := splitBrief(strings.TrimSpace(t.Description))
		docs := map[string]any{"brief": cmp.Or(brief, "Call "+t.Name)}
		if rest != "" {
			docs["standard"] = rest
		}
		if group, _, ok := strings.Cut(t.Name, "."); ok && !named[group] {
			named[group] = true
			groups = append(groups, map[string]any{"name": group, "docs": map[string]any{"brief": "Tools of " + group}})
		}
		params, returns := cmp.Or(string(t.InputSchema), `{"type":"object"}`), cmp.Or(string(t.OutputSchema), "{}")
		tools = append(tools, map[string]any{"name": t.Name, "docs": docs, "params": json.RawMessage(params),
			"returns": json.RawMessage(returns), "effect": cmp.Or(o.Effect, t.effect())})
	}
	return json.MarshalIndent(map[string]any{
		"manifest": 1, "name": name, "version": "0.1.0", "kind": manifest.KindExtism,
		"docs": map[string]any{"brief": cmp.Or(o.Brief, "Tools of "+name)}, "groups": groups, "tools": tools,
	}, "", " ")
}

// effect returns the tool's effect according to the plugin. A tool without annotations may write, as in MCP.
func (t *extismTool) effect() string {
	switch {
	case t.Annotations.ReadOnly:
		return manifest.EffectRead
	case t.Annotations.Destructive != nil && *t.Annotations.Destructive:
		return manifest.EffectDestructive
	}
	return manifest.EffectWrite
}

// splitBrief splits a description after its first sentence, and drops the period of that sentence. If the sentence is
// too long, the brief is cut, and rest is the whole description.
func splitBrief(text string) (brief, rest string) {
	end := len(text)
	for _, mark := range []string{". ", ".\n", "\n"} {
		if at := strings.Index(text, mark); at >= 0 {
			end = min(end, at)
		}
	}
	sentence := strings.TrimRight(text[:end], ". ")
	if brief = openapi.ClipWords(sentence, maxBrief); brief != sentence {
		return brief, text
	}
	return brief, strings.TrimLeft(text[end:], ".\n ")
}
