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
	// maxProtocol bounds the document at /json/protocol. Chrome 148 answers 1.6 MB.
	maxProtocol      = 16 << 20
	portPollInterval = 10 * time.Millisecond
)

// FetchProtocol reads the protocol of the browser behind a DevTools address, as Attach answers it.
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
		return nil, fmt.Errorf("%s does not answer: %w", from.Host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s; a browser that asks its user for consent does not tell its protocol", from.String(), resp.Status)
	}
	document, err := io.ReadAll(io.LimitReader(resp.Body, maxProtocol+1))
	if err == nil && len(document) > maxProtocol {
		err = fmt.Errorf("%s answered more than %d bytes", from.String(), maxProtocol)
	}
	return document, err
}

// directClient is a client that no proxy of the environment and no redirect leads elsewhere.
func directClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// LaunchForProtocol launches a browser with a port besides its pipe, reads its protocol and ends it. The profile should
// be one to throw away.
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
		// The file is there at once, its content a moment later.
		if text, _ := os.ReadFile(active); strings.Contains(string(text), "\n") {
			port, _, _ := strings.Cut(string(text), "\n")
			document, err := FetchProtocol(ctx, "ws://127.0.0.1:"+port)
			return document, p.Version, err
		}
		select {
		case <-time.After(portPollInterval):
		case <-p.Done():
			return nil, p.Version, errors.New("the browser ended before it told its protocol")
		case <-ctx.Done():
			return nil, p.Version, fmt.Errorf("the browser opened no port: %w", ctx.Err())
		}
	}
}
