// Package words reads the documentation, schemas and examples of native tools, one JSON file each.
package words

import (
	"embed"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Tools are the tools of an embedded folder. A call reads only the file of its own tool.
type Tools struct {
	files  embed.FS
	folder string
	names  func() []string
	read   sync.Map // *Verb by name
}

// Verb is a tool with what its plugin has to know about calls of it.
type Verb struct {
	manifest.Tool
	// Includes are the tools of the plugin cdp that do a part of its work. The key is the parameter that asks for this
	// part, or the parameter and its value, as in "to=back", or "" for every call.
	Includes map[string][]string `json:"includes"`
	// ReadsWithout is the parameter without which a call only shows something, as it may with one value of it:
	// "action=list". "" if there is none.
	ReadsWithout string `json:"reads_without"`
	Pageless     bool   `json:"pageless"` // a call may begin without a page
}

// ranOn is where the runnable examples were verified. TestNativeExamples runs them on that page.
const ranOn = "Chrome 148 on cdp/page/testdata/examples/shop.html"

// New returns the tools of a folder in the order of lists: first those named in first, then the others by name.
func New(files embed.FS, folder string, first ...string) *Tools {
	return &Tools{files: files, folder: folder, names: sync.OnceValue(func() []string {
		names := slices.Clone(first)
		entries, _ := files.ReadDir(folder)
		for _, f := range entries {
			if name := strings.TrimSuffix(f.Name(), ".json"); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return names
	})}
}

// Names returns the names in the order of lists.
func (t *Tools) Names() []string { return t.names() }

// Tool returns a tool by its name in lower case, nil if there is none.
func (t *Tools) Tool(name string) *manifest.Tool {
	if v := t.Verb(name); v.Name != "" {
		return &v.Tool
	}
	return nil
}

// Verb is [Tools.Tool] with what the plugin has to know. It returns the zero value if there is none.
func (t *Tools) Verb(name string) *Verb {
	if known, ok := t.read.Load(name); ok {
		return known.(*Verb)
	}
	if !slices.Contains(t.names(), name) {
		return &Verb{}
	}
	var tool Verb
	data, err := t.files.ReadFile(path.Join(t.folder, name+".json"))
	if err == nil {
		err = jsontext.UnmarshalValid(data, &tool)
	}
	if err != nil {
		panic(err) // the tests read them all
	}
	for i := range tool.Examples {
		if e := &tool.Examples[i]; e.Runnable {
			e.Run = func() *manifest.ExampleRun {
				return &manifest.ExampleRun{Verified: ranOn, ExitCode: e.ExitCode}
			}
		}
	}
	known, _ := t.read.LoadOrStore(name, &tool)
	return known.(*Verb)
}

// All returns all tools in the order of lists.
func (t *Tools) All() []manifest.Tool {
	all := make([]manifest.Tool, len(t.names()))
	for i, name := range t.names() {
		all[i] = *t.Tool(name)
	}
	return all
}

// Manifest returns the manifest of a native plugin, without tools. text is JSON with the fields that info and the
// files of the tools do not have.
func Manifest(text []byte, info host.Info) *manifest.Manifest {
	m, err := manifest.Load(text)
	if err != nil {
		panic(err) // the tests read it
	}
	m.Manifest, m.Name, m.Version, m.Kind = manifest.Version, info.Name, info.Version, manifest.KindBuiltin
	m.Docs.Brief = info.Brief
	return m
}
