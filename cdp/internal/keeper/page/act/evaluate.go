package act

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/internal/lazy"
)

type evaluateParams struct {
	Expression string `json:"expression"`
	Element    string `json:"element"`
}

// evaluate runs JavaScript in the page.
func evaluate(v *page.Visit, p evaluateParams) (page.Answer, *api.Error) {
	r := page.Answer{Value: json.RawMessage("null")}
	expression, in := p.Expression, page.Frame("")
	if p.Element != "" { // which the call is about
		f, e, err := v.Focus(p.Element)
		if err != nil {
			return r, err
		}
		if e.CSS == "" {
			return r, page.Exit("not_ready", p.Element+" is in a shadow root, where no selector finds it", nil)
		}
		expression = "(" + p.Expression + ")(document.querySelector(" + string(scan.Quote(e.CSS)) + "))"
		in = f
	}
	statements, call := false, ""
	var err *api.Error
	switch {
	case p.Element != "":
	case functionText().MatchString(expression):
		// A program that only begins with a function is left as it is.
		call, err = callOf(v, "(", expression, "\n)")
	case strings.Contains(expression, "await"):
		// An expression is wrapped so that its value is a promise. Statements are left as they are: they run as in a
		// console, which awaits what they await, but does not await a promise that is their result.
		call, err = callOf(v, "(async () => (\n", expression, "\n))")
		statements = call == ""
	}
	if err != nil {
		return r, err
	}
	v.AskLate()
	l := v.Ledger() // effects of the program are reported by the next answer only
	l.Begin("evaluate", l.In, l.Seq)
	stop := page.StayUntil(v, time.Now().Add(v.Patience()))
	found, err := v.EvaluateIn(in, page.Object{"expression": cmp.Or(call, expression), "awaitPromise": true,
		"returnByValue": true,
		"userGesture":   true, "replMode": statements})
	stop()
	warning, _ := api.Uncalled(cmp.Or(call, expression), found.Type)
	if how := api.Call(expression, "(EXPRESSION)"); call != "" && how != "(EXPRESSION)()" {
		warning = "the result is a generator; write " + how
	}
	if warning != "" && err == nil {
		v.Warn("%s", warning)
	}
	switch {
	case page.Interrupted(err):
		return r, api.Errorf(api.CodeBusy, "the page went to another document while it ran, so its value is lost")
	case err != nil:
		return r, err
	case found.Type == "function": // a function has no value
	case len(found.Value) > 0:
		r.Value = found.Value
	case found.Unusable != "":
		r.Value = scan.Quote(found.Unusable)
	}
	return r, nil
}

// functionText matches how the text of a function begins, after comments. Callers that know other tools pass a
// function.
var functionText = lazy.Pattern(`^(\s|//[^\n]*\n|/\*(?s:.*?)\*/)*(async\b\s*)?` +
	`(function\b|(\(([^()]|\([^()]*\))*\)|[\w$]+)\s*=>)`)

// callOf turns a program into a function and returns a call of it, or "" if Chrome cannot compile that.
func callOf(v *page.Visit, before, program, after string) (string, *api.Error) {
	function := before + strings.TrimRight(program, "; \t\r\n") + after
	var done struct{ ExceptionDetails json.RawMessage }
	err := v.Command("Runtime.compileScript", page.Object{"expression": function, "sourceURL": "", "persistScript": false},
		&done)
	if err != nil || done.ExceptionDetails != nil {
		return "", err
	}
	return function + "()", nil
}
