package service

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/catalog"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
)

// TestRecordsOfFleet has a call whose records are in the stream of a fleet when it ends.
func TestRecordsOfFleet(t *testing.T) {
	server := fleettest.Start(t, fleettest.Options{Config: "jetstream {sync_interval: always}"})
	conn, err := nats.Connect(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	published, err := catalog.Of(conn)
	if err == nil {
		err = published.Provision(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, "[fleet]\nurl = \""+server.URL+"\"\nname = \"one\"\nrecords = \"required\"\nmonitor = \""+
		server.Monitor+"\"\n")
	s, err := connect(f.url+"/mcp", client{token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	answer, err := call(s, "text.hash", `{"text":"a"}`, `{}`)
	if err != nil || !strings.Contains(answer, "ca978112") {
		t.Errorf("%s %v", answer, err)
	}
	stream, err := js.Stream(t.Context(), catalog.Records)
	if err != nil {
		t.Fatal(err)
	}
	last, err := stream.GetLastMsgForSubject(t.Context(), "parley.v1.record.*.one")
	if err != nil || !strings.Contains(string(last.Data), `"seq":2,`) ||
		!strings.Contains(string(last.Data), `"op":"call"`) {
		t.Errorf("the last record in the stream: %+v, %v", last, err)
	}
	if _, text := get(t, f.url+"/metrics", ""); !strings.Contains(text, "\nparley_records_behind 0\n") {
		t.Errorf("the metrics: %s", text)
	}
}

// TestCheckRecords checks servers that may lose what they have acknowledged.
func TestCheckRecords(t *testing.T) {
	server := fleettest.Start(t, fleettest.Options{})
	f := &fixture{dir: t.TempDir()}
	f.write(t, "tokens", "alice="+token+"\n")
	for _, c := range []struct{ text, err, note string }{
		{"", "", ""},
		{"records = \"required\"\nmonitor = \"" + server.Monitor + "\"", "expected sync_interval: always", ""},
		{"records = \"required\"\nmonitor = \"http://127.0.0.1:1\"", "fleet.monitor: ", ""},
		{"records = \"required\"", "", "note: it is not known whether the server acknowledges"},
		{"records = \"always\"", "fleet.records: got \"always\", expected required or nothing", ""},
	} {
		f.write(t, "parleyd.toml", f.config("[fleet]\nurl = \""+server.URL+"\"\nname = \"one\"\n"+c.text+"\n"))
		var notes bytes.Buffer
		err := checkConfig(filepath.Join(f.dir, "parleyd.toml"), &notes)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) ||
			!strings.Contains(notes.String(), c.note) || c.note == "" && notes.Len() > 0 {
			t.Errorf("%q: %v, %s", c.text, err, &notes)
		}
	}
}
