package call

import (
	"context"
	"slices"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// watchInterval is how often a plugin's call under way is checked against the policy and the catalog. A revoked grant
// and a removed plugin have to end it within a second.
const watchInterval = 400 * time.Millisecond

// watch ends a plugin's call with denied when a right that it has is revoked, when its caller may no longer make it, or
// when the plugin is removed. The call has the returned context; stop ends the watch.
func (r *run) watch(ctx context.Context) (watched context.Context, stop func()) {
	info := r.address.Provider.Info()
	if info.Kind == manifest.KindBuiltin {
		return ctx, func() {}
	}
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		failed := 0
		for {
			select {
			case <-watched.Done():
				return
			case <-tick.C:
			}
			lost, err := r.lost(watched, info)
			switch {
			case err == nil:
				failed = 0
			case host.AsError(err).Code == host.Denied:
				lost = host.AsError(err)
			default: // a file that is just being written, unless it stays like that
				if failed++; failed > 1 {
					lost = host.AsError(err)
				}
			}
			if lost != nil {
				cancel(lost)
				return
			}
		}
	}()
	return watched, func() { cancel(nil) }
}

// lost returns the error that ends a call whose rights or plugin are gone, or nil.
func (r *run) lost(ctx context.Context, info host.Info) (*host.Error, error) {
	r.host.Refresh()
	now, ok := r.host.Catalog().Provider(info.Name)
	if !ok || now.Info().Identity() != info.Identity() && now.Info().Owner == host.OwnerShipped {
		return host.Errorf(host.Denied, "%s was removed, which ended the call", info.Name), nil
	}
	d, err := r.host.cfg.Policy.Decide(ctx, r.auth.asked)
	if err != nil {
		return nil, err
	}
	if d.Verdict == host.Deny {
		return &host.Error{Code: host.Denied, Steps: d.Steps,
			Message: "the policy has changed, which ended the call: " + d.Reason}, nil
	}
	has := d.Grant.Names()
	for _, right := range r.auth.granted {
		if !slices.Contains(has, right) {
			return &host.Error{Code: host.Denied, Denied: []host.Denial{{Right: right, Why: "it was revoked"}},
				Message: "not granted any longer: " + right + ", which ended the call",
				Steps:   []host.Step{host.OperatorStep(host.OpPolicyExplain, info.Name)}}, nil
		}
	}
	return nil, nil
}
