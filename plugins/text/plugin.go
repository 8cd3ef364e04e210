package main

import (
	_ "embed" // peers.json
	"encoding/json"

	sdk "github.com/parley-tools/parley/sdk/go"
)

func init() { sdk.Register(plugin) }

//go:embed peers.json
var peers []byte

var plugin = sdk.Plugin{
	Name:     "text",
	Version:  "0.1.0",
	MinHost:  "0.1.0",
	Brief:    "Hash, encode, search, edit, compare and measure text",
	Standard: "Pure functions of their parameters: no files, no network, no rights, the same answer every time.",
	Keywords: []string{"string", "regex", "checksum", "base64", "diff", "tokens"},
	License:  "Apache-2.0",
	Warm:     true,
	Peers:    peers,
	ExitCodes: []sdk.ExitCode{
		{Code: 10, Name: "no_match", Meaning: "The pattern does not match", Retry: sdk.FixInput,
			Suggestion: "look at what is there with text.find, or set ignore_case"},
		{Code: 11, Name: "malformed", Meaning: "The text is not in the given encoding", Retry: sdk.FixInput,
			Suggestion: "give the right encoding; the message says what is invalid"},
		{Code: 12, Name: "missing_value", Meaning: "The template names a value that was not given", Retry: sdk.FixInput,
			Suggestion: "add the names in details.names to values, or set missing to keep or empty"},
		{Code: 13, Name: "too_large", Meaning: "The text is too large, or would grow over 4 MiB", Retry: sdk.FixInput,
			Suggestion: "work on smaller parts"},
	},
	Tutorial: []sdk.Step{
		{Say: "See what the plugin offers.", Run: "parley text --list", Expect: &sdk.Expect{}},
		{Say: "Read one tool before its first use.", Run: "parley text find --describe", Expect: &sdk.Expect{}},
		{Say: "Find something; every match has its line and column.",
			Run: `parley text find --params '{"text":"a\nbb\n","pattern":"b+"}'`, Expect: &sdk.Expect{}},
		{Say: "Required parameters can be plain words.", Run: "parley text hash hello", Expect: &sdk.Expect{}},
		{Say: "An edit that changes nothing is a failure with a code of its own.", Run: "parley text replace hello x y",
			Expect: &sdk.Expect{ExitCode: 10}},
	},
	Tools: []sdk.Definition{
		sdk.Tool("hash", Hash, sdk.Doc{
			Brief:    "Compute a digest of text: SHA-2, SHA-1 or MD5",
			Standard: "Hashes the bytes exactly as given: no newline is added.",
			Category: sdk.Query, Effect: sdk.Read, Idempotent: true, Positional: []string{"text"},
			Keywords: []string{"checksum", "digest", "fingerprint", "sha256sum", "md5sum"},
			Tasks:    []string{"get the sha256 of a string", "verify a checksum", "fingerprint some text"},
			When:     "you need a checksum", WhenNot: "it must be reversible: text.encode",
			Related:     []sdk.Related{{Tool: "text.encode", Why: "reversible forms"}},
			Limitations: []string{"MD5 and SHA-1 do not protect against forgery"},
			ExitCodes:   []string{"malformed"},
			Examples: []sdk.Example{
				{Title: "SHA-256 of a word", Kind: sdk.Minimal, Params: HashParams{Text: "hello"}, Runnable: true,
					Result: HashResult{"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}},
				{Title: "MD5 for an old system", Kind: sdk.Common, Params: HashParams{Text: "hello", Algorithm: "md5"},
					Runnable: true,
					Result:   HashResult{"5d41402abc4b2a76b9719d911017c592"}},
				{Title: "Bytes that are not text", Kind: sdk.Full,
					Params: HashParams{Text: "/wA=", Algorithm: "sha1", Input: "base64"}, Runnable: true,
					Result: HashResult{"da33e41954997c24ad31f6c1845e18510b384f67"}},
				{Title: "Not base64", Kind: sdk.Error, Params: HashParams{Text: "!", Input: "base64"}, ExitCode: 11,
					Runnable: true},
			},
		}),
		sdk.Tool("encode", Encode, sdk.Doc{
			Brief:    "Encode text as base64, base32, hex, URL or HTML",
			Standard: "base64url has no padding; url writes a space as %20.",
			Category: sdk.Generation, Effect: sdk.Read, Idempotent: true, Positional: []string{"text", "to"},
			Keywords: []string{"escape", "percent-encoding", "base64", "entities"},
			Tasks:    []string{"base64 a string", "escape text for a URL", "escape HTML"},
			When:     "text must pass where only some characters may", WhenNot: "you only want a fingerprint: text.hash",
			Related:     []sdk.Related{{Tool: "text.decode", Why: "the way back"}},
			Limitations: []string{"html escapes only <, >, &, ' and \""},
			Examples: []sdk.Example{
				{Title: "Base64", Kind: sdk.Minimal, Params: EncodeParams{"hello", "base64"}, Runnable: true,
					Result: EncodeResult{"aGVsbG8="}},
				{Title: "A value in a query", Kind: sdk.Common, Params: EncodeParams{"a b&c", "url"}, Runnable: true,
					Result: EncodeResult{"a%20b%26c"}},
				{Title: "Text in HTML", Kind: sdk.Full, Params: EncodeParams{"<b>", "html"}, Runnable: true,
					Result: EncodeResult{"&lt;b&gt;"}},
				{Title: "An encoding that is not offered", Kind: sdk.Error, Params: EncodeParams{"hello", "rot13"}, ExitCode: 81,
					Runnable: true},
			},
		}),
		sdk.Tool("decode", Decode, sdk.Doc{
			Brief:    "Decode base64, base32, hex, URL or HTML text",
			Standard: "base64 reads both alphabets. Missing padding and white space do no harm.",
			Category: sdk.Query, Effect: sdk.Read, Idempotent: true, Positional: []string{"text", "from"},
			Keywords:    []string{"unescape", "base64", "percent-encoding", "entities"},
			Tasks:       []string{"read a base64 string", "unescape a URL", "resolve HTML entities"},
			When:        "you know the encoding",
			Related:     []sdk.Related{{Tool: "text.encode", Why: "the way back"}},
			Limitations: []string{"url reads + as a space"},
			ExitCodes:   []string{"malformed"},
			Examples: []sdk.Example{
				{Title: "Base64", Kind: sdk.Minimal, Params: DecodeParams{"aGVsbG8=", "base64"}, Runnable: true},
				{Title: "HTML entities", Kind: sdk.Common, Params: DecodeParams{"&lt;b&gt; &eacute;", "html"}, Runnable: true},
				{Title: "Bytes that are not text", Kind: sdk.Full, Params: DecodeParams{"ff 00", "hex"}, Runnable: true},
				{Title: "An odd number of hex digits", Kind: sdk.Error, Params: DecodeParams{"abc", "hex"}, ExitCode: 11,
					Runnable: true},
			},
		}),
		sdk.Tool("find", Find, sdk.Doc{
			Brief:    "Find all matches of a regex with line and column",
			Standard: "^ and $ match at each line. No match is no error: total is 0.",
			Category: sdk.Query, Effect: sdk.Read, Idempotent: true, Positional: []string{"text", "pattern"},
			Keywords: []string{"regex", "regexp", "grep", "search", "match", "RE2"},
			Aliases:  []string{"grep"},
			Tasks:    []string{"find all email addresses", "which line holds this word", "extract parts with a regex"},
			When:     "you need places or groups", WhenNot: "text is JSON: json.query",
			Related: []sdk.Related{{Tool: "text.replace", Why: "edits what matches"}},
			Limitations: []string{
				"RE2: no look-around, no back-references",
				"counts up to a million matches, fewer with groups",
			},
			Examples: []sdk.Example{
				{Title: "Where a word stands", Kind: sdk.Minimal, Params: FindParams{Text: "one\ntwo", Pattern: "two"},
					Runnable: true},
				{Title: "Groups", Kind: sdk.Common, Params: FindParams{Text: "a=1;b=2", Pattern: `(\w)=(\d)`}, Runnable: true},
				{Title: "The first of many", Kind: sdk.Full, Params: FindParams{Text: "Aa", Pattern: "a", IgnoreCase: true,
					Limit: 1}, Runnable: true},
				{Title: "Not a pattern", Kind: sdk.Error, Params: FindParams{Text: "a", Pattern: "("}, ExitCode: 81,
					Runnable: true},
			},
		}),
		sdk.Tool("replace", Replace, sdk.Doc{
			Brief:    "Replace matches of a regex or a plain text",
			Standard: "^ and $ match at each line.",
			Category: sdk.Correction, Effect: sdk.Read, Idempotent: true, Positional: []string{"text", "pattern", "replacement"},
			Keywords: []string{"regex", "substitute", "sed", "edit", "rename"},
			Aliases:  []string{"sed"},
			Tasks:    []string{"replace a word everywhere", "swap two columns", "redact numbers"},
			When:     "one edit fits everywhere", WhenNot: "it has blanks: text.template",
			Related:     []sdk.Related{{Tool: "text.find", Why: "shows what would match"}},
			Limitations: []string{"RE2: no look-around, no back-references"},
			ExitCodes:   []string{"no_match", "too_large"},
			Examples: []sdk.Example{
				{Title: "A word", Kind: sdk.Minimal, Params: ReplaceParams{Text: "a cat", Pattern: "cat", Replacement: "dog"},
					Runnable: true},
				{Title: "Swap groups", Kind: sdk.Common, Params: ReplaceParams{Text: "1-2", Pattern: `(\d)-(\d)`,
					Replacement: "$2-$1"}, Runnable: true},
				{Title: "Plain text", Kind: sdk.Full, Params: ReplaceParams{Text: "A.b", Pattern: "a.", Replacement: "$1",
					Literal: true, IgnoreCase: true}, Runnable: true},
				{Title: "Nothing matches", Kind: sdk.Error, Params: ReplaceParams{Text: "a", Pattern: "z", Replacement: ""},
					ExitCode: 10, Runnable: true},
			},
		}),
		sdk.Tool("diff", Diff, sdk.Doc{
			Brief:    "Compare two texts by line as a unified diff",
			Standard: "The diff has hunks without file names; equal texts give an empty one.",
			Category: sdk.Review, Effect: sdk.Read, Idempotent: true, Positional: []string{"before", "after"},
			Keywords: []string{"compare", "patch", "changes", "unified"},
			Tasks:    []string{"what changed between two versions", "show the difference of two texts"},
			When:     "people or agents read what changed", WhenNot: "both are JSON: json.diff",
			Related:     []sdk.Related{{Tool: "json.diff", Why: "compares values, not lines"}},
			Limitations: []string{"200,000 lines; beyond 1,500 changes not the shortest"},
			ExitCodes:   []string{"too_large"},
			Examples: []sdk.Example{
				{Title: "One line changed", Kind: sdk.Minimal, Params: DiffParams{Before: "a\nb\n", After: "a\nc\n"},
					Runnable: true},
				{Title: "Equal texts", Kind: sdk.Common, Params: DiffParams{Before: "a\n", After: "a\n"}, Runnable: true},
				{Title: "Changes alone", Kind: sdk.Full, Params: DiffParams{Before: "a\nb\n", After: "a\nb\nc", Context: new(int)},
					Runnable: true},
				{Title: "Context out of bounds", Kind: sdk.Error,
					Params: map[string]any{"before": "a", "after": "b", "context": -1}, ExitCode: 81, Runnable: true},
			},
		}),
		sdk.Tool("count", Count, sdk.Doc{
			Brief:    "Count lines, words, characters, bytes and tokens",
			Standard: "Words are what white space separates; tokens is an estimate for English and code, not a tokenizer.",
			Category: sdk.Query, Effect: sdk.Read, Idempotent: true, Positional: []string{"text"},
			Keywords: []string{"wc", "length", "size", "tokens"},
			Aliases:  []string{"wc"},
			Tasks:    []string{"how long is this text", "how many tokens does this cost", "count words"},
			When:     "a text must fit a budget", WhenNot: "you count matches: text.find",
			Related:     []sdk.Related{{Tool: "text.find", Why: "total counts matches"}},
			Limitations: []string{"a character is a code point: an emoji may be several"},
			Examples: []sdk.Example{
				{Title: "Two words", Kind: sdk.Minimal, Params: CountParams{"one two\n"}, Runnable: true,
					Result: CountResult{Bytes: 8, Characters: 8, Words: 2, Lines: 1, Tokens: 2}},
				{Title: "Not ASCII", Kind: sdk.Common, Params: CountParams{"né"}, Runnable: true},
				{Title: "Nothing", Kind: sdk.Full, Params: CountParams{""}, Runnable: true},
				{Title: "No text", Kind: sdk.Error, Params: map[string]any{}, ExitCode: 81, Runnable: true},
			},
		}),
		sdk.Tool("template", Template, sdk.Doc{
			Brief:    "Fill {{name}} placeholders of a text with values",
			Standard: "Strings go in as they are, the rest as JSON.",
			Category: sdk.Generation, Effect: sdk.Read, Idempotent: true, Positional: []string{"template"},
			Keywords: []string{"fill", "placeholder", "render", "mustache", "interpolate"},
			Aliases:  []string{"fill"},
			Tasks:    []string{"fill in a form letter", "put values into a text"},
			When:     "blanks are marked", WhenNot: "it has no blanks: text.replace",
			Related:     []sdk.Related{{Tool: "text.replace", Why: "edits by pattern"}},
			Limitations: []string{"no way to write {{ itself"},
			ExitCodes:   []string{"missing_value", "too_large"},
			Examples: []sdk.Example{
				{Title: "A name", Kind: sdk.Minimal, Params: templateExample("Hi {{name}}", `{"name":"Ada"}`, ""), Runnable: true},
				{Title: "A nested value", Kind: sdk.Common, Params: templateExample("{{u.n}}", `{"u":{"n":7}}`, ""),
					Runnable: true},
				{Title: "Leave what is unknown", Kind: sdk.Full, Params: templateExample("{{a}}", `{}`, "keep"), Runnable: true},
				{Title: "A value is missing", Kind: sdk.Error, Params: templateExample("{{a}}", `{}`, ""), ExitCode: 12,
					Runnable: true},
			},
		}),
	},
}

func templateExample(template, values, missing string) any {
	p := map[string]any{"template": template, "values": json.RawMessage(values)}
	if missing != "" {
		p["missing"] = missing
	}
	return p
}
