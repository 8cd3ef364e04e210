package cli

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/itchyny/gojq"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/internal/foreign"
	"github.com/parley-tools/parley/internal/testhome"
)

// TestMain makes the test binary behave as parley: for scripts as a command of that name, and for the processes that
// parley starts from its own binary, by the same function as main.
func TestMain(m *testing.M) {
	if code, entered := namingKeeper(); entered {
		os.Exit(code)
	}
	parley.Child()
	testscript.Main(m, map[string]func(){
		"parley": func() {
			code := checkedMain()
			fillTerminal()
			os.Exit(code)
		},
		"lacking":  lacking,
		"xdg-open": browse,
	})
}

// fillTerminal ends the output to the terminal of a script with more empty lines than a terminal holds, so that
// testscript has read all that comes before: it closes the terminal when a command ends, whether it has read that or
// not.
func fillTerminal() {
	const passed = "/proc/self/fd/3" // by testscript, to a command with a terminal only
	if name, err := os.Readlink(passed); err != nil || !strings.HasPrefix(name, "/dev/pts/") {
		return
	}
	if terminal, err := os.OpenFile(passed, os.O_WRONLY, 0); err == nil {
		_, _ = terminal.WriteString(strings.Repeat("\n", 1<<17))
	}
}

// TestScripts runs the scripts of testdata/script. Each has its own home, $PARLEY_HOME, and the commands below. With
// SCRIPT_CONTINUE set, a script goes on after a failure.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		ContinueOnError:     os.Getenv("SCRIPT_CONTINUE") != "",
		Setup: func(e *testscript.Env) error {
			e.Defer(func() { checkFoldersIn(t, filepath.Join(e.WorkDir, "home")) })
			return setUpScript(e)
		},
		Condition: scriptCondition,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"api":       scriptAPI,
			"authorize": scriptAuthorize,
			"bytes":     scriptBytes,
			"columns":   scriptColumns,
			"exitcode":  scriptExitCode,
			"json":      scriptJSON,
			"killhome":  scriptKillHome,
			"lines":     scriptLines,
			"mode":      scriptMode,
			"model":     scriptModel,
			"noprocs":   scriptNoProcs,
			"oldhome":   scriptOldHome,
			"pad":       scriptPad,
			"registry":  scriptRegistry,
			"serve":     scriptServe,
			"signal":    scriptSignal,
			"tokens":    scriptTokens,
			"touched":   scriptTouched,
			"waitfor":   scriptWaitFor,
		},
	})
}

func setUpScript(e *testscript.Env) error {
	home := filepath.Join(e.WorkDir, "home")
	fixtures, err := filepath.Abs("../../../../testdata/wasm")
	if err != nil {
		return err
	}
	e.Setenv("PARLEY_HOME", home)
	e.Setenv("GOGC", "400")              // parley's main collects later, too
	e.Setenv("PARLEY_RUNNER_IDLE", "1s") // a script ends when nothing of it is left
	e.Setenv("WASM", fixtures)
	e.Setenv("SDK", filepath.Join(fixtures, "..", "..", "sdk"))
	e.Setenv("HOME", filepath.Join(e.WorkDir, "user"))
	for name, value := range goEnv() {
		e.Setenv(name, value)
	}
	if chrome, _, err := cdp.FindChrome(os.Getenv, ""); err == nil {
		e.Setenv("CHROME", chrome)
	}
	for _, name := range []string{"PARLEY_CHROME", "CHROME_PATH"} {
		if v := os.Getenv(name); v != "" {
			e.Setenv(name, v)
		}
	}
	return testhome.Fill(home)
}

// checkFoldersIn checks that each folder that a script has left in its home is refused once everybody can write to it.
func checkFoldersIn(t *testing.T, home string) {
	dirs := parley.FindDirs(home, os.Getenv)
	for _, base := range []string{dirs.Data, dirs.State, dirs.Cache} {
		entries, _ := os.ReadDir(base)
		for _, e := range entries {
			path := filepath.Join(base, e.Name())
			if !e.IsDir() || runtime.GOOS == "windows" || dirs.Check() != nil { // the script was about that
				continue
			}
			if err := os.Chmod(path, 0o777); err != nil {
				t.Error(err)
			}
			if dirs.Check() == nil {
				t.Errorf("%s may be for everybody; add it to the folders of the host in dirs.go", path)
			}
			_ = os.Chmod(path, 0o700)
		}
	}
}

// goEnv returns the settings that let the go command in a script use the caches of the user.
var goEnv = sync.OnceValue(func() (env map[string]string) {
	out, err := exec.Command("go", "env", "-json", "GOPATH", "GOMODCACHE", "GOCACHE", "GOTOOLCHAIN", "GOPROXY",
		"GOSUMDB").Output()
	if err != nil || json.Unmarshal(out, &env) != nil {
		return nil // without a go command; scripts that need it have a condition
	}
	return env
})

// scriptCondition evaluates [chromium], [golang], [clang], [rust], [registry], [unshare] and [root]. In CI the
// first five must hold.
func scriptCondition(name string) (bool, error) {
	var err error
	switch name {
	case "chromium":
		_, _, err = cdp.FindChrome(os.Getenv, "")
	case "golang":
		_, err = exec.LookPath("go")
	case "clang":
		_, err = os.Stat("/usr/include/wasm32-wasi/stdio.h")
	case "registry":
		_, err = exec.LookPath("docker-registry")
	case "rust":
		_, err = os.Stat("/usr/lib/rustlib/wasm32-wasi")
	case "unshare":
		return runtime.GOOS == "linux" && exec.Command("unshare", "-rn", "true").Run() == nil, nil
	case "runners":
		return len(wasm.MissingIsolation(false)) == 0, nil
	case "root":
		return os.Geteuid() == 0, nil
	default:
		return false, fmt.Errorf("unknown condition")
	}
	if err != nil && os.Getenv("CI") == "true" {
		return false, fmt.Errorf("required in CI: %w", err)
	}
	return err == nil, nil
}

// scriptExitCode runs a program that must end with an exit code: exitcode 81 parley text hash.
func scriptExitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := codeOf(ts, ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func codeOf(ts *testscript.TestScript, err error) int {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("cannot run: %v", err)
	}
	if err == nil {
		return 0
	}
	return exit.ExitCode()
}

// scriptJSON compares the outputs of a jq expression over a JSON document with a value: json stdout .data.total 3.
// Strings need no quotes, several outputs are joined by spaces, and without a value the output must be true. A file of
// several documents counts as an array.
func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: [!] json FILE EXPR [WANT]")
	}
	text := ts.ReadFile(args[0])
	documents := decodeAll(ts, text)
	var input any = documents
	switch len(documents) {
	case 0:
		ts.Fatalf("%s is not JSON", args[0])
	case 1:
		input = documents[0]
	}
	query, err := gojq.Parse(args[1])
	ts.Check(err)
	var exact, plain []string
	for iter := query.Run(input); ; {
		v, ok := iter.Next()
		if !ok {
			break
		}
		if err, failed := v.(error); failed {
			ts.Fatalf("%s: %v", args[1], err)
		}
		raw, err := gojq.Marshal(v)
		ts.Check(err)
		exact = append(exact, string(raw))
		if s, isString := v.(string); isString {
			raw = []byte(s)
		}
		plain = append(plain, string(raw))
	}
	want := "true"
	if len(args) == 3 {
		want = args[2]
	}
	same := strings.Join(plain, " ") == want
	if v, used, err := decodeOne(want); err == nil && strings.TrimSpace(want[used:]) == "" {
		raw, _ := gojq.Marshal(v)
		same = same || strings.Join(exact, " ") == string(raw)
	}
	if same == neg {
		ts.Fatalf("%s is %s, want %s", args[1], strings.Join(exact, " "), want)
	}
}

func decodeAll(ts *testscript.TestScript, text string) []any {
	documents := []any{}
	for rest := strings.TrimSpace(text); rest != ""; {
		v, used, err := decodeOne(rest)
		if err != nil {
			ts.Fatalf("no JSON at %.60q: %v", rest, err)
		}
		documents = append(documents, v)
		rest = strings.TrimSpace(rest[used:])
	}
	return documents
}

// decodeOne decodes the first JSON value of a text and returns its end.
func decodeOne(text string) (v any, used int, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	err = dec.Decode(&v)
	return v, int(dec.InputOffset()), err
}

func scriptTokens(ts *testscript.TestScript, neg bool, args []string) {
	atMost(ts, neg, args, "tokens", func(s string) float64 { return float64(len(s)) / 4.5 })
}

func scriptBytes(ts *testscript.TestScript, neg bool, args []string) {
	atMost(ts, neg, args, "bytes", func(s string) float64 { return float64(len(s)) })
}

func scriptLines(ts *testscript.TestScript, neg bool, args []string) {
	atMost(ts, neg, args, "lines", func(s string) float64 { return float64(strings.Count(s, "\n")) })
}

func scriptColumns(ts *testscript.TestScript, neg bool, args []string) {
	atMost(ts, neg, args, "columns", func(s string) float64 {
		widest := 0
		for _, line := range strings.Split(s, "\n") {
			widest = max(widest, utf8.RuneCountInString(line))
		}
		return float64(widest)
	})
}

func atMost(ts *testscript.TestScript, neg bool, args []string, unit string, measure func(string) float64) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: %s FILE MAX", unit)
	}
	limit, err := strconv.ParseFloat(args[1], 64)
	ts.Check(err)
	text := ts.ReadFile(args[0])
	got := measure(text)
	ts.Logf("%.0f %s of %.0f", got, unit, limit)
	if got > limit || text == "" {
		ts.Fatalf("%s: %.1f %s, expected more than 0 and at most %.0f", args[0], got, unit, limit)
	}
}

// scriptMode checks the permissions of files: mode 0600 FILE...
func scriptMode(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args[1:] {
		info, err := os.Stat(ts.MkAbs(name))
		ts.Check(err)
		if got := fmt.Sprintf("%04o", info.Mode().Perm()); (got == args[0]) == neg {
			ts.Fatalf("%s has mode %s", name, got)
		}
	}
}

// scriptPad writes a file of N bytes that begins and ends with given texts: pad FILE N BEFORE AFTER.
func scriptPad(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	fill := n - len(args[2]) - len(args[3])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(args[2]+strings.Repeat("x", fill)+args[3]), 0o600))
}

// scriptServe serves the files of a folder and sets $URL. It adds /never, which does not respond, /cookie, which sets a
// cookie, /private/, which asks for a login, /to?URL, which redirects, and /touched, for which the command touched
// waits. $SECURE is the same over TLS, with a key whose pin is $PIN.
func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve DIR")
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/cookie", func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "flavour", Value: "plain", Path: "/"})
		io.WriteString(w, "<title>Cookie</title>")
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.RawQuery, http.StatusFound)
	})
	touches := make(chan struct{}, 100)
	mux.HandleFunc("/touched", func(http.ResponseWriter, *http.Request) { touches <- struct{}{} })
	mux.HandleFunc("/private/", func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ada" || password != "enchantress" {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		io.WriteString(w, "<title>Private</title>welcome")
	})
	server := httptest.NewServer(mux)
	ts.Setenv("URL", server.URL)
	secure := httptest.NewUnstartedServer(mux) // its certificate is of no authority
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	ts.Defer(secure.Close)
	key := sha256.Sum256(secure.Certificate().RawSubjectPublicKeyInfo)
	ts.Setenv("SECURE", secure.URL)
	ts.Setenv("PIN", "pin:sha256/"+base64.StdEncoding.EncodeToString(key[:]))
	touched.Store(server.URL, touches)
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
	})
}

// scriptModel starts an endpoint of chat completions and configures it. It answers with the first file of a folder
// whose first line is in the question, or all of its parts between "&&"; the answer is what follows. Without such a
// file it ends in status 400.
func scriptModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: model DIR")
	}
	server := httptest.NewServer(modelOf(ts.MkAbs(args[0])))
	ts.Setenv("PARLEY_MODEL_URL", server.URL)
	ts.Setenv("PARLEY_MODEL_NAME", "scripted")
	ts.Defer(server.Close)
}

func modelOf(dir string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Messages []struct{ Content string } }
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(q.Messages) != 2 {
			http.Error(w, "not a question", http.StatusBadRequest)
			return
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			when, answer, _ := strings.Cut(string(data), "\n")
			missing := slices.ContainsFunc(strings.Split(when, " && "), func(part string) bool {
				return !strings.Contains(q.Messages[1].Content, part)
			})
			if err == nil && !missing {
				_ = json.NewEncoder(w).Encode(map[string]any{
					"choices": []any{map[string]any{"message": map[string]any{"content": answer}}},
					"usage":   map[string]any{"prompt_tokens": 1000, "completion_tokens": 100},
				})
				return
			}
		}
		http.Error(w, "no file has an answer to: "+q.Messages[1].Content, http.StatusBadRequest)
	}
}

// touched has, by the URL of each server, a channel with its requests of /touched.
var touched sync.Map

// scriptTouched waits until a page has fetched /touched, which shows that a call is running. ! touched checks that no
// page has fetched it since.
func scriptTouched(ts *testscript.TestScript, neg bool, _ []string) {
	touches, _ := touched.Load(ts.Getenv("URL"))
	if neg {
		if len(touches.(chan struct{})) > 0 {
			ts.Fatalf("/touched was fetched")
		}
		return
	}
	select {
	case <-touches.(chan struct{}):
	case <-time.After(30 * time.Second):
		ts.Fatalf("/touched was not fetched")
	}
}

// scriptRegistry starts an OCI registry and sets REGISTRY to oci:// with its address.
func scriptRegistry(ts *testscript.TestScript, _ bool, _ []string) {
	stop, address, err := foreign.StartRegistry(ts.MkAbs("registry"))
	ts.Check(err)
	ts.Defer(stop)
	ts.Setenv("REGISTRY", "oci://"+address)
}

// scriptWaitFor waits until a file exists and is not empty.
func scriptWaitFor(ts *testscript.TestScript, _ bool, args []string) {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if info, err := os.Stat(ts.MkAbs(args[0])); err == nil && info.Size() > 0 {
			return
		}
	}
	ts.Fatalf("%s did not appear", args[0])
}

// feed is written to the stdin of a process before it gets a signal. It is larger than a pipe's buffer, so once it is
// written, the process is running and reads.
var feed = strings.Repeat(" ", 1<<20)

// scriptSignal runs a command with FILE as its stdin, sends a signal once the command has read it and, unless the third
// word is "-", has printed that word, and checks the exit code: signal INT 130 PRINTED FILE parley ...
func scriptSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 5 {
		ts.Fatalf("usage: signal INT|TERM|HUP|KILL CODE PRINTED|- FILE program [args...]")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	path := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p := filepath.Join(dir, args[4]); path == "" && isFile(p) {
			path = p
		}
	}
	cmd := exec.Command(path, args[5:]...)
	cmd.Args[0] = args[4]
	cmd.Dir, cmd.Env = ts.MkAbs("."), []string{}
	for _, name := range []string{"PARLEY_HOME", "PARLEY_RUNNER_IDLE", "HOME", "PATH", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	if s := signals[args[0]]; signal.Ignored(s) { // under nohup the signal is ignored, which the program would inherit
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, s)
		defer signal.Stop(caught)
	}
	var out, errs watched
	cmd.Stdout, cmd.Stderr = &out, &errs
	in, err := cmd.StdinPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	defer cmd.Process.Kill()
	_, err = io.WriteString(in, feed+ts.ReadFile(args[3]))
	ts.Check(err)
	ts.Check(in.Close())
	if args[2] != "-" && !out.waitFor(args[2], 30*time.Second) {
		ts.Fatalf("the program did not print %q, but %q %q", args[2], out.String(), errs.String())
	}
	ts.Check(cmd.Process.Signal(signals[args[0]]))
	began := time.Now()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err = <-done:
	case <-time.After(30 * time.Second):
		ts.Fatalf("the program did not end")
	}
	ts.Logf("ended %s after the signal", time.Since(began).Round(time.Millisecond))
	fmt.Fprint(ts.Stdout(), out.String())
	fmt.Fprint(ts.Stderr(), errs.String())
	if got := codeOf(ts, err); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// watched is a buffer that can be waited on.
type watched struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
	return w.text.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func (w *watched) waitFor(part string, patience time.Duration) bool {
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		if strings.Contains(w.text.String(), part) {
			w.mu.Unlock()
			return true
		}
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-deadline:
			return false
		}
	}
}

// needBrowser skips a test on a system without a browser. In CI there must be one.
func needBrowser(t *testing.T) {
	t.Helper()
	if found, err := scriptCondition("chromium"); err != nil {
		t.Fatal(err)
	} else if !found {
		t.Skip("needs a browser")
	}
}
