package instrument

// readCode rewrites all bodies into one code section. Sizes are written afterwards, because bodies grow.
func (d *decoder) readCode() {
	start := d.pos
	d.found.CodeBytes = d.end - d.pos
	n := d.count("function bodies", 2, d.cfg.Limits.Functions)
	if want := len(d.funcs) - d.imported; n != want && d.err == nil {
		d.fail(start, "%d functions are declared but %d bodies follow", want, n)
	}
	total := n
	if !d.cfg.Plain {
		total += d.addedFunctions()
		d.measureSmallFunctions(n)
	}
	content := appendU32(make([]byte, 0, d.remaining()+d.remaining()/3+256), uint32(total))
	for i := range n {
		d.readBody(func() { d.rewriteFunction(d.imported + i) })
		if d.err != nil {
			return
		}
		content = appendU32(content, uint32(len(d.body)))
		content = append(content, d.body...)
	}
	if !d.cfg.Plain {
		content = d.addCode(content)
	}
	if d.dataCount >= 0 && (d.usesData || d.cfg.Plain) {
		d.writeSection(secDataCount, appendU32(nil, uint32(d.dataCount)))
	}
	d.writeSection(secCode, content)
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
	d.callerPays = make([]uint8, d.imported+n)
	for f := d.imported; f < len(d.callerPays) && d.err == nil; f++ {
		d.readBody(func() {
			if d.remaining() > maxSmallBody {
				d.pos = d.end
				return
			}
			_, _, locals := d.readLocals(f)
			m := meter{counted: d.pos}
			if d.body = d.rewriteInstructions(d.body[:0], locals, &m); d.err == nil && m.loops == 0 {
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
	join    int  // the largest due of the branches to its end, and of the first arm of an if with an else

	// For an if and a loop: what is due where it begins. For a loop: how many branch tables precede it, by how much
	// the due of an uncounted branch back exceeds that at the beginning, and where the new body needs the weight that
	// is counted at once, its negative, and the weight of one round.
	due, tables, round                         int
	weightOffsets, restartOffsets, freeOffsets []int

	dispatch *dispatch // set for a block to which this dispatch loop branches
}

// fillWeights fills in the weights of a loop.
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
	locals = d.params[d.funcs[f]]
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
	if d.locals += locals - d.params[d.funcs[f]]; d.locals > d.cfg.Limits.allLocals() {
		d.fail(start, "all functions together have more than %d locals", d.cfg.Limits.allLocals())
	}
	if d.err != nil {
		return
	}
	if d.cfg.Plain {
		b := append(appendU32(d.body[:0], uint32(groups)), declared...)
		d.body = d.rewriteInstructions(b, locals, &meter{counted: d.pos})
		return
	}
	b := append(appendU32(d.body[:0], uint32(groups+1)), declared...)
	b = append(b, 1, typeI32)
	m := meter{enabled: true, counter: uint32(locals), counted: d.pos, chargeAtCalls: d.callerPays[f] > 0}
	var weight int
	if m.chargeAtCalls {
		b = d.rewriteInstructions(b, locals, &m)
		weight = 1 + m.callees // the callers are charged for its own code
	} else {
		b = d.rewriteInstructions(d.emitEntry(b, &m), locals, &m)
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

const (
	opBlock = 0x02
	opLoop  = 0x03
	opIf    = 0x04
	opElse  = 0x05
	opEnd   = 0x0b
	opBr    = 0x0c
	opBrIf  = 0x0d
	opTable = 0x0e
	opCall  = 0x10
)

// rewriteInstructions copies the instructions of a body to b. It validates each instruction and adds the metering.
// The bytes from copied to d.pos have not been written yet.
func (d *decoder) rewriteInstructions(b []byte, locals int, m *meter) []byte {
	start, copied := d.pos, d.pos
	frames := append(d.frames[:0], frame{op: opBlock, join: unreachable})
	loops := 0
	var disp *dispatch       // of the open loop, if it is a dispatch loop
	var inner *innermostLoop // the loop that was opened last, until it or one in it ends
	var lastAt, prevAt int   // positions of this instruction and the previous one
	for len(frames) > 0 {
		if m.advance(d.pos); m.due > max(stretch, (d.end-start)/maxCharges) && m.enabled && !m.chargeAtCalls {
			b = append(b, d.data[copied:d.pos]...)
			copied = d.pos
			b = d.emitDue(b, m)
		}
		at := d.pos
		op := d.byte()
		top := &frames[len(frames)-1]
		setAt, valueAt := lastAt, prevAt // positions of the two instructions before this one
		lastAt, prevAt = at, lastAt
		switch {
		case op == opBlock || op == opLoop || op == opIf:
			params := d.readBlockType()
			if op == opIf {
				m.advance(d.pos)
			}
			m.counted = d.pos // the others are only labels
			f := frame{op: op, charged: top.charged, join: unreachable, due: m.due, tables: m.tables}
			if len(frames) >= maxNesting {
				d.fail(at, "blocks are nested more than %d deep", maxNesting)
			}
			if op == opLoop {
				if loops++; loops > maxLoopNesting {
					d.fail(at, "loops are nested more than %d deep, which takes too long to compile", maxLoopNesting)
				}
				m.loops++
				if m.enabled && d.err == nil {
					b = append(b, d.data[copied:at]...)
					inner = &innermostLoop{frame: len(frames), begin: len(b), opener: d.data[at:d.pos]}
					if loops == 1 {
						b = emitFreeRound(b, m.counter, &f)
					}
					b = append(b, inner.opener...)
					copied = d.pos
					b = d.emitLoop(b, m, params, &f)
					inner.body, inner.source, inner.accesses = len(b), d.pos, m.accesses
					if loops == 1 && params == 0 {
						disp = d.matchDispatch(len(frames))
					}
				}
			}
			if disp != nil && op == opBlock && at < disp.headerEnd {
				f.dispatch = disp
			}
			frames = append(frames, f)
		case op == opElse:
			if top.op != opIf {
				d.fail(at, "else without if")
				break
			}
			m.counted = d.pos
			top.op, top.charged = opElse, frames[len(frames)-2].charged
			top.join, m.due = max(top.join, m.due), top.due
		case op == opEnd:
			m.counted = d.pos
			frames = frames[:len(frames)-1]
			m.due = max(m.due, top.join)
			if top.op == opIf {
				m.due = max(m.due, top.due)
			}
			if top.dispatch != nil {
				disp.closed[len(frames)] = m.due
			}
			if top.op == opLoop {
				loops--
				if m.enabled && d.err == nil {
					b, copied = d.endLoop(b, copied, m, top, inner, 1+top.round/unitBytes, setAt, at)
					inner = nil
					if disp != nil && disp.loopFrame == len(frames) {
						disp = nil
					}
				}
			}
		case op == opBr || op == opBrIf:
			n := d.index("label", len(frames))
			inner.recordBranch(at+1, d.pos, n, len(frames))
			m.advance(d.pos)
			if d.err == nil {
				back := -1
				if disp != nil && op == opBr && len(frames)-1-int(n) == disp.loopFrame {
					back = d.jumpBack(disp, frames, valueAt, setAt, m.due)
				}
				if back < 0 {
					back = m.branch(&frames[len(frames)-1-int(n)])
				}
				b, copied = d.emitBack(b, copied, at, m, back)
			}
			if op == opBr {
				m.due = unreachable
			}
		case op == opTable:
			m.add(tableCost) // the labels are no code that runs
			back := 0
			for range d.count("labels", 1, maxBody) + 1 {
				at := d.pos
				n := d.index("label", len(frames))
				inner.recordBranch(at, d.pos, n, len(frames))
				if d.err == nil {
					back = max(back, m.branch(&frames[len(frames)-1-int(n)]))
				}
			}
			b, copied = d.emitBack(b, copied, at, m, back)
			m.tables++
			m.counted, m.due = d.pos, unreachable
		case op == opCall:
			f := d.index("function", len(d.funcs))
			if m.enabled && d.err == nil {
				// removing code would shift the offsets of a dispatch loop
				if int(f) >= d.imported && d.callerPays[f] == 0 && disp == nil {
					inner.recordCall(len(frames))
				}
				m.calls = m.calls || d.callerPays[f] == 0
				b = d.emitCall(append(b, d.data[copied:at]...), m, top, int(d.callerPays[f]))
				b = appendU32(append(b, opCall), d.newIndex(f))
				copied = d.pos
			}
		case op == 0x11: // call_indirect
			d.index("type", len(d.types))
			d.index("table", d.tables)
			if m.enabled && d.err == nil {
				m.calls = true
				b = d.emitCall(append(b, d.data[copied:at]...), m, top, d.maxCallerPays)
				copied = at
			}
		case op == 0x1c: // select with a type
			if n := d.u32(); n != 1 {
				d.fail(at, "select with %d types", n)
			}
			d.valueType()
		case op >= 0x20 && op <= 0x22:
			d.index("local", locals)
		case op == 0x23 || op == 0x24:
			d.index("global", d.globals)
		case op == 0x25 || op == 0x26: // table.get, table.set
			d.hasState = d.hasState || op == 0x26
			d.index("table", d.tables)
			m.access()
		case op >= 0x28 && op <= 0x3e:
			d.readMemArg()
			m.access()
		case op == 0x3f:
			d.zero("a memory index")
		case op == 0x40: // memory.grow
			d.zero("a memory index")
			if m.enabled && d.err == nil {
				b = append(b, d.data[copied:d.pos]...)
				copied = d.pos
				b = d.emitTick(b, yieldNow) // the host grows the memory, which takes time
			}
		case op == 0x41:
			d.signed(32)
		case op == 0x42:
			d.signed(64)
		case op == 0x43:
			d.skip(4)
		case op == 0x44:
			d.skip(8)
		case op == 0xd0:
			d.refType()
		case op == 0xd2: // ref.func
			f := d.index("function", len(d.funcs))
			if m.enabled && d.err == nil {
				b = append(b, d.data[copied:at+1]...)
				b = appendU32(b, d.newIndex(f))
				copied = d.pos
			}
		case op == 0xfc:
			b, copied = d.rewritePrefixFC(b, at, copied, m, top)
		case op == 0xfd:
			d.readVector(at, m)
		case op == 0x00 || op == 0x0f: // unreachable, return
			m.advance(d.pos)
			m.due = unreachable
		case op == 0x01, op == 0x1a, op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1:
			// no immediates
		default:
			d.refuse(at, instructionFeatures[op], "instruction 0x%02x", op)
		}
		if d.err != nil {
			return nil
		}
	}
	d.frames = frames
	if d.pos != d.end {
		d.fail(d.pos, "%d bytes follow the end of a function", d.remaining())
		return nil
	}
	return append(b, d.data[copied:d.pos]...)
}

// readBlockType reads the type of a block and returns the number of its parameters.
func (d *decoder) readBlockType() int {
	at := d.pos
	t := d.s33()
	switch {
	case t == -64 && d.data[at] == 0x40:
	case t < 0:
		d.pos = at
		d.valueType() // a value type of one byte, or an error
	case t >= int64(len(d.types)):
		d.fail(at, "type %d does not exist, there are %d", t, len(d.types))
	default:
		return d.params[t]
	}
	return 0
}

func (d *decoder) readMemArg() {
	at := d.pos
	if align := d.u32(); align > 15 {
		d.fail(at, "an alignment of 2^%d", align)
	}
	d.u32()
}

// rewritePrefixFC processes an instruction with prefix 0xfc.
func (d *decoder) rewritePrefixFC(b []byte, at, from int, m *meter, top *frame) ([]byte, int) {
	replace, charge := uint32(0), int32(0)
	switch op := d.u32(); {
	case op <= 7: // saturating truncations
	case op == 8: // memory.init
		d.usesData = true
		d.index("data segment", max(d.dataCount, 0))
		d.zero("a memory index")
		charge = yieldNow
	case op == 9: // data.drop
		d.usesData = true
		d.index("data segment", max(d.dataCount, 0))
	case op == 10: // memory.copy
		d.zero("a memory index")
		d.zero("a memory index")
		replace = d.copyIndex()
	case op == 11: // memory.fill
		d.zero("a memory index")
		replace = d.fillIndex()
	case op == 12: // table.init
		d.hasState = true
		d.index("element segment", d.elements)
		d.index("table", d.tables)
		charge = tableOpCharge
	case op == 13: // elem.drop
		d.hasState = true
		d.index("element segment", d.elements)
	case op == 14: // table.copy
		d.hasState = true
		d.index("table", d.tables)
		d.index("table", d.tables)
		charge = tableOpCharge
	case op == 15 || op == 17: // table.grow, table.fill
		d.hasState = true
		d.index("table", d.tables)
		charge = tableOpCharge
	case op == 16: // table.size
		d.index("table", d.tables)
	default:
		d.refuse(at, wideArithmetic, "instruction 0xfc %d", op)
	}
	if !m.enabled || d.err != nil {
		return b, from
	}
	switch {
	case replace != 0 && d.found.HasMemory:
		b = d.emitCall(append(b, d.data[from:at]...), m, top, smallBulkUnits)
		return appendU32(append(b, opCall), replace), d.pos
	case charge > 0:
		b = append(b, d.data[from:d.pos]...)
		return d.emitTick(b, charge), d.pos
	}
	return b, from
}

// readVector reads an instruction with prefix 0xfd. The engine reads the opcode as one byte and treats the 0x01
// after an opcode of 128 or more as a nop, so other encodings of the opcode are refused.
func (d *decoder) readVector(at int, m *meter) {
	op := d.byte()
	if op >= 0x80 {
		if next := d.byte(); next != 1 {
			d.refuse(at, relaxedSIMD, "vector instruction %d", int(op&0x7f)|int(next)<<7)
		}
	}
	switch {
	case op <= 11, op == 92, op == 93:
		d.readMemArg()
		m.access()
	case op == 12 || op == 13:
		d.skip(16)
	case op >= 21 && op <= 34:
		d.byte()
	case op >= 84 && op <= 91:
		d.readMemArg()
		d.byte()
		m.access()
	}
}
