package command

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// Completer completes words or an option of command lines.
type Completer func(a *App, cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

func (c Completer) of(a *App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return c(a, cmd, args, typed)
	}
}

// Completers of words.
var (
	CompleteSessions = FirstWord(sessionNames)
	CompleteResults  = FirstWord(resultIDs)

	CompleteApprovals = FirstWord(approvalIDs)
)

// CompleteNames completes first the name of a plugin, then the names of its groups and tools.
func CompleteNames(a *App, cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	catalog, err := a.Catalog()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	offer := func(name, brief string) { found = append(found, name+"\t"+manifest.CleanLine(brief)) }
	offerTools := func(p host.Provider, group string) {
		lines, _ := p.Lines(group)
		for _, l := range lines {
			offer(l.Name, l.Brief)
		}
	}
	switch len(args) {
	case 0:
		for _, p := range catalog.Providers() {
			offer(p.Info().Name, p.Info().Brief)
		}
	case 1:
		p, ok := catalog.Provider(args[0])
		if !ok { // a qualified name, such as text.hash
			return completeWord(a, cmd, args, typed)
		}
		groups, _ := p.Groups()
		for _, g := range groups {
			offer(g.Name, g.Brief)
			if group, _, dotted := strings.Cut(typed, "."); dotted && strings.EqualFold(group, g.Name) {
				offerTools(p, g.Name)
			}
		}
		offerTools(p, "")
	default:
		return completeWord(a, cmd, args, typed)
	}
	return StartingWith(typed, found), cobra.ShellCompDirectiveNoFileComp
}

// completeWord completes a word after a tool with the values of its parameter. If there are none, the word may be a
// file.
func completeWord(a *App, cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	t, words := completedTool(a, args)
	if t == nil || len(t.Positional) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	name := t.Positional[min(len(words), len(t.Positional)-1)]
	kind, _ := manifest.TypeAt(t.Params, name)
	for _, q := range manifest.Params(t.Params) {
		if q.Name != name || len(words) >= len(t.Positional) && kind != "array" {
			continue
		}
		if values := StartingWith(typed, valuesOf(q)); len(values) > 0 {
			return values, cobra.ShellCompDirectiveNoFileComp
		}
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// completeParam completes the value of --param: the name of a parameter and, after NAME=, its values.
func completeParam(a *App, cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	t, _ := completedTool(a, args)
	if t == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	name, _, valued := strings.Cut(typed, "=")
	for _, q := range manifest.Params(t.Params) {
		switch {
		case !valued:
			found = append(found, q.Name+"=\t"+q.Description)
		case q.Name == name:
			found = append(found, Map(valuesOf(q), func(v string) string { return name + "=" + v })...)
		}
	}
	found = StartingWith(typed, found)
	switch {
	case !valued:
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	case len(found) == 0:
		return nil, cobra.ShellCompDirectiveDefault
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completedTool returns the tool that the words before the completed one name, or nil, and the words after it.
func completedTool(a *App, args []string) (*manifest.Tool, []string) {
	catalog, err := a.Catalog()
	if err != nil || len(args) == 0 {
		return nil, nil
	}
	at, words, err := Find(catalog, args, false)
	if err != nil {
		return nil, nil
	}
	return at.Tool, words
}

// valuesOf returns the values of a parameter that is an enum or a boolean: strings as they are, others as JSON.
func valuesOf(q manifest.Param) (values []string) {
	if q.Type == "boolean" && q.Values() == nil {
		return []string{"true", "false"}
	}
	for _, raw := range q.Values() {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		values = append(values, manifest.CleanLine(text))
	}
	return values
}

// StartingWith returns the plain words that begin with what was typed. A tab separates a word from its description.
func StartingWith(typed string, values []string) (kept []string) {
	for _, v := range values {
		word, _, _ := strings.Cut(v, "\t")
		if isPlain(word) && strings.HasPrefix(strings.ToLower(word), strings.ToLower(typed)) {
			kept = append(kept, v)
		}
	}
	return kept
}

// targetsWait is how long completion waits for a browser.
const targetsWait = 500 * time.Millisecond

// FirstWord completes the first word of a command with a list of words. A tab separates a word from its description.
func FirstWord(list func(*App, *cobra.Command) []string) Completer {
	return func(a *App, cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return StartingWith(typed, list(a, cmd)), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// targets completes the targets of the open browser: each by its id, and by its URL if no other has the same. It
// starts no browser and reports no error. It is not a call: it asks no policy and records nothing.
func targets(a *App, cmd *cobra.Command) []string {
	s, err := a.Settings()
	principal, failed := a.Principal()
	if cmp.Or(err, failed) != nil {
		return nil
	}
	browser, _ := cmd.Flags().GetString("browser")
	ctx, cancel := context.WithTimeout(cmd.Context(), targetsWait)
	defer cancel()
	result, err := a.Parley().Chrome().Invoke(ctx, &host.Request{Job: job.Job{
		Tool: "targets", Params: json.RawMessage("{}"), Caller: principal.Name, Session: principal.Session,
		Options: job.Options{Place: step.Place{Browser: cmp.Or(browser, s.Browser)}},
	}})
	if err != nil {
		return nil
	}
	return TargetWords(result.Data)
}

// TargetWords returns the words that name the targets in a result of cdp.targets, each with a description. A URL is
// offered up to the first character that a shell would not take literally.
func TargetWords(raw json.RawMessage) (words []string) {
	var list struct {
		Targets []struct{ ID, URL, Title string }
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	for _, t := range list.Targets {
		url, title := manifest.CleanLine(t.URL), manifest.CleanLine(t.Title)
		words = append(words, t.ID+"\t"+strings.TrimSpace(title+"  "+Fit(url, 60)))
		part, matches := url, 0
		if end := strings.IndexFunc(url, func(r rune) bool { return !isPlain(string(r)) }); end >= 0 {
			part = url[:end]
		}
		for _, other := range list.Targets {
			if strings.Contains(other.URL, part) {
				matches++
			}
		}
		if matches == 1 && len(part) <= maxURLWord {
			words = append(words, part+"\t"+title)
		}
	}
	return words
}

// maxURLWord limits a URL that completion offers, in bytes.
const maxURLWord = 200

// isPlain reports whether a shell takes a word literally. Completion offers only such words: bash inserts the common
// prefix of several words unquoted and evaluates it at the next request, and pages and plugins choose their own words.
func isPlain(word string) bool { return word != "" && ShellQuote(word) == word }

// CompletePlugins completes the name of one plugin.
func CompletePlugins(a *App, cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return CompleteNames(a, cmd, nil, typed)
}

// CompleteCall completes the values of a call's options.
func CompleteCall(a *App, cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("param", Completer(completeParam).of(a))
	completeOption(a, cmd, "target", FirstWord(targets))
	completeOption(a, cmd, "on-dialog", OneOf("accept", "dismiss", "fail"))
	completeOption(a, cmd, "wait", OneOf("load", "idle", "none"))
}

// completeOption completes an option, after any words, with the completer of a first word.
func completeOption(a *App, cmd *cobra.Command, option string, first Completer) {
	_ = cmd.RegisterFlagCompletionFunc(option,
		func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return first(a, cmd, nil, typed)
		})
}

// OneOf completes one of a few fixed words.
func OneOf(words ...string) Completer {
	return func(*App, *cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteQualified completes plugin.tool in one word.
func CompleteQualified(a *App, cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	plugin, rest, dotted := strings.Cut(typed, ".")
	if len(args) > 0 {
		return completeWord(a, cmd, args, typed)
	}
	if !dotted {
		names, _ := CompleteNames(a, cmd, nil, typed)
		for i, n := range names {
			name, brief, _ := strings.Cut(n, "\t")
			names[i] = name + ".\t" + brief
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	names, directive := CompleteNames(a, cmd, []string{plugin}, rest)
	for i := range names {
		names[i] = plugin + "." + names[i]
	}
	return names, directive
}

// sessionNames returns the names of sessions. It waits only briefly for a browser.
func sessionNames(a *App, cmd *cobra.Command) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), targetsWait)
	defer cancel()
	named := slices.DeleteFunc(AllSessions(ctx, a), func(s *SessionData) bool { return !s.Named() })
	return Map(named, func(s *SessionData) string { return s.Name })
}

// resultIDs returns the ids of calls whose result is stored.
func resultIDs(a *App, _ *cobra.Command) []string {
	principal, err := a.Principal()
	if err != nil {
		return nil
	}
	return a.Parley().Sessions().ResultIDs(principal.Session)
}

// approvalIDs returns the ids of the open approvals.
func approvalIDs(a *App, _ *cobra.Command) []string {
	all, _ := parley.Approvals(a.Parley()).Store.List()
	open := slices.DeleteFunc(all, func(asked approval.Approval) bool { return asked.State != approval.Open })
	return Map(open, func(asked approval.Approval) string { return asked.ID })
}
