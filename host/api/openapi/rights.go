package openapi

import (
	"cmp"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/manifest"
)

const maxScopes = 20

// server returns the URL to which the paths of the document are appended.
func (d *document) server(opts Options) (string, error) {
	if opts.Server != "" {
		if u, err := url.Parse(opts.Server); err != nil || !isServer(u) {
			return "", refuse("--server %q: expected a URL such as https://api.example.com/v1",
				manifest.CleanValue(opts.Server))
		}
		return strings.TrimRight(opts.Server, "/"), nil
	}
	given := ""
	if d.isSwagger {
		if host := text(d.root["host"]); host != "" {
			scheme := "https"
			if all := list(d.root["schemes"]); len(all) > 0 && !slices.Contains(all, any("https")) {
				scheme = text(all[0])
			}
			given = scheme + "://" + host + "/" + strings.TrimLeft(text(d.root["basePath"]), "/")
		}
	} else if all := list(d.root["servers"]); len(all) > 0 {
		given = serverURL(all[0])
	}
	u, err := url.Parse(given)
	switch {
	case err != nil || !isServer(u):
		return "", refuse("the document names no server that can be used (%q); say where the API is: "+
			"--server https://HOST/PATH", manifest.CleanValue(given))
	case isLoopback(u):
		return "", refuse("the document says that the API is on this machine or network (%q); if that is meant, give "+
			"--server %s", manifest.CleanValue(given), manifest.CleanValue(given))
	}
	return plainURL(u), nil
}

// isServer reports whether grants can name the origin of a URL, and paths can be appended to it.
func isServer(u *url.URL) bool {
	_, err := origin.Of(plainURL(u))
	return err == nil && u.RawQuery == ""
}

func plainURL(u *url.URL) string {
	return strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/")
}

// serverURL returns the URL of a server, its variables at their defaults.
func serverURL(v any) string {
	given := text(members(v)["url"])
	for name, variable := range members(members(v)["variables"]) {
		given = strings.ReplaceAll(given, "{"+name+"}", scalar(members(variable)["default"]))
	}
	return given
}

func isLoopback(u *url.URL) bool {
	name := strings.ToLower(strings.TrimRight(u.Hostname(), "."))
	ip := net.ParseIP(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || ip != nil && !ip.IsGlobalUnicast() ||
		ip != nil && ip.IsPrivate()
}

func originOf(base string) string {
	u, _ := url.Parse(base) // checked
	return u.Scheme + "://" + u.Host
}

// secrets returns the secrets that the security schemes of the document ask for: one for each header or parameter.
func (d *deriver) secrets(opts Options, name, origin string) ([]manifest.SecretCapability, error) {
	prefix := strings.ToUpper(strings.ReplaceAll(kebab(words(name)), "-", "_"))
	secret := func(suffix string) manifest.SecretCapability {
		return manifest.SecretCapability{Name: clipName(prefix + "_" + suffix), URL: origin,
			Why: "to authenticate at " + origin, Optional: true}
	}
	if opts.Auth != "" {
		return givenSecret(opts.Auth, secret("TOKEN"))
	}
	schemes := d.securitySchemes()
	order := func(key string) int { return authOrder(d.resolve(schemes[key])) }
	keys := slices.SortedFunc(maps.Keys(schemes), func(a, b string) int {
		return cmp.Or(order(a)-order(b), strings.Compare(a, b))
	})
	made := map[string]manifest.SecretCapability{}
	var unsent []string
	for _, key := range keys {
		m := d.resolve(schemes[key])
		s, kind, place, name := secret("TOKEN"), text(m["type"]), text(m["in"]), text(m["name"])
		switch authOrder(m) {
		case bearerAuth:
			s.Header, s.OAuth = "Authorization: Bearer {secret}", oauthOf(m)
		case basicAuth:
			s = secret("LOGIN")
			s.Header = "Authorization: Basic {secret:basic}"
		default:
			s = secret(strings.ToUpper(strings.Join(words(name), "_")))
			if kind != "apiKey" || !bind(&s, place, name) {
				about := strings.Fields(key + ": " + kind + " " + text(m["scheme"]) + " " + place + " " + name)
				unsent = append(unsent, manifest.CleanLine(strings.Join(about, " ")))
				continue
			}
		}
		made[key] = s
	}
	var all []manifest.SecretCapability
	at, needed := map[string]int{}, d.needed(made) // at has the index in all, by header or parameter
	for _, key := range keys {
		s, isSent := made[key]
		place, _, _ := strings.Cut(strings.ToLower(s.Header), ":")
		if !isSent || len(needed) > 0 && !needed[key] {
			continue
		}
		if i, has := at[place+"?"+s.Query]; has {
			all[i].OAuth, d.held[key] = cmp.Or(all[i].OAuth, s.OAuth), all[i].Name
			continue
		}
		for slices.ContainsFunc(all, func(o manifest.SecretCapability) bool { return o.Name == s.Name }) {
			s.Name = clipName(s.Name + "_2")
		}
		at[place+"?"+s.Query], d.held[key] = len(all), s.Name
		all = append(all, s)
	}
	if len(all) == 0 {
		d.report.Unsent = append(d.report.Unsent, unsent...)
	}
	return all, nil
}

// needed returns which security schemes calls need, none if the document does not say. Where operations accept one of
// several that can be sent, it is one that others need anyway, or else the first: the rest would only spread secrets.
func (d *deriver) needed(made map[string]manifest.SecretCapability) map[string]bool {
	chosen := map[string]bool{}
	for _, isFree := range []bool{false, true} { // first the operations without a choice
		for _, o := range d.operations(d.opts.Tags) {
			given, _ := d.security(o)
			var ways [][]string
			isMet := false
			for _, way := range given {
				names := slices.Collect(maps.Keys(members(way)))
				isUnsent := func(name string) bool { return made[name].Name == "" }
				if len(names) > 0 && !slices.ContainsFunc(names, isUnsent) {
					ways = append(ways, names)
					isMet = isMet || !slices.ContainsFunc(names, func(name string) bool { return !chosen[name] })
				}
			}
			if len(ways) == 1 || len(ways) > 1 && isFree && !isMet {
				for _, name := range ways[0] {
					chosen[name] = true
				}
			}
		}
	}
	return chosen
}

// security returns the ways to authenticate for an operation: its own or the document's, if either states them.
func (d *deriver) security(o *operation) (ways []any, stated bool) {
	given, isOwn := o.fields["security"]
	if !isOwn {
		given = d.root["security"]
	}
	ways, stated = given.([]any)
	return ways, stated
}

// carried returns which of all secrets the requests of an operation carry: none if it requires none, or those of the
// first way to authenticate that can be sent. It returns nil for all of them, also if the document does not say.
func (d *deriver) carried(o *operation, all int) []string {
	ways, stated := d.security(o)
	if !stated || all == 0 {
		return nil
	}
	isFree := true
	for _, way := range ways {
		var names []string
		schemes := members(way)
		for scheme := range schemes {
			if name := d.held[scheme]; name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		isFree = isFree && len(schemes) == 0
		if len(names) == all {
			return nil
		} else if len(names) > 0 {
			return slices.Sorted(slices.Values(names))
		}
	}
	if isFree {
		return []string{}
	}
	return nil
}

// bind sets where requests have the value of a secret: in a header that the host does not set itself, or in the query.
// It reports whether there is such a place.
func bind(s *manifest.SecretCapability, place, name string) bool {
	isOwn := ownHeader().MatchString(name) && !strings.EqualFold(name, "cookie")
	switch {
	case place == "header" && plainName().MatchString(name) && !isOwn:
		s.Header = name + ": {secret}"
	case place == "query" && name != "" && !strings.ContainsAny(name, "&=#? \t\r\n"):
		s.Query = name
	default:
		return false
	}
	return true
}

// givenSecret returns the secret that --auth describes.
func givenSecret(auth string, s manifest.SecretCapability) ([]manifest.SecretCapability, error) {
	kind, value, _ := strings.Cut(auth, ":")
	switch {
	case auth == "none":
		return nil, nil
	case auth == "basic":
		s.Header = "Authorization: Basic {secret:basic}"
	case auth == "bearer":
		s.Header = "Authorization: Bearer {secret}"
	case kind == "oauth" && (strings.HasPrefix(value, "https://") || strings.HasPrefix(value, "http://")):
		s.Header, s.OAuth = "Authorization: Bearer {secret}", &manifest.OAuth{Issuer: value}
	case !bind(&s, kind, value):
		return nil, refuse("--auth %q: expected header:NAME, query:NAME, basic, bearer, oauth:ISSUER or none; NAME is not a "+
			"header that the host sets itself, such as Host", manifest.CleanValue(auth))
	}
	return []manifest.SecretCapability{s}, nil
}

func clipName(s string) string { return strings.TrimLeft(s[max(0, len(s)-60):], "_0123456789") }

func (d *document) securitySchemes() object {
	if d.isSwagger {
		return members(d.root["securityDefinitions"])
	}
	return members(members(d.root["components"])["securitySchemes"])
}

// Ways to authenticate, the preferred one first.
const (
	bearerAuth = iota
	basicAuth
	otherAuth
)

func authOrder(m object) int {
	kind, scheme := text(m["type"]), text(m["scheme"])
	switch {
	case kind == "oauth2", kind == "openIdConnect", kind == "http" && strings.EqualFold(scheme, "bearer"):
		return bearerAuth
	case kind == "basic", kind == "http" && strings.EqualFold(scheme, "basic"):
		return basicAuth
	}
	return otherAuth
}

// oauthOf returns where a person logs in, nil if a scheme does not say.
func oauthOf(m object) *manifest.OAuth {
	if found, ok := strings.CutSuffix(text(m["openIdConnectUrl"]), "/.well-known/openid-configuration"); ok {
		return issuer(found, nil)
	}
	flow := m
	for _, name := range []string{"implicit", "authorizationCode"} {
		if f := members(members(m["flows"])[name]); text(f["authorizationUrl"]) != "" {
			flow = f
		}
	}
	return issuer(text(flow["authorizationUrl"]), members(flow["scopes"]))
}

func issuer(at string, scopes object) *manifest.OAuth {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "https" {
		return nil
	}
	o := &manifest.OAuth{Issuer: strings.TrimRight(at, "/")}
	if scopes != nil {
		o.Issuer = u.Scheme + "://" + u.Host
	}
	if len(scopes) <= maxScopes {
		o.Scopes = slices.Sorted(maps.Keys(scopes))
	}
	return o
}

// requests returns the rights to send the requests of tools: one for each server.
func requests(base string, tools []manifest.Tool) []manifest.HTTPCapability {
	methods := map[string][]string{}
	for _, t := range tools {
		origin := originOf(cmp.Or(t.HTTP.Base, base))
		methods[origin] = append(methods[origin], t.HTTP.Method)
	}
	var all []manifest.HTTPCapability
	for _, origin := range slices.Sorted(maps.Keys(methods)) {
		all = append(all, manifest.HTTPCapability{URL: origin, Methods: sorted(methods[origin]), Why: "to call the API"})
	}
	return all
}

// keys returns the names of parameters that hold a credential: names in the security schemes, and common ones.
func (d *document) keys() map[string]bool {
	all := map[string]bool{"authorization": true, "api_key": true, "apikey": true, "api-key": true, "x-api-key": true,
		"access_token": true, "accesstoken": true, "x-auth-token": true, "proxy-authorization": true}
	for _, v := range d.securitySchemes() {
		if m := d.resolve(v); text(m["type"]) == "apiKey" {
			all[strings.ToLower(text(m["name"]))] = true
		}
	}
	return all
}
