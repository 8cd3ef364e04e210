package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/manifest"
)

// Client is a client within the process of its server. It receives the bytes that a client on stdio receives, for
// callers that measure them or pass them on. It is not safe for concurrent use.
type Client struct {
	conn    sdk.Connection
	session *sdk.ServerSession
	lastID  int64
}

// Dial connects a client to the server in one mode. The error is invalid_args for an unknown mode.
func (s *Server) Dial(ctx context.Context, mode string) (*Client, error) {
	m, err := s.modeServer(mode)
	if err != nil {
		return nil, err
	}
	serverSide, clientSide := sdk.NewInMemoryTransports()
	c := &Client{}
	if c.session, err = m.server.Connect(ctx, serverSide, nil); err != nil {
		return nil, err
	}
	if c.conn, err = clientSide.Connect(ctx); err != nil {
		return nil, err
	}
	initialize := json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"parley","version":"` + s.cfg.Version + `"}}`)
	if _, err := c.Request(ctx, "initialize", initialize); err != nil {
		c.Close()
		return nil, err
	}
	return c, c.conn.Write(ctx, &jsonrpc.Request{Method: "notifications/initialized"})
}

// Request sends a request and returns its result as the server sent it. A JSON-RPC error is the cause of the error.
func (c *Client) Request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	raw, err := manifest.Marshal(params)
	if err != nil {
		return nil, err
	}
	c.lastID++
	id, _ := jsonrpc.MakeID(float64(c.lastID))
	if err := c.conn.Write(ctx, &jsonrpc.Request{ID: id, Method: method, Params: raw}); err != nil {
		return nil, err
	}
	for { // skip notifications
		message, err := c.conn.Read(ctx)
		if err != nil {
			return nil, err
		}
		if response, ok := message.(*jsonrpc.Response); ok && response.ID == id {
			if response.Error != nil {
				return nil, fmt.Errorf("%s: %w", method, response.Error)
			}
			return response.Result, nil
		}
	}
}

// Close ends the connection.
func (c *Client) Close() {
	_ = c.conn.Close()
	_ = c.session.Wait()
}
