package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// maxProtocol limits the document at /json/protocol. Chrome 148 returns 1.6 MB.
	maxProtocol      = 16 << 20
	portPollInterval = 10 * time.Millisecond
)

// FetchProtocol returns the protocol description of the browser at a DevTools address, such as Attach returns.
func FetchProtocol(ctx context.Context, endpoint string) ([]byte, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	from := url.URL{Scheme: "http", Host: u.Host, Path: "/json/protocol"}
	req, err := http.NewRequestWithContext(ctx, "GET", from.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := directClient().Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s does not respond: %w", from.Host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s returned %s; a browser that asks its user for consent does not serve its protocol",
			from.String(), resp.Status)
	}
	document, err := io.ReadAll(io.LimitReader(resp.Body, maxProtocol+1))
	if err == nil && len(document) > maxProtocol {
		err = fmt.Errorf("%s returned more than %d bytes", from.String(), maxProtocol)
	}
	return document, err
}

// directClient returns a client that ignores proxies of the environment and follows no redirects.
func directClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// LaunchForProtocol launches a browser with a debugging port beside its pipe, reads its protocol and kills it. The
// profile should be a disposable one.
func LaunchForProtocol(ctx context.Context, cfg LaunchConfig) ([]byte, Version, error) {
	cfg.Args = append(cfg.Args, "--remote-debugging-port=0")
	active := filepath.Join(cfg.Profile, "DevToolsActivePort")
	if err := os.Remove(active); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, Version{}, err
	}
	p, err := Launch(ctx, cfg)
	if err != nil {
		return nil, Version{}, err
	}
	defer p.Kill()
	for {
		// The file appears at once, its content a moment later.
		if text, _ := os.ReadFile(active); strings.Contains(string(text), "\n") {
			port, _, _ := strings.Cut(string(text), "\n")
			document, err := FetchProtocol(ctx, "ws://127.0.0.1:"+port)
			return document, p.Version, err
		}
		select {
		case <-time.After(portPollInterval):
		case <-p.Done():
			return nil, p.Version, errors.New("the browser exited before its protocol could be read")
		case <-ctx.Done():
			return nil, p.Version, fmt.Errorf("the browser opened no port: %w", ctx.Err())
		}
	}
}
