package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// AttachConfig selects a running browser to attach to. Endpoint must be set.
type AttachConfig struct {
	Endpoint string // as for [Endpoint]
	// Hosts are the remote host names, in lower case, that may be attached to. Local addresses are always allowed.
	Hosts []string
	// MaxMessage is the largest message read whole, in bytes. Zero means DefaultMaxMessage.
	MaxMessage int
	// Timeout bounds the whole attempt, including a consent dialog of the browser. Zero means 30 s.
	Timeout time.Duration
}

// AddressError reports an endpoint that is neither the address of a DevTools server nor the path of a folder.
type AddressError struct{ Given string }

func (e *AddressError) Error() string {
	text := fmt.Sprintf("%q is not a DevTools address: give a port (9222), HOST:PORT, http://127.0.0.1:9222, "+
		"ws://127.0.0.1:9222/devtools/browser/ID or the path of the user data folder (/home/me/chrome or ./chrome)", e.Given)
	if e.Given != "" && !strings.Contains(e.Given, ":") && strings.Trim(e.Given, "0123456789") != "" {
		text += fmt.Sprintf("; if it names a host, add the port: %[1]s:9222; if it names a folder, write ./%[1]s", e.Given)
	}
	return text
}

// Endpoint returns what a text names in its longest form: the address of a DevTools server, or the absolute path of
// the user data folder of a browser on this machine, or of a profile in it. The spelling alone decides which of them
// it is, not what exists: a path is absolute, begins with "." or has a separator, but no "://" and no port. Where a
// name could be either, the error is an *[AddressError] that says so.
func Endpoint(text string) (endpoint string, isFolder bool, err error) {
	given := text
	host, _, isPath := strings.Cut(filepath.ToSlash(text), "/")
	_, port, _ := net.SplitHostPort(host)
	switch _, hasPort := portOf(port); {
	case filepath.IsAbs(text) || strings.HasPrefix(text, ".") || isPath && !hasPort && !strings.Contains(text, "://"):
		endpoint, err = filepath.Abs(text)
		return endpoint, true, err
	case hasPort:
		text = "http://" + text
	case !strings.Contains(text, "://"):
		number, ok := portOf(text)
		if !ok {
			return "", false, &AddressError{given}
		}
		text = "http://127.0.0.1:" + strconv.Itoa(number)
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "ws") {
		return "", false, &AddressError{given}
	}
	return text, false, nil
}

// portOf parses a port number.
func portOf(text string) (port int, ok bool) {
	number, err := strconv.ParseUint(text, 10, 16)
	return int(number), err == nil && number > 0
}

// RemoteHostError reports an endpoint outside this machine that AttachConfig.Hosts does not list.
type RemoteHostError struct{ Address *url.URL }

func (e *RemoteHostError) Error() string {
	return fmt.Sprintf("%s is not an address of this machine, and whoever reaches a DevTools port controls the browser: "+
		"the operator can allow the host with attach = [%q] under [operator] of policy.toml",
		e.Address.Host, strings.ToLower(e.Address.Hostname()))
}

// Attach connects to a running browser and returns the ws:// address that it used. Besides connection failures, its
// errors are *AddressError and *RemoteHostError.
func Attach(ctx context.Context, cfg AttachConfig) (Conn, string, error) {
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()

	u, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, "", err
	}
	if !isLocal(u.Hostname()) && !slices.Contains(cfg.Hosts, strings.ToLower(u.Hostname())) {
		return nil, "", &RemoteHostError{u}
	}
	if u.Scheme == "http" {
		if u, err = discover(ctx, u); err != nil {
			return nil, "", err
		}
	}
	// websocket.DefaultDialer would use a proxy from the environment, even for loopback addresses.
	dialer := websocket.Dialer{ReadBufferSize: 64 << 10, WriteBufferSize: 64 << 10}
	ws, resp, err := dialer.DialContext(ctx, u.String(), nil)
	if err != nil {
		if resp != nil {
			return nil, "", fmt.Errorf("%s responded with %s instead of a DevTools connection", u, resp.Status)
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, "", fmt.Errorf("%s did not accept a connection within %s: "+
				"if the browser asks its user to allow remote debugging, allow it and try again", u, cfg.Timeout)
		}
		return nil, "", fmt.Errorf("cannot reach a browser at %s: %w", u, err)
	}
	return newWebSocket(ws, cfg.MaxMessage), u.String(), nil
}

func parseEndpoint(text string) (*url.URL, error) {
	endpoint, isFolder, err := Endpoint(text)
	switch {
	case err != nil:
		return nil, err
	case isFolder:
		return activePort(endpoint)
	}
	return url.Parse(endpoint)
}

// activePort returns the address that a running browser has written to its user data folder. folder may also be a
// profile in the user data folder.
func activePort(folder string) (*url.URL, error) {
	for _, dir := range []string{folder, filepath.Dir(filepath.Clean(folder))} {
		text, _ := os.ReadFile(filepath.Join(dir, activePortFile))
		port, path, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		if _, ok := portOf(port); ok {
			return &url.URL{Scheme: "ws", Host: "127.0.0.1:" + port, Path: path}, nil
		}
	}
	return nil, fmt.Errorf("no browser with the user data folder %s allows debugging: allow it at "+
		"chrome://inspect/#remote-debugging, or start it with --remote-debugging-port=0", folder)
}

func isLocal(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// discover asks the DevTools server for the browser's own address. A browser that asks its user for consent serves
// no /json/version; its address has the plain path /devtools/browser.
func discover(ctx context.Context, base *url.URL) (*url.URL, error) {
	plain := &url.URL{Scheme: "ws", Host: base.Host, Path: "/devtools/browser"}
	resp, err := get(ctx, base.JoinPath("/json/version").String())
	if err != nil {
		return nil, fmt.Errorf("no browser responds at %s: "+
			"start one with --remote-debugging-port and its own --user-data-dir (%w)", base.Host, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("reading /json/version of %s: %w", base.Host, err)
	}
	if resp.StatusCode == http.StatusNotFound {
		return plain, nil
	}
	var version struct {
		URL string `json:"webSocketDebuggerUrl"`
	}
	if err := json.Unmarshal(body, &version); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s is not a DevTools server: /json/version returned %s", base.Host, resp.Status)
	}
	u, err := url.Parse(version.URL)
	if err != nil || u.Scheme != "ws" {
		return plain, nil
	}
	// The server may report another host for itself. Dial the host that was checked.
	u.Host = base.Host
	return u, nil
}

// newWebSocket returns a connection over a WebSocket.
func newWebSocket(ws *websocket.Conn, limit int) Conn {
	buf := make([]byte, 64<<10)
	receive := func(add func(part []byte)) error {
		kind, r, err := ws.NextReader()
		for err == nil && kind != websocket.TextMessage {
			kind, r, err = ws.NextReader()
		}
		for err == nil {
			var n int
			if n, err = r.Read(buf); n > 0 {
				add(buf[:n])
			}
			if err == io.EOF {
				return nil
			}
		}
		if _, closed := errors.AsType[*websocket.CloseError](err); closed {
			return io.EOF
		}
		return err
	}
	send := func(message []byte) error { return ws.WriteMessage(websocket.TextMessage, message) }
	return newConn(limit, receive, send, func() { ws.Close() })
}

const (
	// maxProtocol limits the document at /json/protocol. Chrome 148 returns 1.6 MB.
	maxProtocol      = 16 << 20
	portPollInterval = 10 * time.Millisecond
	activePortFile   = "DevToolsActivePort"
)

// FetchProtocol returns the protocol description of the browser at a DevTools address, such as Attach returns.
func FetchProtocol(ctx context.Context, endpoint string) ([]byte, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	from := url.URL{Scheme: "http", Host: u.Host, Path: "/json/protocol"}
	resp, err := get(ctx, from.String())
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

// get requests a URL. It ignores proxies of the environment and follows no redirects.
func get(ctx context.Context, from string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", from, nil)
	if err != nil {
		return nil, err
	}
	direct := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return direct.Do(req)
}

// LaunchForProtocol launches a browser with a debugging port in addition to its pipe, reads its protocol and kills
// it. The profile should be a disposable one.
func LaunchForProtocol(ctx context.Context, cfg LaunchConfig) ([]byte, Version, error) {
	cfg.Args = append(cfg.Args, "--remote-debugging-port=0")
	active := filepath.Join(cfg.Profile, activePortFile)
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
