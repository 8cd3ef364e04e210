package instrument

// This file meters loops for which counting each round is not necessary.

// innermostLoop is a loop without inner loops, while it is being read. nil means that there is none.
type innermostLoop struct {
	frame        int
	begin        int      // where its code begins in the new body
	opener       []byte   // the loop instruction
	body         int      // where its body begins in the new code
	source       int      // where its body begins in the file
	accesses     int      // number of accesses to memory and tables before it in the function
	branches     []branch // branches that leave it or start it again
	callsCharged bool     // each round calls a function that charges itself
}

// branch is the position of a branch's label in the file.
type branch struct {
	offset, end int
	label       uint32
}

// recordBranch records a branch that leaves the loop or starts it again.
func (l *innermostLoop) recordBranch(at, end int, label uint32, frames int) {
	if l != nil && frames-1-int(label) <= l.frame {
		l.branches = append(l.branches, branch{at, end, label})
	}
}

// recordCall records a call of a function that charges itself.
func (l *innermostLoop) recordCall(frames int) {
	if l != nil && frames-1 == l.frame && len(l.branches) == 0 {
		l.callsCharged = true
	}
}

// A round of at most maxUncountedRound units without memory accesses is not counted if it calls a function that
// charges itself. The loop then costs at most a few times as much as its calls are charged.
const maxUncountedRound = 3

// endLoop is called at the end of a loop with the weight of a round and the position of the previous instruction.
// It makes an innermost loop cheaper if possible, and fills in its weights.
func (w *rewriter) endLoop(f *frame, round, last, end int) {
	m, loop, rounds := w.m, w.inner, 1
	switch {
	case loop == nil:
	case loop.callsCharged && round <= maxUncountedRound && m.accesses == loop.accesses:
		m.unmetered++
		m.tickOffsets = m.tickOffsets[:len(m.tickOffsets)-1]
		code := w.b[loop.body:]
		w.b = append(append(w.b[:loop.begin], loop.opener...), code...)
		return
	case w.copied == loop.source && len(w.b) == loop.body: // metering has added nothing to the loop
		rounds = w.unrollLoop(loop, last, end)
	}
	f.fillWeights(w.b, rounds*round, round)
}

// A loop is unrolled to at most maxUnrolledBytes bytes and maxRoundsPerCount rounds. All loops of a module may grow
// by maxGrowth bytes plus a quarter of its code, so that a module full of loops does not take several times as long
// to compile.
const (
	maxUnrolledBytes  = 384
	maxRoundsPerCount = 4
	maxGrowth         = 64 << 10
)

// unrollLoop writes several copies of the body of a small loop that ends with a branch to its beginning, so that
// they count as one. In a round of a few instructions the count would take a third of the time. It returns the
// number of rounds. Rounds after a br_if are in an if, so their branches go one level deeper each.
//
//	loop              loop
//	  body              body
//	  br_if 0   ->      if
//	end                   body
//	                      br_if 1
//	                    end
//	                  end
func (w *rewriter) unrollLoop(l *innermostLoop, last, end int) (rounds int) {
	d, b := w.d, w.b
	rounds = min(maxUnrolledBytes/max(end-l.source, 1), maxRoundsPerCount)
	branchBack := d.data[last:end]
	growth := d.growth + (rounds-1)*(end-l.source)
	if rounds < 2 || growth > maxGrowth+d.found.CodeBytes/4 || l.opener[1] != 0x40 || len(branchBack) != 2 ||
		branchBack[1] != 0 || branchBack[0] != opBr && branchBack[0] != opBrIf {
		return 1
	}
	d.growth = growth
	if branchBack[0] == opBr {
		for range rounds - 1 {
			b = append(b, d.data[l.source:last]...)
		}
		w.b = b
		return rounds
	}
	for depth := range rounds {
		if depth > 0 {
			b = append(b, opIf, 0x40)
		}
		from := l.source
		for _, j := range l.branches[:len(l.branches)-1] { // the last branch is the br_if
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
	w.b, w.copied = b, end
	return rounds
}

// dispatch is a loop that only branches: nested blocks around a br_table on a local variable. Go's compiler turns
// each function into such a loop, and each jump into a number in that variable and a branch to the loop. A jump with
// a known number counts as a branch to the end of the block that the number selects.
type dispatch struct {
	loopFrame int         // index of the loop's frame
	selector  uint32      // the local variable
	targets   []int       // for each number, the frame to whose end it leads
	headerEnd int         // where the nested blocks' header ends, in the file
	closed    map[int]int // for each frame that has ended, the due at its end
}

// matchDispatch returns the dispatch loop that begins at this position as the given frame, or nil if there is none.
func (w *rewriter) matchDispatch(loop int) *dispatch {
	r := reader{data: w.d.data, pos: w.d.pos, end: w.d.end}
	blocks := 0
	for r.remaining() > 2 && r.data[r.pos] == opBlock && r.data[r.pos+1] == 0x40 {
		blocks++
		r.pos += 2
	}
	disp := &dispatch{loopFrame: loop, headerEnd: r.pos, closed: map[int]int{}}
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

// jumpBack reads the number that the two instructions before a branch store in the selector, and returns what the
// branch has to count. A jump forward counts nothing. A jump back counts by how much the due here exceeds the due at
// its target. jumpBack returns -1 if the two instructions do not store such a number.
func (w *rewriter) jumpBack(value, set int) int {
	d, disp, frames, due := w.d, w.disp, w.frames, w.m.due
	r := reader{data: d.data, pos: value, end: d.end}
	if r.byte() != 0x41 {
		return -1
	}
	n := r.signed(32)
	if r.pos != set || r.byte() != 0x21 || r.u32() != disp.selector || n < 0 || n >= int64(len(disp.targets)) {
		return -1
	}
	target := disp.targets[n]
	if target < len(frames) && frames[target].dispatch == disp {
		frames[target].join = max(frames[target].join, due)
		return 0
	}
	if from, ok := disp.closed[target]; ok {
		return max(due-from, 1)
	}
	return -1
}
