package slots

import "slices"

// Queue has those that wait for something, callers in turn, and each in the order of arrival. The zero value is empty.
// It is not safe for concurrent use.
type Queue struct {
	waiting []*Turn // the first one is next; then by their rounds
	round   int     // of the one that is, or was, next
}

// Turn is one that waits. In each round each caller has one turn.
type Turn struct {
	// Woken has a value when the turn may have come: when it is the first one, and when [Queue.Wake] is called then.
	Woken chan struct{}

	caller string
	round  int
}

// Len returns how many wait.
func (q *Queue) Len() int { return len(q.waiting) }

// Place returns how many wait up to a turn, including it.
func (q *Queue) Place(t *Turn) int { return slices.Index(q.waiting, t) + 1 }

// Wake wakes the first one.
func (q *Queue) Wake() {
	if len(q.waiting) > 0 {
		select {
		case q.waiting[0].Woken <- struct{}{}:
		default:
		}
	}
}

// Join adds one that waits, in the first round in which its caller has no turn yet.
func (q *Queue) Join(caller string) *Turn {
	t := &Turn{caller: caller, round: q.round, Woken: make(chan struct{}, 1)}
	at := min(len(q.waiting), 1) // the first one is looking already
	for i, other := range q.waiting {
		if other.caller == caller {
			t.round = other.round + 1
		}
		if other.round <= t.round {
			at = i + 1
		}
	}
	if q.waiting = slices.Insert(q.waiting, at, t); len(q.waiting) == 1 {
		q.Wake()
	}
	return t
}

// Leave removes one that waited, and wakes the next one.
func (q *Queue) Leave(t *Turn) {
	i := slices.Index(q.waiting, t)
	if q.waiting = slices.Delete(q.waiting, i, i+1); len(q.waiting) > 0 {
		q.round = q.waiting[0].round
	}
	q.Wake()
}
