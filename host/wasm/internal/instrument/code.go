package instrument

// readCode rewrites all bodies into one code section. It writes the sizes last, because bodies grow.
func (d *decoder) readCode() {
	start := d.pos
	d.found.CodeBytes = d.end - d.pos
	n := d.count("function bodies", 2, d.cfg.Limits.Functions)
	if want := len(d.has.funcs) - d.has.imported; n != want && d.err == nil {
		d.fail(start, "%d functions are declared but %d bodies follow", want, n)
	}
	if !d.cfg.Plain {
		d.measureSmallFunctions(n)
	}
	content := make([]byte, 0, d.remaining()+d.remaining()/3+256)
	for i := range n {
		d.readBody(func() { d.rewriteFunction(d.has.imported + i) })
		if d.err != nil {
			return
		}
		content = appendU32(content, uint32(len(d.body)))
		content = append(content, d.body...)
	}
	if d.dataCount >= 0 && (d.usesData || d.cfg.Plain) {
		d.writeSection(secDataCount, appendU32(nil, uint32(d.dataCount)))
	}
	d.writeVector(secCode, n, content)
}

// readBody reads the size of the next body and calls read, which cannot read beyond it.
func (d *decoder) readBody(read func()) {
	at := d.pos
	size := d.u32()
	if d.err == nil && int64(size) > int64(d.remaining()) {
		d.fail(at, "a body of %d bytes is declared but only %d are left", size, d.remaining())
	}
	if d.err == nil && size > maxBody {
		d.fail(at, "a function of %d bytes is too large to compile, at most %d are accepted", size, maxBody)
	}
	if d.err != nil {
		return
	}
	sectionEnd := d.end
	d.end = d.pos + int(size)
	if read(); d.err == nil {
		d.end = sectionEnd
	}
}

// measureSmallFunctions finds the small functions without loops, which do not charge themselves, and computes their
// weights.
func (d *decoder) measureSmallFunctions(n int) {
	start := d.pos
	d.callerPays = make([]uint8, d.has.imported+n)
	for f := d.has.imported; f < len(d.callerPays) && d.err == nil; f++ {
		d.readBody(func() {
			if d.remaining() > maxSmallBody {
				d.pos = d.end
				return
			}
			_, _, locals := d.readLocals(f)
			w := newRewriter(d, d.body[:0], &meter{counted: d.pos})
			m := w.m
			if d.body = w.rewrite(locals); d.err == nil && m.loops == 0 {
				d.callerPays[f] = uint8(1 + m.most/unitBytes)
				d.maxCallerPays = max(d.maxCallerPays, int(d.callerPays[f]))
			}
		})
	}
	d.pos = start
}

// frame is an open block.
type frame struct {
	op      byte // the instruction that opened it
	charged bool // every path to this position has charged a small function
	join    int  // the largest due at the branches to its end, and at the end of the first arm of an if with an else

	// The due at the beginning of an if or a loop. For a loop also: the number of branch tables before it; by how much
	// the due at an uncounted branch back exceeds the due at the beginning; and the offsets in the new body for the
	// weight that is counted at once, for its negative, and for the weight of one round.
	due, tables, round                         int
	weightOffsets, restartOffsets, freeOffsets []int

	dispatch *dispatch // set for a block to which this dispatch loop branches
}

// fillWeights writes the weights of a loop at the recorded offsets.
func (f *frame) fillWeights(b []byte, weight, round int) {
	fillPadded(b, f.weightOffsets, weight)
	fillPadded(b, f.restartOffsets, -weight)
	fillPadded(b, f.freeOffsets, round)
}

// readLocals reads the locals of a function. It returns the number of groups, the groups' bytes, and the number of
// locals including parameters.
func (d *decoder) readLocals(f int) (groups int, declared []byte, locals int) {
	groups = d.count("groups of locals", 2, maxLocals)
	start := d.pos
	locals = d.has.params[d.has.funcs[f]]
	for range groups {
		at := d.pos
		n := d.u32()
		d.valueType()
		if n > maxLocals || locals+int(n) > maxLocals+maxParams {
			d.fail(at, "a function has more than %d locals", maxLocals)
			return 0, nil, 0
		}
		locals += int(n)
	}
	return groups, d.data[start:d.pos], locals
}

// rewriteFunction rewrites the body between pos and end into d.body.
func (d *decoder) rewriteFunction(f int) {
	start := d.pos
	groups, declared, locals := d.readLocals(f)
	if d.locals += locals - d.has.params[d.has.funcs[f]]; d.locals > d.cfg.Limits.allLocals() {
		d.fail(start, "all functions together have more than %d locals", d.cfg.Limits.allLocals())
	}
	if d.err != nil {
		return
	}
	if d.cfg.Plain {
		b := append(appendU32(d.body[:0], uint32(groups)), declared...)
		d.body = newRewriter(d, b, &meter{counted: d.pos}).rewrite(locals)
		return
	}
	b := append(appendU32(d.body[:0], uint32(groups+1)), declared...)
	m := &meter{enabled: true, counter: uint32(locals), counted: d.pos, chargeAtCalls: d.callerPays[f] > 0}
	w := newRewriter(d, append(b, 1, typeI32), m)
	if !m.chargeAtCalls {
		w.emitEntry()
	}
	b = w.rewrite(locals)
	var weight int
	if m.chargeAtCalls {
		weight = 1 + m.callees // its callers are charged for its own code
	} else {
		weight = 1 + m.most/unitBytes
		if m.loops > m.unmetered {
			weight += firstTick // what its loops have counted but not reported when it returns
		}
	}
	if d.err != nil {
		return
	}
	fillPadded(b, m.chargeOffsets, min(weight, yieldEvery))
	m.fillTicks(b)
	d.body = b
}
