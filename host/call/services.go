package call

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/redact"
	"github.com/parley-tools/parley/host/rights"
	"github.com/parley-tools/parley/manifest"
)

const (
	// maxCallDepth bounds the nesting of calls between plugins, maxInnerCalls the number of calls that one call causes.
	maxCallDepth  = 8
	maxInnerCalls = 10_000
	// maxProgramCalls bounds the calls that a program makes as its caller.
	maxProgramCalls = 200
)

// services are the functions of the host that a running tool can use.
type services struct {
	run          *run
	grant        grant.Grant // grant of the tool's plugin
	programCalls atomic.Int32
}

// receive serves [host.Request].Events.
func (v *services) receive(e job.Event) error {
	r := v.run
	switch {
	case e.Kind == job.EventUse:
		r.activity.recordUse(e.Right)
	case e.Kind == job.EventUsage:
		r.activity.addUsage(e.CPU, e.Peak)
	case e.Kind == job.EventDenied:
		r.activity.denyUse(e.Right, e.Why)
	case r.call.Sink.Event != nil:
		e.Message = r.redactor.Redact(e.Message)
		return r.call.Sink.Event(e)
	}
	return nil
}

// callTool runs a tool for a plugin through all of [Host.Call]. The caller is the plugin, or the plugin's own caller
// if it has the capability caller.
func (v *services) callTool(ctx context.Context, tool string, params json.RawMessage, o job.Options) (*job.Result,
	error) {
	r := v.run
	if len(r.behalf.callers) >= maxCallDepth {
		return nil, host.Errorf(host.LimitExceeded, "calls between plugins are nested more than %d deep", maxCallDepth)
	}
	if r.behalf.innerCalls.Add(1) > maxInnerCalls {
		return nil, host.Errorf(host.LimitExceeded, "one call caused more than %d calls between plugins", maxInnerCalls)
	}
	o.Context = cmp.Or(o.Context, r.call.Options.Context)
	o.Isolate = r.call.Options.Isolate // isolation extends to the plugins that an isolated plugin calls
	if v.grant.Browser && o.Browser == "" {
		o.Browser, o.Target = r.call.Options.Browser, cmp.Or(o.Target, r.call.Options.Target)
		o.OnDialog = cmp.Or(o.OnDialog, r.call.Options.OnDialog)
	}
	inner := host.Call{Name: tool, Params: params, Options: o}
	of := behalf{innerCalls: r.behalf.innerCalls, returned: r.behalf.returned, redactor: r.redactor,
		shared: r.behalf.shared, parentID: r.answer.CallID, program: r.behalf.program}
	if v.grant.Caller && r.address.Provider.Info().Identity() == host.OwnerShipped {
		if v.programCalls.Add(1) > maxProgramCalls {
			return nil, host.Errorf(host.LimitExceeded,
				"a program may make %d calls; have each do more, or run several programs", maxProgramCalls)
		}
		v.asCaller(&inner, &of)
	} else {
		v.asPlugin(&inner, &of)
	}
	a, err := r.host.call(ctx, inner, of)
	if errors.Is(err, host.Denied) {
		r.activity.recordDenial("tool:" + a.Tool)
	} else {
		r.activity.recordUse("tool:" + a.Tool)
	}
	if err != nil {
		r.activity.recordFailure(a.Tool, a.Err)
		return nil, err
	}
	return &job.Result{Data: a.Data, Content: a.Content, Warnings: a.Warnings}, nil
}

// asPlugin makes the plugin the caller of an inner call, on behalf of its own callers.
func (v *services) asPlugin(inner *host.Call, of *behalf) {
	r := v.run
	if m, err := r.address.Provider.Manifest(); err == nil {
		of.callerAsks = m.Capabilities
	}
	inner.Principal = caller.Principal{Name: caller.PluginPrefix + r.address.Plugin, Session: v.innerSession(),
		Origin: r.call.Principal.Origin, Tools: v.grant.Tools}
	of.callerGrant, of.callerPlugin, of.callerEffect = v.grant, r.address.Provider, r.address.Tool.Effect
	of.trusted, of.repeats = r.address.Provider.Info().Identity() == host.OwnerShipped, &r.activity.inner
	of.callers = append(slices.Clone(r.behalf.callers), r.call.Principal)
}

// asCaller gives an inner call the identity, session and rights of the plugin's caller, as if the caller had made it.
// The call has no right of the plugin. If it names no browser and no page, it gets those of the outer call.
func (v *services) asCaller(inner *host.Call, of *behalf) {
	r, c := v.run, v.run.call
	inner.Principal = c.Principal
	of.callers, of.callerGrant, of.callerAsks = r.behalf.callers, r.behalf.callerGrant, r.behalf.callerAsks
	of.callerEffect, of.callerPlugin, of.trusted = r.behalf.callerEffect, r.behalf.callerPlugin, r.behalf.trusted
	inner.Filter, of.program = c.Filter, r.address.Plugin
	if o := &inner.Options; o.Browser == "" && o.Target == "" {
		o.Browser, o.Target = c.Options.Browser, c.Options.Target
	}
}

// innerSession returns the session of the calls that the plugin makes: its caller's session if it was granted to act
// in that, else a session of its own.
func (v *services) innerSession() caller.Session {
	r := v.run
	if v.grant.Browser {
		return r.call.Principal.Session
	}
	return r.call.Principal.Session.OfPlugin(r.address.Plugin,
		&caller.SessionPlugin{Digest: r.address.Provider.Info().Digest, Grant: v.grant})
}

// mayCall serves [job.AskMayCall].
func (v *services) mayCall(ctx context.Context, tool string) bool {
	at, err := v.run.host.Catalog().FindIn(v.run.address.Plugin, tool)
	if err != nil || at.Tool == nil {
		return false
	}
	other := v.run.auth.of(&advice.Params{At: at, Tool: at.Name()})
	if other.checkEffect() != nil {
		return false
	}
	_, d, err := other.consult(ctx, nil)
	return err == nil && d.Verdict == host.Allow && len(d.Missing) == 0
}

// send makes an HTTP request for a plugin. Secrets that the host adds to the request are redacted from the response, so
// that the guest does not see them when a server repeats them.
func (v *services) send(ctx context.Context, q *outbound.Request) (*outbound.Response, error) {
	r := v.run
	failed := func(err error) (*outbound.Response, error) {
		for _, d := range host.AsError(err).Denied {
			r.activity.recordDenial(d.Right)
		}
		return nil, err
	}
	if err := v.checkMethod(q); err != nil {
		return failed(err)
	}
	response, err := r.host.cfg.Egress.Send(ctx, q, outbound.Rights{
		HTTP: v.grant.HTTP, Secrets: slices.DeleteFunc(slices.Clone(v.grant.Secrets), func(s grant.Secret) bool {
			of := r.address.Tool.HTTP
			return of != nil && of.Secrets != nil && !slices.Contains(of.Secrets, s.Name)
		}),
		Value: func(ctx context.Context, name string) (string, error) {
			r.activity.recordUse("secret:" + name)
			return v.secretValue(ctx, name)
		},
		OnRequest: func(method, origin string) { r.activity.recordUse("http:" + method + ":" + origin) },
	})
	if err != nil {
		e := host.AsError(err)
		r.redactor.RedactError(e)
		return failed(e)
	}
	texts := []string{string(response.Body)}
	for _, h := range response.Headers {
		texts = append(texts, h[0], h[1])
	}
	if err := r.redactor.Reflected("the response", texts...); err != nil {
		return failed(err)
	}
	response.Body = []byte(r.redactor.RedactUnreadable(string(response.Body)))
	for i, h := range response.Headers {
		response.Headers[i] = [2]string{r.redactor.RedactUnreadable(h[0]), r.redactor.RedactUnreadable(h[1])}
	}
	return response, nil
}

// checkMethod returns an error if a tool that only reads sends a request that may change something. The method that a
// manifest of kind http declares is allowed: it is the tool itself, and the operator may have stated its effect.
func (v *services) checkMethod(q *outbound.Request) error {
	if of := v.run.address.Tool.HTTP; of != nil && of.Method == q.Method {
		return nil
	}
	if v.run.address.Tool.Effect != manifest.EffectRead || q.Method == "" ||
		slices.Contains(rights.ReadMethods, q.Method) {
		return nil
	}
	right := manifest.CleanLine(manifest.Clip("http:"+q.Method+":"+q.URL, 200))
	why := fmt.Sprintf("%s has the effect read, which allows GET and HEAD; declare the effect write", v.run.answer.Tool)
	return &host.Error{Code: host.Denied, Message: "not granted: " + right + ": " + why + "; nothing was sent",
		Denied: []grant.Denial{{Right: right, Why: why}}}
}

func (v *services) readSecret(ctx context.Context, name string) (string, error) {
	r := v.run
	if !r.redactor.Readable(name) {
		r.activity.recordDenial("secret:read:" + host.Printable(name))
		return "", host.Errorf(host.Denied, "secret %s may not be read", host.Printable(name))
	}
	r.activity.recordUse("secret:read:" + name)
	return v.secretValue(ctx, name)
}

func (v *services) secretValue(ctx context.Context, name string) (string, error) {
	value, err := v.run.redactor.Value(ctx, name)
	v.run.activity.needLogin(err)
	return value, err
}

// boundSecret returns the value of a secret that is to be typed into a page, and the origins to which the policy binds
// it. A plugin must have been granted the secret. From then on this host redacts the value from answers and records.
func (v *services) boundSecret(ctx context.Context, name string) (s job.BoundSecret, err error) {
	r := v.run
	right := "secret:" + host.Printable(name)
	if r.call.Principal.IsPlugin() &&
		!slices.ContainsFunc(r.behalf.callerGrant.Secrets, func(g grant.Secret) bool { return g.Name == name }) {
		asked := slices.ContainsFunc(r.behalf.callerAsks.Secrets,
			func(c manifest.SecretCapability) bool { return c.Name == name })
		r.activity.recordDenial(right)
		e := denied(r.answer.Tool, right, "a plugin can type only secrets that it was granted")
		return s, withGrantStep(r.call.Principal.Name, e, asked, right)
	}
	if binder, ok := r.host.cfg.Secrets.(secretBinder); ok {
		if s.Origins, err = binder.SecretOrigins(name); err != nil {
			return s, err
		}
	}
	if len(s.Origins) == 0 {
		r.activity.recordDenial(right)
		return s, denied(r.answer.Tool, "", fmt.Sprintf(
			"the policy binds secret %[1]s to no origin; the operator can add origins to [secrets.%[1]s]", host.Printable(name)))
	}
	if s.Value, err = r.host.cfg.Secrets.Secret(ctx, name); err != nil {
		return s, err
	}
	r.host.typed.Add(name, s.Value)
	r.activity.recordUse(right)
	return s, nil
}

// script returns a script for pages that the calling plugin ships.
func (v *services) script(name string, withText bool) (s job.Script, err error) {
	p := v.run.behalf.callerPlugin
	if p == nil {
		return s, denied(v.run.answer.Tool, "", "only a plugin can run a script, and only one that it ships")
	}
	m, err := p.Manifest()
	if err != nil {
		return s, err
	}
	declared := m.Script(name)
	if declared == nil || p.Features().Script == nil {
		return s, host.Errorf(host.NotFound, "%s ships no script %s", m.Name, host.Printable(name))
	}
	s = job.Script{Plugin: m.Name, SHA256: declared.SHA256}
	if withText {
		text, err := p.Features().Script(name)
		if err != nil {
			return s, err
		}
		s.Text = string(text)
	}
	return s, nil
}

// copySharedFile copies a file that was handed to the calling plugin into a folder, and returns its path there.
func (v *services) copySharedFile(text, folder string) (string, error) {
	path, err := v.run.behalf.shared.copy(text, folder)
	if err == nil {
		v.run.activity.recordUse("fs:read:" + filepath.Base(path))
	}
	return path, err
}

// secretBinder is implemented by [host.Secrets] that bind some secrets to origins. Such secrets may be typed into
// pages of their origins.
type secretBinder interface {
	// SecretOrigins returns the origins in the spelling of [origin.Exact], none for a secret that is not bound.
	SecretOrigins(name string) ([]string, error)
}

// behalf says for whom a plugin makes a call. The zero value means a call from outside.
type behalf struct {
	// callers are the callers on whose behalf a plugin makes this call, outermost first. The plugin gains no right that
	// one of them does not have. callerGrant is the grant of that plugin, parentID the id of the call that makes this one.
	callers      []caller.Principal
	callerGrant  grant.Grant
	callerAsks   manifest.Capabilities // capabilities that the manifest of that plugin asks for
	callerEffect string                // effect of the tool that makes this call
	callerPlugin host.Provider         // that plugin; nil if the caller is not one
	// trusted means that the plugin is shipped: the callers on whose behalf it calls only deny tools by name.
	trusted bool
	// program is the plugin with the capability caller that makes this call, or an outer one, as its own caller; "" if
	// there is none.
	program  string
	parentID string
	// innerCalls counts the calls that plugins made on behalf of the outermost one. redactor holds the secrets that
	// must not occur in their records.
	innerCalls *atomic.Int32
	returned   *atomic.Int64 // bytes that the outermost call and all calls within it have returned
	redactor   *redact.Redactor
	shared     *sharedFiles // files that were opened for the outermost call
	repeats    *repeats     // set if a plugin makes this call on its own behalf: repeats of the outer call
}

// forOperator reports whether the person who runs the program makes the call: not a client, neither directly nor by
// way of plugins.
func (b *behalf) forOperator(outer caller.Principal) bool {
	if len(b.callers) > 0 {
		outer = b.callers[0]
	}
	return outer.Name == caller.CLI
}

// A tool whose schema marks a parameter as handed does not get the path of a file that its caller names: the host
// opens the file, and the tool gets a text with its size and its name. It can pass the text to a tool of a built-in
// plugin, for which the host copies the content to where the tool needs it. So a plugin can give files to a page
// without reading any.

// sharedMark is the member of a schema of a parameter that names files to hand on.
const sharedMark = "x-handed"

// maxSharedFile limits the size of a file that is handed on.
const maxSharedFile = 512 << 20

// sharedFiles are the files that were opened for a call and for those that it causes.
type sharedFiles struct {
	mu    sync.Mutex
	files map[string]*os.File
}

// savedMark is the member of a schema of a parameter that names a file to make.
const savedMark = "x-saved"

// hasMark reports whether the files that a tool declares are handed on, or made.
func hasMark(t *manifest.Tool, mark string) bool {
	return len(t.Files) > 0 && bytes.Contains(t.Params, []byte(mark))
}

// add opens a file that the caller of a tool may name, and returns the text that stands for it. path is its path.
func (h *sharedFiles) add(tool, name, path string, open func(path string) (*os.File, error)) (string, error) {
	refused := func(why string) (string, error) {
		return "", host.Errorf(host.InvalidArgs, "%s: %s %s; nothing was run", tool, host.Printable(name), why)
	}
	before, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return refused("does not exist")
	case err != nil:
		return refused("cannot be read")
	case !before.Mode().IsRegular(): // to open a pipe or a device could take for ever
		return refused("is not a regular file")
	case before.Size() > maxSharedFile:
		return refused(fmt.Sprintf("has %d bytes; the limit is %d", before.Size(), maxSharedFile))
	}
	f, err := open(path)
	if err != nil {
		return refused("cannot be read")
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(before, opened) {
		_ = f.Close()
		return refused("has changed meanwhile")
	}
	var random [8]byte
	_, _ = rand.Read(random[:])
	text := fmt.Sprintf("%s%x/%d/%s", job.SharedFilePrefix, random, before.Size(), filepath.Base(path))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.files == nil {
		h.files = map[string]*os.File{}
	}
	h.files[text] = f
	return text, nil
}

// openRead are the flags for opening a file. Opening does not block on a pipe that has replaced the file meanwhile.
const openRead = os.O_RDONLY | protect.Nonblock

func openAnywhere(path string) (*os.File, error) { return os.OpenFile(path, openRead, 0) }

// openWithin opens a file in a folder. No symbolic link may lead out of it, even if it was put there meanwhile.
func openWithin(folder, path string) (*os.File, error) {
	rest, err := filepath.Rel(folder, path)
	if err != nil {
		return nil, err
	}
	root, err := protect.OpenFolder(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(rest, openRead, 0)
}

func (h *sharedFiles) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.files {
		_ = f.Close()
	}
	clear(h.files)
}

// copy copies the file that a text stands for into a folder, and returns its path there.
func (h *sharedFiles) copy(text, folder string) (string, error) {
	h.mu.Lock()
	f := h.files[text]
	h.mu.Unlock()
	if f == nil {
		return "", host.Errorf(host.InvalidArgs, "%s is not a file that was handed to this call", host.Printable(text))
	}
	info, err := f.Stat()
	if err != nil {
		return "", &host.Error{Code: host.Internal, Cause: err, Message: "a file that was handed on cannot be read"}
	}
	failed := func(err error) (string, error) {
		return "", &host.Error{Code: host.ConfigError, Cause: err, Message: "a file cannot be handed on: " + err.Error()}
	}
	own, err := os.MkdirTemp(folder, "")
	if err != nil {
		return failed(err)
	}
	_, rest, _ := strings.Cut(text, "/")
	_, name, _ := strings.Cut(rest, "/")
	path := filepath.Join(own, name)
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = io.Copy(to, io.NewSectionReader(f, 0, min(info.Size(), maxSharedFile)))
		err = errors.Join(err, to.Close())
	}
	if err != nil {
		_ = os.RemoveAll(own)
		return failed(err)
	}
	return path, nil
}
