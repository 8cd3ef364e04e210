package keeper

import (
	"encoding/json"
	"strconv"
)

// record is one event.
type record struct {
	seq      int64
	t        int64 // ms since the Unix epoch
	target   string
	owner    string // the owner of the target
	method   string
	params   json.RawMessage
	replayed bool
}

// size returns the approximate memory that the record takes, in bytes.
func (r *record) size() int { return len(r.params) + len(r.method) + len(r.target) + 96 }

// line returns the record as a line of a stream.
func (r *record) line(browser string) []byte {
	b := make([]byte, 0, r.size()+len(browser)+64)
	b = append(b, `{"seq":`...)
	b = strconv.AppendInt(b, r.seq, 10)
	b = append(b, `,"t":`...)
	b = strconv.AppendInt(b, r.t, 10)
	b = append(b, `,"browser":`...)
	b = append(b, quote(browser)...)
	b = append(b, `,"target":`...)
	b = append(b, quote(r.target)...)
	b = append(b, `,"method":`...)
	b = append(b, quote(r.method)...)
	b = append(b, `,"params":`...)
	if len(r.params) == 0 {
		b = append(b, "{}"...)
	} else {
		b = append(b, r.params...)
	}
	if r.replayed {
		b = append(b, `,"replayed":true`...)
	}
	return append(b, '}')
}

// ring stores the newest events, limited by count and by bytes.
type ring struct {
	maxCount, maxBytes int

	records []*record // a circular buffer: count records from head
	head    int
	count   int
	bytes   int
	lastSeq int64
	dropped int64 // events that were never stored or are no longer
}

func newRing(maxCount, maxBytes int) *ring {
	return &ring{maxCount: maxCount, maxBytes: maxBytes}
}

// add numbers the record and stores it.
func (g *ring) add(r *record) {
	g.lastSeq++
	r.seq = g.lastSeq
	if r.size() > g.maxBytes {
		g.dropped++
		return
	}
	for g.count > 0 && (g.count == g.maxCount || g.bytes+r.size() > g.maxBytes) {
		g.bytes -= g.records[g.head].size()
		g.records[g.head] = nil
		g.head = (g.head + 1) % len(g.records)
		g.count--
		g.dropped++
	}
	if g.count == len(g.records) {
		grown := make([]*record, min(g.maxCount, max(64, 2*len(g.records))))
		for i := range g.count {
			grown[i] = g.records[(g.head+i)%len(g.records)]
		}
		g.records, g.head = grown, 0
	}
	g.records[(g.head+g.count)%len(g.records)] = r
	g.count++
	g.bytes += r.size()
}

// skip counts an event that could not be read whole.
func (g *ring) skip() {
	g.lastSeq++
	g.dropped++
}

// since returns the stored records after seq, the oldest first, and the number of dropped ones after seq.
func (g *ring) since(seq int64) (records []*record, dropped int64) {
	if seq < 0 || seq > g.lastSeq {
		seq = 0
	}
	for i := range g.count {
		if r := g.records[(g.head+i)%len(g.records)]; r.seq > seq {
			records = append(records, r)
		}
	}
	return records, g.lastSeq - seq - int64(len(records))
}

// reassign changes the owner of the matching records.
func (r *ring) reassign(owner string, match func(*record) bool) {
	for _, one := range r.records {
		if one != nil && match(one) {
			one.owner = owner
		}
	}
}
