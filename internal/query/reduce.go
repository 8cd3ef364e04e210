package query

import (
	"slices"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

const (
	// maxKeys is the maximum number of keys in the path of an assignment that are not constant.
	maxKeys = 20
	// maxNesting is the maximum nesting depth of assignments.
	maxNesting = 8
)

// rewrite makes reduce and foreach update their accumulator in place. The update must be a chain of steps, each of
// which consumes the result of the previous step and has one result. Anything else that refers to a part of the
// accumulator, such as a variable, is a scalar or ends the ownership (fnShare): later steps then copy, as gojq does.
// Hence no backtracking meets an accumulator that has changed.
func (c *compiler) rewrite(node any) {
	t, ok := node.(*gojq.Term)
	if !ok || c.done[t.Reduce] || c.done[t.Foreach] {
		return
	}
	loop := *t
	loop.SuffixList = nil
	switch {
	case t.Reduce != nil:
		update, linear := c.linear(t.Reduce.Update)
		if !linear || len(t.Reduce.Patterns) != 1 || !assigns(update) {
			return
		}
		t.Reduce.Update = update
		c.done[t.Reduce] = true
	case t.Foreach != nil && t.Foreach.Extract != nil: // otherwise each state is an output, which must not change
		update, linear := c.linear(t.Foreach.Update)
		if !linear || len(t.Foreach.Patterns) != 1 || !assigns(update) {
			return
		}
		t.Foreach.Update, t.Foreach.Extract = update, shared(t.Foreach.Extract)
		c.done[t.Foreach] = true
	default:
		return
	}
	t.Type, t.Reduce, t.Foreach = gojq.TermTypeQuery, nil, nil
	t.Query = bind(call(fnOwner), varOwner, &gojq.Query{Term: &loop})
}

// assigns reports whether a rewritten update changes its accumulator in place.
func assigns(update *gojq.Query) (does bool) {
	visit(update, func(node any) {
		f, ok := node.(*gojq.Func)
		does = does || ok && slices.Contains([]string{fnSet, fnPut, fnAdd, fnMerge, fnPath}, f.Name)
	})
	return does
}

// linear returns an update in the form that consumes its input. ok says that it has such a form, with exactly one
// result for each input. Otherwise the result must not be used.
func (c *compiler) linear(q *gojq.Query) (*gojq.Query, bool) {
	q = withoutParentheses(q)
	switch {
	case len(q.FuncDefs) > 0:
		return nil, false
	case q.Term != nil:
		return c.linearTerm(q)
	case q.Op == gojq.OpPipe && len(q.Patterns) > 0:
		right, ok := c.linear(q.Right)
		if !ok || len(q.Patterns) > 1 || !plain(q.Patterns[0]) || !c.single(q.Left) {
			return nil, false
		}
		return &gojq.Query{Left: released(q.Left), Patterns: q.Patterns, Op: q.Op, Right: right}, true
	case q.Op == gojq.OpPipe:
		left, ok := c.linear(q.Left)
		if !ok {
			return nil, false
		}
		right, ok := c.linear(q.Right)
		return pipe(left, right), ok
	case inPlace[q.Op] != "" && readsInput(q.Left):
		if left, ok := c.linear(q.Left); ok && c.single(q.Right) {
			return call(inPlace[q.Op], variable(varOwner), left, released(q.Right)), true
		}
	case q.Op == gojq.OpAlt && isIdentity(q.Left) && c.single(q.Right):
		return &gojq.Query{Left: q.Left, Op: q.Op, Right: released(q.Right)}, true
	case gojq.OpAssign <= q.Op && q.Op <= gojq.OpUpdateAlt:
		return c.assignment(q)
	}
	return released(q), c.single(q)
}

func (c *compiler) linearTerm(q *gojq.Query) (*gojq.Query, bool) {
	t := *q.Term
	switch {
	case isIdentity(q):
		return q, true
	case len(t.SuffixList) > 0:
	case t.If != nil:
		branches := &gojq.If{Cond: t.If.Cond}
		ok := c.single(branches.Cond)
		branch := func(q *gojq.Query) *gojq.Query {
			linear, is := c.linear(q)
			ok = ok && is
			return linear
		}
		branches.Then = branch(t.If.Then)
		for _, e := range t.If.Elif {
			ok = ok && c.single(e.Cond)
			branches.Elif = append(branches.Elif, &gojq.IfElif{Cond: e.Cond, Then: branch(e.Then)})
		}
		if t.If.Else != nil {
			branches.Else = branch(t.If.Else)
		}
		t.If = branches
		return &gojq.Query{Term: &t}, ok
	case t.Reduce != nil && !readsInput(t.Reduce.Query) && len(t.Reduce.Patterns) == 1:
		start, ok := c.linear(t.Reduce.Start)
		if !ok {
			break
		}
		if update, ok := c.linear(t.Reduce.Update); ok {
			t.Reduce = &gojq.Reduce{Query: t.Reduce.Query, Patterns: t.Reduce.Patterns, Start: start, Update: update}
			c.done[t.Reduce] = true
			return &gojq.Query{Term: &t}, true
		}
	case t.Func != nil && t.Func.Name == "setpath" && len(t.Func.Args) == 2 && !slices.Contains(c.defined, "setpath"):
		if c.single(t.Func.Args[0]) && c.single(t.Func.Args[1]) {
			return call(fnPath, variable(varOwner), t.Func.Args[0], released(t.Func.Args[1])), true
		}
	}
	return released(q), c.single(q)
}

// assignment is linear for an assignment.
func (c *compiler) assignment(q *gojq.Query) (*gojq.Query, bool) {
	c.depth++
	defer func() { c.depth-- }()
	p, args := c.path(q.Left)
	if p == nil || c.depth > maxNesting {
		return nil, false
	}
	to := func(change *gojq.Query) *gojq.Query { // q.Left |= change
		return bind(call(fnAt, args...), varCursor, pipe(variable(varCursor), pipe(call(fnOld),
			pipe(change, call(fnPut, variable(varCursor))))))
	}
	switch q.Op {
	case gojq.OpModify:
		change, ok := c.linear(q.Right)
		return to(change), ok
	case gojq.OpAssign:
		if sum, ok := c.sumOfItself(q); ok {
			return sum, true
		}
		return call(fnSet, append(args, released(q.Right))...), c.single(q.Right)
	}
	change := &gojq.Query{Left: identity(), Op: gojq.OpAlt, Right: variable(varRight)}
	if q.Op != gojq.OpUpdateAlt {
		change.Op = q.Op - gojq.OpUpdateAdd + gojq.OpAdd
		if inPlace[change.Op] != "" {
			change = call(inPlace[change.Op], variable(varOwner), identity(), variable(varRight))
		}
	}
	return bind(released(q.Right), varRight, to(change)), c.single(q.Right)
}

// inPlace has the functions for operators that change their left operand.
var inPlace = map[gojq.Operator]string{gojq.OpAdd: fnAdd, gojq.OpMul: fnMerge}

// sumOfItself returns p = p + x as p |= . + x, and p = (p // d) + x as p |= (. // d) + x, if neither d nor x reads
// the accumulator and d is a constant.
func (c *compiler) sumOfItself(q *gojq.Query) (*gojq.Query, bool) {
	sum := withoutParentheses(q.Right)
	if sum.Op != gojq.OpAdd || readsInput(sum.Right) || !c.single(sum.Right) {
		return nil, false
	}
	old, change := withoutParentheses(sum.Left), identity()
	if old.Op == gojq.OpAlt && slices.Contains([]string{"0", "[]", "{}", `""`, "null"}, old.Right.String()) {
		change = &gojq.Query{Left: change, Op: gojq.OpAlt, Right: old.Right}
		old = withoutParentheses(old.Left)
	}
	if old.String() != q.Left.String() {
		return nil, false
	}
	change = &gojq.Query{Left: change, Op: gojq.OpAdd, Right: variable(varRight)}
	linear, ok := c.assignment(&gojq.Query{Left: q.Left, Op: gojq.OpModify, Right: change})
	return bind(sum.Right, varRight, linear), ok
}

// path is the left side of an assignment.
type path struct {
	keys []any       // strings; nil for a key that is evaluated
	left *gojq.Query // the left side, with variables for the keys that are evaluated
}

// path returns the path of the left side of an assignment, or nil if it is not a chain of single keys. args are the
// arguments of the functions that use it: the owner, the number of the path and the keys to evaluate.
func (c *compiler) path(left *gojq.Query) (p *path, args []*gojq.Query) {
	t := withoutParentheses(left).Term
	if t == nil || t.Type != gojq.TermTypeIdentity && t.Type != gojq.TermTypeIndex {
		return nil, nil
	}
	whole := *t
	p = &path{left: &gojq.Query{Term: &whole}}
	args = []*gojq.Query{variable(varOwner), number(len(c.paths))}
	ok := true
	key := func(x *gojq.Index) *gojq.Index {
		switch {
		case x.IsSlice:
			ok = false
		case x.Start != nil && isText(x.Start):
			p.keys = append(p.keys, x.Start.Term.Str.Str)
		case x.Start != nil:
			ok = ok && c.single(x.Start)
			args = append(args, x.Start)
			p.keys = append(p.keys, nil)
			if _, err := strconv.ParseFloat(x.Start.String(), 64); err != nil { // gojq handles constant paths itself
				return &gojq.Index{Start: variable("$k" + strconv.Itoa(len(args)-3))}
			}
		case x.Str != nil:
			ok = ok && x.Str.Queries == nil
			p.keys = append(p.keys, x.Str.Str)
		default:
			p.keys = append(p.keys, x.Name)
		}
		return x
	}
	if whole.Index != nil {
		whole.Index = key(whole.Index)
	}
	whole.SuffixList = nil
	for _, s := range t.SuffixList {
		if s.Index == nil {
			return nil, nil
		}
		whole.SuffixList = append(whole.SuffixList, &gojq.Suffix{Index: key(s.Index)})
	}
	if !ok || len(args) > 2+maxKeys {
		return nil, nil
	}
	c.paths = append(c.paths, p)
	return p, args
}

// released returns an expression on the accumulator, such that its result may be kept elsewhere.
func released(q *gojq.Query) *gojq.Query {
	if !readsInput(q) {
		return q
	}
	return shared(q)
}

func shared(q *gojq.Query) *gojq.Query { return pipe(q, call(fnShare, variable(varOwner))) }

func call(name string, args ...*gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}}
}

func variable(name string) *gojq.Query { return call(name) }

func identity() *gojq.Query { return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity}} }

func number(n int) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeNumber, Number: strconv.Itoa(n)}}
}

func pipe(left, right *gojq.Query) *gojq.Query {
	return &gojq.Query{Left: left, Op: gojq.OpPipe, Right: right}
}

func bind(value *gojq.Query, name string, in *gojq.Query) *gojq.Query {
	return &gojq.Query{Left: value, Patterns: []*gojq.Pattern{{Name: name}}, Op: gojq.OpPipe, Right: in}
}

func withoutParentheses(q *gojq.Query) *gojq.Query {
	for len(q.FuncDefs) == 0 && q.Term != nil && q.Term.Type == gojq.TermTypeQuery && len(q.Term.SuffixList) == 0 {
		q = q.Term.Query
	}
	return q
}

func isIdentity(q *gojq.Query) bool {
	q = withoutParentheses(q)
	return len(q.FuncDefs) == 0 && q.Term != nil && q.Term.Type == gojq.TermTypeIdentity && len(q.Term.SuffixList) == 0
}

func isText(q *gojq.Query) bool {
	return len(q.FuncDefs) == 0 && q.Term != nil && q.Term.Type == gojq.TermTypeString && q.Term.Str.Queries == nil &&
		len(q.Term.SuffixList) == 0
}

// plain reports whether a pattern binds each variable exactly once and evaluates nothing.
func plain(p *gojq.Pattern) bool {
	return !some(p, func(node any) verdict {
		if o, ok := node.(*gojq.PatternObject); ok && (o.KeyQuery != nil || o.KeyString != nil) {
			return yes
		}
		return inside
	})
}

// readsInput reports whether the results of an expression may refer to its input. If in doubt, it returns true.
func readsInput(q *gojq.Query) bool {
	return some(q, func(node any) verdict {
		reads := false
		switch n := node.(type) {
		case *gojq.Query:
			if n.Op == gojq.OpPipe && len(n.FuncDefs)+len(n.Patterns) == 0 {
				return verdictOf(readsInput(n.Left))
			}
			reads = len(n.FuncDefs) > 0
		case *gojq.ObjectKeyVal:
			reads = n.Val == nil && !strings.HasPrefix(n.Key, "$")
		case *gojq.If:
			reads = n.Else == nil
		case *gojq.Term:
			switch n.Type {
			case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber, gojq.TermTypeObject,
				gojq.TermTypeArray, gojq.TermTypeUnary, gojq.TermTypeString, gojq.TermTypeIf, gojq.TermTypeQuery:
			default:
				reads = n.Func == nil || !strings.HasPrefix(n.Func.Name, "$")
			}
		}
		if reads {
			return yes
		}
		return inside
	})
}

// singles are functions of gojq that have one result if each argument has one. Those in closed have one in any
// case.
var (
	singles = strings.Fields(`length utf8bytelength keys has add toboolean tonumber tostring type reverse contains inside
		indices index rindex startswith endswith ltrimstr rtrimstr trimstr ltrim rtrim trim explode implode split join
		ascii_downcase ascii_upcase tojson fromjson flatten min max sort unique floor round ceil trunc fabs sqrt pow log
		log2 log10 exp exp2 exp10 infinite nan isinfinite isnan isnormal abs not to_entries from_entries first last nth
		setpath getpath delpaths transpose bsearch gmtime mktime strftime strptime now todate fromdate error test in env
		significand logb sub gsub`)
	closed = strings.Fields(`add map map_values sort_by group_by unique_by min_by max_by any all isempty del with_entries
		IN`)
)

// single reports whether an expression has exactly one result per input, unless it fails. In doubt it is false.
func (c *compiler) single(q *gojq.Query) bool { return !some(q, c.multiplies) }

// multiplies says whether a node may have another number of results.
func (c *compiler) multiplies(node any) verdict {
	switch n := node.(type) {
	case *gojq.Suffix:
		if n.Index == nil {
			return yes
		}
	case *gojq.Query:
		switch {
		case len(n.FuncDefs) > 0, n.Op == gojq.OpComma, len(n.Patterns) > 1, len(n.Patterns) == 1 && !plain(n.Patterns[0]):
			return yes
		case gojq.OpModify == n.Op: // one result, maybe without the members whose change has none
			return no
		case gojq.OpAssign <= n.Op && n.Op <= gojq.OpUpdateAlt:
			return verdictOf(!c.single(n.Right))
		}
	case *gojq.Term:
		return c.termMultiplies(n)
	}
	return inside
}

func (c *compiler) termMultiplies(t *gojq.Term) verdict {
	var counts any // the part that decides beside the suffixes
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber,
		gojq.TermTypeIndex, gojq.TermTypeObject, gojq.TermTypeUnary, gojq.TermTypeFormat, gojq.TermTypeString,
		gojq.TermTypeIf, gojq.TermTypeQuery:
		return inside
	case gojq.TermTypeArray:
	case gojq.TermTypeReduce:
		counts = t.Reduce.Start
	case gojq.TermTypeFunc:
		name, args := t.Func.Name, t.Func.Args
		isGenerator := (name == "first" || name == "last" || name == "nth" && len(args) == 2) && len(args) > 0
		switch {
		case strings.HasPrefix(name, "$"):
		case slices.Contains(c.defined, name):
			return yes
		case slices.Contains(closed, name) && len(args) > 0:
		case isGenerator || !slices.Contains(singles, name):
			return yes
		default:
			counts = args
		}
	default:
		return yes
	}
	return verdictOf(some(t.SuffixList, c.multiplies) || some(counts, c.multiplies))
}
