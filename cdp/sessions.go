package cdp

import (
	"context"
	"errors"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
)

var _ host.SessionEnder = (*Provider)(nil)

// SessionInfo is what a session has in an open browser.
type SessionInfo struct {
	Session string // as [host.Session.Key]
	Browser string
	Pages   int
	Current string    // URL of the current page; "" if there is none
	Used    time.Time // its last call; zero if there was none
}

// person is the person at the command line, for requests that are no calls of tools.
var person = api.Caller{Name: "cli"}

// Sessions returns the sessions that have anything in the open browsers.
func (p *Provider) Sessions(ctx context.Context) ([]SessionInfo, error) {
	var all []SessionInfo
	err := p.eachBrowser(ctx, func(name string, c *keeper.Client) error {
		found, err := c.As(person).Sessions(ctx)
		for _, s := range found {
			key := s.Session
			if key == api.DefaultSession {
				key = host.Session{}.Key()
			}
			info := SessionInfo{Session: key, Browser: name, Pages: s.Pages, Current: s.Current}
			if s.Used > 0 {
				info.Used = time.UnixMilli(s.Used)
			}
			all = append(all, info)
		}
		return err
	})
	return all, err
}

// EndSession implements [host.SessionEnder].
func (p *Provider) EndSession(ctx context.Context, of host.Session) error {
	return p.eachBrowser(ctx, func(name string, c *keeper.Client) error {
		closed, err := c.As(person).CloseSession(ctx, sessionKey(of.Key()))
		if closed.Browser != "" {
			p.browsers.drop(name, true)
		}
		return err
	})
}

// EndConnection implements [host.SessionEnder].
func (p *Provider) EndConnection(id string) {
	p.browsers.mu.Lock()
	defer p.browsers.mu.Unlock()
	for _, c := range p.browsers.clients {
		go c.As(api.Caller{Name: person.Name, Connection: id}).EndConnection(context.Background())
	}
}

// eachBrowser calls f with each open browser. Browsers that end meanwhile are left out.
func (p *Provider) eachBrowser(ctx context.Context, f func(name string, c *keeper.Client) error) error {
	entries, err := keeper.List(p.cfg.RunDir)
	if err != nil {
		return p.hostError(err, nil)
	}
	var failures []error
	for _, e := range entries {
		if !e.Alive {
			continue
		}
		c, err := p.browsers.client(ctx, e.Browser)
		if err == nil {
			err = f(e.Browser, c)
		}
		if err = p.hostError(err, nil); err != nil && host.AsError(err).Code != host.ChromeConnection {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}
