package repo

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// maxLines are the lines of product code that each room may have: lines that hold a token, without tests, testdata and
// generated files. A folder belongs to the room with the longest matching path. Lower a number freely; raise one only
// with a reason beside it. Shared types are in several packages below host; imports count as lines.
var maxLines = map[string]int{
	".":                        881,   // redaction; logins; kind http; tracers; approvals; quotas; what a fleet adds
	"manifest":                 12097, // lone surrogates; keys; secrets; kind http; unions; texts; briefs; rules
	"host/call":                2946,  // credentials for the operator; peers; plans; quotas; usage; busy; programs; fields
	"host/overlay":             553,   // the edits themselves, from host; of examples and deprecations in their place
	"host/search":              272,   // long queries; the order of plugins, by trust, from host/call; whole names
	"host/redact":              647,   // every text of an event; secrets without a login; untrusted texts; base64 twice
	"host/session":             474,   // names of sessions and media types of results, from host; no secrets in sessions
	"host":                     1376,  // inner errors; violations; templates; tracers; approvals; quotas; near names
	"host/approval":            96,    // from host, as the next six
	"host/caller":              90,    // who asks; what the trace of a request shows
	"host/grant":               119,   // rights, limits, quotas; the names of denials, from host/rights
	"host/job":                 178,   // what a provider gets, asks, returns
	"host/outbound":            148,   // the JSON of requests, from host/call
	"host/segment":             49,
	"host/step":                203,   // next steps, suggestions
	"host/quota":               203,   // of callers, in files that processes share
	"host/rights":              72,    // of one call, by name
	"host/approve":             446,   // what waits for a person, in files; all who may answer are asked
	"host/policy":              3377,  // settings, secrets, logins; quotas; confirmation; pools; Check; full disks; TOML
	"host/egress":              869,   // secrets in the query, as basic credentials, as cookies; tracers
	"host/protect":             890,   // files out of reach; what identifies a file, from four rooms; links to folders
	"host/api/openapi":         1812,  // OpenAPI 3.0, 3.1, Swagger 2: names, texts (once each), schemas; rights; others
	"host/internal/index":      3436,  // the file of merged segments, which host had; order of plugins; certainty; briefs
	"host/record":              2157,  // marks of redaction; turns of writers; tools of callers; costs; pages; copies
	"host/mcp":                 5021,  // options; roots; ids; pins, also large; tokens; drains; traces; lost streams
	"host/wasm":                10929, // compilations ahead; imports; the index; caches; other machines; no manifest
	"host/learn":               4228,  // texts that say nothing; names; time and depth; contrasts; what misleads; CPU
	"host/docs":                1040,  // references of skills, llms.txt and the block of AGENTS.md
	"host/api":                 882,   // logins; requests by bindings, styles in all places, answers, next pages
	"host/login":               440,   // OAuth 2.1: discovery, registration, PKCE, redirect, refresh, revoking, APIs
	"host/signature":           352,
	"host/oci":                 1047, // what a word names, and how it is fetched, from the commands; tags; indexes
	"host/jq":                  316,  // the filter that runs in the sandbox; panics of gojq
	"host/advice":              2003, // templates; names of peers; estimates; plans of examples; steps; options of others
	"host/providertest":        295,
	"internal/contain":         282,
	"internal/slots":           243,   // turns of callers, also of those who wait for other machines; waking all
	"internal/wire":            397,   // a command that starts this binary, from host; grants by their names
	"cdp":                      6152,  // what page uses of it; attaching, by an address or a path; examples that ran
	"cdp/page":                 797,   // words of page, what its calls need; pictures compared; here against new; steps
	"cdp/internal/keeper":      9582,  // names of downloads; rules of origins; panics; failed steps; advice, from cdp
	"cdp/internal/keeper/page": 7333,  // lists, grips, trees, maps, PDFs; dates by form; frames; tags; pictures; typing
	"plugins":                  3452,  // json: types from samples, a validator, repairs of YAML and TOML, quotes, anchors
	"sdk":                      1920,  // bounds of types; values that a decoder refuses are named; misspelt tags
	"cmd/parleyd":              1611,  // the service, a module of its own; a fleet, its accounts and records; help; types
	"cmd":                      14622, // documents in the binary; logins; names, times; other programs; groups of APIs
	"internal":                 1355,  // plugins and the program for tests, locked; schemas with bounds; deadlines
	"host/admit":               1431,  // older versions, confirmed; tools in use; what is published; full disks
	"internal/durable":         102,   // writing a file, which four rooms did themselves
	"internal/lazy":            18,    // patterns and sets of words on first use, which five rooms had
	"internal/lists":           32,    // what loops in all rooms did
	"internal/query":           1134,  // filters in linear time, which gojq copies containers for; walks of values, in Go
	"internal/reasons":         83,    // what two tests had
	"internal/sample":          23,    // what the tests of five packages had
	"internal/wasmtest":        536,   // modules that tests build, and attacks, from the tests of host/wasm
	"host/commandline":         145,   // contexts
	"host/origin":              343,
	"host/option":              224, // contexts; all options that may stand among parameters
	"host/reference":           168, // what a plan does not find; what there is

	"cmd/parleyd/internal/telemetry":       624,  // spans, metrics and logs of the service; links, revisions, sessions
	"cmd/parleyd/internal/fleet":           2772, // fronts, workers, policy; renewal, limits; windows of messages
	"cmd/parleyd/internal/fleet/fleettest": 399,  // NATS for tests, a network that fails or is slow; children, waiting
}

// maxHostDoc are the lines of go doc -all ./host: the words that every room shares. Lower it freely, and raise it only
// with a reason.
const maxHostDoc = 851

// Bounds of every package and type; the tables below them list what does not keep them yet, with what it has today.
// Take an entry out when it is no longer needed, and never add one.
const (
	maxPackageLines = 3000
	maxPackageFiles = 25
	maxMethods      = 40
	maxFields       = 20
	maxFunction     = 75
	maxRepeated     = 12 // lines in the bodies of two functions, from which on they repeat each other
)

var largePackages = map[string][2]int{ // lines, files
	"manifest/schema": {3158, 11}, // inputs that a program names; unions, their texts; formats; keys; objects
}

// longest has the functions with more lines than maxFunction.
var longest = map[string]int{
	"cdp/internal/protocol.write":           93,
	"cmd/parley/internal/tools.listen":      77,
	"host/internal/index.rescore":           98,
	"host/mcp/envelope.correctEnvelope":     86,
	"host/wasm/internal/instrument.rewrite": 132,
	"manifest.Text":                         77,
}

// singleCallers has the packages with more than one function that one place of another package uses.
var singleCallers = map[string]int{
	"cdp/internal/browser":          5,
	"cdp/internal/keeper":           9,
	"cdp/internal/keeper/api":       4,
	"cmd/parley/internal/command":   9,
	"cmd/parley/internal/documents": 2,
	"cmd/parley/internal/tools":     6,
	"host/internal/index":           2,
	"host/internal/index/language":  2,
	"host/wasm/internal/guest":      5,
	"host/wasm/internal/instrument": 3,
	"host/wasm/internal/module":     5,
	"internal/contain":              3,
	"internal/durable":              2,
}

// usedByTests are functions that other packages use in tests only.
var usedByTests = []string{
	"cdp/internal/browser.NewPipe", "cdp/internal/keeper/event.IsRecorded", "cdp/internal/keeper/verb.ReadStorage",
	"cdp/internal/keeper/verb.HasNative", "cdp/internal/keeper/verb.WriteStorage",
	"cmd/parley/internal/command.StartingWith",
	"cmd/parley/internal/command.TargetWords", "cmd/parley/internal/tools.Described",
	"host/wasm/internal/guest.NewExtismKernel", "host/wasm/internal/guest.ServeGuest",
	"host/wasm/internal/module.RewriteModule", "host/wasm/internal/module.ToolchainOf",
	"host/wasm/internal/world.RenameOver", "internal/wire.ErrorOf",
}

// manyFields also has the structs that mirror a document or a record, whose fields it gives.
var manyFields = map[string]int{
	"cdp/internal/keeper/api.Status": 25,
	"host/record/audit.Record":       29,
	"host.Error":                     22, // its object; the approval; the place in a line
	"host.Event":                     35,
	"host.Record":                    29,
	"manifest.Manifest":              23, // its API, the document it is derived from
	"manifest.Tool":                  29, // its request
	"manifest.ToolDocs":              38,
	"sdk/go.Doc":                     26,
	"sdk/go.schema":                  26, // x-assert
}

// lineCount returns the lines of a Go file on which a token stands.
func lineCount(data []byte) int {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(data))
	var s scanner.Scanner
	s.Init(file, data, nil, 0)
	lines := map[int]bool{}
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			return len(lines)
		}
		if kind == token.SEMICOLON && text == "\n" {
			continue
		}
		first := file.Line(pos)
		for i := range strings.Count(text, "\n") + 1 {
			lines[first+i] = true
		}
	}
}

// product returns the product's files: what tests and other modules have does not count.
func product(t *testing.T) (all []source) {
	t.Helper()
	for _, s := range sources(t) {
		if !s.test && !ast.IsGenerated(s.ast) && s.dir != "bench" && !strings.HasPrefix(s.dir, "bench/") {
			all = append(all, s)
		}
	}
	return all
}

// gates are what holds the product small. Each returns what exceeds a bound.
var gates = map[string]func(files []source) []string{
	"rooms":     roomFaults,
	"packages":  packageFaults,
	"types":     typeFaults,
	"functions": functionFaults,
	"callers":   callerFaults,
	"repeats":   repeatFaults,
}

func TestProductIsSmall(t *testing.T) {
	files := product(t)
	for name, gate := range gates {
		for _, fault := range gate(files) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// TestGates checks that each gate finds what it is for, in files that are right but for that.
func TestGates(t *testing.T) {
	statements := func(n int, each string) string {
		return "func one() {\n" + strings.Repeat(each+"\n", n) + "}\n"
	}
	fields := func(n int) (all string) {
		for i := range n {
			all += "\tf" + strconv.Itoa(i) + " int\n"
		}
		return all
	}
	methods := func(kind string, n int) (all string) {
		for i := range n {
			all += "func (" + kind + ") m" + strconv.Itoa(i) + "() {}\n"
		}
		return all
	}
	manyFiles := map[string]string{}
	for i := range maxPackageFiles + 1 {
		manyFiles["host/jq/f"+strconv.Itoa(i)+".go"] = ""
	}
	var different []string // statements that differ in the names that they call only
	for i := range maxRepeated {
		different = append(different, "a"+strconv.Itoa(i)+".set(b, "+strconv.Itoa(i)+")")
	}
	body := strings.Join(different, "\n")
	const inner, user = "internal/slots/a.go", "host/wasm/b.go"
	use := "import \"" + module + "/internal/slots\"\n"
	for _, c := range []struct {
		gate  string
		files map[string]string
		want  string // part of the one fault
	}{
		{"rooms", map[string]string{"host/jq/a.go": statements(maxLines["host/jq"], "one()")}, "host/jq has "},
		{"rooms", map[string]string{"host/jq/deep/a.go": statements(maxLines["host/jq"], "one()")}, "host/jq has "},
		{"rooms", map[string]string{"newroom/a.go": statements(maxLines["."], "one()")}, ". has "},
		{"packages", map[string]string{"host/mcp/a.go": statements(maxPackageLines, "one()")}, "host/mcp has "},
		{"packages", manyFiles, "in 26 files, at most 3000 in 25"},
		{"types", map[string]string{"host/a.go": "type t struct {\n" + fields(maxFields+1) + "}\n"}, "host.t has 21 fields"},
		{"types", map[string]string{"host/a.go": "type t struct{ a, b " + strings.Repeat(", c", maxFields-1) + " int }\n"},
			"host.t has 21 fields"},
		{"types", map[string]string{"host/a.go": "type t struct{}\n" + methods("t", maxMethods+1)}, "host.t has 41 methods"},
		{"types", map[string]string{"host/a.go": "type t struct{}\n" + methods("t", 21),
			"host/b.go": "type u struct{ *t }\n" + methods("*u", 20)}, "host.u has 41 methods"},
		{"functions", map[string]string{"host/a.go": statements(maxFunction, "one()")}, "host/a.go:2: one has "},
		{"callers", map[string]string{inner: "func Unused() {}\n"}, ""}, // no other package uses it: a tool, or for tests
		{"callers", map[string]string{inner: "func Used() {}\nfunc Unused() {}\n", user: use +
			"func f() { slots.Used(); slots.Used() }\n"}, "internal/slots.Unused"},
		{"callers", map[string]string{inner: "func A() {}\nfunc B() {}\n", user: use +
			"func f() { slots.A(); slots.B() }\n"}, "internal/slots.A, internal/slots.B"},
		{"callers", map[string]string{inner: "func A() {}\nfunc B() {}\n", user: use +
			"func f() { slots.A(); slots.B(); slots.B() }\n"}, ""},
		{"repeats", map[string]string{"host/a.go": "func f() {\n" + body + "\n}\n", "host/jq/b.go": "func g() {\n" +
			strings.ReplaceAll(body, "b, ", "other, ") + "\n}\n"}, "host/a.go:3"},
		{"repeats", map[string]string{"host/a.go": "func f() {\n" + body + "\n}\n", "host/jq/b.go": "func g() {\n" +
			strings.Join(different[1:], "\n") + "\n}\n"}, ""},
	} {
		var files []source
		for name, text := range c.files {
			s, err := parseSource(name, []byte("package "+path.Base(path.Dir(name))+"\n"+text))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, s)
		}
		slices.SortFunc(files, func(a, b source) int { return strings.Compare(a.path, b.path) })
		faults := gates[c.gate](files)
		if c.want == "" && len(faults) > 0 {
			t.Errorf("%s finds %q in %.300q", c.gate, faults, c.files)
		}
		if c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], c.want)) {
			t.Errorf("%s finds %q in %.300q, instead of %q", c.gate, faults, c.files, c.want)
		}
	}
}

// roomFaults counts the lines of rooms.
func roomFaults(files []source) (faults []string) {
	lines := map[string]int{}
	for _, s := range files {
		room := s.dir
		for maxLines[room] == 0 && room != "." {
			room = path.Dir(room)
		}
		lines[room] += lineCount(s.text)
	}
	for room, n := range lines {
		if n > maxLines[room] {
			faults = append(faults, fmt.Sprintf(
				"%s has %d lines, at most %d: find what can go; else raise the number, with the reason beside it", room, n,
				maxLines[room]))
		}
	}
	return faults
}

// packageFaults counts the lines and files of packages.
func packageFaults(all []source) (faults []string) {
	lines, files := map[string]int{}, map[string]int{}
	for _, s := range all {
		lines[s.dir] += lineCount(s.text)
		files[s.dir]++
	}
	for dir := range lines {
		bound := [2]int{maxPackageLines, maxPackageFiles}
		if large, ok := largePackages[dir]; ok {
			bound = [2]int{max(large[0], bound[0]), max(large[1], bound[1])}
		}
		if lines[dir] > bound[0] || files[dir] > bound[1] {
			faults = append(faults, fmt.Sprintf("%s has %d lines in %d files, at most %d in %d", dir, lines[dir],
				files[dir], bound[0], bound[1]))
		}
	}
	return faults
}

// typeFaults counts the methods of types, those of embedded types of the same package included, and the fields of
// structs.
func typeFaults(files []source) (faults []string) {
	methods, embeds := map[string]int{}, map[string][]string{}
	for _, s := range files {
		for _, decl := range s.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv != nil {
				methods[s.dir+"."+baseName(d.Recv.List[0].Type)]++
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			of, isType := n.(*ast.TypeSpec)
			if !isType {
				return true
			}
			st, isStruct := of.Type.(*ast.StructType)
			if !isStruct {
				return true
			}
			name, fields := s.dir+"."+of.Name.Name, 0
			for _, field := range st.Fields.List {
				fields += max(1, len(field.Names))
				if _, isForeign := field.Type.(*ast.SelectorExpr); len(field.Names) == 0 && !isForeign {
					embeds[name] = append(embeds[name], s.dir+"."+baseName(field.Type))
				}
			}
			if bound := max(maxFields, manyFields[name]); fields > bound {
				faults = append(faults, fmt.Sprintf("%s has %d fields, at most %d", name, fields, bound))
			}
			return true
		})
	}
	var count func(name string, seen []string) int
	count = func(name string, seen []string) int {
		if slices.Contains(seen, name) {
			return 0
		}
		n := methods[name]
		for _, inner := range embeds[name] {
			n += count(inner, append(seen, name))
		}
		return n
	}
	for name := range methods {
		if n := count(name, nil); n > maxMethods {
			faults = append(faults, fmt.Sprintf("%s has %d methods, at most %d", name, n, maxMethods))
		}
	}
	return faults
}

// functionFaults counts the lines of functions, with blank ones and comments.
func functionFaults(files []source) (faults []string) {
	for _, s := range files {
		for _, decl := range s.ast.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from, to := fileSet.Position(f.Pos()).Line, fileSet.Position(f.End()).Line
			bound := max(maxFunction, longest[s.dir+"."+f.Name.Name])
			if n := to - from + 1; n > bound {
				faults = append(faults, fmt.Sprintf("%s:%d: %s has %d lines, at most %d", s.path, from, f.Name.Name, n, bound))
			}
		}
	}
	return faults
}

// callerFaults finds the exported functions of internal packages that have no caller in another package, or one:
// such a function is a step of its caller. A package has one of them, the way in, or as many as the table has.
func callerFaults(files []source) (faults []string) {
	uses, used := map[string]int{}, map[string]bool{}
	for _, s := range files {
		dirs := map[string]string{} // by the name in this file
		for _, spec := range s.ast.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if dir, ours := strings.CutPrefix(imported, module+"/"); ours {
				name := path.Base(dir)
				if spec.Name != nil {
					name = spec.Name.Name
				}
				dirs[name], used[dir] = dir, true
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if e, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := e.X.(*ast.Ident); ok && dirs[x.Name] != "" {
					uses[dirs[x.Name]+"."+e.Sel.Name]++
				}
			}
			return true
		})
	}
	lonely := map[string][]string{} // names, by package
	for _, s := range files {
		isInternal := strings.HasPrefix(s.dir, "cmd/") || slices.Contains(strings.Split(s.dir, "/"), "internal")
		if !isInternal || !used[s.dir] { // tools, and packages for tests
			continue
		}
		for _, decl := range s.ast.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() {
				continue
			}
			switch name := s.dir + "." + f.Name.Name; uses[name] {
			case 0:
				if !slices.Contains(usedByTests, name) {
					faults = append(faults, name+" is exported, and no other package uses it")
				}
			case 1:
				lonely[s.dir] = append(lonely[s.dir], name)
			}
		}
	}
	for dir, names := range lonely {
		if bound := max(1, singleCallers[dir]); len(names) > bound {
			faults = append(faults, fmt.Sprintf("%d functions of %s have one use, at most %d may: %s", len(names), dir, bound,
				strings.Join(names, ", ")))
		}
	}
	return faults
}

// anyWord matches names and literals, which two places of the same shape may differ in.
var anyWord = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|[\\pL_][\\pL\\pN_]*|[0-9]+")

// repeatFaults finds lines in the bodies of two functions that do the same: only names and literals differ. Within one
// function, such lines are a table.
func repeatFaults(files []source) (faults []string) {
	type lines struct {
		position string
		in       *ast.FuncDecl
	}
	first := map[string]lines{} // by their shape
	for _, s := range files {
		text := strings.Split(string(s.text), "\n")
		for _, decl := range s.ast.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			var shapes []string
			var numbers []int
			for n := fileSet.Position(f.Body.Lbrace).Line; n < fileSet.Position(f.Body.Rbrace).Line-1; n++ {
				code, _, _ := strings.Cut(strings.TrimSpace(text[n]), " //")
				if code == "" || strings.HasPrefix(code, "//") {
					continue
				}
				shapes = append(shapes, anyWord.ReplaceAllStringFunc(code, func(word string) string {
					if token.IsKeyword(word) || word == "nil" || word == "err" {
						return word
					}
					return "x"
				}))
				numbers = append(numbers, n+1)
			}
			for i := 0; i+maxRepeated <= len(shapes); i++ {
				shape, at := strings.Join(shapes[i:i+maxRepeated], "\n"), fmt.Sprintf("%s:%d", s.path, numbers[i])
				if before, ok := first[shape]; !ok {
					first[shape] = lines{at, f}
				} else if before.in != f {
					faults = append(faults, fmt.Sprintf("%s repeats the %d lines at %s", at, maxRepeated, before.position))
					break
				}
			}
		}
	}
	return faults
}

// TestHostIsReadable counts what a reader of package host has to know.
func TestHostIsReadable(t *testing.T) {
	cmd := exec.Command("go", "doc", "-all", "./host")
	cmd.Dir = root
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > maxHostDoc {
		t.Errorf("go doc -all ./host has %d lines, at most %d: what one room uses belongs to that room", n, maxHostDoc)
	}
}

// TestRootIsForNewcomers limits the root folder to what a newcomer needs: few files of Go, documents, and the files of
// tools. Data belongs to its package.
func TestRootIsForNewcomers(t *testing.T) {
	const most = 5
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	code := 0
	for _, e := range entries {
		name := e.Name()
		known := slices.Contains([]string{"LICENSE", "Makefile", "go.mod", "go.sum"}, name)
		switch ext := path.Ext(name); {
		case e.IsDir() || strings.HasPrefix(name, ".") || known || ext == ".md":
		case ext != ".go":
			t.Errorf("%s is in the root folder: move it to the package that uses it", name)
		case !strings.HasSuffix(name, "_test.go"):
			code++
		}
	}
	if code > most {
		t.Errorf("the root folder has %d files of Go, at most %d: what they do belongs to a package below", code, most)
	}
}

// baseName returns the name of a type without pointers and type arguments.
func baseName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return baseName(e.X)
	case *ast.IndexExpr:
		return baseName(e.X)
	case *ast.IndexListExpr:
		return baseName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// TestArchitectureNamesRooms checks that docs/architecture.md has a row for each package of the product, or for one
// above it, and names no package that does not exist.
func TestArchitectureNamesRooms(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rooms, _ := strings.Cut(string(text), "\n## The rooms\n")
	rooms, _, _ = strings.Cut(rooms, "\n## ")
	dirs := map[string]bool{}
	for _, s := range product(t) {
		for dir := s.dir; dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z/]+)`").FindAllStringSubmatch(rooms, -1) {
		if strings.Contains(m[1], "/") && !dirs[m[1]] {
			t.Errorf("docs/architecture.md names the package %s, which does not exist", m[1])
		}
		named[m[1]] = true
	}
	for _, s := range product(t) {
		dir := s.dir
		for dir != "." && !named[dir] {
			dir = path.Dir(dir)
		}
		isTool := strings.HasPrefix(s.dir, "internal/") || s.dir == "cmd/parley" // tools of developers, and main
		if dir == "." && s.dir != "." && !isTool {
			t.Errorf("docs/architecture.md has no row for %s", s.dir)
		}
	}
}
