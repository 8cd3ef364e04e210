package setup

import (
	"fmt"
	"strings"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/catalog"
)

// role is what a member of a fleet does.
type role string

const (
	operator role = "operator"
	front    role = "front"
	worker   role = "worker"
)

// serverConf is nats-server.conf. The server runs in its folder, which the names of files are relative to.
const serverConf = `# The NATS server of a Parley fleet. parleyd fleet init writes this file once, so your changes stay.
listen: "0.0.0.0:` + port + `" # and, where the system has IPv6, [::]
http: "127.0.0.1:8222" # the server's own status
ping_interval: "2s" # a client that misses three of them is disconnected
ping_max: 3

jetstream {
  store_dir: $STATE_DIRECTORY # which systemd sets for the unit
  sync_interval: always # acknowledged data is on the disk
}

tls {
  cert_file: "server.pem" # in the working folder
  key_file: "server.key"
  min_version: "1.3"
  timeout: 5
}

# Who may connect, and what each may use.
include "accounts.conf"
`

// accounts returns accounts.conf.
func (f *fleet) accounts() []byte {
	b := []byte("# parleyd fleet init writes this file each time, from fleet.json.\naccounts {\n")
	last := ""
	for _, m := range f.members() {
		if m.account != last {
			if last != "" {
				b = append(b, "  ] }\n"...)
			}
			storage := "enabled"
			if size := f.Storage[m.account]; size != "" {
				storage = "{ max_file: " + size + ", max_memory: 0 }"
			}
			b = fmt.Appendf(b, "  %q { jetstream: %s, users: [\n", m.account, storage)
			last = m.account
		}
		publish, subscribe := permissions(m.Role, m.name)
		// A worker answers those who ask it, once: it cannot choose whom.
		b = fmt.Appendf(b, "    # %s %s\n    { nkey: %s, permissions: {\n      publish: { allow: %s }\n"+
			"      subscribe: { allow: %s }\n      allow_responses: %t\n    } }\n",
			m.Role, m.name, m.Key, list(publish), list(subscribe), m.Role == worker)
	}
	return append(b, "  ] }\n}\n"...)
}

func list(subjects []string) string { return `["` + strings.Join(subjects, `", "`) + `"]` }

// permissions returns the subjects to which a member may publish and subscribe.
func permissions(r role, name string) (publish, subscribe []string) {
	const version, code, lines, records = "parley.v1.", catalog.Code, catalog.Lines, catalog.Records
	switch r {
	case operator:
		publish = []string{version + "workers", version + "worker.*.>", "$O." + code + ".>", "$KV." + lines + ".>",
			"$JS.API.>", "$JS.ACK.>", "$JS.FC.>"}
		return publish, []string{version + "operator.reply.>"}
	case front:
		publish = []string{version + "offer.*", version + "worker.*.>", version + "workers", version + "record.*." + name}
		publish = append(publish, reads("OBJ_"+code, "$O."+code+".>")...)
		publish = append(publish, reads("KV_"+lines, "$KV."+lines+".>")...)
		// where its records end; not those of others
		publish = append(publish, "$JS.API.STREAM.INFO."+records, "$JS.API.DIRECT.GET."+records+"."+version+"record.*."+name)
		return publish, []string{version + "front." + name + ".>", version + "pool.*.*"}
	default:
		publish = append([]string{version + "front.*.call.*", version + "pool.*." + name},
			reads("OBJ_"+code, "$O."+code+".C.*")...)
		return publish, []string{version + "offer.* workers", version + "worker." + name + ".>", version + "workers"}
	}
}

// reads returns what reading a stream takes: its state, its messages by their subjects, and consumers that deliver all
// of a subject to an inbox, which confirm what arrived when the server asks for that.
func reads(stream, subject string) []string {
	return []string{
		"$JS.API.STREAM.INFO." + stream,
		"$JS.API.DIRECT.GET." + stream + ".>",
		"$JS.API.CONSUMER.CREATE." + stream + ".*." + subject,
		"$JS.API.CONSUMER.DELETE." + stream + ".*",
		"$JS.FC." + stream + ".>",
	}
}
