package guest

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/manifest"
)

// command is a call of kind wasi in the form of a command line.
type command struct {
	args   []string
	stdin  string
	env    map[string]string
	files  map[string]string // guest path -> content
	output string            // text, json, lines, bytes or file:/PATH
}

// runCommand runs a WASI command. The manifest's wasi object maps parameters to arguments, streams, environment and
// files.
func (c *Call) runCommand() (*job.Result, error) {
	cmd, err := c.buildCommand()
	if err != nil {
		return nil, err
	}
	stdout := &world.Capture{Control: c.Control, Limit: c.Limits.Output, Strict: true, Name: "stdout"}
	c.Capture(stdout)
	c.Streams.Stdin.Reset([]byte(cmd.stdin))
	target, toFile := strings.CutPrefix(cmd.output, "file:")
	if len(cmd.files) > 0 || toFile {
		c.Files.AddScratch(cmd.files, toFile)
	}
	config := wazero.NewModuleConfig().WithArgs(append([]string{c.Manifest.Name}, cmd.args...)...)
	for _, name := range slices.Sorted(maps.Keys(cmd.env)) {
		config = config.WithEnv(name, cmd.env[name])
	}
	err = c.instantiate(config, "_start")
	var exit *sys.ExitError
	switch {
	case c.Control.Ctx.Err() != nil || c.Control.Fatal != nil:
		return nil, c.guestError(err)
	case errors.As(err, &exit) && exit.ExitCode() == 0:
	case errors.As(err, &exit):
		return nil, c.exitCodeError(exit.ExitCode())
	case err != nil:
		return nil, c.guestError(err)
	}
	data := stdout.Data
	if toFile {
		content, ok := c.Files.Scratch.Content(target)
		if !ok {
			return nil, host.Errorf(host.InvalidResult, "%s succeeded but did not write its output file %s", c.ToolName(),
				world.Line(target, 100))
		}
		data = content
	}
	return c.commandResult(cmd.output, data)
}

// exitCodeError turns a program's exit code into an error with the last lines of stderr as message.
func (c *Call) exitCodeError(code uint32) error {
	if c.memory.Denied {
		return c.exitError(code)
	}
	return c.toolError(int64(code), strings.Join(c.Streams.Tail(10, "(%d bytes before this)"), "\n"), nil)
}

// commandResult turns the program's output into a result.
func (c *Call) commandResult(kind string, data []byte) (*job.Result, error) {
	switch kind {
	case "json":
		if !utf8.Valid(data) || !json.Valid(data) {
			return nil, host.Errorf(host.InvalidResult, "%s succeeded but did not write JSON to stdout; it wrote %s",
				c.ToolName(), excerpt(data))
		}
		return &job.Result{Data: bytes.TrimSpace(data)}, nil
	case "bytes":
		return base64Result(data), nil
	case "lines":
		lines := []string{}
		for line := range strings.Lines(string(data)) {
			lines = append(lines, strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
		}
		return c.textResult(lines, data)
	}
	if strings.HasPrefix(kind, "file:") && c.wantsBase64() {
		return base64Result(data), nil
	}
	return c.textResult(string(data), data)
}

func base64Result(data []byte) *job.Result {
	return &job.Result{Data: Marshal(base64.StdEncoding.EncodeToString(data))}
}

// textResult encodes text as JSON. It refuses bytes that are not UTF-8, because they would be lost.
func (c *Call) textResult(v any, data []byte) (*job.Result, error) {
	if !utf8.Valid(data) {
		return nil, host.Errorf(host.InvalidResult, "%s succeeded, but its output of %d bytes is not UTF-8 and cannot be a "+
			"text; for bytes, the manifest says \"contentEncoding\": \"base64\" in returns and \"output\": \"bytes\" in wasi",
			c.ToolName(), len(data))
	}
	return &job.Result{Data: Marshal(v)}, nil
}

func excerpt(data []byte) string {
	if len(bytes.TrimSpace(data)) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%q", world.Truncate(manifest.CleanLine(string(data[:min(len(data), 200)])), 80))
}

// wantsBase64 reports whether the tool's returns schema declares base64.
func (c *Call) wantsBase64() bool {
	var schema struct {
		ContentEncoding string `json:"contentEncoding"`
	}
	def := c.Request.Def
	return def != nil && json.Unmarshal(def.Returns, &schema) == nil && schema.ContentEncoding == "base64"
}

// buildCommand fills the tool's templates with the call's parameters.
func (c *Call) buildCommand() (*command, error) {
	cmd := &command{output: "text", env: map[string]string{}, files: map[string]string{}}
	if c.Request.Def == nil || c.Request.Def.WASI == nil {
		return cmd, nil
	}
	w := c.Request.Def.WASI
	t := template{}
	if err := json.Unmarshal(JSONOr(c.Request.Params, "{}"), &t); err != nil {
		return nil, host.Errorf(host.InvalidArgs, "the parameters must be an object: --params '{...}'")
	}
	if name, place := w.WithNUL(t); name != "" { // only a caller that skips validation can send it
		return nil, host.Errorf(host.InvalidArgs, "parameter %s contains U+0000, which %s cannot hold", name, place)
	}
	for _, arg := range w.Argv {
		switch {
		case arg.List == nil:
			cmd.args = append(cmd.args, t.expand(arg.Word))
		case t.allGiven(arg.List):
			for _, word := range arg.List {
				if !t.isFlag(word) {
					cmd.args = append(cmd.args, t.expand(word))
				}
			}
		}
	}
	cmd.stdin = t.expand(w.Stdin)
	for name, value := range w.Env {
		cmd.env[name] = t.expand(value)
	}
	for _, f := range w.Files {
		cmd.files[path.Clean("/"+f.Path)] = t.expand(f.From)
	}
	cmd.output = cmp.Or(w.Output, "text")
	return cmd, nil
}

// template expands placeholders with parameters.
type template map[string]json.RawMessage

// text returns a parameter in the form in which a program receives it: a string as it is, any other value as JSON, ""
// if it is absent.
func (t template) text(name string) string {
	raw, ok := t[name]
	if !ok {
		return ""
	}
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(manifest.CompactJSON(raw))
}

// expand replaces the placeholders of a text. manifest.Parse has checked their names.
func (t template) expand(text string) string {
	return manifest.Placeholder().ReplaceAllStringFunc(text, func(match string) string {
		return t.text(match[1 : len(match)-1])
	})
}

// allGiven reports whether each parameter in a list of words is given. An absent, null or false parameter is not.
func (t template) allGiven(words []string) bool {
	for _, word := range words {
		for _, match := range manifest.Placeholder().FindAllStringSubmatch(word, -1) {
			switch raw := t[match[1]]; string(raw) {
			case "", "null", "false":
				return false
			}
		}
	}
	return true
}

// isFlag reports whether a word consists of a single placeholder whose parameter is true. Such a word keeps its list,
// but is not itself an argument.
func (t template) isFlag(word string) bool {
	match := manifest.Placeholder().FindStringSubmatch(word)
	return match != nil && match[0] == word && string(t[match[1]]) == "true"
}
