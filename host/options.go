package host

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// ParseOptions parses call options in JSON, the same form in batches, in MCP and in calls between plugins. Empty input
// means no options. The error is invalid_args; for an unknown option it names the known ones.
func ParseOptions(raw json.RawMessage) (Options, error) {
	var o struct {
		Timeout    string `json:"timeout"`
		MaxBytes   int    `json:"max_bytes"`
		Browser    string `json:"browser"`
		Target     string `json:"target"`
		DryRun     bool   `json:"dry_run"`
		SendAnyway bool   `json:"send_anyway"`
		OnDialog   string `json:"on_dialog"`
	}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := checkOptions(raw); err != nil {
			return Options{}, err
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			return Options{}, Errorf(InvalidArgs, "options: %s", manifest.CleanLine(strings.TrimPrefix(err.Error(), "json: ")))
		}
	}
	options := Options{
		MaxBytes: o.MaxBytes, Browser: o.Browser, Target: o.Target, DryRun: o.DryRun, SendAnyway: o.SendAnyway,
		OnDialog: o.OnDialog,
	}
	if o.Timeout != "" {
		var err error
		if options.Timeout, err = time.ParseDuration(o.Timeout); err != nil {
			return Options{},
				Errorf(InvalidArgs, "options: timeout: %q is not a duration such as 10s", manifest.CleanLine(o.Timeout))
		}
	}
	return options, options.Check()
}

// DefaultBrowser is the name of the browser of calls that do not name one.
const DefaultBrowser = "default"

var optionNames = []string{"timeout", "max_bytes", "browser", "target", "dry_run", "send_anyway", "on_dialog"}

// checkOptions rejects what encoding/json accepts: a second value, duplicate keys, and keys in other case.
func checkOptions(raw json.RawMessage) error {
	value, err := jsontext.Decode(raw, jsontext.Limits{})
	if err != nil {
		return Errorf(InvalidArgs, "options: %s", manifest.CleanLine(err.Error()))
	}
	object, ok := value.(map[string]any)
	if !ok {
		return Errorf(InvalidArgs, "options must be an object, such as {\"timeout\":\"10s\"}")
	}
	for _, name := range sortedKeys(object) {
		if slices.Contains(optionNames, name) {
			continue
		}
		e := Errorf(InvalidArgs, "options: unknown option %s; expected %s", printable(name), strings.Join(optionNames, ", "))
		for _, n := range schema.Nearest(name, optionNames, 3) {
			e.DidYouMean = append(e.DidYouMean, NearName{n.Name, distance(name, n.Name)})
		}
		return e
	}
	return nil
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
	case "", "none", "process":
	default:
		return Errorf(InvalidArgs, "isolate: %q is not one of none, process", manifest.CleanLine(o.Isolate))
	}
	switch o.OnDialog {
	case "", "accept", "dismiss", "fail":
		return nil
	}
	return Errorf(InvalidArgs, "on_dialog: %q is not one of accept, dismiss, fail", manifest.CleanLine(o.OnDialog))
}
