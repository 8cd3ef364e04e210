package oci

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/durable"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
)

// Tries of a download. Each goes on where the one before ended. Only a try that brings nothing counts for maxTries.
const (
	maxTries  = 5
	maxRounds = 1000 // in all, if a server sends a little each time
	retryWait = 300 * time.Millisecond
	idleWait  = 30 * time.Second // for the next bytes
)

const (
	partialSuffix = ".partial"
	keepDownloads = 7 * 24 * time.Hour
)

// download fetches a blob into the folder of downloads and returns its path. The file appears whole, with the digest
// that was asked for, or not at all.
func (c *Client) download(ctx context.Context, from *repository, d descriptor, r Reference) (string, error) {
	if d.Size > maxWasm || d.Size < 0 {
		return "", tooLarge("the plugin", d.Size, maxWasm)
	}
	if !isDigest().MatchString(d.Digest) {
		return "", host.Errorf(host.InvalidPlugin, "%s has the content digest %s; expected the form sha256:..", r,
			manifest.Clip(manifest.CleanLine(d.Digest), 100))
	}
	path, partial, err := c.files(strings.TrimPrefix(d.Digest, "sha256:"))
	if err != nil {
		return "", err
	}
	if sum, err := hashFile(path); err == nil && sum == d.Digest {
		return path, nil
	}
	err = c.fill(ctx, partial, d.Size, func(ctx context.Context, at int64) (io.ReadCloser, error) {
		return from.get(ctx, d, at)
	})
	if err != nil {
		return "", err
	}
	sum, err := hashFile(partial)
	if err == nil && sum != d.Digest {
		_ = os.Remove(partial)
		return "", wrongDigest(sum, d)
	}
	if err == nil {
		err = os.Rename(partial, path)
	}
	return path, err
}

// files returns the path of a download, and the path of its unfinished form. It removes old downloads.
func (c *Client) files(name string) (path, partial string, err error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return "", "", host.Errorf(host.Unavailable, "cannot make the folder of downloads: %v", err)
	}
	entries, _ := os.ReadDir(c.Dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > keepDownloads {
			_ = os.Remove(filepath.Join(c.Dir, e.Name()))
		}
	}
	path = filepath.Join(c.Dir, name+".wasm")
	return path, path + partialSuffix, nil
}

// extract writes the file plugin.wasm of a layer of an image into the folder of downloads, and returns its path.
func (c *Client) extract(layer string, r Reference) (string, error) {
	f, err := os.Open(layer)
	if err != nil {
		return "", err
	}
	defer f.Close()
	wasm, err := pluginIn(bufio.NewReader(f))
	switch {
	case err != nil && !isFinal(err):
		return "", host.Errorf(host.InvalidPlugin, "the layer of %s is not a tar: %s", r,
			manifest.Clip(manifest.CleanLine(err.Error()), 200))
	case err != nil:
		return "", err
	case wasm == nil:
		return "", host.Errorf(host.InvalidPlugin, "%s is a container image without the file plugin.wasm", r)
	}
	path, _, err := c.files(strings.TrimPrefix(digestOf(wasm), "sha256:"))
	if err == nil {
		err = durable.Write(path, wasm)
	}
	return path, err
}

// pluginIn returns the file plugin.wasm of a tar, which may be compressed; nil if it has none.
func pluginIn(layer *bufio.Reader) ([]byte, error) {
	var content io.Reader = layer
	if magic, _ := layer.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(layer)
		if err != nil {
			return nil, err
		}
		content = z
	}
	files := tar.NewReader(io.LimitReader(content, 2*maxWasm)) // a small layer may unpack to anything
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg || strings.TrimPrefix(path.Clean("/"+h.Name), "/") != "plugin.wasm" {
			continue
		}
		if h.Size > maxWasm {
			return nil, tooLarge("the plugin", h.Size, maxWasm)
		}
		return io.ReadAll(files)
	}
}

// errStalled says that a server sends no more, errRestart that it cannot go on in the middle of a file.
var errStalled = fmt.Errorf("it sent nothing for %v", idleWait)

var errRestart = errors.New("the server sends only whole files")

// fill fills a file to size bytes, with what read returns from a position on. A size below zero is unknown: the file
// ends where the content does.
func (c *Client) fill(
	ctx context.Context, path string, size int64, read func(ctx context.Context, at int64) (io.ReadCloser, error),
) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	limit := size
	if size < 0 {
		limit = maxWasm
	}
	if at > limit {
		at = 0
	}
	farthest := at
	for tries, round := 0, 0; ; round++ {
		if size >= 0 && at == size {
			return errors.Join(f.Truncate(size), f.Sync())
		}
		reading, cancel := context.WithCancelCause(ctx)
		idle := time.AfterFunc(idleWait, func() { cancel(errStalled) })
		body, err := read(reading, at)
		switch {
		case errors.Is(err, errRestart) && at > 0:
			at, err = 0, nil
		case err == nil:
			if _, err = f.Seek(at, io.SeekStart); err == nil {
				var n int64
				n, err = io.Copy(f, &progressReader{io.LimitReader(body, limit-at+1), c, idle, at, size})
				if err == nil && at+n < size { // a whole response, of something else
					err = errors.Join(fmt.Errorf("it sent %d of %d bytes", at+n, size), f.Truncate(at))
				} else {
					at += n
				}
			}
			_ = body.Close()
			if err == nil && size < 0 && at <= limit {
				idle.Stop()
				return errors.Join(f.Truncate(at), f.Sync())
			}
		}
		idle.Stop()
		if context.Cause(reading) == errStalled {
			err = errStalled
		}
		cancel(nil)
		switch {
		case at > limit:
			_ = os.Remove(path)
			return tooLarge("the plugin", at, limit)
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && isFinal(err):
			return err
		}
		if tries++; at > farthest {
			tries, farthest = 1, at
		}
		if at == size {
			continue
		}
		if tries >= maxTries || round >= maxRounds {
			return err
		}
		waitToRetry(ctx)
	}
}

func waitToRetry(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(retryWait):
	}
}

// isFinal reports whether an error is an answer of the server, which another try would get again.
func isFinal(err error) bool {
	_, isAnswer := errors.AsType[*host.Error](err)
	return isAnswer
}

// progressFrom is the size from which sending a file is reported.
const progressFrom = 64 << 10

// progressReader reports how much is read.
type progressReader struct {
	from     io.Reader
	client   *Client
	idle     *time.Timer // ends what waits too long; may be nil
	at, size int64
}

func (p *progressReader) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	if p.idle != nil {
		p.idle.Reset(idleWait)
	}
	if p.at += int64(n); n > 0 && p.client.Progress != nil {
		p.client.Progress(p.at, p.size)
	}
	return n, err
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

var isDigest = lazy.Pattern(`^sha256:[0-9a-f]{64}$`)

// Get fetches a plugin from a server, and its signature from the same URL with .minisig, if it is there. A fragment
// #sha256:.. pins the digest of the file. Errors are as for [Client.Pull], or invalid_url.
func (c *Client) Get(ctx context.Context, text string) (*Fetched, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Host)) ||
		u.Fragment != "" && !isDigest().MatchString(u.Fragment) {
		return nil, host.Errorf(host.InvalidURL, "%s cannot be fetched; expected https://HOST/PATH, with #sha256:.. to pin "+
			"it, and without a user", manifest.Clip(manifest.CleanLine(text), 200))
	}
	pinned := u.Fragment
	u.Fragment = ""
	name := sha256.Sum256([]byte(u.String()))
	_, partial, err := c.files("url-" + hex.EncodeToString(name[:]))
	if err != nil {
		return nil, err
	}
	if pinned == "" {
		_ = os.Remove(partial) // it may be of a file that has changed since
	}
	client := c.http()
	err = c.fill(ctx, partial, -1, func(ctx context.Context, at int64) (io.ReadCloser, error) {
		return open(ctx, client, u.String(), at)
	})
	if err != nil {
		return nil, unavailable("cannot fetch "+u.Redacted(), err)
	}
	sum, err := hashFile(partial)
	if err != nil {
		return nil, err
	}
	if pinned != "" && sum != pinned {
		_ = os.Remove(partial)
		return nil, host.Errorf(host.Integrity, "%s has the digest %s, not %s; nothing was installed", u, sum, pinned)
	}
	path := filepath.Join(c.Dir, strings.TrimPrefix(sum, "sha256:")+".wasm")
	if strings.HasSuffix(u.Path, ".gz") {
		path += ".gz"
	}
	if err := os.Rename(partial, path); err != nil {
		return nil, err
	}
	f := &Fetched{Path: path, Digest: sum, Source: u.String() + "#" + sum}
	u.Path = strings.TrimSuffix(u.Path, ".gz") + ".minisig"
	body, err := open(ctx, client, u.String(), 0)
	if errors.Is(err, host.NotFound) {
		return f, nil
	}
	if err == nil {
		f.Signature, err = content(body, maxSignature, "the signature")
	}
	if err != nil {
		return nil, unavailable("cannot fetch "+u.Redacted(), err)
	}
	return f, nil
}

// open returns the content of a URL from a position on.
func open(ctx context.Context, client *http.Client, url string, at int64) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "parley")
	request.Header.Set("Accept-Encoding", "identity")
	if at > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", at))
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if at > 0 || response.StatusCode == http.StatusOK {
		return bodyAt(response, at)
	}
	_ = response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		return nil, host.Errorf(host.NotFound, "%s does not exist (404)", manifest.CleanLine(url))
	}
	return nil, host.Errorf(host.Unavailable, "%s: the server answered %d", manifest.CleanLine(url), response.StatusCode)
}

// bodyAt returns the body of a response that begins at a position. From the beginning, it must be the whole file.
func bodyAt(response *http.Response, at int64) (io.ReadCloser, error) {
	isPart := response.StatusCode == http.StatusPartialContent
	begins := strings.HasPrefix(response.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", at))
	switch {
	case at == 0 && !isPart, at > 0 && isPart && begins:
		return response.Body, nil
	case at == 0:
		_ = response.Body.Close()
		return nil, errors.New("the registry returned a partial response")
	}
	_ = response.Body.Close()
	return nil, errRestart
}
