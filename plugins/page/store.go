package main

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// CookiesParams say which cookies to show, or one to set.
type CookiesParams struct {
	// Name of a cookie; without a value it is shown.
	Name string `json:"name,omitempty" maxLength:"1000" aliases:"cookie,key"`
	// Value to set.
	Value *string `json:"value,omitempty" maxLength:"4096"`
	// Domain that the cookie is for, with its subdomains; else only this host.
	Domain string `json:"domain,omitempty"`
	// Path that the cookie is for; / by default.
	Path string `json:"path,omitempty"`
	// Lifetime in seconds; else it ends with the browser.
	MaxAge int64 `json:"max_age,omitempty" minimum:"1" aliases:"expires_in"`
	// Send it only over HTTPS.
	Secure bool `json:"secure,omitempty"`
	// Hide it from scripts of the page.
	HTTPOnly bool `json:"http_only,omitempty" aliases:"httpOnly"`
	// Whether requests from other sites carry it; by default Chrome decides.
	SameSite string `json:"same_site,omitempty" enum:"Strict,Lax,None" aliases:"sameSite"`
}

// CookiesResult are cookies that the page sends.
type CookiesResult struct {
	// The cookies that the page sends, by name.
	Cookies []Cookie `json:"cookies"`
}

// Cookie is a cookie. Its value is shown only where it is asked for by name.
type Cookie struct {
	// Name of the cookie.
	Name string `json:"name"`
	// Its value, if asked for by name.
	Value *string `json:"value,omitempty" untrusted:"true"`
	// Domain and path that it is for.
	For string `json:"for"`
	// When it ends.
	Expires string `json:"expires,omitempty"`
	// Its flags: secure, http_only, same_site.
	Flags string `json:"flags,omitempty"`
}

// Cookies shows the cookies that the page sends, or sets one.
func Cookies(c *sdk.Call, p CookiesParams) (*CookiesResult, error) {
	b := &browser{Call: c}
	if p.Value != nil {
		if p.Name == "" {
			return nil, sdk.Invalid("/name", "the name of the cookie", "none", "")
		}
		if err := p.set(b); err != nil {
			return nil, err
		}
	}
	var got struct {
		Cookies []struct {
			Name, Value, Domain, Path, SameSite string
			Expires                             float64
			Secure, HTTPOnly                    bool
		}
	}
	if err := b.cdp("Network.getCookies", nil, &got); err != nil {
		return nil, err
	}
	r := &CookiesResult{Cookies: []Cookie{}}
	for _, found := range got.Cookies {
		if p.Name != "" && found.Name != p.Name {
			continue
		}
		one := Cookie{Name: found.Name, For: found.Domain + found.Path}
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
		return nil, sdk.Exit("no_match", fmt.Sprintf("the page sends no cookie %q; page.cookies lists them", p.Name), nil)
	}
	return r, nil
}

// set sets the cookie.
func (p *CookiesParams) set(b *browser) error {
	page, err := b.here()
	if err != nil {
		return err
	}
	cookie := map[string]any{"name": p.Name, "value": *p.Value, "url": page.URL, "secure": p.Secure,
		"httpOnly": p.HTTPOnly, "path": "/"}
	for name, value := range map[string]string{"domain": p.Domain, "path": p.Path, "sameSite": p.SameSite} {
		if value != "" {
			cookie[name] = value
		}
	}
	if p.MaxAge > 0 {
		cookie["expires"] = page.Now + float64(p.MaxAge)
	}
	var done struct{ Success bool }
	if err := b.cdp("Network.setCookie", cookie, &done); err != nil {
		return err
	}
	if !done.Success {
		return sdk.Exit("not_met", "Chrome did not take the cookie: its domain, path or flags do not fit the page", nil)
	}
	return nil
}

// here returns where the page is, and the browser's time, which a plugin does not have.
func (b *browser) here() (at stored, err error) {
	_, err = b.script("", &at, "stored", map[string]any{})
	return at, err
}

// stored is what the function stored of page.js returns.
type stored struct {
	URL     string
	Now     float64 // seconds since the Unix epoch
	Entries []StorageEntry
	Error   string
}

// StorageParams say which storage of the page to show, or what to set in it.
type StorageParams struct {
	// Key of an entry; without a value it is shown whole.
	Key string `json:"key,omitempty" maxLength:"10000" aliases:"name,item"`
	// Value to set.
	Value *string `json:"value,omitempty" maxLength:"1000000"`
	// Which storage to use: localStorage or sessionStorage.
	Area string `json:"area,omitempty" enum:"local,session" default:"local" aliases:"type,storage"`
}

// StorageResult is what the storage has.
type StorageResult struct {
	// Entries of the storage.
	Entries []StorageEntry `json:"entries"`
}

// StorageEntry is an entry of the storage.
type StorageEntry struct {
	// Key of the entry.
	Key string `json:"key"`
	// Its value, shortened in a list.
	Value string `json:"value" untrusted:"true"`
	// Length in characters, if the value is shortened.
	Length int `json:"length,omitempty"`
}

// Storage shows or sets entries of localStorage or sessionStorage.
func Storage(c *sdk.Call, p StorageParams) (*StorageResult, error) {
	b := &browser{Call: c}
	if p.Value != nil && p.Key == "" {
		return nil, sdk.Invalid("/key", "the key of the entry", "none", "")
	}
	var got stored
	if _, err := b.script("", &got, "stored", map[string]any{"area": p.Area, "key": p.Key, "value": p.Value}); err != nil {
		return nil, err
	}
	switch {
	case got.Error != "":
		return nil, sdk.Exit("not_met", "the page has no storage: "+got.Error, nil)
	case p.Key != "" && len(got.Entries) == 0:
		return nil, sdk.Exit("no_match", fmt.Sprintf("%s storage has no entry %q; page.storage lists them", p.Area, p.Key),
			nil)
	}
	r := &StorageResult{Entries: []StorageEntry{}}
	r.Entries = append(r.Entries, got.Entries...)
	return r, nil
}

// StateParams say which login to save or load.
type StateParams struct {
	// Save or load a login, list or delete saved ones.
	Action string `json:"action" enum:"save,load,list,delete" aliases:"op,do"`
	// Name of the saved state, such as work.
	Name string `json:"name,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" aliases:"state"`
	// Sites, such as https://example.com; else that of the page, or all saved ones.
	Origins []string `json:"origins,omitempty" maxItems:"32" aliases:"origin,sites"`
}

// StateResult are counts and names, never values.
type StateResult struct {
	// Name of the saved state.
	Name string `json:"name,omitempty"`
	// Sites that were saved or loaded.
	Origins []string `json:"origins,omitempty"`
	// Number of cookies.
	Cookies int `json:"cookies,omitempty"`
	// Number of entries of storage.
	Items int `json:"items,omitempty"`
	// Any JSON: the saved states, with list.
	States []any `json:"states,omitempty"`
}

// State saves or loads cookies and storage of origins, in the host's store.
func State(c *sdk.Call, p StateParams) (*StateResult, error) {
	b := &browser{Call: c}
	if p.Name == "" && p.Action != "list" {
		return nil, sdk.Invalid("/name", "a name for the state", "none", "")
	}
	if p.Action == "save" && len(p.Origins) == 0 {
		page, err := b.here()
		if err != nil {
			return nil, err
		}
		at, err := url.Parse(page.URL)
		if err != nil || at.Scheme != "http" && at.Scheme != "https" {
			return nil, sdk.Invalid("/origins", `a list such as ["https://example.com"]: the page has no origin`, "none", "")
		}
		p.Origins = []string{at.Scheme + "://" + at.Host}
	}
	params := map[string]any{"action": p.Action}
	if p.Name != "" {
		params["name"] = p.Name
	}
	if len(p.Origins) > 0 {
		params["origins"] = p.Origins
	}
	r := &StateResult{}
	if err := b.cdp("state", params, r); err != nil {
		return nil, err
	}
	return r, nil
}
