package instrument

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
	opI32   = 0x41 // a constant instruction, like the following ones
	opI64   = 0x42
	opF32   = 0x43
	opF64   = 0x44
)

// rewriter copies the instructions of one body. It validates each instruction and adds the metering.
type rewriter struct {
	d      *decoder
	m      *meter
	b      []byte // the new body
	copied int    // position in the file up to which bytes have been written
	frames []frame
	loops  int            // number of open loops
	disp   *dispatch      // the open dispatch loop; nil if there is none
	inner  *innermostLoop // the loop that was opened last, until it or a loop in it ends
}

func newRewriter(d *decoder, b []byte, m *meter) *rewriter {
	return &rewriter{d: d, m: m, b: b, copied: d.pos}
}

// adds reports whether to add metering at this position.
func (w *rewriter) adds() bool { return w.m.enabled && w.d.err == nil }

// copyTo writes the bytes up to a position in the file.
func (w *rewriter) copyTo(at int) {
	w.b = append(w.b, w.d.data[w.copied:at]...)
	w.copied = at
}

// rewrite rewrites the instructions up to the end of the body, and returns the new body.
func (w *rewriter) rewrite(locals int) []byte {
	d, m, start := w.d, w.m, w.d.pos
	w.frames = append(d.frames[:0], frame{op: opBlock, join: unreachable})
	var lastAt, prevAt int // positions of this instruction and the previous one
	for len(w.frames) > 0 {
		if m.advance(d.pos); m.due > max(stretch, (d.end-start)/maxCharges) && m.enabled && !m.chargeAtCalls {
			w.copyTo(d.pos)
			w.emitDue()
		}
		at := d.pos
		op := d.byte()
		top := &w.frames[len(w.frames)-1]
		setAt, valueAt := lastAt, prevAt // positions of the two instructions before this one
		lastAt, prevAt = at, lastAt
		switch {
		case op == opBlock || op == opLoop || op == opIf:
			w.open(op, at, top)
		case op == opElse:
			if top.op != opIf {
				d.fail(at, "else without if")
				break
			}
			m.counted = d.pos
			top.op, top.charged = opElse, w.frames[len(w.frames)-2].charged
			top.join, m.due = max(top.join, m.due), top.due
		case op == opEnd:
			w.end(setAt, at, top)
		case op == opBr || op == opBrIf:
			n := d.index("label", len(w.frames))
			w.inner.recordBranch(at+1, d.pos, n, len(w.frames))
			m.advance(d.pos)
			if d.err == nil {
				back := -1
				if w.disp != nil && op == opBr && len(w.frames)-1-int(n) == w.disp.loopFrame {
					back = w.jumpBack(valueAt, setAt)
				}
				if back < 0 {
					back = m.branch(&w.frames[len(w.frames)-1-int(n)])
				}
				w.emitBack(at, back)
			}
			if op == opBr {
				m.due = unreachable
			}
		case op == opTable:
			m.add(tableCost) // labels are not code that runs
			back := 0
			for range d.count("labels", 1, maxBody) + 1 {
				at := d.pos
				n := d.index("label", len(w.frames))
				w.inner.recordBranch(at, d.pos, n, len(w.frames))
				if d.err == nil {
					back = max(back, m.branch(&w.frames[len(w.frames)-1-int(n)]))
				}
			}
			w.emitBack(at, back)
			m.tables++
			m.counted, m.due = d.pos, unreachable
		case op == opCall:
			f := d.index("function", len(d.has.funcs))
			if w.adds() {
				// removing code would shift the offsets of a dispatch loop
				if int(f) >= d.has.imported && d.callerPays[f] == 0 && w.disp == nil {
					w.inner.recordCall(len(w.frames))
				}
				m.calls = m.calls || d.callerPays[f] == 0
				w.copyTo(at)
				w.emitCall(top, int(d.callerPays[f]))
				w.replace(opCall, d.newIndex(f))
			}
		case op == 0x11: // call_indirect
			d.index("type", len(d.has.types))
			d.index("table", d.has.tables)
			if w.adds() {
				m.calls = true
				w.copyTo(at)
				w.emitCall(top, d.maxCallerPays)
			}
		case op == 0x1c: // select with a type
			if n := d.u32(); n != 1 {
				d.fail(at, "select with %d types", n)
			}
			d.valueType()
		case op >= 0x20 && op <= 0x22:
			d.index("local", locals)
		case op == 0x23 || op == 0x24:
			d.index("global", d.has.globals)
		case op == 0x25 || op == 0x26: // table.get, table.set
			d.hasState = d.hasState || op == 0x26
			d.index("table", d.has.tables)
			m.access()
		case op >= 0x28 && op <= 0x3e:
			w.readMemArg()
			m.access()
		case op == 0x3f:
			d.zero("a memory index")
		case op == 0x40: // memory.grow
			d.zero("a memory index")
			w.emitTick(yieldNow) // the host grows the memory, which takes time
		case op >= opI32 && op <= opF64:
			d.number(op)
		case op == 0xd0:
			d.refType()
		case op == 0xd2: // ref.func
			if f := d.index("function", len(d.has.funcs)); w.adds() {
				w.copyTo(at)
				w.replace(op, d.newIndex(f))
			}
		case op == 0xfc:
			w.rewritePrefixFC(at, top)
		case op == 0xfd:
			w.readVector(at)
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
	d.frames = w.frames
	if d.pos != d.end {
		d.fail(d.pos, "%d bytes follow the end of a function", d.remaining())
		return nil
	}
	w.copyTo(d.pos)
	return w.b
}

// replace writes an instruction with an index instead of the instruction that was read.
func (w *rewriter) replace(op byte, index uint32) {
	w.b = appendU32(append(w.b, op), index)
	w.copied = w.d.pos
}

// emitTick charges n units after the instruction that was read.
func (w *rewriter) emitTick(n int32) {
	if w.adds() {
		w.copyTo(w.d.pos)
		w.b = w.d.has.emitTick(w.b, n)
	}
}

// open begins a block, a loop or an if.
func (w *rewriter) open(op byte, at int, top *frame) {
	d, m := w.d, w.m
	params := w.readBlockType()
	if op == opIf {
		m.advance(d.pos)
	}
	m.counted = d.pos // blocks and loops are only labels
	f := frame{op: op, charged: top.charged, join: unreachable, due: m.due, tables: m.tables}
	if len(w.frames) >= maxNesting {
		d.fail(at, "blocks are nested more than %d deep", maxNesting)
	}
	if op == opLoop {
		if w.loops++; w.loops > maxLoopNesting {
			d.fail(at, "loops are nested more than %d deep, which takes too long to compile", maxLoopNesting)
		}
		m.loops++
		if w.adds() {
			w.copyTo(at)
			w.inner = &innermostLoop{frame: len(w.frames), begin: len(w.b), opener: d.data[at:d.pos]}
			if w.loops == 1 {
				w.emitFreeRound(&f)
			}
			w.copyTo(d.pos)
			w.emitLoop(params, &f)
			w.inner.body, w.inner.source, w.inner.accesses = len(w.b), d.pos, m.accesses
			if w.loops == 1 && params == 0 {
				w.disp = w.matchDispatch(len(w.frames))
			}
		}
	}
	if w.disp != nil && op == opBlock && at < w.disp.headerEnd {
		f.dispatch = w.disp
	}
	w.frames = append(w.frames, f)
}

// end ends a block. last is the position of the instruction before it.
func (w *rewriter) end(last, at int, top *frame) {
	d, m := w.d, w.m
	m.counted = d.pos
	w.frames = w.frames[:len(w.frames)-1]
	m.due = max(m.due, top.join)
	if top.op == opIf {
		m.due = max(m.due, top.due)
	}
	if top.dispatch != nil {
		w.disp.closed[len(w.frames)] = m.due
	}
	if top.op == opLoop {
		w.loops--
		if w.adds() {
			w.endLoop(top, 1+top.round/unitBytes, last, at)
			w.inner = nil
			if w.disp != nil && w.disp.loopFrame == len(w.frames) {
				w.disp = nil
			}
		}
	}
}

// readBlockType reads the type of a block and returns the number of its parameters.
func (w *rewriter) readBlockType() int {
	d := w.d
	at := d.pos
	t := d.signed(33)
	switch {
	case t == -64 && d.data[at] == 0x40:
	case t < 0:
		d.pos = at
		d.valueType() // a value type of one byte, or an error
	case t >= int64(len(d.has.types)):
		d.fail(at, "type %d does not exist, there are %d", t, len(d.has.types))
	default:
		return d.has.params[t]
	}
	return 0
}

func (w *rewriter) readMemArg() {
	d := w.d
	at := d.pos
	if align := d.u32(); align > 15 {
		d.fail(at, "an alignment of 2^%d", align)
	}
	d.u32()
}

// rewritePrefixFC processes an instruction with prefix 0xfc.
func (w *rewriter) rewritePrefixFC(at int, top *frame) {
	d := w.d
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
		replace = d.has.copyIndex()
	case op == 11: // memory.fill
		d.zero("a memory index")
		replace = d.has.fillIndex()
	case op == 12: // table.init
		d.hasState = true
		d.index("element segment", d.has.elements)
		d.index("table", d.has.tables)
		charge = tableOpCharge
	case op == 13: // elem.drop
		d.hasState = true
		d.index("element segment", d.has.elements)
	case op == 14: // table.copy
		d.hasState = true
		d.index("table", d.has.tables)
		d.index("table", d.has.tables)
		charge = tableOpCharge
	case op == 15 || op == 17: // table.grow, table.fill
		d.hasState = true
		d.index("table", d.has.tables)
		charge = tableOpCharge
	case op == 16: // table.size
		d.index("table", d.has.tables)
	default:
		d.refuse(at, wideArithmetic, "instruction 0xfc %d", op)
	}
	switch {
	case !w.adds():
	case replace != 0 && d.has.memory:
		w.copyTo(at)
		w.emitCall(top, smallBulkUnits)
		w.replace(opCall, replace)
	case charge > 0:
		w.emitTick(charge)
	}
}

// readVector reads an instruction with prefix 0xfd. The engine reads the opcode as one byte and treats the 0x01
// after an opcode of 128 or more as a nop, so other encodings of the opcode are refused.
func (w *rewriter) readVector(at int) {
	d := w.d
	op := d.byte()
	if op >= 0x80 {
		if next := d.byte(); next != 1 {
			d.refuse(at, relaxedSIMD, "vector instruction %d", int(op&0x7f)|int(next)<<7)
		}
	}
	switch {
	case op <= 11, op == 92, op == 93:
		w.readMemArg()
		w.m.access()
	case op == 12 || op == 13:
		d.skip(16)
	case op >= 21 && op <= 34:
		d.byte()
	case op >= 84 && op <= 91:
		w.readMemArg()
		d.byte()
		w.m.access()
	}
}

// emitWeight charges a function's weight, which is filled in later.
func (w *rewriter) emitWeight() {
	w.b = w.d.has.emitCharge(w.b, func(b []byte) []byte { return emitPadded(b, &w.m.chargeOffsets) })
}

// emitDue charges the due.
func (w *rewriter) emitDue() {
	units := int32(1 + w.m.due/unitBytes)
	w.m.due = 0
	w.b = w.d.has.emitCharge(w.b, func(b []byte) []byte { return appendS32(append(b, 0x41), units) }) // i32.const
}

// emitEntry charges a function where it begins. Its loops report for the first time after firstTick units.
func (w *rewriter) emitEntry() {
	w.emitWeight()
	w.b = appendU32(append(emitPadded(w.b, &w.m.startOffsets), 0x21), w.m.counter) // local.set
}

// emitCall counts the units of a callee that does not charge itself. Before such a call it charges a small function,
// unless every path to this position has charged it already.
func (w *rewriter) emitCall(f *frame, units int) {
	m := w.m
	m.callees += units
	m.add(units * unitBytes)
	if !m.chargeAtCalls || f.charged || units == 0 {
		return
	}
	f.charged = true
	w.emitWeight()
}

// emitFreeRound subtracts a loop's weight from the local counter before the loop, because the first round is part of
// the function's own weight.
func (w *rewriter) emitFreeRound(f *frame) {
	counter := w.m.counter
	b := appendU32(append(w.b, 0x20), counter) // local.get
	b = emitPadded(b, &f.freeOffsets)
	b = append(b, 0x6b)                       // i32.sub
	w.b = appendU32(append(b, 0x21), counter) // local.set
}

// emitLoop counts one round of a loop in the local counter. When the counter is full, it is reported and the round
// starts again. A loop with parameters cannot start again, because its parameters have been consumed: it continues.
func (w *rewriter) emitLoop(params int, f *frame) {
	m, counter := w.m, w.m.counter
	b := appendU32(append(w.b, 0x20), counter) // local.get
	b = emitPadded(b, &f.weightOffsets)
	b = append(b, 0x6a)                     // i32.add
	b = appendU32(append(b, 0x22), counter) // local.tee
	b = emitPadded(b, &m.tickOffsets)
	b = append(b, 0x4e) // i32.ge_s
	b = append(b, opIf, 0x40)
	b = appendU32(append(b, 0x20), counter) // local.get
	b = appendU32(append(b, opCall), w.d.has.tickIndex())
	if params == 0 {
		b = emitPadded(b, &f.restartOffsets)
		b = appendU32(append(b, 0x21), counter) // local.set
		w.b = append(b, opBr, 1, opEnd)
		return
	}
	b = append(b, 0x41, 0)                  // i32.const 0
	b = appendU32(append(b, 0x21), counter) // local.set
	w.b = append(b, opEnd)
}

// emitBack counts the work of a branch back, before the instruction at this position.
func (w *rewriter) emitBack(at, back int) {
	if back == 0 || !w.m.enabled || w.d.err != nil {
		return
	}
	w.copyTo(at)
	b := appendU32(append(w.b, 0x20), w.m.counter)          // local.get
	b = appendS32(append(b, 0x41), int32(1+back/unitBytes)) // i32.const
	w.b = appendU32(append(b, 0x6a, 0x21), w.m.counter)     // i32.add, local.set
}
