package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// A mutant inside a function becomes a copy of the function with the fault, and the function calls the copy while the
// mutant is switched on. A mutant inside the value of a variable becomes a choice between two values. Both leave the
// types as they are, so that any text can be a mutant that compiles in place.

// numbered is a mutant with the number that switches it on.
type numbered struct {
	Mutant
	n int
}

// insertion is text that goes in front of the byte at an offset.
type insertion struct {
	at   int
	text string
}

// addSwitches returns the source of a file with its mutants built in.
func addSwitches(src []byte, mutants []numbered) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, mutants[0].File, src, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	text := func(from, to token.Pos) string { return string(src[offset(from):offset(to)]) }

	var inserted []insertion
	var copies strings.Builder
	functions := map[*ast.FuncDecl]bool{} // whose parameters have names now
	var errs []error
	for _, m := range mutants {
		at, err := m.position(src)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		end := at + len(m.Old)
		switch decl := enclosing(file, offset, at, end).(type) {
		case *ast.FuncDecl:
			changed := string(src[offset(decl.Name.End()):at]) + m.New + string(src[end:offset(decl.End())])
			fmt.Fprintf(&copies, "\n//line %s mutant %d:1\n%s%s%s\n", m.File, m.n,
				text(decl.Pos(), decl.Name.Pos()), copyName(decl, m.n), changed)
			names := nameParameters(decl, offset, !functions[decl], &inserted)
			functions[decl] = true
			inserted = append(inserted, insertion{offset(decl.Body.Lbrace) + 1, dispatch(decl, m.n, names)})
		case *ast.ValueSpec:
			value := valueAround(decl, offset, at, end)
			if value == nil {
				errs = append(errs, fmt.Errorf("%s: %q is not within the value of a variable", m.File, m.Old))
				continue
			}
			changed := string(src[offset(value.Pos()):at]) + m.New + string(src[end:offset(value.End())])
			explicit := ""
			if decl.Type != nil {
				explicit = "[" + text(decl.Type.Pos(), decl.Type.End()) + "]"
			}
			inserted = append(inserted,
				insertion{offset(value.Pos()), fmt.Sprintf("mutantValue%s(%d, %s, ", explicit, m.n, changed)},
				insertion{offset(value.End()), ")"})
		default:
			errs = append(errs, fmt.Errorf("%s: %q is neither in a function nor in the value of a package variable",
				m.File, m.Old))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}

	slices.SortStableFunc(inserted, func(a, b insertion) int { return a.at - b.at })
	var out bytes.Buffer
	last := 0
	for _, i := range inserted {
		out.Write(src[last:i.at])
		out.WriteString(i.text)
		last = i.at
	}
	out.Write(src[last:])
	out.WriteString(copies.String())
	return out.Bytes(), nil
}

// position returns the offset of the text that a mutant replaces.
func (m Mutant) position(src []byte) (int, error) {
	switch bytes.Count(src, []byte(m.Old)) {
	case 0:
		return 0, fmt.Errorf("%s: the text %q is gone; change or remove its mutant", m.File, m.Old)
	case 1:
		return bytes.Index(src, []byte(m.Old)), nil
	}
	return 0, fmt.Errorf("%s: the text %q occurs more than once; take more of the lines around it", m.File, m.Old)
}

// enclosing returns the function or the variable in which a stretch of the source lies.
func enclosing(file *ast.File, offset func(token.Pos) int, at, end int) ast.Node {
	within := func(n ast.Node) bool { return offset(n.Pos()) <= at && end <= offset(n.End()) }
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Body != nil && within(d.Body) {
				return d
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR && within(v) {
					return v
				}
			}
		}
	}
	return nil
}

func valueAround(spec *ast.ValueSpec, offset func(token.Pos) int, at, end int) ast.Expr {
	for _, v := range spec.Values {
		if offset(v.Pos()) <= at && end <= offset(v.End()) {
			return v
		}
	}
	return nil
}

func copyName(f *ast.FuncDecl, n int) string { return fmt.Sprintf("%s__mutant%d", f.Name.Name, n) }

// nameParameters returns the arguments that pass a function's receiver and parameters on. Where insert is set, those
// without a name get one.
func nameParameters(f *ast.FuncDecl, offset func(token.Pos) int, insert bool, inserted *[]insertion) (names []string) {
	n := 0
	fields := func(list *ast.FieldList) (names []string) {
		if list == nil {
			return nil
		}
		for _, field := range list.List {
			spread := ""
			if _, ok := field.Type.(*ast.Ellipsis); ok {
				spread = "..."
			}
			if len(field.Names) == 0 {
				name := fmt.Sprintf("mutant%d", n)
				n++
				if insert {
					*inserted = append(*inserted, insertion{offset(field.Type.Pos()), name + " "})
				}
				names = append(names, name+spread)
			}
			for _, ident := range field.Names {
				name := ident.Name
				if name == "_" {
					name = fmt.Sprintf("_mutant%d", n)
					n++
					if insert {
						*inserted = append(*inserted, insertion{offset(ident.End()), name[1:]})
					}
				}
				names = append(names, name+spread)
			}
		}
		return names
	}
	receiver := fields(f.Recv)
	if receiver == nil {
		receiver = []string{""}
	}
	return append(receiver, fields(f.Type.Params)...)
}

// dispatch is the statement that calls the copy of a function while its mutant is switched on. The first name is the
// receiver's.
func dispatch(f *ast.FuncDecl, n int, names []string) string {
	callee := copyName(f, n)
	if names[0] != "" {
		callee = names[0] + "." + callee
	}
	if f.Type.TypeParams != nil {
		var types []string
		for _, field := range f.Type.TypeParams.List {
			for _, ident := range field.Names {
				types = append(types, ident.Name)
			}
		}
		callee += "[" + strings.Join(types, ", ") + "]"
	}
	call := callee + "(" + strings.Join(names[1:], ", ") + ")"
	if f.Type.Results.NumFields() == 0 {
		return fmt.Sprintf(" if mutantOn(%d) { %s; return }; ", n, call)
	}
	return fmt.Sprintf(" if mutantOn(%d) { return %s }; ", n, call)
}

// switchFile is what a package needs to switch its mutants: the number of the one that is on is read from a file when
// the process starts, because some children of tests get no environment; which ones are reached is written to another,
// which is opened then, too, because some children soon may open no more files.
const switchFile = `package %s

import (
	"fmt"
	"os"
	"sync"
)

var (
	mutantNumber  = readMutant(%q)
	mutantReached sync.Map
	mutantLog     = openMutantLog(%q)
)

func readMutant(file string) int {
	n := 0
	if raw, err := os.ReadFile(file); err == nil {
		fmt.Sscan(string(raw), &n)
	}
	return n
}

func openMutantLog(file string) *os.File {
	if mutantNumber >= 0 {
		return nil
	}
	f, _ := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	return f
}

func mutantOn(n int) bool {
	if mutantNumber >= 0 {
		return mutantNumber == n
	}
	if _, seen := mutantReached.LoadOrStore(n, true); !seen {
		fmt.Fprintln(mutantLog, n)
	}
	return false
}

func mutantValue[T any](n int, changed, original T) T {
	if mutantOn(n) {
		return changed
	}
	return original
}
`
