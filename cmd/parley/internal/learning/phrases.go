package learning

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/model"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/host/learn/suggest"
	"github.com/parley-tools/parley/host/overlay"
	"github.com/parley-tools/parley/manifest"
)

type docsPhrasesOptions struct {
	Name   string `word:""`
	Prompt bool   `flag:"prompt" usage:"print the text that asks for phrases"`
	Import string `flag:"import" usage:"apply the phrases in FILE; - is stdin"`
	modelEditOptions
}

var docsPhrasesCommand = &command.Command[*docsPhrasesOptions]{
	Use: "phrases [NAME]", Run: runDocsPhrases, Words: command.CompleteNames,
	Short: "Let a model phrase how people ask for tools",
	Long: "NAME is a plugin, a group or a tool. The configured model is asked (model.url), after a question at the " +
		"terminal. --prompt\nprints the text for any other model or agent, and --import applies what that returns. " +
		"Search finds a tool by these phrases,\ntoo, and gives them less weight than the author's words. Each passes the " +
		"gate of docs apply: it finds its tool among the\nfirst five, and no other tool loses a search by it.",
	Example: "parley docs phrases text --dry-run\nparley docs phrases text --prompt >prompt.txt\n" +
		"parley docs phrases --import answer.json",
}

func runDocsPhrases(ctx context.Context, app *command.App, opts *docsPhrasesOptions) error {
	if opts.Prompt && opts.Import != "" || (opts.Name == "") == (opts.Import == "") {
		return host.Errorf(host.InvalidArgs, "expected NAME, NAME with --prompt, or --import FILE").
			WithNext("parley docs phrases text --prompt", "parley docs phrases --import answer.json")
	}
	if opts.Prompt {
		at, tools, err := toolsBelow(app, opts.Name)
		if err != nil {
			return err
		}
		prompt := phrasesPrompt(at, tools)
		next := []string{"parley docs phrases --import FILE"}
		return app.Print(map[string]string{"prompt": prompt}, next, func(w io.Writer) { fmt.Fprint(w, prompt) })
	}
	if opts.Name != "" {
		return askPhrases(ctx, app, opts)
	}
	var raw []byte
	var err error
	if opts.Import == "-" {
		raw, err = io.ReadAll(io.LimitReader(app.Input(ctx), maxEdits))
	} else {
		raw, err = command.ReadValue(ctx, opts.Import, maxEdits)
	}
	file := &phrasesFile{}
	if err == nil {
		err = file.parsed(model.Object(string(raw), file))
	}
	if err != nil {
		return host.Errorf(host.InvalidArgs, "these are not phrases: %s; expected the JSON that the prompt asks for",
			manifest.CleanLine(err.Error()))
	}
	if err := file.find(app, "the phrases are"); err != nil {
		return err
	}
	data, err := importPhrases(ctx, app, file, opts)
	if err != nil {
		return err
	}
	return app.Print(data, []string{"parley docs list"}, func(w io.Writer) { applyText(app, w, data) })
}

// phrasesFile is the answer of a model: for each tool of one build of a plugin, phrases with which people might ask
// for it.
type phrasesFile struct {
	build
	Phrases map[string][]string `json:"phrases"` // by local name of the tool
}

// A tool has at most maxPhrases phrases, of at most maxPhrase bytes each. A prompt asks for fewPhrases to maxPhrases.
const (
	fewPhrases = 4
	maxPhrases = 7
	maxPhrase  = 120
)

const phrasesTask = `For each tool below, write %d to %d phrases in which somebody would search for it who wants
what it does and does not know that it exists. Use other words than its name and its tasks. Let the phrases differ: the
goal behind it, a question, a vague wish, terms of another program. Each has 3 to 12 words, in English, and fits no other tool of
the list better. Return nothing but JSON of this form, with the name of each tool as it stands here:
{"plugin":%q,"manifest":%q,"phrases":{%q:["..",".."]}}
`

// toolsBelow returns the tools of a plugin or a group, or one tool, as their author documents them.
func toolsBelow(app *command.App, name string) (host.Address, []*manifest.Tool, error) {
	at, err := app.Find(name)
	if err != nil {
		return at, nil, err
	}
	names, err := at.Provider.Names()
	if err != nil {
		return at, nil, err
	}
	var tools []*manifest.Tool
	for _, local := range names {
		if !stats.InScope(at.Plugin+"."+local, at.Name()) {
			continue
		}
		t, err := host.Base(at.Provider).Tool(local)
		if err != nil || t == nil {
			return at, nil, errors.Join(err, fmt.Errorf("%s.%s cannot be read", at.Plugin, local))
		}
		tools = append(tools, t)
	}
	if len(tools) == 0 {
		return at, nil, host.Errorf(host.NotFound, "%s has no tools", at.Name()).WithNext("parley --list")
	}
	return at, tools, nil
}

// phrasesPrompt returns the text that asks for phrases of some tools of a plugin.
func phrasesPrompt(at host.Address, of []*manifest.Tool) string {
	var tools bytes.Buffer
	for _, t := range of {
		fmt.Fprintf(&tools, "\n%s: %s\n", t.Name, strings.TrimSpace(t.Docs.Brief+". "+t.Docs.Standard))
		params := command.Map(manifest.Params(t.Params), func(p manifest.Param) string { return p.Name })
		for i, list := range [][]string{params, t.Tasks} {
			command.PrintIf(&tools, len(list) > 0, "  %s: %s\n", []string{"parameters", "tasks"}[i], strings.Join(list, ", "))
		}
	}
	return fmt.Sprintf(phrasesTask, fewPhrases, maxPhrases, at.Plugin, at.Provider.Info().Build(), of[0].Name) +
		manifest.Clean(tools.String())
}

const (
	phrasesBatch  = 20   // tools per question
	phrasesAnswer = 4000 // maximum tokens of its answer
)

// askPhrases asks the configured model for phrases, applies those that pass the gate, and prints the outcome.
func askPhrases(ctx context.Context, app *command.App, opts *docsPhrasesOptions) error {
	at, tools, err := toolsBelow(app, opts.Name)
	if err != nil {
		return err
	}
	batches := slices.Collect(slices.Chunk(tools, phrasesBatch))
	questions := command.Map(batches, func(batch []*manifest.Tool) model.Question {
		return model.Question{Kind: "phrases", Text: phrasesPrompt(at, batch), Limit: phrasesAnswer,
			System: "You write search queries that people would type. You return JSON alone."}
	})
	plan := modelPlan{what: "phrases for " + manifest.Plural(len(tools), "tool") + " of " + at.Plugin,
		sends: "the documentation of these tools"}
	data := struct {
		*applyData
		Questions int      `json:"questions"`
		Malformed int      `json:"malformed"` // answers without phrases for the tools of their question
		Model     modelRun `json:"model"`
	}{Questions: len(questions)}
	all := &phrasesFile{build{at.Plugin, at.Provider.Info().Build()}, map[string][]string{}}
	data.Model, err = ask(ctx, app, opts.modelOptions, plan, questions,
		func(int) string { return "phrases of " + at.Plugin },
		func(i int, answer string) {
			file := &phrasesFile{}
			if model.Object(answer, file) != nil || len(file.Phrases) == 0 {
				data.Malformed++
				return
			}
			for _, t := range batches[i] {
				all.Phrases[t.Name] = file.Phrases[t.Name]
			}
		})
	if err == nil {
		data.applyData, err = importPhrases(ctx, app, all, opts)
	}
	if err != nil {
		return err
	}
	return app.Print(data, []string{"parley docs list"}, func(w io.Writer) {
		applyText(app, w, data.applyData)
		malformedText(w, data.Malformed, data.Questions)
		modelText(w, &data.Model)
	})
}

// importPhrases applies the phrases that pass the gate. A tool has at most seven, earlier ones included.
func importPhrases(ctx context.Context, app *command.App, file *phrasesFile, o *docsPhrasesOptions) (*applyData,
	error) {
	present, err := docsList(app, file.Plugin)
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, of := range present.Overlays {
		for _, e := range of.Edits {
			if e.Field == overlay.Phrase {
				count[strings.ToLower(e.Tool)]++
			}
		}
	}
	var proposals []suggest.Proposal
	var refused []suggest.Refusal
	refuse := func(e overlay.Edit, format string, args ...any) {
		refused = append(refused, suggest.Refusal{Edit: e, Why: fmt.Sprintf(format, args...)})
	}
	for _, tool := range slices.Sorted(maps.Keys(file.Phrases)) {
		for _, phrase := range file.Phrases[tool] {
			words := strings.Fields(phrase)
			e := overlay.Edit{Tool: tool, Field: overlay.Phrase, Value: strings.Join(words, " "), Origin: "phrases"}
			switch {
			case present.has(file.Plugin, e.ID()):
			case len(words) < 2 || len(e.Value) > maxPhrase:
				refuse(e, "a phrase has two words or more, and at most %d bytes", maxPhrase)
			case count[strings.ToLower(tool)] >= maxPhrases:
				refuse(e, "%s has %d phrases already", manifest.CleanLine(tool), maxPhrases)
			default:
				count[strings.ToLower(tool)]++
				proposals = append(proposals, suggest.Proposal{Edit: e})
			}
		}
	}
	data, err := applyEdits(ctx, app, proposed{{file.Plugin, proposals}},
		editOptions{DryRun: o.DryRun, Approval: o.Approval})
	if err != nil {
		return nil, err
	}
	data.Refused = append(refused, data.Refused...)
	return data, nil
}
