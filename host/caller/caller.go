// Package caller says who asks the host for something: a principal, its session, and where its request came from.
package caller

import "strings"

// CLI is the caller of the command line: the person who runs the program.
const CLI = "cli"

// PluginPrefix begins the caller of a call that a plugin makes: "plugin:NAME".
const PluginPrefix = "plugin:"

// Origin says how a request came to the host. The zero value means the command line.
type Origin struct {
	Transport string `json:"transport,omitempty"` // "stdio" or "http"
	Peer      string `json:"peer,omitempty"`      // address of the client over HTTP
	Token     string `json:"token,omitempty"`     // name of the client's token
}

// Principal is who asks for something.
type Principal struct {
	Name    string // "cli", "mcp:CLIENT", "mcp-http:CLIENT" or "plugin:NAME"
	Bound   bool   // the mcp-http client has proved that it has this Name
	Session Session
	Origin  Origin                                 // where its request came from
	Tools   []string                               // tools that a plugin's own call was granted
	Roots   func() (folders []string, listed bool) // what a client on this machine lists, or the working folder
}

// IsPlugin reports whether the principal is a plugin.
func (p Principal) IsPlugin() bool { return strings.HasPrefix(p.Name, PluginPrefix) }
