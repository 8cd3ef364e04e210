package page_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-tools/parley/internal/sample"
)

// engine reads a trace with the engine of Chrome's DevTools, and prints what that finds in it.
const engine = `import {parseRawTraceBuffer} from "./chrome-devtools-mcp/build/src/processors/PerformanceTrace.js";
const parts = [];
for await (const part of process.stdin) parts.push(part);
const {parsedTrace, error} = await parseRawTraceBuffer(Buffer.concat(parts));
if (error) throw new Error(error);
const {Renderer, NetworkRequests} = parsedTrace.data, functions = new Set();
for (const {threads} of Renderer.processes.values())
	for (const {profileCalls = []} of threads.values()) for (const call of profileCalls) functions.add(call.callFrame.functionName);
console.log(JSON.stringify({functions: [...functions],
	requests: NetworkRequests.byTime.map(r => r.args.data.url)}));`

// TestRecord checks what recordings say of pages that are busy with different things, and that a program of others
// reads the trace.
func TestRecord(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	far := strings.Replace(url, "127.0.0.1", "localhost", 1)
	const page = `<title>Busy</title><p id=out></p><script>
		function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
		function thrash() { for (let i = 0; i < 300; i++) { out.append(document.createElement("p")); out.offsetHeight } }
		function sorts() { for (let i = 0; i < 4; i++) Array.from({length: 99_999}, (_, n) => n * 7919 % 99_991).sort() }
		function later() { return Promise.resolve().then(() => { for (let i = 0; i < 1e8; i++); }) }
		const wait = (ms) => new Promise(done => setTimeout(done, ms))</script>`
	other, err := c.invoke(t.Context(), "Target.createTarget", `{"url":"data:text/html,<script>setInterval(function hidden()`+
		` { performance.mark('hiddenInBrowser'); for (let i = 0; i < 1e6; i++); }, 50)</script>","background":true}`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = c.invoke(t.Context(), "Target.closeTarget", string(other)) }()
	c.show(t, url+"/", page)
	few := sample.OneIn(t, 3)
	for _, test := range []struct{ script, want string }{
		{"fib(36)", `^\d+ [1-9]\d* [1-9] [1-9]\d+ \d+ ms fib /:2:15`},
		{"thrash()", `(?s)\d+ ms thrash /:3:18.*\n\d+ ms (layout|style), 30\d times`},
		{"sorts()", `\d+ ms sorts /:4:17`},
		{"(() => fib(35))()", `\d+ ms fib`},
		{"await later()", `\d+ ms \(anonymous\) /:5:`},
		{"setTimeout(() => fib(35)); await wait(300)", `ms fib /:2:15`},
		{"await fetch('/slow')", `^[1-9]\d* \d+ \d \d+ (?s).*([3-9]\d\d|\d{4,}) ms request /slow$`},
		{"await Promise.all([fetch('/slow'), fetch('/slow?2'), fetch('/next')])", `(?m)\d+ ms request /slow(\?2)?$`},
		{"(function given() { for (const end = Date.now() + 300; Date.now() < end;); })()", `ms \S+ evaluated:1:`},
		{"await wait(50)", `^\d+ \d+ \d \d+ (\d+ ms .*\n?)*$`},
		{"for (let i = 0; i < 30; i++) out['f' + i] = new Function('n', 'return n < 2 ? n : 1'), fib(35)", `ms fib`},
		{"const f = document.createElement('iframe'); f.src = '" + far + "/echo?%3Cscript%3Efunction inside(n) { return" +
			" n < 2 ? n : inside(n - 1) %2B inside(n - 2) }; inside(34)%3C/script%3E'; out.append(f);" +
			" await new Promise(d => f.onload = d)",
			`ms inside /echo:1:24`},
	} {
		steps := fmt.Sprintf(`{"steps":[{"tool":"record","params":{"action":"start"}},{"tool":"evaluate","params":{"expression":%q}},`+
			`{"tool":"record","params":{"action":"stop","trace":true}}]}`, test.script)
		if !few() && !strings.Contains(test.script, "fib(36)") && !strings.Contains(test.script, "Promise.all") {
			continue // the program of others reads these two
		}
		sent, err := c.send(t.Context(), c.pages, "do", steps)
		if err != nil || len(sent.Content) != 1 {
			t.Fatalf("%s: %s", test.script, exit(err))
		}
		var done DoResult
		whole := strings.Replace(string(sent.Data), "content 1", sent.Content[0].Data, 1)
		if err := json.Unmarshal([]byte(whole), &done); err != nil {
			t.Fatal(err)
		}
		var r RecordResult
		if err := json.Unmarshal([]byte(effects(done.Results[len(done.Results)-1].Result)), &r); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%d %d %d %d %s", r.Recorded, r.Busy, r.LongTasks, r.Longest, r.Text)
		if !regexp.MustCompile(test.want).MatchString(got) {
			t.Errorf("%s:\n%s\nwant %s", test.script, got, test.want)
		}
		if len(r.Text) > 1200 { // 300 tokens
			t.Errorf("%s: a summary of %d bytes", test.script, len(r.Text))
		}
		if strings.Contains(string(r.Data), "hidden") {
			t.Errorf("%s: the trace has the other page", test.script)
		}
		if test.script != "fib(36)" && !strings.Contains(test.script, "Promise.all") {
			continue
		}
		var found struct {
			Functions, Requests []string
		}
		if err := json.Unmarshal(runModule(t, "chrome-devtools-mcp", engine, string(r.Data)), &found); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(r.Text, "ms fib") && !strings.Contains(effects(found.Functions), `"fib"`) ||
			strings.Contains(test.script, "fetch") && len(found.Requests) != 3 {
			t.Errorf("%s: DevTools find %+v", test.script, found)
		}
	}
	r, err := run(t, c, Record, RecordParams{For: 200})
	if err != nil || r.Recorded < 150 || r.Data != nil {
		t.Errorf("%+v, %s", r, exit(err))
	}
	for _, test := range []struct{ action, want string }{
		{"stop", "not_met: nothing is recorded; page.record start begins"},
		{"start", "no error"},
		{"start", "not_met: the browser is already recording; page.record stop ends the recording of this page"},
		{"stop", "no error"},
	} {
		if _, err := run(t, c, Record, RecordParams{Action: test.action}); exit(err) != test.want {
			t.Errorf("%s: %s, want %s", test.action, exit(err), test.want)
		}
	}
}
