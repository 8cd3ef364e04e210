// Package policy reads the operator's TOML and decides by it: who may call which tool, and what a
// plugin may touch. It asks nobody and shows nothing; the command line does that.
//
// Two files of one schema lie in the folder of the configuration. policy.toml is written by hand;
// grants.toml is written by `parley policy grant` and `revoke`. Where both say something about the same
// key, policy.toml wins. A file that is there and cannot be read in full stops everything; it never
// means that there is no policy.
//
//	[operator]
//	allow_yes = false              # whether --yes may stand for a person where there is no terminal
//	require_signer = false         # whether every installed plugin must be signed with a trusted key
//
//	[defaults]
//	timeout = "30s"                # the most that a call may take, 1ms to 24h
//	isolate = "none"               # or "process"
//
//	[plugin.github]
//	digest = "sha256:.."           # or signer = "..": what the grants and settings are bound to
//	grants = ["fs:ro:/srv/data=/data", "http:GET,POST:https://api.github.com", "tool:cdp.Page.*",
//	          "env:LANG", "secret:GITHUB_TOKEN", "clock", "random"]
//	isolate = "process"
//	[plugin.github.limits]
//	memory_mib = 128               # 1 to 4096
//	timeout = "10s"                # instead of the one in [defaults]
//	output_bytes = 1048576         # 1 to 1073741824
//	[plugin.github.settings]       # any table; the plugin gets it as JSON
//
//	[callers."mcp:*"]              # cli, mcp:CLIENT, mcp-http:CLIENT, plugin:NAME; "*" may end a name
//	allow = ["*"]
//	deny = ["cdp.Browser.*"]
//	confirm = ["effect:destructive"]
//
//	[secrets.GITHUB_TOKEN]
//	from = "env:GITHUB_TOKEN"      # or "file:/PATH", "store", "cmd:PROGRAM ARGUMENTS" (no shell)
//
// # Callers
//
// A rule is PLUGIN.TOOL; a plugin or group, for all that is in it; the beginning of names and then "*",
// which stands for all the rest, dots too; or effect:read, effect:write, effect:destructive. In deny and
// confirm an effect means also what is worse. Case does not count. Deny beats confirm beats allow; what
// is not allowed is denied, also if confirm names it.
//
// Of the entries that fit a caller, each of the three lists is taken from the most specific entry that
// has it: the exact name, then the longest pattern. A list that no entry has is the default for that
// kind of caller:
//
//	cli         allow = ["*"]
//	mcp         allow = ["*"], confirm = ["effect:destructive"]     MCP over stdio
//	mcp-http    allow = ["effect:read"]                             MCP over the network
//	plugin      allow = ["*"], of the tools that the plugin was granted
//
// A caller over the network must also pass what is written for mcp:CLIENT. The name of an MCP client is
// what it says of itself: write the strict rules for mcp:*.
//
// # Rights
//
// A plugin has what its manifest asks for and the policy grants, never more. Grants and settings hold
// for the digest or signer beside them and for nothing else of the same name; limits and isolate hold
// for every version. What is compiled in has no grants.
//
// What policy.toml binds to another digest or signer does not run at all, and neither does, under require_signer,
// what is installed without a signature of a trusted key. A signer that policy.toml names is trusted for that plugin;
// a signer in grants.toml must be trusted besides.
//
// A wildcard in a tool: grant never gives what reaches outside a page (Browser.*, Target.*, other
// sites' cookies, files and more); such tools are granted by name.
package policy
