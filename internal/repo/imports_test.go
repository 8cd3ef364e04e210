// Package repo tests the repository as a whole: which package may import which, what the documents claim and show, and
// how the code is written.
//
// The tables of this file are policy, not a description. When one of its tests fails, fix the import; change a table
// only together with the design that it states:
//
//	cmd/parley/internal: cli -> {tools, plugins, learning, history, admin, serve} -> command
//	    -> parley (the root) -> {host/admit, host/login}
//	    -> {host/docs, host/egress, host/learn, host/mcp, host/oci, host/policy, host/record, host/signature,
//	        host/wasm, cdp, plugins, sdk}
//	    -> host -> {host/approval, host/job, host/outbound, host/segment} -> {host/caller, host/step} -> host/grant
//	    -> {manifest -> manifest/schema -> manifest/jsontext, host/protect}
//
// host/advice lies below host/call: what refuses a call also corrects it. The front ends pass all that they offer
// through it.
//
// Siblings never import each other. If one requires another, host has an interface that the root implements. sdk/go
// and the plugins are compiled into guests, so they import nothing of the host, and sdk/go imports only the standard
// library.
package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/parley-tools/parley"

// root is the repository, relative to the folder of this package, in which its tests run.
const root = "../.."

// layers says which packages of the module each layer may import. A package belongs to the layer with the longest
// matching path; a layer may always import itself and what lies below it.
var layers = map[string][]string{
	"manifest/jsontext": {"internal/lazy"},
	"manifest/spelling": {},
	"manifest/schema":   {"internal/lazy", "internal/lists", "manifest/jsontext", "manifest/spelling"},
	"manifest/document": {"internal/lists", "manifest/jsontext", "manifest/schema"},
	"manifest/peers":    {"internal/lazy", "manifest", "manifest/jsontext", "manifest/schema", "manifest/spelling"},
	"manifest": {
		"internal/lazy", "internal/lists", "manifest/document", "manifest/jsontext", "manifest/schema",
		"manifest/spelling",
	},
	"manifest/generate":        {"manifest/jsontext", "manifest/schema"},
	"manifest/lint/vocabulary": {"internal/lazy"},
	"manifest/lint": {
		"internal/lazy", "internal/lists", "manifest", "manifest/jsontext", "manifest/lint/vocabulary", "manifest/schema",
		"manifest/spelling",
	},
	// below host, because every package that reads a file of the host does it by this loader
	"host/protect": {},
	// shared types, which every room that may import host may import
	"host/grant":    {"manifest"},
	"host/caller":   {"host/grant"},
	"host/step":     {"manifest", "manifest/jsontext"},
	"host/job":      {"host/caller", "host/grant", "host/step", "manifest"},
	"host/outbound": {"host/grant", "manifest", "manifest/jsontext"},
	"host/approval": {"host/grant", "manifest"},
	"host/segment":  {"host/internal/index", "internal/lists", "manifest"},
	"host/internal/index": {
		"host/protect", "internal/lazy", "internal/lists", "manifest", "manifest/peers", "manifest/spelling",
	},
	"host": {
		"host/caller", "host/grant", "host/internal/index", "host/job", "host/outbound", "host/protect", "host/segment",
		"host/step", "internal/lists", "manifest", "manifest/jsontext", "manifest/schema", "manifest/spelling",
	},
	"host/session":   {"host", "host/protect", "manifest"},
	"host/origin":    {"host", "manifest", "manifest/jsontext", "manifest/schema", "manifest/spelling"},
	"host/reference": {"host", "manifest", "manifest/jsontext"},
	"host/option": {
		"host", "host/session", "manifest", "manifest/jsontext", "manifest/schema", "manifest/spelling",
	},
	"host/overlay":     {"host", "host/protect", "internal/lists", "manifest", "manifest/jsontext"},
	"host/redact":      {"host", "internal/lists", "manifest", "manifest/jsontext"},
	"host/commandline": {"host", "manifest"},
	"host/search":      {"host", "host/internal/index", "manifest"},
	"host/advice": {
		"host", "host/option", "host/origin", "internal/lists", "manifest", "manifest/jsontext", "manifest/peers",
		"manifest/schema", "manifest/spelling",
	},
	"host/rights": {"host", "host/origin", "manifest"},
	"host/call": {
		"host", "host/advice", "host/option", "host/origin", "host/protect", "host/redact", "host/rights", "host/search",
		"host/session", "internal/deadline", "internal/lazy", "internal/lists", "manifest", "manifest/jsontext",
		"manifest/schema",
	},
	"host/approve": {"host", "host/protect", "internal/durable", "internal/lists", "manifest"},
	"host/providertest": {
		"host", "host/call", "host/search", "manifest", "manifest/jsontext", "manifest/schema",
	},
	"internal/contain":  {},
	"internal/deadline": {},
	"internal/durable":  {},
	"internal/lazy":     {},
	"internal/lists":    {},
	"internal/query":    {},
	"internal/slots":    {"host/protect"},
	"internal/wire": {
		"host", "internal/lists", "manifest", "manifest/jsontext", "manifest/schema", "manifest/spelling",
	},
	// the rooms of wasm, from the bottom: each knows those above it in this list
	"host/wasm/internal/instrument": {"manifest"},
	"host/wasm/internal/world":      {"host", "host/protect", "internal/deadline", "manifest"},
	"host/wasm/internal/module":     {"host", "host/wasm/internal/instrument", "host/wasm/internal/world", "manifest"},
	"host/wasm/internal/guest": {
		"host", "host/protect", "host/wasm/internal/instrument", "host/wasm/internal/module",
		"host/wasm/internal/world", "internal/lazy", "internal/lists", "manifest",
	},
	"host/wasm/internal/cache": {
		"host/protect", "host/wasm/internal/guest", "host/wasm/internal/instrument", "host/wasm/internal/world",
		"host/wasm/store", "internal/durable", "internal/lazy", "manifest/jsontext",
	},
	"host/wasm/store": {
		"host", "host/protect", "host/wasm/internal/instrument", "host/wasm/internal/module", "host/wasm/internal/world",
		"internal/durable", "internal/lists", "manifest", "manifest/jsontext", "manifest/spelling",
	},
	"host/wasm": {
		"host", "host/protect", "host/wasm/internal/cache", "host/wasm/internal/guest", "host/wasm/internal/instrument",
		"host/wasm/internal/module", "host/wasm/internal/world", "host/wasm/store", "internal/contain",
		"internal/deadline", "internal/durable", "internal/lazy", "internal/lists", "internal/slots", "internal/wire",
		"manifest", "manifest/jsontext",
	},
	"host/mcp/access": {"host", "host/protect", "host/session", "manifest"},
	"host/mcp": {
		"host", "host/advice", "host/call", "host/commandline", "host/mcp/access", "host/mcp/envelope",
		"host/mcp/frame", "host/option",
		"host/protect", "host/search", "host/session", "internal/lists", "manifest", "manifest/jsontext",
		"manifest/schema", "manifest/spelling",
	},
	"host/mcp/envelope": {
		"host", "host/advice", "host/call", "host/option", "internal/lazy", "manifest", "manifest/jsontext",
		"manifest/schema",
	},
	"host/mcp/frame": {"internal/lazy", "manifest", "manifest/jsontext"},
	"host/policy": {
		"host", "host/origin", "host/protect", "host/quota", "internal/durable", "internal/lists", "manifest",
		"manifest/document", "manifest/jsontext", "manifest/schema", "manifest/spelling",
	},
	"host/login":     {"host", "host/policy", "manifest"},
	"host/signature": {"host", "internal/durable", "manifest"},
	"host/admit": {
		"host", "host/call", "host/option", "host/policy", "host/protect", "host/reference", "host/search",
		"host/signature", "host/wasm", "host/wasm/store", "internal/durable", "internal/lists", "manifest",
		"manifest/generate", "manifest/jsontext", "manifest/lint", "manifest/schema", "manifest/spelling",
	},
	"host/api": {"host", "host/origin", "host/redact", "internal/lazy", "internal/lists", "manifest", "manifest/jsontext"},
	"host/api/openapi": {
		"host", "host/origin", "internal/lazy", "internal/lists", "manifest", "manifest/jsontext", "manifest/lint",
		"manifest/schema", "manifest/spelling",
	},
	"host/egress": {"host", "host/origin", "manifest"},
	"host/quota":  {"host", "host/protect", "internal/slots", "manifest"},
	"host/docs": {
		"host", "host/call", "internal/lists", "manifest", "manifest/jsontext", "manifest/schema", "manifest/spelling",
	},
	"host/jq":         {"host", "internal/query", "manifest"},
	"host/learn/eval": {"host", "host/search", "internal/lists", "manifest"},
	"host/learn": {
		"host", "host/commandline", "host/learn/eval", "host/option", "host/overlay", "host/protect", "host/reference",
		"host/search", "internal/lazy", "internal/lists", "manifest", "manifest/generate",
		"manifest/jsontext", "manifest/lint", "manifest/peers", "manifest/schema", "manifest/spelling",
	},
	"host/record": {
		"host", "host/protect", "host/redact", "internal/durable", "internal/lazy", "internal/lists", "manifest",
		"manifest/jsontext", "manifest/schema",
	},
	"host/oci": {
		"host", "host/protect", "internal/durable", "internal/lazy", "manifest", "manifest/jsontext", "manifest/schema",
	},
	"cdp": {
		"cdp/internal/browser", "cdp/internal/keeper", "cdp/internal/keeper/api", "cdp/internal/protocol",
		"cdp/internal/words", "host", "host/origin", "host/protect", "internal/durable", "internal/wire", "manifest",
		"manifest/jsontext", "manifest/schema",
	},
	"cdp/page":              {"cdp", "cdp/internal/keeper/api", "cdp/internal/words", "host", "internal/lazy", "manifest"},
	"cdp/internal/words":    {"host", "manifest", "manifest/jsontext"},
	"cdp/internal/browser":  {"host", "host/protect", "manifest"},
	"cdp/internal/gen":      {"cdp/internal/protocol", "manifest"},
	"cdp/internal/protocol": {"manifest", "manifest/jsontext", "manifest/schema"},
	// the rooms of the keeper, from the bottom: each knows those above it in this list
	"cdp/internal/keeper/scan": {"manifest", "manifest/jsontext"},
	"cdp/internal/keeper/api":  {"cdp/internal/keeper/scan", "cdp/internal/protocol", "host", "internal/lazy", "manifest"},
	"cdp/internal/keeper/mux": {
		"cdp/internal/browser", "cdp/internal/keeper/api", "cdp/internal/keeper/scan",
	},
	"cdp/internal/keeper/mux/muxtest": {"cdp/internal/browser", "cdp/internal/keeper/scan"},
	"cdp/internal/keeper/target": {
		"cdp/internal/keeper/api", "cdp/internal/keeper/mux", "cdp/internal/keeper/scan", "cdp/internal/protocol", "manifest",
	},
	"cdp/internal/keeper/event": {
		"cdp/internal/keeper/api", "cdp/internal/keeper/mux", "cdp/internal/keeper/scan", "cdp/internal/keeper/target",
		"manifest",
	},
	"cdp/internal/keeper/tenant": {
		"cdp/internal/keeper/api", "cdp/internal/keeper/event", "cdp/internal/keeper/mux", "cdp/internal/keeper/scan",
		"cdp/internal/keeper/target", "cdp/internal/protocol", "host", "manifest",
	},
	"cdp/internal/keeper/verb": {
		"cdp/internal/browser", "cdp/internal/keeper/api", "cdp/internal/keeper/event", "cdp/internal/keeper/mux",
		"cdp/internal/keeper/scan", "cdp/internal/keeper/target", "cdp/internal/keeper/tenant", "cdp/internal/protocol",
		"manifest",
	},
	"cdp/internal/keeper/page": {
		"cdp/internal/keeper/api", "cdp/internal/keeper/event", "cdp/internal/keeper/scan", "cdp/internal/keeper/target",
		"cdp/internal/keeper/tenant", "cdp/internal/keeper/verb",
	},
	"cdp/internal/keeper/page/act": {
		"cdp/internal/keeper/api", "cdp/internal/keeper/page", "cdp/internal/keeper/scan",
		"cdp/internal/keeper/target", "cdp/internal/keeper/verb", "internal/lazy",
	},
	"cdp/internal/keeper/page/look": {
		"cdp/internal/keeper/api", "cdp/internal/keeper/page", "cdp/internal/keeper/scan", "internal/lazy",
	},
	"cdp/internal/keeper/page/environment": {
		"cdp/internal/keeper/api", "cdp/internal/keeper/event", "cdp/internal/keeper/page",
		"cdp/internal/keeper/scan", "internal/lazy",
	},
	"cdp/internal/keeper": {
		"cdp/internal/browser", "cdp/internal/keeper/api", "cdp/internal/keeper/event", "cdp/internal/keeper/mux",
		"cdp/internal/keeper/page", "cdp/internal/keeper/page/act", "cdp/internal/keeper/page/environment",
		"cdp/internal/keeper/page/look",
		"cdp/internal/keeper/scan", "cdp/internal/keeper/target", "cdp/internal/keeper/tenant",
		"cdp/internal/keeper/verb", "host", "host/protect", "internal/wire", "manifest",
	},
	"sdk":              {},
	"sdk/go":           {},
	"sdk/internal/gen": {"manifest/jsontext"},
	"plugins":          {"host", "manifest", "manifest/jsontext", "manifest/schema"},
	"plugins/json": {
		"internal/lazy", "internal/lists", "internal/query", "manifest/jsontext", "manifest/spelling", "sdk/go",
	},
	"plugins/text": {"sdk/go"},
	".": {
		"cdp", "cdp/page", "host", "host/admit", "host/api", "host/approve", "host/call", "host/egress", "host/jq",
		"host/login", "host/mcp", "host/overlay", "host/policy", "host/protect", "host/quota", "host/record",
		"host/redact", "host/search", "host/session", "host/signature", "host/wasm", "host/wasm/store", "internal/wire",
		"manifest", "plugins",
	},
	"cmd/parley/internal/command": {
		".", "cdp", "host", "host/admit", "host/advice", "host/call", "host/learn", "host/mcp",
		"host/mcp/envelope", "host/policy", "host/protect", "host/record", "host/session", "internal/lazy", "manifest",
		"manifest/document", "manifest/jsontext", "manifest/lint", "manifest/schema", "manifest/spelling",
	},
	"cmd/parley/internal/documents": {"cmd/parley/internal/command", "host", "internal/lazy"},
	"cmd/parley/internal/tools": {
		".", "cdp", "cmd/parley/internal/command", "cmd/parley/internal/documents", "host", "host/advice", "host/call",
		"host/jq", "host/learn", "host/learn/eval", "host/option", "host/reference", "host/search", "host/session",
		"internal/lazy", "manifest", "manifest/jsontext", "manifest/schema", "manifest/spelling",
	},
	"cmd/parley/internal/history": {
		"cmd/parley/internal/command", "host", "host/record", "manifest",
	},
	"cmd/parley/internal/plugins": {
		".", "cdp", "cmd/parley/internal/command", "cmd/parley/internal/tools", "host", "host/admit",
		"host/api/openapi", "host/call", "host/learn/eval", "host/oci", "host/policy", "host/protect",
		"host/signature", "host/wasm", "host/wasm/store", "internal/lazy", "manifest", "manifest/jsontext",
		"manifest/lint", "manifest/spelling", "sdk",
	},
	"cmd/parley/internal/learning": {
		".", "cmd/parley/internal/command", "cmd/parley/internal/history", "cmd/parley/internal/tools", "host",
		"host/call", "host/docs", "host/learn", "host/mcp", "host/mcp/envelope", "host/overlay", "host/record", "manifest",
		"manifest/jsontext",
	},
	"cmd/parley/internal/admin": {
		".", "cdp", "cmd/parley/internal/command", "host", "host/approve", "host/login", "host/policy", "host/record",
		"host/session", "host/wasm", "manifest", "manifest/schema",
	},
	"cmd/parley/internal/serve": {
		".", "cmd/parley/internal/command", "cmd/parley/internal/learning", "host", "host/mcp", "host/mcp/access",
		"host/protect", "manifest", "manifest/jsontext",
	},
	"cmd": {
		".", "cmd/parley/internal/admin", "cmd/parley/internal/command",
		"cmd/parley/internal/history", "cmd/parley/internal/learning", "cmd/parley/internal/plugins",
		"cmd/parley/internal/serve", "cmd/parley/internal/tools", "host", "host/advice", "host/call",
		"host/commandline", "internal/lazy", "manifest", "manifest/jsontext", "manifest/schema", "manifest/spelling",
	},
	"cmd/parleyd/internal/telemetry": {".", "host", "host/mcp", "host/wasm"},
	"cmd/parleyd/internal/fleet/catalog": {
		".", "host", "host/admit", "host/policy", "host/policy/operator", "host/protect", "host/signature", "host/wasm",
		"host/wasm/store", "internal/durable", "manifest",
	},
	"cmd/parleyd/internal/fleet/records": {
		"cmd/parleyd/internal/fleet", "cmd/parleyd/internal/fleet/catalog", "host", "host/record", "internal/durable",
	},
	"cmd/parleyd": { // a module of its own
		".", "cmd/parleyd/internal/telemetry", "cmd/parleyd/internal/fleet", "cmd/parleyd/internal/fleet/catalog",
		"cmd/parleyd/internal/fleet/records", "host", "host/mcp", "host/mcp/access", "host/mcp/frame", "host/policy",
		"host/protect", "host/signature", "host/wasm", "internal/durable", "internal/lazy", "manifest", "manifest/spelling",
	},
	"cmd/parleyd/internal/fleet": {
		".", "cmd/parleyd/internal/fleet/catalog", "host", "host/admit", "host/mcp/access", "host/protect",
		"host/signature", "host/wasm", "host/wasm/store",
		"internal/deadline", "internal/durable", "internal/lazy", "internal/slots", "internal/wire", "manifest", "plugins",
	},
	"bench":                 {"internal/foreign"},
	"bench/agent":           {"bench", "manifest/jsontext", "manifest/schema"},
	"bench/internal/ranked": {"cdp", "cdp/page", "host", "manifest"},
	"bench/catalogs": {
		"bench", "bench/internal/ranked", "host", "host/search", "internal/foreign", "manifest",
		"manifest/lint",
	},
	"bench/documents": {
		"bench", "host", "host/api", "host/api/openapi", "host/call", "manifest", "manifest/generate", "manifest/jsontext",
		"manifest/schema",
	},
	"bench/learning": {
		"bench", "cdp", "cdp/page", "host", "host/call", "host/learn", "host/overlay", "host/record", "host/search",
		"manifest", "manifest/jsontext", "manifest/schema",
	},
	"bench/scenarios": {"bench", "host/learn"}, // its client of models
	"bench/search":    {"bench", "bench/internal/ranked", "host", "host/learn/eval", "host/search"},
	"bench/trial": {
		"bench", "cdp", "host", "host/advice", "host/call", "internal/sample", "manifest", "manifest/jsontext",
	},
	"internal/demo":        {},
	"internal/foreign":     {},
	"internal/reasons":     {},
	"internal/release":     {},
	"internal/repo":        {},
	"internal/sample":      {},
	"internal/schemafacts": {"internal/lazy", "manifest"},
	"internal/testhome":    {},
	"internal/wasmtest":    {"host", "manifest"},
}

// words are the packages of words below host. What may import host may import them.
var words = []string{
	"host/approval", "host/caller", "host/grant", "host/job", "host/outbound", "host/segment", "host/step",
}

// testsMayImport are additional imports of _test.go files.
var testsMayImport = map[string][]string{
	"cdp/internal/keeper":        {"cdp/internal/keeper/mux/muxtest", "cdp/internal/protocol"},
	"cdp/internal/keeper/event":  {"cdp/internal/keeper/mux/muxtest"},
	"cdp/internal/keeper/mux":    {"cdp/internal/keeper/mux/muxtest"},
	"cdp/internal/keeper/target": {"cdp/internal/keeper/mux/muxtest"},
	"cdp/internal/keeper/tenant": {"cdp/internal/keeper/mux/muxtest"},
	"cdp/internal/keeper/verb":   {"cdp/internal/keeper/mux/muxtest"},
	"manifest":                   {"internal/schemafacts"},
	"host":                       {"host/providertest", "internal/schemafacts"},
	"host/api":                   {"host/call", "internal/foreign"},
	"host/login":                 {"host/egress", "internal/foreign"},
	"host/oci":                   {"internal/foreign"},
	"cdp": {
		"cdp/internal/keeper/verb", "host/call", "host/learn/eval", "host/providertest", "host/search",
		"internal/schemafacts",
	},
	"cdp/page": {
		"host/call", "host/providertest", "internal/reasons", "internal/sample", "internal/schemafacts",
		"manifest/jsontext", "manifest/lint", "manifest/schema",
	},
	"plugins":   {"internal/reasons"},
	"host/docs": {"internal/schemafacts"},
	"host/mcp":  {".", "host/approve", "host/wasm", "host/wasm/store", "internal/foreign", "internal/testhome"},
	"host/wasm": {
		"host/call", "host/providertest", "host/search", "internal/foreign", "internal/wasmtest", "manifest/lint",
	},
	"host/admit": {".", "internal/sample", "internal/testhome"},
	".": {
		"host/providertest", "internal/sample", "internal/schemafacts", "internal/testhome", "manifest/generate",
		"manifest/jsontext",
	},
	"cmd": {
		".", "cdp", "host/docs", "host/egress", "host/learn", "host/mcp", "host/mcp/envelope", "host/policy",
		"host/providertest", "host/record", "host/search", "host/session", "host/signature", "host/wasm", "host/wasm/store",
		"internal/foreign", "internal/sample", "internal/schemafacts", "internal/testhome", "manifest/generate",
		"manifest/lint", "manifest/peers",
	},
	"cmd/parleyd/internal/fleet/catalog": {"cmd/parleyd/internal/fleet", "internal/testhome"},
	"cmd/parleyd/internal/telemetry":     {"internal/testhome"},
	"cmd/parleyd/internal/fleet": {
		"cmd/parleyd/internal/fleet/records", "host/providertest", "internal/testhome", "internal/wasmtest",
	},
	"cmd/parley/internal/serve": {"."},
	"cmd/parleyd":               {"internal/foreign", "internal/testhome"},
	"internal/repo":             {"internal/testhome"},
	"bench":                     {"internal/testhome"},
	"bench/agent":               {"internal/testhome"},
	"bench/documents":           {"internal/sample"},
	"bench/scenarios":           {"internal/sample", "internal/testhome"},
	"host/call": {
		"host/learn/eval", "host/overlay", "host/providertest", "internal/schemafacts", "manifest/spelling",
	},
	"host/wasm/internal/instrument": {"internal/foreign"},
}

// dependencies says which layers may import a third-party module; "cmd/..." are all below cmd. The other
// modules of go.mod come with these. RATIONALE.md says why each is there.
var dependencies = map[string][]string{
	"aead.dev/minisign": {"host/signature"},
	"github.com/chromedp/cdproto": {
		"cdp/internal/browser", "cdp/internal/keeper", "cdp/internal/keeper/event", "cdp/internal/keeper/mux",
		"cdp/internal/keeper/target", "cdp/internal/keeper/tenant", "cdp/internal/keeper/verb",
	},
	"github.com/coreos/go-oidc/v3":         {"cmd/..."}, // of cmd/parleyd alone
	"github.com/gofrs/flock":               {"host/protect", "host/record", "internal/testhome"},
	"github.com/gorilla/websocket":         {"cdp/internal/browser", "cdp/internal/keeper"},
	"github.com/blevesearch/snowballstem":  {"host/internal/index", "bench/internal/ranked"},
	"github.com/itchyny/gojq":              {"bench", "cmd/...", "host/jq", "internal/query", "plugins/json"},
	"github.com/landlock-lsm/go-landlock":  {"internal/contain"},
	"github.com/pelletier/go-toml/v2":      {"cmd/...", "host/policy", "plugins/json"},
	"github.com/pkoukk/tiktoken-go":        {"bench"},
	"github.com/pkoukk/tiktoken-go-loader": {"bench"},
	"github.com/rogpeppe/go-internal":      {"cdp/page", "cmd/..."}, // cmd: tests
	"github.com/spf13/cobra":               {"cmd/..."},
	"github.com/spf13/pflag":               {"cmd/..."},
	// sdk: a test, which calls a guest through the ABI alone
	"github.com/tetratelabs/wazero": {
		"host/wasm", "host/wasm/internal/guest", "host/wasm/internal/instrument", "host/wasm/internal/world", "sdk",
	},
	"github.com/xeipuuv/gojsonschema": {"manifest/document", "manifest/schema"}, // manifest/schema: tests
	"go.yaml.in/yaml/v3":              {"host/api/openapi", "plugins/json"},
	"golang.org/x/image":              {"cdp/internal/keeper/page/look"},
	"golang.org/x/sys": {
		"cdp/internal/browser", "cdp/internal/keeper", "cdp/internal/keeper/mux", "cmd/...", "host/policy",
		"host/wasm", "host/wasm/internal/cache", "host/wasm/internal/world", "host/wasm/store",
		"internal/contain", "internal/slots", "internal/wire",
	},
	"golang.org/x/term": {"cmd/..."},
	// of the service, which is a module of its own
	"github.com/nats-io":         {"cmd/..."},
	"github.com/prometheus":      {"cmd/parleyd/internal/telemetry"},
	"go.opentelemetry.io":        {"cmd/parleyd/internal/telemetry"},
	"google.golang.org/protobuf": {"cmd/parleyd/internal/telemetry"}, // tests

	"github.com/modelcontextprotocol/go-sdk": {
		"bench", "bench/agent", "bench/scenarios", "cmd/...", "host/login", "host/mcp", "host/mcp/frame", // cmd: tests
	},
}

// vagueNames say nothing about what a package does, so such a package would collect everything.
var vagueNames = []string{"util", "utils", "common", "types", "helpers", "helper", "misc", "shared", "base"}

// source is one Go file of the tree, for any system.
type source struct {
	path string // of the file, from the root
	dir  string // of its package, from the root; "." is the root
	test bool
	text []byte
	ast  *ast.File // with comments
}

// fileSet has the positions of all sources.
var fileSet = token.NewFileSet()

// parseSource returns the source of a file with a path from the root.
func parseSource(name string, text []byte) (source, error) {
	f, err := parser.ParseFile(fileSet, name, text, parser.ParseComments)
	return source{name, path.Dir(name), strings.HasSuffix(name, "_test.go"), text, f}, err
}

var readSources = sync.OnceValues(func() ([]source, error) {
	var all []source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := d.Name()
			if name != root && (base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") ||
				strings.HasPrefix(base, "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		s, err := parseSource(filepath.ToSlash(relative), text)
		all = append(all, s)
		return err
	})
	return all, err
})

func sources(t *testing.T) []source {
	t.Helper()
	all, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// layerOf returns the layer of a folder, or "" if it has none.
func layerOf(dir string) string {
	if dir == "." {
		return dir
	}
	for ; dir != "." && dir != "/"; dir = path.Dir(dir) {
		if _, ok := layers[dir]; ok {
			return dir
		}
	}
	return ""
}

func TestImportsRunOneWay(t *testing.T) {
	for _, s := range sources(t) {
		layer := layerOf(s.dir)
		if layer == "" {
			t.Errorf("%s: this folder is in no layer of the table", s.path)
			continue
		}
		for _, spec := range s.ast.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if complaint := violation(layer, s.test, imported); complaint != "" {
				t.Errorf("%s: %s", s.path, complaint)
			}
		}
	}
}

// violation returns the fault of an import, or "".
func violation(layer string, test bool, imported string) string {
	ours, isOurs := strings.CutPrefix(imported, module+"/")
	if imported == module {
		ours, isOurs = ".", true
	}
	switch {
	case isOurs:
		target := layerOf(ours)
		allowed := slices.Contains(layers[layer], target) || target == layer ||
			slices.Contains(words, target) && slices.Contains(layers[layer], "host") ||
			test && slices.Contains(testsMayImport[layer], target)
		if target == "" || !allowed {
			return layer + " may not import " + ours +
				"; declare what it needs of it as an interface in host, which the root passes in"
		}
	case strings.Contains(strings.SplitN(imported, "/", 2)[0], "."):
		for dependency, users := range dependencies {
			if imported == dependency || strings.HasPrefix(imported, dependency+"/") {
				isCommand := layer == "cmd" || strings.HasPrefix(layer, "cmd/")
				if !slices.Contains(users, layer) && !(isCommand && slices.Contains(users, "cmd/...")) {
					return layer + " may not import " + imported + "; it belongs to " + strings.Join(users, ", ")
				}
				return ""
			}
		}
		return imported + " is not a dependency that this table allows"
	}
	return ""
}

// TestViolation checks that the tables are applied.
func TestViolation(t *testing.T) {
	for _, c := range []struct {
		layer    string
		test     bool
		imported string
		ok       bool
	}{
		{"manifest", false, module + "/manifest/schema", true},
		{"manifest/schema", false, module + "/manifest", false},
		{"manifest", false, module + "/host", false},
		{"host", false, module + "/host/internal/index", true},
		{"host", false, module + "/host/wasm", false},
		{"host", false, module + "/host/step", true},
		{"host/step", false, module + "/host", false},
		{"cdp", false, module + "/host/step", true},
		{"manifest", false, module + "/host/step", false},
		{"host", true, module + "/cdp", false},
		{"host/wasm", false, module + "/host/policy", false},
		{"host/wasm", true, module + "/host/egress", false},
		{"host/wasm", false, module + "/host/providertest", false},
		{"host/wasm", true, module + "/host/providertest", true},
		{"cdp", false, module + "/host/record/trace", false},
		{"cdp", false, module + "/cdp/internal/keeper", true},
		{"cmd/parley/internal/admin", false, module + "/host/wasm", true},
		{"cmd/parley/internal/admin", false, module + "/cmd/parley/internal/plugins", false},
		{"cmd", false, module + "/cmd/parley/internal/command", true},
		{"cmd/parley/internal/command", false, module, true},
		{"cmd/parley/internal/command", false, module + "/cmd/parley/internal/cli", false},
		{"cmd/parley/internal/command", false, "github.com/spf13/cobra", true},
		{"host", false, module, false},
		{".", false, module + "/host/wasm", true},
		{".", false, module + "/cmd/parley/internal/cli", false},
		{"cmd", false, module + "/nowhere", false},
		{"sdk/go", false, module + "/manifest", false},
		{"sdk/go", false, "encoding/json", true},
		{"sdk/go", true, "github.com/tetratelabs/wazero", false},
		{"plugins/text", false, module + "/plugins/json", false},
		{"host/wasm", false, "github.com/tetratelabs/wazero/api", true},
		{"cmd", false, "github.com/tetratelabs/wazero", false},
		{"host", false, "example.com/surprise", false},
	} {
		if complaint := violation(c.layer, c.test, c.imported); (complaint == "") != c.ok {
			t.Errorf("%s (test %v) imports %s: %q, want ok %v", c.layer, c.test, c.imported, complaint, c.ok)
		}
	}
}

// TestOnePackageDoc verifies that each package has exactly one package comment, and no vague name.
func TestOnePackageDoc(t *testing.T) {
	docs, hasCode := map[string][]string{}, map[string]bool{}
	for _, s := range sources(t) {
		if slices.Contains(vagueNames, s.ast.Name.Name) {
			t.Errorf("%s: invalid package name %s; name the package for its job", s.path, s.ast.Name.Name)
		}
		hasCode[s.dir] = hasCode[s.dir] || !s.test
		if s.ast.Doc != nil {
			docs[s.dir] = append(docs[s.dir], s.path)
		}
	}
	for dir := range hasCode {
		if len(docs[dir]) != 1 {
			t.Errorf("%s has %d package docs %v, want exactly one", dir, len(docs[dir]), docs[dir])
		}
	}
}

// TestGoMod keeps the main module installable and its direct requirements few.
func TestGoMod(t *testing.T) {
	const most = 18
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	direct := 0
	for line := range strings.Lines(string(data)) {
		word := strings.Fields(line)
		if len(word) > 0 && (word[0] == "replace" || word[0] == "exclude") {
			t.Errorf("go.mod: %q: go install MODULE@VERSION refuses a module that replaces others", strings.TrimSpace(line))
		}
		if strings.HasPrefix(line, "\t") && !strings.HasSuffix(line, "// indirect\n") {
			direct++
		}
	}
	if direct > most {
		t.Errorf("go.mod has %d direct requirements, at most %d: a new one replaces another, or RATIONALE.md argues for it",
			direct, most)
	}
}

// TestShippedPluginsAreSmall limits the size of the binary and the time of cold calls: about 20 ms per MB of Go wasm.
func TestShippedPluginsAreSmall(t *testing.T) {
	const most = 2_500_000
	packed, err := filepath.Glob(filepath.Join(root, "plugins", "*", "plugin.wasm.gz"))
	if err != nil || len(packed) == 0 {
		t.Fatal("no shipped plugin found: ", err)
	}
	for _, name := range packed {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > most {
			t.Errorf("%s has %d bytes, at most %d", name, info.Size(), most)
		}
	}
}

// TestRaceDetectorRuns checks that make test runs the race detector on each package that asks whether it runs.
func TestRaceDetectorRuns(t *testing.T) {
	_, rules, _ := strings.Cut(read(t, "Makefile").text, "\ntest-race:")
	rules, _, _ = strings.Cut(rules, "\n\n")
	_, list, _ := strings.Cut(read(t, "Makefile").text, "\nRACE := ")
	list, _, _ = strings.Cut(list, "\n")
	tested := strings.Fields(list + " " + rules)
	for _, s := range sources(t) {
		if path.Base(s.path) == "race_test.go" && !slices.Contains(tested, "./"+s.dir) &&
			!slices.Contains(tested, "./"+path.Dir(s.dir)+"/...") && !slices.Contains(tested, "./"+s.dir+"/...") {
			t.Errorf("make test does not run the race detector on %s", s.dir)
		}
	}
}
