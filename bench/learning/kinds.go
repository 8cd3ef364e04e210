package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// kind completes the schema of a parameter whose name matches, as services usually have it.
type kind struct {
	name      *regexp.Regexp
	keywords  string // of the schema
	says      string // sentence of the description about the form of values
	good, bad []any  // values as those of param
}

// kinds are looked up in this order. The last one matches every name. Formats have no bad values, because the host
// accepts any text for them.
var kinds = []kind{
	choice(`^(state|status)$`, "open closed all", "active", "done"),
	choice(`^(order|sort_order)$`, "asc desc", "ascending", "newest"),
	choice(`^sort(_by)?$`, "created updated relevance", "date", "best"),
	choice(`^(travel_?)?mode$`, "driving walking transit", "car", "foot"),
	choice(`(format|output|codec)$`, "json csv table", "text", "excel"),
	choice(`lang(uage)?$`, "en de fr ja", "English", "German"),
	choice(`^(period|interval|date_range|stage)$`, "day week month", "daily", "7d"),
	choice(`^(priority|severity|level)$`, "low medium high", "P1", "normal"),
	choice(`^(tone|style|formality|diet|hvac_mode|merge_method|response|orientation|.*[tT]ype)$`,
		"standard strict mixed", "default", "normal"),
	choice(`^(action|operation|subCommand|event)$`, "start stop restart", "run", "kill"),
	other(`^(date|since|after|before|until|from_date|to_date|month)$|Date$|_date$`, `"type":"string","format":"date"`,
		"A day such as 2026-03-14.", "2026-03-14", "2025-12-01"),
	other(`^(start|end|time|expiration|timestamp)$|_time$|^time(Min|Max)$|_timestamp$`,
		`"type":"string","format":"date-time"`, "A time such as 2026-03-14T09:30:00Z.", "2026-03-14T09:30:00Z"),
	other(`(^|_)(url|uri)$|Url$|Uri$`, `"type":"string","format":"uri"`,
		"A full address such as https://example.com/a.", "https://example.org/b"),
	other(`^email$`, `"type":"string","format":"email"`, "Such as ann@example.com.", "bob@example.org"),
	other(`(_id|Id|ID|_key|Key|_number|^id|^mac)$`, `"type":"string","pattern":"^[a-z]{2}-[0-9]{4}$"`,
		`Such as "ab-1234".`, "ab-1234", "cd-2048", "xy-0007", "pq-9311").wrong("1234", "#1234"),
	other(`^(limit|size|count|depth|tail|head|days|top_k|hours|rows|width|length|epochs|years)$|^max|_count$|^num`,
		`"type":"integer","minimum":1,"maximum":100`, "1 to 100.", 5, 20, 100).wrong(500, 0),
	other(`^(latitude|longitude|amount|price|score|percent|temperature|radius|value|kg|rate|grams|principal)$`,
		`"type":"number"`, "", 2.5, 10),
	other(`[oO]nly$|^(draft|dryRun|detach|submit|sudo|analyze|prerelease|on|all|symbols|slowly|accept|previous)$`,
		`"type":"boolean"`, "", true, false),
	other(`^(files|paths|labels|attendees|items|questions|signers|values|edits|fields|documents|points)$|_?ids$`,
		`"type":"array","items":{"type":"string"}`, "", []any{"first", "second"}),
	other(``, `"type":"string"`, "", "green tea", "north harbour", "weekly report"),
}

// choice is a kind of parameter with an enum, whose values are separated by spaces.
func choice(name, values string, bad ...any) kind {
	return kind{name: regexp.MustCompile(name), bad: bad,
		keywords: `"type":"string","enum":` + string(mustMarshal(strings.Fields(values)))}
}

func other(name, keywords, says string, good ...any) kind {
	return kind{name: regexp.MustCompile(name), keywords: keywords, says: says, good: good}
}

func (k kind) wrong(bad ...any) kind {
	k.bad = bad
	return k
}

func kindOf(name string) *kind {
	return &kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name.MatchString(name) })]
}

// property returns the schema of a parameter.
func (k *kind) property(name, description string) json.RawMessage {
	text := description
	if text == "" {
		text = "The " + words(name)
	}
	text = strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
	if k.says != "" {
		text += " " + k.says
	}
	return json.RawMessage(`{` + k.keywords + `,"description":` + string(mustMarshal(text)) + `}`)
}

var wordStart = regexp.MustCompile(`([a-z])([A-Z])`)

// words returns the words of a name: "max results" for maxResults and max_results.
func words(name string) string {
	name = wordStart.ReplaceAllString(name, "$1 $2")
	return strings.ToLower(strings.NewReplacer("_", " ", "-", " ", ".", " ").Replace(name))
}

var (
	destructiveName = regexp.MustCompile(`delete|drop|remove|destroy|cancel|void|kill`)
	readName        = regexp.MustCompile(`get|list|search|find|read|show|fetch|describe|status|log|lookup|diff`)
)

// effectOf returns the effect of a tool, by the verbs in its name.
func effectOf(name string) string {
	switch {
	case destructiveName.MatchString(name):
		return manifest.EffectDestructive
	case readName.MatchString(name):
		return manifest.EffectRead
	}
	return manifest.EffectWrite
}
