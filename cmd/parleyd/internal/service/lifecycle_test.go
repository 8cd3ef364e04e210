package service

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/config"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/internal/testhome"
)

// TestReload changes the files of a service. A fault changes nothing, and is logged with its line.
func TestReload(t *testing.T) {
	f := start(t, "")
	const other = "fedcba9876543210"
	for _, c := range []struct {
		name           string
		tokens, config string // "": as they are
		want           string // in the log
		alice, bob     bool   // who is accepted afterwards
		host           int    // status of a request to tools.example
	}{
		{"a token more", "alice=" + token + "\nbob=" + other + "\n", "", "/tokens]", true, true, 403},
		{"a key that is unknown", "", "hots = [\"tools.example\"]",
			"parleyd.toml:3:1: hots: unknown key; did you mean hosts?", true, true, 403},
		{"a host more", "", "hosts = [\"tools.example\"]\nlog.level = \"debug\"", "keys=\"[hosts log.level]\"",
			true, true, 401},
		{"a file of tokens that is wrong", "short\n", "", "nothing was reloaded", true, true, 401},
		{"a token less", "bob=" + other + "\n", "", "/tokens]", false, true, 401},
		{"another address", "", "listen = [\"127.0.0.1:1\"]", "a change takes effect at the next start\" key=listen",
			false, true, 403},
		{"TLS", "", "[tls]\ncert = \"/c\"\nkey = \"/k\"", "TLS can only be turned on or off", false, true, 403},
	} {
		before := len(f.log.String())
		if c.tokens != "" {
			f.write(t, "tokens", c.tokens)
		}
		if c.config != "" {
			f.write(t, "parleyd.toml", f.config(c.config))
		}
		f.signals <- syscall.SIGHUP
		f.log.await(t, "reloaded") // at least once
		waitFor(t, c.name, func() bool { return strings.Contains(f.log.String()[before:], c.want) })
		for text, accepted := range map[string]bool{token: c.alice, other: c.bob} {
			s, err := connect(f.url+"/mcp", client{token: text})
			if (err == nil) != accepted {
				t.Errorf("%s: %s is accepted: %v, want %v", c.name, text, err == nil, accepted)
			}
			if err == nil {
				_ = s.Close()
			}
		}
		if status, _ := get(t, f.url+"/mcp", "tools.example"); status != c.host {
			t.Errorf("%s: status %d, want %d", c.name, status, c.host)
		}
	}
}

// TestStreamOfRemovedToken removes the token of a client that listens: on a stream of its session, or in one request.
func TestStreamOfRemovedToken(t *testing.T) {
	f := start(t, "")
	send := func(method, body, revision, session string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, f.url+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Authorization": {"Bearer " + token}, "Mcp-Protocol-Version": {revision}, "Mcp-Session-Id": {session},
			"Mcp-Method": {"subscriptions/listen"}}
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer, err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	const client = `"clientInfo":{"name":"c","version":"1"},`
	began := send(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+client+
		`"protocolVersion":"2025-11-25","capabilities":{}}}`, "2025-11-25", "")
	streams := map[string]*http.Response{
		"GET": send(http.MethodGet, "", "2025-11-25", began.Header.Get("Mcp-Session-Id")),
		"POST": send(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":`+
			`{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},`+
			`"io.modelcontextprotocol/clientCapabilities":{}}}}`, "2026-07-28", ""),
	}
	f.write(t, "tokens", "bob=fedcba9876543210\n")
	f.signals <- syscall.SIGHUP
	for name, stream := range streams {
		ended := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, stream.Body)
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Errorf("%s: the stream goes on without its token", name)
		}
	}
}

// TestReloadedKeys says of each key of a configuration when a change of it counts. What is not in the table of the keys
// that count at a start counts by a reload: it is read from the configuration of the request.
func TestReloadedKeys(t *testing.T) {
	byReload := []string{"drain", "hosts", "log.level", "oauth.audience", "oauth.callers", "oauth.issuer", "oauth.jwks",
		"oauth.resource", "plain_http", "tls.cert", "tls.key", "token_file", "trusted_proxies"}
	path := filepath.Join(t.TempDir(), "parleyd.toml")
	if err := os.WriteFile(path, []byte("nonsense = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := config.Read(path)
	_, known, _ := strings.Cut(err.Error(), "; known are ")
	known, _, _ = strings.Cut(known, "\n")
	var keys []string
	for key := range strings.SplitSeq(known, ", ") {
		if table, _, _ := strings.Cut(key, "."); !slices.Contains([]string{"telemetry", "fleet", "worker"}, table) {
			keys = append(keys, key)
		}
	}
	if all := slices.Sorted(slices.Values(slices.Concat(byReload, atStart))); !slices.Equal(keys, all) {
		t.Errorf("the keys are %q, and it is said when %q count", keys, all)
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

// TestDrain ends a service with a call in flight, which answers. Meanwhile it is not ready and begins no call.
func TestDrain(t *testing.T) {
	f := start(t, "status_listen = \"127.0.0.1:0\"")
	answers := f.slowCall(t)
	f.signals <- syscall.SIGTERM
	status := "http://" + f.status[0].Addr().String()
	waitFor(t, "draining", f.draining.Load)
	if code, body := get(t, status+"/readyz", ""); code != 503 || !strings.Contains(body, `"not draining","ok":false`) {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if code, _ := get(t, status+"/livez", ""); code != 200 {
		t.Errorf("/livez: %d", code)
	}
	waitFor(t, "a new call is refused", func() bool {
		answer, err := post(f.url, "text.hash", `{"text":"a"}`, `{}`)
		return err == nil && answer.StatusCode == 503 && answer.Header.Get("Retry-After") != ""
	})
	if answer := <-answers; !strings.Contains(answer, "timeout") {
		t.Errorf("the call in flight: %s", answer)
	}
}

// TestDrainEnds ends the calls that outlast the drain, and all calls at a second signal.
func TestDrainEnds(t *testing.T) {
	for _, config := range []string{"drain = \"100ms\"", "drain = \"1h\""} {
		f := start(t, config)
		answers := f.slowCall(t)
		began := time.Now()
		f.signals <- syscall.SIGTERM
		waitFor(t, "draining", f.draining.Load)
		if strings.Contains(config, "1h") {
			f.signals <- syscall.SIGTERM
		}
		answer := <-answers
		if took := time.Since(began); took > slowTime*3/4 || strings.Contains(answer, "timeout") {
			t.Errorf("%s: after %s: %s", config, took, answer)
		}
	}
}

// TestDrainWhileAsking ends a service while a call waits for a person: the call does not hold the end up, and gets the
// approval, which stays open for the next process.
func TestDrainWhileAsking(t *testing.T) {
	f := start(t, "drain = \"1h\"")
	writePolicy(t, "[callers.\"mcp-http:alice\"]\nallow = [\"*\"]\nconfirm = [\"effect:write\"]\n")
	answers := make(chan string, 1)
	go func() {
		answer, err := post(f.url, "page.open", `{"url":"http://a.test"}`, `{}`)
		if err != nil {
			answers <- err.Error()
			return
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		answers <- string(text)
	}()
	store := parley.Approvals(f.parley).Store
	waitFor(t, "a person is asked", func() bool { return store.CountOpen() == 1 })
	f.signals <- syscall.SIGTERM
	all, err := store.List()
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	answer := <-answers
	for _, want := range []string{`\"exit_code\":82`, `\"approval\":\"` + all[0].ID, "the service shuts down", "call again once"} {
		if !strings.Contains(answer, want) {
			t.Errorf("no %s in %s", want, answer)
		}
	}
	if store.CountOpen() != 1 {
		t.Error("the approval is no longer open")
	}
}

// slowTime is how long a call of slowCall takes, until it ends in timeout.
const slowTime = 2 * time.Second

// slowCall makes a call in the background, waits until it runs, and returns where its answer comes.
func (f *fixture) slowCall(t *testing.T) <-chan string {
	t.Helper()
	if _, err := f.parley.Install(t.Context(), "../../../../testdata/wasm/echo.wasm"); err != nil {
		t.Fatal(err)
	}
	if _, err := post(f.url, "echo.echo", `{}`, `{}`); err != nil { // which compiles it
		t.Fatal(err)
	}
	answers := make(chan string, 1)
	go func() {
		answer, err := post(f.url, "echo.sleep", `{}`, fmt.Sprintf(`{"timeout":"%s"}`, slowTime))
		if err != nil {
			answers <- err.Error()
			return
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		answers <- fmt.Sprint(string(body), err)
	}()
	waitFor(t, "it runs", func() bool {
		return slices.ContainsFunc(wasm.Runners(f.parley.Dirs().Run), func(r wasm.RunnerInfo) bool { return r.Busy })
	})
	return answers
}

// post makes a call in one request, without a session.
func post(url, tool, arguments, options string) (*http.Response, error) {
	const about = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool",%s,`+
		`"arguments":{"name":%q,"arguments":%s,"options":%s}}}`, about, tool, arguments, options)
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"/mcp", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Mcp-Name": "call_tool",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
	} {
		r.Header.Set(name, value)
	}
	return http.DefaultClient.Do(r)
}

// process is the service in a process of its own, with a socket as systemd passes it.
type process struct {
	*exec.Cmd
	states chan string // that it tells systemd
}

func launch(t *testing.T, config string, socket net.Listener) *process {
	t.Helper()
	passed, err := socket.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer passed.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	address := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"}
	notify, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0"`, self), make(chan string, 100)}
	p.Env = append(os.Environ(), configVariable+"="+config, "LISTEN_FDS=1", "LISTEN_FDNAMES=mcp",
		"NOTIFY_SOCKET="+address.Name, "WATCHDOG_USEC=200000")
	p.ExtraFiles, p.Stderr = []*os.File{passed}, os.Stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		buffer := make([]byte, 1024)
		for {
			n, err := notify.Read(buffer)
			if err != nil {
				close(p.states)
				return
			}
			select {
			case p.states <- string(buffer[:n]):
			default: // a test that waits for no more of them
			}
		}
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
		_ = notify.Close()
	})
	return p
}

// await waits for a state that begins so.
func (p *process) await(t *testing.T, prefix string) string {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case state := <-p.states:
			if strings.HasPrefix(state, prefix) {
				return state
			}
		case <-limit:
			t.Fatalf("systemd was not told %s", prefix)
		}
	}
}

// TestSystemd follows the states of a service through its life.
func TestSystemd(t *testing.T) {
	t.Setenv("PARLEY_HOME", testhome.New(t))
	config, socket := socketConfig(t)
	p := launch(t, config, socket)
	p.await(t, "READY=1\nSTATUS=")
	p.await(t, "WATCHDOG=1")
	_ = p.Process.Signal(syscall.SIGHUP)
	if state := p.await(t, "RELOADING=1"); !strings.Contains(state, "\nMONOTONIC_USEC=") {
		t.Errorf("got %q", state)
	}
	p.await(t, "READY=1")
	if answer, err := post("http://"+socket.Addr().String(), "text.hash", `{"text":"a"}`, `{}`); err != nil {
		t.Error(err)
	} else if answer.Body.Close(); answer.StatusCode != 200 {
		t.Errorf("status %d", answer.StatusCode)
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	if state := p.await(t, "STOPPING=1"); !strings.Contains(state, "\nEXTEND_TIMEOUT_USEC=40000000") {
		t.Errorf("got %q", state)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// socketConfig makes a configuration, and a socket that stays while services come and go.
func socketConfig(t *testing.T) (string, net.Listener) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "parleyd.toml")
	for path, text := range map[string]string{
		config: "token_file = \"" + dir + "/tokens\"\n", filepath.Join(dir, "tokens"): "alice=" + token + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	return config, socket
}

// installEcho sets PARLEY_HOME to a new folder, in which the plugin echo is installed.
func installEcho(t *testing.T) {
	t.Helper()
	t.Setenv("PARLEY_HOME", testhome.New(t))
	p, err := parley.Open(t.Context(), parley.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Install(t.Context(), "../../../../testdata/wasm/echo.wasm"); err != nil {
		t.Fatal(err)
	}
}

// TestUpgrade replaces the process of a service while clients call it. Each call has its answer: from the old process,
// from the new one, or from the new one after the old one refused it.
func TestUpgrade(t *testing.T) {
	installEcho(t)
	config, socket := socketConfig(t)
	url := "http://" + socket.Addr().String()
	old := launch(t, config, socket)
	old.await(t, "READY=1")
	var answered, refused atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for ctx.Err() == nil {
				tool, arguments, options := "text.hash", `{"text":"a"}`, `{}`
				if i == 0 {
					tool, arguments, options = "echo.sleep", `{}`, `{"timeout":"1s"}`
				}
				answer, err := post(url, tool, arguments, options)
				if err != nil {
					t.Errorf("an answer is lost: %v", err)
					return
				}
				body, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				switch {
				case err == nil && answer.StatusCode == 503 && answer.Header.Get("Retry-After") != "":
					refused.Add(1)
				case err != nil || answer.StatusCode != 200 || i == 0 && !strings.Contains(string(body), "timeout"):
					t.Errorf("%s: %d %s %v", tool, answer.StatusCode, body, err)
				default:
					answered.Add(1)
				}
			}
		})
	}
	waitFor(t, "calls", func() bool { return answered.Load() > 50 })
	_ = old.Process.Signal(syscall.SIGTERM)
	if err := old.Wait(); err != nil {
		t.Error(err)
	}
	before := answered.Load()
	launch(t, config, socket).await(t, "READY=1")
	waitFor(t, "calls of the new process", func() bool { return answered.Load() > before+50 })
	stop()
	clients.Wait()
	t.Logf("figures: %d calls answered, %d refused with the time to wait", answered.Load(), refused.Load())
}

// TestSlowClients opens many connections that send nothing or half a request. Others are still answered, at the address
// for monitoring in any case.
func TestSlowClients(t *testing.T) {
	f := start(t, "status_listen = \"127.0.0.1:0\"")
	const connections = 10_000
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur < connections*5/4 {
		t.Skipf("only %d files may be open", limit.Cur)
	}
	address := f.sockets[0].Addr().String()
	open, closed := make(chan net.Conn, connections), atomic.Int64{}
	var dialers sync.WaitGroup
	const addresses = 80
	for i := range addresses {
		dialers.Go(func() {
			dialer := net.Dialer{Timeout: 50 * time.Millisecond, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i+1))}}
			for j := range connections / addresses {
				conn, err := dialer.Dial("tcp", address)
				if err != nil {
					closed.Add(1)
					continue
				}
				_, _ = io.WriteString(conn, []string{"", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n"}[j%2])
				open <- conn
			}
		})
	}
	dialers.Wait()
	close(open)
	status := "http://" + f.status[0].Addr().String()
	if code, body := get(t, status+"/readyz", ""); code != 200 {
		t.Errorf("/readyz under attack: %d %s", code, body)
	}
	for conn := range open {
		_ = conn.Close()
	}
	waitFor(t, "a client is answered", func() bool {
		answer, err := post(f.url, "text.hash", `{"text":"a"}`, `{}`)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		_, err = bufio.NewReader(answer.Body).Peek(1)
		return err == nil && answer.StatusCode == 200
	})
	t.Logf("figures: %d of %d connections were not accepted", closed.Load(), connections)
}
