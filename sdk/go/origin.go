//go:build !wasip1

package sdk

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
)

// origin records where a tool is defined, for its schemas and its docs.
type origin struct {
	params, result reflect.Type
	pc             uintptr
}

func originOf[P, R any](run any) origin {
	return origin{reflect.TypeFor[P](), reflect.TypeFor[R](), reflect.ValueOf(run).Pointer()}
}

// schemas returns the schemas of the tool's parameters and result. Hints go to b unless it is nil.
func (t *Definition) schemas(b *builder) (params, result *schema, err error) {
	folder, pkg := source(t.pc)
	if params, err = newReflector(folder, pkg, b).object(t.params); err != nil {
		return nil, nil, fmt.Errorf("parameters: %w", err)
	}
	if result, err = newReflector(folder, pkg, b).result(t.result); err != nil {
		return nil, nil, fmt.Errorf("result: %w", err)
	}
	return params, result, nil
}

// source returns the folder and the import path of the package that contains the function at pc.
func source(pc uintptr) (folder, pkg string) {
	f := runtime.FuncForPC(pc)
	file, _ := f.FileLine(pc)
	folder = filepath.Dir(file)
	if _, err := os.Stat(folder); err != nil {
		folder = "." // built with -trimpath: go run and go test run in the package's folder
	}
	pkg = f.Name()
	slash := strings.LastIndexByte(pkg, '/') + 1
	if dot := strings.IndexByte(pkg[slash:], '.'); dot >= 0 {
		pkg = pkg[:slash+dot]
	}
	return folder, strings.ReplaceAll(pkg, "%2e", ".")
}

// comments finds the doc comments of struct fields in the source of packages.
type comments struct {
	folder, pkg string                       // the tool's own package
	byPackage   map[string]map[string]string // import path -> "Type.Field" -> text
}

// field returns the doc comment of a field. Path is "Type.Field", or
// "Type.Field.Field" inside a struct type without a name.
func (c *comments) field(pkg, path string) (string, error) {
	texts, ok := c.byPackage[pkg]
	if !ok {
		folder, err := c.folderOf(pkg)
		if err != nil {
			return "", err
		}
		if texts, err = fieldComments(folder); err != nil {
			return "", err
		}
		c.byPackage[pkg] = texts
	}
	return texts[path], nil
}

func (c *comments) folderOf(pkg string) (string, error) {
	switch {
	case pkg == c.pkg && c.folder != "":
		return c.folder, nil
	case pkg == "main":
		return ".", nil
	}
	found, err := build.Import(pkg, ".", build.FindOnly)
	if err != nil {
		return "", fmt.Errorf("source of package %s: %w", pkg, err)
	}
	return found.Dir, nil
}

func fieldComments(folder string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	var errs []error
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if t, ok := n.(*ast.TypeSpec); ok {
				collect(texts, t.Name.Name, t.Type)
			}
			return true
		})
	}
	return texts, errors.Join(errs...)
}

func collect(texts map[string]string, path string, t ast.Expr) {
	switch t := t.(type) {
	case *ast.StarExpr:
		collect(texts, path, t.X)
	case *ast.ArrayType:
		collect(texts, path, t.Elt)
	case *ast.MapType:
		collect(texts, path, t.Value)
	case *ast.StructType:
		for _, f := range t.Fields.List {
			text := f.Doc.Text()
			if text == "" {
				text = f.Comment.Text()
			}
			for _, name := range f.Names {
				texts[path+"."+name.Name] = strings.Join(strings.Fields(text), " ")
				collect(texts, path+"."+name.Name, f.Type)
			}
		}
	}
}

// warm has nothing to do here.
func warm() {}
