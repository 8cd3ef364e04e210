// Package access defines the bearer tokens of clients, and reads the file of accepted tokens.
package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/manifest"
)

// Token is a bearer token of a client.
type Token struct {
	// Name is the name of the client that has the token: it calls as "mcp-http:NAME", whatever name it gives itself. ""
	// means that the token is not bound to a name.
	Name  string
	Token string
	// Session is the name of the user's session that clients with the token work in. "" means that each connection has a
	// session of its own.
	Session string
	// User identifies the user, if the tokens of a user change: a session goes on with the next one. "" means that the
	// token itself identifies the user.
	User string
}

// minTokenLength is the length, in bytes, from which a token cannot be guessed.
const minTokenLength = 16

// File is a file of accepted tokens, read again when it has changed. A line is TOKEN, or NAME=TOKEN for the client
// NAME, and after a space session=SESSION for clients that work in that session of the user. It is safe for concurrent
// use.
type File struct {
	Path   string
	Notice func(text string)
	// ReadFirst reads the file for the first time. Nil means [protect.Read], as later on, which does not block.
	ReadFirst func() ([]byte, error)

	mu     sync.Mutex
	info   os.FileInfo
	tokens []Token
	shared []string // sessions that a notice was about
}

// Verify returns the token that a client sent, for the HTTPConfig of host/mcp.
func (f *File) Verify(_ context.Context, token string) (Token, error) {
	tokens, err := f.Tokens()
	if err != nil {
		return Token{}, err
	}
	return Find(tokens, token)
}

// Find looks a token up in constant time.
func Find(accepted []Token, token string) (Token, error) {
	sum, at := sha256.Sum256([]byte(token)), -1
	for i, t := range accepted {
		other := sha256.Sum256([]byte(t.Token))
		if subtle.ConstantTimeCompare(sum[:], other[:]) == 1 {
			at = i
		}
	}
	if at < 0 {
		return Token{}, host.Errorf(host.NotFound, "the token is not known")
	}
	return accepted[at], nil
}

// WhileAccepted serves requests, and ends each stream of messages whose token is no longer accepted, because a stream
// can stay open for days. A call has a timeout, and keeps the token that it began with.
func WhileAccepted(next http.Handler, verify func(context.Context, string) (Token, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		isStream := r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == "subscriptions/listen"
		if header := strings.Fields(r.Header.Get("Authorization")); isStream && verify != nil && len(header) > 0 {
			go func() {
				tick := time.NewTicker(time.Second)
				defer tick.Stop()
				for err := error(nil); err == nil; _, err = verify(ctx, header[len(header)-1]) {
					select {
					case <-ctx.Done():
						return
					case <-tick.C:
					}
				}
				cancel()
			}()
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Tokens returns the tokens. The error is config_error for a file that cannot be read or has no valid tokens.
func (f *File) Tokens() ([]Token, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.Path)
	if err == nil && f.info != nil && os.SameFile(info, f.info) && info.Size() == f.info.Size() &&
		info.ModTime().Equal(f.info.ModTime()) {
		return f.tokens, nil
	}
	f.info = nil
	read := f.ReadFirst
	if read == nil || f.tokens != nil { // requests wait for it, so it must not be a pipe again
		read = func() ([]byte, error) { return protect.Read(f.Path, protect.MaxConfig) }
	}
	data, err := read()
	if e, is := errors.AsType[*host.Error](err); is {
		return nil, e // such as the error of a signal
	}
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "the token file: %s", manifest.CleanLine(err.Error())).
			WithNext("write one token per line into it, and make it readable by you alone")
	}
	var tokens []Token
	for i, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		token, err := parseToken(line)
		if other, found := Find(tokens, token.Token); err == nil && found == nil && other != token {
			err = errors.New("an earlier line has the same token for another client or session; give each its own")
		}
		if err != nil {
			return nil, host.Errorf(host.ConfigError, "%s:%d: %s", f.Path, i+1, err)
		}
		tokens = append(tokens, token)
	}
	if len(tokens) == 0 {
		return nil, host.Errorf(host.ConfigError, "the token file %s has no tokens", f.Path).
			WithNext("write one token per line into it")
	}
	if f.tokens == nil && info != nil && info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		f.Notice("other users can read " + f.Path + "; run chmod 600 on it")
	}
	f.info, f.tokens = info, tokens
	for _, t := range tokens {
		if t.Session != "" && !slices.Contains(f.shared, t.Session) {
			f.shared = append(f.shared, t.Session)
			f.Notice("clients whose token is bound to your session " + t.Session +
				" work in it: they share its pages, cookies and logins")
		}
	}
	return tokens, nil
}

// parseToken reads TOKEN or NAME=TOKEN, and session=NAME after a space. A "=" is part of the token if what follows is
// too short for one. Its errors do not repeat the line, which may hold a token.
func parseToken(line string) (Token, error) {
	fields := strings.Fields(line)
	token := Token{Token: fields[0]}
	if name, text, is := strings.Cut(fields[0], "="); is && len(text) >= minTokenLength {
		if token = (Token{Name: name, Token: text}); !IsName(name) {
			return Token{}, errors.New(`the name before "=" has other characters than letters, digits, "-", "_" and "."`)
		}
	}
	switch name, is := strings.CutPrefix(fields[len(fields)-1], "session="); {
	case len(fields) > 2 || len(fields) > 1 && !is:
		return Token{}, errors.New("expected TOKEN or NAME=TOKEN without spaces, or one of them and session=SESSION")
	case len(token.Token) < minTokenLength:
		return Token{}, fmt.Errorf("expected a token of at least %d characters, got %d", minTokenLength, len(token.Token))
	case len(fields) > 1:
		token.Session = name
		return token, session.CheckName(name)
	}
	return token, nil
}

// IsName reports whether a client can have a name.
func IsName(name string) bool { return name != "" && strings.Trim(name, nameCharacters) == "" }

const nameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
