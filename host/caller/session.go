package caller

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/parley-tools/parley/host/grant"
)

// Session identifies a session: what a caller has been shown, its results, and what it has opened in browsers. Sessions
// of different owners share nothing, whatever their names. The zero value is the user without a session: nothing is
// remembered, and calls use the browser's default context.
type Session struct {
	// Owner is "" for the user, at the command line and over stdio; "token:ID" for a token over HTTP; "plugin:NAME" for
	// what a plugin has of its own.
	Owner string
	// Name is the name under its owner. "" means that the calls of the owner cannot be related to each other.
	Name string
	// Connection is the id of the connection over which the call came: when it ends, what was opened over it is closed.
	// "" means none.
	Connection string
	// Temporary sessions end with their connection.
	Temporary bool
	// Within has the keys of the sessions for which a plugin has this session of its own, the nearest first. The session
	// ends with each of them.
	Within []string
	// Plugin is the plugin that owns the session; nil for sessions of others.
	Plugin *SessionPlugin
}

// SessionPlugin says what a plugin's own session may do, whichever plugin is called in it.
type SessionPlugin struct {
	Digest string // as in host.Info
	Grant  grant.Grant
}

// Key identifies the session among all sessions, as "user/NAME" or "OWNER/NAME".
func (s Session) Key() string { return cmp.Or(s.Owner, "user") + "/" + s.Name }

// SessionOf returns the session with a key.
func SessionOf(key string) Session {
	owner, name, _ := strings.Cut(key, "/")
	if owner == "user" {
		owner = ""
	}
	return Session{Owner: owner, Name: name}
}

// String returns the session as records and lists show it: NAME for the user's, OWNER/NAME for others, "" for none.
func (s Session) String() string {
	if s.Owner == "" {
		return s.Name
	}
	return s.Key()
}

// GuestID returns the id under which a plugin knows the session: opaque, and different for each plugin. It is "" for a
// session without a name.
func (s Session) GuestID(plugin string) string {
	if s.Name == "" {
		return ""
	}
	return s.idFor(plugin)
}

func (s Session) idFor(plugin string) string {
	sum := sha256.Sum256([]byte(plugin + "\x00" + s.Key()))
	return hex.EncodeToString(sum[:8])
}

// OfPlugin returns the session that a plugin has of its own for calls on behalf of this one.
func (s Session) OfPlugin(plugin string, as *SessionPlugin) Session {
	own := Session{
		Owner: "plugin:" + plugin, Connection: s.Connection, Temporary: s.Temporary, Plugin: as,
		Within: append([]string{s.Key()}, s.Within...),
	}
	if s.Owner != "" || s.Name != "" {
		own.Name = s.idFor(plugin)
	}
	return own
}
