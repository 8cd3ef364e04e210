// Package records copies the audit log of a front to a stream, line by line and in order. The log is the queue: what
// the stream has not acknowledged is read from its files again, by this process or by the next one.
package records

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/catalog"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/record/audit"
	"github.com/parley-tools/parley/internal/durable"
)

const (
	// pollEvery is how long a copier waits for more records, which other processes may write, too.
	pollEvery = 200 * time.Millisecond
	// requestTime bounds a request to the server.
	requestTime = 2 * time.Second
	// maxPause is the longest time between two attempts, warnEvery the least time between two warnings.
	maxPause  = 2 * time.Second
	warnEvery = time.Minute
)

// Copier copies the records of one front. It is safe for concurrent use.
type Copier struct {
	js      jetstream.JetStream
	front   string
	subject string // of its records
	audit   *audit.Log
	journal *record.Journal // of audit
	log     *slog.Logger
	wake    chan struct{} // has a value when there are more records

	mu      sync.Mutex
	copied  uint64        // number of the last record that the stream has acknowledged; 0 if that is not known
	changed chan struct{} // closed when copied changes
	failed  error         // why nothing is copied; nil while it is
}

// New returns a copier of the log of a front.
func New(conn *nats.Conn, front string, of *audit.Log, log *slog.Logger) (*Copier, error) {
	js, err := jetstream.New(conn)
	return &Copier{js: js, front: front, audit: of, journal: of.Records(nil).Journal, log: log,
		wake: make(chan struct{}, 1), changed: make(chan struct{})}, err
}

// Run copies records until ctx is done. When that fails it tries again.
func (c *Copier) Run(ctx context.Context) {
	var warned time.Time
	for pause := pollEvery; ; pause = min(2*pause, maxPause) {
		at, err := c.find(ctx)
		for err == nil {
			if err = c.send(ctx, &at); err == nil {
				err = c.await(ctx, pollEvery)
			}
		}
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		if c.failed == nil {
			pause = pollEvery
		}
		c.failed = err
		c.mu.Unlock()
		if time.Since(warned) > warnEvery {
			warned = time.Now()
			c.log.Warn("records are not copied to the stream", "behind", c.Behind(), "error", err)
		}
		_ = c.await(ctx, pause)
	}
}

// await waits for a time, or for more records. The error is that of ctx.
func (c *Copier) await(ctx context.Context, limit time.Duration) error {
	select {
	case <-ctx.Done():
	case <-c.wake:
	case <-time.After(limit):
	}
	return ctx.Err()
}

// acknowledge stores the number of the last record that the stream has.
func (c *Copier) acknowledge(copied uint64) {
	c.mu.Lock()
	failed := c.failed
	c.copied, c.failed = copied, nil
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	if failed != nil {
		c.log.Info("records are copied to the stream again", "behind", c.Behind())
	}
}

// Require has each record of the log wait until the stream has it, for at most a time. It is called before the first
// record.
func (c *Copier) Require(limit time.Duration) {
	c.audit.RequireCopies(func(written audit.Head) error { return c.Wait(written, limit) })
}

// Wait returns once the stream has acknowledged a record of the log, or after a time an error.
func (c *Copier) Wait(written audit.Head, limit time.Duration) error {
	select {
	case c.wake <- struct{}{}:
	default:
	}
	over := time.After(limit)
	for {
		c.mu.Lock()
		copied, changed, failed := c.copied, c.changed, c.failed
		c.mu.Unlock()
		if copied >= written.Seq {
			return nil
		}
		select {
		case <-changed:
		case <-over:
			return fmt.Errorf("the stream has not acknowledged it within %s: %w", limit,
				cmp.Or(failed, context.DeadlineExceeded))
		}
	}
}

// Behind returns how many records of the log the stream does not have, as far as that is known.
func (c *Copier) Behind() int {
	c.mu.Lock()
	copied := c.copied
	c.mu.Unlock()
	head, _ := c.audit.Head()
	return int(head.Seq - min(copied, head.Seq))
}

// position is a place in the log and in the stream, after which the next line goes.
type position struct {
	cursor record.Cursor
	seq    uint64 // of the last message of this front; 0 if there is none
	hash   string // of the last line; "" if the next one is not compared with it
}

// linkOf returns what a line has of the chain, zero values if it is not a record.
func linkOf(text []byte) (seq uint64, prev string) {
	var r audit.Record
	_ = json.Unmarshal(text, &r)
	return r.Seq, r.Prev
}

// hashOf returns the hash of a line as the record after it has it. It is the id of the message.
func hashOf(line record.Line) string { return "sha256:" + hex.EncodeToString(line.Sum) }

// send sends the lines after a position, damaged ones too, and moves it. The server takes a line only after the one
// before it: none is stored twice or out of order, whoever sends it and however often.
func (c *Copier) send(ctx context.Context, at *position) error {
	files, err := c.journal.OpenFiles(at.cursor, record.Filter{})
	defer record.CloseFiles(files)
	if err != nil {
		return err
	}
	file := ""
	for line, err := range c.journal.Lines(files, at.cursor) {
		if err != nil {
			return err
		}
		if line.Tail { // it may be half-written
			return nil
		}
		if line.Next.File != file { // the stream never has what a crash of the machine may take from the log
			file = line.Next.File
			of := slices.IndexFunc(files, func(f record.File) bool { return f.ID == file })
			if err := durable.Sync(files[of].Opened); err != nil {
				return err
			}
		}
		id := hashOf(line)
		seq, prev := linkOf(line.Text)
		if at.hash != "" && prev != "" && prev != at.hash {
			return fmt.Errorf("record %d does not follow the one that was copied last; see parley audit verify", seq)
		}
		within, cancel := context.WithTimeout(ctx, requestTime)
		ack, err := c.js.PublishMsg(within, &nats.Msg{Subject: c.subject, Data: line.Text}, jetstream.WithMsgID(id),
			jetstream.WithExpectStream(catalog.Records), jetstream.WithExpectLastSequencePerSubject(at.seq))
		cancel()
		if err != nil {
			return err
		}
		*at = position{line.Next, ack.Sequence, id}
		if seq > 0 {
			c.acknowledge(seq)
		}
	}
	return nil
}

// find returns the position after the last line that the stream has of this front. The error is integrity if the log
// does not have that line.
func (c *Copier) find(ctx context.Context) (at position, err error) {
	within, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	stream, err := c.js.Stream(within, catalog.Records)
	if err != nil {
		return at, fmt.Errorf("the stream %s: %w", catalog.Records, err)
	}
	c.subject = strings.TrimSuffix(stream.CachedInfo().Config.Subjects[0], "*") + c.front
	last, err := stream.GetLastMsgForSubject(within, c.subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		c.acknowledge(0)
		return at, nil
	}
	if err != nil {
		return at, fmt.Errorf("the stream %s does not answer: %w", catalog.Records, err)
	}
	at.seq = last.Sequence
	files, err := c.journal.OpenFiles(record.Cursor{}, record.Filter{})
	defer record.CloseFiles(files)
	if err != nil {
		return at, err
	}
	copied, _ := linkOf(last.Data)
	oldest := uint64(0)
search:
	for _, file := range slices.Backward(files) {
		if file.Err != nil {
			return at, file.Err
		}
		end := file.Size
		for line, err := range c.journal.Backward(file.Opened, end) {
			if err != nil {
				return at, err
			}
			if hashOf(line) == last.Header.Get(jetstream.MsgIDHeader) {
				at.cursor = record.Cursor{File: file.ID, Offset: end}
				c.acknowledge(copied)
				return at, nil
			}
			end -= line.Size
			seq, _ := linkOf(line.Text)
			if oldest = cmp.Or(seq, oldest); 0 < oldest && oldest < copied {
				break search
			}
		}
	}
	if copied == 0 || oldest <= copied {
		c.mu.Lock()
		c.copied = 0
		c.mu.Unlock()
		return at, host.Errorf(host.Integrity, "the log does not have record %d, the last one of %s in the stream: another "+
			"front has this name, or the log was moved away, restored or changed; give this front another name",
			copied, c.front)
	}
	if lost := oldest - copied - 1; lost > 0 {
		c.log.Error("records were removed by rotation before they were copied", "first", copied+1, "records", lost)
	}
	c.acknowledge(copied)
	return at, nil
}

// CheckDurable returns an error unless each server has on its disk what it acknowledges, also after the machine has
// lost its power. The protocol does not show that to clients, so it is read from the monitoring addresses of the
// servers, URLs separated by commas. One of them must be that of the server of a connection, if there is one. Without
// an address, the note says what is not known.
func CheckDurable(ctx context.Context, conn *nats.Conn, monitors string) (note string, err error) {
	if monitors == "" {
		return "it is not known whether the server acknowledges a record only once it is on its disk; set fleet.monitor to " +
			"the server's monitoring address, such as http://127.0.0.1:8222", nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	isMonitored := conn == nil || !conn.IsConnected()
	for monitor := range strings.SplitSeq(monitors, ",") {
		var server struct {
			ID        string `json:"server_id"`
			JetStream struct {
				Config struct {
					SyncAlways bool `json:"sync_always"`
				} `json:"config"`
			} `json:"jetstream"`
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSpace(monitor)+"/varz", nil)
		var answer *http.Response
		if err == nil {
			answer, err = http.DefaultClient.Do(request)
		}
		if err == nil {
			err = json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&server)
			_ = answer.Body.Close()
		}
		if err != nil || server.ID == "" {
			return "", host.Errorf(host.Unavailable, "fleet.monitor: %s does not answer as a nats-server does: %v", monitor,
				cmp.Or(err, errors.New("it names no server_id")))
		}
		if !server.JetStream.Config.SyncAlways {
			return "", host.Errorf(host.ConfigError, "the server at %s acknowledges records before they are on its disk; "+
				"expected sync_interval: always in the block jetstream of its configuration", monitor)
		}
		isMonitored = isMonitored || server.ID == conn.ConnectedServerId()
	}
	if !isMonitored {
		return "", host.Errorf(host.ConfigError, "fleet.monitor: %s belongs to another server than the one at %s", monitors,
			conn.ConnectedUrlRedacted())
	}
	return "", nil
}
