package mcp

import (
	"bytes"
	"cmp"
	_ "embed"

	"github.com/parley-tools/parley/host"
)

// listedTools are the tools of cdp and of the shipped plugins as full mode lists them, by a test. A line
// "= KEY" is in front of the tools of each provider. Making them takes ten times as long as everything else that a
// server does until it has sent its list.
//
//go:generate go test -run TestListedTools -update .
//go:embed listed.txt
var listedTools []byte

// listedKey is the key of a provider: the digest of its build, or its name and version if it is part of the binary.
func listedKey(of host.Provider) string {
	info := of.Info()
	return cmp.Or(info.Digest, info.Name+" "+info.Version)
}

// preparedTools returns the lines of a provider in listedTools, nil if it is not there.
func preparedTools(of host.Provider) []byte {
	if of.Features().Overlaid {
		return nil
	}
	_, rest, found := bytes.Cut(listedTools, []byte("= "+listedKey(of)+"\n"))
	if !found {
		return nil
	}
	if end := bytes.Index(rest, []byte("\n= ")); end >= 0 {
		rest = rest[:end+1]
	}
	return rest
}

// CommonTools returns the names in tools/list of the tools that progressive mode lists without configuration.
func CommonTools() []string {
	names := make([]string, len(defaultPinned))
	for i, name := range defaultPinned {
		names[i] = ListedName(name)
	}
	return names
}

// defaultPinned are the tools that progressive mode lists without configuration: the shipped verbs that agents use
// most. Those that are not installed are left out.
var defaultPinned = []string{
	"page.open", "page.snapshot", "page.text", "page.find", "page.click", "page.fill", "page.press", "page.do",
	"page.wait", "page.screenshot", "page.evaluate", "page.requests", "page.console",
}
