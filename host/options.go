package host

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// OptionNamed returns the option of a call that a name means, such as timeout for "timeoutMs"; "" if it means none.
func OptionNamed(name string) string {
	switch strings.ToLower(strings.ReplaceAll(name, "_", "")) {
	case "timeout", "timeoutseconds", "timeoutsecs", "timeoutms":
		return "timeout"
	case "dryrun":
		return "dry_run"
	case "browser", "target":
		return strings.ToLower(name)
	}
	return ""
}

// LocalOptions are options of a call that only the user of this machine gives: at the command line and in batches.
type LocalOptions struct {
	Session string // name of the session of the call; "" leaves it to the front end
	Out     string // file that the result goes to; "" means none
	// Until is the EVENT that a call waits for after it has succeeded, or EVENT:JQ for one whose params meet a condition.
	// "" means none.
	Until string
}

// ParseOptions parses call options in JSON, the same form in MCP and in calls between plugins. Empty input means no
// options. The error is invalid_args; for an unknown option it names the known ones.
func ParseOptions(raw json.RawMessage) (Options, error) {
	options, _, err := parseOptions(raw, false)
	return options, err
}

// ParseLocalOptions is [ParseOptions] for a front end whose caller may also give [LocalOptions].
func ParseLocalOptions(raw json.RawMessage) (Options, LocalOptions, error) {
	return parseOptions(raw, true)
}

func parseOptions(raw json.RawMessage, isLocal bool) (Options, LocalOptions, error) {
	var o struct {
		Timeout    string `json:"timeout"`
		MaxBytes   *int   `json:"max_bytes"`
		Browser    string `json:"browser"`
		Target     string `json:"target"`
		DryRun     bool   `json:"dry_run"`
		SendAnyway bool   `json:"send_anyway"`
		OnDialog   string `json:"on_dialog"`
		JQ         string `json:"jq"`
		Wait       string `json:"wait"`
		Session    string `json:"session"`
		Out        string `json:"out"`
		Until      string `json:"until"`
	}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := checkOptions(raw, isLocal); err != nil {
			return Options{}, LocalOptions{}, err
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			return Options{}, LocalOptions{}, Errorf(InvalidArgs, "options: %s", manifest.CleanLine(err.Error()))
		}
	}
	options := Options{
		Browser: o.Browser, Target: o.Target, DryRun: o.DryRun, SendAnyway: o.SendAnyway,
		OnDialog: o.OnDialog, JQ: o.JQ, Wait: o.Wait,
	}
	if o.MaxBytes != nil {
		options.MaxBytes, options.Unlimited = *o.MaxBytes, *o.MaxBytes == 0
	}
	if o.Timeout != "" {
		var err error
		if options.Timeout, err = time.ParseDuration(o.Timeout); err != nil {
			return Options{}, LocalOptions{},
				Errorf(InvalidArgs, "options: timeout: %q is not a duration such as 10s", manifest.CleanLine(o.Timeout))
		}
	}
	return options, LocalOptions{Session: o.Session, Out: o.Out, Until: o.Until}, options.Check()
}

// DefaultBrowser is the name of the browser of calls that do not name one.
const DefaultBrowser = "default"

var optionNames = []string{
	"timeout", "max_bytes", "browser", "target", "dry_run", "send_anyway", "on_dialog", "jq", "wait",
}

// localOptionNames are the names of [LocalOptions].
var localOptionNames = []string{"session", "out", "until"}

// checkOptions rejects what encoding/json accepts: a second value, duplicate keys, and keys in other case.
func checkOptions(raw json.RawMessage, isLocal bool) error {
	value, err := jsontext.Decode(raw, jsontext.Limits{})
	if err != nil {
		return Errorf(InvalidArgs, "options: %s", manifest.CleanLine(err.Error()))
	}
	object, ok := value.(map[string]any)
	if !ok {
		return Errorf(InvalidArgs, "options must be an object, such as {\"timeout\":\"10s\"}")
	}
	known := optionNames
	if isLocal {
		known = slices.Concat(optionNames, localOptionNames)
	}
	for _, name := range SortedKeys(object) {
		if slices.Contains(known, name) {
			if err := checkOption(name, object[name]); err != nil {
				return err
			}
			continue
		}
		if name == "session" {
			return Errorf(InvalidArgs, "options: session is an option of the command line and of batch only; "+
				"here a call belongs to the session of the client or of the plugin: leave it out")
		}
		if name == "until" {
			return Errorf(InvalidArgs, "options: until is an option of batch only; here the option wait lets a call end when "+
				"its page is there: leave it out")
		}
		if name == "out" {
			return Errorf(InvalidArgs, "options: unknown option out; only the command line and batch write a result to a "+
				"file: leave it out, and the answer has the result")
		}
		e := Errorf(InvalidArgs, "options: unknown option %s; expected %s", Printable(name), strings.Join(known, ", "))
		for _, n := range spelling.Nearest(name, known, 3) {
			e.DidYouMean = append(e.DidYouMean, NearName{Name: n.Name, Distance: distance(name, n.Name)})
		}
		return e
	}
	return nil
}

// checkOption rejects a value of another type than the option has. Null means that the option is absent.
func checkOption(name string, value any) error {
	var expected string
	valid := value == nil
	switch name {
	case "timeout":
		expected = `a duration such as "10s"`
		_, isText := value.(string)
		valid = valid || isText
	case "max_bytes":
		expected = "a whole number of bytes"
		number, isNumber := value.(json.Number)
		_, err := strconv.Atoi(number.String())
		valid = valid || isNumber && err == nil
	case "dry_run", "send_anyway":
		expected = "true or false"
		_, isBool := value.(bool)
		valid = valid || isBool
	case "session":
		text, isText := value.(string)
		if isText {
			return CheckSessionName(text)
		}
		expected = "the name of a session"
	case "out":
		expected = "the name of a file"
		text, isText := value.(string)
		valid = valid || isText && text != "" && text != "-"
	default:
		expected = "a text"
		_, isText := value.(string)
		valid = valid || isText
	}
	if valid {
		return nil
	}
	return Errorf(InvalidArgs, "options: %s: expected %s, got %s", name, expected,
		manifest.CleanLine(jsontext.Shorten(string(jsontext.Marshal(value)))))
}

// OptionsSchema is what call options are corrected by. A duration has a unit.
var OptionsSchema = sync.OnceValue(func() *schema.Schema {
	s, err := schema.CompileTrusted([]byte(`{"type":"object","additionalProperties":false,"properties":{` +
		`"timeout":{"type":"string","pattern":"^([0-9.]+(ns|us|ms|s|m|h))+$","description":"such as 10s"},` +
		`"max_bytes":{"type":"integer","minimum":0},"browser":{"type":"string"},"target":{"type":"string"},` +
		`"dry_run":{"type":"boolean"},"send_anyway":{"type":"boolean"},` +
		`"on_dialog":{"type":"string","enum":["accept","dismiss","fail"]},"jq":{"type":"string","minLength":1},` +
		`"wait":{"type":"string","enum":["load","idle","none"]}}}`))
	if err != nil {
		panic("host: the schema of options: " + err.Error())
	}
	return s
})

// IsOption reports whether a name is an option of a call, or means one as in [OptionNamed].
func IsOption(name string) bool {
	return slices.Contains(optionNames, name) || OptionNamed(name) != ""
}

// IsLocalOption reports whether a call option, or one of [LocalOptions], has this name.
func IsLocalOption(name string) bool {
	return slices.Contains(optionNames, name) || slices.Contains(localOptionNames, name)
}

// IsPromptText reports whether a value of on_dialog accepts dialogs and fills prompts with a text.
func IsPromptText(onDialog any) bool {
	text, _ := onDialog.(string)
	return strings.HasPrefix(text, "accept=")
}

// Check returns an invalid_args error if an option has an invalid value.
func (o Options) Check() error {
	switch {
	case o.Timeout < 0:
		return Errorf(InvalidArgs, "timeout: %s is negative", o.Timeout)
	case o.MaxBytes < 0:
		return Errorf(InvalidArgs, "max_bytes: %d is negative", o.MaxBytes)
	}
	switch o.Isolate {
	case "", "none", "process", "call":
	default:
		return Errorf(InvalidArgs, "isolate: %q is not one of none, process, call", manifest.CleanLine(o.Isolate))
	}
	if waits := []string{"load", "idle", "none"}; o.Wait != "" && !slices.Contains(waits, o.Wait) {
		return unknownWord("wait", o.Wait, strings.Join(waits, ", "), waits)
	}
	if dialogs := []string{"accept", "dismiss", "fail"}; o.OnDialog != "" && !slices.Contains(dialogs, o.OnDialog) &&
		!IsPromptText(o.OnDialog) {
		return unknownWord("on_dialog", o.OnDialog, "accept, accept=TEXT, dismiss, fail", dialogs)
	}
	return nil
}

// unknownWord returns the error of an option that takes one of a few words.
func unknownWord(option, given, expected string, words []string) *Error {
	e := Errorf(InvalidArgs, "%s: %q is not one of %s", option, manifest.CleanLine(given), expected)
	e.DidYouMean = spelling.Nearest(given, words, maxNear)
	return e
}

// distance is [spelling.Distance], which ignores case, except that it is never 0 for different words.
func distance(given, name string) int {
	d := spelling.Distance(given, name)
	if d > 0 || given == name {
		return d
	}
	a, b := []rune(given), []rune(name)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			d++
		}
	}
	return max(d, 1)
}
