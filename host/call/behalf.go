package call

import (
	"sync/atomic"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/redact"
	"github.com/parley-tools/parley/manifest"
)

// behalf says for whom a plugin makes a call. The zero value is that of a call from outside.
type behalf struct {
	// callers are the callers on whose behalf a plugin makes this call, outermost first. The plugin gains no right that
	// one of them does not have. callerGrant is the grant of that plugin, parentID the id of the call that makes this one.
	callers      []host.Principal
	callerGrant  host.Grant
	callerAsks   manifest.Capabilities // of that plugin's manifest
	callerEffect string                // of the tool that makes this call
	callerPlugin host.Provider         // that plugin; nil if the caller is not one
	// trusted means that the plugin is shipped: the callers on whose behalf it calls only deny tools by name.
	trusted bool
	// program is the plugin that makes this call as its own caller, with the capability caller; "" if none does, also not
	// further out.
	program  string
	parentID string
	// innerCalls counts the calls that plugins made on behalf of the outermost one. redactor holds the secrets that
	// must not occur in their records.
	innerCalls *atomic.Int32
	redactor   *redact.Redactor
	shared     *sharedFiles // files that were opened for the outermost call
	repeats    *repeats     // of the call in which a plugin makes this one on its own behalf; nil in any other case
}

// forOperator reports whether the person who runs the program makes the call: not a client of it, also not by way of
// plugins.
func (b *behalf) forOperator(outer host.Principal) bool {
	if len(b.callers) > 0 {
		outer = b.callers[0]
	}
	return outer.Name == host.CallerCLI
}
