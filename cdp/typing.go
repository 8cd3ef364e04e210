package cdp

import (
	"context"
	"encoding/json"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
)

// typeSecret types a secret into the focused element, if the policy binds it to the origin of that frame.
func (p *Provider) typeSecret(ctx context.Context, r *host.Request) (*host.Result, error) {
	var q struct {
		Secret string `json:"secret"`
		Submit bool   `json:"submit"`
	}
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	c, err := p.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	secret, err := r.BoundSecret(ctx, q.Secret)
	if err != nil {
		return nil, err
	}
	done, err := c.Type(ctx, api.TypeRequest{Target: r.Options.Target, Text: secret.Value, Origins: secret.Origins,
		Submit: q.Submit})
	if err != nil {
		return nil, p.hostError(err, r)
	}
	return result(done)
}
