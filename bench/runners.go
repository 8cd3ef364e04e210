package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	timedCalls = 400

	// The crowd of clients on one server.
	clients        = 64
	callsPerClient = 200
)

// server is a running `parley mcp` on stdio with a client.
type server struct {
	session *mcp.ClientSession
	took    map[string][]time.Duration // by tool
}

func (b *bench) serve(ctx context.Context, home string) (*server, error) {
	cmd := exec.Command(b.parley, "mcp", "--docs", "minimal")
	cmd.Env = b.env(home)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).
		Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return nil, err
	}
	return &server{session, map[string][]time.Duration{}}, nil
}

// call times one call of a tool.
func (s *server) call(ctx context.Context, tool, params string) error {
	start := time.Now()
	r, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: "call_tool",
		Arguments: json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, params))})
	s.took[tool] = append(s.took[tool], time.Since(start))
	if err == nil && r.IsError {
		err = errors.New(contentText(r))
	}
	return err
}

func contentText(r *mcp.CallToolResult) string {
	var text strings.Builder
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text.WriteString(t.Text)
		}
	}
	return text.String()
}

// runners times warm calls over MCP in runners and in the server's own process, measures what runners hold in memory,
// and lets many clients call at once. It uses the homes that calls has set up.
func (b *bench) runners() error {
	if err := b.installGuests(); err != nil {
		return err
	}
	defer b.stopRunners("plain")
	ctx := context.Background()
	return errors.Join(b.warmCalls(ctx), b.runnerMemory(), b.clientsAtOnce(ctx))
}

func (b *bench) warmCalls(ctx context.Context) error {
	isolated, err := b.serve(ctx, "plain")
	if err != nil {
		return err
	}
	defer isolated.session.Close()
	local, err := b.serve(ctx, "local")
	if err != nil {
		return err
	}
	defer local.session.Close()
	tools := []struct{ name, params string }{{"echo.echo", `{"value":1}`}, {"text.hash", `{"text":"hello"}`}}
	for range timedCalls {
		for _, s := range []*server{isolated, local} {
			for _, t := range tools {
				if err := s.call(ctx, t.name, t.params); err != nil {
					return fmt.Errorf("%s: %w", t.name, err)
				}
			}
		}
	}
	base := median(local.took["echo.echo"])
	fmt.Fprintln(b.out, "\nWarm calls over MCP on stdio, in turns")
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "median ms\tx C in process\tat most\t  ")
	for _, r := range []struct {
		name   string
		s      *server
		tool   string
		atMost float64
	}{
		{"C, in process", local, "echo.echo", 0},
		{"C, in a runner", isolated, "echo.echo", 1.5},
		{"Go, in process", local, "text.hash", 0},
		{"Go, in a runner", isolated, "text.hash", 2},
	} {
		m := median(r.s.took[r.tool])
		x, bound := float64(m)/float64(base), ""
		if r.atMost > 0 {
			bound = fmt.Sprintf("%.1f", r.atMost)
		}
		fmt.Fprintf(w, "%.2f\t%.2f\t%s\t  %s%s\n", milliseconds(m), x, bound, r.name, overMark(r.atMost > 0 && x > r.atMost))
	}
	return w.Flush()
}

// runnerMemory prints the memory that each runner has for itself, less the compiled code of its guest, which is its
// largest private executable mapping.
func (b *bench) runnerMemory() error {
	raw, err := b.output("plain", "runner", "list", "--json")
	if err != nil {
		return err
	}
	var list struct {
		Data struct {
			Runners []struct {
				PID    int
				Plugin string
			}
		}
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	fmt.Fprintln(b.out, "\nMemory of runners beside the compiled code of their guests")
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "MB\tat most\tcode MB\t  ")
	for _, r := range list.Data.Runners {
		atMost, known := map[string]float64{"echo": 5, "text": 20}[r.Plugin]
		if !known {
			continue
		}
		all, code, err := privateMemory(r.PID)
		if err != nil {
			return err
		}
		own := all - code
		fmt.Fprintf(w, "%.1f\t%.0f\t%.1f\t  %s%s\n", own, atMost, code, r.Plugin, overMark(own > atMost))
	}
	return w.Flush()
}

// privateMemory returns the megabytes that a process shares with no other, and those of them that are executable and
// not of a file.
func privateMemory(pid int) (all, code float64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	executable := false
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if len(fields) >= 5 && strings.Contains(fields[0], "-") {
			executable = strings.Contains(fields[1], "x") && len(fields) == 5
			continue
		}
		if len(fields) == 3 && (fields[0] == "Private_Dirty:" || fields[0] == "Private_Clean:") {
			var kB float64
			if _, err := fmt.Sscan(fields[1], &kB); err != nil {
				return 0, 0, err
			}
			all += kB / 1024
			if executable {
				code += kB / 1024
			}
		}
	}
	return all, code, err
}

// clientsAtOnce lets many clients of one server on HTTP call at once. Each call must return its own result.
func (b *bench) clientsAtOnce(ctx context.Context) error {
	cmd := exec.Command(b.parley, "mcp", "--docs", "minimal", "--http", "127.0.0.1:0", "--no-token")
	cmd.Env = b.env("plain")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	address := ""
	for lines := bufio.NewScanner(stderr); address == "" && lines.Scan(); {
		for _, word := range strings.Fields(lines.Text()) {
			if strings.HasPrefix(word, "http://") {
				address = strings.TrimRight(word, ".,")
			}
		}
	}
	if address == "" {
		return errors.New("parley mcp --http did not print its address")
	}
	go io.Copy(io.Discard, stderr)
	var refused, lost atomic.Int64
	var group sync.WaitGroup
	start := time.Now()
	for c := range clients {
		group.Go(func() {
			session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).
				Connect(ctx, &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: http.DefaultClient,
					DisableStandaloneSSE: true}, nil)
			if err != nil {
				lost.Add(callsPerClient)
				return
			}
			defer session.Close()
			for i := range callsPerClient {
				text := fmt.Sprintf("client %d, call %d", c, i)
				r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "call_tool", Arguments: map[string]any{
					"name": "text.hash", "arguments": map[string]any{"text": text}}})
				switch {
				case err == nil && r.IsError:
					refused.Add(1)
				case err != nil || !strings.Contains(contentText(r), fmt.Sprintf("%x", sha256.Sum256([]byte(text)))):
					lost.Add(1)
				}
			}
		})
	}
	group.Wait()
	took := time.Since(start)
	fmt.Fprintf(b.out, "\n%d clients x %d calls of one Go plugin over HTTP: %d refused, %d lost, "+
		"%.2f ms of the clock each%s\n", clients, callsPerClient, refused.Load(), lost.Load(),
		milliseconds(took)/(clients*callsPerClient), overMark(refused.Load()+lost.Load() > 0))
	return nil
}

// installGuests installs guests in C in two homes: one with runners, which is the default, and one whose policy has
// calls in Parley's own process.
func (b *bench) installGuests() error {
	policy := filepath.Join(b.work, "local", "config", "policy.toml")
	if err := os.MkdirAll(filepath.Dir(policy), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(policy, []byte("[defaults]\nisolate = \"none\"\n"), 0o600); err != nil {
		return err
	}
	for _, home := range []string{"plain", "local"} {
		for _, guest := range []string{"rev", "echo"} {
			if err := b.succeed(home, "plugin", "install", filepath.Join("testdata", "wasm", guest+".wasm")); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) stopRunners(home string) { _ = b.succeed(home, "runner", "stop") }
