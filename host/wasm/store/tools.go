package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// toolsName is the file with the index of a plugin's tools: what lists show of each, and where it is in the manifest.
// This makes it possible to list a plugin with a thousand tools, and to describe one of them, without reading its
// manifest. lock.json has the hash of the file, and the file has the hash of each tool. If the file is missing, the
// manifest is read instead.
//
// Its lines are: toolsMagic, the size of the manifest, the manifest without tools as JSON, and for each tool in the
// order of the manifest, with tabs between: name, group, offset in the manifest, length, SHA-256 in hexadecimal,
// effect, flags (d deprecated, e experimental), signature, brief.
const (
	toolsName  = "tools"
	toolsMagic = "parley tools 1"
	maxTools   = 16 << 20
)

// errTools is the error for a file that is not an index.
var errTools = errors.New("damaged index of tools")

// Discovery is what lists and descriptions read of a plugin.
type Discovery struct {
	Head *manifest.Manifest // its Tools may be empty
	Tools
}

// Tools are the tools of a plugin. The methods are as in [host.Provider]. Tool returns the same value each time.
type Tools interface {
	Groups() []host.GroupLine
	Lines(group string) []host.Line
	Names() []string
	Tool(name string) (*manifest.Tool, error)
}

// index is a plugin that is read by its index of tools.
type index struct {
	head  *manifest.Manifest // without tools
	tools []indexed
	size  int64                                    // size of the manifest
	read  func(offset, size int64) ([]byte, error) // a part of the manifest
	whole func() (*manifest.Manifest, error)       // read for the error if a part differs from what was installed
	// annotate adds what the host knows about the tools of a manifest; nil adds nothing.
	annotate func(*manifest.Manifest)
	known    sync.Map // name -> *manifest.Tool
}

// indexed is a tool in an index.
type indexed struct {
	host.Line
	group        string
	offset, size int64
	sum          string
}

// encodeTools returns the index of the tools of a manifest.
func encodeTools(m *manifest.Manifest, manifestJSON []byte) ([]byte, error) {
	places, err := findTools(manifestJSON)
	if err != nil || len(places) != len(m.Tools) {
		return nil, fmt.Errorf("%d tools, and the manifest has %d: %w", len(places), len(m.Tools), err)
	}
	head, one := *m, *m
	head.Tools = nil
	text, err := manifest.Marshal(head)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n%d\n%s\n", toolsMagic, len(manifestJSON), text)
	for i, at := range places {
		one.Tools = m.Tools[i : i+1]
		l, flags := host.LinesOf(&one, m.Tools[i].Group)[0], ""
		if l.Deprecated {
			flags += "d"
		}
		if l.Experimental {
			flags += "e"
		}
		fmt.Fprintln(&b, strings.Join([]string{l.Name, m.Tools[i].Group, strconv.FormatInt(at[0], 10),
			strconv.FormatInt(at[1]-at[0], 10), hashOf(manifestJSON[at[0]:at[1]]), l.Effect, flags, l.Signature, l.Brief}, "\t"))
	}
	return b.Bytes(), nil
}

// findTools returns where each tool of a manifest begins and ends.
func findTools(manifestJSON []byte) (places [][2]int64, err error) {
	d := json.NewDecoder(bytes.NewReader(manifestJSON))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if key != "tools" {
			err = d.Decode(&value)
		} else if _, err = d.Token(); err == nil {
			for err == nil && d.More() {
				err = d.Decode(&value)
				places = append(places, [2]int64{d.InputOffset() - int64(len(value)), d.InputOffset()})
			}
			if err == nil {
				_, err = d.Token()
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return places, nil
}

// decodeTools reads an index. The error is [errTools].
func decodeTools(data []byte) (*index, error) {
	magic, rest, _ := strings.Cut(string(data), "\n")
	size, rest, _ := strings.Cut(rest, "\n")
	head, rest, _ := strings.Cut(rest, "\n")
	x := &index{head: &manifest.Manifest{}, tools: make([]indexed, 0, strings.Count(rest, "\n"))}
	var err error
	x.size, err = strconv.ParseInt(size, 10, 64)
	if err != nil || magic != toolsMagic || json.Unmarshal([]byte(head), x.head) != nil {
		return nil, errTools
	}
	for line := range strings.Lines(rest) {
		const fields = 9
		var f [fields]string
		for i := range fields - 1 {
			f[i], line, _ = strings.Cut(line, "\t")
		}
		brief, whole := strings.CutSuffix(line, "\n")
		offset, err := strconv.ParseInt(f[2], 10, 64)
		size, sizeErr := strconv.ParseInt(f[3], 10, 64)
		if !whole || err != nil || sizeErr != nil || offset < 0 || size < 0 || size > manifest.MaxSize {
			return nil, errTools
		}
		x.tools = append(x.tools, indexed{group: f[1], offset: offset, size: size, sum: f[4], Line: host.Line{Name: f[0],
			Signature: f[7], Brief: brief, Effect: f[5], Deprecated: strings.Contains(f[6], "d"),
			Experimental: strings.Contains(f[6], "e")}})
	}
	return x, nil
}

// Groups returns the groups as [host.Provider] does.
func (x *index) Groups() []host.GroupLine {
	counts := map[string]int{}
	for i := range x.tools {
		counts[x.tools[i].group]++
	}
	groups := host.GroupsOf(x.head)
	for i := range groups {
		groups[i].Tools = counts[groups[i].Name]
	}
	return groups
}

// Lines returns the tools of a group as [host.Provider] does.
func (x *index) Lines(group string) []host.Line {
	lines := []host.Line{}
	for i := range x.tools {
		if x.tools[i].group == group {
			lines = append(lines, x.tools[i].Line)
		}
	}
	return lines
}

// Names returns the names of all tools, sorted.
func (x *index) Names() []string {
	names := lists.Map(x.tools, func(t indexed) string { return t.Name })
	slices.Sort(names)
	return names
}

// Tool returns the tool of a name, ignoring case, or nil.
func (x *index) Tool(name string) (*manifest.Tool, error) {
	i := slices.IndexFunc(x.tools, func(t indexed) bool { return strings.EqualFold(t.Name, name) })
	if i < 0 {
		return nil, nil
	}
	at := &x.tools[i]
	if known, ok := x.known.Load(at.Name); ok {
		return known.(*manifest.Tool), nil
	}
	data, err := x.read(at.offset, at.size)
	t := &manifest.Tool{}
	if err != nil || hashOf(data) != at.sum || json.Unmarshal(data, t) != nil {
		m, err := x.whole()
		if err != nil {
			return nil, err
		}
		t = m.Tool(name)
	} else if x.annotate != nil {
		only := *x.head
		only.Tools = []manifest.Tool{*t}
		x.annotate(&only)
		t = &only.Tools[0]
	}
	known, _ := x.known.LoadOrStore(at.Name, t)
	return known.(*manifest.Tool), nil
}

// DiscoveryOf returns what lists and descriptions read of a manifest.
func DiscoveryOf(m *manifest.Manifest) *Discovery { return &Discovery{Head: m, Tools: inMemory{m}} }

// inMemory are the tools of a manifest that is in memory.
type inMemory struct{ *manifest.Manifest }

func (m inMemory) Groups() []host.GroupLine                 { return host.GroupsOf(m.Manifest) }
func (m inMemory) Lines(group string) []host.Line           { return host.LinesOf(m.Manifest, group) }
func (m inMemory) Names() []string                          { return host.NamesOf(m.Manifest) }
func (m inMemory) Tool(name string) (*manifest.Tool, error) { return m.Manifest.Tool(name), nil }

// index opens the index of an installed plugin. It returns nil if the index is missing or differs from the installed
// one.
func (s *Store) index(e Entry) *index {
	if e.ToolsSHA256 == "" {
		return nil // an earlier version installed it
	}
	dir := s.pluginDir(e)
	data, err := protect.Read(filepath.Join(dir, toolsName), maxTools)
	if err == nil && hashOf(data) != e.ToolsSHA256 {
		err = errTools
	}
	var x *index
	if err == nil {
		x, err = decodeTools(data)
	}
	if err != nil {
		s.logf("%s: not used: %v", filepath.Join(dir, toolsName), err)
		return nil
	}
	x.read = func(offset, size int64) ([]byte, error) {
		return protect.ReadPart(filepath.Join(dir, manifestName), offset, size)
	}
	return x
}

// discover returns the index of an installed plugin, or else what its whole manifest has.
func (s *Store) discover(e Entry, whole func() (*manifest.Manifest, error), annotate func(*manifest.Manifest)) (
	*Discovery, error) {
	x := s.index(e)
	if x == nil {
		m, err := whole()
		return DiscoveryOf(m), err
	}
	// A manifest that was changed is refused as soon as its file's metadata shows that, and in any case when a changed
	// part is read.
	path, index := filepath.Join(s.pluginDir(e), manifestName), filepath.Join(s.pluginDir(e), toolsName)
	info, err := os.Stat(path)
	if err != nil || info.Size() != x.size || info.ModTime().After(protect.ModTime(index)) {
		if _, err := s.readManifest(e); err != nil {
			return nil, err
		}
	}
	x.whole, x.annotate = whole, annotate
	return &Discovery{Head: x.head, Tools: x}, nil
}
