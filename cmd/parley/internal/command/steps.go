package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Command renders a step as a command for a POSIX shell. Placeholders for values that the caller must choose are in
// capitals.
func (a *App) Command(s step.Step) string {
	if s.Options.Session == "" {
		s = s.In(a.SessionName)
	}
	plugin, local, _ := strings.Cut(s.Tool, ".")
	words := lineWords{"parley"}
	if s.Op == step.OpPlan {
		words, plugin, local = append(words, "plan", s.Tool), "", ""
	}
	isReserved := manifest.Reserved(plugin) && !manifest.Builtin(plugin) // the plugin had its name before it was reserved
	switch {
	case isReserved && s.Op == step.OpList:
		words = append(words, "list", QuoteWord(plugin))
	case isReserved && (s.Op == step.OpCall || s.Op == step.OpDescribe):
		words = append(words, "call")
		local = s.Tool
	case plugin != "":
		words = append(words, QuoteWord(plugin))
	}
	words.add(local != "", QuoteWord(local))
	switch s.Op {
	case step.OpCall:
		words = append(words, paramWords(a, s)...)
	case step.OpPlan:
		words = append(words, paramWords(a, s)...)
		words.add(len(s.Args) > 0, append([]string{"--example"}, s.Args...)...)
		words.add(!s.Options.DryRun, "--run")
		s.Options.DryRun = false
	case step.OpDescribe:
		words = append(words, "--describe")
		words.add(s.Options.Tier > 0, "--tier", fmt.Sprint(s.Options.Tier))
	case step.OpList:
		words.add(!isReserved, "--list")
	case step.OpListen:
		words = append(words, "--listen", QuoteWord(s.Query))
	case step.OpSearch:
		words = append(words, Either(s.Tool == "", "search", "--search"), QuoteWord(s.Query))
	case step.OpSystem:
		if len(s.Args) == 1 { // a whole command line
			return manifest.CleanLine(s.Args[0])
		}
		return strings.Join(Map(s.Args, QuoteWord), " ")
	case step.OpHelp:
		return "parley " + Either(len(s.Args) == 0, "--help", "help "+strings.Join(s.Args, " "))
	default:
		words = append(append(words, string(s.Op)), Map(s.Args, QuoteWord)...)
	}
	words.addOptions(s.Options)
	for _, file := range a.Plugins {
		words.add(plugin != "" && !s.ForOperator(), "--load", ShellQuote(file))
	}
	live := s.Options.Live || a.Live && plugin == cdp.Name && strings.Contains(local, ".")
	words.add(live && (s.Op == step.OpCall || s.Op == step.OpDescribe || s.Op == step.OpList), "--live")
	return strings.Join(words, " ")
}

// lineWords are the words of a command line.
type lineWords []string

// add adds words if a condition applies.
func (w *lineWords) add(applies bool, words ...string) {
	if applies {
		*w = append(*w, words...)
	}
}

// paramWords returns the words for the parameters of a call, and placeholders for those that the caller must choose.
// It writes leading positional parameters as plain words, as far as words can express their values.
func paramWords(a *App, s step.Step) (words []string) {
	if string(manifest.CompactJSON(s.Params)) == `{"all":true}` {
		return []string{"--all"}
	}
	if file := fileOf(a, s.Params); file != "" {
		return []string{"--params", ShellQuote(file)}
	}
	params, choose := s.Params, slices.Clone(s.Choose)
	var files []string
	var values map[string]json.RawMessage
	if len(params) == 0 || json.Unmarshal(params, &values) == nil {
		all := len(values)
		files = fileWords(a, values)
		if tool := toolOf(a, s.Tool); s.Op == step.OpCall && tool != nil { // in plan, words belong to the name of the tool
			words, choose = positionalWords(tool, values, choose)
		}
		if len(values) < all {
			params = jsontext.Marshal(values)
		}
	}
	switch rest := string(manifest.EscapeJSON(manifest.CompactJSON(params))); rest {
	case "", "{}", "null":
	default:
		words = append(words, "--params", ShellQuote(rest))
	}
	words = append(words, files...)
	for _, name := range choose {
		words = append(words, "--param", manifest.CleanLine(name)+"="+placeholderOf(name))
	}
	return words
}

// fileWords removes the parameters that the caller gave as @FILE from the values, and returns the words for them.
func fileWords(a *App, values map[string]json.RawMessage) (words []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if file := fileOf(a, values[name]); file != "" {
			words = append(words, "--param", ShellQuote(name+"="+file))
			delete(values, name)
		}
	}
	return words
}

// positionalWords removes leading positional parameters from the values and from those to choose. It stops at one
// that is in neither, or whose value no word can express. It returns the words for them, and the names that are left
// to choose.
func positionalWords(tool *manifest.Tool, values map[string]json.RawMessage, choose []string) (words, left []string) {
	for _, name := range tool.Positional {
		value, given := values[name]
		i := slices.Index(choose, name)
		if !given && i >= 0 {
			words, choose = append(words, placeholderOf(name)), slices.Delete(choose, i, i+1)
			continue
		}
		word, ok := wordOf(tool, name, value)
		if !given || !ok {
			break
		}
		words = append(words, word)
		delete(values, name)
	}
	return words, choose
}

// wordOf returns the word that gives a positional parameter the value of a text or a number.
func wordOf(tool *manifest.Tool, name string, value json.RawMessage) (word string, ok bool) {
	switch kind, _ := manifest.TypeAt(tool.Params, name); kind {
	case "integer", "number":
		word = string(value)
	case "string":
		if json.Unmarshal(value, &word) != nil || manifest.CleanLine(word) != word {
			return "", false
		}
	default:
		return "", false
	}
	isOption := strings.HasPrefix(word, "-")
	return ShellQuote(word), word != "" && word != "null" && !isOption
}

// placeholderOf returns the placeholder for a parameter that the caller must choose.
func placeholderOf(name string) string { return strings.ToUpper(manifest.CleanLine(name)) }

// addOptions adds the words for options that are not zero.
func (w *lineWords) addOptions(o step.Options) {
	text := func(name, value string) { w.add(value != "", name, QuoteWord(value)) }
	text("--kind", o.Kind)
	w.add(o.Limit > 0, "--limit", fmt.Sprint(o.Limit))
	text("--session", o.Session)
	text("--browser", o.Browser)
	text("--target", o.Target)
	text("--context", o.Context)
	text("--until", o.Until)
	text("--trigger", o.Trigger)
	w.add(o.Timeout > 0, "--timeout", o.Timeout.String())
	text("--jq", o.JQ)
	w.add(o.Drain, "--drain")
	w.add(o.Out, "--out", ShellQuote(cmp.Or(o.File, "FILE")))
	w.add(o.MaxBytes > 0 || o.Unlimited, "--max-bytes", fmt.Sprint(o.MaxBytes))
	text("--on-dialog", o.OnDialog)
	text("--wait", o.Wait)
	text("--isolate", o.Isolate)
	w.add(o.SendAnyway, "--send-anyway")
	w.add(o.DryRun, "--dry-run")
}

// QuoteWord cleans a text from an untrusted source and quotes it as one word of a POSIX shell.
func QuoteWord(s string) string { return ShellQuote(manifest.CleanValue(s)) }

// ShellQuote quotes a text as one word of a POSIX shell. A plain word needs no quotes.
func ShellQuote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%_+=:,./-"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
