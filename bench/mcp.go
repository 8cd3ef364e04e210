package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"text/tabwriter"
)

// listTools is the input of a client that only lists the tools. The server ends when it ends.
const listTools = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`

// fullOverhead limits the time of a server in full mode, as a multiple of that in minimal mode.
const fullOverhead = 2.0

// callOverheadMs limits the median of the additional time of a call over stdio compared with the same call in process.
const callOverheadMs = 0.5

var callLine = regexp.MustCompile(`^BenchmarkCall/(\S+?)(?:-\d+)?\s`)

// mcp times servers on stdio from start to exit with one tools/list, and calls over each transport.
func (b *bench) mcp() error {
	var servers []*subject
	for _, mode := range []string{"minimal", "progressive", "full"} {
		s := b.command("parley mcp --docs "+mode+", from its start to tools/list and its end", "plain", "mcp", "--docs", mode)
		s.stdin = listTools
		servers = append(servers, s)
	}
	if err := b.table("Cold process that serves MCP on stdio", servers...); err != nil {
		return err
	}
	ratio := float64(median(servers[2].took)) / float64(median(servers[0].took))
	fmt.Fprintf(b.out, "full mode takes %.1f times as long as minimal (at most %.1f)%s\n", ratio, fullOverhead,
		overMark(ratio > fullOverhead))
	return b.wires()
}

// wires prints the benchmark of host/mcp: one call, in process and over each transport.
func (b *bench) wires() error {
	cmd := exec.Command("go", "test", "-run=^$", "-bench=^BenchmarkCall$", "./host/mcp")
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("measure calls over MCP: %w\n%s", err, stdout.String())
	}
	fmt.Fprintf(b.out, "\nOne call over MCP, with a client in the same process "+
		"(stdio: at most %.1f ms more than in process)\n", callOverheadMs)
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "median us\tmore us\t  ")
	inProcess := 0.0
	for line := range strings.Lines(stdout.String()) {
		m := callLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		p50 := metric(line, "us-p50")
		if inProcess == 0 {
			inProcess = p50
		}
		more := p50 - inProcess
		fmt.Fprintf(w, "%.0f\t%.0f\t  %s%s\n", p50, more, strings.ReplaceAll(m[1], "_", " "),
			overMark(m[1] == "stdio" && more > 1000*callOverheadMs))
	}
	if inProcess == 0 {
		return fmt.Errorf("measure calls over MCP: nothing was measured:\n%s", stdout.String())
	}
	return w.Flush()
}
