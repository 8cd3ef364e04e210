package lint

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-tools/parley/manifest"
)

// instructions are sentences that give orders to a reader, or pretend to come from somebody else than the author. A
// text of a tool is read by an agent beside its user's request, so an order in it competes with that request.
var instructions = patterns(`
	ignore,disregard,forget,override,bypass,discard,overrule => \b(ignore|disregard|forget|override|bypass|discard|overrule)\b.{0,30}\b(previous|prior|above|earlier|preceding|existing|other|system|your|all)\b.{0,30}\b(instruction|prompt|rule|guideline|message|context|direction|command|polic|restriction|safety)\w*
	ignore,disregard,forget,override,bypass,discard,overrule => \b(ignore|disregard|forget|override|bypass|discard|overrule)\b.{0,20}\b(instruction|prompt|rule|guideline|message|direction|command)s?\b.{0,20}\b(above|before|earlier|so far|previously)\b
	do not,don't,never,without,avoid => \b(do not|don't|never|without|avoid) (tell|inform|mention|reveal|show|notify|alert|warn|disclos)\w*\b.{0,30}\b(user|human|operator|person|anyone|anybody)\b
	do not,don't,never,without => \b(do not|don't|never|without) (ask\w*|wait\w*|request\w*|seek\w*|requir\w*)\b.{0,30}\b(confirm|permission|approv|consent)\w*
	from => \b(hide|conceal|keep)\b.{0,30}\b(from|secret from) the (user|human|operator)\b
	the user,the human => \bthe (user|human) (does not|doesn't|need not|must not|should not|shouldn't|mustn't) (need to |have to )?(know|see|be told|be asked)\b
	the user,the human,the operator => \b(tell|convince|persuade|assure|urge|instruct) the (user|human|operator) (that|to)\b
	< => </?(important|system|assistant|user|human|instructions?|secret|hidden|admin|tool_call|im_start|im_end)>
	[,<|,<< => \[/?(inst|system|sys)\]|<\|[a-z_]+\|>|<<sys>>
	system,assistant,user => (^|[.!?:;] |\n)(system|assistant|user)( prompt| message)?:
	prompt => \b(system|hidden|initial) prompt\b
	from now on,from this point on,new instructions,developer mode,jailbreak,you are now => \b(from now on|from this point on|new instructions|developer mode|jailbreak|you are now)\b
	you must,you should,you shall,you have to,you need to,you are required to,you will => \byou (must|should|shall|have to|need to|are required to|will) (always|never|first|also|now|immediately|only|instead)\b
	you must,you shall,you are required to,you have to => \byou (must|shall|are required to|have to) (call|use|invoke|run|prefer|choose|send|pass|include|read|open|execute|follow|obey|comply)\b
	always,never,must,only => \b(always|never|must|only) (call|use|invoke|run|prefer|choose|pick|select|execute|try) (this|it|our|the (following|present)|these)\b
	call,use,invoke,run,prefer,choose,pick,try => \b(call|use|invoke|run|prefer|choose|pick|try) (this|it)( tool| plugin| function| one)? (first|before (any|all|every|you|other|anything|calling|using)|(instead of|rather than) (the |any |all |every |each |other |another |your |built|native|standard|default)|in preference|for (everything|all|any|every)|over (any|all|other|the)|every time|each time|at the (start|beginning))
	before  => \bbefore (calling|using|invoking|running|you (call|use)) (any|every|all|another|other)( other)? tools?\b
	must,should,shall,need to,needs to,has to,have to,required to,ought to => \b(ai|assistants?|agents?|models?|llms?|chatbots?|claude|gpt|gemini|copilot)\b,? (must|should|shall|need to|needs to|has to|have to|is required to|are required to|ought to)\b
	note,message,instruction,attention,important,dear,hey,attn => \b(note|message|instruction|attention|important|dear|hey|attn)\w*,?:? (to |for )?(the |all |any )?(ai|assistants?|agents?|models?|llms?)\b
	as a,if you are,you are,being a => \b(as|if you are|you are|being) an? (ai|assistant|agent|language model|llm|ai (assistant|agent|model))\b
	conversation,chat,previous messages,message history,your ,system message,api key,all  => \b(send|include|pass|append|add|copy|put|attach|supply|paste|forward|embed|provide|insert)\b.{0,40}\b((whole|full|entire|complete|current|previous|our|your) conversation|chat history|chat log|previous messages|message history|your (instructions|context|memory|system|full context)|system message|api keys?.{0,20}(other|all|environment)|all (secrets|credentials|tokens|environment variables|env vars))\b
	.ssh,id_rsa,id_ed25519,.aws,/etc/,mcp.json,.env,.netrc,.git-credentials => \b(read|open|load|cat|fetch|collect|gather|look up|extract)\b.{0,60}(~/\.ssh|id_rsa|id_ed25519|\.aws/credentials|/etc/(passwd|shadow)|mcp\.json|\.env\b|\.netrc|\.git-credentials).{0,80}\b(and|then|as|into|to|in)\b
	your  => \byour (task|goal|job|mission|objective|instructions?|purpose|role) (is|are|now)\b
	pretend,roleplay,act as,imagine you => \b(pretend|roleplay|act as (if|an?|though)|imagine you)\b
	obey,comply with => \b(obey|comply with) (the|these|this|all|my)\b
`)

func checkInstructsReader(l *linter) {
	for _, t := range l.texts {
		if found := instructions.find(t.plain); found != "" {
			l.add(t.pointer, "%s instructs whoever reads it; say what the tool does, and in \"when\" and \"when_not\" what it "+
				"is for", quoted(found))
		}
	}
}

var praise = patterns(`
	best,est ,ultimate,perfect,supreme,unique,only,superior,premier,leading => \b(best|fastest|smartest|greatest|finest|safest|strongest|easiest|quickest|cheapest|ultimate|perfect|supreme|unique|only|superior|premier|leading)( and [\w-]+)?([ -][\w-]+){0,3} (tool|plugin|utility|toolkit|toolbox|plug-in|assistant|mcp|server)\b( you| for| to| in|s?[.!,]|s?$)
	best,est ,ultimate,perfect,superior,preferred => \b(the|our|your|very|world's|always) (best|finest|greatest|smartest|safest|ultimate|perfect|superior|preferred|easiest)( and [\w-]+)? (tool|plugin|choice|option|solution|alternative|service|implementation|api|way to)\b
	the  => \bthe (best|fastest|easiest|safest|quickest|most [\w-]+)( and (the )?[\w-]+( [\w-]+)?)? (way|method|means) (to|of|for) [\w-]+ing\b
	most  => \bmost (powerful|advanced|accurate|reliable|comprehensive|trusted|popular|complete|efficient|sophisticated|capable|robust|intelligent|secure|versatile)\b
	world,best,state,cutting,un,revolutionary,industry,market,next,award,number one,second to none,game,blazing,lightning => \b(world[- ]class|best[- ]in[- ]class|best[- ]of[- ]breed|state[- ]of[- ]the[- ]art|cutting[- ]edge|unbeatable|unmatched|unrivall?ed|unparalleled|unsurpassed|revolutionary|industry[- ]leading|market[- ]leading|next[- ]generation|award[- ]winning|number one|second to none|game[- ]chang\w+|blazing(ly)?[- ]fast|lightning[- ]fast)\b
	#1 => (^|\s)#1\b
	 than  => \b(better|faster|safer|smarter|more (accurate|reliable|powerful|secure|complete)) than (any|all|every|other|the other|others|anything|everything)\b
	superior,preferable => \b(superior|preferable) to\b
	preferred,recommended,favored,favoured => \b(preferred|recommended|favou?red) (tool|plugin|choice|option|(over|above) (any|all|every|other|the other))\b
	always,strongly,highly => \b(always|strongly|highly) (preferred|recommended|superior|better)\b
	replaces,supersedes,outperforms,beats => \b(replaces|supersedes|outperforms|beats) (all|any|every|other|the other|everything)\b
	official => \b(the )?official (and )?(only )?(parley|cdp|chrome|browser|json|text) (tool|plugin)\b
	best,est  => \b(best|fastest|smartest|greatest|safest)( and [\w-]+)?([ -][\w-]+){0,2} (available|around|on the market|in the world|there is|ever|anywhere|you can (get|find|use))\b
`)

func checkSuperlatives(l *linter) {
	for _, t := range l.texts {
		if t.kind == data {
			continue
		}
		if found := praise.find(t.plain); found != "" {
			l.add(t.pointer, "%s praises the plugin; a description says what it does, search says how well that fits",
				quoted(found))
		}
	}
}

func checkHiddenCharacters(l *linter) {
	for _, t := range l.texts {
		if t.kind == data {
			continue // the parser and the gate of schemas answer for values
		}
		for _, r := range t.raw {
			if r != '\r' && (manifest.Hidden(r) || r == unicode.ReplacementChar) {
				l.add(t.pointer, "it has the invisible or control character U+%04X; remove it", r)
				break
			}
		}
	}
}

// imperative is what a sentence has that says which tool to call.
var imperative = pattern(`(?i)\b(call|use|run|invoke|prefer|avoid|choose|pick|try|execute|stop|skip|replace|disable|switch|do not|don't|never|always|instead|rather than|before|after|must|should|first|over|better than|deprecated|obsolete|broken|unsafe|superseded|replaces)\b`)

var sentenceEnd = pattern(`[.!?;]\s+|\n`)

// unknownTool is an order to call something that has the form of a tool's name: "call the send_email tool".
var unknownTool = pattern("\\b(?i:call|use|run|invoke|prefer|execute)(?: the| this| our)? [`\"']?" +
	`([A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+|[a-z][A-Z][A-Za-z0-9]*)+)` +
	"[`\"']? ?(?:\\(\\)|tool\\b|function\\b|plugin\\b|first\\b|instead\\b)")

// checkNamesOtherTools looks for names of tools of other plugins in sentences that tell a reader what to call.
func checkNamesOtherTools(l *linter) {
	distinct := l.distinctNames()
	own := l.ownWords()
	for _, t := range l.texts {
		if t.kind == data || t.exempt {
			continue
		}
		for _, sentence := range sentenceEnd().Split(t.plain, -1) {
			if !imperative().MatchString(sentence) {
				continue
			}
			name := ""
			for _, word := range strings.FieldsFunc(sentence, func(r rune) bool { return !isNameRune(r) && r != '.' }) {
				key := strings.ToLower(strings.ReplaceAll(strings.Trim(word, ".-"), "__", "."))
				if distinct[key] && !own[key] {
					name = word
					break
				}
			}
			if found := unknownTool().FindStringSubmatch(sentence); name == "" && found != nil &&
				!own[strings.ToLower(found[1])] && !strings.HasPrefix(strings.ToLower(found[1]), strings.ToLower(l.m.Name)+".") {
				name = found[1]
			}
			if name != "" {
				l.add(t.pointer, "%s names another plugin's tool in an order: %s; that belongs into when_not, related, needs or "+
					"deprecated", quoted(strings.TrimSpace(sentence)), quoted(name))
				break
			}
		}
	}
}

// metaTools are the tools of the MCP server itself.
var metaTools = []string{"search_tools", "describe_tool", "call_tool", "plan_call", "run_code"}

// distinctNames are the names of tools of other plugins, in lower case, that cannot be words of a sentence: qualified
// ones, and bare ones with an inner capital, a digit or an underscore.
func (l *linter) distinctNames() map[string]bool {
	names := map[string]bool{}
	for _, name := range metaTools {
		names[name] = true
	}
	for _, p := range l.others {
		for _, t := range p.Tools {
			names[strings.ToLower(p.Name+"."+t.Name)] = true
			if strings.Contains(t.Name, ".") {
				names[strings.ToLower(t.Name)] = true
			}
			bare := bareName(t.Name)
			if list := words(bare); len(list) > 1 && strings.ToLower(bare) != strings.Join(list, "-") {
				names[strings.ToLower(bare)] = true
			}
		}
	}
	return names
}

// ownWords are the names that a plugin may use in any sentence, in lower case: of itself, its tools and their fields.
func (l *linter) ownWords() map[string]bool {
	own := map[string]bool{strings.ToLower(l.m.Name): true}
	add := func(s string) { own[strings.ToLower(s)] = true }
	for i := range l.m.Tools {
		t := &l.m.Tools[i]
		add(t.Name)
		add(bareName(t.Name))
		add(l.m.Name + "." + t.Name)
		for _, raw := range eachSchema(t) {
			for _, f := range fieldsOf(raw) {
				add(f.name)
				for _, v := range f.enum() {
					if s, ok := v.(string); ok {
						add(s)
					}
				}
			}
		}
	}
	for _, e := range l.m.ExitCodes {
		add(e.Name)
	}
	return own
}

// mixedWord is a word of Latin letters with look-alikes of other scripts among them.
func mixedWord(s string) string {
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if replaced := replaceLookAlikes(word); replaced != word {
			latin, foreign := 0, 0
			for _, r := range word {
				switch {
				case unicode.Is(unicode.Latin, r):
					latin++
				case replaceLookAlikes(string(r)) != string(r):
					foreign++
				default:
					foreign -= len(word) // a letter that has no Latin twin: a word of its own script
				}
			}
			if latin >= 2 && foreign > 0 {
				return word
			}
		}
	}
	return ""
}

// skeleton maps a name to what it looks like at a glance.
func skeleton(name string) string {
	return glance.Replace(strings.ToLower(replaceLookAlikes(name)))
}

var glance = strings.NewReplacer("rn", "m", "vv", "w", "cl", "d", "0", "o", "1", "l", "i", "l", "5", "s",
	"_", "", "-", "", ".", "")

func checkLookAlikeName(l *linter) {
	for _, p := range l.others {
		if looksLike(l.m.Name, p.Name) {
			l.add("/name", "%q can be mistaken for the plugin %q; choose another name", l.m.Name, p.Name)
		}
	}
	qualified := map[string]string{}
	for _, p := range l.others {
		for _, t := range p.Tools {
			qualified[skeleton(p.Name+t.Name)] = p.Name + "." + t.Name
		}
	}
	for i, g := range l.m.Groups {
		for _, p := range l.others {
			if sameName(g.Name, p.Name) && len(p.Name) > 1 && slices.ContainsFunc(p.Tools, func(t Tool) bool {
				return l.m.Tool(g.Name+"."+t.Name) != nil
			}) {
				l.add(fmt.Sprintf("/groups/%d/name", i), "the group %q has the name and the tools of the plugin %q", g.Name, p.Name)
			}
		}
	}
	l.eachTool(func(at string, t *manifest.Tool) {
		if other := qualified[skeleton(t.Name)]; other != "" {
			l.add(at+"/name", "%q can be mistaken for the tool %q", t.Name, other)
		} else if other := qualified[skeleton(l.m.Name+t.Name)]; other != "" {
			l.add(at+"/name", "%q can be mistaken for the tool %q", l.m.Name+"."+t.Name, other)
		}
		for i, alias := range t.Aliases {
			if other := qualified[skeleton(alias)]; other != "" && strings.ContainsAny(alias, "._") {
				l.add(fmt.Sprintf("%s/aliases/%d", at, i), "%s is the name of the tool %q", quoted(alias), other)
			}
		}
		for _, f := range fieldsOf(t.Params) {
			if word := mixedWord(f.name); word != "" {
				l.add(at+"/params"+f.pointer, "the name %s mixes letters of several scripts that look alike", quoted(word))
			}
		}
	})
	for _, t := range l.texts {
		if word := mixedWord(t.raw); word != "" && t.kind != data {
			l.add(t.pointer, "%s mixes letters of several scripts that look alike", quoted(word))
		}
	}
}

// looksLike reports whether one name can be mistaken for another: they look the same, or differ by one letter that is
// doubled, left out, added or exchanged with its neighbor.
func looksLike(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a == b {
		return false
	}
	if skeleton(a) == skeleton(b) {
		return true
	}
	if min(len(a), len(b)) < 4 {
		return false
	}
	if a == b+"s" || b == a+"s" {
		return true
	}
	if len(a) == len(b) {
		return isSwapped(a, b) || len(a) >= 6 && differences(a, b) == 1
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	return a[0] == b[0] && len(b) == len(a)+1 && isWithoutOne(b, a)
}

func isSwapped(a, b string) bool {
	for i := 0; i+1 < len(a); i++ {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}

func differences(a, b string) int {
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// isWithoutOne reports whether short is long without one character.
func isWithoutOne(long, short string) bool {
	for i := range long {
		if long[:i]+long[i+1:] == short {
			return true
		}
	}
	return false
}

// maxQueries bounds the searches of one check.
const maxQueries = 400

// checkTakesFirstPlace compares search with and without the plugin, for the phrases of other tools that share at least
// half of their words with a task or an alias of this one. Whoever asks for a tool by its own phrase must find it.
func checkTakesFirstPlace(l *linter) {
	if l.search == nil {
		return
	}
	own := map[string]string{} // phrase -> pointer
	var mine [][]string
	l.eachTool(func(at string, t *manifest.Tool) {
		add := func(pointer, phrase string) {
			if list := contentWords(phrase); len(list) > 0 && own[phrase] == "" {
				own[phrase] = pointer
				mine = append(mine, list)
			}
		}
		for i, a := range t.Aliases {
			add(fmt.Sprintf("%s/aliases/%d", at, i), a)
		}
		for i, task := range t.Tasks {
			add(fmt.Sprintf("%s/tasks/%d", at, i), task)
		}
	})
	owners := map[string][]string{} // phrase of another tool -> the tools that have it
	for _, p := range l.others {
		for _, t := range p.Tools {
			full := p.Name + "." + t.Name
			for _, phrase := range append(append([]string{full, bareName(t.Name)}, t.Aliases...), t.Tasks...) {
				if overlaps(contentWords(phrase), mine) {
					key := strings.ToLower(phrase)
					owners[key] = append(owners[key], full)
				}
			}
		}
	}
	queries := sortedKeys(owners)
	reported := map[string]bool{}
	for _, q := range queries[:min(len(queries), maxQueries)] {
		before := l.search(q, false)
		if len(before) == 0 || !slices.Contains(owners[q], before[0].Name) {
			continue // the tool did not have the first place
		}
		after := l.search(q, true)
		if len(after) == 0 || !l.isOwn(after[0].Name) || reported[after[0].Name+before[0].Name] {
			continue
		}
		at := l.pointerOf(after[0].Name, q, own)
		if at == "" {
			continue // by its name or its documentation, which other rules are about
		}
		reported[after[0].Name+before[0].Name] = true
		l.add(at, "search for %s, a phrase of %s, would find %s first", quoted(q),
			before[0].Name, after[0].Name)
	}
}

func (l *linter) isOwn(full string) bool {
	plugin, _, _ := strings.Cut(full, ".")
	return sameName(plugin, l.m.Name)
}

// pointerOf returns the pointer of the phrase of a tool of this plugin that is nearest to a query, "" if none shares a
// word with it.
func (l *linter) pointerOf(full, query string, own map[string]string) string {
	_, local, _ := strings.Cut(full, ".")
	best, at := 0.0, "" // none
	for i := range l.m.Tools {
		if !sameName(l.m.Tools[i].Name, local) {
			continue
		}
		prefix := fmt.Sprintf("/tools/%d", i)
		for _, phrase := range sortedKeys(own) {
			if o := overlap(contentWords(query), contentWords(phrase)); strings.HasPrefix(own[phrase], prefix+"/") && o > best {
				best, at = o, own[phrase]
			}
		}
	}
	return at
}

// contentWords returns the stems of a phrase without stop words.
func contentWords(phrase string) []string {
	var list []string
	for _, w := range words(phrase) {
		if s := stem(w); !stopwords()[w] && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// overlap is the number of words that two lists share, divided by the number that either has.
func overlap(a, b []string) float64 {
	shared := 0
	for _, w := range a {
		if slices.Contains(b, w) {
			shared++
		}
	}
	if shared == 0 {
		return 0
	}
	return float64(shared) / float64(len(a)+len(b)-shared)
}

func overlaps(list []string, with [][]string) bool {
	return slices.ContainsFunc(with, func(other []string) bool { return overlap(list, other) >= 0.5 })
}
