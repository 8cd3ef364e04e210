package instrument

// Loops whose metering can be cheaper than a count of each round.

// innermostLoop is a loop that holds no other, while it is read. Nil is none.
type innermostLoop struct {
	frame        int
	begin        int      // of what was written for it
	opener       []byte   // its first instruction
	body         int      // where what it does begins, in the new body
	source       int      // and in the file
	accesses     int      // of memory and tables in the function before it
	branches     []branch // out of it or back to its beginning
	callsCharged bool     // each round calls a function that charges itself
}

// branch is where the label of a jump stands in the file.
type branch struct {
	offset, end int
	label       uint32
}

// recordBranch notes a jump that leaves the loop or begins it again.
func (l *innermostLoop) recordBranch(at, end int, label uint32, frames int) {
	if l != nil && frames-1-int(label) <= l.frame {
		l.branches = append(l.branches, branch{at, end, label})
	}
}

// recordCall notes a call of a function that charges itself.
func (l *innermostLoop) recordCall(frames int) {
	if l != nil && frames-1 == l.frame && len(l.branches) == 0 {
		l.callsCharged = true
	}
}

// A round of at most paidRound units without an access to memory is not counted if it calls a function that charges itself: what such a loop
// does is then a few times what its calls pay for.
const maxUncountedRound = 3

// endLoop is called at the end of a loop, with what a round weighs and where the instruction before begins. It makes an innermost loop cheaper,
// if it can, and writes its weights.
func (d *decoder) endLoop(b []byte, from int, m *meter, f *frame, loop *innermostLoop, round, last, end int) ([]byte, int) {
	rounds := 1
	switch {
	case loop == nil:
	case loop.callsCharged && round <= maxUncountedRound && m.accesses == loop.accesses:
		m.unmetered++
		code := b[loop.body:]
		return append(append(b[:loop.begin], loop.opener...), code...), from
	case from == loop.source && len(b) == loop.body: // nothing was added to it
		b, from, rounds = d.unrollLoop(b, loop, last, end)
	}
	f.fillWeights(b, rounds*round, round)
	return b, from
}

// A loop is unrolled to at most unrolled bytes, and so many rounds. All loops of a module may grow by mostGrown bytes and a quarter of its code,
// so that one of nothing but loops does not take several times as long to compile.
const (
	maxUnrolledBytes  = 384
	maxRoundsPerCount = 4
	maxGrowth         = 64 << 10
)

// unrollLoop writes a small loop that ends by beginning again as several rounds behind each other, which are counted as one: on a round of a few
// instructions, the count would be a third. It returns how many rounds. Rounds behind a br_if lie in ifs, and what they jump out of is deeper by these.
//
//	loop              loop
//	  body              body
//	  br_if 0   ->      if
//	end                   body
//	                      br_if 1
//	                    end
//	                  end
func (d *decoder) unrollLoop(b []byte, l *innermostLoop, last, end int) (_ []byte, from, rounds int) {
	rounds = min(maxUnrolledBytes/max(end-l.source, 1), maxRoundsPerCount)
	branchBack := d.data[last:end]
	growth := d.growth + (rounds-1)*(end-l.source)
	if rounds < 2 || growth > maxGrowth+d.found.CodeBytes/4 || l.opener[1] != 0x40 || len(branchBack) != 2 || branchBack[1] != 0 || branchBack[0] != opBr && branchBack[0] != opBrIf {
		return b, l.source, 1
	}
	d.growth = growth
	if branchBack[0] == opBr {
		for range rounds - 1 {
			b = append(b, d.data[l.source:last]...)
		}
		return b, l.source, rounds
	}
	for depth := range rounds {
		if depth > 0 {
			b = append(b, opIf, 0x40)
		}
		from := l.source
		for _, j := range l.branches[:len(l.branches)-1] { // the last is the br_if
			b = append(b, d.data[from:j.offset]...)
			b = appendU32(b, j.label+uint32(depth))
			from = j.end
		}
		b = append(b, d.data[from:last]...)
	}
	b = append(b, opBrIf, byte(rounds-1))
	for range rounds - 1 {
		b = append(b, opEnd)
	}
	return b, end, rounds
}

// dispatch is a loop that does nothing but jump: a nest of blocks, and in it a br_table by a local. Go's compiler makes one of each function, and of
// each jump in it, forward or back, a number in that local and a branch to the loop. Its rounds are not charged, but the jumps back: a jump
// forward, to the end of a block that is still open, leads to nothing that the function's own weight does not hold.
type dispatch struct {
	loopFrame int         // which frame the loop is
	selector  uint32      // the local
	targets   []int       // which frame each number leads to the end of
	headerEnd int         // of the nest's beginning, in the file
	closedAt  map[int]int // of a frame of the nest that has ended: what the function weighs up to there
	weight    []int       // where the weight of the whole loop goes
}

// dispatch looks whether the loop that begins here, which will be the given frame, is one; nil if it is not.
func (d *decoder) matchDispatch(loop int) *dispatch {
	r := reader{data: d.data, pos: d.pos, end: d.end}
	blocks := 0
	for r.remaining() > 2 && d.data[r.pos] == opBlock && d.data[r.pos+1] == 0x40 {
		blocks++
		r.pos += 2
	}
	disp := &dispatch{loopFrame: loop, headerEnd: r.pos, closedAt: map[int]int{}}
	if r.byte() != 0x20 { // local.get
		return nil
	}
	if disp.selector = r.u32(); r.byte() != 0x0e {
		return nil
	}
	for range r.count("labels", 1, maxBody) {
		disp.targets = append(disp.targets, loop+blocks-int(r.u32()))
	}
	if r.err != nil {
		return nil
	}
	return disp
}

// branchUnits reads the number that the two instructions before a branch put into the selector, and tells how many units the jump goes back; 0
// for one that goes forward. It is not known where those instructions are others.
func (d *decoder) branchUnits(disp *dispatch, frames []frame, value, set, units int) (back int, known bool) {
	r := reader{data: d.data, pos: value, end: d.end}
	if r.byte() != 0x41 {
		return 0, false
	}
	n := r.signed(32)
	if r.pos != set || r.byte() != 0x21 || r.u32() != disp.selector || n < 0 || n >= int64(len(disp.targets)) {
		return 0, false
	}
	target := disp.targets[n]
	if target < len(frames) && frames[target].dispatch == disp {
		return 0, true
	}
	end, ok := disp.closedAt[target]
	return 1 + units - end, ok
}
