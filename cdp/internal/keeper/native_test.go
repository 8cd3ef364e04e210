package keeper

import (
	"context"
	"encoding/json"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// native runs a verb of the keeper's table.
func native[R any](ctx context.Context, c *Client, name string, o api.VerbOptions, params any) (result R, err error) {
	text, err := json.Marshal(params)
	if err != nil {
		return result, err
	}
	data, err := c.Verb(ctx, name, api.VerbRequest[json.RawMessage]{VerbOptions: o, Params: text})
	if err != nil {
		return result, err
	}
	return result, json.Unmarshal(data, &result)
}

func (c *Client) input(ctx context.Context, o api.VerbOptions, events ...json.RawMessage) (api.InputSent, error) {
	return native[api.InputSent](ctx, c, "input", o, api.InputRequest{Events: events})
}

func (c *Client) route(ctx context.Context, q api.RouteRequest) (api.Routed, error) {
	return native[api.Routed](ctx, c, "route", api.VerbOptions{}, q)
}

func (c *Client) activate(ctx context.Context, target string) (api.Page, error) {
	return native[api.Page](ctx, c, "activate", api.VerbOptions{}, api.TargetRequest{Target: target})
}
