package event

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// Journals store the events of all sessions. Each session has a journal of its own, with sequence numbers of its own,
// because gaps would tell how busy the others are. The budget is divided equally: what happens in one session never
// evicts events of another. Only the first event of a further session does, because it makes the shares smaller.
type Journals struct {
	maxCount, maxBytes int
	bySession          map[string]*journal // what belongs to no session is in the person's journal
	lastOrder          int64
}

// journal has the events of a session in one ring for each kind, so that many events of little interest do not evict
// few events of much interest.
type journal struct {
	rings   [kinds]ring
	lastSeq int64
	moved   int64 // number of records moved to other journals
}

// Kinds of events, each with a ring of its own.
const (
	requests = iota // requests, their responses and failures, downloads
	messages        // console, log, exceptions
	others
	kinds
)

func newJournals(maxCount, maxBytes int) *Journals {
	return &Journals{maxCount: maxCount, maxBytes: maxBytes, bySession: map[string]*journal{}}
}

// of returns the journal of a session, which it creates if necessary.
func (js *Journals) of(session string) *journal {
	j := js.bySession[session]
	if j == nil {
		j = &journal{}
		js.bySession[session] = j
		js.divide()
	}
	return j
}

// divide gives each ring its share of the budget.
func (js *Journals) divide() {
	for _, j := range js.bySession {
		for i := range j.rings {
			shares := kinds * len(js.bySession)
			j.rings[i].limit(js.maxCount/shares, js.maxBytes/shares)
		}
	}
}

// Add numbers a record and stores it for the session that it belongs to.
func (js *Journals) add(r *Record) {
	js.lastOrder++
	r.order = js.lastOrder
	r.Owner = cmp.Or(r.Owner, api.DefaultSession)
	js.of(r.Owner).add(r.Owner, r)
}

func (j *journal) add(session string, r *Record) {
	j.lastSeq++
	r.seq, r.Owner = j.lastSeq, session
	j.rings[kindOf(r.Method)].add(r)
}

// Skip counts an event that could not be read whole. Its session is unknown.
func (js *Journals) skip() {
	js.lastOrder++
	for _, j := range js.bySession {
		j.lastSeq++
	}
}

// Reassign moves the matching records to another session, as its newest ones, because that session has not read them
// yet.
func (js *Journals) Reassign(owner string, match func(*Record) bool) {
	var moved []*Record
	for session, j := range js.bySession {
		if session == owner {
			continue
		}
		for i := range j.rings {
			taken := j.rings[i].take(match)
			moved = append(moved, taken...)
			j.moved += int64(len(taken))
		}
	}
	slices.SortFunc(moved, byOrder)
	for _, r := range moved {
		js.of(owner).add(owner, r)
	}
}

// Remove forgets a session with all its events.
func (js *Journals) Remove(session string) {
	if js.bySession[session] != nil {
		delete(js.bySession, session)
		js.divide()
	}
}

// LastSeqOf returns the newest sequence number of a session, 0 if it has no events.
func (js *Journals) LastSeqOf(session string) int64 {
	if j := js.bySession[cmp.Or(session, api.DefaultSession)]; j != nil {
		return j.lastSeq
	}
	return 0
}

// since returns the stored records of a session after seq, the oldest first, and the newest sequence number.
func (js *Journals) since(session string, seq int64) (records []*Record, last int64) {
	j := js.bySession[session]
	if j == nil {
		return nil, 0
	}
	bySeq := func(r *Record, seq int64) int { return cmp.Compare(r.seq, seq) }
	for i := range j.rings {
		first, _ := slices.BinarySearchFunc(j.rings[i].records, seq+1, bySeq)
		records = append(records, j.rings[i].records[first:]...)
	}
	slices.SortFunc(records, func(a, b *Record) int { return bySeq(a, b.seq) })
	return records, j.lastSeq
}

func byOrder(a, b *Record) int { return cmp.Compare(a.order, b.order) }

// Info sums up the journals.
func (js *Journals) Info() api.RingInfo {
	info := api.RingInfo{LastSeq: js.lastOrder}
	for _, j := range js.bySession {
		info.Dropped += j.lastSeq - j.moved
		for i := range j.rings {
			info.Kept += len(j.rings[i].records)
			info.Bytes += j.rings[i].bytes
		}
	}
	info.Dropped -= int64(info.Kept)
	return info
}

// Record is one event.
type Record struct {
	order    int64 // among all events of the browser
	seq      int64 // among the events of its session, see journal
	t        int64 // ms since the Unix epoch
	Target   string
	Owner    string // the session that it belongs to: at first the target's owner, then the journal's
	Method   string
	Params   json.RawMessage
	url      string // the request's URL, or else the page's
	ofURL    bool   // the params lack the request's URL, so the line adds it
	status   int    // of a response; noResponse for a request that failed without one; 0 for other events
	note     string // from the keeper
	replayed bool
	Private  bool // only the command line may hear it
	quiet    bool // only for streams that name its domain
}

// noResponse is the status of a request that ended without a response.
const noResponse = -1

// recordSize is the memory of a record besides its texts, in bytes: the struct, its allocations and its slot in a
// ring.
const recordSize = 256

// size returns the approximate memory that the record takes, in bytes.
func (r *Record) size() int {
	return len(r.Params) + len(r.Method) + len(r.Target) + len(r.url) + len(r.note) + recordSize
}

// line returns the record as a line of a stream or an element of [Events].
func (r *Record) line(browser string) []byte {
	b := make([]byte, 0, r.size()+len(browser)+64)
	b = fmt.Appendf(b, `{"seq":%d,"t":%d,"browser":%s,"target":%s,"method":%s,"params":`, r.seq, r.t, scan.Quote(browser),
		scan.Quote(r.Target), scan.Quote(r.Method))
	if len(r.Params) == 0 {
		b = append(b, "{}"...)
	}
	b = append(b, r.Params...)
	if r.ofURL && r.url != "" {
		b = fmt.Appendf(b, `,"url":%s`, scan.Quote(r.url))
	}
	if r.note != "" {
		b = fmt.Appendf(b, `,"note":%s`, scan.Quote(r.note))
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
