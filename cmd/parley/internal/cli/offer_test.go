package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/commandline"
	"github.com/parley-tools/parley/internal/sample"
	"github.com/parley-tools/parley/internal/testhome"
)

// checkedMain is Main for scripts. It parses again what comes next in all output, and fails the script with the exit
// code 99 for what may not be offered: so each script guards each error that it causes.
func checkedMain() int {
	streams, args := command.System(), os.Args[1:]
	var out, errs bytes.Buffer
	streams.Out, streams.Err = io.MultiWriter(streams.Out, &out), io.MultiWriter(streams.Err, &errs)
	code := Main(args, streams)
	next := append(nextIn(out.Bytes()), nextIn(errs.Bytes())...)
	if len(next) == 0 {
		return code
	}
	a := newFront(command.System(), args)
	defer a.Close()
	if cmd, rest, err := newRoot(a, nil).Find(args); err == nil {
		_ = cmd.ParseFlags(rest) // the plugins to load
	}
	a.Failing, a.Waits = code != 0, bytes.Contains(errs.Bytes(), []byte("; approval a"))
	for _, line := range next {
		if !a.Offers(line) {
			fmt.Fprintf(os.Stderr, "parley %s: may not be offered: %s\n", strings.Join(args, " "), line)
			return 99
		}
	}
	return code
}

// nextIn returns what comes next in an output: in the documents of --json, and in the tips of a text.
func nextIn(output []byte) (next []string) {
	tip := false
	for text := range strings.Lines(string(output)) {
		line, isTip := strings.CutPrefix(strings.TrimRight(text, "\n"), "Tip: ")
		rest, goesOn := strings.CutPrefix(line, "     ")
		if tip = isTip || tip && goesOn; tip {
			next = append(next, rest)
			continue
		}
		var doc struct {
			Next  []string
			Error struct{ Command string }
		}
		if json.Unmarshal([]byte(line), &doc) == nil {
			next = append(next, doc.Next...)
			if doc.Error.Command != "" {
				next = append(next, doc.Error.Command)
			}
		}
	}
	return next
}

// TestOffers checks which lines may be offered after a command that failed.
func TestOffers(t *testing.T) {
	home := testhome.New(t)
	env := func(name string) string { return map[string]string{"PARLEY_HOME": home}[name] }
	app := newFront(&command.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Env: env},
		[]string{"text", "hash", "--params", `{"text":"a","algorithm":"md5"}`, "--json"})
	defer app.Close()
	app.Failing = true
	for line, want := range map[string]bool{
		"parley text hash b": true, "parley text hash --describe": true, "parley text --list": true, "parley --list": true,
		"parley help search": true, "parley help text": true, "parley text hash TEXT": true, "leave it out": true,
		"parley text hash -- -hello": true, "parley plugin show NAME": false, "parley plugin show text": true,
		"parley text hash a --dry-run": true,
		// the call that failed, in other spellings
		"parley text hash a --param algorithm=md5": false, "parley call text.hash a --param algorithm=md5 --json": false,
		`parley text.hash --params '{"algorithm":"md5", "text":"a"}'`: false,
		"parley text hash a --param algorithm=md5 --timeout 3s":       true,
		// what does not parse, or names what does not exist
		"parley text hash -hello": false, "parley text hash a -o json": false, "parley text hahs a": false,
		"parley text hash a sha-1 x y": false, "parley text hash a nonsense": false, "parley serve": false,
		"parley help nope": false, "parley plugin nope": false, "parley plugin": false, "parley text hash 'a": false,
		"parley plan text.nope": false, "parley cdp Network.getCookies --describe --params '{}'": false,
		"parley text hash --params '{\"txet\":\"a\"}'": false, "parley config list extra": false,
		// protections
		"parley plugin install x.wasm --yes": false, "--replace NAME, if you trust it": false,
		"parley cdp Page.nope --send-anyway": false, "parley text hash b --isolate none": false,
		"parley text hash b --isolate=none": false, "parley text hash b --isolate call": true,
		"parley text hash -- --yes": true,
	} {
		if got := app.Offers(line); got != want {
			t.Errorf("%s: offered: %v", line, got)
		}
	}
}

// TestEveryMistake makes the mistakes that each command allows: no words, one too many, unknown ones, unknown options,
// options without a value and with a wrong one, misspelt names. It runs each command that is offered then, which has
// to be another one that is neither invalid nor about what does not exist.
func TestEveryMistake(t *testing.T) {
	home := testhome.New(t)
	t.Chdir(t.TempDir())
	env := func(name string) string { return map[string]string{"PARLEY_HOME": home}[name] }
	run := func(args []string) (said string, code int) {
		var out, errs bytes.Buffer
		streams := &command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Env: env}
		code = Main(args, streams)
		return errs.String(), code
	}
	seen, sampled := map[string]bool{}, sample.OneIn(t, 8)
	mistake := func(args ...string) {
		_ = os.Remove(" a ") // the output of another mistake
		said, code := run(append(slices.Clone(args), "--json"))
		if code == 0 {
			return
		}
		next := nextIn([]byte(said))
		if code == 110 || len(next) == 0 {
			t.Errorf("%q ends in %d, and nothing is next: %s", args, code, said)
		}
		if slices.Contains(args, " a ") && !strings.Contains(said, `\" a \"`) && strings.Contains(said, `\"a\"`) {
			t.Errorf("%q: the value is reported as another one: %s", args, said)
		}
		for _, line := range next {
			words, ok := commandline.Words(line)
			if !strings.HasPrefix(line, "parley ") || seen[line] {
				continue
			}
			seen[line] = true
			if isHole := placeholder().MatchString; !ok || advice.Lifts(words) || slices.Equal(words[1:], args) ||
				slices.ContainsFunc(words, isHole) {
				t.Errorf("%q: next is %s", args, line)
				continue
			}
			if last := words[len(words)-1]; slices.Contains([]string{"mcp", "dev", "tail", "follow", "doctor"}, last) ||
				strings.HasPrefix(line, "parley plugin new") {
				continue
			}
			isEmpty := strings.Contains(line, " lock") || strings.Contains(line, " sync") || strings.Contains(line, "head") ||
				strings.Contains(line, "judge") || strings.Contains(line, "runner stop") // there is nothing of that kind here
			if said, code := run(words[1:]); code == 81 && !strings.Contains(said, "terminal") || code == 83 && !isEmpty ||
				code == 110 {
				t.Errorf("%q: next is %s, which ends in %d: %s", args, line, code, said)
			}
		}
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		with := func(words ...string) []string { return slices.Concat(path, words) }
		takes := strings.Fields(cmd.Use)[1:]
		if name := cmd.Name(); cmd.HasParent() {
			last := len(path) - 1
			for _, typo := range []string{name[:len(name)-1], name + "x", strings.ToUpper(name)} {
				mistake(slices.Concat(path[:last], []string{typo})...)
			}
			mistake(name)
			mistake(name, "nosuch")
		}
		if len(takes) > 0 && takes[0][0] != '[' || cmd.HasSubCommands() {
			mistake(path...)
			mistake(with("nosuch")...)
			mistake(with("no-such.wasm")...)
			mistake(with(" a ")...)
		}
		mistake(with("--nosuch")...)
		mistake(with(append(slices.Repeat([]string{"nosuch"}, len(takes)), "many")...)...)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !cmd.HasParent() || f.Name == "help" || !sampled() {
				return
			}
			mistake(with("--" + f.Name[:len(f.Name)-1])...)
			if f.NoOptDefVal == "" {
				mistake(with("--" + f.Name)...)
				mistake(with(append(slices.Repeat([]string{"nosuch"}, len(takes)), "--"+f.Name, " a ")...)...)
			}
		})
		for _, child := range cmd.Commands() {
			if name := child.Name(); name != "tail" && name != "follow" && name != "dev" && name != "doctor" && name != "mcp" {
				visit(child)
			}
		}
	}
	root := newRoot(newFront(&command.Streams{Env: env}, nil), nil)
	visit(root)
	if len(seen) < 40 {
		t.Errorf("only %d lines were offered", len(seen))
	}
}

// TestOptionsThatLift checks that each option of each command has been reviewed: it lifts a protection, and is never
// offered, or it is listed here.
func TestOptionsThatLift(t *testing.T) {
	harmless := strings.Fields("all auth authors batch before brief browser caller calls category clean " +
		"client client-id code client-secret context continue-on-error coverage cursor dataset debug describe " +
		"detail diff docs drain dry-run effect env eval example explain failed file format " +
		"from full grant group head help http import isolate jq json key kind lang limit list listen live " +
		"load manifest max max-bytes max-calls max-cost max-tokens max-tokens-spent mime mode model name " +
		"names new-key no-browser on-dialog once op out output param params password-file patch plugin port prompt " +
		"record " +
		"remove replay resource run scripts search secret seed server session signature signer since stdin tag " +
		"target tier timeout tls-cert tls-key token-file tool tools trigger until version wait write")
	app := newFront(&command.Streams{Env: func(string) string { return "" }}, nil)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if lifts := advice.Lifts([]string{"--" + f.Name, "value"}); lifts == slices.Contains(harmless, f.Name) {
				t.Errorf("%s --%s: decide whether it lifts a protection, and list it here or in package advice",
					cmd.CommandPath(), f.Name)
			}
		})
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(newRoot(app, nil))
}
