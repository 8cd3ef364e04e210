package admin

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/login"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// loginTarget names a secret of a plugin for which a person logs in.
type loginTarget struct {
	Plugin string `word:""`
	Secret string `flag:"secret" usage:"the NAME of the secret, if the plugin has several (login: default the first without a login)"`
}

type loginOptions struct {
	loginTarget
	ClientID     string `flag:"client-id" usage:"the ID of a client that is registered with the server (default: register one)"`
	ClientSecret bool   `flag:"client-secret" usage:"read the secret of that client from stdin"`
	NoBrowser    bool   `flag:"no-browser" usage:"print the address to open instead of opening it"`
	Port         int    `flag:"port" usage:"the PORT of 127.0.0.1 that the server answers to (default: any)"`
	Resource     string `flag:"resource" usage:"the API that the token is for: a URL, or none (default: the secret's url)"`
}

var loginCommand = &command.Command[*loginOptions]{
	Use: "login PLUGIN", Run: runLogin, Words: completeLogins,
	Short:   "Log in to a plugin's service",
	Example: "parley login github\nparley login github --client-id ID --no-browser",
}

var logoutCommand = &command.Command[*loginTarget]{
	Use: "logout PLUGIN", Run: runLogout, Words: completeLogins,
	Short:   "Log out, revoke the tokens",
	Example: "parley logout github",
}

// runLogin logs a person in, in a browser, and records that in the audit log. The tokens are in no output.
func runLogin(ctx context.Context, app *command.App, opts *loginOptions) error {
	plugin, asked, err := find(app, opts.loginTarget, func(name string) bool {
		l, err := app.Parley().Secrets().Login(name)
		_, lasts := l.State()
		return err != nil || !lasts
	})
	if err != nil {
		return err
	}
	r := login.Request{Secret: asked.Name, Again: []string{plugin}, Issuer: asked.OAuth.Issuer, Scopes: asked.OAuth.Scopes,
		Resource: cmp.Or(opts.Resource, asked.URL), ClientID: opts.ClientID, Port: opts.Port}
	for _, o := range []struct{ name, value string }{{"--client-id", opts.ClientID},
		{"--resource", opts.Resource},
		{"--port", command.When(opts.Port != 0, fmt.Sprint(opts.Port))}} {
		if o.value != "" {
			r.Again = append(r.Again, o.name, o.value)
		}
	}
	if r.Resource == "none" || strings.Contains(r.Resource, "*") {
		r.Resource = ""
	}
	if err := checkSource(app, asked.Name); err != nil {
		return err
	}
	if opts.ClientSecret {
		if r.ClientSecret, err = readSecret(ctx, app, "the client secret"); err != nil {
			return err
		}
		r.Again = append(r.Again, "--client-secret")
	}
	r.Open = func(page string) error {
		fmt.Fprintf(app.Err, "Log in at %s, for %s of %s. This is the address to open:\n%s\n", manifest.CleanLine(r.Issuer),
			asked.Name, plugin, manifest.CleanLine(page))
		if opts.NoBrowser {
			fmt.Fprintln(app.Err, "For a browser elsewhere, log in with --port N after: ssh -L N:127.0.0.1:N THIS_MACHINE")
		} else {
			openBrowser(page) // if no browser opens, the address is printed anyway
		}
		return nil
	}
	l, err := parley.Logins(app.Parley()).Login(ctx, r)
	if err != nil {
		return err
	}
	app.Note("secret", asked.Name, "logged in", l.Issuer)
	state, _ := l.State()
	data := struct {
		Plugin string   `json:"plugin"`
		Secret string   `json:"secret"`
		Issuer string   `json:"issuer"`
		Scopes []string `json:"scopes"` // as granted
		State  string   `json:"state"`
	}{plugin, asked.Name, l.Issuer, append([]string{}, l.Scopes...), state}
	return app.Print(data, []string{"parley policy explain " + plugin}, command.Text("%s: %s\n", asked.Name, state))
}

// runLogout ends a login and records that in the audit log.
func runLogout(ctx context.Context, app *command.App, opts *loginTarget) error {
	plugin, asked, err := find(app, *opts, func(string) bool { return false })
	if err != nil {
		return err
	}
	failed, err := parley.Logins(app.Parley()).Logout(ctx, asked.Name)
	if err != nil {
		return err
	}
	app.Note("secret", asked.Name, "logged out")
	data := struct {
		Plugin  string `json:"plugin"`
		Secret  string `json:"secret"`
		Revoked bool   `json:"revoked"` // by the server; the tokens are removed here in any case
	}{plugin, asked.Name, failed == nil}
	var warnings []string
	if failed != nil {
		warnings = []string{"the tokens are removed here, but not revoked: " + manifest.CleanLine(failed.Error())}
	}
	return app.PrintWarned(data, warnings, []string{"parley login " + plugin}, command.Text(
		"Removed the tokens for %s%s\n", asked.Name, command.When(data.Revoked, ", and revoked them")))
}

// find returns the plugin, and its secret for which a person logs in. If there are several, it returns the first one
// for which needed returns true.
func find(app *command.App, t loginTarget, needed func(name string) bool) (string, *manifest.SecretCapability, error) {
	at, err := app.Plugin(t.Plugin)
	if err != nil {
		return "", nil, err
	}
	m, err := at.Provider.Manifest()
	if err != nil {
		return "", nil, err
	}
	names, name := loginNames(m), t.Secret
	for _, n := range names {
		if name == "" && (len(names) == 1 || needed(n)) {
			name = n
		}
	}
	switch {
	case len(names) == 0:
		return "", nil, host.Errorf(host.InvalidArgs, "%s has no secret to log in for", m.Name).
			WithSteps(step.Operator(step.OpPolicyExplain, m.Name))
	case name == "":
		return "", nil, host.Errorf(host.InvalidArgs, "%s has several secrets to log in for; choose one with --secret: %s",
			m.Name, strings.Join(names, ", "))
	case !slices.Contains(names, name):
		return "", nil, command.UnknownValue("secret", name, names)
	}
	var asked *manifest.SecretCapability
	for i, s := range m.Capabilities.Secrets {
		switch {
		case s.OAuth == nil || s.Name != name:
		case asked == nil:
			asked = &m.Capabilities.Secrets[i]
		case asked.OAuth.Issuer != s.OAuth.Issuer || !slices.Equal(asked.OAuth.Scopes, s.OAuth.Scopes):
			return "", nil, host.Errorf(host.InvalidPlugin, "the manifest of %s names two ways to log in for secret %s", m.Name,
				name)
		}
	}
	return m.Name, asked, nil
}

// loginNames returns the names of the secrets for which a person logs in.
func loginNames(m *manifest.Manifest) (names []string) {
	for _, s := range m.Capabilities.Secrets {
		if s.OAuth != nil && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// checkSource refuses a login for a secret whose value comes from another source.
func checkSource(app *command.App, name string) error {
	sources, err := secretSources(app)
	if err != nil {
		return err
	}
	_, noLogin := app.Parley().Secrets().Login(name)
	for _, s := range sources {
		switch {
		case s.Name != name:
		case s.From != "store":
			return host.Errorf(host.ConfigError, "secret %s comes from %s (%s), so a login would have no effect; remove that "+
				"line first", name, s.From, s.At)
		case noLogin != nil:
			return host.Errorf(host.AlreadyExists, "secret %s has a value that parley secret set stored; remove it first",
				name).WithNext("parley secret remove " + name)
		}
	}
	return nil
}

// completeLogins completes the plugins with secrets for which a person logs in.
var completeLogins = command.FirstWord(func(app *command.App, _ *cobra.Command) (names []string) {
	catalog, err := app.Catalog()
	if err != nil {
		return nil
	}
	for _, p := range catalog.Providers() {
		if m, err := p.Manifest(); err == nil && len(loginNames(m)) > 0 {
			names = append(names, m.Name)
		}
	}
	return names
})

// openBrowser shows a page in the person's browser, and does not wait for it.
func openBrowser(page string) {
	opener := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if opener == nil {
		opener = []string{"xdg-open"}
	}
	cmd := exec.Command(opener[0], append(opener[1:], page)...)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}

// checkLogins reports the logins for secrets that have expired.
func checkLogins(app *command.App) check {
	names, err := app.Parley().Secrets().Names()
	if err != nil {
		return check{"logins", "fail", err.Error(), "chown or move the folder"}
	}
	lasting, ended := 0, []string{}
	fix := ""
	for _, name := range names {
		l, err := app.Parley().Secrets().Login(name)
		if err != nil {
			continue
		}
		if _, lasts := l.State(); lasts {
			lasting++
			continue
		}
		ended = append(ended, name)
		fix = cmp.Or(fix, app.Command(step.Operator(step.OpLogin, l.Again...)))
	}
	if len(ended) > 0 {
		return check{"logins", "warn", "expired: " + strings.Join(ended, ", "), fix}
	}
	return ok("logins", "%s", manifest.Plural(lasting, "login"))
}
