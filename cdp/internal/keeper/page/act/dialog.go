package act

import (
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
)

type dialogParams struct {
	Action string `json:"action"`
	Text   string `json:"text"`
}

// answered is a dialog, and what its answer caused.
type answered struct {
	Effects
	Dialog page.ShownDialog `json:"dialog"`
}

// Step implements [page.Step].
func (a *answered) Step() (string, any) { return a.URL, a }

// answerDialog shows the dialog that blocks the page, and answers it.
func answerDialog(v *page.Visit, p dialogParams) (*answered, *api.Error) {
	if err := v.FindPage(); err != nil {
		return nil, err
	}
	open := v.Dialog()
	if open == nil {
		return nil, page.Exit("no_match", "no dialog is open", nil)
	}
	r := &answered{Dialog: page.ShownDialog{Type: open.Type, Message: open.Message}}
	if p.Action == "" {
		return r, nil
	}
	in := v.Ledger().In // the document of the last act, if the dialog belongs to it
	if in != "" && v.URL(in) != open.URL {
		in = ""
	}
	start := &begun{URL: v.URL(in), in: in, seq: lastSeq(v), verb: "dialog " + p.Action}
	answer := page.Object{"accept": p.Action == "accept"}
	if p.Text != "" {
		answer["promptText"] = p.Text
	}
	if err := v.Command("Page.handleJavaScriptDialog", answer, nil); err != nil {
		return nil, err
	}
	// The act that opened the dialog may be long ago. One call reports what the dialog held back and starts to observe
	// the document again, so that nothing happens in between.
	var now struct {
		Late  struct{ Changed bool }
		Value begun
	}
	if v.Script(in, &now, "also", "begin", nil, how{}) == nil && now.Value.URL == start.URL {
		start.Document, start.expected = now.Value.Document, now.Late.Changed
	}
	e, _, err := finish(v, start, nil)
	if err != nil {
		return nil, err
	}
	r.Effects = *e
	return r, nil
}
