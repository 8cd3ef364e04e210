package secret

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/protect"
)

// Login is what the store has for a secret that a person logged in to get, instead of a value: the tokens, and what is
// needed to refresh and to revoke them. No part of it leaves the host but AccessToken, which is the value.
type Login struct {
	Again         []string  `json:"again"` // the words after "parley login" that repeat this login
	Issuer        string    `json:"issuer"`
	Scopes        []string  `json:"scopes,omitempty"`   // as granted
	Resource      string    `json:"resource,omitempty"` // the API that the token is for
	TokenURL      string    `json:"token_url"`
	RevocationURL string    `json:"revocation_url,omitempty"` // "" if the server cannot revoke
	ClientID      string    `json:"client_id"`
	ClientSecret  string    `json:"client_secret,omitempty"`
	Basic         bool      `json:"basic,omitempty"` // ClientSecret is sent as a header, not in the form
	AccessToken   string    `json:"access_token"`
	RefreshToken  string    `json:"refresh_token,omitempty"` // "" if AccessToken cannot be refreshed
	Expires       time.Time `json:"expires,omitzero"`        // end of AccessToken; zero if it is not known
}

// Valid reports whether the access token can still be used for some time, as far as is known.
func (l *Login) Valid(some time.Duration) bool {
	return l.AccessToken != "" && (l.Expires.IsZero() || time.Until(l.Expires) > some)
}

// State returns until when the login lasts, and whether it lasts now: "logged in until 2026-11-29 10:00 UTC".
func (l *Login) State() (text string, lasts bool) {
	until := l.Expires.UTC().Format("2006-01-02 15:04 UTC")
	switch {
	case l.RefreshToken != "" && l.Expires.IsZero():
		return "logged in, and refreshed when needed", true
	case l.RefreshToken != "":
		return "logged in until " + until + ", and refreshed when needed", true
	case !l.Valid(0):
		return "the login has expired", false
	case l.Expires.IsZero():
		return "logged in, until an unknown time", true
	}
	return "logged in until " + until, true
}

// Values returns the parts that must not be seen, by the name of the secret followed by the kind of the part.
func (l *Login) Values(name string) map[string]string {
	return map[string]string{name: l.AccessToken, name + " refresh token": l.RefreshToken,
		name + " client secret": l.ClientSecret}
}

// loginPrefix begins the stored text of a login.
const loginPrefix = "parley login 1\n"

// ParseLogin parses the stored text of a login. It returns nil for a text that is a value.
func ParseLogin(text string) *Login {
	rest, isLogin := strings.CutPrefix(text, loginPrefix)
	l := &Login{}
	if !isLogin || json.Unmarshal([]byte(rest), l) != nil {
		return nil
	}
	return l
}

// Login returns the login for a secret. The error is not_found if nobody has logged in for it.
func (s Store) Login(name string) (*Login, error) {
	text, err := s.get(name)
	if l := ParseLogin(text); err == nil && l != nil {
		return l, nil
	}
	return &Login{}, host.Errorf(host.NotFound, "secret %s has no login", origin.Quote(name))
}

// SetLogin stores a login for a secret, in place of what it had.
func (s Store) SetLogin(name string, l *Login) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return s.Set(name, loginPrefix+string(text))
}

// Lock makes the caller the only one, among all processes, that changes the login for a secret. The error is busy if
// another has not finished within a minute.
func (s Store) Lock(ctx context.Context, name string) (release func(), err error) {
	const longest, pause = time.Minute, 20 * time.Millisecond
	ctx, cancel := context.WithTimeoutCause(ctx, longest, host.Errorf(host.Busy,
		"another process has been busy with the login for secret %s for longer than %s", origin.Quote(name), longest))
	defer cancel()
	if err = os.MkdirAll(s.Dir, 0o700); err == nil {
		lock := protect.NewLock(filepath.Join(s.Dir, "lock-"+name))
		if _, err = lock.TryLockContext(ctx, pause); err == nil {
			return func() { _ = lock.Unlock() }, nil
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, host.Errorf(host.ConfigError, "the login for secret %s cannot be locked: %v", origin.Quote(name),
		host.WithoutPath(err))
}
