package keeper

import (
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Caller identifies the sender of a request. The host has already decided what it may call; the keeper enforces
// whose targets it may use and what a plugin's pages may dial.
type Caller struct {
	// Name is "cli", "mcp:CLIENT" or "plugin:NAME".
	Name string `json:"name"`
	// Digest identifies the version of a plugin. A new version inherits nothing in the browser from the previous
	// one.
	Digest string `json:"digest,omitempty"`
	// Folders are the folders that a plugin may write to. When they change, downloads into other folders are
	// denied.
	Folders []string `json:"folders,omitempty"`
	// HTTP is the plugin's network grants. They apply to its pages also after the call, until its next call.
	HTTP []host.HTTPGrant `json:"http,omitempty"`
}

// commandLine is the person at the command line, who may use everything.
var commandLine = Caller{Name: "cli"}

// commandLineJSON is commandLine as JSON.
const commandLineJSON = `{"name":"cli"}`

func (c Caller) isCommandLine() bool { return c.Name == commandLine.Name }

func (c Caller) isPlugin() bool { return strings.HasPrefix(c.Name, pluginPrefix) }

const pluginPrefix = "plugin:"

// forPlugin returns the part of a status that concerns pages. Plugins learn nothing about the machine and other
// callers.
func (s Status) forPlugin() Status {
	return Status{Browser: s.Browser, Mode: s.Mode, Product: s.Product, Revision: s.Revision, Protocol: s.Protocol,
		Headed:  s.Headed,
		Version: s.Version, Wire: s.Wire, IdleLimit: s.IdleLimit, Targets: s.Targets}
}

func (c Caller) validate() *Error {
	kind, name, _ := strings.Cut(c.Name, ":")
	if c.isCommandLine() || (kind == "mcp" || kind == "plugin") && name != "" {
		return nil
	}
	return errf(CodeInvalidArgs, "%q is not a caller: expected cli, mcp:CLIENT or plugin:NAME", manifest.Clip(c.Name, 80))
}

// canSee reports whether a caller may see and use what belongs to an owner. A target that was not opened through
// Parley, such as a page of an external browser, has no owner. It is open to all callers except plugins, which are
// confined to their own browser context.
func (c Caller) canSee(owner string) bool {
	return c.isCommandLine() || c.Name == owner || owner == "" && !c.isPlugin()
}
