package verb

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// maxHosts limits the elements that one call asks for closed shadow roots.
const maxHosts = 100

// AdoptRoots returns what uses an array of elements: it calls the function adopt of a script for each that has a closed
// shadow root. The value is how many have one.
func (e *Verbs) AdoptRoots(ctx context.Context, t *target.Target, frame string, s api.PageScript) func(string) (
	json.RawMessage, *api.Error,
) {
	return func(array string) (json.RawMessage, *api.Error) {
		adopted, err := e.adoptRoots(ctx, t, frame, s, array)
		return scan.Marshal(adopted), err
	}
}

func (e *Verbs) adoptRoots(ctx context.Context, t *target.Target, frame string, s api.PageScript, array string) (
	int, *api.Error,
) {
	const group = "parley-closed-roots"
	defer post(e.sender, t, runtime.ReleaseObjectGroup, runtime.ReleaseObjectGroupParams{ObjectGroup: group})
	var world struct{ ID runtime.ExecutionContextID }
	if json.Unmarshal(e.scriptContext(t, frame, s), &world) != nil {
		return 0, nil // the document has been replaced
	}
	hosts, err := target.Execute(ctx, e.sender, t, runtime.GetProperties,
		runtime.GetPropertiesParams{ObjectID: runtime.RemoteObjectID(array), OwnProperties: new(true)})
	if err != nil {
		return 0, err
	}
	adopted := 0
	for _, host := range hosts.Result[:min(len(hosts.Result), maxHosts)] {
		if host.Value == nil || host.Value.ObjectID == "" {
			continue // the length
		}
		described, err := target.Execute(ctx, e.sender, t, dom.DescribeNode,
			dom.DescribeNodeParams{ObjectID: host.Value.ObjectID})
		if err != nil {
			continue // it is gone
		}
		for _, root := range described.Node.ShadowRoots {
			if root.ShadowRootType != cdp.ShadowRootTypeClosed {
				continue
			}
			resolved, err := target.Execute(ctx, e.sender, t, dom.ResolveNode, dom.ResolveNodeParams{
				BackendNodeID: root.BackendNodeID, ExecutionContextID: world.ID, ObjectGroup: group})
			if err != nil {
				continue
			}
			call := runtime.CallFunctionOnParams{ObjectID: host.Value.ObjectID, Silent: new(true),
				FunctionDeclaration: fmt.Sprintf("function (root) { globalThis[%q].exports.adopt(this, root); }", api.ExportsKey),
				Arguments:           []*runtime.CallArgument{{ObjectID: resolved.Object.ObjectID}}}
			_, err = target.Execute(ctx, e.sender, t, runtime.CallFunctionOn, call)
			if err == nil {
				adopted++
			}
		}
	}
	return adopted, nil
}
