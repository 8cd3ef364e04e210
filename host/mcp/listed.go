package mcp

import (
	"bytes"
	_ "embed"

	"github.com/parley-tools/parley/host"
)

// listedTools are the tools of cdp and of the shipped plugins as full mode lists them, by [prepareTools]. A line
// "= KEY" is in front of the tools of each provider. Making them takes ten times as long as everything else that a
// server does until it has sent its list.
//
//go:generate go test -run TestListedTools -update .
//go:embed listed.txt
var listedTools []byte

// listedKey is the key of a provider: the digest of its build, or its name and version if it is part of the binary.
func listedKey(of host.Provider) string {
	info := of.Info()
	if info.Digest != "" {
		return info.Digest
	}
	return info.Name + " " + info.Version
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

// prepareTools returns the tools of a provider for listedTools: a line for each, with its name, a tab and the JSON.
func prepareTools(p host.Provider) ([]byte, error) {
	l := &lists{}
	catalog, err := host.NewCatalog(p)
	if err == nil {
		err = l.addTools(catalog, p)
	}
	var b bytes.Buffer
	for _, t := range l.tools {
		b.WriteString(t.name + "\t")
		b.Write(t.json)
		b.WriteByte('\n')
	}
	return b.Bytes(), err
}
