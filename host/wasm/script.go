package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/sections"
)

// runsOn returns the provider whose module runs the plugin: itself, or the engine of a plugin of kind script. The
// error is invalid_plugin if there is no such engine, and integrity if the engine is not the build that an installed
// script is bound to.
func (p *Provider) runsOn() (*Provider, error) {
	if p.info.Kind != manifest.KindScript {
		return p, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.scriptEngine != nil {
		return p.scriptEngine, nil
	}
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	var engine *Provider
	if find := p.engine.cfg.ScriptEngine; find != nil {
		if engine, err = find(m.Engine.Name, p.loadParts().src.Engine); err != nil {
			return nil, err
		}
	}
	src := p.loadParts().src
	switch {
	case engine == nil:
		return nil, module.Errorf(m, "its engine is the plugin %s, which is not installed; install that first",
			m.Engine.Name).WithSteps(step.Operator(step.OpPluginList))
	case engine.info.Kind != manifest.KindParley:
		return nil, module.Errorf(m, "its engine is the plugin %s of kind %s; expected one of kind %s", m.Engine.Name,
			engine.info.Kind, manifest.KindParley)
	case !m.Engine.Accepts(engine.info.Version):
		return nil, module.Errorf(m, "it needs version %s of the engine %s, but %s is installed; install another version "+
			"of one of them", m.Engine.Version, m.Engine.Name, manifest.CleanLine(engine.info.Version)).
			WithSteps(step.Operator(step.OpPluginList))
	case src.Engine != "" && src.Engine != engine.info.Digest:
		return nil, host.Errorf(host.Integrity, "%s was installed for another build of its engine %s: %s, not %s; "+
			"nothing was run. parley plugin update --scripts checks all installed scripts on this one, and binds them to it",
			m.Name, m.Engine.Name, src.Engine, engine.info.Digest).
			WithSteps(step.Operator(step.OpPluginUpdate, "--scripts"))
	}
	p.scriptEngine = engine
	return engine, nil
}

// EngineDigest returns the digest of the engine of a plugin of kind script, "" for other plugins.
func (p *Provider) EngineDigest() (string, error) {
	on, err := p.runsOn()
	if err != nil || on == p {
		return "", err
	}
	return on.info.Digest, nil
}

// job returns the job of a request.
func (p *Provider) job(r *host.Request) (*guest.Job, error) {
	m, err := p.loadParts().manifest()
	if err != nil {
		return nil, err
	}
	var text *sections.SourceFile
	if m.Kind == manifest.KindScript {
		if text, err = p.loadParts().text(); err != nil {
			return nil, err
		}
	}
	return guest.NewJob(p.engine.cfg.HostVersion, p.engine.cfg.Limits, m, text, r), nil
}

// readText returns the text of a plugin of kind script.
func (p *Provider) readText() (*sections.SourceFile, error) {
	wasm, err := p.loadParts().src.Wasm()
	if err != nil {
		return nil, err
	}
	text, err := sections.ReadSource(wasm)
	if err != nil {
		return nil, host.Errorf(host.InvalidPlugin, "%s: %v", p.info.Name, err)
	}
	return text, nil
}

// scriptCheckTime bounds the time to load a script for a check.
const scriptCheckTime = 5 * time.Second

// CheckScript loads the text of a plugin of kind script, without rights, and checks that it has a function for each
// tool of the manifest. It does nothing for other plugins. The error is invalid_plugin. An engine answers a request
// for the tool "" with the names of the functions, see sdk/abi.md.
func (p *Provider) CheckScript(ctx context.Context) error {
	m, err := p.loadParts().manifest()
	if err != nil || m.Kind != manifest.KindScript {
		return err
	}
	text, err := p.loadParts().text()
	if err != nil {
		return err
	}
	result, err := p.Invoke(ctx, &host.Request{
		Job: job.Job{Caller: "cli", Options: job.Options{Timeout: scriptCheckTime}},
	})
	if ctx.Err() == nil && (errors.Is(err, host.ToolFailed) || errors.Is(err, host.Timeout)) {
		return module.Errorf(m, "%s cannot be loaded: %s", text.File, host.AsError(err).Message)
	}
	if err != nil {
		return err
	}
	var functions []string
	if err := json.Unmarshal(result.Data, &functions); err != nil {
		return module.Errorf(m, "the engine %s did not list the functions of %s; it cannot run scripts", m.Engine.Name,
			text.File)
	}
	for _, t := range m.Tools {
		if !slices.Contains(functions, t.Name) {
			group, name, grouped := strings.Cut(t.Name, ".")
			export := "export function " + group + "(params, context) {..}"
			if grouped {
				export = "export const " + group + " = {" + name + "(params, context) {..}}"
			}
			return module.Errorf(m, "%s exports no function for the tool %s; add %s, or remove the tool from the manifest",
				text.File, t.Name, export)
		}
	}
	return nil
}
