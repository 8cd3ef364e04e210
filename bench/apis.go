package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
)

// apiWarmBound and apiColdBound limit a call of kind http, as multiples of text.hash of the shipped plugin: in process,
// which makes an instance of a guest for each call, and as a cold process, with the runner of that guest waiting.
const apiWarmBound, apiColdBound = 1.0, 1.2

// apiManifest is a plugin of kind http with one tool. Its server is in this process.
const apiManifest = `{"manifest":1,"name":"notes","version":"1.0.0","kind":"http","docs":{"brief":"Read notes"},
"http":{"base":%[1]q},"capabilities":{"http":[{"url":%[1]q,"methods":["GET"],"why":"to call the API"}],
"secrets":[{"name":"NOTES_KEY","url":%[1]q,"header":"Authorization: Bearer {secret}"}]},
"tools":[{"name":"get","docs":{"brief":"Get a note"},"effect":"read","params":{"type":"object",
"properties":{"id":{"type":"string"}},"required":["id"]},"returns":{"type":"object"},"positional":["id"],
"http":{"method":"GET","path":"/notes/{id}"}}]}`

// apis times calls of kind http in turns with text.hash: over MCP in the server's own process, and as cold processes.
func (b *bench) apis() error {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"a","text":"hello"}`)
	}))
	defer api.Close()
	for home, more := range map[string]string{"api": "", "api-local": "[defaults]\nisolate = \"none\"\n"} {
		if err := b.installAPI(home, api.URL, more); err != nil {
			return err
		}
	}
	defer b.stopRunners("api")
	return b.inTurns(context.Background())
}

func (b *bench) installAPI(home, url, more string) error {
	dir := filepath.Join(b.work, home, "config")
	manifest := filepath.Join(b.work, "notes.manifest.json")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for path, text := range map[string]string{
		manifest:                          fmt.Sprintf(apiManifest, url),
		filepath.Join(dir, "policy.toml"): "[operator]\nallow_yes = true\n" + more,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	secret := b.command("", home, "secret", "set", "NOTES_KEY")
	secret.stdin = "a-key-of-the-benchmark"
	if err := b.time(secret); err != nil {
		return err
	}
	if err := b.succeed(home, "plugin", "install", manifest, "--yes"); err != nil {
		return err
	}
	return b.succeed(home, "policy", "grant", "notes", "http:GET:"+url, "secret:NOTES_KEY", "--yes")
}

func (b *bench) inTurns(ctx context.Context) error {
	local, err := b.serve(ctx, "api-local")
	if err != nil {
		return err
	}
	defer local.session.Close()
	for range timedCalls {
		for tool, params := range map[string]string{"notes.get": `{"id":"a"}`, "text.hash": `{"text":"hello"}`} {
			if err := local.call(ctx, tool, params); err != nil {
				return fmt.Errorf("%s: %w", tool, err)
			}
		}
	}
	cold := b.command("kind http: notes get a", "api", "notes", "get", "a")
	hash := b.command("kind parley/1, Go: text hash hello", "api", "text", "hash", "hello")
	hashLocal := b.command("the same in process", "api-local", "text", "hash", "hello")
	if err := b.table("Cold process that calls an API on this machine", cold, hash, hashLocal); err != nil {
		return err
	}
	warm, base := median(local.took["notes.get"]), median(local.took["text.hash"])
	fmt.Fprintf(b.out, "Over MCP, in process: kind http %.2f ms, text.hash %.2f ms\n", milliseconds(warm),
		milliseconds(base))
	for _, r := range []struct {
		name      string
		x, atMost float64
	}{
		{"in process over MCP", float64(warm) / float64(base), apiWarmBound},
		{"cold", float64(median(cold.took)) / float64(median(hash.took)), apiColdBound},
	} {
		fmt.Fprintf(b.out, "%.2f x  kind http beside text.hash, %s (at most %.1f)%s\n", r.x, r.name, r.atMost,
			overMark(r.x > r.atMost))
	}
	return nil
}
