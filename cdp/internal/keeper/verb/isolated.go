package verb

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// worldName is the name of the isolated worlds in which the keeper's own functions run: they see the document of a
// frame, but nothing that its scripts have replaced.
const worldName = "parley"

// callInFrame calls a function in an isolated world of a frame, and returns its result by value. A world ends with its
// document. The number of one may then be that of another document's, so a function that depends on an origin checks
// location.origin itself, which no page can replace, before it uses its other arguments.
func callInFrame[R any](ctx context.Context, s *target.Sender, t *target.Target, frame, function string, args ...any) (
	result R, err *api.Error,
) {
	raw, err := callInWorld(ctx, s, t, frame, function, true, args...)
	if err != nil {
		return result, err
	}
	failed := json.Unmarshal(scan.Field(raw, "result", "value"), &result)
	if thrown := scan.Field(raw, "exceptionDetails"); thrown != nil { // its message may repeat an argument
		failed = fmt.Errorf("it threw %s", scan.Text(thrown, "exception", "className"))
	}
	if failed != nil {
		return result, api.Errorf(api.CodeProtocolError, "a function of the keeper failed in the page: %v", failed)
	}
	return result, nil
}

// callInWorld calls a function in an isolated world of a frame, and returns what Runtime.callFunctionOn does: the
// result by value, or a reference to an object in that world.
func callInWorld(ctx context.Context, s *target.Sender, t *target.Target, frame, function string, byValue bool,
	args ...any) (
	json.RawMessage, *api.Error,
) {
	made, err := target.Execute(ctx, s, t, page.CreateIsolatedWorld,
		page.CreateIsolatedWorldParams{FrameID: cdp.FrameID(frame), WorldName: worldName})
	if err != nil {
		return nil, err
	}
	given := make([]map[string]any, len(args))
	for i, arg := range args {
		given[i] = map[string]any{"value": arg}
	}
	return s.Do(ctx, t, "Runtime.callFunctionOn", scan.Marshal(map[string]any{
		"functionDeclaration": function, "executionContextId": made.ExecutionContextID, "arguments": given,
		"returnByValue": byValue, "silent": true,
	}))
}
