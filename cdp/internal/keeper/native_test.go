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

func (c *Client) Open(ctx context.Context, q api.OpenRequest) (api.Page, error) {
	return Ask(ctx, c, api.OpOpen, q)
}

func (c *Client) SaveState(ctx context.Context, origins []string) (api.State, error) {
	return Ask(ctx, c, api.OpSaveState, api.StateRequest{Origins: origins})
}

func (c *Client) LoadState(ctx context.Context, s api.State, origins []string) (api.StateLoaded, error) {
	return Ask(ctx, c, api.OpLoadState, api.StateRequest{Origins: origins, State: &s})
}

func (c *Client) Type(ctx context.Context, q api.TypeRequest) (api.Typed, error) {
	return Ask(ctx, c, api.OpType, q)
}

func (c *Client) UploadFolder(ctx context.Context) (api.UploadFolder, error) {
	return Ask(ctx, c, api.OpUploads, struct{}{})
}

func (c *Client) Targets(ctx context.Context) ([]api.Target, error) {
	list, err := Ask(ctx, c, api.OpTargets, api.VerbRequest[struct{}]{})
	return list.Targets, err
}

func (c *Client) CloseTarget(ctx context.Context, target, onDialog string) (api.Page, error) {
	return Ask(ctx, c, api.OpCloseTarget, api.TargetRequest{Target: target, OnDialog: onDialog})
}

func (c *Client) Status(ctx context.Context, all bool) (api.Status, error) {
	return Ask(ctx, c, api.OpStatus, api.StatusRequest{All: all})
}

func (c *Client) Events(ctx context.Context, q api.EventsRequest) (api.Events, error) {
	return Ask(ctx, c, api.OpEvents, q)
}

func (c *Client) Sessions(ctx context.Context) ([]api.SessionInfo, error) {
	return Ask(ctx, c, api.OpSessions, struct{}{})
}

func (c *Client) EndConnection(ctx context.Context) error {
	_, err := Ask(ctx, c, api.OpEndConnection, struct{}{})
	return err
}
