package command

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
)

// isCode reports whether an error has a code.
func isCode(err error, code host.Code) bool { return err != nil && host.AsError(err).Code == code }

// isGrant reports whether a line of an explanation names the grant of TestPluginLife.
func isGrant(by string) bool { return strings.HasPrefix(by, "secret:ECHO_SECRET (grants.toml") }

// TestPluginLife installs a plugin, grants and revokes rights, and removes it, with an approver of its own.
// Each change of rights requires approval, and nothing changes without it.
func TestPluginLife(t *testing.T) {
	ctx, d := t.Context(), front(t, "")
	install := InstallOptions{Path: "../../../../testdata/wasm/echo.wasm", Grants: []string{"tool:text.*"}}
	if _, err := InstallPlugin(ctx, d, install); !isCode(err, host.Denied) {
		t.Fatalf("a grant without an approver: %v", err)
	}
	var asked []Change
	approve := false
	d.ApproveChange = func(_ context.Context, c Change) (bool, error) {
		asked = append(asked, c)
		return approve, nil
	}
	if _, err := InstallPlugin(ctx, d, install); !isCode(err, host.Denied) {
		t.Fatalf("a grant that is not approved: %v", err)
	}
	if _, err := ShowPlugin(d, "echo"); !isCode(err, host.NotFound) {
		t.Fatalf("the plugin was installed: %v", err)
	}
	approve = true
	installed, err := InstallPlugin(ctx, d, install)
	if err != nil || installed.Name != "echo" || !slices.Equal(installed.Granted, []string{"tool:text.*"}) ||
		len(asked) != 2 || !strings.Contains(asked[1].Installs, "echo") || !strings.Contains(asked[1].Diff, "+ tool:text.*") {
		t.Fatalf("%v: %+v, asked %+v", err, installed, asked)
	}
	again, err := InstallPlugin(ctx, d, InstallOptions{Path: install.Path})
	if err != nil || !again.Unchanged {
		t.Errorf("%v: %+v", err, again)
	}
	list, err := PluginList(d)
	isEcho := func(p Plugin) bool { return p.Name == "echo" && p.Signer != nil && !p.Trusted }
	if err != nil || list.Total != len(list.Plugins) || !slices.ContainsFunc(list.Plugins, isEcho) {
		t.Errorf("%v: %+v", err, list)
	}
	if report, err := CheckPlugin(ctx, d, "text"); err != nil || report.Tools != 8 {
		t.Errorf("%v: %+v", err, report)
	}

	granted, err := Grant(ctx, d, GrantOptions{Plugin: "echo", Rights: []string{"secret:ECHO_SECRET"}})
	if err != nil || !slices.Equal(granted.Added, []string{"secret:ECHO_SECRET"}) || asked[len(asked)-1].Installs != "" {
		t.Errorf("%v: %+v", err, granted)
	}
	invalid := GrantOptions{Plugin: "echo", Rights: []string{"nonsense"}}
	if _, err := Grant(ctx, d, invalid); !isCode(err, host.InvalidArgs) {
		t.Errorf("an invalid right: %v", err)
	}
	unasked := GrantOptions{Plugin: "echo", Rights: []string{"secret:ECHO_SECRET"}, Yes: true}
	if _, err := Grant(ctx, d, unasked); !isCode(err, host.Denied) {
		t.Errorf("Yes without allow_yes: %v", err)
	}
	x, err := ExplainPolicy(d, "echo.echo")
	hasGrant := func(r policy.Right) bool { return slices.ContainsFunc(r.By, isGrant) }
	if err != nil || x.Tool != "echo" || !slices.ContainsFunc(x.Rights, hasGrant) {
		t.Errorf("%v: %+v", err, x)
	}
	revoked, err := Revoke(ctx, d, GrantOptions{Plugin: "echo", Rights: []string{"secret:ECHO_SECRET"}})
	if err != nil || !slices.Equal(revoked.Removed, []string{"secret:ECHO_SECRET"}) {
		t.Errorf("%v: %+v", err, revoked)
	}
	if files, err := CheckPolicy(d); err != nil || len(files.Files) != 1 {
		t.Errorf("%v: %+v", err, files)
	}
	removed, err := RemovePlugin(d, "echo")
	if err != nil || removed.Name != "echo" || !slices.Equal(removed.Revoked, []string{"tool:text.*"}) {
		t.Errorf("%v: %+v", err, removed)
	}

	records, err := Audit(d, AuditOptions{Tool: "echo"})
	var ops []string
	for _, r := range records.Records {
		ops = append(ops, r.Op)
	}
	if want := []string{"install", "grant", "install", "grant", "revoke", "revoke", "remove"}; err != nil ||
		!slices.Equal(ops, want) {
		t.Errorf("%v: recorded %v, want %v", err, ops, want)
	}
	head, err := AuditHead(d)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := VerifyAudit(d, head.Hash); err != nil || report.Records != records.Total {
		t.Errorf("%v: %+v", err, report)
	}
}

// TestSigning makes a key, signs a plugin with it, trusts the key and verifies the signature.
func TestSigning(t *testing.T) {
	ctx, d, dir := t.Context(), front(t, ""), t.TempDir()
	d.ApproveChange = func(context.Context, Change) (bool, error) { return true, nil }
	plugin := filepath.Join(dir, "hash.wasm")
	copyFixture(t, "echo.wasm", plugin)
	copyFixture(t, "echo.manifest.json", filepath.Join(dir, "hash.manifest.json"))
	if _, err := VerifyPlugin(d, VerifyOptions{Plugin: plugin}); !isCode(err, host.NotFound) {
		t.Errorf("an unsigned plugin: %v", err)
	}
	key, err := NewKey(d, KeyOptions{File: filepath.Join(dir, "my.key"), NoPassword: true})
	if err != nil || key.Encrypted {
		t.Fatalf("%v: %+v", err, key)
	}
	signed, err := SignPlugin(d, SignOptions{Path: plugin, Key: key.SecretKey})
	if err != nil || signed.Signer != key.Key {
		t.Fatalf("%v: %+v", err, signed)
	}
	trust, err := Trust(ctx, d, TrustOptions{Key: key.PublicKey, Name: "me"})
	if err != nil || string(trust.Key) != key.Key || trust.Removed {
		t.Errorf("%v: %+v", err, trust)
	}
	verified, err := VerifyPlugin(d, VerifyOptions{Plugin: plugin})
	if err != nil || !verified.Trusted || verified.Signer.Name != "me" {
		t.Errorf("%v: %+v", err, verified)
	}
	if keys, err := TrustedKeys(d); err != nil || keys.Total != 1 || keys.Keys[0].Name != "me" {
		t.Errorf("%v: %+v", err, keys)
	}
	if trust, err = Untrust(ctx, d, TrustOptions{Key: "me"}); err != nil || !trust.Removed {
		t.Errorf("%v: %+v", err, trust)
	}
}

func copyFixture(t *testing.T, name, to string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../../../testdata/wasm", name))
	if err == nil {
		err = os.WriteFile(to, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestSettingsAndSecrets lists settings, stores a secret and goes through tutorials.
func TestSettingsAndSecrets(t *testing.T) {
	ctx, d := t.Context(), front(t, "")
	if config, err := Config(d); err != nil || len(config.Settings) < 5 || len(config.Paths) != 5 {
		t.Errorf("%v: %+v", err, config)
	}
	if data, err := SetSecret(d, "TOKEN", "longer than eight"); err != nil || data.Bytes != 17 {
		t.Errorf("%v: %+v", err, data)
	}
	if _, err := SetSecret(d, "not a name", "longer than eight"); !isCode(err, host.InvalidArgs) ||
		strings.Contains(err.Error(), "longer") {
		t.Errorf("an invalid name: %v", err)
	}
	if data, err := Secrets(d); err != nil || data.Total != 1 || data.Secrets[0].Name != "TOKEN" {
		t.Errorf("%v: %+v", err, data)
	}
	if _, err := RemoveSecret(d, "TOKEN"); err != nil {
		t.Error(err)
	}
	if _, err := RemoveSecret(d, "TOKEN"); !isCode(err, host.NotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if data, err := Tutorials(ctx, d); err != nil || data.Total != 4 || data.Tutorials[0].Done != 0 {
		t.Errorf("%v: %+v", err, data)
	}
	if data, err := Learn(ctx, d, "text"); err != nil || data.Finished || len(data.Due()) == 0 {
		t.Errorf("%v: %+v", err, data)
	}
	if _, err := Learn(ctx, d, "nosuch"); !isCode(err, host.NotFound) {
		t.Errorf("an unknown plugin: %v", err)
	}
}

// TestMCPServer serves a client over HTTP, and refuses options that would give everybody access.
func TestMCPServer(t *testing.T) {
	for _, c := range []struct {
		options MCPOptions
		want    host.Code
	}{
		{MCPOptions{Docs: "tiny"}, host.InvalidArgs},
		{MCPOptions{HTTP: "nowhere:"}, host.InvalidArgs},
		{MCPOptions{HTTP: "0.0.0.0:0", NoToken: true}, host.Denied},
		{MCPOptions{HTTP: ":0", TokenFile: "missing"}, host.ConfigError},
	} {
		if _, err := MCP(t.Context(), front(t, ""), c.options); !isCode(err, c.want) {
			t.Errorf("%+v: %v, want %s", c.options, err, c.want)
		}
	}
	server, err := MCP(t.Context(), front(t, ""), MCPOptions{HTTP: ":0"})
	if err != nil || !strings.HasPrefix(server.URL, "http://127.0.0.1:") || len(server.Token) < minTokenLength {
		t.Fatalf("%v: %+v", err, server)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, nil, nil) }()
	cancel()
	<-ended
}
