// Command weight builds a plugin for each of several imports and prints, as a table, what the import adds to it. With
// -update FILE it writes the table into a document of the tree, between the comments that mark it.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/parley-tools/parley/bench/internal/tree"
)

// guests use an import, so that the linker keeps what its users need. text is a variable that the linker cannot
// evaluate.
var guests = []struct{ name, imports, use string }{
	{"nothing", "", ""},
	{"`strings`", `"strings"`, `text = strings.ReplaceAll(text, ".", "/")`},
	{"`strconv`", `"strconv"`, `n, _ := strconv.Atoi(text); text = strconv.Itoa(n) + strconv.Quote(text)`},
	{"`errors`", `"errors"`, `var e interface{ Timeout() bool }; if errors.As(errors.New(text), &e) { text = "" }`},
	{"`encoding/base64`", `"encoding/base64"`, `text = base64.StdEncoding.EncodeToString([]byte(text))`},
	{"`time`", `"time"`, `text = time.Duration(len(text)).String()`},
	{"`os`", `"os"`, `text = os.Args[0]`},
	{"`reflect`", `"reflect"`, `v := reflect.ValueOf(&text).Elem(); for i := range v.NumField() { v.Field(i).SetZero() }`},
	{"`regexp`", `"regexp"`, `text = regexp.MustCompile(text).FindString(text)`},
	{"`fmt`", `"fmt"`, `text = fmt.Sprintf("%v", text)`},
	{"`encoding/json`, which imports `fmt`", `"encoding/json"`, `_ = json.Unmarshal([]byte(text), &text)`},
	{"the SDK, which imports `encoding/json`", `sdk "github.com/parley-tools/parley/sdk/go"`, `type P struct{ A string }
		sdk.Register(sdk.Plugin{Name: text, Tools: []sdk.Definition{
			sdk.Tool(text, func(*sdk.Call, P) (P, error) { return P{}, nil }, sdk.Doc{}),
		}})`},
	{"the SDK, `fmt`, `regexp`, `os`", `("fmt"; "os"; "regexp"; sdk "github.com/parley-tools/parley/sdk/go")`,
		`type P struct{ A string }
		sdk.Register(sdk.Plugin{Name: text, Tools: []sdk.Definition{
			sdk.Tool(text, func(_ *sdk.Call, p P) (P, error) {
				return P{regexp.MustCompile(p.A).FindString(fmt.Sprintf("%v", os.Args))}, nil
			}, sdk.Doc{}),
		}})`},
}

func main() {
	update := flag.String("update", "", "the document to write the table into")
	flag.Parse()
	tree.Main("weight", func(ctx context.Context) error { return run(ctx, *update, os.Stdout) })
}

func run(ctx context.Context, update string, out io.Writer) error {
	table := "| imported | wasm, KB | gzip, KB | data, KB | functions in the table |\n|---|---:|---:|---:|---:|\n"
	for _, g := range guests {
		wasm, err := build(ctx, g.imports, g.use)
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		data, elements, err := inspect(wasm)
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		_, _ = zip.Write(wasm) // a buffer takes everything
		_ = zip.Close()
		table += fmt.Sprintf("| %s | %d | %d | %d | %d |\n", g.name, len(wasm)/1000, packed.Len()/1000, data/1000, elements)
	}
	if update == "" {
		_, err := io.WriteString(out, table)
		return err
	}
	return tree.Section{File: update, Name: "weight"}.Write(table)
}

// build compiles a reactor as parley plugin build does. Its source is in an overlay, so that it belongs to the module
// of the SDK.
func build(ctx context.Context, imports, use string) ([]byte, error) {
	work, err := os.MkdirTemp("", "parley-weight-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	if imports != "" {
		imports = "import " + imports
	}
	source := fmt.Sprintf("package main\n%s\nvar text = \"x\"\nfunc init() { %s }\nfunc main() {}\n"+
		"//go:wasmexport other\nfunc other() { text += \"x\" }\n", imports, use)
	const place = "sdk/internal/guest"
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root, filepath.FromSlash(place), "main.go"): filepath.Join(work, "main.go"),
	}})
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{"main.go": []byte(source), "overlay.json": overlay} {
		if err := os.WriteFile(filepath.Join(work, name), text, 0o644); err != nil {
			return nil, err
		}
	}
	built := filepath.Join(work, "guest.wasm")
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", filepath.Join(work, "overlay.json"), "-trimpath",
		"-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o", built, "./"+place)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWASM=", "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return os.ReadFile(built)
}

// inspect returns how many bytes the data segments of a module have, and how many functions its table.
func inspect(wasm []byte) (data, elements int, err error) {
	const header, elementSection, dataSection = 8, 9, 11
	for at := header; at < len(wasm); {
		id := wasm[at]
		size, n := binary.Uvarint(wasm[at+1:])
		if n <= 0 || size > uint64(len(wasm)-at-1-n) {
			return 0, 0, errors.New("a section does not end within the module")
		}
		body := wasm[at+1+n:][:size]
		switch id {
		case dataSection:
			data = len(body)
		case elementSection: // of one segment: its flags, an offset that ends with 0x0b, and the number of functions
			if _, rest, found := bytes.Cut(body, []byte{0x0b}); found {
				count, _ := binary.Uvarint(rest)
				elements = int(count)
			}
		}
		at += 1 + n + int(size)
	}
	return data, elements, nil
}
