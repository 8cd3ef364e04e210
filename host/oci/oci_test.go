package oci

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/foreign"
)

func testClient(t *testing.T) *Client { return &Client{Dir: filepath.Join(t.TempDir(), "downloads")} }

func parsed(t *testing.T, text string) Reference {
	t.Helper()
	r, err := ParseReference(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// large is a plugin of several MiB, as far as this package knows.
var large = bytes.Repeat([]byte("0123456789abcdef"), 3<<17+7)

// TestRegistry pushes to Debian's registry and pulls from it: signed, pinned, from the cache, and by a moved tag.
func TestRegistry(t *testing.T) {
	t.Parallel()
	at := foreign.Registry(t)
	ctx, c := context.Background(), testClient(t)
	r := parsed(t, "oci://"+at+"/tools/large:1.0")
	signed := Plugin{Name: "large", Version: "1.0", Wasm: large, Signature: []byte("signed")}
	digest, err := c.Push(ctx, r, signed)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Push(ctx, r, signed); err != nil || again != digest {
		t.Errorf("pushed again: %s, %v; want %s", again, err, digest)
	}
	for _, from := range []string{r.String(), "oci://" + at + "/tools/large@" + digest, r.String() + "@" + digest} {
		f, err := c.Pull(ctx, parsed(t, from))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(f.Path)
		if err != nil || !bytes.Equal(got, large) || string(f.Signature) != "signed" || f.Digest != digest ||
			!strings.HasSuffix(f.Source, "@"+digest) {
			t.Errorf("%s: %d bytes, %+v, %v", from, len(got), f, err)
		}
	}
	moved, err := c.Push(ctx, r, Plugin{Name: "large", Version: "1.0", Wasm: []byte("other")})
	if err != nil || moved == digest {
		t.Fatal(moved, err)
	}
	if f, err := c.Pull(ctx, r); err != nil || f.Signature != nil || f.Digest != moved {
		t.Errorf("the tag means %s, or the signature of another build came along: %+v, %v", moved, f, err)
	}
	if _, err := c.Pull(ctx, parsed(t, "oci://"+at+"/tools/none:1")); !errors.Is(err, host.NotFound) {
		t.Error(err)
	}
}

// TestInterrupted cuts each answer of a registry after a MiB, and then ends the process that fetches half-way.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	at := foreign.Registry(t)
	ctx, c := context.Background(), testClient(t)
	last := int64(0)
	c.Progress = func(done, total int64) {
		if done <= last || total != int64(len(large)) {
			t.Errorf("sent %d of %d after %d", done, total, last)
		}
		last = done
	}
	_, err := c.Push(ctx, parsed(t, "oci://"+at+"/large:1"), Plugin{Name: "large", Version: "1", Wasm: large})
	if err != nil || last != int64(len(large)) {
		t.Fatalf("%v, sent %d of %d", err, last, len(large))
	}
	c.Progress = nil
	answers, most := 0, 1<<20
	proxy := httptest.NewServer(cut(t, "http://"+at, func() int { answers++; return most }))
	defer proxy.Close()
	from := parsed(t, "oci://"+strings.TrimPrefix(proxy.URL, "http://")+"/large:1")
	f, err := c.Pull(ctx, from)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(f.Path); err != nil || !bytes.Equal(got, large) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if answers < len(large)>>20 {
		t.Errorf("%d answers", answers)
	}

	c = testClient(t)
	stopped, cancel := context.WithCancel(ctx)
	c.Progress = func(done, total int64) {
		if done > total/2 {
			cancel()
		}
	}
	if _, err := c.Pull(stopped, from); !errors.Is(err, host.Interrupted) {
		t.Fatal(err)
	}
	first := int64(-1)
	c.Progress = func(done, _ int64) {
		if first < 0 {
			first = done
		}
	}
	if _, err := c.Pull(ctx, from); err != nil || first <= int64(len(large)/2) {
		t.Errorf("went on from %d of %d: %v", first, len(large), err)
	}
}

// cut forwards requests, and ends answers for blobs after some bytes.
func cut(t *testing.T, to string, most func() int) http.Handler {
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			w = &cutWriter{w, most()}
		}
		defer func() {
			if v := recover(); v != nil {
				panic(http.ErrAbortHandler)
			}
		}()
		forward.ServeHTTP(w, r)
	})
}

type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(b []byte) (int, error) {
	if len(b) > w.left {
		_, _ = w.ResponseWriter.Write(b[:w.left])
		w.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	w.left -= len(b)
	return w.ResponseWriter.Write(b)
}

func (w *cutWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

// uploads is a registry for one upload, which ends each request after some bytes.
type uploads struct {
	most     int  // bytes of a request; 0: all
	failures int  // how many requests are ended; then all pass
	forgets  bool // what an ended request sent is dropped, and the upload with it
	refuses  bool // PATCH
	got      []byte
	requests []string
}

func (u *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.requests = append(u.requests, r.Method)
	switch {
	case r.Method == http.MethodHead:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodPost:
		u.got = nil
		w.Header().Set("Location", "/v2/large/blobs/uploads/1?state=0")
		w.WriteHeader(http.StatusAccepted)
	case strings.Contains(r.URL.Path, "/manifests/"):
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodGet && u.forgets:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		w.Header().Set("Range", fmt.Sprintf("0-%d", max(0, len(u.got)-1)))
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPatch && u.refuses:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.URL.Query().Get("state") != "0":
		w.WriteHeader(http.StatusBadRequest)
	default:
		body := io.Reader(r.Body)
		if u.most > 0 {
			body = io.LimitReader(r.Body, int64(u.most))
		}
		data, _ := io.ReadAll(body)
		if u.got = append(u.got, data...); u.failures > 0 && len(data) == u.most {
			u.failures--
			panic(http.ErrAbortHandler)
		}
		rest, _ := io.ReadAll(r.Body)
		u.got = append(u.got, rest...)
		status := http.StatusAccepted
		if r.Method == http.MethodPut {
			if status = http.StatusCreated; r.URL.Query().Get("digest") != digestOf(u.got) {
				status = http.StatusBadRequest
			}
		}
		w.WriteHeader(status)
	}
}

// TestInterruptedPush pushes to registries that end requests: to one that keeps what it has got, to one that does not,
// and to one that takes only whole files.
func TestInterruptedPush(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat(large, 4)
	for _, c := range []struct {
		name     string
		registry uploads
		posts    int // uploads that were begun, of two files
		fails    bool
	}{
		{"honest", uploads{}, 2, false},
		{"ended at every MiB", uploads{most: 1 << 20, failures: 1000}, 2, false},
		{"ended twice, and dropped", uploads{most: 1 << 20, failures: 2, forgets: true}, 4, false},
		{"ended each time, and dropped", uploads{most: 1 << 20, failures: 1000, forgets: true}, 2 + maxTries - 1, true},
		{"only whole files", uploads{refuses: true}, 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&c.registry)
			defer server.Close()
			to := parsed(t, "oci://"+strings.TrimPrefix(server.URL, "http://")+"/large:1")
			_, err := testClient(t).Push(t.Context(), to, Plugin{Name: "large", Version: "1", Wasm: large})
			if (err != nil) != c.fails || !c.fails && !bytes.Equal(c.registry.got, large) {
				t.Errorf("%v, the registry has %d of %d bytes", err, len(c.registry.got), len(large))
			}
			posts := 0
			for _, method := range c.registry.requests {
				if method == http.MethodPost {
					posts++
				}
			}
			if posts != c.posts {
				t.Errorf("%d uploads were begun, expected %d: %v", posts, c.posts, c.registry.requests)
			}
		})
	}
}

// TestImages pulls plugins from images, as tools for containers make them, and refuses other layers.
func TestImages(t *testing.T) {
	t.Parallel()
	type file struct {
		name, content string
		kind          byte
	}
	layer := func(zipped bool, files ...file) string {
		var b bytes.Buffer
		var out io.Writer = &b
		z := gzip.NewWriter(&b)
		if zipped {
			out = z
		}
		w := tar.NewWriter(out)
		for _, f := range files {
			h := &tar.Header{Name: f.name, Typeflag: f.kind, Size: int64(len(f.content)), Mode: 0o644}
			if f.kind == tar.TypeSymlink {
				h.Size, h.Linkname = 0, f.content
			}
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
			if f.kind != tar.TypeSymlink {
				_, _ = w.Write([]byte(f.content))
			}
		}
		_ = w.Close()
		if zipped {
			_ = z.Close()
		}
		return b.String()
	}
	plugin, other := file{"plugin.wasm", "good", tar.TypeReg}, file{"etc/hosts", "x", tar.TypeReg}
	for _, c := range []struct {
		name, layer, media string
		code               host.Code
	}{
		{"a tar", layer(false, other, plugin), tarTypes[0], ""},
		{"a compressed tar", layer(true, file{"./plugin.wasm", "good", tar.TypeReg}), tarTypes[1], ""},
		{"of Docker", layer(true, file{"/plugin.wasm", "good", tar.TypeReg}), tarTypes[2], ""},
		{"without a plugin", layer(true, other), tarTypes[1], host.InvalidPlugin},
		{"a link", layer(true, file{"plugin.wasm", "/etc/passwd", tar.TypeSymlink}), tarTypes[1], host.InvalidPlugin},
		{"in a folder above", layer(true, file{"x/../../plugin.wasm.d/plugin.wasm", "evil", tar.TypeReg}), tarTypes[1],
			host.InvalidPlugin},
		{"no tar", "good", tarTypes[0], host.InvalidPlugin},
		{"cut short", layer(false, plugin)[:514], tarTypes[0], host.InvalidPlugin},
		{"a broken gzip", "\x1f\x8bxxxxxxxxxxxxxxxx", tarTypes[1], host.InvalidPlugin},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := describe(c.media, []byte(c.layer))
			data, err := json.Marshal(image{SchemaVersion: 2, MediaType: imageType, Layers: []descriptor{d}})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(&liar{manifest: string(data), blob: c.layer})
			defer server.Close()
			f, err := testClient(t).Pull(t.Context(), parsed(t, "oci://"+strings.TrimPrefix(server.URL, "http://")+"/x:1"))
			if c.code != "" {
				if !errors.Is(err, c.code) {
					t.Errorf("%v, expected %s", err, c.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(f.Path); err != nil || string(got) != "good" || f.Digest != digestOf(data) {
				t.Errorf("%q of %s, %v", got, f.Digest, err)
			}
		})
	}
}

// TestIndexes pulls by a tag that names an index, as builders of images push it with an attestation beside the image.
func TestIndexes(t *testing.T) {
	t.Parallel()
	wasm := describe(wasmType, []byte("good"))
	plugin, err := json.Marshal(image{SchemaVersion: 2, MediaType: imageType, Layers: []descriptor{wasm}})
	if err != nil {
		t.Fatal(err)
	}
	one, attestation := describe(imageType, plugin), describe(imageType, []byte("attestation"))
	one.Platform.Architecture, attestation.Platform.Architecture = "wasm", "unknown"
	for _, c := range []struct {
		name string
		all  []descriptor
		code host.Code
	}{
		{"one", []descriptor{one}, ""},
		{"one and its attestation", []descriptor{attestation, one}, ""},
		{"two", []descriptor{one, one}, host.InvalidPlugin},
		{"only an attestation", []descriptor{attestation}, host.InvalidPlugin},
		{"none", nil, host.InvalidPlugin},
		{"another", []descriptor{describe(imageType, []byte("other"))}, host.Integrity},
	} {
		t.Run(c.name, func(t *testing.T) {
			index, err := json.Marshal(image{SchemaVersion: 2, MediaType: indexType, Manifests: c.all})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(&liar{manifest: string(index), signature: string(plugin), blob: "good"})
			defer server.Close()
			f, err := testClient(t).Pull(t.Context(), parsed(t, "oci://"+strings.TrimPrefix(server.URL, "http://")+"/x:1"))
			switch {
			case c.code != "":
				if !errors.Is(err, c.code) || c.name == "two" && !strings.Contains(err.Error(), "/x:1@"+one.Digest) {
					t.Errorf("%v, expected %s", err, c.code)
				}
			case err != nil:
				t.Fatal(err)
			case f.Digest != one.Digest || !strings.HasSuffix(f.Source, "/x:1@"+one.Digest):
				t.Errorf("%s from %s, expected %s", f.Digest, f.Source, one.Digest)
			}
		})
	}
}

// FuzzPluginIn reads layers of any bytes.
func FuzzPluginIn(f *testing.F) {
	f.Add([]byte("\x1f\x8b"))
	f.Add(bytes.Repeat([]byte{0}, 1024))
	f.Fuzz(func(t *testing.T, layer []byte) {
		if wasm, err := pluginIn(bufio.NewReader(bytes.NewReader(layer))); err != nil && wasm != nil {
			t.Error("content with an error")
		}
	})
}

// liar is a registry that answers what a test says.
type liar struct {
	manifest, blob, signature, index string
	status                           int
	location                         string
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case l.status != 0:
		if l.location != "" {
			w.Header().Set("Location", l.location)
		}
		w.WriteHeader(l.status)
	case strings.Contains(path, "/referrers/") && l.index != "":
		fmt.Fprint(w, l.index)
	case strings.Contains(path, "/manifests/sha256:"):
		fmt.Fprint(w, l.signature)
	case strings.Contains(path, "/manifests/sha256-"), strings.Contains(path, "/referrers/"):
		w.WriteHeader(http.StatusNotFound)
	case strings.Contains(path, "/manifests/"):
		fmt.Fprint(w, l.manifest)
	default:
		fmt.Fprint(w, l.blob)
	}
}

// TestLies pulls from registries that lie. Nothing of what they send is left.
func TestLies(t *testing.T) {
	t.Parallel()
	plugin := func(layers ...descriptor) string {
		data, err := json.Marshal(image{SchemaVersion: 2, MediaType: imageType, Layers: layers})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	good := describe(wasmType, []byte("good"))
	sized := func(size int64) descriptor { d := good; d.Size = size; return d }
	named := func(digest string) descriptor { d := good; d.Digest = digest; return d }
	signed := plugin(descriptor{MediaType: SignatureType, Digest: good.Digest})
	for _, c := range []struct {
		name string
		liar liar
		ref  string // after the host; "" means /x:1
		code host.Code
	}{
		{"honest", liar{manifest: plugin(good), blob: "good"}, "", ""},
		{"other content", liar{manifest: plugin(good), blob: "evil"}, "", host.Integrity},
		{"too much content", liar{manifest: plugin(good), blob: "good and more"}, "", host.LimitExceeded},
		{"too little content", liar{manifest: plugin(sized(9)), blob: "good"}, "", host.Unavailable},
		{"a size below zero", liar{manifest: plugin(sized(-1)), blob: "good"}, "", host.LimitExceeded},
		{"a huge size", liar{manifest: plugin(sized(1 << 40)), blob: "good"}, "", host.LimitExceeded},
		{"a path as digest", liar{manifest: plugin(named("sha256:../../../../etc/passwd")), blob: "good"}, "",
			host.InvalidPlugin},
		{"an unknown digest", liar{manifest: plugin(named("md5:00")), blob: "good"}, "", host.InvalidPlugin},
		{"two layers", liar{manifest: plugin(good, good), blob: "good"}, "", host.InvalidPlugin},
		{"no layers", liar{manifest: plugin(), blob: "good"}, "", host.InvalidPlugin},
		{"another type", liar{manifest: plugin(describe("image/png", []byte("good")))}, "", host.InvalidPlugin},
		{"a page in place of the manifest", liar{manifest: "<html>"}, "", host.Unavailable},
		{"a huge manifest", liar{manifest: strings.Repeat(" ", maxManifest+1)}, "", host.LimitExceeded},
		{"another manifest than the pinned", liar{signature: plugin(good), blob: "good"},
			"/x@sha256:" + strings.Repeat("0", 64), host.Integrity},
		{"a signature of another artifact", liar{manifest: plugin(good), blob: "good", signature: signed,
			index: `{"mediaType":"` + indexType + `","manifests":[{"artifactType":"` + SignatureType + `","digest":"` +
				digestOf([]byte(signed)) + `"}]}`}, "", host.Integrity},
		{"a server error", liar{status: 500}, "", host.Unavailable},
		{"access refused", liar{status: 403}, "", host.Denied},
		{"an endless redirect", liar{status: 302, location: "/v2/x/manifests/1"}, "", host.Unavailable},
		{"a login without a realm", liar{status: 401}, "", host.Denied},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(&c.liar)
			defer server.Close()
			if c.ref == "" {
				c.ref = "/x:1"
			}
			client := testClient(t)
			f, err := client.Pull(context.Background(), parsed(t, "oci://"+strings.TrimPrefix(server.URL, "http://")+c.ref))
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, c.code) || f != nil {
				t.Errorf("%v, %v; want %s", f, err, c.code)
			}
			files, _ := filepath.Glob(filepath.Join(client.Dir, "*.wasm"))
			if c.name != "a signature of another artifact" && len(files) > 0 {
				t.Errorf("%q are left", files)
			}
		})
	}
}

// TestCredentials sends Docker's credentials to the registry that they are for, for a token and directly, and to no
// other.
func TestCredentials(t *testing.T) {
	t.Parallel()
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, "other "+r.Header.Get("Authorization"))
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusCreated)
		}
		fmt.Fprint(w, "good")
	}))
	defer other.Close()
	var server *httptest.Server
	challenge := `Bearer realm="%s/token",service="s"`
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, basic := r.BasicAuth()
		switch {
		case r.URL.Path == "/token":
			seen = append(seen, "token "+user+" "+password+" "+strings.Join(r.URL.Query()["scope"], " "))
			fmt.Fprint(w, `{"token":"T"}`)
		case r.Header.Get("Authorization") != "Bearer T" || basic:
			for _, header := range strings.Split(challenge, "\n") {
				w.Header().Add("WWW-Authenticate", strings.Replace(header, "%s", server.URL, 1))
			}
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == http.MethodPost:
			w.Header().Set("Location", other.URL+"/upload")
			w.WriteHeader(http.StatusAccepted)
		case strings.Contains(r.URL.Path, "/blobs/"):
			http.Redirect(w, r, other.URL+"/blob", http.StatusTemporaryRedirect)
		case strings.Contains(r.URL.Path, "/manifests/1"):
			data, _ := json.Marshal(image{Layers: []descriptor{describe(wasmType, []byte("good"))}})
			_, _ = w.Write(data)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://")
	c := testClient(t)
	c.Config = t.TempDir()
	config := `{"auths":{"` + at + `":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("ada:secret")) + `"}}}`
	if err := os.WriteFile(filepath.Join(c.Config, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Pull(context.Background(), parsed(t, "oci://"+at+"/x:1")); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(seen, "; "), "token ada secret repository:x:pull; other "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for text, scopes := range map[string]string{
		`Bearer realm="%s/token",service="s",scope="repository:x:pull"`: "repository:x:pull",
		`Bearer realm="%s/token",scope="aws"`:                           "aws repository:x:pull",
		`bearer scope="repository:team/x:pull repository:y:pull",REALM=%s/token`: "repository:team/x:pull " +
			"repository:y:pull repository:x:pull",
		`Bearer realm="%s/token",service="s", Basic realm="y"`:    "repository:x:pull",
		"Negotiate\nBasic realm=\"y\"\nBearer realm=\"%s/token\"": "repository:x:pull",
	} {
		challenge, seen = text, nil
		_, _, err := c.repository(parsed(t, "oci://"+at+"/x:1")).manifest(context.Background(), parsed(t, "oci://"+at+"/x:1"))
		if got, want := strings.Join(seen, "; "), "token ada secret "+scopes; got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	challenge, seen = `Bearer realm="%s/token"`, nil
	upload := []byte("good")
	to := c.repository(parsed(t, "oci://"+at+"/x:1"))
	if err := to.put(context.Background(), describe(wasmType, upload), upload); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(seen, "; "), "token ada secret repository:x:pull,push; other "; got != want {
		t.Errorf("an upload elsewhere: %q, want %q", got, want)
	}
}

// TestGet fetches from a server: with and without its signature, pinned, and going on after an interruption.
func TestGet(t *testing.T) {
	t.Parallel()
	most, ranges := 1<<20, 0
	mux := http.NewServeMux()
	mux.HandleFunc("/large.wasm", func(w http.ResponseWriter, r *http.Request) {
		from := 0
		if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
			ranges++
			from, _ = strconv.Atoi(strings.TrimSuffix(text, "-"))
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(large)-1, len(large)))
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(large)-from))
		if from > 0 {
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = w.Write(large[from:min(len(large), from+most)])
	})
	mux.HandleFunc("/large.wasm.minisig", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "signed") })
	mux.Handle("/away", http.RedirectHandler("http://example.com/x.wasm", http.StatusFound))
	server := httptest.NewServer(mux)
	defer server.Close()
	ctx, c := context.Background(), testClient(t)
	f, err := c.Get(ctx, server.URL+"/large.wasm")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(f.Path)
	if err != nil || !bytes.Equal(got, large) || string(f.Signature) != "signed" || ranges < 2 {
		t.Errorf("%d bytes, %d ranges, %+v, %v", len(got), ranges, f, err)
	}
	if again, err := c.Get(ctx, f.Source); err != nil || again.Source != f.Source {
		t.Errorf("%+v, %v", again, err)
	}
	for text, code := range map[string]host.Code{
		server.URL + "/large.wasm#sha256:" + strings.Repeat("0", 64): host.Integrity,
		server.URL + "/none.wasm":                                    host.NotFound,
		server.URL + "/large.wasm#md5:0":                             host.InvalidURL,
		"http://example.com/x.wasm":                                  host.InvalidURL,
		"https://user:pass@example.com/x.wasm":                       host.InvalidURL,
	} {
		if f, err := c.Get(ctx, text); !errors.Is(err, code) {
			t.Errorf("%s: %+v, %v; want %s", text, f, err, code)
		}
	}
}

func TestParseReference(t *testing.T) {
	for text, want := range map[string]string{
		"oci://a.example/x":                   "oci://a.example/x:latest",
		"oci://a.example:5000/x/y:1.0":        "oci://a.example:5000/x/y:1.0",
		"oci://[::1]:5000/x:1":                "oci://[::1]:5000/x:1",
		"oci://a.example/x@sha256:" + zeros:   "oci://a.example/x@sha256:" + zeros,
		"oci://a.example/x:1@sha256:" + zeros: "oci://a.example/x:1@sha256:" + zeros,
		"oci://a.example/../x":                "", "oci://a.example/X": "", "oci://a.example": "", "docker://a/x": "",
		"oci:///x":                    "",
		"oci://a.example/x@sha256:00": "", "oci://a.example/x:1?y": "", "oci://u@a.example/x": "", "oci://a.example/x y": "",
		"oci://a.example/x\n": "",
	} {
		r, err := ParseReference(text)
		if want == "" {
			if !errors.Is(err, host.InvalidURL) {
				t.Errorf("%q: %v, %v", text, r, err)
			}
			continue
		}
		if err != nil || r.String() != want {
			t.Errorf("%q: %s, %v; want %s", text, r, err, want)
		}
	}
}

var zeros = strings.Repeat("0", 64)

func FuzzParseReference(f *testing.F) {
	f.Add("oci://a.example:5000/x/y:1.0@sha256:" + zeros)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseReference(text)
		if err != nil {
			return
		}
		if again, err := ParseReference(r.String()); err != nil || again != r {
			t.Errorf("%q: %v, then %v, %v", text, r, again, err)
		}
		if _, err := url.Parse("https://" + r.host + "/v2/" + r.name + "/manifests/" + r.tag + r.digest); err != nil {
			t.Error(err)
		}
	})
}
