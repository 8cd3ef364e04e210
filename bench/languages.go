package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/parley-tools/parley/bench/internal/tree"
)

// languages are the values of `parley plugin new --lang`.
var languages = []struct{ lang, name string }{{"c", "C"}, {"rust", "Rust"}, {"go", "Go"}, {"js", "JavaScript"}}

const languagesDocument = "sdk/README.md"

// settled is a time after which a new module is no longer read and hashed at each call. In its first second it could
// change again unseen.
const settled = 1500 * time.Millisecond

// languages makes the plugin of each template, installs it, and writes what its size, its compilation and its calls
// cost into the table of [languagesDocument] or, unless update, prints the table.
func (b *bench) languages(update bool) error {
	defer b.stopRunners("plain")
	version := b.command("parley version", "plain", "version")
	timed := []*subject{version}
	bytes, compiled := map[string]int{}, map[string]int{}
	for _, l := range languages {
		name := "hello" + l.lang
		for _, args := range [][]string{{"plugin", "new", name, "--lang", l.lang}, {"plugin", "build", name}} {
			made := b.command("", "author", args...)
			made.dir = b.work
			if err := b.time(made); err != nil {
				return err
			}
		}
		// Installed in a home that has not compiled it.
		raw, err := b.output("plain", "plugin", "install", filepath.Join(b.work, name), "--json")
		var report struct {
			Data struct {
				Admission struct {
					Bytes     int
					CompileMS int `json:"compile_ms"`
				}
			}
		}
		if err == nil {
			err = json.Unmarshal(raw, &report)
		}
		if err != nil {
			return err
		}
		bytes[l.lang], compiled[l.lang] = report.Data.Admission.Bytes, report.Data.Admission.CompileMS
		timed = append(timed, b.command(l.lang, "plain", "hello"+l.lang, "greet", "Ada"))
	}
	time.Sleep(settled)
	for round := range b.rounds + 1 {
		for _, s := range timed {
			if err := b.time(s); err != nil {
				return err
			}
			if round == 0 {
				s.took = nil
			}
		}
	}
	ctx := context.Background()
	s, err := b.serve(ctx, "plain")
	if err != nil {
		return err
	}
	defer s.session.Close()
	for range timedCalls {
		for _, l := range languages {
			if err := s.call(ctx, "hello"+l.lang+".greet", `{"name":"Ada"}`); err != nil {
				return err
			}
		}
	}

	table := "| language | module, KB | compile, ms | cold, ms | x `parley version` | warm, ms |\n" +
		"|---|---:|---:|---:|---:|---:|\n"
	for i, l := range languages {
		cold := median(timed[i+1].took)
		table += fmt.Sprintf("| %s | %.1f | %d | %.1f | %.1f | %.2f |\n", l.name, float64(bytes[l.lang])/1000,
			compiled[l.lang], milliseconds(cold), float64(cold)/float64(median(version.took)),
			milliseconds(median(s.took["hello"+l.lang+".greet"])))
	}
	if !update {
		_, err := fmt.Fprintf(b.out, "\nThe plugins of `parley plugin new`, by language\n%s", table)
		return err
	}
	return tree.Section{File: languagesDocument, Name: "languages"}.Write(table)
}
