package policy

import (
	"testing"

	"github.com/parley-tools/parley/manifest"
)

func TestRequestedBy(t *testing.T) {
	caps := manifest.Capabilities{
		FS: []manifest.FSCapability{{Path: "/data", Mode: "ro"}, {Path: "/out", Mode: "rw"}},
		HTTP: []manifest.HTTPCapability{{URL: "https://api.github.com", Methods: []string{"GET", "POST"}},
			{URL: "https://*.example.com"}},
		Secrets: []manifest.SecretCapability{{Name: "TOKEN", URL: "https://api.github.com",
			Header: "Authorization: {secret}"}, {Name: "KEY", Read: true}},
		Env:     []manifest.NamedCapability{{Name: "LANG"}},
		Tools:   []manifest.NamedCapability{{Name: "cdp.Page.*"}, {Name: "text.hash"}},
		Browser: &manifest.BrowserCapability{Context: "session"},
		Clock:   &manifest.PlainCapability{},
	}
	for text, want := range map[string]bool{
		"fs:ro:/srv=/data": true, "fs:ro:./x=/data/deep": true, "fs:rw:/srv=/data": false, "fs:rw:/srv=/out": true,
		"fs:ro:/srv=/out": true,
		"fs:ro:/srv=/etc": false, "fs:ro:/srv=/": false, "fs:ro:/srv=/data2": false,
		"http:GET:https://api.github.com": true, "http:POST,GET:https://api.github.com": true,
		"http:GET,DELETE:https://api.github.com": false,
		"http:DELETE:https://api.github.com":     false, "http:GET:http://api.github.com": false,
		"http:GET:https://github.com":    false,
		"http:GET:https://a.example.com": true, "http:POST:https://a.example.com": false,
		"secret:TOKEN": true, "secret:read:TOKEN": false, "secret:read:KEY": true, "secret:KEY": false, "secret:OTHER": false,
		"env:LANG": true, "env:PATH": false,
		"tool:cdp.Page.navigate": true, "tool:cdp.*": true, "tool:text.hash": true, "tool:text.*": true,
		"tool:json.merge": false, "tool:json.*": false,
		"browser:session": true, "clock": true, "random": false,
	} {
		if got := grants(t, text)[0].RequestedBy(caps); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for _, text := range []string{"fs:ro:/srv=/data", "http:GET:https://api.github.com", "secret:TOKEN", "env:LANG",
		"tool:*", "browser:session", "clock", "random"} {
		if grants(t, text)[0].RequestedBy(manifest.Capabilities{}) {
			t.Errorf("%s was not requested", text)
		}
	}
}
