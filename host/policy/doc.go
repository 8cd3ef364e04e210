// Package policy reads the operator's TOML files and decides by them: who may call which tool, and which rights a
// plugin has. It does not interact with anybody; front ends do.
//
// The configuration folder holds two files of the same schema. policy.toml is written by hand; grants.toml is written
// by `parley policy grant` and `revoke`. Where both set the same key, policy.toml wins. A file that exists but cannot
// be read in full stops everything; it never means that there is no policy.
//
//	[operator]
//	allow_yes = false              # whether --yes may confirm where there is no terminal
//	require_signer = false         # whether every installed plugin must be signed with a trusted key
//
//	[defaults]
//	timeout = "30s"                # the longest that a call may take, 1ms to 24h
//	isolate = "process"            # "call", "none"; without it "process" where the system can
//
//	[plugin.github]
//	digest = "sha256:.."           # or signer = "..": what the grants and settings are bound to
//	grants = ["fs:ro:/srv/data=/data", "http:GET,POST:https://api.github.com", "tool:cdp.Page.*",
//	          "env:LANG", "secret:GITHUB_TOKEN", "browser:session", "clock", "random"]
//	isolate = "process"
//	run = "fleet:POOL"             # on the workers of a pool, where a service serves with a fleet
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
//	unconfirmed = ["cdp.state"]    # of these, what needs no confirmation
//
//	[secrets.GITHUB_TOKEN]        # also origins = ["https://github.com"], into whose pages it may be typed
//	from = "env:GITHUB_TOKEN"      # or "file:/PATH", "store", "cmd:PROGRAM ARGUMENTS" (no shell)
//
//	[origins."https://staging.test"]        # what the browser would refuse there
//	tls = "pin:sha256/HASH"                 # of the server's public key; or "any"
//	login = "secret:STAGING"                # USER:PASSWORD
//
// # Callers
//
// A rule is PLUGIN.TOOL; a plugin or a group, for everything in it; the beginning of names followed by "*", which
// stands for any rest, dots included; or effect:read, effect:write, effect:destructive. In deny and confirm an effect
// includes the worse ones. Case does not matter. Deny beats confirm beats allow; what is not allowed is denied, even if
// confirm names it. What unconfirmed matches needs no confirmation; in grants.toml this holds only where policy.toml
// does not require the confirmation.
//
// Each of the other three lists is taken from the most specific entry that matches a caller and has the list: the exact
// name, then the longest pattern. A list that no entry has is the default for that kind of caller:
//
//	cli         allow = ["*"]
//	mcp         allow = ["*"], confirm = ["effect:destructive"]     MCP over stdio
//	mcp-http    allow = ["effect:read"]                             MCP over the network
//	plugin      allow = ["*"], of the tools that the plugin was granted
//
// A caller over the network must also satisfy the entries for mcp:CLIENT. An MCP client chooses its own name: write
// strict rules for mcp:*.
//
// # Rights
//
// A plugin has the rights that its manifest requests and the policy grants, never more. Grants and settings apply to
// the digest or signer beside them and to no other plugin of the same name; limits, isolate and run apply to every
// version. Only limits.timeout and the rules of callers apply to built-in plugins.
//
// A plugin that policy.toml binds to another digest or signer does not run at all. Neither does, under require_signer,
// an installed plugin without a signature of a trusted key. A signer that policy.toml names is trusted for that plugin;
// a signer that only grants.toml names must be trusted as well.
//
// A wildcard in a tool: grant never includes tools that reach outside a page (Browser.*, Target.*, other sites'
// cookies, files and more); such tools are granted by name.
package policy
