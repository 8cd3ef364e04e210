package parley

import (
	"context"
	"encoding/json"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/jq"
	"github.com/parley-tools/parley/manifest"
)

// sandboxFilter implements [host.Filter] by the shipped plugin json, without any right: what an expression of a client
// or a plugin takes of processor and memory is limited as in any other sandbox.
type sandboxFilter struct{ p *Parley }

// maxFilterOutputs is how many outputs of the tool json.query one call returns.
const maxFilterOutputs = 10_000

// Check also compiles the plugin, so that no call waits for that after it has run.
func (f sandboxFilter) Check(ctx context.Context, expression string) (corrected string, err error) {
	if corrected, err = jq.Check(expression); err != nil {
		return corrected, err
	}
	provider, _, err := f.query()
	if err != nil {
		return "", err
	}
	if prepare := provider.Features().Prepare; prepare != nil {
		err = prepare(ctx, &host.Request{})
	}
	return "", err
}

func (f sandboxFilter) Filter(
	ctx context.Context, expression string, data json.RawMessage,
) (json.RawMessage, error) {
	provider, tool, err := f.query()
	if err != nil {
		return nil, err
	}
	params, err := manifest.Marshal(map[string]any{"data": data, "filter": expression, "limit": maxFilterOutputs})
	if err != nil {
		return nil, err
	}
	result, err := provider.Invoke(ctx, &host.Request{Def: tool,
		Job: host.Job{Tool: tool.Name, Params: params, Caller: "host"}})
	if err != nil {
		return nil, filterError(err)
	}
	var outputs struct {
		Results []json.RawMessage `json:"results"`
	}
	if err := json.Unmarshal(result.Data, &outputs); err != nil {
		return nil, host.Errorf(host.Internal, "jq: %v", err)
	}
	switch {
	case len(result.Warnings) > 0:
		return nil, host.Errorf(host.LimitExceeded, "jq: there are more than %d outputs", maxFilterOutputs)
	case len(outputs.Results) == 1:
		return outputs.Results[0], nil
	}
	return manifest.Marshal(outputs.Results)
}

// query returns the tool json.query of the shipped plugin, also where another plugin has taken its name.
func (f sandboxFilter) query() (host.Provider, *manifest.Tool, error) {
	if err := f.p.makeFixed(f.p.Engine()); err != nil {
		return nil, nil, err
	}
	f.p.parts.mu.Lock()
	defer f.p.parts.mu.Unlock()
	for _, provider := range f.p.parts.shipped {
		if provider.Info().Name == "json" {
			tool, err := provider.Tool("query")
			return provider, tool, err
		}
	}
	return nil, nil, host.Errorf(host.Unavailable, "jq: this build has no plugin json")
}

// filterError turns an outcome of json.query into an error of the option.
func filterError(err error) error {
	e := host.AsError(err)
	if e.Tool == nil {
		return e
	}
	code := host.InvalidArgs
	if e.Tool.Name == "too_large" {
		code = host.LimitExceeded
	}
	return host.Errorf(code, "jq: %s", e.Message)
}
