// Command components acts on pages of real component libraries, as an agent does that knows the names on a page, and
// compares what each act says with what a person would see. It prints a table, and why each act failed. The libraries
// come from npm by the lock file, and no act fails the command.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/parley-tools/parley/bench/internal/npm"
	"github.com/parley-tools/parley/bench/internal/tree"
)

func main() {
	var b bench
	only := flag.String("only", "", "run only acts that match this regular expression, as in 'mui/(tabs|menu)'")
	flag.StringVar(&b.parley, "parley", "", "binary to measure instead of one that is built from the tree")
	flag.BoolVar(&b.verbose, "v", false, "show each act when it is done")
	flag.Parse()
	tree.Main("components", func(ctx context.Context) (err error) {
		if b.only, err = regexp.Compile(*only); err != nil {
			return err
		}
		return b.run(ctx)
	})
}

// bench is the benchmark.
type bench struct {
	parley  string
	only    *regexp.Regexp
	verbose bool
	work    string // a temporary folder; its path is short, because sockets are below it
	site    string
	env     []string
}

// result is what became of an act on the page of a library.
type result struct {
	library, act string
	outcome      outcome
	why          string
}

func (b *bench) run(ctx context.Context) (err error) {
	if b.work, err = os.MkdirTemp("", "parts-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.work)
	if err := b.install(ctx); err != nil {
		return err
	}
	site := filepath.Join(b.work, "site")
	if err := bundle(ctx, site); err != nil {
		return err
	}
	server := httptest.NewServer(http.FileServerFS(os.DirFS(site)))
	defer server.Close()
	b.site = server.URL
	defer func() { err = errors.Join(err, tree.CloseBrowser(b.parley, b.home())) }()
	var results []result
	for _, l := range slices.Concat(known, fresh) {
		for _, a := range acts {
			r := result{l.title(), a.name, absent, ""}
			if b.only.MatchString(r.library+"/"+r.act) && !slices.Contains(strings.Fields(l.without), a.report()) {
				b.try(ctx, l, a, &r)
			}
			results = append(results, r)
			if b.verbose && r.outcome != absent {
				fmt.Fprintf(os.Stderr, "%s/%s: %c %s\n", r.library, r.act, r.outcome, r.why)
			}
		}
	}
	print(os.Stdout, results)
	return ctx.Err()
}

func (b *bench) home() string { return filepath.Join(b.work, "home") }

// install puts the binary where suggested calls find it by its name.
func (b *bench) install(ctx context.Context) (err error) {
	given := b.parley
	if given == "" {
		if given, err = tree.Build(ctx, b.work); err != nil {
			return err
		}
	}
	b.parley = filepath.Join(b.work, "parley")
	b.env = append(tree.Environment(b.home()), "PATH="+b.work+string(os.PathListSeparator)+os.Getenv("PATH"))
	return errors.Join(tree.Install(given, b.parley),
		os.WriteFile(filepath.Join(b.work, file), []byte("a note\n"), 0o644))
}

// bundle makes the pages: for each library a document, a script and, for most, a style sheet.
func bundle(ctx context.Context, site string) error {
	modules, err := npm.Fetch(ctx, "components")
	if err != nil {
		return err
	}
	args := strings.Fields("--bundle --minify --format=esm --jsx=automatic --log-level=error --legal-comments=none " +
		"--alias:vue=vue/dist/vue.esm-bundler.js --define:__VUE_OPTIONS_API__=true --define:__VUE_PROD_DEVTOOLS__=false " +
		"--define:__VUE_PROD_HYDRATION_MISMATCH_DETAILS__=false --define:process.env={} " +
		"--define:process.env.NODE_ENV=\"production\" " +
		"--loader:.woff=dataurl --loader:.woff2=dataurl --loader:.ttf=dataurl --loader:.svg=dataurl --outdir=" + site)
	for _, l := range slices.Concat(known, fresh) {
		args = append(args, filepath.Join("pages", l.name))
	}
	cmd := exec.CommandContext(ctx, filepath.Join(modules, ".bin", "esbuild"), args...)
	cmd.Dir = filepath.Dir(modules)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("esbuild: %w\n%s", err, out)
	}
	for _, l := range slices.Concat(known, fresh) {
		page := strings.ReplaceAll(`<!doctype html><meta charset=utf-8><title>NAME</title>`+
			`<link rel=stylesheet href=NAME.css><body><script type=module src=NAME.js></script>`, "NAME", l.title())
		err = errors.Join(err, os.WriteFile(filepath.Join(site, l.title()+".html"), []byte(page), 0o644))
	}
	return err
}

// answer is what a call returns with --json.
type answer struct {
	OK    bool
	Data  json.RawMessage
	Error struct{ Message string }
	Next  []string
}

// callTime is far more than an act may take.
const callTime = time.Minute

// call runs a command of Parley. Its output goes to a file, because the keeper that it starts would keep a pipe open.
func (b *bench) call(ctx context.Context, command string, args ...string) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	fail := func(err error) answer {
		a.OK, a.Error.Message = false, strings.TrimSpace(a.Error.Message+" "+err.Error())
		return a
	}
	out, err := os.Create(filepath.Join(b.work, "output"))
	if err != nil {
		return fail(err)
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = b.work, b.env, out, out
	runErr := cmd.Run()
	text, err := os.ReadFile(out.Name())
	if err == nil { // warnings come first
		err = json.Unmarshal(text[1+bytes.LastIndexByte(bytes.TrimSpace(text), '\n'):], &a)
	}
	if err != nil {
		return fail(errors.Join(err, runErr))
	}
	return a
}

func (b *bench) page(ctx context.Context, args ...string) answer {
	return b.call(ctx, b.parley, append(append([]string{"page"}, args...), "--json")...)
}

// try does an act on a fresh page of a library.
func (b *bench) try(ctx context.Context, l library, a act, r *result) {
	if opened := b.page(ctx, "open", b.site+"/"+l.title()+".html"); !opened.OK {
		r.outcome, r.why = refused, "open: "+opened.Error.Message
		return
	}
	var isRefused, suggested bool
	for _, step := range a.steps {
		words := slices.Clone(step)
		for i, word := range words {
			switch word {
			case stars:
				words[i] = l.stars
			case volume:
				words[i] = cmp.Or(l.volume, volume)
			}
		}
		done := b.page(ctx, words...)
		r.why = strings.Join(words, " ") + ": " + string(done.Data)
		if done.OK {
			continue
		}
		r.why = strings.Join(words, " ") + ": " + done.Error.Message
		next := suggestion(done.Next)
		if isRefused = next == ""; !isRefused {
			done = b.call(ctx, "sh", "-c", next+" --json")
			isRefused, suggested = !done.OK, true
			r.why += "; " + next + ": " + done.Error.Message + string(done.Data)
		}
		if isRefused {
			break
		}
	}
	r.outcome = judge(isRefused, suggested, b.isRight(ctx, a))
}

// suggestion returns the first of the suggested calls that acts, "" if each one only looks.
func suggestion(next []string) string {
	for _, line := range next {
		words := strings.Fields(line)
		if len(words) > 3 && words[0] == "parley" && words[1] == "page" &&
			!slices.Contains([]string{"snapshot", "find", "text"}, words[2]) && words[3] != "--describe" {
			return line
		}
	}
	return ""
}

// isRight reports whether a person sees that the act succeeded: at once, or after what is animated.
func (b *bench) isRight(ctx context.Context, a act) bool {
	for range 8 {
		var seen struct{ Value bool }
		done := b.page(ctx, "evaluate", "Boolean("+a.right+")")
		if done.OK && json.Unmarshal(done.Data, &seen) == nil && seen.Value {
			return true
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

// print prints the table of acts and libraries, how many acts are right, and why the others are not.
func print(out io.Writer, results []result) {
	at := func(l library, a act) result {
		return results[slices.IndexFunc(results, func(r result) bool { return r.library == l.title() && r.act == a.name })]
	}
	fmt.Fprintf(out, "%c right, %c right by the suggested call, %c refused, %c wrong without a word, "+
		"%c right but reported as failed\n\n", right, byNext, refused, wrong, misreported)
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	for _, l := range slices.Concat(known, fresh) {
		fmt.Fprint(w, "\t", l.title())
	}
	for _, a := range acts {
		fmt.Fprint(w, "\n", a.name)
		for _, l := range slices.Concat(known, fresh) {
			fmt.Fprintf(w, "\t%c", at(l, a).outcome)
		}
	}
	fmt.Fprintln(w)
	w.Flush()
	for _, kind := range []struct {
		name      string
		libraries []library
	}{{"known", known}, {"fresh", fresh}} {
		counts, sum := map[outcome]int{}, 0
		for _, l := range kind.libraries {
			for _, a := range acts {
				if o := at(l, a).outcome; o != absent {
					counts[o]++
					sum++
				}
			}
		}
		fmt.Fprintf(out, "\n%d %s libraries: %d of %d acts right (%d of them by the suggested call), %d refused, %d wrong, "+
			"%d misreported", len(kind.libraries), kind.name, counts[right]+counts[byNext], sum, counts[byNext],
			counts[refused], counts[wrong], counts[misreported])
	}
	fmt.Fprint(out, "\n\n")
	for _, r := range results {
		if r.outcome != right && r.outcome != absent {
			fmt.Fprintf(out, "%c %s/%s: %.400s\n", r.outcome, r.library, r.act, r.why)
		}
	}
}
