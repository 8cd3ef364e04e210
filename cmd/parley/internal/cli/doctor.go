package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/audit"
	"github.com/parley-tools/parley/host/wasm"
)

func newDoctor(app *App) *cobra.Command {
	return &cobra.Command{
		Use:     "doctor",
		Short:   "Check the set-up",
		Example: "parley doctor --json",
		Args:    noWords,
		RunE:    func(cmd *cobra.Command, _ []string) error { return app.doctor(cmd.Context()) },
	}
}

// check is one thing that doctor looked at. Fix is what to type, where something can be done.
type check struct {
	Name   string `json:"name"`
	Status string `json:"status"` // ok, warn or fail
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// minFree is the free space below which installs and browser profiles are likely to fail.
const minFree = 512 << 20

// doctor checks all that Parley depends on. It ends in 0 also when something is wrong: that is its answer.
func (a *App) doctor(ctx context.Context) error {
	checks := []check{a.checkPlatform(), a.checkConfig(), a.checkPolicy(), a.checkAudit(), a.checkPlugins()}
	s, err := a.settings()
	chrome := ""
	if err == nil {
		chrome = s.Chrome
	}
	checks = append(checks, a.checkChrome(chrome))
	for _, p := range a.namedDirs() {
		c := checkDir(p)
		c.Name += "_dir"
		checks = append(checks, c)
	}
	checks = append(checks, a.checkCompiled(), checkIsolation(), a.checkSocket(), a.checkKeepers())
	for _, t := range []struct{ name, version, fix string }{
		{"go", "version", "install Go 1.26 to build Go plugins"},
		{"clang", "--version", "apt-get install clang lld wasi-libc libclang-rt-14-dev-wasm32, to build C plugins"},
		{"rustc", "--version", "install Rust with a wasm32-wasi target to build Rust plugins"},
		{"node", "--version", "install Node to build AssemblyScript plugins"},
		{"npm", "--version", "install npm, which fetches the AssemblyScript compiler"},
	} {
		checks = append(checks, checkTool(ctx, t.name, t.version, t.fix))
	}
	bad := 0
	next := []string{}
	for _, c := range checks {
		if c.Status == "fail" {
			bad++
			next = append(next, c.Fix)
		}
	}
	data := struct {
		Checks []check `json:"checks"`
		Failed int     `json:"failed"`
	}{checks, bad}
	return a.answer(data, next, func(w io.Writer) {
		for _, c := range checks {
			fmt.Fprintf(w, "%-5s %-10s %s\n", c.Status, c.Name, c.Detail)
			if c.Fix != "" && c.Status != "ok" {
				fmt.Fprintf(w, "%-16s fix: %s\n", "", c.Fix)
			}
		}
	})
}

func (a *App) checkPlatform() check {
	c := check{Name: "platform", Status: "ok", Detail: fmt.Sprintf("parley %s, %s/%s, %s", parley.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())}
	if runtime.GOOS != "linux" {
		c.Status, c.Fix = "warn", "use Linux for what is tested"
		c.Detail += "; built but not tested here"
		if !cdp.Supported() {
			c.Detail += "; no browser can be opened on this platform"
		}
	}
	return c
}

// checkIsolation says what isolate = "process" gives here.
func checkIsolation() check {
	lacks := wasm.MissingIsolation()
	if len(lacks) == 0 {
		return check{Name: "isolation", Status: "ok", Detail: `isolate = "process": a process with limits, a private view of files, a filter of system calls`}
	}
	return check{"isolation", "warn", `isolate = "process" gives a process of its own here, without ` + strings.Join(lacks, "; without "), "use a Linux kernel with Landlock and seccomp"}
}

func (a *App) checkConfig() check {
	if _, err := a.settings(); err != nil {
		return check{"config", "fail", err.Error(), "edit " + filepath.Join(a.dirs().Config, "config.toml")}
	}
	return check{Name: "config", Status: "ok", Detail: filepath.Join(a.dirs().Config, "config.toml")}
}

func (a *App) checkPolicy() check {
	path := filepath.Join(a.dirs().Config, "policy.toml")
	if _, err := a.policy(); err != nil {
		return check{"policy", "fail", err.Error(), "edit " + path + "; until then nothing runs"}
	}
	if _, err := os.Stat(path); err != nil {
		return check{Name: "policy", Status: "ok", Detail: "none: plugins have no rights, this command line may call everything"}
	}
	return check{Name: "policy", Status: "ok", Detail: path}
}

// checkAudit looks at the end of the log; whether all of it is whole, audit verify tells.
func (a *App) checkAudit() check {
	log := a.audit()
	mode, err := log.Mode()
	switch {
	case err != nil: // which the check of the policy tells
		mode = audit.On
	case mode == audit.Off:
		return check{Name: "audit", Status: "ok", Detail: "off, by the policy: calls are not recorded"}
	}
	if c := checkDir(namedPath{"audit", log.Dir()}); c.Status == "fail" {
		c.Detail += ", and calls are not recorded"
		if mode == audit.Required {
			c.Detail += ", so none runs"
		}
		return c
	}
	s, err := log.State()
	if err != nil {
		return check{"audit", "fail", err.Error(), "chown or move " + log.Dir()}
	}
	c := check{Name: "audit", Status: "ok", Detail: fmt.Sprintf("%s, %s, %s, %.1f MiB in %s", mode, plural(int(s.Head.Seq), "record"), plural(s.Files, "file"), float64(s.Bytes)/(1<<20), log.Dir())}
	if s.Torn > 0 {
		c.Status, c.Fix = "warn", "parley audit verify; the next record takes its place, saying so"
		c.Detail += fmt.Sprintf("; %s at its end are half a record", plural(int(s.Torn), "byte"))
	}
	return c
}

func (a *App) checkPlugins() check {
	catalog, err := a.catalog()
	if err != nil {
		e := host.AsError(err)
		return check{"plugins", "fail", e.Message, strings.Join(a.next(e.Steps, e.Next), "; ")}
	}
	return check{Name: "plugins", Status: "ok", Detail: plural(len(catalog.Providers()), "plugin")}
}

func (a *App) checkChrome(configured string) check {
	path, why, err := cdp.FindChrome(a.Env, configured)
	if err != nil {
		fix := ""
		if e := host.AsError(err); len(e.Steps) > 0 {
			fix = a.command(e.Steps[0])
		}
		return check{"chrome", "fail", err.Error(), fix}
	}
	return check{Name: "chrome", Status: "ok", Detail: path + ": " + why}
}

// checkDir tells whether a folder, or the first one above it that exists, can be written, and what space it has.
func checkDir(p namedPath) check {
	c := check{Name: p.Name, Status: "ok", Detail: p.Path}
	at := p.Path
	for {
		info, err := os.Stat(at)
		if err == nil && !info.IsDir() {
			return check{p.Name, "fail", at + " is not a folder", "move " + at + " away, or set PARLEY_HOME"}
		}
		if err == nil {
			break
		}
		if parent := filepath.Dir(at); parent != at {
			at = parent
			continue
		}
		return check{p.Name, "fail", p.Path + " cannot be made", "set PARLEY_HOME to a folder that can be written"}
	}
	if !writable(at) {
		return check{p.Name, "fail", at + " cannot be written", "chown it, or set PARLEY_HOME to a folder that can be written"}
	}
	if free, ok := freeSpace(at); ok {
		c.Detail += fmt.Sprintf(" (%.1f GiB free)", float64(free)/(1<<30))
		if free < minFree {
			c.Status, c.Fix = "warn", "free some space"
		}
	}
	return c
}

func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".parley-doctor-*")
	if err != nil {
		return false
	}
	f.Close()
	return os.Remove(f.Name()) == nil
}

// checkCompiled tells how much compiled code is kept.
func (a *App) checkCompiled() check {
	dir := filepath.Join(a.dirs().Cache, "wasm")
	modules, bytes := 0, int64(0)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), "filling-") { // those are being made, or were left by a kill
			modules++
		}
	}
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	c := check{Name: "compiled", Status: "ok", Detail: fmt.Sprintf("%s, %.1f MiB in %s", plural(modules, "plugin"), float64(bytes)/(1<<20), dir)}
	if bytes > maxCompiled {
		c.Status, c.Fix = "warn", "rm -r "+shellQuote(dir)+"; what is needed is compiled again"
	}
	return c
}

// maxCompiled is the size from which compiled code is worth clearing.
const maxCompiled = 1 << 30

func (a *App) checkSocket() check {
	path := cdp.SocketPath(a.dirs().Run)
	c := check{Name: "socket", Status: "ok", Detail: fmt.Sprintf("%s (%d bytes of 108)", path, len(path))}
	if len(path) >= 108 {
		c.Status, c.Fix = "fail", "set XDG_RUNTIME_DIR or PARLEY_HOME to a shorter path"
	}
	return c
}

func (a *App) checkKeepers() check {
	open, stale, err := cdp.Keepers(a.dirs().Run)
	switch {
	case err != nil:
		return check{"keepers", "fail", err.Error(), "parley cdp close --param all=true"}
	case len(stale) > 0:
		return check{"keepers", "warn", "left by browsers that were killed: " + strings.Join(stale, ", "), "parley cdp close --param all=true"}
	case len(open) > 0:
		return check{Name: "keepers", Status: "ok", Detail: "open: " + strings.Join(open, ", ")}
	}
	return check{Name: "keepers", Status: "ok", Detail: "no browser is open"}
}

func checkTool(ctx context.Context, name, version, fix string) check {
	path, err := exec.LookPath(name)
	if err != nil {
		return check{name, "warn", "not found", fix}
	}
	out, err := exec.CommandContext(ctx, path, version).Output()
	if err != nil {
		return check{name, "warn", fmt.Sprintf("%s does not run: %v", path, err), fix}
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return check{Name: name, Status: "ok", Detail: first}
}
