package instrument

import "slices"

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
	}
	content := appendU32(make([]byte, 0, d.left()+d.left()/3+256), uint32(total))
	sectionEnd := d.end
	for i := range n {
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
		d.end = d.pos + int(size)
		d.function(d.params[d.funcs[d.imported+i]])
		if d.err != nil {
			return
		}
		d.end = sectionEnd
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

// frame is an open block.
type frame struct {
	op    byte // of its opening instruction
	patch int  // of a loop: where in the new body its weight goes
	start int  // of a loop: where its body begins in the file
}

// function rewrites the body between pos and end into d.body.
func (d *decoder) function(params int) {
	size := d.left()
	groups := d.count("groups of locals", 2, maxLocals)
	groupsFrom := d.pos
	locals := params
	for range groups {
		at := d.pos
		n := d.u32()
		d.valueType()
		if n > maxLocals || locals+int(n) > maxLocals+maxParams {
			d.fail(at, "a function has more than %d locals", maxLocals)
			return
		}
		locals += int(n)
	}
	if d.locals += locals - params; d.locals > maxAllLocals {
		d.fail(groupsFrom, "the functions have more than %d locals together", maxAllLocals)
	}
	if d.err != nil {
		return
	}
	code := d.pos
	hasLoop := d.scanForLoop()
	b := d.body[:0]
	meter := !d.cfg.Plain
	if meter && hasLoop {
		b = appendU32(b, uint32(groups+1))
		b = append(b, d.data[groupsFrom:code]...)
		b = append(b, 1, typeI32)
	} else {
		b = appendU32(b, uint32(groups))
		b = append(b, d.data[groupsFrom:code]...)
	}
	if meter {
		weight := 1 + size/unitBytes
		if hasLoop {
			// What its loops have counted and not yet told when it returns.
			weight += tickEvery
		}
		b = d.emitEntry(b, int32(weight))
	}
	d.body = d.instructions(b, locals, meter, uint32(locals))
}

// scanForLoop tells whether the byte of the loop instruction occurs in the body at all. It may be part of
// something else: then the function gets a counter that it does not need.
func (d *decoder) scanForLoop() bool {
	return slices.Contains(d.data[d.pos:d.end], opLoop)
}

const (
	opBlock = 0x02
	opLoop  = 0x03
	opIf    = 0x04
	opElse  = 0x05
	opEnd   = 0x0b
	opCall  = 0x10
)

// instructions copies the instructions of a body to b, checking each and adding the metering.
// Copied is everything between from and pos that has not been written yet.
func (d *decoder) instructions(b []byte, locals int, meter bool, counter uint32) []byte {
	from := d.pos
	frames := []frame{{op: opBlock}}
	loops := 0
	for len(frames) > 0 {
		at := d.pos
		op := d.byte()
		switch {
		case op == opBlock || op == opLoop || op == opIf:
			d.blockType()
			f := frame{op: op}
			if len(frames) >= maxNesting {
				d.fail(at, "blocks are nested more than %d deep", maxNesting)
			}
			if op == opLoop {
				if loops++; loops > maxLoopNesting {
					d.fail(at, "loops are nested more than %d deep, which takes too long to compile", maxLoopNesting)
				}
				if meter && d.err == nil {
					b = append(b, d.data[from:d.pos]...)
					from = d.pos
					f.start = d.pos
					b, f.patch = d.emitLoop(b, counter)
				}
			}
			frames = append(frames, f)
		case op == opElse:
			if top := &frames[len(frames)-1]; top.op != opIf {
				d.fail(at, "an else without its if")
			} else {
				top.op = opElse
			}
		case op == opEnd:
			top := frames[len(frames)-1]
			frames = frames[:len(frames)-1]
			if top.op == opLoop {
				loops--
				if meter && d.err == nil {
					putPadded(b[top.patch:], uint32(1+(d.pos-top.start)/unitBytes))
				}
			}
		case op == 0x0c || op == 0x0d: // br, br_if
			d.index("label", len(frames))
		case op == 0x0e: // br_table
			for range d.count("labels", 1, maxBody) + 1 {
				d.index("label", len(frames))
			}
		case op == opCall:
			f := d.index("function", len(d.funcs))
			if meter && d.err == nil {
				b = append(b, d.data[from:at+1]...)
				b = appendU32(b, d.shifted(f))
				from = d.pos
			}
		case op == 0x11: // call_indirect
			d.index("type", len(d.types))
			d.index("table", d.tables)
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
		case op >= 0x28 && op <= 0x3e:
			d.memArg()
		case op == 0x3f:
			d.zero("a memory index")
		case op == 0x40: // memory.grow
			d.zero("a memory index")
			if meter && d.err == nil {
				b = append(b, d.data[from:d.pos]...)
				from = d.pos
				b = d.emitTick(b, yieldEvery) // growing is the host's work, and takes its time
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
			if meter && d.err == nil {
				b = append(b, d.data[from:at+1]...)
				b = appendU32(b, d.shifted(f))
				from = d.pos
			}
		case op == 0xfc:
			b, from = d.misc(b, at, from, meter)
		case op == 0xfd:
			d.vector(at)
		case op <= 0x01, op == 0x0f, op == 0x1a, op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1:
			// without immediates
		default:
			d.unknown(at, "instruction 0x%02x", op)
		}
		if d.err != nil {
			return nil
		}
	}
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

func (d *decoder) blockType() {
	at := d.pos
	t := d.s33()
	switch {
	case t == -64 && d.data[at] == 0x40:
	case t < 0:
		d.pos = at
		d.valueType() // one byte, or it is refused
	case t >= int64(len(d.types)):
		d.fail(at, "type %d does not exist, there are %d", t, len(d.types))
	}
}

func (d *decoder) memArg() {
	at := d.pos
	if align := d.u32(); align > 15 {
		d.fail(at, "an alignment of 2^%d", align)
	}
	d.u32()
}

// misc reads an instruction with prefix 0xfc.
func (d *decoder) misc(b []byte, at, from int, meter bool) ([]byte, int) {
	replace, charge := uint32(0), false
	switch op := d.u32(); {
	case op <= 7: // saturating truncations
	case op == 8: // memory.init
		d.usesData = true
		d.index("data segment", max(d.dataCount, 0))
		d.zero("a memory index")
		charge = true
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
		charge = true
	case op == 13: // elem.drop
		d.index("element segment", d.elements)
	case op == 14: // table.copy
		d.index("table", d.tables)
		d.index("table", d.tables)
		charge = true
	case op == 15 || op == 17: // table.grow, table.fill
		d.index("table", d.tables)
		charge = true
	case op == 16: // table.size
		d.index("table", d.tables)
	default:
		d.unknown(at, "instruction 0xfc %d", op)
	}
	if !meter || d.err != nil {
		return b, from
	}
	switch {
	case replace != 0 && d.found.HasMemory:
		b = append(b, d.data[from:at]...)
		b = appendU32(append(b, opCall), replace)
		return b, d.pos
	case charge:
		b = append(b, d.data[from:d.pos]...)
		return d.emitTick(b, bulkCharge), d.pos
	}
	return b, from
}

// vector reads an instruction with prefix 0xfd. The engine reads its number as one byte and takes the 0x01 that
// follows a number from 128 up for a nop, so that no other spelling of it may pass.
func (d *decoder) vector(at int) {
	op := d.byte()
	if op >= 0x80 {
		if next := d.byte(); next != 1 {
			d.unknown(at, "vector instruction %d", int(op&0x7f)|int(next)<<7)
		}
	}
	switch {
	case op <= 11, op == 92, op == 93:
		d.memArg()
	case op == 12 || op == 13:
		d.skip(16)
	case op >= 21 && op <= 34:
		d.byte()
	case op >= 84 && op <= 91:
		d.memArg()
		d.byte()
	}
}
