package repo

import (
	"go/ast"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docLink is a link of a doc comment: [Name], [Type.Member], [pkg.Name] or [pkg.Type.Member].
var docLink = regexp.MustCompile(`\[\*?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,2})\]`)

// names are what a package declares: "Name", and "Type.Member" for methods and fields.
type names map[string]bool

// like returns the name that differs from another in the case of letters only, "" if there is none.
func (n names) like(name string) string {
	for known := range n {
		if strings.EqualFold(known, name) {
			return known
		}
	}
	return ""
}

// camelCase matches what can only be a name in the code.
var camelCase = regexp.MustCompile(`^[A-Za-z][a-z0-9]+[A-Z][A-Za-z0-9]*$`)

// TestCommentsNameWhatExists checks that a comment names its declaration as that is named, and that links lead to names
// of the module: what is renamed or moved takes its comments along.
func TestCommentsNameWhatExists(t *testing.T) {
	declared := map[string]names{}
	for _, s := range sources(t) {
		if declared[s.dir] == nil {
			declared[s.dir] = names{}
		}
		declare(s.ast, declared[s.dir])
	}
	for _, s := range sources(t) {
		if ast.IsGenerated(s.ast) {
			continue
		}
		eachDoc(s.ast, func(name string, doc *ast.CommentGroup) {
			first, _, _ := strings.Cut(strings.TrimSpace(doc.Text()), " ")
			if strings.EqualFold(first, name) && first != name && strings.ToLower(first) == first &&
				(len(first) > 4 || first == "new") {
				t.Errorf("%s: the comment of %s begins with %q", fileSet.Position(doc.Pos()), name, first)
			}
			if camelCase.MatchString(first) && first != name && first != "JavaScript" {
				t.Errorf("%s: the comment of %s begins with another name, %s", fileSet.Position(doc.Pos()), name, first)
			}
		})
		for _, group := range s.ast.Comments {
			for _, link := range docLink.FindAllStringSubmatch(group.Text(), -1) {
				in, name := declared[s.dir], link[1]
				if first, rest, qualified := strings.Cut(name, "."); qualified && !in[first] {
					dir := importedAs(s.ast, first)
					if dir == "" || declared[dir] == nil { // a package that the file does not import, or another module
						if like := in.like(first); like != "" {
							t.Errorf("%s: [%s] is %s now", fileSet.Position(group.Pos()), first, like)
						}
						continue
					}
					if in, name = declared[dir], rest; !in[name] {
						t.Errorf("%s: [%s] is not in %s", fileSet.Position(group.Pos()), link[1], dir)
					}
				} else if like := in.like(name); !in[name] && like != "" && importedAs(s.ast, name) == "" {
					t.Errorf("%s: [%s] is %s now", fileSet.Position(group.Pos()), name, like)
				} else if qualified && !in[name] && ast.IsExported(first) {
					t.Errorf("%s: [%s] does not exist", fileSet.Position(group.Pos()), name)
				}
			}
		}
	}
}

// importedAs returns the folder of the module's package that a file imports under a name, "" if it imports none.
func importedAs(f *ast.File, name string) string {
	for _, spec := range f.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		as := imported[strings.LastIndexByte(imported, '/')+1:]
		if spec.Name != nil {
			as = spec.Name.Name
		}
		if dir, ours := strings.CutPrefix(imported, module+"/"); as == name && ours {
			return dir
		} else if as == name && imported == module {
			return "."
		}
	}
	return ""
}

// declare adds what a file declares.
func declare(f *ast.File, all names) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			all[memberName(d)] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						all[n.Name] = true
					}
				case *ast.TypeSpec:
					all[spec.Name.Name] = true
					ast.Inspect(spec.Type, func(n ast.Node) bool {
						if field, ok := n.(*ast.Field); ok {
							for _, n := range field.Names {
								all[spec.Name.Name+"."+n.Name] = true
							}
							if len(field.Names) == 0 { // what is embedded may have any member
								all[spec.Name.Name+"."+baseName(field.Type)] = true
							}
						}
						return true
					})
				}
			}
		}
	}
}

// memberName returns "Name" of a function and "Type.Name" of a method.
func memberName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	return baseName(d.Recv.List[0].Type) + "." + d.Name.Name
}

// eachDoc calls a function with each declaration, method and field that has a comment of its own.
func eachDoc(f *ast.File, do func(name string, doc *ast.CommentGroup)) {
	ast.Inspect(f, func(n ast.Node) bool {
		var name *ast.Ident
		var doc *ast.CommentGroup
		switch n := n.(type) {
		case *ast.FuncDecl:
			name, doc = n.Name, n.Doc
		case *ast.TypeSpec:
			name, doc = n.Name, n.Doc
		case *ast.GenDecl:
			if spec, ok := n.Specs, n.Doc != nil && len(n.Specs) == 1; ok {
				switch spec := spec[0].(type) {
				case *ast.TypeSpec:
					name, doc = spec.Name, n.Doc
				case *ast.ValueSpec:
					name, doc = spec.Names[0], n.Doc
				}
			}
		case *ast.Field:
			if len(n.Names) == 1 {
				name, doc = n.Names[0], n.Doc
			}
		}
		if name != nil && doc != nil {
			do(name.Name, doc)
		}
		return true
	})
}
