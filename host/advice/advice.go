// Package advice validates the parameters of calls and says what comes next: what a call was meant to be, which calls
// come before it, and which steps a front end may offer. The names in an offered step exist, its parameters are valid,
// and it lifts no protection. Package host/call checks that it is not the call that was refused.
package advice

import (
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/step"
)

// lifting maps the options of the command line that lift a protection to the value that lifts it; "" means any value.
// They are for the operator to choose, so no offered step has one.
var lifting = map[string]string{
	"accept": "", "allow-host": "", "allow-undefined": "", "downgrade": "", "isolate": "none", "no-password": "",
	"no-token": "", "plain-http": "", "replace": "", "right": "", "send-anyway": "", "values": "", "yes": "",
}

// Lifts reports whether words of a command line have an option that lifts a protection.
func Lifts(words []string) bool {
	for i, word := range words {
		option, isOption := strings.CutPrefix(word, "--")
		if word == "--" {
			return false
		} else if !isOption {
			continue
		}
		name, value, given := strings.Cut(strings.TrimRight(option, ".,;:"), "=")
		if !given && i+1 < len(words) {
			value = words[i+1]
		}
		if by, lifts := lifting[name]; lifts && (by == "" || by == value) {
			return true
		}
	}
	return false
}

// Holds returns a step in the form in which it may be offered, and false if it may not be offered.
func Holds(n *Names, s step.Step) (step.Step, bool) {
	if s.Options.SendAnyway = false; s.Options.Isolate == "none" {
		s.Options.Isolate = ""
	}
	if s.ForOperator() {
		return s, !Lifts(s.Args)
	}
	if s.Tool == "" {
		return s, s.Op == step.OpList || s.Op == step.OpSearch
	}
	at, err := n.catalog.Find(s.Tool)
	if err != nil {
		return s, false
	}
	switch s.Op {
	case step.OpPlan:
		return s, at.Tool != nil
	case step.OpDescribe:
		return s, at.Tool != nil || at.Entry != nil
	case step.OpCall:
		return s, at.Tool != nil && (len(s.Choose) > 0 || CheckCall(n, host.Call{Name: s.Tool, Params: s.Params}) == nil)
	}
	return s, true
}
