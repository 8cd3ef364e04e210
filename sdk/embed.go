// Package sdk embeds the source of the Go SDK, so that a plugin can be built in
// an empty folder without a network.
package sdk

import "embed"

//go:generate go run ./internal/gen

// Go holds go/*.go, the package github.com/parley-tools/parley/sdk/go without
// its tests.
//
//go:embed go/abi_wasip1.go go/call.go go/content.go go/doc.go go/errors.go go/forms.go go/manifest.go
//go:embed go/origin.go go/origin_wasip1.go go/plugin.go go/schema.go go/serve.go go/types.go
var Go embed.FS

// ABI is the specification that every SDK implements.
//
//go:embed abi.md
var ABI string
