// Package admin has the commands of the operator: policy, secrets, settings, sessions, runners and doctor.
package admin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record/audit"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

var doctorCommand = &command.Command[*doctorOptions]{
	Use: "doctor", Run: runDoctor,
	Short:   "Check the set-up, suggest repairs",
	Example: "parley doctor --json",
}

// runDoctor prints all checks, and ends with config_error if one failed.
func runDoctor(ctx context.Context, app *command.App, opts *doctorOptions) error {
	if opts.Clean {
		wasm.StopRunners(app.Dirs().Run, func(wasm.RunnerInfo) bool { return false })
	}
	data := struct {
		Checks []check `json:"checks"`
		Failed int     `json:"failed"` // number of checks with the status "fail"
	}{Checks: checks(ctx, app, opts.Authors)}
	fixes := []string{} // of the checks that failed
	for _, c := range data.Checks {
		if c.Status == "fail" {
			data.Failed++
			fixes = append(fixes, c.Fix)
		}
	}
	raw, _ := manifest.Marshal(data)
	env := &command.Envelope{OK: data.Failed == 0, Data: raw, Warnings: []string{}, Next: fixes}
	failed := host.Errorf(host.ConfigError, "%s failed", manifest.Plural(data.Failed, "check"))
	if !env.OK {
		env.Error = app.ErrorObject(failed)
	}
	err := app.PrintEnvelope(env, func(w io.Writer) {
		for _, c := range data.Checks {
			fmt.Fprintf(w, "%-5s %-10s %s\n", c.Status, c.Name, c.Detail)
			command.PrintIf(w, c.Fix != "" && c.Status != "ok", "%-16s fix: %s\n", "", c.Fix)
		}
	})
	if err == nil && !env.OK {
		err = &command.ExitStatus{Code: failed.ExitCode()}
	}
	return err
}

// check is the result of one check of doctor.
type check struct {
	Name   string `json:"name"`
	Status string `json:"status"` // "ok", "warn" or "fail"
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // what to type or do about it
}

// minFree is the free space, in bytes, below which installs and browser profiles are likely to fail.
const minFree = 512 << 20

// maxCompiled is the size of the compile cache, in bytes, above which clearing it is recommended.
const maxCompiled = 1 << 30

// doctorOptions say what to do besides checking.
type doctorOptions struct {
	Authors bool `flag:"authors" usage:"also check the compilers for plugins"`
	Clean   bool `flag:"clean" usage:"remove the files of runners that have ended"`
}

// checks checks everything that parley depends on and, for authors, everything that building plugins depends on. A
// check that fails is data, not an error.
func checks(ctx context.Context, app *command.App, authors bool) []check {
	checks := append([]check{checkPlatform()}, checkFolders(app)...)
	if app.Dirs().Known() { // otherwise their content is unknown
		checks = slices.Insert(checks, 1, checkConfig(app), checkPolicy(app), checkAudit(app), checkPlugins(app),
			checkChrome(app), checkLogins(app))
		checks = append(checks, checkCompiled(app), checkIsolation(), checkRunners(app), checkSocket(app), checkKeepers(app))
	}
	if authors {
		for _, t := range []struct{ name, version, fix string }{
			{"go", "version", "install Go 1.26 to build Go plugins"},
			{"clang", "--version", "apt-get install clang lld wasi-libc libclang-rt-14-dev-wasm32, to build C plugins"},
			{"rustc", "--version", "apt-get install rustc libstd-rust-dev-wasm32, to build Rust plugins"},
		} {
			checks = append(checks, checkTool(ctx, t.name, t.version, t.fix))
		}
	}
	return checks
}

// ok returns a check that found nothing wrong.
func ok(name, format string, args ...any) check {
	return check{Name: name, Status: "ok", Detail: fmt.Sprintf(format, args...)}
}

func checkPlatform() check {
	c := ok("platform", "parley %s, %s/%s, %s", parley.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
	if runtime.GOOS != "linux" {
		c.Status, c.Fix = "warn", "use Linux, where parley is tested"
		c.Detail += "; built but not tested here"
		c.Detail += command.When(!cdp.Supported(), "; no browser can be opened on this platform")
	}
	return c
}

// checkIsolation reports where guests run on this system.
func checkIsolation() check {
	missing := wasm.MissingIsolation(true)
	if len(missing) == 0 {
		return ok("isolation", "plugins run in processes that the kernel confines (Landlock, seccomp)")
	}
	where := command.Either(len(wasm.MissingIsolation(false)) > 0, "plugins run in Parley's own process: ",
		"plugins run in processes that the kernel confines, those with folders in Parley's own process: ")
	return check{"isolation", "warn", where + strings.Join(missing, "; "),
		`use a Linux kernel with Landlock and seccomp; until then a plugin with isolate = "process" in the policy is refused`}
}

// checkRunners reports the runners, and the files of those that were killed.
func checkRunners(app *command.App) check {
	s, err := app.Settings()
	if err == nil && !s.Runner {
		return ok("runners", "off: each isolated call has a process of its own")
	}
	running, stale := runners(app)
	c := ok("runners", "%s", manifest.Plural(len(running), "runner"))
	c.Detail += command.When(len(stale) > 0,
		fmt.Sprintf("; files of %d that ended are left: the next runner, or parley doctor --clean, removes them", len(stale)))
	return c
}

func checkConfig(app *command.App) check {
	path := filepath.Join(app.Dirs().Config, "config.toml")
	if _, err := app.Settings(); err != nil {
		return check{"config", "fail", err.Error(), "edit " + path}
	}
	return ok("config", "%s", path)
}

func checkPolicy(app *command.App) check {
	path := filepath.Join(app.Dirs().Config, "policy.toml")
	if _, err := app.Parley().Policy(); err != nil {
		return check{"policy", "fail", err.Error(), "correct what it names; until then nothing runs"}
	}
	if _, err := os.Stat(path); err != nil {
		return ok("policy", "none: plugins have no rights, this command line may call everything")
	}
	return ok("policy", "%s", path)
}

// checkAudit checks only the end of the log. The command audit verify checks all of it.
func checkAudit(app *command.App) check {
	log := app.Parley().AuditLog()
	mode, err := log.Mode()
	switch {
	case err != nil: // checkPolicy reports the error
		mode = audit.On
	case mode == audit.Off:
		return ok("audit", "off, by the policy: calls are not recorded")
	}
	if c := checkFolder(command.NamedPath{Name: "audit", Path: log.Dir()}); c.Status == "fail" {
		c.Detail += ", and calls are not recorded"
		c.Detail += command.When(mode == audit.Required, ", so none runs")
		return c
	}
	s, err := log.State()
	if err != nil {
		return check{"audit", "fail", err.Error(), "chown or move " + log.Dir()}
	}
	c := ok("audit", "%s, %s, %s, %.1f MiB in %s", mode, manifest.Plural(int(s.Head.Seq), "record"),
		manifest.Plural(s.Files, "file"), float64(s.Bytes)/(1<<20), log.Dir())
	if s.Torn > 0 {
		c.Status, c.Fix = "warn", "parley audit verify; the next record replaces the half-written one and says so"
		c.Detail += fmt.Sprintf("; a half-written record of %s at its end", manifest.Plural(int(s.Torn), "byte"))
	}
	return c
}

func checkPlugins(app *command.App) check {
	catalog, err := app.Catalog()
	if store := app.Parley().Store(); err == nil {
		entries, _ := store.List() // the catalog has read it
		for i := 0; i < len(entries) && err == nil; i++ {
			_, err = store.Open(entries[i])
		}
	}
	if err != nil {
		e := host.AsError(err)
		first, _, _ := strings.Cut(e.Message, "\n")
		return check{"plugins", "fail", first, strings.Join(app.Next(e.Steps, e.Next), "; ")}
	}
	return ok("plugins", "%s", manifest.Plural(len(catalog.Providers()), "plugin"))
}

func checkChrome(app *command.App) check {
	configured := ""
	if s, err := app.Settings(); err == nil {
		configured = s.Chrome
	}
	path, why, err := cdp.FindChrome(app.Env, configured)
	if err != nil {
		fix := append(command.Map(host.AsError(err).Steps, app.Command), "")[0]
		return check{"chrome", "fail", err.Error(), fix}
	}
	return ok("chrome", "%s: %s", path, why)
}

// checkFolders reports whether the folders of the host are known and safe, and the state of each.
func checkFolders(app *command.App) []check {
	if err := app.Dirs().Check(); err != nil {
		fix := "make the folder yours alone, then parley doctor"
		if next := host.AsError(err).Next; len(next) > 0 {
			fix = next[0]
		}
		return []check{{"folders", "fail", err.Error(), fix}}
	}
	var checks []check
	for _, p := range command.Folders(app) {
		c := checkFolder(p)
		c.Name += "_dir"
		checks = append(checks, c)
	}
	return checks
}

// checkFolder reports whether a folder can be written and how much space it has. A folder that does not exist yet is
// represented by the nearest one above it.
func checkFolder(p command.NamedPath) check {
	at := p.Path
	info, err := os.Stat(at)
	for ; err != nil && filepath.Dir(at) != at; info, err = os.Stat(at) {
		at = filepath.Dir(at)
	}
	const set = "set PARLEY_HOME to a folder that you can write to"
	switch {
	case err != nil:
		return check{p.Name, "fail", p.Path + " cannot be created", set}
	case !info.IsDir():
		return check{p.Name, "fail", at + " is not a folder", "move " + at + " away, or set PARLEY_HOME"}
	case !writable(at):
		return check{p.Name, "fail", at + " is not writable", "chown it, or " + set}
	}
	c := ok(p.Name, "%s", p.Path)
	if free, known := freeSpace(at); known {
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

// checkCompiled reports the size of the cache of compiled plugins.
func checkCompiled(app *command.App) check {
	dir := filepath.Join(app.Dirs().Cache, "wasm")
	modules, bytes := 0, int64(0)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), "filling-") { // incomplete: in progress, or its process was killed
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
	c := ok("compiled", "%s, %.1f MiB in %s", manifest.Plural(modules, "plugin"), float64(bytes)/(1<<20), dir)
	if bytes > maxCompiled {
		c.Status = "warn"
		c.Fix = app.Command(step.Operator(step.OpSystem, "rm", "-r", dir)) + "; what is needed is compiled again"
	}
	return c
}

func checkSocket(app *command.App) check {
	path := cdp.SocketPath(app.Dirs().Run)
	c := ok("socket", "%s (%d bytes of 108)", path, len(path))
	if len(path) >= 108 {
		c.Status, c.Fix = "fail", "set XDG_RUNTIME_DIR or PARLEY_HOME to a shorter path"
	}
	return c
}

func checkKeepers(app *command.App) check {
	const closeAll = "parley cdp close --param all=true"
	open, stale, err := cdp.Keepers(app.Dirs().Run)
	switch {
	case err != nil:
		return check{"keepers", "fail", err.Error(), closeAll}
	case len(stale) > 0:
		return check{"keepers", "warn", "left by browsers that were killed: " + strings.Join(stale, ", "), closeAll}
	case len(open) > 0:
		return ok("keepers", "open: %s", strings.Join(open, ", "))
	}
	return ok("keepers", "no browser is open")
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
	return ok(name, "%s", first)
}

// Commands are the commands that this package has.
var Commands = command.Chapters{
	"Connect agents":          {sessionCommand},
	"Decide what they may do": {policyCommand, approvalsCommand, secretCommand, loginCommand, logoutCommand},
	"See what happened":       {runnerCommand},
	"Set up":                  {doctorCommand, configCommand, completionCommand},
}

var configCommand = &command.Group{Use: "config", Short: "Show settings and their origin", Of: []command.Maker{
	command.Plain("list", "Show each setting, its value and where it comes from", "parley config list --json",
		runConfigList),
}}

// runConfigList prints each setting with its value and its source, and the folders of the host.
func runConfigList(_ context.Context, app *command.App, _ string) error {
	s, err := app.Settings()
	if err != nil {
		return err
	}
	data := struct {
		Settings []command.SettingValue `json:"settings"`
		Paths    []command.NamedPath    `json:"paths"`
	}{s.Values, command.Folders(app)}
	return app.Print(data, []string{"edit " + filepath.Join(app.Dirs().Config, "config.toml")}, func(w io.Writer) {
		for _, v := range data.Settings {
			fmt.Fprintf(w, "%-24s %-12s %s\n%24s %s\n",
				v.Name, cmp.Or(manifest.CleanLine(v.Value), `""`), v.Source, "", v.Description)
		}
		for _, p := range data.Paths {
			fmt.Fprintf(w, "%-24s %s\n", p.Name, p.Path)
		}
	})
}
