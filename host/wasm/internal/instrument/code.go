package instrument

// readCode rewrites all bodies into one code section. Bodies grow a little, so sizes are written after them.
func (d *decoder) readCode() {
	start := d.pos
	d.found.CodeBytes = d.end - d.pos
	n := d.count("function bodies", 2, maxFunctions)
	if want := len(d.funcs) - d.imported; n != want && d.err == nil {
		d.fail(start, "%d functions are declared and %d bodies follow", want, n)
	}
	total := n
	if !d.cfg.Plain {
		total += d.added()
		d.weighSmall(n)
	}
	content := appendU32(make([]byte, 0, d.left()+d.left()/3+256), uint32(total))
	for i := range n {
		d.inBody(func() { d.function(d.imported + i) })
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
		d.write(secDataCount, appendU32(nil, uint32(d.dataCount)))
	}
	d.write(secCode, content)
}

// inBody reads the size of the next body and lets read see that much and no more.
func (d *decoder) inBody(read func()) {
	at := d.pos
	size := d.u32()
	if d.err == nil && int64(size) > int64(d.left()) {
		d.fail(at, "a body of %d bytes is declared and %d are left", size, d.left())
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

// weighSmall finds the small functions without loops, which do not charge themselves, and what they weigh.
func (d *decoder) weighSmall(n int) {
	start := d.pos
	d.prepaid = make([]uint8, d.imported+n)
	for f := d.imported; f < len(d.prepaid) && d.err == nil; f++ {
		d.inBody(func() {
			if d.left() > smallBody {
				d.pos = d.end
				return
			}
			_, _, locals := d.localTypes(f)
			m := meter{start: d.pos}
			if d.body = d.instructions(d.body[:0], locals, &m); d.err == nil && m.loops == 0 {
				d.prepaid[f] = uint8(1 + m.units(d.pos))
				d.mostPrepaid = max(d.mostPrepaid, int(d.prepaid[f]))
			}
		})
	}
	d.pos = start
}

// frame is an open block.
type frame struct {
	op        byte // of its opening instruction
	paid      bool // a small function has been charged on every way to here
	stretches int  // before it

	// Of a loop: what the function weighs before it; where in the new body the weight of what is counted at once goes, where its negative, and
	// where the weight of one round.
	units                 int
	weight, restart, free []int

	labels *dispatch // set for a block that this jumps to
}

// fill writes the weights of a loop.
func (f *frame) fill(b []byte, weight, round int) {
	fill(b, f.weight, weight)
	fill(b, f.restart, -weight)
	fill(b, f.free, round)
}

// localTypes reads the types of a function's locals: how many groups they stand in, the groups as they stand, and how many locals there
// are with the parameters.
func (d *decoder) localTypes(f int) (groups int, declared []byte, locals int) {
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

// function rewrites the body between pos and end into d.body.
func (d *decoder) function(f int) {
	start := d.pos
	groups, declared, locals := d.localTypes(f)
	if d.locals += locals - d.params[d.funcs[f]]; d.locals > maxAllLocals {
		d.fail(start, "the functions have more than %d locals together", maxAllLocals)
	}
	if d.err != nil {
		return
	}
	if d.cfg.Plain {
		b := append(appendU32(d.body[:0], uint32(groups)), declared...)
		d.body = d.instructions(b, locals, &meter{start: d.pos})
		return
	}
	b := append(appendU32(d.body[:0], uint32(groups+1)), declared...)
	b = append(b, 1, typeI32)
	m := meter{on: true, counter: uint32(locals), start: d.pos, atCalls: d.prepaid[f] > 0}
	var weight int
	if m.atCalls {
		b = d.instructions(b, locals, &m)
		weight = 1 + m.callees // its own code is charged by who calls it
	} else {
		b = d.instructions(d.emitEntry(b, &m), locals, &m)
		weight = 1 + min(m.units(d.pos), stretch)
		if m.loops > m.unmetered {
			weight += firstTick // what its loops have counted and not yet told when it returns
		}
	}
	if d.err != nil {
		return
	}
	fill(b, m.charges, min(weight, yieldEvery))
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
	opCall  = 0x10
)

// instructions copies the instructions of a body to b, checking each and adding the metering.
// Copied is everything between from and pos that has not been written yet.
func (d *decoder) instructions(b []byte, locals int, m *meter) []byte {
	from := d.pos
	frames := append(d.frames[:0], frame{op: opBlock})
	loops := 0
	var jumps *dispatch  // of the loop that is open, if it is of that kind
	var turn *innermost  // the loop that was opened last, until it or one in it ends
	var last, before int // where this instruction begins and the one before it
	for len(frames) > 0 {
		if n := m.units(d.pos) - m.stretchFrom; m.on && n > stretch {
			b = append(b, d.data[from:d.pos]...)
			from = d.pos
			b = d.emitTick(b, stretch)
			m.stretchFrom += n
			m.stretches++
		}
		at := d.pos
		op := d.byte()
		top := &frames[len(frames)-1]
		set, value := last, before // where the instructions before this one begin
		last, before = at, last
		switch {
		case op == opBlock || op == opLoop || op == opIf:
			params := d.blockType()
			f := frame{op: op, paid: top.paid, units: m.units(at), stretches: m.stretches}
			if len(frames) >= maxNesting {
				d.fail(at, "blocks are nested more than %d deep", maxNesting)
			}
			if op == opLoop {
				if loops++; loops > maxLoopNesting {
					d.fail(at, "loops are nested more than %d deep, which takes too long to compile", maxLoopNesting)
				}
				m.loops++
				if m.on && d.err == nil {
					b = append(b, d.data[from:at]...)
					turn = &innermost{frame: len(frames), begin: len(b), opener: d.data[at:d.pos]}
					if loops == 1 {
						b = emitFreeRound(b, m.counter, &f)
					}
					b = append(b, turn.opener...)
					from = d.pos
					b = d.emitLoop(b, m.counter, params, &f)
					turn.body, turn.source, turn.accesses = len(b), d.pos, m.accesses
					if loops == 1 && params == 0 {
						jumps = d.dispatch(len(frames))
					}
				}
			}
			if jumps != nil && op == opBlock && at < jumps.end {
				f.labels = jumps
			}
			frames = append(frames, f)
		case op == opElse:
			if top.op != opIf {
				d.fail(at, "an else without its if")
				break
			}
			top.op, top.paid = opElse, frames[len(frames)-2].paid
			b, from = d.emitLanding(b, from, m, top)
		case op == opEnd:
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				b, from = d.emitLanding(b, from, m, top)
			}
			if top.labels != nil {
				jumps.closed[len(frames)] = m.units(d.pos)
			}
			if top.op == opLoop {
				loops--
				if m.on && d.err == nil {
					round := min(1+m.units(d.pos)-top.units, maxPadded)
					if jumps != nil && jumps.loop == len(frames) {
						fill(b, jumps.weight, round)
						top.fill(b, 1, 1)
						jumps = nil
					} else {
						b, from = d.endLoop(b, from, m, top, turn, round, set, at)
					}
					turn = nil
				}
			}
		case op == opBr || op == opBrIf:
			n := d.index("label", len(frames))
			turn.jump(at+1, d.pos, n, len(frames))
			if jumps != nil && d.err == nil && len(frames)-1-int(n) == jumps.loop {
				back, known := 0, false
				if op == opBr {
					back, known = d.jump(jumps, frames, value, set, m.units(at))
				}
				if b, from = append(b, d.data[from:at]...), at; !known || back > 0 {
					b = jumps.emitJump(b, m.counter, back)
				}
			}
		case op == 0x0e: // br_table
			again := false
			for range d.count("labels", 1, maxBody) + 1 {
				at := d.pos
				n := d.index("label", len(frames))
				turn.jump(at, d.pos, n, len(frames))
				again = again || jumps != nil && len(frames)-1-int(n) == jumps.loop
			}
			if again && d.err == nil {
				b, from = append(b, d.data[from:at]...), at
				b = jumps.emitJump(b, m.counter, 0)
			}
		case op == opCall:
			f := d.index("function", len(d.funcs))
			if m.on && d.err == nil {
				if int(f) >= d.imported && d.prepaid[f] == 0 && jumps == nil { // what is taken away would move the places of a dispatch
					turn.call(len(frames))
				}
				b = d.emitCall(append(b, d.data[from:at]...), m, top, int(d.prepaid[f]))
				b = appendU32(append(b, opCall), d.shifted(f))
				from = d.pos
			}
		case op == 0x11: // call_indirect
			d.index("type", len(d.types))
			d.index("table", d.tables)
			if m.on && d.err == nil {
				b = d.emitCall(append(b, d.data[from:at]...), m, top, d.mostPrepaid)
				from = at
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
		case op == 0x25 || op == 0x26:
			d.index("table", d.tables)
			m.accesses++
		case op >= 0x28 && op <= 0x3e:
			d.memArg()
			m.accesses++
		case op == 0x3f:
			d.zero("a memory index")
		case op == 0x40: // memory.grow
			d.zero("a memory index")
			if m.on && d.err == nil {
				b = append(b, d.data[from:d.pos]...)
				from = d.pos
				b = d.emitTick(b, yieldNow) // growing is the host's work, and takes its time
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
			if m.on && d.err == nil {
				b = append(b, d.data[from:at+1]...)
				b = appendU32(b, d.shifted(f))
				from = d.pos
			}
		case op == 0xfc:
			b, from = d.misc(b, at, from, m, top)
		case op == 0xfd:
			d.vector(at, m)
		case op <= 0x01, op == 0x0f, op == 0x1a, op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1:
			// without immediates
		default:
			d.unknown(at, "instruction 0x%02x", op)
		}
		if d.err != nil {
			return nil
		}
	}
	d.frames = frames
	if d.pos != d.end {
		d.fail(d.pos, "%d bytes stand behind the end of a function", d.left())
		return nil
	}
	return append(b, d.data[from:d.pos]...)
}

func (d *decoder) unknown(at int, format string, args ...any) {
	if d.err != nil {
		return
	}
	d.fail(at, format+" is not accepted", args...)
	d.err.Fix = "build for WebAssembly 2.0, without tail calls, exceptions, threads, relaxed SIMD and GC"
}

// blockType reads the type of a block and returns how many parameters it has.
func (d *decoder) blockType() int {
	at := d.pos
	t := d.s33()
	switch {
	case t == -64 && d.data[at] == 0x40:
	case t < 0:
		d.pos = at
		d.valueType() // one byte, or it is refused
	case t >= int64(len(d.types)):
		d.fail(at, "type %d does not exist, there are %d", t, len(d.types))
	default:
		return d.params[t]
	}
	return 0
}

func (d *decoder) memArg() {
	at := d.pos
	if align := d.u32(); align > 15 {
		d.fail(at, "an alignment of 2^%d", align)
	}
	d.u32()
}

// misc reads an instruction with prefix 0xfc.
func (d *decoder) misc(b []byte, at, from int, m *meter, top *frame) ([]byte, int) {
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
		d.index("element segment", d.elements)
		d.index("table", d.tables)
		charge = bulkCharge
	case op == 13: // elem.drop
		d.index("element segment", d.elements)
	case op == 14: // table.copy
		d.index("table", d.tables)
		d.index("table", d.tables)
		charge = bulkCharge
	case op == 15 || op == 17: // table.grow, table.fill
		d.index("table", d.tables)
		charge = bulkCharge
	case op == 16: // table.size
		d.index("table", d.tables)
	default:
		d.unknown(at, "instruction 0xfc %d", op)
	}
	if !m.on || d.err != nil {
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

// vector reads an instruction with prefix 0xfd. The engine reads its number as one byte and takes the 0x01 that
// follows a number from 128 up for a nop, so that no other spelling of it may pass.
func (d *decoder) vector(at int, m *meter) {
	op := d.byte()
	if op >= 0x80 {
		if next := d.byte(); next != 1 {
			d.unknown(at, "vector instruction %d", int(op&0x7f)|int(next)<<7)
		}
	}
	switch {
	case op <= 11, op == 92, op == 93:
		d.memArg()
		m.accesses++
	case op == 12 || op == 13:
		d.skip(16)
	case op >= 21 && op <= 34:
		d.byte()
	case op >= 84 && op <= 91:
		d.memArg()
		d.byte()
		m.accesses++
	}
}
