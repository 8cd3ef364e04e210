package instrument

// What is added to a module: three types, the import of yield, three functions, the guards, one global.

func (d *decoder) addTypes(b []byte) []byte {
	b = append(b, 0x60, 0, 0)                               // () -> ()
	b = append(b, 0x60, 1, typeI32, 0)                      // (i32) -> ()
	return append(b, 0x60, 3, typeI32, typeI32, typeI32, 0) // (i32, i32, i32) -> ()
}

func (d *decoder) addImport(b []byte) []byte {
	b = appendName(b, YieldModule)
	b = appendName(b, YieldName)
	return appendU32(append(b, KindFunc), uint32(len(d.types)))
}

func (d *decoder) addFunctions(b []byte) []byte {
	b = appendU32(b, uint32(len(d.types)+1))
	b = appendU32(b, uint32(len(d.types)+2))
	b = appendU32(b, uint32(len(d.types)+2))
	for _, g := range d.guards {
		b = appendU32(b, g.typ)
	}
	return b
}

func addGlobal(b []byte) []byte {
	b = append(b, typeI32, 1, 0x41)
	return append(appendS32(b, yieldEvery), opEnd)
}

// emitTick charges n units: i32.const n, call tick.
func (d *decoder) emitTick(b []byte, n int32) []byte {
	b = appendS32(append(b, 0x41), n)
	return appendU32(append(b, opCall), d.tickIndex())
}

// emitEntry charges a function's weight where it begins. Counting is inline, and only an exhausted budget calls.
func (d *decoder) emitEntry(b []byte, weight int32) []byte {
	g := d.counterIndex()
	b = appendU32(append(b, 0x23), g)      // global.get
	b = appendS32(append(b, 0x41), weight) // i32.const
	b = append(b, 0x6b)                    // i32.sub
	b = appendU32(append(b, 0x24), g)      // global.set
	b = appendU32(append(b, 0x23), g)      // global.get
	b = append(b, 0x41, 0, 0x48)           // i32.const 0, i32.lt_s
	b = append(b, opIf, 0x40)
	b = d.emitTick(b, 0)
	return append(b, opEnd)
}

// emitLoop counts one round of a loop in the local counter, and returns where its weight has to be put.
func (d *decoder) emitLoop(b []byte, counter uint32) (_ []byte, patch int) {
	b = appendU32(append(b, 0x20), counter) // local.get
	b = append(b, 0x41, 0x80, 0x80, 0x00)   // i32.const, filled in at the loop's end
	patch = len(b) - 3
	b = append(b, 0x6a)                       // i32.add
	b = appendU32(append(b, 0x22), counter)   // local.tee
	b = appendS32(append(b, 0x41), tickEvery) // i32.const
	b = append(b, 0x4f)                       // i32.ge_u
	b = append(b, opIf, 0x40)
	b = appendU32(append(b, 0x20), counter) // local.get
	b = appendU32(append(b, opCall), d.tickIndex())
	b = append(b, 0x41, 0)                  // i32.const 0
	b = appendU32(append(b, 0x21), counter) // local.set
	return append(b, opEnd), patch
}

// addCode writes the bodies of tick, fill, copy and the guards.
func (d *decoder) addCode(b []byte) []byte {
	bodies := [][]byte{d.tickBody(), d.fillBody(), d.copyBody()}
	for _, g := range d.guards {
		bodies = append(bodies, d.guardBody(g))
	}
	for _, body := range bodies {
		b = appendU32(b, uint32(len(body)))
		b = append(b, body...)
	}
	return b
}

// tickBody takes units from the budget; when it is used up, the host is called and the budget is full again.
func (d *decoder) tickBody() []byte {
	g := d.counterIndex()
	b := []byte{0} // no locals
	b = appendU32(append(b, 0x23), g)
	b = append(b, 0x20, 0, 0x6b) // local.get n, i32.sub
	b = appendU32(append(b, 0x24), g)
	b = appendU32(append(b, 0x23), g)
	b = append(b, 0x41, 0, 0x48, opIf, 0x40) // i32.const 0, i32.lt_s, if
	b = appendS32(append(b, 0x41), yieldEvery)
	b = appendU32(append(b, 0x24), g)
	b = appendU32(append(b, opCall), d.yieldIndex())
	return append(b, opEnd, opEnd)
}

// Bulk operations up to smallBulk bytes are not charged, those above largeBulk are done in pieces. A unit is 256 bytes here.
const (
	smallBulk = 1 << 10
	largeBulk = 1 << 20
	bulkShift = 8
)

// fillBody is memory.fill with the length charged. As in the original, nothing is written when the range does not lie within the memory.
func (d *decoder) fillBody() []byte {
	if !d.found.HasMemory {
		return []byte{0, opEnd}
	}
	whole := []byte{0x20, 0, 0x20, 1, 0x20, 2, 0xfc, 11, 0}
	b := []byte{0}
	b = d.shortCut(b, whole)
	b = rangeCheck(b, whole, 0)
	b = append(b, opLoop, 0x40)
	b = d.emitTick(b, largeBulk>>bulkShift)
	b = append(b, 0x20, 0, 0x20, 1)
	b = appendS32(append(b, 0x41), largeBulk)
	b = append(b, 0xfc, 11, 0)
	b = advance(b, 0, 0x6a)
	b = advance(b, 2, 0x6b)
	b = append(b, 0x20, 2)
	b = appendS32(append(b, 0x41), largeBulk)
	b = append(b, 0x4b, 0x0d, 0, opEnd) // i32.gt_u, br_if 0, end
	b = append(b, whole...)             // what is left
	return append(b, opEnd)
}

// copyBody is memory.copy with the length charged. The ranges may overlap: pieces go upwards when the target lies below the source, else downwards.
func (d *decoder) copyBody() []byte {
	if !d.found.HasMemory {
		return []byte{0, opEnd}
	}
	whole := []byte{0x20, 0, 0x20, 1, 0x20, 2, 0xfc, 10, 0, 0}
	b := []byte{0}
	b = d.shortCut(b, whole)
	b = rangeCheck(b, whole, 0)
	b = rangeCheck(b, whole, 1)

	b = append(b, 0x20, 0, 0x20, 1, 0x4d, opIf, 0x40) // local.get d, local.get s, i32.le_u, if
	b = append(b, opLoop, 0x40)
	b = d.emitTick(b, largeBulk>>bulkShift)
	b = append(b, 0x20, 0, 0x20, 1)
	b = appendS32(append(b, 0x41), largeBulk)
	b = append(b, 0xfc, 10, 0, 0)
	b = advance(b, 0, 0x6a)
	b = advance(b, 1, 0x6a)
	b = advance(b, 2, 0x6b)
	b = append(b, 0x20, 2)
	b = appendS32(append(b, 0x41), largeBulk)
	b = append(b, 0x4b, 0x0d, 0, opEnd)
	b = append(b, opElse)
	b = append(b, opLoop, 0x40)
	b = d.emitTick(b, largeBulk>>bulkShift)
	b = advance(b, 2, 0x6b)
	b = append(b, 0x20, 0, 0x20, 2, 0x6a, 0x20, 1, 0x20, 2, 0x6a) // d+n, s+n
	b = appendS32(append(b, 0x41), largeBulk)
	b = append(b, 0xfc, 10, 0, 0)
	b = append(b, 0x20, 2)
	b = appendS32(append(b, 0x41), largeBulk)
	b = append(b, 0x4b, 0x0d, 0, opEnd)
	b = append(b, opEnd)
	b = append(b, whole...)
	return append(b, opEnd)
}

// shortCut does a small operation at once, and one that is not large after charging it.
func (d *decoder) shortCut(b, whole []byte) []byte {
	b = appendS32(append(b, 0x20, 2, 0x41), smallBulk)
	b = append(b, 0x4d, opIf, 0x40) // i32.le_u, if
	b = append(b, whole...)
	b = append(b, 0x0f, opEnd)
	b = appendS32(append(b, 0x20, 2, 0x41), largeBulk)
	b = append(b, 0x4d, opIf, 0x40)
	b = append(b, 0x20, 2, 0x41, bulkShift, 0x76) // i32.shr_u
	b = appendU32(append(b, opCall), d.tickIndex())
	b = append(b, whole...)
	return append(b, 0x0f, opEnd)
}

// rangeCheck lets the whole operation trap when local p + local 2 lies beyond the memory.
func rangeCheck(b, whole []byte, p byte) []byte {
	b = append(b, 0x20, p, 0xad, 0x20, 2, 0xad, 0x7c) // i64.extend_i32_u twice, i64.add
	b = append(b, 0x3f, 0, 0xad, 0x42, 16, 0x86)      // memory.size as i64, i64.const 16, i64.shl
	b = append(b, 0x56, opIf, 0x40)                   // i64.gt_u, if
	b = append(b, whole...)
	return append(b, 0x00, opEnd) // unreachable
}

// advance adds a piece's length to a local, or takes it away.
func advance(b []byte, local, op byte) []byte {
	b = appendS32(append(b, 0x20, local, 0x41), largeBulk)
	return append(b, op, 0x21, local)
}

// guardBody returns the error number when the argument is too large, and calls the imported function otherwise.
func (d *decoder) guardBody(g guard) []byte {
	b := []byte{0}
	for _, p := range g.Params {
		b = appendU32(append(b, 0x20), uint32(p))
		b = appendS32(append(b, 0x41), int32(g.Max))
		b = append(b, 0x4b, opIf, 0x40) // i32.gt_u, if
		b = appendS32(append(b, 0x41), g.Errno)
		b = append(b, 0x0f, opEnd)
	}
	for i := range d.params[g.typ] {
		b = appendU32(append(b, 0x20), uint32(i))
	}
	b = appendU32(append(b, opCall), g.of)
	return append(b, opEnd)
}
