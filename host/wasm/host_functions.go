package wasm

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// guestFunctions are the functions of the host that a guest may import.
var guestFunctions = []string{host.AskTool, host.AskHTTP, host.AskSecret}

// serveGuest asks the host for a function on behalf of a guest, which serves it through [call].serve. The reply is
// {"ok":true,"result":..,"warnings":[..]} or {"ok":false,"error":{..}}.
func serveGuest(ctx context.Context, r *host.Request, function string, argument []byte) []byte {
	var result *host.Result
	err := error(host.Errorf(host.NotFound, "the host has no function %s", truncate(function, maxMessage)))
	if r.Ask != nil && (function == host.AskTools || slices.Contains(guestFunctions, function)) {
		result, err = r.Ask(ctx, function, argument)
	}
	if err != nil {
		return marshal(struct {
			OK    bool              `json:"ok"`
			Error *host.ErrorObject `json:"error"`
		}{false, asHostError(err).Object()})
	}
	return marshal(struct {
		OK       bool            `json:"ok"`
		Result   json.RawMessage `json:"result"`
		Warnings []string        `json:"warnings,omitempty"`
	}{true, jsonOr(result.Data, "null"), result.Warnings})
}

func marshal(v any) []byte {
	data, err := manifest.Marshal(v)
	if err != nil {
		return []byte(`{"ok":false,"error":{"code":"internal","exit_code":110,"message":"the reply cannot be encoded as JSON"}}`)
	}
	return data
}

func sortedKeys[V any](m map[string]V) []string {
	return append([]string{}, slices.Sorted(maps.Keys(m))...)
}
