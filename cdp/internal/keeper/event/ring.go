package event

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// Record is one event.
type Record struct {
	order    int64 // among all events of the browser
	seq      int64 // among the events of its session, see journal
	t        int64 // ms since the Unix epoch
	Target   string
	Owner    string // the session that it belongs to: first the owner of the target, then of the journal
	Method   string
	Params   json.RawMessage
	url      string // of the request, else of the page
	ofURL    bool   // the params lack the URL of the request, so that the line has it
	status   int    // of a response; noResponse for a request that failed without one; 0 for other events
	note     string // of the keeper
	replayed bool
	Private  bool // only the command line may hear it
	quiet    bool // only for who asks for its domain by name
}

// noResponse is the status of a request that ended without a response.
const noResponse = -1

// recordSize is what a record takes beside its texts: the struct, its allocations and its slot in a ring.
const recordSize = 256

// size returns the approximate memory that the record takes, in bytes.
func (r *Record) size() int {
	return len(r.Params) + len(r.Method) + len(r.Target) + len(r.url) + len(r.note) + recordSize
}

// line returns the record as a line of a stream or an element of [Events].
func (r *Record) line(browser string) []byte {
	b := make([]byte, 0, r.size()+len(browser)+64)
	b = append(b, `{"seq":`...)
	b = strconv.AppendInt(b, r.seq, 10)
	b = append(b, `,"t":`...)
	b = strconv.AppendInt(b, r.t, 10)
	b = append(b, `,"browser":`...)
	b = append(b, scan.Quote(browser)...)
	b = append(b, `,"target":`...)
	b = append(b, scan.Quote(r.Target)...)
	b = append(b, `,"method":`...)
	b = append(b, scan.Quote(r.Method)...)
	b = append(b, `,"params":`...)
	if len(r.Params) == 0 {
		b = append(b, "{}"...)
	} else {
		b = append(b, r.Params...)
	}
	if r.ofURL && r.url != "" {
		b = append(append(b, `,"url":`...), scan.Quote(r.url)...)
	}
	if r.note != "" {
		b = append(append(b, `,"note":`...), scan.Quote(r.note)...)
	}
	if r.replayed {
		b = append(b, `,"replayed":true`...)
	}
	return append(b, '}')
}

// ring stores the newest records, limited by count and by bytes.
type ring struct {
	maxCount, maxBytes int

	records []*Record // the oldest first
	bytes   int
}

// add stores a record, unless it alone is larger than the ring.
func (g *ring) add(r *Record) {
	if r.size() > g.maxBytes {
		return
	}
	g.records = append(g.records, r)
	g.bytes += r.size()
	g.limit(g.maxCount, g.maxBytes)
}

// limit changes the limits, and evicts the oldest records that exceed them.
func (g *ring) limit(maxCount, maxBytes int) {
	g.maxCount, g.maxBytes = max(1, maxCount), maxBytes
	for len(g.records) > g.maxCount || g.bytes > g.maxBytes {
		g.bytes -= g.records[0].size()
		g.records[0] = nil
		g.records = g.records[1:]
	}
}

// take removes the matching records and returns them, the oldest first.
func (g *ring) take(match func(*Record) bool) (taken []*Record) {
	g.records = slices.DeleteFunc(g.records, func(r *Record) bool {
		if !match(r) {
			return false
		}
		taken = append(taken, r)
		g.bytes -= r.size()
		return true
	})
	return taken
}
