package admit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/durable"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"
)

// Report is the report on a plugin that is about to be installed or loaded, or was built: what it asks for, what it
// does, who made it, and whether its claims are true. Texts of the plugin in it are cleaned.
type Report struct {
	Plugin  string `json:"plugin"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Digest  string `json:"digest"`
	// Owner is who the name belongs to, as in the lock file: [host.OwnerShipped], [host.OwnerUnsigned], or the public key
	// of the signer, trusted or not.
	Owner     string `json:"owner"`
	Signer    Signer `json:"signature"`
	Bytes     int    `json:"bytes"`      // of the wasm
	CompileMS int64  `json:"compile_ms"` // how long compiling took; zero if it was not compiled
	// Rights are the rights that it asks for, with its own words why.
	Rights []host.Denial `json:"rights"`
	// Effects are the names of its tools by their effect.
	Effects  map[string][]string `json:"effects"`
	Findings []lint.Finding      `json:"findings"`
	Accepted []string            `json:"accepted,omitempty"` // rules that were broken and accepted
	Examples []ExampleRun        `json:"examples"`
	Verified int                 `json:"verified"` // how many of the examples
	Host     string              `json:"host"`     // the version of the host that made the report
}

// ExampleRun is the outcome of one example.
type ExampleRun struct {
	Tool     string `json:"tool"`
	Index    int    `json:"index"` // in the examples of the tool
	Title    string `json:"title"`
	Status   string `json:"status"`           // ExampleVerified, ExampleDiffers or ExampleNotRun
	Reason   string `json:"reason,omitempty"` // the difference, or why it did not run
	ExitCode int    `json:"exit_code"`
}

// The states of an example. Without rights an example that needs some cannot be checked.
const (
	ExampleVerified = "verified"
	ExampleDiffers  = "differs"
	ExampleNotRun   = "not_run"
)

// Errors returns the findings that refuse the plugin: errors of a plugin that is neither shipped nor signed with a
// trusted key, in rules that were not accepted.
func (r *Report) Errors() []lint.Finding {
	var found []lint.Finding
	for _, f := range r.Findings {
		stranger := r.Owner != host.OwnerShipped && !r.Signer.Trusted
		if f.Severity == lint.Error && stranger && !slices.Contains(r.Accepted, f.Rule) {
			found = append(found, f)
		}
	}
	return found
}

// maxReports bounds the reports that are kept; the oldest go first. Each is of one build.
const maxReports = 500

func (in *Installer) reportPath(digest string) string {
	return filepath.Join(in.cfg.Dir, strings.TrimPrefix(digest, "sha256:")+".json")
}

// saveReport stores the report of a build. Descriptions read the runs of its examples from it.
func (in *Installer) saveReport(report *Report) {
	path := in.reportPath(report.Digest)
	data, err := json.Marshal(report)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = durable.Write(path, data)
	}
	if err != nil {
		in.cfg.Debug("the report on %s is not stored: %v", report.Plugin, err)
		return
	}
	in.pruneReports(filepath.Dir(path))
}

// pruneReports removes the oldest reports of builds that are not installed.
func (in *Installer) pruneReports(dir string) {
	files, err := os.ReadDir(dir)
	if err != nil || len(files) <= maxReports {
		return
	}
	entries, err := in.cfg.Store.List()
	if err != nil {
		return
	}
	var old []os.FileInfo
	for _, f := range files {
		installed := slices.ContainsFunc(entries, func(e store.Entry) bool {
			return filepath.Base(in.reportPath(e.Digest)) == f.Name()
		})
		if info, err := f.Info(); err == nil && !installed {
			old = append(old, info)
		}
	}
	slices.SortFunc(old, func(a, b os.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, info := range old[min(len(old), maxReports):] {
		_ = os.Remove(filepath.Join(dir, info.Name()))
	}
}

// storedReport returns the report of a build, or nil.
func (in *Installer) storedReport(digest string) *Report {
	const limit = 4 << 20
	path := in.reportPath(digest)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return nil
	}
	report := &Report{}
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, report) != nil || report.Digest != digest {
		return nil
	}
	return report
}

// Annotate adds the runs of examples to the manifest of a build. Shipped plugins were admitted when the binary was
// built: its tests hold their examples to what they declare. The report of another build is read when somebody asks for
// a run, which calls do not.
func (in *Installer) Annotate(digest string, m *manifest.Manifest) {
	if digest == "" {
		return
	}
	shipped := in.isShipped(m.Name, digest)
	runs := sync.OnceValue(func() map[exampleKey]*manifest.ExampleRun { return in.exampleRuns(digest) })
	for i := range m.Tools {
		for j := range m.Tools[i].Examples {
			e, key := &m.Tools[i].Examples[j], exampleKey{m.Tools[i].Name, j}
			switch {
			case !shipped:
				e.Run = func() *manifest.ExampleRun { return runs()[key] }
			case e.Runnable: // TestShippedExamples runs these
				run := &manifest.ExampleRun{Verified: "parley " + in.cfg.Version, ExitCode: e.ExitCode}
				e.Run = func() *manifest.ExampleRun { return run }
			}
		}
	}
}

// exampleKey identifies an example of a plugin: the one at an index of a tool.
type exampleKey struct {
	tool  string
	index int
}

// exampleRuns returns what the report of a build says of its examples.
func (in *Installer) exampleRuns(digest string) map[exampleKey]*manifest.ExampleRun {
	report := in.storedReport(digest)
	if report == nil {
		return nil
	}
	runs := map[exampleKey]*manifest.ExampleRun{}
	for _, r := range report.Examples {
		key := exampleKey{r.Tool, r.Index}
		switch r.Status {
		case ExampleVerified:
			runs[key] = &manifest.ExampleRun{Verified: "parley " + report.Host, ExitCode: r.ExitCode}
		case ExampleDiffers:
			runs[key] = &manifest.ExampleRun{Differs: r.Reason, ExitCode: r.ExitCode}
		case ExampleNotRun:
			runs[key] = &manifest.ExampleRun{NotRun: r.Reason}
		}
	}
	return runs
}
