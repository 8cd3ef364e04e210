package parley

import (
	"bytes"
	_ "embed"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host"
)

// listedTools are the tools of cdp and of the shipped plugins as MCP's full mode lists them, by [mcp.PrepareTools]. A
// line "= KEY" is in front of the tools of each: cdp, or the digest of a plugin. Making them takes ten times as long as
// everything else that a server does until it has sent its list.
//
//go:generate go test -run TestListedTools -update .
//go:embed listed.txt
var listedTools []byte

// preparedTools returns the lines of a provider in listedTools, nil if it is not there.
func preparedTools(of host.Provider) []byte {
	if of.Features().Overlaid {
		return nil
	}
	key := of.Info().Digest
	if chrome, ok := of.(*cdp.Provider); ok && chrome.IsEmbedded() {
		key = cdp.Name
	}
	if key == "" {
		return nil
	}
	_, rest, found := bytes.Cut(listedTools, []byte("= "+key+"\n"))
	if !found {
		return nil
	}
	if end := bytes.Index(rest, []byte("\n= ")); end >= 0 {
		rest = rest[:end+1]
	}
	return rest
}
