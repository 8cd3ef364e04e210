// Package sdk embeds the SDKs, so that a plugin can be built in an empty folder
// without a network.
package sdk

import "embed"

//go:generate go run ./internal/gen

// Go holds go/*.go, the package github.com/parley-tools/parley/sdk/go without
// its tests.
//
//go:embed go/abi_wasip1.go go/call.go go/content.go go/decode.go go/doc.go go/errors.go go/file.go go/forms.go
//go:embed go/manifest.go go/origin.go go/origin_wasip1.go go/plugin.go go/schema.go go/serve.go go/types.go
var Go embed.FS

// ABI is the specification that every SDK implements.
//
//go:embed abi.md
var ABI string

// C is parley.h, the SDK for C and C++.
//
//go:embed c/parley.h
var C []byte

// Rust is parley.rs, the SDK for Rust.
//
//go:embed rust/parley.rs
var Rust []byte

// JS is parley.d.ts, the types of what plugins in JavaScript find.
//
//go:embed js/parley.d.ts
var JS []byte

// Templates holds the source of a small plugin in each language, and a
// manifest for those that do not derive it from their source. NAME stands for
// the name of the plugin.
//
//go:embed templates
var Templates embed.FS
