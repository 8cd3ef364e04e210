package rights

import (
	"slices"
	"testing"

	"github.com/parley-tools/parley/manifest"
)

// TestRequests checks which rights a tool needs that is one request: its method at its server.
func TestRequests(t *testing.T) {
	m := &manifest.Manifest{HTTP: &manifest.HTTP{Base: "https://api.test/v1"}, Capabilities: manifest.Capabilities{
		HTTP: []manifest.HTTPCapability{
			{URL: "https://api.test", Methods: []string{"DELETE", "GET", "POST"}},
			{URL: "https://uploads.test", Methods: []string{"POST"}},
			{URL: "https://*.files.test"},
		},
		Secrets: []manifest.SecretCapability{
			{Name: "TOKEN", URL: "https://api.test"}, {Name: "UPLOADS", URL: "https://uploads.test"}, {Name: "ANYWHERE"},
		},
	}}
	for _, test := range []struct {
		method, base string
		want         []string
	}{
		{"GET", "", []string{"http:GET:https://api.test", "secret:TOKEN", "secret:ANYWHERE"}},
		{"DELETE", "", []string{"http:DELETE:https://api.test", "secret:TOKEN", "secret:ANYWHERE"}},
		{"POST", "https://uploads.test", []string{"http:POST:https://uploads.test", "secret:UPLOADS", "secret:ANYWHERE"}},
		{"GET", "https://a.files.test", []string{"http:GET:https://*.files.test", "secret:ANYWHERE"}},
		{"PUT", "", []string{"secret:TOKEN", "secret:ANYWHERE"}}, // refused when it is sent
	} {
		got := Of(m, &manifest.Tool{HTTP: &manifest.Binding{Method: test.method, Base: test.base}})
		var needed, all []string
		for _, c := range got.HTTP {
			for _, method := range c.Methods {
				right := "http:" + method + ":" + c.URL
				if all = append(all, right); !c.Optional {
					needed = append(needed, right)
				}
			}
		}
		for _, c := range got.Secrets {
			if !c.Optional {
				needed = append(needed, "secret:"+c.Name)
			}
		}
		if !slices.Equal(needed, test.want) {
			t.Errorf("%s %s needs %q, want %q", test.method, test.base, needed, test.want)
		}
		if len(all) != 5 {
			t.Errorf("%s %s can get %q", test.method, test.base, all)
		}
	}
	if got := Of(m, &manifest.Tool{}); len(got.HTTP) != 3 || got.HTTP[0].Optional {
		t.Errorf("a tool of another kind needs %+v", got.HTTP)
	}
}
