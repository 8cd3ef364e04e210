package keeper

import (
	"cmp"
	"slices"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// journals store the events of all sessions. Each session has a journal of its own, with sequence numbers of its own,
// because gaps would tell how busy the others are. The budget is divided equally: what happens in one session never
// evicts events of another. Only the first event of a further session does, because it makes the shares smaller.
type journals struct {
	maxCount, maxBytes int
	bySession          map[string]*journal // what belongs to no session is in the person's
	lastOrder          int64
}

// journal has the events of a session in one ring for each kind, so that the many that few ask for do not evict the
// few that many ask for.
type journal struct {
	rings   [kinds]ring
	lastSeq int64
	moved   int64 // to other journals
}

// Kinds of events, each with a ring of its own.
const (
	requests = iota // requests, their responses and failures, downloads
	messages        // console, log, exceptions
	others
	kinds
)

func newJournals(maxCount, maxBytes int) *journals {
	return &journals{maxCount: maxCount, maxBytes: maxBytes, bySession: map[string]*journal{}}
}

// of returns the journal of a session, which it creates if necessary.
func (js *journals) of(session string) *journal {
	j := js.bySession[session]
	if j == nil {
		j = &journal{}
		js.bySession[session] = j
		js.divide()
	}
	return j
}

// divide gives each ring its share of the budget.
func (js *journals) divide() {
	for _, j := range js.bySession {
		for i := range j.rings {
			shares := kinds * len(js.bySession)
			j.rings[i].limit(js.maxCount/shares, js.maxBytes/shares)
		}
	}
}

// add numbers a record and stores it for the session that it belongs to.
func (js *journals) add(r *record) {
	js.lastOrder++
	r.order = js.lastOrder
	r.owner = cmp.Or(r.owner, api.DefaultSession)
	js.of(r.owner).add(r.owner, r)
}

func (j *journal) add(session string, r *record) {
	j.lastSeq++
	r.seq, r.owner = j.lastSeq, session
	j.rings[kindOf(r.method)].add(r)
}

// skip counts an event that could not be read whole. Whose it was is unknown.
func (js *journals) skip() {
	js.lastOrder++
	for _, j := range js.bySession {
		j.lastSeq++
	}
}

// reassign moves the matching records to another session, as its newest ones: it has not read them yet.
func (js *journals) reassign(owner string, match func(*record) bool) {
	var moved []*record
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

// remove forgets a session with all its events.
func (js *journals) remove(session string) {
	if js.bySession[session] != nil {
		delete(js.bySession, session)
		js.divide()
	}
}

// lastSeqOf returns the newest sequence number of a session, 0 if it has no events.
func (js *journals) lastSeqOf(session string) int64 {
	if j := js.bySession[cmp.Or(session, api.DefaultSession)]; j != nil {
		return j.lastSeq
	}
	return 0
}

// since returns the stored records of a session after seq, the oldest first, and the newest sequence number.
func (js *journals) since(session string, seq int64) (records []*record, last int64) {
	j := js.bySession[session]
	if j == nil {
		return nil, 0
	}
	for i := range j.rings {
		for k := range j.rings[i].count {
			if r := j.rings[i].at(k); r.seq > seq {
				records = append(records, r)
			}
		}
	}
	slices.SortFunc(records, func(a, b *record) int { return cmp.Compare(a.seq, b.seq) })
	return records, j.lastSeq
}

func byOrder(a, b *record) int { return cmp.Compare(a.order, b.order) }

// info sums up the journals.
func (js *journals) info() api.RingInfo {
	info := api.RingInfo{LastSeq: js.lastOrder}
	for _, j := range js.bySession {
		info.Dropped += j.lastSeq - j.moved
		for i := range j.rings {
			info.Kept += j.rings[i].count
			info.Bytes += j.rings[i].bytes
		}
	}
	info.Dropped -= int64(info.Kept)
	return info
}
