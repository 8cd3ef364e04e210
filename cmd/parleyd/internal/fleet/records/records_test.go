package records

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/catalog"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/record/audit"
)

// Environment of a test process that is a front: the server, and the folder of its log. With the third one each record
// waits for the stream.
const (
	frontServer   = "PARLEY_TEST_FRONT_SERVER"
	frontDir      = "PARLEY_TEST_FRONT_DIR"
	frontRequired = "PARLEY_TEST_FRONT_REQUIRED"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(frontServer); url != "" {
		runFront(url, os.Getenv(frontDir), os.Getenv(frontRequired) != "")
	}
	os.Exit(m.Run())
}

// runFront records calls until it is killed.
func runFront(url, dir string, required bool) {
	conn, err := connect(url)
	if err != nil {
		panic(err)
	}
	log := audit.Open(dir, audit.Config{MaxBytes: 32 << 10, Keep: 10_000})
	copier, err := New(conn, filepath.Base(dir), log, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	if required {
		copier.Require(time.Second)
	}
	go copier.Run(context.Background())
	for i := 0; ; i++ {
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() { log.Record(called("text.hash")) })
		}
		calls.Wait()
		time.Sleep(10 * time.Millisecond)
	}
}

func called(tool string) host.Event {
	return host.Event{Time: time.Now(), Op: "call", Tool: tool, Caller: "cli"}
}

func connect(url string) (*nats.Conn, error) {
	return nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.RetryOnFailedConnect(true))
}

const synced = "jetstream {sync_interval: always}"

func subjectOf(front string) string { return "parley.v1.record.word." + front }

var streamConfig = jetstream.StreamConfig{Name: catalog.Records, Subjects: []string{subjectOf("*")}, AllowDirect: true}

// streamOf starts a server with the stream of records.
func streamOf(t *testing.T) (*fleettest.Server, *nats.Conn, jetstream.Stream) {
	t.Helper()
	server := fleettest.Start(t, fleettest.Options{Config: synced})
	conn, err := connect(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), streamConfig)
	if err != nil {
		t.Fatal(err)
	}
	return server, conn, stream
}

// start copies a log until the returned function is called.
func start(t *testing.T, conn *nats.Conn, front string, log *audit.Log, to io.Writer) (c *Copier, stop func()) {
	t.Helper()
	c, err := New(conn, front, log, slog.New(slog.NewTextHandler(to, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	return c, func() {
		cancel()
		<-ended
	}
}

var await = fleettest.Await

// linesOf returns the lines of a log.
func linesOf(t *testing.T, log *audit.Log) (lines []string) {
	t.Helper()
	journal := log.Records(nil).Journal
	files, err := journal.OpenFiles(record.Cursor{}, record.Filter{})
	defer record.CloseFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	for line, err := range journal.Lines(files, record.Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !line.Tail {
			lines = append(lines, string(line.Text))
		}
	}
	return lines
}

// streamed returns the records of a front in the stream.
func streamed(t *testing.T, stream jetstream.Stream, front string) (lines []string) {
	t.Helper()
	consumer, err := stream.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{subjectOf(front)}})
	if err != nil {
		t.Fatal(err)
	}
	info, err := consumer.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		t.Fatal(err)
	}
	defer messages.Stop()
	for range info.NumPending {
		message, err := messages.Next(jetstream.NextMaxWait(10 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(message.Data()))
	}
	return lines
}

// same compares the stream with a log.
func same(t *testing.T, stream jetstream.Stream, front string, log *audit.Log) {
	t.Helper()
	got, want := streamed(t, stream, front), linesOf(t, log)
	if !slices.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		t.Errorf("%s: the stream has %d records, the log %d; the first %d are the same", front, len(got), len(want), at)
	}
}

// TestKills kills the server and two fronts at random while these record calls. Afterwards the stream has the whole
// chain of each, once.
func TestKills(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 6
	}
	server, conn, stream := streamOf(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	type front struct {
		dir string
		env []string
		cmd *exec.Cmd
	}
	run := func(f *front) {
		f.cmd = exec.Command(self)
		f.cmd.Env = append(append(os.Environ(), frontServer+"="+server.URL, frontDir+"="+f.dir), f.env...)
		f.cmd.Stderr = os.Stderr
		if err := f.cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	kill := func(f *front) {
		_ = f.cmd.Process.Kill()
		_ = f.cmd.Wait()
	}
	fronts := []*front{
		{dir: filepath.Join(t.TempDir(), "lags")},
		{dir: filepath.Join(t.TempDir(), "required"), env: []string{frontRequired + "=1"}},
	}
	for _, f := range fronts {
		run(f)
		defer kill(f)
	}
	for range rounds {
		time.Sleep(time.Duration(50+rand.IntN(400)) * time.Millisecond)
		if n := rand.IntN(len(fronts) + 1); n < len(fronts) {
			kill(fronts[n])
			run(fronts[n])
		} else {
			server.Kill()
			time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
			server.Restart()
		}
	}
	for _, f := range fronts {
		kill(f)
	}
	for _, f := range fronts {
		log := audit.Open(f.dir, audit.Config{})
		log.Record(called("text.last"))
		began := time.Now()
		name := filepath.Base(f.dir)
		c, stop := start(t, conn, name, log, os.Stderr)
		await(t, name, func() bool { return c.Behind() == 0 })
		stop()
		took := time.Since(began)
		same(t, stream, name, log)
		verified, err := log.Verify("")
		if err != nil || verified.Broken != nil {
			t.Errorf("%s: %+v %v", name, verified.Broken, err)
		}
		t.Logf("%s: %d records in %d files; the last ones were copied in %s", name, verified.Records, verified.Files, took)
	}
}

// TestLogs copies logs that are not what the stream ends with. What cannot go on without a loss or a double is refused.
func TestLogs(t *testing.T) {
	_, conn, stream := streamOf(t)
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string) // of the log, after 40 records were copied
		log    string                         // "" if the stream has the whole log afterwards
	}{
		"goes_on": {func(*testing.T, string) {}, ""},
		"moved": {func(t *testing.T, dir string) {
			if err := os.Rename(dir, dir+".aside"); err != nil {
				t.Fatal(err)
			}
		}, "the log does not have record 40"},
		"restored": {func(t *testing.T, dir string) {
			text, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
			lines := strings.SplitAfter(string(text), "\n")
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "audit.jsonl"), []byte(strings.Join(lines[:30], "")), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "the log does not have record 40"},
		"damaged": {func(t *testing.T, dir string) {
			f, err := os.OpenFile(filepath.Join(dir, "audit.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			fmt.Fprintln(f, "no record")
		}, ""},
		"rotated": {func(t *testing.T, dir string) {
			log := audit.Open(dir, audit.Config{MaxBytes: 1 << 10, Keep: 2})
			for range 40 {
				log.Record(called("text.hash"))
			}
		}, "records were removed by rotation before they were copied"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "audit")
			log := audit.Open(dir, audit.Config{})
			for range 40 {
				log.Record(called("text.hash"))
			}
			copier, stop := start(t, conn, name, log, io.Discard)
			await(t, "the first records", func() bool { return copier.Behind() == 0 })
			stop()
			c.change(t, dir)
			log = audit.Open(dir, audit.Config{})
			for range 5 {
				log.Record(called("text.next"))
			}
			text := &lockedText{}
			copier, stop = start(t, conn, name, log, text)
			defer stop()
			await(t, "the log", func() bool {
				return strings.Contains(text.String(), c.log) && (copier.Behind() == 0) == (name != "moved" && name != "restored")
			})
			switch lines := streamed(t, stream, name); {
			case c.log == "":
				same(t, stream, name, log)
			case name == "rotated": // the rest follows, and its first record says what is gone
				if own := linesOf(t, log); !slices.Equal(lines[40:], own) || !strings.Contains(own[0], `"dropped"`) {
					t.Errorf("%d records after the first 40, %d in the log", len(lines)-40, len(own))
				}
			case len(lines) != 40:
				t.Errorf("%d records", len(lines))
			}
			if err := copier.Wait(audit.Head{Seq: 1}, time.Millisecond); (err != nil) != (copier.Behind() > 0) {
				t.Errorf("waiting: %v", err)
			}
		})
	}
}

// lockedText is what is logged.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestSecondFront has two processes use one name. The first one goes on, and the second one is refused.
func TestSecondFront(t *testing.T) {
	_, conn, stream := streamOf(t)
	var logs [2]*audit.Log
	var copiers [2]*Copier
	text := &lockedText{}
	for i := range logs {
		logs[i] = audit.Open(filepath.Join(t.TempDir(), "audit"), audit.Config{})
		logs[i].Record(called("text.hash"))
		var stop func()
		copiers[i], stop = start(t, conn, "one", logs[i], text)
		defer stop()
		if i == 0 {
			await(t, "the first front", func() bool { return copiers[0].Behind() == 0 })
		}
	}
	await(t, "the second front", func() bool { return strings.Contains(text.String(), "another front has this name") })
	logs[0].Record(called("text.next"))
	await(t, "the first front", func() bool { return copiers[0].Behind() == 0 })
	same(t, stream, "one", logs[0])
}

// TestRequired has calls wait for the stream. Where the server is away, or its stream is full, none begins, the end of
// one that has run is only warned about, and all records follow later.
func TestRequired(t *testing.T) {
	t.Run("killed", func(t *testing.T) {
		server, conn, stream := streamOf(t)
		testRequired(t, conn, stream, server.Kill, server.Restart)
	})
	t.Run("full", func(t *testing.T) {
		_, conn, stream := streamOf(t)
		limit := func(messages int64) {
			t.Helper()
			js, err := jetstream.New(conn)
			if err == nil {
				config := streamConfig
				config.Discard, config.MaxMsgs = jetstream.DiscardNew, messages
				_, err = js.UpdateStream(t.Context(), config)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		testRequired(t, conn, stream, func() {
			info, err := stream.Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			limit(int64(info.State.Msgs))
		}, func() { limit(-1) })
	})
}

func testRequired(t *testing.T, conn *nats.Conn, stream jetstream.Stream, end, again func()) {
	var warned error
	const limit = 300 * time.Millisecond
	log := audit.Open(filepath.Join(t.TempDir(), "audit"), audit.Config{Warn: func(err error) { warned = err }})
	text := &lockedText{}
	copier, stop := start(t, conn, "one", log, text)
	defer stop()
	copier.Require(limit)
	if mode, err := log.Mode(); mode != audit.Required || err != nil {
		t.Errorf("the mode is %s, %v", mode, err)
	}
	await(t, "the stream", func() bool { return log.Begin(called("text.hash")) == nil })
	log.Record(called("text.hash"))
	if warned != nil || copier.Behind() != 0 {
		t.Errorf("%v, %d behind", warned, copier.Behind())
	}
	end()
	began := time.Now()
	err := log.Begin(called("text.hash"))
	if took := time.Since(began); !errors.Is(err, host.Unavailable) || took < limit || took > 5*limit ||
		!strings.Contains(err.Error(), "nothing was run") || !strings.Contains(err.Error(), "acknowledged") {
		t.Errorf("%v after %s", err, took)
	}
	log.Record(called("text.hash"))
	if warned == nil || copier.Behind() != 2 {
		t.Errorf("%v, %d behind", warned, copier.Behind())
	}
	await(t, "the log", func() bool { return strings.Contains(text.String(), "not copied to the stream\" behind=") })
	again()
	await(t, "the stream", func() bool { return copier.Behind() == 0 })
	same(t, stream, "one", log)
	if err := log.Begin(called("text.hash")); err != nil {
		t.Error(err)
	}
	await(t, "the log", func() bool { return strings.Contains(text.String(), "copied to the stream again") })
}

// TestCheckDurable asks servers whether they write each record to the disk before they acknowledge it.
func TestCheckDurable(t *testing.T) {
	always, relaxed := fleettest.Start(t, fleettest.Options{Config: synced}), fleettest.Start(t, fleettest.Options{})
	conn, err := connect(always.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, c := range []struct {
		monitors   string
		conn       *nats.Conn
		note, want string
	}{
		{"", conn, "is not known", ""},
		{always.Monitor, conn, "", ""},
		{always.Monitor, nil, "", ""},
		{relaxed.Monitor, nil, "", "expected sync_interval: always"},
		{always.Monitor + ", " + relaxed.Monitor, conn, "", "expected sync_interval: always"},
		{strings.Replace(always.URL, "nats:", "http:", 1), conn, "", "fleet.monitor: "},
		{"http://127.0.0.1:1", conn, "", "fleet.monitor: "},
		{always.Monitor + "/healthz?", conn, "", "does not answer as a nats-server does"},
	} {
		note, err := CheckDurable(t.Context(), c.conn, c.monitors)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) ||
			(note == "") != (c.note == "") || !strings.Contains(note, c.note) {
			t.Errorf("%q: %q, %v", c.monitors, note, err)
		}
	}
	other, err := connect(relaxed.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := CheckDurable(t.Context(), other, always.Monitor); err == nil ||
		!strings.Contains(err.Error(), "belongs to another server") {
		t.Error(err)
	}
}

// BenchmarkCopy copies records to a server that writes each of them to the disk.
func BenchmarkCopy(b *testing.B) {
	server := fleettest.Start(b, fleettest.Options{Config: synced})
	conn, err := connect(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	js, _ := jetstream.New(conn)
	if _, err := js.CreateStream(b.Context(), streamConfig); err != nil {
		b.Fatal(err)
	}
	log := audit.Open(filepath.Join(b.TempDir(), "audit"), audit.Config{})
	for range b.N {
		log.Record(called("text.hash"))
	}
	c, _ := New(conn, "one", log, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ResetTimer()
	go c.Run(ctx)
	if err := c.Wait(audit.Head{Seq: uint64(b.N)}, time.Minute); err != nil {
		b.Fatal(err)
	}
}
