// Package option reads the options of a call from JSON, and checks them.
package option

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Named returns the option of a call that a name means, such as timeout for "timeoutMs"; "" if it means none.
func Named(name string) string {
	switch strings.ToLower(strings.ReplaceAll(name, "_", "")) {
	case "timeout", "timeoutseconds", "timeoutsecs", "timeoutms":
		return "timeout"
	case "dryrun":
		return "dry_run"
	case "maxbytes":
		return "max_bytes"
	case "ondialog":
		return "on_dialog"
	case "browser", "target", "context", "jq", "wait":
		return strings.ToLower(name)
	}
	return ""
}

// Local are options of a call that only the user of this machine gives: at the command line and in batches.
type Local struct {
	Session string // name of the session of the call; "" leaves it to the front end
	Out     string // file that the result goes to; "" means none
	// Until is the EVENT that a call waits for after it has succeeded, or EVENT:JQ for one whose params meet a condition.
	// "" means none.
	Until string
}

// Parse parses call options in JSON, the same form in MCP and in calls between plugins. Empty input means no
// options. The error is invalid_args; for an unknown option it names the known ones.
func Parse(raw json.RawMessage) (job.Options, error) {
	options, _, err := parse(raw, false)
	return options, err
}

// ParseLocal is [Parse] for a front end whose caller may also give [Local].
func ParseLocal(raw json.RawMessage) (job.Options, Local, error) {
	return parse(raw, true)
}

func parse(raw json.RawMessage, isLocal bool) (job.Options, Local, error) {
	var o struct {
		step.Place
		Timeout    string `json:"timeout"`
		MaxBytes   *int   `json:"max_bytes"`
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
		if err := checkAll(raw, isLocal); err != nil {
			return job.Options{}, Local{}, err
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			return job.Options{}, Local{}, host.Errorf(host.InvalidArgs, "options: %s", manifest.CleanLine(err.Error()))
		}
	}
	options := job.Options{
		Place: o.Place, DryRun: o.DryRun, SendAnyway: o.SendAnyway, OnDialog: o.OnDialog, JQ: o.JQ, Wait: o.Wait,
	}
	if o.MaxBytes != nil {
		options.MaxBytes, options.Unlimited = *o.MaxBytes, *o.MaxBytes == 0
	}
	if o.Timeout != "" {
		var err error
		if options.Timeout, err = time.ParseDuration(o.Timeout); err != nil {
			return job.Options{}, Local{},
				host.Errorf(host.InvalidArgs, "options: timeout: %q is not a duration such as 10s", manifest.CleanValue(o.Timeout))
		}
	}
	return options, Local{Session: o.Session, Out: o.Out, Until: o.Until}, Check(options)
}

var names = []string{
	"timeout", "max_bytes", "browser", "target", "dry_run", "send_anyway", "on_dialog", "jq", "wait", "context",
}

// localNames are the names of [Local].
var localNames = []string{"session", "out", "until"}

// elsewhere says why a client or a plugin cannot give each of these options.
var elsewhere = map[string]string{
	"session": "session is an option of the command line and of batch only; here a call belongs to the session of the " +
		"client or of the plugin: leave it out",
	"until": "until is an option of batch only; here the option wait lets a call end when its page is there: leave it out",
	"out": "unknown option out; only the command line and batch write a result to a file: leave it out, and the answer " +
		"has the result",
	"isolate": "isolate is an option of the command line only; here the policy says where a call runs: leave it out",
}

// IsElsewhere reports whether only other callers can give an option.
func IsElsewhere(name string) bool { return elsewhere[name] != "" }

// checkAll rejects what encoding/json accepts: a second value, duplicate keys, and keys in other case.
func checkAll(raw json.RawMessage, isLocal bool) error {
	value, err := jsontext.Decode(raw, jsontext.Limits{})
	if err != nil {
		return host.Errorf(host.InvalidArgs, "options: %s", manifest.CleanLine(err.Error()))
	}
	object, ok := value.(map[string]any)
	if !ok {
		return host.Errorf(host.InvalidArgs, "options must be an object, such as {\"timeout\":\"10s\"}")
	}
	known := names
	if isLocal {
		known = slices.Concat(names, localNames)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if slices.Contains(known, name) {
			if err := checkOne(name, object[name]); err != nil {
				return err
			}
			continue
		}
		if why := elsewhere[name]; why != "" {
			return host.Errorf(host.InvalidArgs, "options: %s", why)
		}
		e := host.Errorf(host.InvalidArgs, "options: unknown option %s; expected %s", host.Printable(name),
			strings.Join(known, ", "))
		for _, n := range spelling.Nearest(name, known, 3) {
			e.DidYouMean = append(e.DidYouMean, spelling.Near{Name: n.Name, Distance: distance(name, n.Name)})
		}
		return e
	}
	return nil
}

// checkOne rejects a value of another type than the option has. Null means that the option is absent.
func checkOne(name string, value any) error {
	expected, valid := "a text", value == nil
	text, isText := value.(string)
	switch name {
	case "timeout":
		expected, valid = `a duration such as "10s"`, valid || isText
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
		if isText {
			return session.CheckName(text)
		}
		expected = "the name of a session"
	case "out":
		expected, valid = "the name of a file", valid || isText && text != "" && text != "-"
	default:
		valid = valid || isText
	}
	if valid {
		return nil
	}
	return host.Errorf(host.InvalidArgs, "options: %s: expected %s, got %s", name, expected,
		manifest.CleanLine(jsontext.Shorten(string(jsontext.Marshal(value)))))
}

// Schema is the schema by which call options are corrected. A duration must have a unit.
var Schema = sync.OnceValue(func() *schema.Schema {
	s, err := schema.CompileTrusted([]byte(`{"type":"object","additionalProperties":false,"properties":{` +
		`"timeout":{"type":"string","pattern":"^([0-9.]+(ns|us|ms|s|m|h))+$","description":"such as 10s"},` +
		`"max_bytes":{"type":"integer","minimum":0},"browser":{"type":"string"},"target":{"type":"string"},` +
		`"context":{"type":"string"},` +
		`"dry_run":{"type":"boolean"},"send_anyway":{"type":"boolean"},` +
		`"on_dialog":{"type":"string","enum":["accept","dismiss","fail"]},"jq":{"type":"string","minLength":1},` +
		`"wait":{"type":"string","enum":["load","idle","none"]}}}`))
	if err != nil {
		panic("host: the schema of options: " + err.Error())
	}
	return s
})

// Is reports whether a name is an option of a call, or means one as in [Named].
func Is(name string) bool {
	return slices.Contains(names, name) || Named(name) != ""
}

// IsLocal reports whether a call option, or one of [Local], has this name.
func IsLocal(name string) bool {
	return slices.Contains(names, name) || slices.Contains(localNames, name)
}

// IsPromptText reports whether a value of on_dialog accepts dialogs and fills prompts with a text.
func IsPromptText(onDialog any) bool {
	text, _ := onDialog.(string)
	return strings.HasPrefix(text, "accept=")
}

// Check returns an invalid_args error if an option has an invalid value.
func Check(o job.Options) error {
	switch {
	case o.Timeout < 0:
		return host.Errorf(host.InvalidArgs, "timeout: %s is negative", o.Timeout)
	case o.MaxBytes < 0:
		return host.Errorf(host.InvalidArgs, "max_bytes: %d is negative", o.MaxBytes)
	}
	if err := session.CheckName(o.Context); o.Context != "" && err != nil {
		return host.Errorf(host.InvalidArgs, "context: %s", err)
	}
	switch o.Isolate {
	case "", "none", "process", "call":
	default:
		return host.Errorf(host.InvalidArgs, "isolate: %q is not one of none, process, call", manifest.CleanValue(o.Isolate))
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
func unknownWord(option, given, expected string, words []string) *host.Error {
	e := host.Errorf(host.InvalidArgs, "%s: %q is not one of %s", option, manifest.CleanValue(given), expected)
	e.DidYouMean = spelling.Nearest(given, words, 3)
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
