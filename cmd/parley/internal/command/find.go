package command

import (
	"strings"

	"github.com/parley-tools/parley/host"
)

// Find returns what the first one or two words name, and the words after it: a plugin, a group, a tool, an event or a
// type. "text hash", "text.hash" and "text__hash" are the same. With anyway, a name that its plugin does not know may
// stand for a tool that the plugin passes on; see [host.Options].
//
// The error is not_found. If the plugin exists, the address has it, and the first of the words is the unknown name.
func Find(catalog *host.Catalog, words []string, anyway bool) (host.Address, []string, error) {
	plugin, local, rest := words[0], "", words[1:]
	if _, ok := catalog.Provider(plugin); !ok {
		first, inner, _ := strings.Cut(strings.ReplaceAll(plugin, "__", "."), ".")
		if _, ok := catalog.Provider(first); !ok {
			_, err := catalog.FindIn(plugin, "")
			return host.Address{}, words, err
		}
		plugin, local = first, inner
	} else if len(rest) > 0 {
		local, rest = rest[0], rest[1:]
	}
	address, err := catalog.FindIn(plugin, local)
	if err != nil && anyway {
		address, err = catalog.FindAnyway(plugin + "." + local)
	}
	if err != nil {
		return host.Address{Plugin: plugin}, append([]string{local}, rest...), err
	}
	return address, rest, nil
}
