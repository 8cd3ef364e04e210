// Package query compiles jq filters so that common ones take time linear in the data. gojq copies a container for
// each change of it, and counts the characters of a text from its beginning for each match. Here the accumulator of
// reduce and foreach is changed in place if nothing else refers to it, and functions of regular expressions walk the
// text once. Results and errors are the same as gojq's.
package query

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/itchyny/gojq"
)

// Compile compiles a filter. The error of one that does not parse is a [*gojq.ParseError].
func Compile(text string, options ...gojq.CompilerOption) (*gojq.Code, error) {
	q, err := gojq.Parse(text)
	if err != nil {
		return nil, err
	}
	c := &compiler{done: map[any]bool{}, patterns: new(sync.Map)}
	visit(q, func(node any) {
		switch n := node.(type) {
		case *gojq.FuncDef:
			c.defined = append(append(c.defined, n.Name), n.Args...)
		case *gojq.Func:
			c.called = append(c.called, n.Name)
		case *gojq.Term:
			if n.Type == gojq.TermTypeRecurse {
				c.called = append(c.called, "recurse")
			}
		}
	})
	if c.takesPaths(q) {
		return gojq.Compile(q, options...)
	}
	q.FuncDefs = append(c.definitions(), q.FuncDefs...)
	visit(q, c.rewrite)
	code, err := gojq.Compile(q, append(options, c.functions()...)...)
	if err == nil {
		return code, nil
	}
	if q, err = gojq.Parse(text); err != nil { // the error must refer to the original filter
		return nil, err
	}
	return gojq.Compile(q, options...)
}

// compiler rewrites one filter.
type compiler struct {
	defined  []string // the functions and parameters that the filter defines
	called   []string // the functions that it calls
	plain    []string // called functions that stay gojq's own, because their paths are taken
	paths    []*path  // paths of the rewritten assignments
	done     map[any]bool
	depth    int       // nesting depth of the current assignment
	patterns *sync.Map // [2]string of a regular expression and its flags to *pattern
}

// verdict is what a node of a syntax tree says about the expression.
type verdict int

const (
	inside verdict = iota // its parts decide
	yes
	no // whatever its parts are
)

func verdictOf(is bool) verdict {
	if is {
		return yes
	}
	return no
}

// some reports whether a node of a syntax tree has the verdict yes. It asks the nodes that are pointers, parents first.
// ask may change the node.
func some(node any, ask func(node any) verdict) bool {
	var walk func(v reflect.Value) bool
	walk = func(v reflect.Value) bool {
		switch v.Kind() {
		case reflect.Pointer:
			if v.IsNil() {
				return false
			}
			said := ask(v.Interface())
			return said == yes || said == inside && walk(v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				if walk(v.Field(i)) {
					return true
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				if walk(v.Index(i)) {
					return true
				}
			}
		}
		return false
	}
	return walk(reflect.ValueOf(node))
}

// visit calls f with each node of a syntax tree that is a pointer, parents first. f may change the node.
func visit(node any, f func(node any)) {
	some(node, func(node any) verdict {
		f(node)
		return inside
	})
}

// Functions and variables of rewritten filters. No filter can mention these names.
const (
	fnOwner = "%owner" // a new owner
	fnSet   = "%set"   // (owner; path; keys..; value): the input with the value at the path
	fnAt    = "%at"    // (owner; path; keys..): a cursor at the path
	fnOld   = "%old"   // the value at the cursor
	fnPut   = "%put"   // (cursor): the root of the cursor, with the input at its place
	fnAdd   = "%add"   // (owner; left; right): left + right
	fnMerge = "%merge" // (owner; left; right): left * right
	fnShare = "%share" // (owner): the input, to which something else refers from now on
	fnPath  = "%path"  // (owner; path; value): setpath(path; value)
	fnMatch = "%match" // (re; flags): the matches
	fnCut   = "%cut"   // (re; flags): the texts before each match with its captures; the text after the last; the input
	fnJoin  = "%join"  // (cut): the texts that consist of the parts in the input

	varOwner, varCursor, varRight = "$%owner", "$%cursor", "$%right"
)

func (c *compiler) functions() []gojq.CompilerOption {
	return []gojq.CompilerOption{
		gojq.WithFunction(fnOwner, 0, 0, func(any, []any) any { return &owner{} }),
		gojq.WithFunction(fnSet, 3, 3+maxKeys, c.set),
		gojq.WithFunction(fnAt, 2, 2+maxKeys, c.at),
		gojq.WithFunction(fnOld, 0, 0, func(v any, _ []any) any { return v.(*cursor).old }),
		gojq.WithFunction(fnPut, 1, 1, func(v any, args []any) any { return args[0].(*cursor).put(v) }),
		gojq.WithFunction(fnAdd, 3, 3, func(_ any, args []any) any { return args[0].(*owner).add(args[1], args[2]) }),
		gojq.WithFunction(fnMerge, 3, 3, func(_ any, args []any) any { return args[0].(*owner).multiply(args[1], args[2]) }),
		gojq.WithFunction(fnShare, 1, 1, func(v any, args []any) any { return args[0].(*owner).share(v) }),
		gojq.WithFunction(fnPath, 3, 3, func(v any, args []any) any { return args[0].(*owner).setPath(v, args[1], args[2]) }),
		gojq.WithFunction(fnMatch, 2, 2, func(v any, args []any) any { return c.match(v, args[0], args[1]) }),
		gojq.WithFunction(fnCut, 2, 2, func(v any, args []any) any { return c.cut(v, args[0], args[1]) }),
		gojq.WithIterFunction(fnJoin, 1, 1, func(v any, args []any) gojq.Iter { return join(v.([]any), args[0].([]any)) }),
		gojq.WithFunction("%to_entries", 0, 0, listEntries),
		gojq.WithFunction("%from_entries", 0, 0, joinEntries),
		gojq.WithIterFunction("%recurse", 0, 0, walk(emitValue)),
		gojq.WithIterFunction("%paths", 0, 0, walk(emitPath)),
		gojq.WithIterFunction("%nodes", 0, 0, walk(emitNode)),
		gojq.WithIterFunction("%tostream", 0, 0, walk(emitEvent)),
	}
}

type replacement struct{ name, text string }

// replacements of gojq's functions that are not linear. Each calls only later ones; __ stands for %. The reduce and
// foreach in them are rewritten.
var replacements = []replacement{
	{"INDEX", `def INDEX(stream; f): reduce (stream | {k: (f | tostring), v: .}) as $e ({}; .[$e.k] = $e.v);
		def INDEX(f): INDEX(.[]; f);`},
	{"fromstream", `def fromstream(f): foreach f as $pv (null; if .e then null end | $pv as [$p, $v] |
		if $pv | length == 2 then setpath(["v"] + $p; $v) | setpath(["e"]; $p | length == 0)
		else setpath(["e"]; $p | length == 1) end; if .e then .v else empty end);`},
	{"pick", `def pick(f): . as $v | reduce path(f) as $p (null; setpath($p; $v | getpath($p)));`},
	{"gsub", `def gsub($re; str; $flags): sub($re; str; $flags + "g"); def gsub($re; str): gsub($re; str; "");`},
	{"sub", `def sub($re; str; $flags): __cut($re; $flags) as $c | [$c[0][] | [.[0] + (.[1] | str)]] | __join($c);
		def sub($re; str): sub($re; str; null);`},
	{"split", `def split($re; $flags): [splits($re; $flags)];`},
	{"splits", `def splits($re; $flags): __cut($re; $flags + "g") | .[0][][0], .[1]; def splits($re): splits($re; null);`},
	{"capture", `def capture($re; $flags): match($re; $flags) | .captures | _captures;
		def capture($re): if $re | type == "array" then capture($re[0]; $re[1]) else capture($re; null) end;`},
	{"scan", `def scan($re; $flags): match($re; $flags + "g") |
		if .captures == [] then .string else [.captures[].string] end; def scan($re): scan($re; null);`},
	{"with_entries", `def with_entries(f): to_entries | map(f) | from_entries;`},
	{"to_entries", `def to_entries: __to_entries;`},
	{"from_entries", `def from_entries: __from_entries;`},
	{"recurse", `def recurse: __recurse;`},
	{"paths", `def paths: __paths; def paths(f): __nodes | select(.[1] | f) | .[0] | select(. != []);`},
	{"tostream", `def tostream: __tostream;`},
	{"match", `def match($re; $flags): __match($re; $flags)[];
		def match($re): if $re | type == "array" then match($re[0]; $re[1]) else match($re; null) end;`},
}

// takesPaths reports whether a filter may take the path of a part that would be rewritten, for which gojq has its own
// rules. It also finds the functions that must not be replaced.
func (c *compiler) takesPaths(q *gojq.Query) (does bool) {
	check := func(node any) {
		switch n := node.(type) {
		case *gojq.Reduce, *gojq.Foreach:
			does = true
		case *gojq.Func:
			does = does || slices.Contains(c.defined, n.Name)
			c.plain = append(c.plain, n.Name)
		case *gojq.Term:
			if n.Type == gojq.TermTypeRecurse {
				c.plain = append(c.plain, "recurse")
			}
		}
	}
	visit(q, func(node any) {
		switch n := node.(type) {
		case *gojq.Func:
			if slices.Contains([]string{"path", "pick", "del"}, n.Name) {
				visit(n.Args, check)
			}
		case *gojq.Query:
			if gojq.OpAssign <= n.Op && n.Op <= gojq.OpUpdateAlt {
				visit(n.Left, check)
			}
		}
	})
	return does
}

// definitions returns the replacements that the filter needs.
func (c *compiler) definitions() []*gojq.FuncDef {
	var text strings.Builder
	needed := slices.Clone(c.called)
	var texts []string
	for _, r := range replacements {
		if slices.Contains(needed, r.name) && !slices.Contains(c.plain, r.name) {
			texts = append(texts, r.text)
			needed = append(needed, strings.FieldsFunc(r.text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) })...)
		}
	}
	slices.Reverse(texts)
	for _, t := range texts {
		text.WriteString(t)
	}
	defs, err := gojq.Parse(text.String() + ".")
	if err != nil {
		panic(err) // the texts are constants
	}
	visit(defs, func(node any) {
		if f, ok := node.(*gojq.Func); ok && strings.HasPrefix(f.Name, "__") {
			f.Name = "%" + f.Name[2:]
		}
	})
	return defs.FuncDefs
}
