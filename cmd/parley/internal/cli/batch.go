package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

func newBatch(app *App) *cobra.Command {
	goOn := false
	cmd := &cobra.Command{
		Use:   "batch FILE|-",
		Short: "Run NDJSON calls in order",
		Long: "Each line is {\"id\":1,\"tool\":\"cdp.Page.navigate\",\"params\":{..},\"options\":{..}} and is answered by one line with the same id\n" +
			"(default: the line's number). \"${1.frameId}\" in params or options is earlier data with its type; $${ stands for ${.",
		Example: "parley batch calls.ndjson",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return missingWord("batch", "one FILE, or - for stdin", "parley batch calls.ndjson")
			}
			runtime.GOMAXPROCS(1) // one line runs at a time: a second processor would only be woken to go on with it
			return app.batch(cmd.Context(), args[0], goOn)
		},
	}
	cmd.Flags().BoolVar(&goOn, "continue-on-error", false, "go on after a call that failed")
	return cmd
}

// batchLine is one call of a batch.
type batchLine struct {
	ID      json.RawMessage `json:"id"`
	Tool    string          `json:"tool"`
	Params  json.RawMessage `json:"params"`
	Options json.RawMessage `json:"options"`
}

type batchAnswer struct {
	ID json.RawMessage `json:"id"`
	*command.Envelope
}

// results are the data of the calls that succeeded, by id: read when something refers to them.
type results map[string]json.RawMessage

func (a *App) batch(ctx context.Context, path string, goOn bool) error {
	input := a.input(ctx)
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return host.Errorf(host.InvalidArgs, "batch: %s", manifest.CleanLine(err.Error()))
		}
		defer file.Close()
		input = file
	}
	h, err := a.deps.Host(ctx)
	if err != nil {
		return err
	}
	cfg, err := a.deps.Settings()
	if err != nil {
		return err
	}
	earlier := results{}
	lines := bufio.NewReaderSize(input, 64<<10)
	first := error(nil)
	for number := 1; ; number++ {
		line, err := readLine(lines, host.MaxParams)
		if err != nil && !errors.Is(err, io.EOF) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return host.Errorf(host.InvalidArgs, "batch: line %d: %v", number, err)
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			answer, err := a.batchCall(ctx, h, cfg, text, number, earlier)
			if err != nil {
				return writeError(err)
			}
			if answer.Err != nil && first == nil {
				first = &exitStatus{answer.Err.ExitCode()}
			}
			if answer.Err != nil && (!goOn || ctx.Err() != nil) {
				return first
			}
		}
		if err != nil {
			return first
		}
	}
}

// readLine reads a line of bounded length; the last may lack its newline.
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

// batchCall runs a line and prints its answer. The error says that it could not be printed.
func (a *App) batchCall(ctx context.Context, h *host.Host, cfg *command.Settings, text []byte, number int, earlier results) (*host.Answer, error) {
	id := json.RawMessage(strconv.Itoa(number))
	refuse := func(err error) (*host.Answer, error) {
		e := host.AsError(err)
		if len(e.Next) == 0 {
			e = e.WithNext("parley help batch")
		}
		answer := &host.Answer{Err: e, Steps: e.Steps}
		return answer, a.printLine(id, answer)
	}
	if _, err := jsontext.Decode(text, jsontext.Limits{Bytes: host.MaxParams}); err != nil {
		return refuse(host.Errorf(host.InvalidArgs, "line %d: %s", number, manifest.CleanLine(err.Error())))
	}
	var line batchLine
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&line); err != nil {
		return refuse(host.Errorf(host.InvalidArgs, "line %d: %s", number, manifest.CleanLine(strings.TrimPrefix(err.Error(), "json: "))).
			WithNext(`{"id":1,"tool":"text.hash","params":{"text":"hello"}}`))
	}
	if len(line.ID) > 0 && string(line.ID) != "null" {
		id = line.ID
	}
	key := idKey(id)
	if _, used := earlier[key]; used {
		return refuse(host.Errorf(host.InvalidArgs, "line %d: id %s was used before", number, manifest.CleanLine(key)))
	}
	if line.Tool == "" {
		return refuse(host.Errorf(host.InvalidArgs, "line %d: \"tool\" is missing", number).WithNext(`{"id":1,"tool":"text.hash","params":{"text":"hello"}}`))
	}
	params, err := substitute(line.Params, earlier)
	if err != nil {
		return refuse(err)
	}
	given, err := substitute(line.Options, earlier)
	if err != nil {
		return refuse(err)
	}
	options, err := host.ParseOptions(given)
	if err != nil {
		return refuse(err)
	}
	options = cfg.Complete(options)
	var unprinted error
	answer, _ := h.Call(ctx, host.Call{
		Name: line.Tool, Params: params, Caller: "cli", Session: a.Env("PARLEY_SESSION"), Options: options,
		Log:          func(level int, message string) { a.debugf("%s: %s", line.Tool, message) },
		BeforeRecord: func(answer *host.Answer) { unprinted = a.printLine(id, answer) }, // whoever sends the lines goes on while it is recorded
	})
	if answer.Err == nil {
		earlier[key] = answer.Data
	}
	return answer, unprinted
}

// printLine prints the answer to a line.
func (a *App) printLine(id json.RawMessage, answer *host.Answer) error {
	env := a.deps.Envelope(answer)
	if a.deps.Debugging {
		env.Debug, a.lines = a.lines, nil
	}
	raw, err := manifest.Marshal(batchAnswer{id, env})
	if err == nil {
		_, err = a.Out.Write(append(manifest.EscapeJSON(raw), '\n'))
	}
	return err
}

func idKey(id json.RawMessage) string {
	var text string
	if json.Unmarshal(id, &text) == nil {
		return text
	}
	return string(id)
}

// substitute replaces references to earlier results in the strings of a call's parameters, or of its options.
func substitute(params json.RawMessage, earlier results) (json.RawMessage, error) {
	if !bytes.Contains(params, []byte("${")) {
		return params, nil
	}
	value, err := jsontext.Decode(params, jsontext.Limits{Bytes: host.MaxParams})
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "%s", manifest.CleanLine(err.Error()))
	}
	replaced, err := replaceRefs(value, earlier)
	if err != nil {
		return nil, err
	}
	return jsontext.Marshal(replaced), nil
}

func replaceRefs(value any, earlier results) (any, error) {
	switch v := value.(type) {
	case string:
		return expand(v, earlier)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = replaceRefs(v[i], earlier); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			var err error
			if out[k], err = replaceRefs(v[k], earlier); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}

// expand replaces each ${id.path} of a string. A string that is one reference and nothing else becomes the value
// with its type; within a longer text only what has a text form can stand.
func expand(s string, earlier results) (any, error) {
	var b strings.Builder
	for rest := s; ; {
		at := strings.Index(rest, "${")
		if at < 0 {
			b.WriteString(rest)
			return b.String(), nil
		}
		if at > 0 && rest[at-1] == '$' {
			b.WriteString(rest[:at-1] + "${")
			rest = rest[at+2:]
			continue
		}
		end := strings.IndexByte(rest[at:], '}')
		if end < 0 {
			return nil, host.Errorf(host.InvalidArgs, "%q has a ${ without }; write $${ for the characters themselves", manifest.CleanLine(s))
		}
		value, err := lookUp(rest[at+2:at+end], earlier)
		if err != nil {
			return nil, err
		}
		if at == 0 && end == len(s)-1 && len(rest) == len(s) {
			return value, nil
		}
		b.WriteString(rest[:at])
		switch v := value.(type) {
		case string:
			b.WriteString(v)
		case json.Number, bool:
			fmt.Fprint(&b, v)
		default:
			return nil, host.Errorf(host.InvalidArgs, "${%s} is neither a string nor a number, so it cannot be part of a longer text", manifest.CleanLine(rest[at+2:at+end]))
		}
		rest = rest[at+end+1:]
	}
}

// find takes a reference apart at the dot after an id, which may have dots itself: the longest that there is.
func (r results) find(ref string) (id, path string, data json.RawMessage, ok bool) {
	for end := len(ref); end >= 0; end = strings.LastIndexByte(ref[:end], '.') {
		if data, ok := r[ref[:end]]; ok {
			return ref[:end], strings.TrimPrefix(ref[end:], "."), data, true
		}
	}
	id, path, _ = strings.Cut(ref, ".")
	return id, path, nil, false
}

// isCut reports whether a result is what stands for one that was larger than its call allowed.
func isCut(data json.RawMessage) bool {
	var cut struct {
		Truncated bool  `json:"truncated"`
		Total     int64 `json:"total_bytes"`
	}
	return json.Unmarshal(data, &cut) == nil && cut.Truncated && cut.Total > 0
}

func lookUp(ref string, earlier results) (any, error) {
	id, path, data, ok := earlier.find(ref)
	if !ok {
		return nil, host.Errorf(host.InvalidArgs, "${%s}: no earlier call that succeeded has the id %s", manifest.CleanLine(ref), manifest.CleanLine(id))
	}
	value, err := jsontext.Decode(data, jsontext.Limits{Bytes: max(1, len(data)), ReplaceSurrogates: true})
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "${%s}: the result of %s cannot be read: %s", manifest.CleanLine(ref), manifest.CleanLine(id), manifest.CleanLine(err.Error()))
	}
	if path == "" {
		return value, nil
	}
	for _, step := range strings.Split(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value, ok = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			ok = err == nil && i >= 0 && i < len(v)
			if ok {
				value = v[i]
			}
		default:
			ok = false
		}
		if !ok && isCut(data) {
			return nil, host.Errorf(host.InvalidArgs, "${%s}: the result of %s was cut by max_bytes; leave that out where a result is referred to",
				manifest.CleanLine(ref), manifest.CleanLine(id))
		}
		if !ok {
			return nil, host.Errorf(host.InvalidArgs, "${%s}: the result of %s has no %s", manifest.CleanLine(ref), manifest.CleanLine(id), manifest.CleanLine(step))
		}
	}
	return value, nil
}
