package keeper

import (
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Caller is who asks. What he may call was decided before he is here; the keeper knows whose targets are whose, and what a plugin's pages
// may dial.
type Caller struct {
	// Name is "cli", "mcp:CLIENT" or "plugin:NAME".
	Name string `json:"name"`
	// Digest says which version of a plugin it is: what one has in the browser is not another's.
	Digest string `json:"digest,omitempty"`
	// Folders are those that a plugin may write into. Downloads that were led elsewhere before are refused from now on.
	Folders []string `json:"folders,omitempty"`
	// HTTP is what a plugin was granted of the network. Its pages are held to it, also after the call, until the plugin's next one.
	HTTP []host.HTTPGrant `json:"http,omitempty"`
}

// commandLine is the person at the command line, who may do everything.
var commandLine = Caller{Name: "cli"}

// commandLineJSON is commandLine as JSON.
const commandLineJSON = `{"name":"cli"}`

func (c Caller) isCommandLine() bool { return c.Name == commandLine.Name }

func (c Caller) isPlugin() bool { return strings.HasPrefix(c.Name, pluginPrefix) }

const pluginPrefix = "plugin:"

// forPlugin is what of a status concerns pages, for who is told nothing of the machine and of others.
func (s Status) forPlugin() Status {
	return Status{Browser: s.Browser, Mode: s.Mode, Product: s.Product, Revision: s.Revision, Protocol: s.Protocol, Headed: s.Headed,
		Version: s.Version, Wire: s.Wire, IdleLimit: s.IdleLimit, Targets: s.Targets}
}

func (c Caller) validate() *Error {
	kind, name, _ := strings.Cut(c.Name, ":")
	if c.isCommandLine() || (kind == "mcp" || kind == "plugin") && name != "" {
		return nil
	}
	return errf(CodeInvalidArgs, "%q is no caller: a request comes from cli, mcp:CLIENT or plugin:NAME", manifest.Clip(c.Name, 80))
}

// canSee reports whether a caller may see and use what belongs to an owner. What nobody opened through the bridge, such as a page of an attached
// browser, has no owner and is open to all but plugins, who have nothing outside of their own browser context.
func (c Caller) canSee(owner string) bool {
	return c.isCommandLine() || c.Name == owner || owner == "" && !c.isPlugin()
}
