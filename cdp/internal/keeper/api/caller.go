package api

import (
	"cmp"
	"strings"

	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/manifest"
)

// Caller identifies the sender of a request and the session that the request belongs to. The host has already decided
// what it may call; the keeper enforces whose targets it may use and what a plugin's pages may dial.
type Caller struct {
	// Name is "cli", "mcp:CLIENT", "mcp-http:CLIENT" or "plugin:NAME".
	Name string `json:"name"`
	// Session is the key of the session. Everything in the browser belongs to one. "" stands for a session of the
	// caller's name.
	Session string `json:"session,omitempty"`
	// Connection is the id of the connection over which the caller calls. When it ends, what was opened over it is
	// closed after a grace period. "" means none.
	Connection string `json:"connection,omitempty"`
	// Temporary sessions end with their connection.
	Temporary bool `json:"temporary,omitempty"`
	// Anonymous sessions have no current target, and end 10 minutes after their last use.
	Anonymous bool `json:"anonymous,omitempty"`
	// Within are the sessions on whose behalf a plugin has its session, the nearest first. The session ends with each of
	// them.
	Within []string `json:"within,omitempty"`

	// Digest identifies the version of the plugin that owns the session. A new version inherits nothing in the browser
	// from the previous one.
	Digest string `json:"digest,omitempty"`
	// Folders are the folders that this plugin may write to. When they change, downloads into other folders are
	// denied.
	Folders []string `json:"folders,omitempty"`
	// HTTP is the plugin's network grants. They apply to its pages also after the call, until its next call.
	HTTP []grant.HTTP `json:"http,omitempty"`
}

// DefaultSession is the session of the person at the command line who names none. It uses the browser's default
// context.
const DefaultSession = "cli"

// CommandLine is the person at the command line, who may use everything.
var CommandLine = Caller{Name: "cli"}

// CommandLineJSON is CommandLine as JSON.
const CommandLineJSON = `{"name":"cli"}`

// SessionKey returns the key of the caller's session.
func (c Caller) SessionKey() string { return cmp.Or(c.Session, c.Name) }

// IsCommandLine reports whether a person or a script calls on the command line, in whatever session.
func (c Caller) IsCommandLine() bool { return c.Name == CommandLine.Name }

// IsPlugin reports whether a plugin calls.
func (c Caller) IsPlugin() bool { return strings.HasPrefix(c.Name, PluginPrefix) }

// IsPerson reports whether the caller is the person at the command line without a session of their own.
func (c Caller) IsPerson() bool { return c.IsCommandLine() && c.SessionKey() == DefaultSession }

// HasContext reports whether the caller's session has a browser context of its own.
func (c Caller) HasContext() bool { return c.SessionKey() != DefaultSession }

// OfPlugin reports whether a session is a plugin's own, whose pages dial only what the plugin was granted.
func OfPlugin(session string) bool { return strings.HasPrefix(session, PluginPrefix) }

// PluginPrefix begins the names of plugins as callers, and of the plugins' own sessions.
const PluginPrefix = "plugin:"

// Disowned owns what belonged to a session that has been closed, and what belongs to the keeper itself. No session
// has this name.
const Disowned = PluginPrefix

// Validate rejects a caller that no front end of the host could send.
func (c Caller) Validate() *Error {
	kind, name, _ := strings.Cut(c.Name, ":")
	isClient := kind == "mcp" || kind == "mcp-http"
	switch {
	case !c.IsCommandLine() && (!isClient && kind != "plugin" || name == ""):
		return Errorf(CodeInvalidArgs, "%q is not a caller: expected cli, mcp:CLIENT, mcp-http:CLIENT or plugin:NAME",
			manifest.Clip(c.Name, 80))
	case c.SessionKey() == DefaultSession && isClient:
		return Errorf(CodeInvalidArgs, "%s has no session", manifest.Clip(c.Name, 80))
	}
	return nil
}

// CanSee reports whether a caller may see what belongs to a session. A target that was not opened through Parley, such
// as a page of an external browser, belongs to none; the person sees those.
func (c Caller) CanSee(session string) bool {
	return c.SessionKey() == session || session == "" && c.IsPerson()
}

// DisplayName returns the name of a session for messages.
func DisplayName(session string) string {
	return manifest.Clip(strings.TrimPrefix(session, "user/"), 80)
}
