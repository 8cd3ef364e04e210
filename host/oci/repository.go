package oci

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
)

// repository is one repository of a registry, over the protocol of the OCI Distribution Specification 1.1.
type repository struct {
	ref    Reference
	client *Client
	http   *http.Client
	origin string // of the registry
	base   string // the URL of the repository
	header string // value of the Authorization header, once the registry has asked for one
	up     *upload
}

func (c *Client) repository(r Reference) *repository {
	scheme := "https"
	if isLoopback(r.host) {
		scheme = "http"
	}
	origin := scheme + "://" + r.host
	return &repository{ref: r, client: c, http: c.http(), origin: origin, base: origin + "/v2/" + r.name + "/"}
}

// do sends a request to the repository, again with credentials if the registry asks for them. If the response has none
// of the statuses, the error says how the registry responded.
func (p *repository) do(
	ctx context.Context, method, to string, header map[string]string, body []byte, statuses ...int,
) (*http.Response, error) {
	if !strings.Contains(to, "://") {
		to = p.base + to
	}
	for try := 0; ; try++ {
		request, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		if u := p.up; u != nil && p.client.Progress != nil && len(body) > 0 && len(u.content) >= progressFrom {
			request.Body = io.NopCloser(&progressReader{from: request.Body, client: p.client, at: int64(u.sent),
				size: int64(len(u.content))})
		}
		request.Header.Set("User-Agent", "parley")
		for name, value := range header {
			request.Header.Set(name, value)
		}
		if p.header != "" && originOf(request) == p.origin {
			request.Header.Set("Authorization", p.header)
		}
		response, err := p.http.Do(request)
		if err != nil {
			return nil, err
		}
		if slices.Contains(statuses, response.StatusCode) {
			return response, nil
		}
		_ = response.Body.Close()
		asked := response.Header.Values("WWW-Authenticate")
		if response.StatusCode == http.StatusUnauthorized && try == 0 && originOf(response.Request) == p.origin {
			if err := p.authorize(ctx, asked, method != http.MethodGet && method != http.MethodHead); err != nil {
				return nil, err
			}
			continue
		}
		return nil, p.refused(response.StatusCode)
	}
}

// send is do for a request whose response has no content.
func (p *repository) send(
	ctx context.Context, method, to string, header map[string]string, body []byte, statuses ...int,
) (*http.Response, error) {
	response, err := p.do(ctx, method, to, header, body, statuses...)
	if err == nil {
		_ = response.Body.Close()
	}
	return response, err
}

func originOf(r *http.Request) string { return r.URL.Scheme + "://" + r.URL.Host }

// refused returns the error of an unexpected response.
func (p *repository) refused(status int) error {
	switch status {
	case http.StatusNotFound:
		e := host.Errorf(host.NotFound, "the registry has no %s", p.ref)
		if p.ref.tag == "latest" {
			e.Message += "; a plugin that was pushed without a tag has its version as the tag, such as :1.0.0"
		}
		return e
	case http.StatusUnauthorized, http.StatusForbidden:
		return host.Errorf(host.Denied, "the registry of %s refuses access (%d); docker login, or another tool that writes "+
			"Docker's config.json, sets credentials", p.ref, status)
	case http.StatusTooManyRequests:
		return host.Errorf(host.Busy, "the registry of %s accepts no more requests for now (429)", p.ref)
	}
	if status >= 500 {
		return fmt.Errorf("it answered %d", status) // another try may succeed
	}
	return host.Errorf(host.Unavailable, "the registry of %s answered %d", p.ref, status)
}

// content reads a body of at most limit bytes.
func content(body io.ReadCloser, limit int64, what string) ([]byte, error) {
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, tooLarge(what, int64(len(data)), limit)
	}
	return data, err
}

// manifest fetches the manifest that a reference means, which must have the digest of the reference if it has one.
func (p *repository) manifest(ctx context.Context, r Reference) (*image, descriptor, error) {
	wanted := cmp.Or(r.digest, r.tag)
	response, err := p.do(ctx, http.MethodGet, "manifests/"+wanted,
		map[string]string{"Accept": imageType + ", application/vnd.docker.distribution.manifest.v2+json, " +
			indexType + ", application/vnd.docker.distribution.manifest.list.v2+json"}, nil, http.StatusOK)
	if err != nil {
		return nil, descriptor{}, err
	}
	data, err := content(response.Body, maxManifest, "the artifact's manifest")
	if err != nil {
		return nil, descriptor{}, err
	}
	d := describe(imageType, data)
	if r.digest != "" && d.Digest != r.digest {
		return nil, d, wrongDigest(d.Digest, descriptor{Digest: r.digest})
	}
	m := &image{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, d, host.Errorf(host.Unavailable, "%s answered with %s in place of the artifact's manifest: a login page "+
			"or a proxy, or no registry is there", p.ref.host,
			manifest.Clip(manifest.CleanLine(cmp.Or(response.Header.Get("Content-Type"), "no JSON")), 100))
	}
	return m, d, nil
}

func (p *repository) has(ctx context.Context, d descriptor) (bool, error) {
	response, err := p.send(ctx, http.MethodHead, "blobs/"+d.Digest, nil, nil, http.StatusOK, http.StatusNotFound)
	return err == nil && response.StatusCode == http.StatusOK, err
}

// get returns content from a position on. The error is errRestart if the registry sends only the whole.
func (p *repository) get(ctx context.Context, d descriptor, at int64) (io.ReadCloser, error) {
	header := map[string]string{"Accept-Encoding": "identity"}
	if at > 0 {
		header["Range"] = fmt.Sprintf("bytes=%d-", at)
	}
	response, err := p.do(ctx, http.MethodGet, "blobs/"+d.Digest, header, nil, http.StatusOK, http.StatusPartialContent)
	if err != nil {
		return nil, err
	}
	return bodyAt(response, at)
}

func (p *repository) put(ctx context.Context, d descriptor, content []byte) error {
	u := &upload{repository: p, content: content, query: url.Values{"digest": {d.Digest}}.Encode()}
	p.up = u
	defer func() { p.up = nil }()
	most := -1
	for tries := 0; ; {
		err := u.begin(ctx)
		for err == nil && u.sent < len(content) && !u.done {
			err = u.next(ctx)
		}
		if err == nil && !u.done {
			err = u.end(ctx, nil)
		}
		if err == nil || isFinal(err) && u.to == nil || ctx.Err() != nil {
			return err
		}
		if tries++; u.sent > most {
			most, tries = u.sent, 1
		}
		if tries == maxTries {
			return err
		}
		waitToRetry(ctx)
		if u.ask(ctx) != nil {
			u.to, u.sent = nil, 0 // the registry has dropped it
		}
	}
}

// chunkSize is how much of a large file is sent at once, so that an interruption costs no more.
const chunkSize = 4 << 20

// upload is content that is being sent to a registry.
type upload struct {
	*repository
	content []byte
	query   string   // query of the request that ends it
	to      *url.URL // where the next part goes; nil before it has begun
	sent    int      // bytes that the registry has
	whole   bool     // the registry takes only whole files
	done    bool
}

// begin begins an upload, unless it is under way.
func (u *upload) begin(ctx context.Context) error {
	if u.to != nil {
		return nil
	}
	response, err := u.send(ctx, http.MethodPost, "blobs/uploads/", nil, nil, http.StatusAccepted)
	if err != nil {
		return err
	}
	return u.follow(response)
}

// follow reads from a response where the next part goes.
func (u *upload) follow(response *http.Response) error {
	if response.Header.Get("Location") == "" && u.to != nil {
		return nil
	}
	to, err := response.Location()
	if err == nil && to.Scheme != "https" && !isLoopback(to.Host) {
		err = fmt.Errorf("it redirects the upload to %s, which is not HTTPS", to.Host)
	}
	if err == nil {
		u.to = to
	}
	return err
}

// next sends the next chunk, or the rest if that is not larger.
func (u *upload) next(ctx context.Context) error {
	rest := u.content[u.sent:]
	if len(rest) <= chunkSize || u.whole {
		return u.end(ctx, rest)
	}
	response, err := u.send(ctx, http.MethodPatch, u.to.String(), map[string]string{
		"Content-Type": "application/octet-stream", "Content-Range": fmt.Sprintf("%d-%d", u.sent, u.sent+chunkSize-1),
	}, rest[:chunkSize], http.StatusAccepted)
	if err != nil {
		if u.whole = isFinal(err) && u.sent == 0; u.whole {
			u.to = nil
			return u.begin(ctx)
		}
		return err
	}
	u.sent += chunkSize
	return u.follow(response)
}

// end sends the last part and ends the upload.
func (u *upload) end(ctx context.Context, part []byte) error {
	to := *u.to
	to.RawQuery = strings.TrimPrefix(to.RawQuery+"&"+u.query, "&")
	_, err := u.send(ctx, http.MethodPut, to.String(), map[string]string{"Content-Type": "application/octet-stream"},
		part, http.StatusCreated)
	u.done = err == nil
	return err
}

// ask asks the registry how much of an upload it has.
func (u *upload) ask(ctx context.Context) error {
	if u.to == nil {
		return nil
	}
	response, err := u.send(ctx, http.MethodGet, u.to.String(), nil, nil, http.StatusNoContent)
	if err != nil {
		return err
	}
	_, last, _ := strings.Cut(response.Header.Get("Range"), "-")
	if n, err := strconv.Atoi(last); err == nil && n > 0 && n < len(u.content) { // "0-0" is nothing
		u.sent = n + 1
	} else {
		u.sent = 0
	}
	return u.follow(response)
}

// push pushes the contents that a manifest describes, then the manifest, with a tag unless that is "".
func (p *repository) push(ctx context.Context, m image, tag string, contents ...[]byte) (descriptor, error) {
	for i, d := range append([]descriptor{*m.Config}, m.Layers...) {
		has, err := p.has(ctx, d)
		if err == nil && !has {
			err = p.put(ctx, d, contents[i])
		}
		if err != nil {
			return d, err
		}
	}
	data, err := json.Marshal(m)
	if err != nil {
		return descriptor{}, err
	}
	d := describe(imageType, data)
	response, err := p.send(ctx, http.MethodPut, "manifests/"+cmp.Or(tag, d.Digest),
		map[string]string{"Content-Type": imageType}, data, http.StatusCreated)
	if err != nil {
		return d, err
	}
	if m.Subject == nil || response.Header.Get("OCI-Subject") != "" {
		return d, nil
	}
	d.ArtifactType = m.ArtifactType
	return d, p.index(ctx, *m.Subject, d)
}

// indexTag returns the tag under which a registry that does not know referrers has the index of them.
func indexTag(of descriptor) string { return strings.Replace(of.Digest, ":", "-", 1) }

// index adds an artifact to the index of the artifacts that refer to subject.
func (p *repository) index(ctx context.Context, subject, d descriptor) error {
	all, err := p.referrers(ctx, subject)
	if err != nil || slices.Contains(all, d) {
		return err
	}
	data, err := json.Marshal(image{SchemaVersion: 2, MediaType: indexType, Manifests: append(all, d)})
	if err != nil {
		return err
	}
	_, err = p.send(ctx, http.MethodPut, "manifests/"+indexTag(subject), map[string]string{"Content-Type": indexType},
		data, http.StatusCreated)
	return err
}

// referrers returns the artifacts that refer to another artifact.
func (p *repository) referrers(ctx context.Context, of descriptor) ([]descriptor, error) {
	for _, path := range []string{"referrers/" + of.Digest, "manifests/" + indexTag(of)} {
		response, err := p.do(ctx, http.MethodGet, path, map[string]string{"Accept": indexType}, nil,
			http.StatusOK, http.StatusNotFound)
		if err != nil {
			return nil, err
		}
		data, err := content(response.Body, maxManifest, "the list of signatures")
		if err != nil {
			return nil, err
		}
		var found image
		if response.StatusCode == http.StatusOK && json.Unmarshal(data, &found) == nil && found.MediaType == indexType {
			return found.Manifests, nil
		}
	}
	return nil, nil
}

// signature returns the signature that refers to an artifact, the last one of the list, or nil if there is none. The
// installation decides whether it is valid, and whose it is.
func (p *repository) signature(ctx context.Context, r Reference, of descriptor) ([]byte, error) {
	found, err := p.referrers(ctx, of)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(d descriptor) bool {
		return d.ArtifactType != SignatureType || !isDigest().MatchString(d.Digest)
	})
	if len(found) == 0 {
		return nil, nil
	}
	m, _, err := p.manifest(ctx, r.at(found[len(found)-1].Digest))
	if err != nil {
		return nil, err
	}
	if m.Subject == nil || m.Subject.Digest != of.Digest || len(m.Layers) != 1 ||
		!isDigest().MatchString(m.Layers[0].Digest) {
		return nil, host.Errorf(host.Integrity, "the registry lists a signature of another artifact; nothing was installed")
	}
	layer := m.Layers[0]
	body, err := p.get(ctx, layer, 0)
	if err != nil {
		return nil, err
	}
	data, err := content(body, maxSignature, "the signature")
	if err == nil && digestOf(data) != layer.Digest {
		return nil, wrongDigest(digestOf(data), layer)
	}
	return data, err
}

// challengePart matches the name of a scheme, or a parameter of the scheme before it.
var challengePart = lazy.Pattern(`([^\s,="]+)(\s*=\s*(?:"([^"]*)"|([^\s,"]*)))?`)

// challenges returns the parameters of the schemes that a registry offers, in one header or in several.
func challenges(headers []string) map[string]map[string]string {
	offered, scheme := map[string]map[string]string{}, ""
	for _, m := range challengePart().FindAllStringSubmatch(strings.Join(headers, ","), -1) {
		if m[2] == "" || scheme == "" {
			scheme = strings.ToLower(m[1])
			offered[scheme] = map[string]string{}
			continue
		}
		offered[scheme][strings.ToLower(m[1])] = m[3] + m[4]
	}
	return offered
}

// authorize gets what a registry asks for: credentials, or a token that it gives in exchange for them.
func (p *repository) authorize(ctx context.Context, asked []string, write bool) error {
	user, password, err := p.client.credentials(ctx, p.ref.host)
	if err != nil {
		return err
	}
	basic := ""
	if user != "" {
		basic = "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	offered := challenges(asked)
	parts := offered["bearer"]
	if parts == nil && offered["basic"] != nil && basic != "" {
		p.header = basic
		return nil
	}
	if parts == nil {
		return p.refused(http.StatusUnauthorized)
	}
	realm, err := url.Parse(parts["realm"])
	if err != nil || realm.Host == "" || realm.Scheme != "https" && !isLoopback(p.ref.host) ||
		isLoopback(realm.Host) && !isLoopback(p.ref.host) {
		return host.Errorf(host.Denied, "the registry of %s asks for a token of %s, which is not an HTTPS address of "+
			"another machine; no credentials were sent", p.ref, manifest.Clip(manifest.CleanLine(parts["realm"]), 200))
	}
	actions := map[bool]string{false: "pull", true: "pull,push"}[write]
	query := realm.Query()
	query.Set("service", parts["service"])
	own := "repository:" + p.ref.name + ":" // others where a gateway renames repositories, or has one scope for all
	query["scope"] = append(slices.DeleteFunc(strings.Fields(parts["scope"]),
		func(scope string) bool { return strings.HasPrefix(scope, own) }), own+actions)
	realm.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, realm.String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "parley")
	if basic != "" {
		request.Header.Set("Authorization", basic)
	}
	response, err := p.http.Do(request)
	if err != nil {
		return err
	}
	data, err := content(response.Body, maxManifest, "the answer with a token")
	if err != nil {
		return err
	}
	var token struct {
		Token  string `json:"token"`
		Access string `json:"access_token"`
	}
	if response.StatusCode != http.StatusOK || json.Unmarshal(data, &token) != nil || token.Token+token.Access == "" {
		return p.refused(http.StatusUnauthorized)
	}
	p.header = "Bearer " + cmp.Or(token.Token, token.Access)
	return nil
}

// credentials returns the credentials for a registry from Docker's config.json, or from a program that this names, as
// docker login sets them up. Both are "" if there are none.
func (c *Client) credentials(ctx context.Context, registry string) (user, password string, err error) {
	if c.Config == "" {
		return "", "", nil
	}
	const limit = 1 << 20
	path := filepath.Join(c.Config, "config.json")
	data, err := protect.Read(path, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	} else if err != nil {
		return "", "", host.Errorf(host.ConfigError, "cannot read the credentials of Docker: %s",
			manifest.CleanLine(err.Error()))
	}
	var config struct {
		Auths map[string]struct {
			Auth string `json:"auth"`
		} `json:"auths"`
		Helpers map[string]string `json:"credHelpers"`
		Store   string            `json:"credsStore"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return "", "", host.Errorf(host.ConfigError, "%s is not valid JSON: %s", path, manifest.CleanLine(err.Error()))
	}
	if helper := cmp.Or(config.Helpers[registry], config.Store); helper != "" {
		return askHelper(ctx, helper, registry)
	}
	secure := "https://" + registry
	for _, name := range []string{registry, secure, secure + "/v1/", secure + "/v2/"} {
		if decoded, err := base64.StdEncoding.DecodeString(config.Auths[name].Auth); err == nil && len(decoded) > 0 {
			user, password, _ = strings.Cut(string(decoded), ":")
			return user, password, nil
		}
	}
	return "", "", nil
}

// helperName is the name of a program that holds credentials, after docker-credential-.
var helperName = lazy.Pattern(`^[A-Za-z0-9._-]+$`)

// askHelper asks a program for credentials, in the protocol of Docker.
func askHelper(ctx context.Context, helper, registry string) (user, password string, err error) {
	if !helperName().MatchString(helper) {
		return "", "", host.Errorf(host.ConfigError, "Docker's config.json names the helper %q, which is not the name of a "+
			"program", manifest.CleanLine(helper))
	}
	cmd := exec.CommandContext(ctx, "docker-credential-"+helper, "get")
	cmd.Stdin = strings.NewReader(registry)
	out, err := cmd.Output()
	if err != nil {
		if strings.Contains(string(out), "credentials not found") {
			return "", "", nil
		}
		return "", "", host.Errorf(host.ConfigError, "docker-credential-%s, which Docker's config.json names, failed: %v",
			helper, err)
	}
	var answer struct{ Username, Secret string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", "", host.Errorf(host.ConfigError, "docker-credential-%s did not print JSON", helper)
	}
	return answer.Username, answer.Secret, nil
}
