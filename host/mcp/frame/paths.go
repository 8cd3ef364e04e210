package frame

import (
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ShortenPaths shortens the paths in errors and warnings by short. Records keep whole paths.
func ShortenPaths(short func(text string) string, result sdk.Result, err error) (sdk.Result, error) {
	if called, is := result.(*sdk.CallToolResult); is && called != nil {
		for _, c := range called.Content {
			if text, is := c.(*sdk.TextContent); is && (called.IsError || strings.HasPrefix(text.Text, "warning: ")) {
				text.Text = short(text.Text)
			}
		}
	}
	if err == nil || short(err.Error()) == err.Error() {
		return result, err
	}
	hidden := &jsonrpc.Error{Message: short(err.Error())}
	if e, is := errors.AsType[*jsonrpc.Error](err); is {
		hidden.Code, hidden.Message, hidden.Data = e.Code, short(e.Message), []byte(short(string(e.Data)))
	}
	return result, hidden
}
