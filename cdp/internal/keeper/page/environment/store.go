package environment

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
)

type cookiesParams struct {
	Name     string  `json:"name"`
	Value    *string `json:"value"`
	Domain   string  `json:"domain"`
	Path     string  `json:"path"`
	MaxAge   int64   `json:"max_age"` // seconds
	Secure   bool    `json:"secure"`
	HTTPOnly bool    `json:"http_only"`
	SameSite string  `json:"same_site"`
}

// cookieList are the cookies that the page sends, by name.
type cookieList struct {
	Cookies []cookie `json:"cookies"`
}

// cookie is a cookie. Its value is shown only if the cookie was asked for by name.
type cookie struct {
	Name    string  `json:"name"`
	Value   *string `json:"value,omitempty"`
	For     string  `json:"for"` // domain and path
	Expires string  `json:"expires,omitempty"`
	Flags   string  `json:"flags,omitempty"`
}

// cookies shows the cookies that the page sends, or sets one.
func cookies(v *page.Visit, p cookiesParams) (*cookieList, *api.Error) {
	at, err := here(v)
	if err == nil && p.Value != nil {
		err = p.set(v, at.URL)
	}
	if err != nil {
		return nil, err
	}
	var got struct {
		Cookies []struct {
			Name, Value, Domain, Path, SameSite string
			Expires                             float64
			Secure, HTTPOnly                    bool
		}
	}
	if err := v.Command("Network.getCookies", nil, &got); err != nil {
		return nil, err
	}
	r := &cookieList{Cookies: []cookie{}}
	for _, found := range got.Cookies {
		if p.Name != "" && found.Name != p.Name {
			continue
		}
		one := cookie{Name: found.Name, For: found.Domain + found.Path}
		if p.Name != "" && p.Value == nil {
			one.Value = &found.Value
		}
		if found.Expires > 0 {
			one.Expires = time.Unix(int64(found.Expires), 0).UTC().Format(time.RFC3339)
		}
		var flags []string
		if found.Secure {
			flags = append(flags, "secure")
		}
		if found.HTTPOnly {
			flags = append(flags, "http_only")
		}
		if found.SameSite != "" {
			flags = append(flags, "same_site="+found.SameSite)
		}
		one.Flags = strings.Join(flags, " ")
		r.Cookies = append(r.Cookies, one)
	}
	if p.Name != "" && len(r.Cookies) == 0 {
		return nil, page.Exit("no_match", fmt.Sprintf("the page sends no cookie %q; page.cookies lists them", p.Name), nil)
	}
	return r, nil
}

// set sets the cookie for an address.
func (p *cookiesParams) set(v *page.Visit, url string) *api.Error {
	cookie := page.Object{"name": p.Name, "value": *p.Value, "url": url, "secure": p.Secure,
		"httpOnly": p.HTTPOnly, "path": "/"}
	for name, value := range map[string]string{"domain": p.Domain, "path": p.Path, "sameSite": p.SameSite} {
		if value != "" {
			cookie[name] = value
		}
	}
	if p.MaxAge > 0 {
		cookie["expires"] = time.Now().Unix() + p.MaxAge
	}
	var done struct{ Success bool }
	if err := v.Command("Network.setCookie", cookie, &done); err != nil {
		return err
	}
	if !done.Success {
		return page.Exit("not_met", "Chrome did not take the cookie: its domain, path or flags do not fit the page", nil)
	}
	return nil
}

// here returns the page's address and the present time, when Chrome has stored the cookies that scripts have set.
func here(v *page.Visit) (at stored, err *api.Error) {
	err = v.Script("", &at, "stored", page.Object{})
	return at, err
}

// stored is what the function stored of page.js returns.
type stored struct {
	URL     string
	Now     float64 // seconds since the Unix epoch
	Entries []storageEntry
	Error   string
}

type storageParams struct {
	Key   string  `json:"key"`
	Value *string `json:"value"`
	Area  string  `json:"area"` // local or session
}

type storageResult struct {
	Entries []storageEntry `json:"entries"`
}

type storageEntry struct {
	Key    string `json:"key"`
	Value  string `json:"value"`            // shortened in a list
	Length int    `json:"length,omitempty"` // in characters, if the value is shortened
}

// storage shows or sets entries of localStorage or sessionStorage.
func storage(v *page.Visit, p storageParams) (*storageResult, *api.Error) {
	var got stored
	if err := v.Script("", &got, "stored", page.Object{"area": p.Area, "key": p.Key, "value": p.Value}); err != nil {
		return nil, err
	}
	switch {
	case got.Error != "":
		return nil, page.Exit("not_met", "the page has no storage: "+got.Error, nil)
	case p.Key != "" && len(got.Entries) == 0:
		return nil, page.Exit("no_match", fmt.Sprintf("%s storage has no entry %q; page.storage lists them", p.Area, p.Key),
			nil)
	}
	r := &storageResult{Entries: []storageEntry{}}
	r.Entries = append(r.Entries, got.Entries...)
	return r, nil
}

// origins are the origins of a saved state if its caller names none.
type origins struct {
	Origins []string `json:"origins"`
}

// state returns the origin of the page. The host saves and loads what the origin stores.
func state(v *page.Visit, _ struct{}) (origins, *api.Error) {
	at, err := here(v)
	if err != nil {
		return origins{}, err
	}
	u, failed := url.Parse(at.URL)
	if failed != nil || u.Scheme != "http" && u.Scheme != "https" {
		return origins{}, page.Invalid("/origins", `a list such as ["https://example.com"]: the page has no origin`, "none",
			"")
	}
	return origins{[]string{u.Scheme + "://" + u.Host}}, nil
}
