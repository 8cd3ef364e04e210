package host

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/parley-tools/parley/manifest"
)

// ParseOptions reads call options in their JSON form, the same in a batch, in MCP's call_tool and in a plugin's.
// The error is invalid_args and names the known ones.
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
	if len(raw) > 0 {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&o); err != nil {
			return Options{}, Errorf(InvalidArgs, "options: %s; known are timeout, max_bytes, browser, target, dry_run, send_anyway, on_dialog",
				manifest.CleanLine(strings.TrimPrefix(err.Error(), "json: ")))
		}
	}
	options := Options{
		MaxBytes: o.MaxBytes, Browser: o.Browser, Target: o.Target, DryRun: o.DryRun, SendAnyway: o.SendAnyway, OnDialog: o.OnDialog,
	}
	if o.Timeout != "" {
		var err error
		if options.Timeout, err = time.ParseDuration(o.Timeout); err != nil {
			return Options{}, Errorf(InvalidArgs, "options: timeout: %q is not a duration such as 10s", manifest.CleanLine(o.Timeout))
		}
	}
	return options, options.Check()
}

// Check refuses options that mean nothing.
func (o Options) Check() error {
	switch {
	case o.Timeout < 0:
		return Errorf(InvalidArgs, "timeout: %s is negative", o.Timeout)
	case o.MaxBytes < 0:
		return Errorf(InvalidArgs, "max_bytes: %d is negative", o.MaxBytes)
	}
	switch o.OnDialog {
	case "", "accept", "dismiss", "fail":
		return nil
	}
	return Errorf(InvalidArgs, "on_dialog: %q is not one of accept, dismiss, fail", manifest.CleanLine(o.OnDialog))
}
