package setup

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/pelletier/go-toml/v2"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/catalog"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/store"
)

// initialize runs a command line and returns its output.
func initialize(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := Init(args, &out); err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	return out.String()
}

// tree returns the content of all files of a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestInit makes a fleet and adds to it. What was there stays, but for what has a list of all names.
func TestInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	out := initialize(t, dir, "--host", "nats.example.org", "--host", "10.0.0.1", "--front", "front-1",
		"--worker", "worker-1")
	t.Logf("the output:\n%s", strings.ReplaceAll(out, dir, "fleet"))
	first := tree(t, dir)
	for _, name := range []string{"ca.pem", "ca.key", "server/server.pem", "server/server.key",
		"server/nats-server.conf", "server/accounts.conf",
		"fleet.json", "parley/operator/operator.nk", "parley/front-1/front-1.nk", "parley/worker-1/worker-1.nk"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v", name, err)
		}
	}
	var config struct{ Fleet map[string]string }
	if err := toml.Unmarshal([]byte(first["parley/front-1/fleet.toml"]), &config); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"url": "tls://nats.example.org:4222,tls://10.0.0.1:4222", "name": "front-1",
		"key": "/etc/parley/fleet/front-1.nk", "ca": "/etc/parley/fleet/ca.pem"} {
		if config.Fleet[key] != want {
			t.Errorf("%s is %q, not %q", key, config.Fleet[key], want)
		}
	}
	for name, text := range first {
		if !strings.HasSuffix(name, ".nk") {
			continue
		}
		for other, content := range first {
			if other != name && strings.Contains(content, strings.TrimSpace(text)) {
				t.Errorf("%s has the key %s", other, name)
			}
		}
	}
	block, _ := pem.Decode([]byte(first["server/server.pem"]))
	server, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(server.NotBefore); age < 23*time.Hour || server.VerifyHostname("nats.example.org") != nil ||
		server.VerifyHostname("10.0.0.1") != nil {
		t.Errorf("valid since %s, for %s %s", age, server.DNSNames, server.IPAddresses)
	}

	if out := initialize(t, dir, "--front", "front-1"); !strings.Contains(out, "nothing was written") {
		t.Error(out)
	}
	for _, c := range []struct {
		args    string
		changed []string // besides those of new members
	}{
		{"--front front-1 --host 10.0.0.1", nil},
		{"--worker worker-2", []string{"server/accounts.conf", "fleet.json"}},
		{"--account acme --worker worker-1", []string{"server/accounts.conf", "fleet.json"}},
		{"--host ::1", []string{"fleet.json", "server/server.key", "server/server.pem"}},
		{"--storage 20GB", []string{"server/accounts.conf", "fleet.json"}},
		{"--account acme --storage 1GB", []string{"server/accounts.conf", "fleet.json"}},
		{"--account acme --storage 1GB --account parley --storage 20GB", nil},
		{"--renew", []string{"ca.pem", "server/server.key", "server/server.pem", "acme/operator/ca.pem",
			"acme/worker-1/ca.pem", "parley/front-1/ca.pem", "parley/operator/ca.pem", "parley/worker-1/ca.pem",
			"parley/worker-2/ca.pem"}},
		{"--remove acme", []string{"server/accounts.conf", "fleet.json", "acme/operator/ca.pem",
			"acme/operator/fleet.toml", "acme/operator/operator.nk", "acme/worker-1/ca.pem", "acme/worker-1/fleet.toml",
			"acme/worker-1/worker-1.nk"}},
		{"--revoke operator", []string{"server/accounts.conf", "fleet.json", "parley/operator/fleet.toml",
			"parley/operator/operator.nk"}},
		{"--revoke worker-2", []string{"server/accounts.conf", "fleet.json", "parley/worker-2/ca.pem",
			"parley/worker-2/fleet.toml", "parley/worker-2/worker-2.nk"}},
		{"--revoke worker-1 --worker worker-1", []string{"server/accounts.conf", "fleet.json",
			"parley/worker-1/fleet.toml", "parley/worker-1/worker-1.nk"}},
	} {
		before := tree(t, dir)
		initialize(t, append([]string{dir}, strings.Fields(c.args)...)...)
		after, want := tree(t, dir), map[string]bool{}
		for _, name := range c.changed {
			want[name] = true
		}
		for name, text := range before {
			if isNew := after[name] != text; isNew != want[name] {
				t.Errorf("%s: %s changed: %v", c.args, name, isNew)
			}
		}
	}
}

// TestMistakes gives what is refused. Nothing is written then.
func TestMistakes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	initialize(t, dir, "--host", "h", "--front", "front-1", "--worker", "worker-1")
	before := tree(t, dir)
	for args, want := range map[string]string{
		"":                                       "no folder is given",
		"--front a":                              "no folder is given",
		"NEW --front a":                          "expected --host",
		"DIR more":                               `unexpected "more"`,
		"DIR --pool a":                           "not defined",
		"DIR --front":                            "needs an argument",
		"DIR --front front-1 more":               `unexpected "more"`,
		"DIR --front worker-1":                   "has the worker worker-1",
		"DIR --worker operator":                  "has the operator operator",
		"DIR --front a --front a":                "given twice",
		"DIR --front a --worker a":               "has the front a",
		"DIR --front a.b":                        "expected a name",
		"DIR --front *":                          "expected a name",
		"DIR --front >":                          "expected a name",
		"DIR --front ../a":                       "expected a name",
		"DIR --front A":                          "expected a name",
		"DIR --front -a":                         "expected a name",
		"DIR --account server":                   "expected a name",
		"DIR --account $SYS":                     "expected a name",
		"DIR --front " + strings.Repeat("a", 64): "expected a name",
		"DIR --host a:4222":                      "without a port",
		"DIR --host a/b":                         "without a port",
		"DIR --revoke worker-9":                  "expected one of front-1, operator, worker-1",
		"DIR --account acme --revoke front-1":    "acme has no such name",
		"DIR --remove acme":                      "expected one of parley",
		"DIR --storage 20":                       "such as 20GB",
		"DIR --storage 1GB,users:[]":             "such as 20GB",
		"DIR --account acme --storage -1GB":      "such as 20GB",
		"DIR --renew=1GB":                        "invalid boolean",
	} {
		args = strings.NewReplacer("DIR", dir, "NEW", dir+"-2").Replace(args)
		var out bytes.Buffer
		err := Init(strings.Fields(args), &out)
		if err == nil || !strings.Contains(err.Error(), want) || host.AsError(err).Code != host.InvalidArgs || out.Len() > 0 {
			t.Errorf("%q: %v %s; expected %q", args, err, &out, want)
		}
	}
	after := tree(t, dir)
	if _, err := os.Stat(dir + "-2"); err == nil || len(after) != len(before) {
		t.Error("a mistake wrote files")
	}
	for name, text := range before {
		if after[name] != text {
			t.Errorf("a mistake changed %s", name)
		}
	}
	for _, c := range []struct{ name, text, args string }{
		{"fleet.json", "{", ""},
		{"fleet.json", `{"hosts":["h"],"accounts":null}`, ""},
		{"fleet.json", `{"hosts":["h"],"accounts":{"parley":{"a":null}}}`, ""},
		{"fleet.json", `{"hosts":["h"],"accounts":{"parley":{"a":{"role":"front","key":"U }"}}}}`, ""},
		{"fleet.json", strings.Replace(before["fleet.json"], `"front-1"`, `"../a"`, 1), ""},
		{"ca.key", "{", "--host other"},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Init(append([]string{dir}, strings.Fields(c.args)...), &bytes.Buffer{})
		if err == nil || host.AsError(err).Code != host.ConfigError || !strings.Contains(err.Error(), c.name) {
			t.Errorf("a broken %s: %v", c.name, err)
		}
		if err := os.WriteFile(path, []byte(before[c.name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// start makes a fleet of two accounts, and starts its server.
func start(t *testing.T) (dir string, s *fleettest.Server) {
	t.Helper()
	dir = t.TempDir()
	initialize(t, dir, "--host", "127.0.0.1", "--front", "front-1", "--front", "front-2", "--worker", "worker-1",
		"--worker", "worker-2", "--account", "acme", "--front", "front-1", "--worker", "worker-1")
	return dir, fleettest.Start(t, fleettest.Options{ConfigFile: filepath.Join(dir, "server", "nats-server.conf")})
}

// inboxes are the prefixes of inboxes, by role.
var inboxes = map[string]string{"operator": "parley.v1.operator.reply", "front": "parley.v1.front.NAME.reply",
	"worker": "parley.v1.worker.NAME.reply"}

// connect connects a member of an account by its key.
func connect(t *testing.T, dir string, s *fleettest.Server, account, name string, options ...nats.Option) *nats.Conn {
	t.Helper()
	folder := filepath.Join(dir, account, name)
	key, err := nats.NkeyOptionFromSeed(filepath.Join(folder, name+".nk"))
	if err != nil {
		t.Fatal(err)
	}
	role, _, _ := strings.Cut(name, "-")
	conn, err := nats.Connect(s.URL, append(options, key, nats.RootCAs(filepath.Join(folder, "ca.pem")),
		nats.CustomInboxPrefix(strings.ReplaceAll(inboxes[role], "NAME", name)),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), nats.ReconnectWait(20*time.Millisecond))...)
	if err != nil {
		t.Fatalf("%s/%s: %v", account, name, err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func stream(t *testing.T, conn *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// provisioned has an operator make the buckets and the stream, twice.
func provisioned(t *testing.T, dir string, s *fleettest.Server) jetstream.JetStream {
	t.Helper()
	js := stream(t, connect(t, dir, s, "parley", "operator"))
	for range 2 {
		if err := published(t, js).Provision(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return js
}

// published returns what is published in a fleet.
func published(t *testing.T, js jetstream.JetStream) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Of(js.Conn())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// refused does something on a connection, and returns the violation of permissions that the server reports.
func refused(t *testing.T, conn *nats.Conn, do func() error) error {
	t.Helper()
	before := conn.LastError()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if err := conn.FlushTimeout(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if after := conn.LastError(); after != before {
		return after
	}
	return nil
}

// TestRoles has each role publish and subscribe to subjects that it may use and to those that it may not.
func TestRoles(t *testing.T) {
	dir, s := start(t)
	for who, c := range map[string]struct{ publish, subscribe, notPublish, notSubscribe string }{
		"operator": {
			publish: "parley.v1.workers parley.v1.worker.worker-1.drain $O.parley_code.M.a $O.parley_code.C.a " +
				"$KV.parley_catalog.a $JS.API.STREAM.INFO.x $JS.ACK.a",
			subscribe: "parley.v1.operator.reply.> parley.v1.operator.reply.a",
			notPublish: "parley.v1.offer.p parley.v1.front.front-1.reply.a parley.v1.front.front-1.call.a " +
				"parley.v1.pool.p.worker-1 " +
				"parley.v1.record.x.front-1 parley.v1.record.x.operator $SYS.REQ.SERVER.PING $KV.other.a $O.other.M.a a",
			notSubscribe: "> parley.> parley.v1.> parley.v1.worker.worker-1.> parley.v1.front.front-1.> parley.v1.offer.p " +
				"parley.v1.record.> _INBOX.> $JS.> $O.> $SYS.>",
		},
		"front-1": {
			publish: "parley.v1.offer.p parley.v1.worker.worker-1.a parley.v1.worker.worker-2.a.b.c parley.v1.workers " +
				"parley.v1.record.x.front-1 $JS.API.STREAM.INFO.OBJ_parley_code $JS.API.STREAM.INFO.KV_parley_catalog " +
				"$JS.API.STREAM.INFO.parley_records $JS.API.DIRECT.GET.parley_records.parley.v1.record.x.front-1 " +
				"$JS.FC.KV_parley_catalog.a.b",
			subscribe: "parley.v1.front.front-1.> parley.v1.front.front-1.call.a parley.v1.pool.*.* parley.v1.pool.p.worker-1",
			notPublish: "parley.v1.offer parley.v1.offer.p.q parley.v1.worker.worker-1 parley.v1.front.front-1.call.a " +
				"parley.v1.front.front-2.reply.a parley.v1.record.x.front-2 parley.v1.pool.p.worker-1 parley.v1.operator.reply.a " +
				"$O.parley_code.M.a $O.parley_code.C.a $KV.parley_catalog.a " + apiOf("OBJ_parley_code") +
				apiOf("KV_parley_catalog") + apiOf("parley_records") + "$JS.API.CONSUMER.CREATE.parley_records.a " +
				"$JS.API.CONSUMER.CREATE.parley_records.a.parley.v1.record.x.front-1 $JS.API.CONSUMER.DELETE.parley_records.a " +
				"$JS.API.DIRECT.GET.parley_records $JS.API.DIRECT.GET.parley_records.parley.v1.record.x.front-2 $JS.API.INFO",
			notSubscribe: "> parley.> parley.v1.front.> parley.v1.front.*.reply.> parley.v1.front.front-2.call.a " +
				"parley.v1.front.front-2.> parley.v1.worker.worker-1.> parley.v1.offer.p parley.v1.record.> " +
				"parley.v1.record.x.front-1 parley.v1.workers parley.v1.operator.reply.> _INBOX.> $JS.> $O.> $KV.> $SYS.>",
		},
		"worker-1": {
			publish: "parley.v1.front.front-1.call.a parley.v1.front.front-2.call.b parley.v1.pool.p.worker-1 " +
				"$JS.API.STREAM.INFO.OBJ_parley_code $JS.API.DIRECT.GET.OBJ_parley_code.$O.parley_code.M.a " +
				"$JS.API.CONSUMER.CREATE.OBJ_parley_code.a.$O.parley_code.C.a $JS.FC.OBJ_parley_code.a.b",
			subscribe: "parley.v1.offer.p/workers parley.v1.offer.*/workers parley.v1.worker.worker-1.> " +
				"parley.v1.worker.worker-1.reply.a parley.v1.workers",
			notPublish: "parley.v1.pool.p.worker-2 parley.v1.pool.p " +
				"parley.v1.front.front-1.reply.a parley.v1.front.front-1.call parley.v1.front.front-1.call.a.b " +
				"parley.v1.offer.p parley.v1.worker.worker-1.a parley.v1.worker.worker-2.a parley.v1.worker.worker-2.reply.a " +
				"parley.v1.workers parley.v1.record.x.front-1 parley.v1.record.x.worker-1 parley.v1.operator.reply.a " +
				"$O.parley_code.M.a $O.parley_code.C.a $KV.parley_catalog.a " + apiOf("OBJ_parley_code") +
				apiOf("KV_parley_catalog") + apiOf("parley_records") + "$JS.API.CONSUMER.CREATE.OBJ_parley_code.a " +
				"$JS.API.CONSUMER.CREATE.KV_parley_catalog.a.$KV.parley_catalog.> $JS.API.STREAM.INFO.KV_parley_catalog " +
				"$JS.API.STREAM.INFO.parley_records $JS.API.DIRECT.GET.parley_records.parley.v1.record.x.front-1 " +
				"$JS.API.DIRECT.GET.OBJ_parley_code $JS.API.DIRECT.GET.KV_parley_catalog.$KV.parley_catalog.a " +
				"$JS.API.INFO $SYS.REQ.SERVER.PING _INBOX.a",
			notSubscribe: "> parley.> parley.v1.> parley.v1.*.*.> parley.v1.offer.p parley.v1.offer.* parley.v1.offer.p/spies " +
				"parley.v1.worker.> parley.v1.worker.*.reply.> parley.v1.worker.worker-2.> " +
				"parley.v1.worker.worker-2.reply.a parley.v1.front.front-1.> parley.v1.front.*.call.* parley.v1.pool.*.* " +
				"parley.v1.record.> parley.v1.operator.reply.> _INBOX.> $JS.> $JS.API.> $O.> $KV.> $SYS.>",
		},
	} {
		conn := connect(t, dir, s, "parley", who)
		publish := func(subject string) error {
			return refused(t, conn, func() error { return conn.Publish(subject, []byte("{}")) })
		}
		subscribe := func(subject string) error {
			return refused(t, conn, func() error {
				subject, queue, _ := strings.Cut(subject, "/")
				_, err := conn.QueueSubscribe(subject, queue, func(*nats.Msg) {})
				return err
			})
		}
		for what, try := range map[string]struct {
			subjects string
			do       func(string) error
			ok       bool
		}{
			"publish to": {c.publish, publish, true}, "subscribe to": {c.subscribe, subscribe, true},
			"not publish to": {c.notPublish, publish, false}, "not subscribe to": {c.notSubscribe, subscribe, false},
		} {
			for subject := range strings.FieldsSeq(try.subjects) {
				if err := try.do(subject); (err == nil) != try.ok {
					t.Errorf("%s may %s %s: %v", who, what, subject, err)
				}
			}
		}
	}
}

// TestDocumented runs what docs/fleet.md says, and starts the server as its unit does.
func TestDocumented(t *testing.T) {
	data, err := os.ReadFile("../../../../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	pinned, err := os.ReadFile("../fleettest/testdata/server/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	server := regexp.MustCompile(`nats-server/v2@?\s?(v[\d.]+)`)
	documented, tested := server.FindStringSubmatch(page), server.FindStringSubmatch(string(pinned))
	if documented == nil || tested == nil || documented[1] != tested[1] {
		t.Errorf("docs/fleet.md installs %q, tests run %q", documented, tested)
	}
	line := regexp.MustCompile(`(?m)^\$ bin/parleyd fleet init fleet (.*)$`).FindStringSubmatch(page)
	if line == nil {
		t.Fatal("docs/fleet.md makes no fleet")
	}
	dir := filepath.Join(t.TempDir(), "fleet")
	initialize(t, append([]string{dir}, strings.Fields(line[1])...)...)
	for m := range strings.FieldsFuncSeq(page, func(r rune) bool { return strings.ContainsRune(" \n'`", r) }) {
		folder, isCopied := strings.CutPrefix(m, "fleet/")
		if _, err := os.Stat(filepath.Join(dir, folder)); isCopied && err != nil {
			t.Errorf("docs/fleet.md copies %s: %v", m, err)
		}
	}
	for _, args := range []string{"--revoke worker-1 --worker worker-1", "--revoke operator", "--renew",
		"--storage 20GB"} {
		if !strings.Contains(page, "`"+args+"`") {
			t.Errorf("docs/fleet.md has no %s", args)
		}
		initialize(t, append([]string{dir}, strings.Fields(args)...)...)
	}
	s := fleettest.Start(t, fleettest.Options{ConfigFile: filepath.Join(dir, "server", "nats-server.conf")})
	if strings.Contains(s.Log(), "[WRN]") {
		t.Error("the server warns of its configuration")
	}
}

// apiOf returns the subjects of JetStream's API that change a stream, read it at will, or show its consumers.
func apiOf(stream string) string {
	return strings.ReplaceAll("$JS.API.STREAM.CREATE.? $JS.API.STREAM.UPDATE.? $JS.API.STREAM.DELETE.? "+
		"$JS.API.STREAM.PURGE.? $JS.API.STREAM.MSG.GET.? $JS.API.STREAM.MSG.DELETE.? $JS.API.STREAM.SNAPSHOT.? "+
		"$JS.API.STREAM.LIST $JS.API.STREAM.NAMES $JS.API.CONSUMER.CREATE.? $JS.API.CONSUMER.DURABLE.CREATE.?.a "+
		"$JS.API.CONSUMER.LIST.? $JS.API.CONSUMER.NAMES.? $JS.API.CONSUMER.INFO.?.a $JS.API.CONSUMER.MSG.NEXT.?.a ",
		"?", stream)
}

// TestAnswers has a worker answer who asked it: once, and nobody else.
func TestAnswers(t *testing.T) {
	dir, s := start(t)
	worker := connect(t, dir, s, "parley", "worker-1")
	asked := make(chan *nats.Msg, 10)
	for _, subject := range []string{"parley.v1.offer.*", "parley.v1.worker.worker-1.>", "parley.v1.workers"} {
		queue := ""
		if strings.Contains(subject, "offer") {
			queue = "workers"
		}
		_, err := worker.QueueSubscribe(subject, queue, func(m *nats.Msg) {
			_ = m.Respond([]byte("answer"))
			asked <- m
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := worker.Flush(); err != nil {
		t.Fatal(err)
	}
	for who, subjects := range map[string]string{
		"front-1":  "parley.v1.offer.p parley.v1.worker.worker-1.x.call parley.v1.workers",
		"operator": "parley.v1.worker.worker-1.drain parley.v1.workers",
	} {
		conn := connect(t, dir, s, "parley", who)
		for subject := range strings.FieldsSeq(subjects) {
			answer, err := conn.Request(subject, nil, 5*time.Second)
			if err != nil || string(answer.Data) != "answer" {
				t.Errorf("%s asks %s: %v", who, subject, err)
				continue
			}
			m := <-asked
			if refused(t, worker, func() error { return m.Respond([]byte("again")) }) == nil {
				t.Errorf("%s got a second answer to %s", who, subject)
			}
			if refused(t, worker, func() error { return worker.Publish(m.Reply+"1", nil) }) == nil {
				t.Errorf("a worker publishes beside the inbox of %s", who)
			}
		}
	}
}

// TestReads has workers and fronts read by the clients of NATS what the operator wrote, and not write.
func TestReads(t *testing.T) {
	dir, s := start(t)
	js := provisioned(t, dir, s)
	code, err := js.ObjectStore(t.Context(), catalog.Code)
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := js.KeyValue(t.Context(), catalog.Lines)
	if err != nil {
		t.Fatal(err)
	}
	digest := publish(t, js)
	artifact := bytes.Repeat([]byte("0123456789abcdef"), 2<<20) // 32 MB: the server asks whether it is received
	if _, err := code.PutBytes(t.Context(), "sha256-a", artifact); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"worker-1", "front-1"} {
		conn := connect(t, dir, s, "parley", who)
		code, err := stream(t, conn).ObjectStore(t.Context(), catalog.Code)
		if err != nil {
			t.Fatal(err)
		}
		got, err := code.GetBytes(t.Context(), "sha256-a")
		if err != nil || !bytes.Equal(got, artifact) {
			t.Errorf("%s reads %d bytes: %v", who, len(got), err)
		}
		if c, err := published(t, stream(t, conn)).Fetch(t.Context(), digest); err != nil || c.Digest != digest {
			t.Errorf("%s fetches a plugin: %v", who, err)
		}
		if _, err := code.GetInfo(t.Context(), "sha256-b"); err != jetstream.ErrObjectNotFound {
			t.Errorf("%s reads what is missing: %v", who, err)
		}
		if err := conn.LastError(); err != nil {
			t.Errorf("%s reads, and the server says: %v", who, err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := code.PutBytes(short, "sha256-b", []byte("b")); err == nil {
			t.Errorf("%s writes code", who)
		}
		cancel()
	}
	kept, err := js.Stream(t.Context(), "OBJ_"+catalog.Code)
	if err != nil || kept.CachedInfo().State.Consumers != 0 {
		t.Errorf("consumers are left: %+v %v", kept, err)
	}

	conn := connect(t, dir, s, "parley", "front-1")
	mirrored, err := stream(t, conn).KeyValue(t.Context(), catalog.Lines)
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := mirrored.WatchAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for entry := range watcher.Updates() { // until all are there
		if entry == nil {
			break
		}
	}
	if _, err := bucket.PutString(t.Context(), "a", "a line"); err != nil {
		t.Fatal(err)
	}
	if entry := <-watcher.Updates(); entry.Key() != "a" || string(entry.Value()) != "a line" {
		t.Errorf("got %s", entry.Key())
	}
	if err := watcher.Stop(); err != nil {
		t.Error(err)
	}
	if err := conn.LastError(); err != nil {
		t.Errorf("a front watches, and the server says: %v", err)
	}
	if entry, err := mirrored.Get(t.Context(), "a"); err != nil || string(entry.Value()) != "a line" {
		t.Error(err)
	}
}

// publish publishes a plugin and returns its digest.
func publish(t *testing.T, js jetstream.JetStream) string {
	t.Helper()
	const fixture = "../../../../../testdata/wasm/rev"
	module, err := os.ReadFile(fixture + ".wasm")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fixture + ".manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := store.NewCandidate("rev", module, text, nil, parley.Version)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := published(t, js).Publish(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c.Digest
}

// TestRecords has fronts add to the stream of records, and read where their own end.
func TestRecords(t *testing.T) {
	dir, s := start(t)
	js := provisioned(t, dir, s)
	for _, who := range []string{"front-1", "front-2"} {
		conn := connect(t, dir, s, "parley", who)
		own := stream(t, conn)
		records, err := own.Stream(t.Context(), catalog.Records)
		if err != nil {
			t.Fatal(err)
		}
		subject := strings.TrimSuffix(records.CachedInfo().Config.Subjects[0], "*") + who
		for _, text := range []string{"one", "two"} {
			ack, err := own.Publish(t.Context(), subject, []byte(text), jetstream.WithMsgID(who+text))
			if err != nil || ack.Stream != catalog.Records {
				t.Fatal(err)
			}
		}
		m, err := records.GetLastMsgForSubject(t.Context(), subject)
		if err != nil || string(m.Data) != "two" {
			t.Errorf("%s: %v", who, err)
		}
		if err := conn.LastError(); err != nil {
			t.Errorf("%s: the server says: %v", who, err)
		}
	}
	records, err := js.Stream(t.Context(), catalog.Records)
	if err != nil {
		t.Fatal(err)
	}
	if records.DeleteMsg(t.Context(), 1) == nil || records.Purge(t.Context()) == nil {
		t.Error("the operator removes single records")
	}
	if m, err := records.GetMsg(t.Context(), 1); err != nil || string(m.Data) != "one" {
		t.Errorf("the operator reads records: %v", err)
	}
}

// TestBidding has a worker make the server send what the worker may read to the subjects of others. Permissions do not
// prevent it, since the server is the sender. Such a message never has a reply subject of the fleet, without which it
// must not be obeyed, and the subjects of records have a word that workers do not know.
func TestBidding(t *testing.T) {
	dir, s := start(t)
	js := provisioned(t, dir, s)
	code, err := js.ObjectStore(t.Context(), catalog.Code)
	if err != nil {
		t.Fatal(err)
	}
	artifact, err := code.PutString(t.Context(), "a", "drain")
	if err != nil {
		t.Fatal(err)
	}
	rogue, victim := connect(t, dir, s, "parley", "worker-1"), connect(t, dir, s, "parley", "worker-2")
	got := make(chan *nats.Msg, 10)
	if _, err := victim.Subscribe("parley.v1.worker.worker-2.>", func(m *nats.Msg) { got <- m }); err != nil {
		t.Fatal(err)
	}
	if err := victim.Flush(); err != nil {
		t.Fatal(err)
	}
	records, err := js.Stream(t.Context(), catalog.Records)
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range []string{"$JS.API.STREAM.INFO.OBJ_parley_code",
		"$JS.API.DIRECT.GET.OBJ_parley_code.$O.parley_code.C." + artifact.NUID} {
		for _, to := range []string{"parley.v1.worker.worker-2.a", "parley.v1.record.front-1", "parley.v1.record.x.front-1"} {
			err := refused(t, rogue, func() error { return rogue.PublishRequest(request, to, nil) })
			if err != nil {
				t.Errorf("%s: %v", request, err)
			}
		}
		select {
		case m := <-got:
			if m.Reply != "" {
				t.Errorf("a worker chooses the reply subject %s", m.Reply)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the server sent nothing")
		}
	}
	if err := rogue.Flush(); err != nil {
		t.Fatal(err)
	}
	if info, err := records.Info(t.Context()); err != nil || info.State.Msgs > 0 {
		t.Errorf("a worker has the server record something: %+v %v", info.State, err)
	}
}

// TestSecondAccount has another tenant guess the subjects of the first one. It hears and reaches nothing.
func TestSecondAccount(t *testing.T) {
	dir, s := start(t)
	provisioned(t, dir, s)
	heard := make(chan string, 100)
	listen := func(account, who string, subjects ...string) *nats.Conn {
		conn := connect(t, dir, s, account, who)
		for _, subject := range subjects {
			subject, queue, _ := strings.Cut(subject, "/")
			_, err := conn.QueueSubscribe(subject, queue, func(m *nats.Msg) { heard <- account + " " + m.Subject })
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.Flush(); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	subjects := func(who string) []string {
		if who == "worker-1" {
			return []string{"parley.v1.offer.*/workers", "parley.v1.worker.worker-1.>", "parley.v1.workers"}
		}
		return []string{"parley.v1.front.front-1.>", "parley.v1.pool.*.*"}
	}
	conns := map[string]*nats.Conn{}
	for _, account := range []string{"parley", "acme"} {
		for _, who := range []string{"worker-1", "front-1"} {
			conns[account+who] = listen(account, who, subjects(who)...)
		}
	}
	count := 0
	for _, account := range []string{"parley", "acme"} {
		for who, to := range map[string][]string{
			"front-1":  {"parley.v1.offer.p", "parley.v1.worker.worker-1.a", "parley.v1.workers"},
			"worker-1": {"parley.v1.front.front-1.call.a", "parley.v1.pool.p.worker-1"},
		} {
			conn := conns[account+who]
			for _, subject := range to {
				if err := refused(t, conn, func() error { return conn.Publish(subject, nil) }); err != nil {
					t.Fatal(err)
				}
				count++
				if got := <-heard; got != account+" "+subject {
					t.Errorf("%s publishes to %s, and this was heard: %s", account, subject, got)
				}
			}
		}
	}
	for name, conn := range conns { // whatever else was sent has arrived now
		if err := conn.Flush(); err != nil {
			t.Fatal(name, err)
		}
	}
	if len(heard) > 0 {
		t.Errorf("of %d messages some were heard twice: %s", count, <-heard)
	}
	other := stream(t, connect(t, dir, s, "acme", "operator"))
	if _, err := other.ObjectStore(t.Context(), catalog.Code); err != jetstream.ErrBucketNotFound {
		t.Errorf("another account sees the object store: %v", err)
	}
	if _, err := other.Stream(t.Context(), catalog.Records); err != jetstream.ErrStreamNotFound {
		t.Errorf("another account sees the records: %v", err)
	}
}

// TestStrangers connects without a key, with one that nobody knows, without the certificate authority, and with a key
// that was revoked while it was in use.
func TestStrangers(t *testing.T) {
	dir, s := start(t)
	authority := nats.RootCAs(filepath.Join(dir, "ca.pem"))
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	own, err := nats.NkeyOptionFromSeed(filepath.Join(dir, "parley/worker-1/worker-1.nk"))
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][]nats.Option{
		"no key":        {authority},
		"a password":    {authority, nats.UserInfo("parley", "parley")},
		"unknown key":   {authority, nats.Nkey(public, pair.Sign)},
		"no authority":  {own},
		"another's key": {authority, nats.Nkey(publicKey(t, dir, "parley/worker-2"), pair.Sign)},
	} {
		if conn, err := nats.Connect(s.URL, options...); err == nil {
			conn.Close()
			t.Errorf("%s: the server lets it in", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}

	closed := make(chan error, 1)
	revoked := connect(t, dir, s, "parley", "worker-1", nats.MaxReconnects(3), nats.ClosedHandler(func(c *nats.Conn) {
		closed <- c.LastError()
	}))
	others := []*nats.Conn{connect(t, dir, s, "parley", "worker-2"), connect(t, dir, s, "acme", "worker-1")}
	t.Log(initialize(t, dir, "--revoke", "worker-1", "--worker", "worker-3"))
	s.Reload()
	select {
	case err := <-closed:
		t.Logf("the connection ended: %v", err)
	case <-time.After(20 * time.Second):
		t.Errorf("a revoked key is connected: %v", revoked.Status())
	}
	if conn, err := nats.Connect(s.URL, own, authority); err == nil {
		conn.Close()
		t.Error("a revoked key connects")
	}
	for _, conn := range append(others, connect(t, dir, s, "parley", "worker-3")) {
		if err := conn.Flush(); err != nil || conn.Stats().Reconnects > 0 {
			t.Errorf("another connection: %v", err)
		}
	}
}

// TestRenew renews the certificates of a server in use, twice: machines connect with the authority that they have, and
// with the new one, which alone is valid when theirs has ended. Without ca.pem and ca.key there is another authority.
func TestRenew(t *testing.T) {
	dir, s := start(t)
	read := func(name string) *x509.Certificate {
		t.Helper()
		block, _ := pem.Decode([]byte(tree(t, dir)[name]))
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	own, err := nats.NkeyOptionFromSeed(filepath.Join(dir, "parley/worker-1/worker-1.nk"))
	if err != nil {
		t.Fatal(err)
	}
	// accepts reports whether a machine that has an authority accepts the certificate that the server has now.
	accepts := func(authority *x509.Certificate) bool {
		t.Helper()
		roots := x509.NewCertPool()
		roots.AddCert(authority)
		conn, err := nats.Connect(s.URL, own, nats.Secure(&tls.Config{RootCAs: roots}))
		if err != nil {
			t.Log(err)
			return false
		}
		defer conn.Close()
		state, err := conn.TLSConnectionState()
		return err == nil && state.PeerCertificates[0].Equal(read("server/server.pem"))
	}
	open := connect(t, dir, s, "parley", "worker-1")
	authorities := []*x509.Certificate{read("ca.pem")}
	for range 2 {
		initialize(t, dir, "--renew")
		s.Reload()
		authorities = append(authorities, read("ca.pem"))
		for i, authority := range authorities {
			if !accepts(authority) {
				t.Errorf("after %d renewals, authority %d is not enough", len(authorities)-1, i)
			}
		}
		if !read("parley/front-1/ca.pem").Equal(read("ca.pem")) {
			t.Error("the folder of a front has an old authority")
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(authorities[2])
	if _, err := read("server/server.pem").Verify(x509.VerifyOptions{Roots: roots,
		CurrentTime: authorities[2].NotAfter.Add(-time.Minute)}); err != nil {
		t.Error(err)
	}
	if err := open.Flush(); err != nil || open.Stats().Reconnects > 0 {
		t.Errorf("a connection from before: %v", err)
	}
	for _, name := range []string{"ca.pem", "ca.key"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	initialize(t, dir)
	s.Reload()
	if accepts(authorities[2]) || !accepts(read("parley/front-1/ca.pem")) {
		t.Error("another authority is not the only one that counts")
	}
}

// TestLimitedAccount has a tenant store more than it may. Another one is not held up, and stays when the first goes.
func TestLimitedAccount(t *testing.T) {
	dir, s := start(t)
	initialize(t, dir, "--account", "acme", "--storage", "4MB")
	s.Reload()
	js := map[string]jetstream.JetStream{}
	for _, account := range []string{"parley", "acme"} {
		js[account] = stream(t, connect(t, dir, s, account, "operator"))
		if err := published(t, js[account]).Provision(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	put := func(account string) error {
		code, err := js[account].ObjectStore(t.Context(), catalog.Code)
		if err == nil {
			_, err = code.PutBytes(t.Context(), "large", make([]byte, 5<<20))
		}
		return err
	}
	if err := put("acme"); err == nil {
		t.Error("acme stores more than it may")
	}
	if _, err := js["acme"].CreateStream(t.Context(), jetstream.StreamConfig{Name: "m", Subjects: []string{"m"},
		Storage: jetstream.MemoryStorage}); err == nil {
		if _, err = js["acme"].Publish(t.Context(), "m", make([]byte, 1000)); err == nil {
			t.Error("acme stores in memory")
		}
	}
	digest := publish(t, js["acme"])
	if _, err := published(t, stream(t, connect(t, dir, s, "acme", "worker-1"))).Fetch(t.Context(), digest); err != nil {
		t.Error(err)
	}
	if err := put("parley"); err != nil {
		t.Error(err)
	}
	gone := connect(t, dir, s, "acme", "front-1", nats.MaxReconnects(3))
	initialize(t, dir, "--remove", "acme")
	s.Reload()
	fleettest.Await(t, "acme is closed out", func() bool { return gone.IsClosed() })
	if err := put("parley"); err != nil {
		t.Error(err)
	}
	s.Restart()
	fleettest.Await(t, "parley is served", func() bool { return put("parley") == nil })
}

// publicKey returns the public key of a member from accounts.conf.
func publicKey(t *testing.T, dir, member string) string {
	t.Helper()
	_, name, _ := strings.Cut(member, "/")
	line := regexp.MustCompile(`# \w+ ` + name + `\n\s*\{ nkey: (\w+)`)
	m := line.FindStringSubmatch(tree(t, dir)["server/accounts.conf"])
	if m == nil {
		t.Fatalf("accounts.conf has no %s", name)
	}
	return m[1]
}
