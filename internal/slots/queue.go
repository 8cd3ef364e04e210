package slots

import "slices"

// Queue has the turns that wait for something. Callers take turns; the turns of one caller are in the order of
// arrival. The zero value is empty. It is not safe for concurrent use.
type Queue struct {
	waiting []*Turn // the first one is next; the others are ordered by round
	round   int     // round of the turn that is next, or was the last one
}

// Turn is one place in a queue. In each round each caller has one turn.
type Turn struct {
	// Woken receives a value when the turn may have come: when it becomes the first one, and again when [Queue.Wake] or
	// [Queue.WakeAll] is called.
	Woken chan struct{}

	caller string
	round  int
}

// Len returns the number of waiting turns.
func (q *Queue) Len() int { return len(q.waiting) }

// Place returns the position of a turn, counted from 1.
func (q *Queue) Place(t *Turn) int { return slices.Index(q.waiting, t) + 1 }

// Wake wakes the first turn.
func (q *Queue) Wake() { q.wake(1) }

// WakeAll wakes all turns, which then look whether what they wait for can still come.
func (q *Queue) WakeAll() { q.wake(len(q.waiting)) }

func (q *Queue) wake(n int) {
	for _, t := range q.waiting[:min(n, len(q.waiting))] {
		select {
		case t.Woken <- struct{}{}:
		default:
		}
	}
}

// Join adds a turn, in the first round in which its caller has no turn yet.
func (q *Queue) Join(caller string) *Turn {
	t := &Turn{caller: caller, round: q.round, Woken: make(chan struct{}, 1)}
	at := min(len(q.waiting), 1) // the first turn is already looking for a slot
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

// Leave removes a turn, and wakes the first one.
func (q *Queue) Leave(t *Turn) {
	i := slices.Index(q.waiting, t)
	if q.waiting = slices.Delete(q.waiting, i, i+1); len(q.waiting) > 0 {
		q.round = q.waiting[0].round
	}
	q.Wake()
}
