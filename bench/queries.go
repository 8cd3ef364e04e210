package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/itchyny/gojq"
)

// queryInProcess is the variable of the environment with which this program runs a query and ends. Its value is a file
// of parameters of json.query.
const queryInProcess = "BENCH_QUERY"

// queryRounds is how many times each query runs. The least CPU time counts.
const queryRounds = 3

// queryCases are filters, and one item of the data that is repeated until it has the size. Items with a name become
// members of an object.
var queryCases = []struct{ filter, item string }{
	{".[0:1000]", `{"id":%d,"name":"user","tags":["a","b"],"nested":{"x":0.5,"flag":true},"text":"some <b>text</b>"}`},
	{"map(select(.nested.x>0.4)|.name)|length", `{"id":%d,"name":"user","tags":["a","b"],"nested":{"x":0.5,"y":null}}`},
	{"sort_by(.id)|length", `{"id":%d,"name":"user","text":"lorem ipsum dolor sit amet"}`},
	{`reduce .[] as $r ({}; .[$r.tag] += 1)|length`, `{"id":%d,"tag":"a","text":"lorem ipsum dolor sit amet"}`},
	{"INDEX(.id)|length", `{"id":%d,"text":"lorem ipsum dolor sit amet"}`},
	{`reduce .[] as $r ([]; . + [$r.id])|length`, `{"id":%d,"text":"lorem ipsum dolor sit amet"}`},
	{`map(gsub("o";"0"))|length`, `"%d lorem ipsum dolor sit amet"`},
	{`join(" ")|gsub(", *";"")|length`, `"%d lorem ipsum, dolor sit amet"`},
	{"[paths]|length", `{"id":%d,"nested":{"x":[1,2,3]},"text":"lorem ipsum dolor sit amet"}`},
	{"add", `%d`},
	{"keys|length", `"key%d":1`},
	{"map(length)|add", `"%d lorem ipsum dolor sit amet, lorem ipsum dolor sit amet, lorem ipsum dolor sit amet"`},
}

// queries prints the CPU time of json.query in Parley's own process beside that of gojq in a process of its own, on
// 1 MB and on 5 MB. A dry run of the call, which stops before the guest, shows the part of the host.
func (b *bench) queries() error {
	if err := b.installGuests(); err != nil {
		return err
	}
	if err := b.succeed("local", "json", "query", "--params", `{"data":1,"filter":"."}`); err != nil {
		return err // compiles
	}
	fmt.Fprintf(b.out, "\njson.query, CPU time beside gojq in process\n")
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "gojq 1 MB, s\t5 MB\tjson.query 1 MB\t5 MB\t5 MB by 1 MB\tx gojq\tthe host's part\t  ")
	for i, c := range queryCases {
		var native, tool, host [2]time.Duration
		for size, megabytes := range []int{1, 5} {
			file := filepath.Join(b.work, fmt.Sprintf("query%d-%d.json", i, megabytes))
			params, err := json.Marshal(map[string]any{"data": queryData(c.item, megabytes*1_000_000), "filter": c.filter})
			if err == nil {
				err = os.WriteFile(file, params, 0o600)
			}
			if err != nil {
				return err
			}
			call := []string{b.parley, "json", "query", "--timeout", "120s", "--params", "@" + file}
			for _, one := range []struct {
				args []string
				env  string
				took *time.Duration
			}{
				{os.Args[:1], queryInProcess + "=" + file, &native[size]}, {call, "", &tool[size]},
				{append(call, "--dry-run"), "", &host[size]},
			} {
				if *one.took, err = b.leastCPU(one.args, one.env); err != nil {
					return fmt.Errorf("%s: %w", c.filter, err)
				}
			}
		}
		fmt.Fprintf(w, "%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t%.1f\t%.2f\t  %s\n", native[0].Seconds(), native[1].Seconds(),
			tool[0].Seconds(), tool[1].Seconds(), float64(tool[1])/float64(tool[0]),
			float64(tool[1])/float64(native[1]), host[1].Seconds(), c.filter)
	}
	return w.Flush()
}

// queryData repeats an item until it has the size in bytes.
func queryData(item string, size int) json.RawMessage {
	var items []string
	for length := 0; length < size; length += len(items[len(items)-1]) + 1 {
		items = append(items, fmt.Sprintf(item, len(items)*7919%1_000_003))
	}
	text := strings.Join(items, ",")
	if strings.HasPrefix(text, `"key`) {
		return json.RawMessage("{" + text + "}")
	}
	return json.RawMessage("[" + text + "]")
}

// leastCPU runs a command several times and returns the least CPU time.
func (b *bench) leastCPU(args []string, env string) (least time.Duration, err error) {
	for range queryRounds {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(b.env("local"), env)
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("%w\n%.1000s", err, out)
		}
		took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		if least == 0 || took < least {
			least = took
		}
	}
	return least, nil
}

// runQuery runs gojq with the parameters of json.query in a file.
func runQuery(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var params struct {
		Data   any
		Filter string
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&params); err != nil {
		return err
	}
	query, err := gojq.Parse(params.Filter)
	if err != nil {
		return err
	}
	for results := query.Run(params.Data); ; {
		v, more := results.Next()
		if !more {
			return nil
		}
		if err, failed := v.(error); failed {
			return err
		}
		if _, err := gojq.Marshal(v); err != nil {
			return err
		}
	}
}
