package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// buildParams returns the parameters of a call. Values in o.Words and o.Set replace values from a file or the
// standard input, which may contain common parameters. But they may not replace each other, or values that o.Params
// contains itself.
func buildParams(ctx context.Context, app *command.App, t *manifest.Tool, o *CallOptions) (json.RawMessage, error) {
	raw, err := readParams(ctx, app, o.Params, o.Timeout)
	if err != nil {
		return nil, err
	}
	given := o.Set
	if o.All {
		given = append([]string{"all=true"}, given...)
		if kind, _ := manifest.TypeAt(t.Params, "all"); kind != "boolean" {
			return nil, host.Errorf(host.InvalidArgs, "--all does not apply to %s", t.Name).WithNext("leave it out")
		}
	}
	if len(o.Words) == 0 && len(given) == 0 {
		return raw, nil // the host reports what is wrong with it
	}
	params := map[string]any{}
	if len(bytes.TrimSpace(raw)) > 0 {
		value, _ := jsontext.Decode(raw, jsontext.Limits{Bytes: host.MaxParams})
		var ok bool
		if params, ok = value.(map[string]any); !ok {
			return raw, nil
		}
	}
	by := givers{}
	if o.Params != "-" && !strings.HasPrefix(o.Params, "@") {
		for name := range params {
			by = append(by, giver{[]string{name}, "--params"})
		}
	}
	for i, word := range o.Words[:min(len(o.Words), len(t.Positional))] {
		if err := by.give(params, t.Positional[i:i+1], `the word "`+manifest.CleanValue(word)+`"`, false); err != nil {
			return nil, err
		}
	}
	words, err := readWords(ctx, app, params, t, o)
	if err = cmp.Or(err, positional(params, t, words, given)); err != nil {
		return nil, err
	}
	missing := ""
	for _, p := range given {
		if name, _, _ := manifest.ParamNamed(t.Params, p); name != "" && !strings.Contains(p, "=") {
			missing = name
		} else if err := setParam(ctx, app, params, &by, t, p, o.Timeout); err != nil {
			return nil, err
		}
	}
	if missing != "" {
		e := host.Errorf(host.InvalidArgs, "parameter %s requires a value: expected KEY=VALUE", missing)
		e.Template = advice.TemplateOf(t, params, missing)
		return nil, e
	}
	return jsontext.Marshal(params), nil
}

// givers are the sources of parameters on a command line, in order.
type givers []giver

type giver struct {
	path []string
	by   string
}

// give records the source by of the parameter at a path. The error is invalid_args if the parameter, a part of it, or
// a value that contains it was given before. But a list may get more items, and an object other properties.
func (all *givers) give(params map[string]any, path []string, by string, isMore bool) error {
	_, isThere := jsontext.Lookup(params, path)
	for _, before := range *all {
		n := min(len(before.path), len(path))
		if isMore || !slices.Equal(before.path[:n], path[:n]) {
			continue
		}
		was, _ := jsontext.Lookup(params, before.path)
		if isThere || was == nil || len(before.path) == len(path) {
			return host.Errorf(host.InvalidArgs, "parameter %s is given twice: by %s and by %s",
				manifest.CleanLine(strings.Join(path, ".")), manifest.Clip(before.by, 120), manifest.Clip(by, 120)).
				WithNext("leave one of them out")
		}
	}
	*all = append(*all, giver{path, by})
	return nil
}

// ParamsOf returns the parameters of a call that can be built without reading anything. It returns false for any
// other call. Invalid options give invalid parameters.
func ParamsOf(app *command.App, t *manifest.Tool, o CallOptions) (json.RawMessage, bool) {
	reads := func(given string) bool {
		_, value, _ := strings.Cut(given, "=")
		return strings.HasPrefix(value, "@") || value == "-" || strings.HasPrefix(given, "@") || given == "-"
	}
	if reads(o.Params) || slices.ContainsFunc(append(slices.Clone(o.Words), o.Set...), reads) {
		return nil, false
	}
	params, err := buildParams(context.Background(), app, t, &o)
	if err != nil {
		params = json.RawMessage("invalid")
	}
	return params, true
}

// readParams reads parameters that are given as JSON, as @FILE or as - for the standard input. timeout is the timeout
// of the call.
func readParams(ctx context.Context, app *command.App, given string, timeout time.Duration) (json.RawMessage, error) {
	switch {
	case given == "-":
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, timeout,
				host.Errorf(host.Timeout, "--params -: the standard input did not end within the timeout"))
			defer cancel()
		}
		data, err := io.ReadAll(io.LimitReader(app.Input(ctx), host.MaxParams+1))
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, host.Errorf(host.InvalidArgs, "--params -: %v", err)
		}
		if len(data) > host.MaxParams {
			return data, host.Errorf(host.InvalidArgs, "parameters are larger than %d bytes", host.MaxParams)
		}
		return data, nil
	case strings.HasPrefix(given, "@"):
		return readInput(ctx, app, "--params @", given[1:], timeout)
	case strings.HasSuffix(given, ".json") && !strings.ContainsAny(given, "{}"):
		return nil, host.Errorf(host.InvalidArgs, "--params takes a JSON object, or a file with @ before its name: --params "+
			"@%s", manifest.CleanLine(given)).WithNext(command.Instead(app.Args, given, "@"+given))
	case isAssignment(given):
		return nil, host.Errorf(host.InvalidArgs, "--params takes a JSON object; KEY=VALUE belongs to --param: --param %s",
			manifest.CleanLine(given))
	}
	return json.RawMessage(given), nil
}

// isAssignment reports whether a text has the form KEY=VALUE of --param.
func isAssignment(given string) bool {
	key, _, ok := strings.Cut(given, "=")
	return ok && key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return r != '_' && r != '.' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// readInput reads the file that an option names. A pipe may take as long as the call, or as the default timeout.
func readInput(ctx context.Context, app *command.App, option, path string, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(timeout, host.DefaultTimeout))
	defer cancel()
	data, err := command.ReadGiven(ctx, app, path)
	if err == nil {
		return data, nil
	}
	if ended, is := errors.AsType[*host.Error](err); is {
		if ended.Code == host.Timeout {
			ended.Message = option + manifest.CleanLine(ended.Message)
		}
		return nil, ended
	}
	message := manifest.CleanLine(strings.TrimPrefix(err.Error(), path+": "))
	next := "for a value that begins with @, use --params JSON"
	if strings.Contains(message, "larger than") {
		next = "pass a part of it; a plugin reads larger files from a folder that is granted to it (fs)"
	}
	return nil, host.Errorf(host.InvalidArgs, "%s%s: %s", option, manifest.CleanLine(path), message).WithNext(next)
}

// readWords reads the last positional parameter from a file or the standard input, if the parameter is an array or an
// object and its only word is @FILE or -. It returns the remaining words.
func readWords(ctx context.Context, app *command.App, params map[string]any, t *manifest.Tool,
	o *CallOptions) ([]string, error) {
	last := len(o.Words) - 1
	if last < 0 || last >= len(t.Positional) || o.Words[last] != "-" && !strings.HasPrefix(o.Words[last], "@") {
		return o.Words, nil
	}
	if kind, _ := manifest.TypeAt(t.Params, t.Positional[last]); kind != "array" && kind != "object" {
		return o.Words, nil
	}
	raw, err := readParams(ctx, app, o.Words[last], o.Timeout)
	if err != nil {
		return nil, err
	}
	value, err := jsontext.Decode(raw, jsontext.Limits{Bytes: host.MaxParams})
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "%s of %s is not JSON: %v", t.Positional[last], t.Name, err)
	}
	params[t.Positional[last]] = value
	return o.Words[:last], nil
}

// positional assigns words to the positional parameters of a tool. The last one takes all further words if it is an
// array. For words that mean all parameters, or a point, the error has these and the given ones.
func positional(params map[string]any, t *manifest.Tool, words, given []string) error {
	pairs, point := words, "["+strings.Join(words, ",")+"]"
	if _, item := manifest.TypeAt(t.Params, "at"); item == "number" && len(words) == 2 && json.Valid([]byte(point)) {
		pairs = []string{"at=" + point}
	}
	if meant := allParams(t, pairs); len(meant) > 0 && len(params) == 0 {
		maps.Copy(meant, allParams(t, slices.Concat(pairs, given)))
		e := host.Errorf(host.InvalidArgs, "the words after %s are parameters, which go into --params or --param", t.Name)
		e.Corrected, e.Changes = jsontext.Marshal(meant), []schema.Change{{How: schema.Parsed}}
		return e
	}
	for i := 0; i < len(words); i++ {
		if i >= len(t.Positional) {
			return host.Errorf(host.InvalidArgs,
				"unexpected word %q after %s: it takes %s; other parameters go into --params or --param",
				manifest.CleanValue(words[i]), t.Name, cmp.Or(strings.Join(t.Positional, ", "), "no words"))
		}
		name := t.Positional[i]
		kind, item := manifest.TypeAt(t.Params, name)
		if kind == "array" && i == len(t.Positional)-1 && !strings.HasPrefix(words[i], "[") {
			list := []any{}
			for _, w := range words[i:] {
				list = append(list, typed(w, item, ""))
			}
			params[name] = list
			return validUTF8(name, strings.Join(words[i:], " "))
		}
		if err := validUTF8(name, words[i]); err != nil {
			return err
		}
		params[name] = typed(words[i], kind, item)
		if kind == "boolean" && words[i] == name {
			params[name] = true // the name of a switch turns the switch on
		}
	}
	return nil
}

// allParams returns the parameters in words: one word that is a JSON object of parameters, or words that are all
// NAME=VALUE. It returns nil if the words are values.
func allParams(t *manifest.Tool, words []string) map[string]any {
	meant := map[string]any{}
	if len(words) == 1 && jsontext.LooksLikeJSON(words[0]) {
		if raw, _ := jsontext.Repair(words[0]); json.Unmarshal(raw, &meant) != nil {
			return nil
		}
	} else {
		for _, word := range words {
			name, value, isPair := strings.Cut(word, "=")
			kind, item := manifest.TypeAt(t.Params, name)
			if !isPair || kind == "" || strings.Contains(value, "=") && len(words) == 1 {
				return nil
			}
			meant[name] = typed(value, kind, item)
		}
	}
	unknown := 0
	for name := range meant {
		if known, _, _ := manifest.ParamNamed(t.Params, name); known == "" {
			unknown++
		}
	}
	if unknown > 0 && (len(t.Positional) > 0 || unknown == len(meant)) {
		return nil
	}
	return meant
}

// setParam sets one parameter from KEY=VALUE or KEY=@FILE. A key with dots sets a property of an object, unless the
// tool has a parameter with exactly that name. A number is an index of a list. A key that is given again appends to
// an array.
func setParam(ctx context.Context, app *command.App, params map[string]any, by *givers, t *manifest.Tool, given string,
	timeout time.Duration) error {
	key, text, ok := strings.Cut(given, "=")
	if !ok || key == "" {
		return host.Errorf(host.InvalidArgs, "--param %q: expected KEY=VALUE", manifest.CleanValue(given))
	}
	path := []string{key}
	if kind, _ := manifest.TypeAt(t.Params, key); kind == "" {
		path = strings.Split(key, ".")
	}
	kind, item := manifest.TypeAt(t.Params, path...)
	isNull := text == "null"
	if strings.HasPrefix(text, "@") {
		data, err := readInput(ctx, app, "--param "+key+"=@", text[1:], timeout)
		if err != nil {
			return err
		}
		if text = string(data); manifest.Base64At(t.Params, path...) {
			text = base64.StdEncoding.EncodeToString(data)
		}
	}
	if err := validUTF8(key, text); err != nil {
		return err
	}
	before, _ := jsontext.Lookup(params, path)
	list, isList := before.([]any)
	isMore := isList && kind == "array" && !isNull && !strings.HasPrefix(text, "[")
	if err := by.give(params, path, "--param "+manifest.CleanValue(given), isMore); err != nil {
		return err
	}
	value := typed(text, kind, item)
	switch {
	case isMore:
		value = append(list, typed(text, item, ""))
	case isNull && accepts(kind, "null"):
		value = nil
	case isNull && !accepts(kind, "string"): // leave it out
		inside, _ := jsontext.Lookup(params, path[:len(path)-1])
		if object, isObject := inside.(map[string]any); isObject {
			delete(object, path[len(path)-1])
		}
		return nil
	}
	isArray := func(depth int) bool {
		kind, _ := manifest.TypeAt(t.Params, path[:depth]...)
		return kind == "array"
	}
	_, err := put(params, path, 0, value, isArray)
	return err
}

// put puts a value at a path inside another value and returns that. inside is at the first depth steps of the path.
// Missing objects and lists are created.
func put(inside any, path []string, depth int, value any, isArray func(depth int) bool) (any, error) {
	if depth == len(path) {
		return value, nil
	}
	step := path[depth]
	if inside == nil && isArray(depth) {
		inside = []any{}
	} else if inside == nil {
		inside = map[string]any{}
	}
	var err error
	switch at := inside.(type) {
	case map[string]any:
		at[step], err = put(at[step], path, depth+1, value, isArray)
		return at, err
	case []any:
		i, invalid := strconv.Atoi(step)
		if invalid == nil && i == len(at) {
			at = append(at, nil)
		} else if invalid != nil || i < 0 || i > len(at) {
			return at, host.Errorf(host.InvalidArgs, "--param %s: %s has %s; expected an index from 0 to %d",
				manifest.CleanLine(strings.Join(path, ".")), manifest.CleanLine(path[depth-1]),
				manifest.Plural(len(at), "item"), len(at))
		}
		at[i], err = put(at[i], path, depth+1, value, isArray)
		return at, err
	}
	return nil, host.Errorf(host.InvalidArgs, "--param %s: %s is not an object and cannot hold %s",
		manifest.CleanLine(strings.Join(path, ".")), manifest.CleanLine(path[depth-1]), manifest.CleanLine(step))
}

// accepts reports whether a parameter of this kind may have a value of the type. A value that no schema describes may
// have any type.
func accepts(kind, typeName string) bool {
	return kind == "" || kind == "any" || slices.Contains(strings.Split(kind, "|"), typeName)
}

func validUTF8(name, text string) error {
	switch {
	case utf8.ValidString(text):
		return nil
	case jsontext.IsUTF16(text):
		return host.Errorf(host.InvalidArgs, "parameter %s is UTF-16; expected UTF-8", manifest.CleanLine(name)).
			WithNext("save the file as UTF-8")
	}
	return host.Errorf(host.InvalidArgs,
		"parameter %s is not valid UTF-8; pass binary data as base64 if the tool takes it", manifest.CleanLine(name))
}

// Typed converts the text of an option, or the texts of a list, to the type that the schema declares for the
// parameter with that name.
func Typed(t *manifest.Tool, name string, value any) any {
	known, _, _ := manifest.ParamNamed(t.Params, name)
	kind, item := manifest.TypeAt(t.Params, cmp.Or(known, name))
	if text, isText := value.(string); isText {
		return typed(text, kind, item)
	}
	list, _ := value.([]any)
	for i := range list {
		if text, isText := list[i].(string); isText && item != "" {
			list[i] = typed(text, item, "")
		}
	}
	return value
}

// typed converts a text to the type that the schema declares. If that fails, it returns the text, and the host
// reports the violation.
func typed(text, kind, item string) any {
	isAny := kind == "" || kind == "any"
	if accepts(kind, "string") && !isAny {
		return text
	}
	v, err := jsontext.Decode([]byte(text), jsontext.Limits{Bytes: host.MaxParams})
	_, isString := v.(string)
	switch {
	case kind == "array" && (err != nil || !strings.HasPrefix(strings.TrimSpace(text), "[")):
		return []any{typed(text, item, "")}
	case err != nil && json.Valid([]byte(text)) && strings.Trim(text, "+-.0123456789eE") == "":
		return json.Number(text) // the host reports its limit
	case err != nil, isString && !isAny:
		return text
	}
	return v
}
