// Package oci ships plugins over OCI registries and HTTPS: it pushes a plugin with its signature, and fetches one into
// a folder, verified by digest.
//
// A plugin is an artifact as other wasm tools make it: an image manifest with a config of the type
// application/vnd.wasm.config.v0+json and one layer of the type application/wasm, which has the manifest of the plugin
// in it. Its signature is a referrer, an artifact of the type [SignatureType] with the signature as its only layer.
// What a registry sends is untrusted: everything is bounded, and used only if it has the digest that was asked for.
package oci

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
)

// Scheme is how a reference to a registry begins.
const Scheme = "oci://"

// SignatureType is the type of the artifact that has the signature of a plugin.
const SignatureType = "application/vnd.parley.signature.v1+minisig"

// Media types of a plugin. Others may have made their artifacts with the older ones.
const (
	configType = "application/vnd.wasm.config.v0+json"
	wasmType   = "application/wasm"
	imageType  = "application/vnd.oci.image.manifest.v1+json"
	indexType  = "application/vnd.oci.image.index.v1+json"
	emptyType  = "application/vnd.oci.empty.v1+json"
)

var layerTypes = []string{wasmType, "application/vnd.module.wasm.content.layer.v1+wasm",
	"application/vnd.wasm.content.layer.v1+wasm"}

// tarTypes are layers of images, as tools for containers make them: one with the file plugin.wasm is a plugin, too.
var tarTypes = []string{"application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip",
	"application/vnd.docker.image.rootfs.diff.tar.gzip"}

// Size limits in bytes. An installation has the same limit for a wasm file.
const (
	maxWasm      = 128 << 20
	maxManifest  = 1 << 20
	maxSignature = 64 << 10
)

// descriptor describes content by its digest.
type descriptor struct {
	MediaType    string `json:"mediaType"`
	ArtifactType string `json:"artifactType,omitempty"`
	Digest       string `json:"digest"`
	Size         int64  `json:"size"`
	Platform     struct {
		Architecture string `json:"architecture"`
	} `json:"platform,omitzero"`
}

// image is the manifest of an artifact, or with Manifests an index of artifacts.
type image struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Config        *descriptor       `json:"config,omitempty"`
	Layers        []descriptor      `json:"layers,omitempty"`
	Manifests     []descriptor      `json:"manifests,omitempty"`
	Subject       *descriptor       `json:"subject,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// Plugin is a plugin to push.
type Plugin struct {
	Name, Version, Brief string
	Wasm                 []byte // with the manifest in it
	Signature            []byte // the text of the signature file; nil if it is not signed
}

// Client talks to registries and servers.
type Client struct {
	// HTTP sends the requests. Nil means a client with the proxies of the environment.
	HTTP *http.Client
	// Config is the folder of Docker's configuration, whose credentials are used. "" means that there are none.
	Config string
	// Dir is the folder of downloads, those that were interrupted included.
	Dir string
	// Progress, if not nil, gets how many bytes of a file have arrived or been sent.
	Progress func(done, total int64)
}

// Fetched is a plugin that was fetched.
type Fetched struct {
	Path      string // path of the wasm file, in [Client].Dir; it has its digest in its name
	Signature []byte // nil if there is none
	Source    string // where it is from, with the digest: oci://HOST/NAME:TAG@sha256:..
	Digest    string // "sha256:.." of the artifact, or of the file if it is from a server
}

// Reference is a parsed oci:// reference.
type Reference struct{ host, name, tag, digest string }

// reference is the grammar of references: the host with its port, the name, a tag and a digest.
var reference = lazy.Pattern(`^((?:[a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\])(?::[0-9]+)?)/` +
	`([a-z0-9]+(?:[._/-]+[a-z0-9]+)*)(?::([A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$`)

// ParseReference parses oci://HOST/NAME, with :TAG, @sha256:DIGEST or both; a digest then decides. Without either the
// tag is latest. The error is invalid_url.
func ParseReference(text string) (Reference, error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	m := reference().FindStringSubmatch(rest)
	if !ok || m == nil || len(m[2]) > 255 || strings.Contains(m[2], "//") {
		return Reference{}, host.Errorf(host.InvalidURL, "%s is not a reference to a registry; expected "+
			"oci://HOST/NAME:TAG or oci://HOST/NAME@sha256:..", manifest.Clip(manifest.CleanLine(text), 200))
	}
	r := Reference{m[1], m[2], m[3], m[4]}
	if r.tag == "" && r.digest == "" {
		r.tag = "latest"
	}
	return r, nil
}

// String returns the reference in the form in which it is given.
func (r Reference) String() string {
	s := Scheme + r.host + "/" + r.name
	if r.tag != "" {
		s += ":" + r.tag
	}
	if r.digest != "" {
		s += "@" + r.digest
	}
	return s
}

// Digest returns the digest of the reference, "" if it has none.
func (r Reference) Digest() string { return r.digest }

// Tag returns the reference without its digest. It is "" if it has no tag.
func (r Reference) Tag() string {
	if r.tag == "" {
		return ""
	}
	return Reference{r.host, r.name, r.tag, ""}.String()
}

// at returns the reference with a digest.
func (r Reference) at(digest string) Reference { return Reference{r.host, r.name, r.tag, digest} }

// created is when every artifact claims to be made, so that the same plugin has the same digest.
const created = "1970-01-01T00:00:00Z"

// Push pushes a plugin, with its signature if it has one, and returns the digest of the artifact. What the registry has
// already is not sent again, and an upload that was interrupted goes on where it ended, if the registry has kept it.
func (c *Client) Push(ctx context.Context, r Reference, p Plugin) (string, error) {
	if r.digest != "" {
		return "", host.Errorf(host.InvalidURL, "%s has a digest, which follows from the plugin; expected a tag", r)
	}
	repo := c.repository(r)
	layer := describe(wasmType, p.Wasm)
	config, err := json.Marshal(map[string]any{"created": created, "architecture": "wasm",
		"os": "wasip1", "layerDigests": []string{layer.Digest}})
	if err != nil {
		return "", err
	}
	described := describe(configType, config)
	plugin := image{
		SchemaVersion: 2, MediaType: imageType, Config: &described, Layers: []descriptor{layer},
		Annotations: map[string]string{"org.opencontainers.image.title": p.Name,
			"org.opencontainers.image.version": p.Version, "org.opencontainers.image.description": p.Brief},
	}
	pushed, err := repo.push(ctx, plugin, r.tag, config, p.Wasm)
	if err != nil || p.Signature == nil {
		return pushed.Digest, remoteError(r, err)
	}
	empty := describe(emptyType, []byte("{}"))
	signature := image{
		SchemaVersion: 2, MediaType: imageType, ArtifactType: SignatureType, Config: &empty,
		Layers: []descriptor{describe(SignatureType, p.Signature)}, Subject: &pushed,
	}
	_, err = repo.push(ctx, signature, "", []byte("{}"), p.Signature)
	return pushed.Digest, remoteError(r, err)
}

func describe(mediaType string, content []byte) descriptor {
	return descriptor{MediaType: mediaType, Digest: digestOf(content), Size: int64(len(content))}
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// IsRemote reports whether a word names a plugin in a registry or on a server: oci://, https:// or http://.
func IsRemote(word string) bool {
	schemes := []string{Scheme, "https://", "http://"}
	return slices.ContainsFunc(schemes, func(scheme string) bool { return strings.HasPrefix(word, scheme) })
}

// Fetch fetches a remote plugin.
func (c *Client) Fetch(ctx context.Context, from string) (*Fetched, error) {
	if !strings.HasPrefix(from, Scheme) {
		return c.Get(ctx, from)
	}
	ref, err := ParseReference(from)
	if err != nil {
		return nil, err
	}
	return c.Pull(ctx, ref)
}

// Pull fetches a plugin and its signature: from an artifact with one wasm file, an image whose only layer has
// plugin.wasm, or an index of one of these, as tools for containers push it. A download that was interrupted goes on
// where it ended. The error is not_found, integrity for content with another digest, invalid_plugin for an artifact
// that is not a plugin, limit_exceeded for one that is too large, denied where credentials are missing, or unavailable.
func (c *Client) Pull(ctx context.Context, r Reference) (*Fetched, error) {
	repo := c.repository(r)
	m, d, err := repo.manifest(ctx, r)
	if err != nil {
		return nil, remoteError(r, err)
	}
	isAttestation := func(d descriptor) bool { return d.Platform.Architecture == "unknown" }
	switch all := slices.DeleteFunc(m.Manifests, isAttestation); {
	case len(all) == 1:
		r = r.at(all[0].Digest)
		if m, d, err = repo.manifest(ctx, r); err != nil {
			return nil, remoteError(r, err)
		}
	case len(all) > 1:
		return nil, host.Errorf(host.InvalidPlugin, "%s is an index of %d artifacts: name one by its digest, such as %s", r,
			len(all), manifest.Clip(manifest.CleanLine(r.at(all[0].Digest).String()), 300))
	}
	isImage := len(m.Layers) == 1 && slices.Contains(tarTypes, m.Layers[0].MediaType)
	if len(m.Layers) != 1 || !isImage && !slices.Contains(layerTypes, m.Layers[0].MediaType) {
		return nil, host.Errorf(host.InvalidPlugin, "%s is not a plugin: expected one layer of the type %s, and it has %s", r,
			wasmType, describeLayers(m.Layers))
	}
	path, err := c.download(ctx, repo, m.Layers[0], r)
	if err == nil && isImage {
		path, err = c.extract(path, r)
	}
	if err != nil {
		return nil, remoteError(r, err)
	}
	f := &Fetched{Path: path, Digest: d.Digest, Source: r.at(d.Digest).String()}
	if f.Signature, err = repo.signature(ctx, r, d); err != nil {
		return nil, remoteError(r, err)
	}
	return f, nil
}

func describeLayers(layers []descriptor) string {
	if len(layers) == 1 {
		return "one of the type " + manifest.Clip(manifest.CleanLine(layers[0].MediaType), 100)
	}
	return fmt.Sprintf("%d layers", len(layers))
}

func wrongDigest(got string, d descriptor) *host.Error {
	return host.Errorf(host.Integrity, "the registry sent content with the digest %s in place of %s; it was discarded, "+
		"and nothing was installed", got, manifest.Clip(manifest.CleanLine(d.Digest), 100))
}

func tooLarge(what string, size, limit int64) *host.Error {
	return host.Errorf(host.LimitExceeded, "%s has %d bytes, the limit is %d; nothing was installed", what, size, limit)
}

// isLoopback reports whether a host is this machine, to which plain HTTP is used.
func isLoopback(hostport string) bool {
	name, _, err := net.SplitHostPort(hostport)
	if err != nil {
		name = hostport
	}
	return name == "localhost" || net.ParseIP(strings.Trim(name, "[]")).IsLoopback()
}

// maxRedirects bounds the redirects of one request.
const maxRedirects = 5

// http returns a client that follows a few redirects, none from HTTPS to HTTP. The Authorization header does not go to
// another origin: the standard library sends it to other ports and to subdomains, too.
func (c *Client) http() *http.Client {
	client := *cmp.Or(c.HTTP, http.DefaultClient)
	client.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return fmt.Errorf("more than %d redirects", maxRedirects)
		case to.URL.Scheme != "https" && !isLoopback(via[0].URL.Host):
			return fmt.Errorf("a redirect to %s, which is not HTTPS", to.URL.Host)
		case isLoopback(to.URL.Host) && !isLoopback(via[0].URL.Host):
			return errors.New("a redirect from another machine to this one")
		case originOf(to) != originOf(via[0]):
			to.Header.Del("Authorization")
		}
		return nil
	}
	return &client
}

// remoteError returns an error of a registry as a [*host.Error], nil for nil.
func remoteError(r Reference, err error) error {
	if !isFinal(err) && errors.Is(err, context.Canceled) {
		return host.Errorf(host.Interrupted, "interrupted; what has arrived is kept, and the next try goes on from there")
	}
	return unavailable(fmt.Sprintf("the registry of %s", r), err)
}

// unavailable turns an error that is not a [*host.Error] into one. It returns nil for nil.
func unavailable(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case isFinal(err):
		return host.AsError(err)
	}
	return &host.Error{Code: host.Unavailable, Cause: err,
		Message: what + ": " + manifest.Clip(manifest.CleanLine(err.Error()), 300)}
}
