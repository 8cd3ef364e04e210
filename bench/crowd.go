package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// toolsEach is the number of tools of each plugin of the crowd.
const toolsEach = 10

// crowd installs many plugins of ten tools each, with descriptions of third-party servers, and times what depends
// on their number.
func (b *bench) crowd(plugins int) error {
	tools, err := searchTools()
	if err != nil {
		return err
	}
	module, err := os.ReadFile(filepath.Join("testdata", "wasm", "smallest.wasm"))
	if err != nil {
		return err
	}
	file := filepath.Join(b.work, "member")
	if err := os.WriteFile(file+".wasm", module, 0o644); err != nil {
		return err
	}
	start := time.Now()
	for i := range plugins {
		manifest, err := json.Marshal(crowdPlugin(i, tools))
		if err != nil {
			return err
		}
		if err := os.WriteFile(file+".manifest.json", manifest, 0o644); err != nil {
			return err
		}
		if err := b.succeed("crowd", "plugin", "install", file+".wasm", "--accept", "look-alike-name"); err != nil {
			return err
		}
	}
	each := time.Since(start) / time.Duration(max(plugins, 1))
	one := fmt.Sprintf("member%04d", plugins/2)
	err = b.table(fmt.Sprintf("Cold process with %d tools of %d plugins installed (%.1f ms each to install)",
		plugins*toolsEach, plugins, milliseconds(each)),
		b.command("parley --list", "crowd", "--list"),
		b.command("parley "+one+" call --describe", "crowd", one, "call", "--describe"),
		b.command("parley search \"take a picture\"", "crowd", "search", "take a picture"),
		b.command("parley "+one+" call", "crowd", one, "call"),
	)
	if err != nil {
		return err
	}
	return b.searchCrowd()
}

// crowdPlugin returns the manifest of a plugin: the tool that the module implements, and others that search has to
// distinguish.
func crowdPlugin(i int, tools []map[string]any) map[string]any {
	own := map[string]any{
		"name": "call", "docs": map[string]any{"brief": "Do nothing, successfully"}, "effect": "read",
		"params": object(nil), "returns": object(nil),
		"examples": []any{map[string]any{"title": "Call it", "kind": "minimal", "params": object(nil)["properties"],
			"exit_code": 0, "result": map[string]any{}, "runnable": true}},
	}
	has, seen := []any{own}, map[any]bool{"call": true}
	for k := i * (toolsEach - 1); len(has) < toolsEach; k++ {
		if t := tools[k%len(tools)]; !seen[t["name"]] {
			seen[t["name"]] = true
			has = append(has, t)
		}
	}
	return map[string]any{
		"manifest": 1, "name": fmt.Sprintf("member%04d", i), "version": "1.0.0", "kind": "parley/1",
		"docs": map[string]any{"brief": "One of a crowd"}, "tools": has,
	}
}

// searchTools reads the tools of the search test set as tools of a manifest.
func searchTools() ([]map[string]any, error) {
	file, err := os.Open(filepath.Join("testdata", "search", "others_tools.jsonl"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var tools []map[string]any
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var t struct {
			Name, Description string
			Params            []struct{ Name, Description string }
		}
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			return nil, err
		}
		brief, rest, _ := strings.Cut(t.Description, ". ")
		properties := map[string]any{}
		for _, p := range t.Params {
			properties[p.Name] = map[string]any{"type": "string", "description": p.Description}
		}
		tools = append(tools, map[string]any{
			"name": strings.ToLower(strings.ReplaceAll(t.Name, "-", "_")), "effect": "read",
			"docs":   map[string]any{"brief": brief[:min(len(brief), 64)], "standard": rest},
			"params": object(properties), "returns": object(nil),
		})
	}
	return tools, lines.Err()
}

func object(properties map[string]any) map[string]any {
	if properties == nil {
		properties = map[string]any{}
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

// searchCrowd prints the size of the indexes of the crowd and the cost of a query in a running process: the time of
// many queries minus that of one, each asked once.
func (b *bench) searchCrowd() error {
	const many = 200
	set, err := os.ReadFile(filepath.Join("testdata", "search", "others.jsonl"))
	if err != nil {
		return err
	}
	var lines []string
	for line := range strings.Lines(string(set)) {
		var q struct {
			Query string `json:"query"`
			// Relevant is replaced by a tool of the crowd, so that no time goes into names that are not installed.
			Relevant map[string]int `json:"relevant"`
		}
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			return err
		}
		q.Relevant = map[string]int{"member0000.call": 1}
		one, err := json.Marshal(q)
		if err != nil {
			return err
		}
		lines = append(lines, string(one)+"\n")
	}
	least := map[int]time.Duration{}
	for _, n := range []int{1, many} {
		file := filepath.Join(b.work, "queries.jsonl")
		if err := os.WriteFile(file, []byte(strings.Join(lines[:n], "")), 0o644); err != nil {
			return err
		}
		for range min(b.rounds, 5) {
			s := b.command("", "crowd", "search", "--eval", file)
			if err := b.time(s); err != nil {
				return err
			}
			if took := s.took[0]; least[n] == 0 || took < least[n] {
				least[n] = took
			}
		}
	}
	sizes := map[string]int64{} // of the segments of the plugins, and of the file that they are merged into
	err = filepath.WalkDir(filepath.Join(b.work, "crowd"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.Name() == "segment" || d.Name() == "merged") {
			info, err := d.Info()
			if err != nil {
				return err
			}
			sizes[d.Name()] += info.Size()
		}
		return err
	})
	fmt.Fprintf(b.out, "\nA query in a running process: %.2f ms. "+
		"Search indexes of the plugins: %.2f MB, merged in one: %.2f MB.\n",
		milliseconds(least[many]-least[1])/(many-1), float64(sizes["segment"])/1e6, float64(sizes["merged"])/1e6)
	return err
}
