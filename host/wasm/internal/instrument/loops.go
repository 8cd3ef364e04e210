package instrument

// Loops whose metering can be cheaper than a count of each round.

// innermost is a loop that holds no other, while it is read. Nil is none.
type innermost struct {
	frame    int
	begin    int    // of what was written for it
	opener   []byte // its first instruction
	body     int    // where what it does begins, in the new body
	source   int    // and in the file
	accesses int    // of memory and tables in the function before it
	jumps    []leap // out of it or back to its beginning
	pays     bool   // each round calls a function that charges itself
}

// leap is where the label of a jump stands in the file.
type leap struct {
	at, end int
	label   uint32
}

// jump notes a jump that leaves the loop or begins it again.
func (l *innermost) jump(at, end int, label uint32, frames int) {
	if l != nil && frames-1-int(label) <= l.frame {
		l.jumps = append(l.jumps, leap{at, end, label})
	}
}

// call notes a call of a function that charges itself.
func (l *innermost) call(frames int) {
	if l != nil && frames-1 == l.frame && len(l.jumps) == 0 {
		l.pays = true
	}
}

// A round of at most paidRound units without an access to memory is not counted if it calls a function that charges itself: what such a loop
// does is then a few times what its calls pay for.
const paidRound = 3

// endLoop is called at the end of a loop, with what a round weighs and where the instruction before begins. It makes an innermost loop cheaper,
// if it can, and writes its weights.
func (d *decoder) endLoop(b []byte, from int, m *meter, f *frame, l *innermost, round, last, end int) ([]byte, int) {
	turns := 1
	switch {
	case l == nil:
	case l.pays && round <= paidRound && m.accesses == l.accesses:
		m.unmetered++
		code := b[l.body:]
		return append(append(b[:l.begin], l.opener...), code...), from
	case from == l.source && len(b) == l.body: // nothing was added to it
		b, from, turns = d.unroll(b, l, last, end)
	}
	f.fill(b, turns*round, round)
	return b, from
}

// A loop is unrolled to at most unrolled bytes, and so many rounds. All loops of a module may grow by mostGrown bytes and a quarter of its code,
// so that one of nothing but loops does not take several times as long to compile.
const (
	unrolled  = 384
	mostTurns = 4
	mostGrown = 64 << 10
)

// unroll writes a small loop that ends by beginning again as several rounds behind each other, which are counted as one: on a round of a few
// instructions, the count would be a third. It returns how many rounds. Rounds behind a br_if lie in ifs, and what they jump out of is deeper by these.
//
//	loop              loop
//	  body              body
//	  br_if 0   ->      if
//	end                   body
//	                      br_if 1
//	                    end
//	                  end
func (d *decoder) unroll(b []byte, l *innermost, last, end int) (_ []byte, from, turns int) {
	turns = min(unrolled/max(end-l.source, 1), mostTurns)
	again := d.data[last:end]
	grown := d.grown + (turns-1)*(end-l.source)
	if turns < 2 || grown > mostGrown+d.found.CodeBytes/4 || l.opener[1] != 0x40 || len(again) != 2 || again[1] != 0 || again[0] != opBr && again[0] != opBrIf {
		return b, l.source, 1
	}
	d.grown = grown
	if again[0] == opBr {
		for range turns - 1 {
			b = append(b, d.data[l.source:last]...)
		}
		return b, l.source, turns
	}
	for depth := range turns {
		if depth > 0 {
			b = append(b, opIf, 0x40)
		}
		from := l.source
		for _, j := range l.jumps[:len(l.jumps)-1] { // the last is the br_if
			b = append(b, d.data[from:j.at]...)
			b = appendU32(b, j.label+uint32(depth))
			from = j.end
		}
		b = append(b, d.data[from:last]...)
	}
	b = append(b, opBrIf, byte(turns-1))
	for range turns - 1 {
		b = append(b, opEnd)
	}
	return b, end, turns
}

// dispatch is a loop that does nothing but jump: a nest of blocks, and in it a br_table by a local. Go's compiler makes one of each function, and of
// each jump in it, forward or back, a number in that local and a branch to the loop. Its rounds are not charged, but the jumps back: a jump
// forward, to the end of a block that is still open, leads to nothing that the function's own weight does not hold.
type dispatch struct {
	loop     int         // which frame the loop is
	selector uint32      // the local
	targets  []int       // which frame each number leads to the end of
	end      int         // of the nest's beginning, in the file
	closed   map[int]int // of a frame of the nest that has ended: what the function weighs up to there
	weight   []int       // where the weight of the whole loop goes
}

// dispatch looks whether the loop that begins here, which will be the given frame, is one; nil if it is not.
func (d *decoder) dispatch(loop int) *dispatch {
	r := reader{data: d.data, pos: d.pos, end: d.end}
	nest := 0
	for r.left() > 2 && d.data[r.pos] == opBlock && d.data[r.pos+1] == 0x40 {
		nest++
		r.pos += 2
	}
	j := &dispatch{loop: loop, end: r.pos, closed: map[int]int{}}
	if r.byte() != 0x20 { // local.get
		return nil
	}
	if j.selector = r.u32(); r.byte() != 0x0e {
		return nil
	}
	for range r.count("labels", 1, maxBody) {
		j.targets = append(j.targets, loop+nest-int(r.u32()))
	}
	if r.err != nil {
		return nil
	}
	return j
}

// jump reads the number that the two instructions before a branch put into the selector, and tells how many units the jump goes back; 0
// for one that goes forward. It is not known where those instructions are others.
func (d *decoder) jump(j *dispatch, frames []frame, value, set, units int) (back int, known bool) {
	r := reader{data: d.data, pos: value, end: d.end}
	if r.byte() != 0x41 {
		return 0, false
	}
	n := r.signed(32)
	if r.pos != set || r.byte() != 0x21 || r.u32() != j.selector || n < 0 || n >= int64(len(j.targets)) {
		return 0, false
	}
	target := j.targets[n]
	if target < len(frames) && frames[target].labels == j {
		return 0, true
	}
	end, ok := j.closed[target]
	return 1 + units - end, ok
}
