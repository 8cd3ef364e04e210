package policy

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/manifest"
)

// aboutPlugin has a value for every key of a plugin in a policy; those of limits come after a dot.
var aboutPlugin = map[string]string{
	"digest": `"` + digestA + `"`, "signer": `"RWkey"`, "grants": `["tool:text.*", "clock"]`, "isolate": `"call"`, "run": `"fleet:p"`,
	"owners": `{text = "shipped"}`, "settings": `{a = 1}`, "limits.timeout": `"7s"`, "limits.compile_time": `"7s"`,
	"limits.memory_mib": "7", "limits.output_bytes": "7", "limits.log_bytes": "7", "limits.host_calls": "7",
	"limits.open_files": "7", "limits.files_created": "7", "limits.bytes_written": "7", "limits.concurrent_calls": "7",
	"limits.module_mib": "7", "limits.functions": "7", "limits.table_entries": "7", "limits.compile_memory_mib": "7",
}

// TestOnlyTimeoutAppliesToBuiltin checks of every key of a plugin, in both files, that it changes no decision about a
// built-in plugin, and that the check and the explanation say so once, with its line. The timeout does apply.
func TestOnlyTimeoutAppliesToBuiltin(t *testing.T) {
	var schema struct {
		Properties struct {
			Plugin struct {
				AdditionalProperties struct {
					Properties map[string]struct{ Properties map[string]any }
				}
			}
		}
	}
	must(t, json.Unmarshal(schemaJSON, &schema))
	keys := []string{}
	for key, of := range schema.Properties.Plugin.AdditionalProperties.Properties {
		if key != "limits" {
			keys = append(keys, key)
		}
		for limit := range of.Properties {
			keys = append(keys, key+"."+limit)
		}
	}
	if slices.Sort(keys); !slices.Equal(keys, slices.Sorted(maps.Keys(aboutPlugin))) {
		t.Fatalf("the schema has the keys %q", keys)
	}
	c, err := host.NewCatalog(listed{manifest: &manifest.Manifest{Name: "cdp",
		Tools: []manifest.Tool{{Name: "open", Effect: "read"}}}})
	must(t, err)
	info := host.Info{Name: "cdp", Version: "1", Kind: manifest.KindBuiltin}
	ask := call("cli", "cdp.open", "read", false)
	plain := Default()
	for _, key := range keys {
		for _, file := range []string{PolicyFile, GrantsFile} {
			before := "\n\n[plugin.CDP]\n"
			if key == "grants" { // which are bound to a build
				before = "\n[plugin.CDP]\nsigner = \"RWkey\"\n"
			}
			text := before + key + " = " + aboutPlugin[key] + "\n"
			hand, made, remove := text, "", "remove it"
			if file == GrantsFile {
				hand, made, remove = "", text, "remove it: parley policy revoke CDP"
			}
			p := load(t, hand, made)
			d, x := decide(t, p, ask), p.Explain(info, nil, "")
			found, err := p.Matches(c)
			must(t, err)
			if key == "grants" {
				x.Notes = slices.DeleteFunc(x.Notes, func(n string) bool { return strings.HasPrefix(n, "signer ") })
				found = slices.DeleteFunc(found, func(m Match) bool { return m.Rule == "[plugin.CDP] signer" })
			}
			if len(found) != 1 || found[0].Where != file+":4" && key != "limits.timeout" ||
				found[0].Rule != "[plugin.CDP] "+key {
				t.Errorf("%s in %s: the check says %+v", key, file, found)
				continue
			}
			if key == "limits.timeout" {
				if d.Limits != (grant.Limits{Timeout: 7 * time.Second}) || found[0].Matches != 1 || found[0].NoEffect != "" ||
					!slices.Equal(x.Limits, []string{"timeout 7s"}) || len(x.Notes) != 1 {
					t.Errorf("%s in %s: %+v, %+v, %+v", key, file, d, found[0], x)
				}
				continue
			}
			if !strings.HasSuffix(found[0].NoEffect, remove) || found[0].Matches != 0 {
				t.Errorf("%s in %s: the check says %+v", key, file, found[0])
			}
			if want := decide(t, plain, ask); !reflect.DeepEqual(d, want) {
				t.Errorf("%s in %s: the decision is %+v, want %+v", key, file, d, want)
			}
			notes := key + " (" + file + ":4) has no effect: " + found[0].NoEffect
			if len(x.Notes) != 2 || x.Notes[1] != notes || x.Isolate != isolateNone || x.Settings != "" ||
				len(x.Limits)+len(x.Rights) != 0 {
				t.Errorf("%s in %s: the explanation is %+v", key, file, x)
			}
		}
	}
}

// TestBuiltinIsNoCaller checks that rules for calls of a built-in plugin are said to have no effect, and that no
// explanation lists it as a caller.
func TestBuiltinIsNoCaller(t *testing.T) {
	c, err := host.NewCatalog()
	must(t, err)
	const granted = "[plugin.cdp]\nsigner = \"RWkey\"\ngrants = [\"tool:text.*\"]\n"
	p := load(t, "[callers.\"plugin:cdp\"]\ndeny = [\"text.*\"]\n"+granted, "")
	found, err := p.Matches(c)
	must(t, err)
	if len(found) != 3 || found[0].Where != "policy.toml:1" ||
		found[0].NoEffect != "cdp is built in and calls no tools; remove it" {
		t.Errorf("%+v", found)
	}
	p = load(t, granted, "")
	for _, a := range p.Explain(host.Info{Name: "text", Digest: digestA}, nil, "hash").Callers {
		if a.Caller == "plugin:cdp" {
			t.Errorf("%+v", a)
		}
	}
}
