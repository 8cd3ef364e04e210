package jq

import (
	"context"
	"encoding/json"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest"
)

// Sandbox implements [host.Filter] by the tool query of a plugin, without any right: the processor time and memory
// that an expression of a client or a plugin takes are limited as in any other sandbox.
type Sandbox struct {
	// Plugin returns the plugin, nil if there is none.
	Plugin func() (host.Provider, error)
}

// maxFilterOutputs is how many outputs of the tool json.query one call returns.
const maxFilterOutputs = 10_000

// Check also compiles the plugin, so that no call waits for that after it has run.
func (f Sandbox) Check(ctx context.Context, expression string) (corrected string, err error) {
	if corrected, err = Check(expression); err != nil {
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

func (f Sandbox) Filter(
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
		Job: job.Job{Tool: tool.Name, Params: params, Caller: "host"}})
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

func (f Sandbox) query() (host.Provider, *manifest.Tool, error) {
	plugin, err := f.Plugin()
	if err != nil {
		return nil, nil, err
	}
	if plugin == nil {
		return nil, nil, host.Errorf(host.Unavailable, "jq: this build has no plugin json")
	}
	tool, err := plugin.Tool("query")
	return plugin, tool, err
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
