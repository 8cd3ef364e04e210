// Package sdk carries the Go SDK's source, so that a plugin can be built in an
// empty folder without a network.
package sdk

import "embed"

// Go holds go/*.go, the package github.com/parley-tools/parley/sdk/go without
// its tests.
//
//go:embed go/abi_wasip1.go go/call.go go/doc.go go/errors.go go/manifest.go go/origin.go go/origin_wasip1.go
//go:embed go/plugin.go go/schema.go go/serve.go
var Go embed.FS

// ABI is the text of the ABI that all SDKs keep.
//
//go:embed abi.md
var ABI string
