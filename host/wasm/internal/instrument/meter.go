package instrument

import "math"

// parts are what a module has declared so far. They determine the indices of the items that metering adds: three
// types, the import of yield, three functions, the guards, and one global.
type parts struct {
	types    []FuncType
	params   []int    // number of parameters of each type
	funcs    []uint32 // type of each function, imports first
	imported int      // how many of funcs are imported
	guards   []guard  // one per imported function
	tables   int
	memory   bool
	globals  int
	mutable  []uint32 // the mutable globals
	elements int
}

// guard is an added function that is called in place of an import.
type guard struct {
	Guard
	index     uint32 // the imported function
	typeIndex uint32
}

// helpers is the number of added functions, not counting the guards.
const helpers = 3

// Indices of the added items, which follow the module's own.
func (d *parts) yieldIndex() uint32      { return uint32(d.imported) }
func (d *parts) tickIndex() uint32       { return uint32(len(d.funcs)) + 1 }
func (d *parts) fillIndex() uint32       { return uint32(len(d.funcs)) + 2 }
func (d *parts) copyIndex() uint32       { return uint32(len(d.funcs)) + 3 }
func (d *parts) guardIndex(i int) uint32 { return uint32(len(d.funcs)) + 1 + helpers + uint32(i) }
func (d *parts) counterIndex() uint32    { return uint32(d.globals) }

func (d *parts) addedTypes() (int, []byte) {
	return 3, []byte{
		0x60, 0, 0, // () -> ()
		0x60, 1, typeI32, 0, // (i32) -> ()
		0x60, 3, typeI32, typeI32, typeI32, 0, // (i32, i32, i32) -> ()
	}
}

func (d *parts) addedImport() (int, []byte) {
	b := append(appendName(appendName(nil, YieldModule), YieldName), KindFunc)
	return 1, appendU32(b, uint32(len(d.types)))
}

func (d *parts) addedFunctions() (int, []byte) {
	b := appendU32(nil, uint32(len(d.types)+1))
	b = appendU32(b, uint32(len(d.types)+2))
	b = appendU32(b, uint32(len(d.types)+2))
	for _, g := range d.guards {
		b = appendU32(b, g.typeIndex)
	}
	return helpers + len(d.guards), b
}

func (d *parts) addedGlobal() (int, []byte) {
	return 1, append(appendS32([]byte{typeI32, 1, 0x41}, yieldEvery), opEnd)
}

// emitTick charges n units: i32.const n, call tick.
func (d *parts) emitTick(b []byte, n int32) []byte {
	b = appendS32(append(b, 0x41), n)
	return appendU32(append(b, opCall), d.tickIndex())
}

// meter is the state of metering one function.
type meter struct {
	enabled       bool
	counter       uint32 // the local in which loops count
	chargeAtCalls bool   // a small function without loops is charged at its calls, not where it begins
	chargeOffsets []int  // offsets of the function's weight in the new body

	startOffsets, tickOffsets []int // offsets of the number of units after which its loops report, first and later
	calls                     bool  // it calls a function that charges itself

	// due is the largest amount of work on any path from the function's beginning to this position that has not been
	// charged since, in bytes of code. It is the constant unreachable where no path leads.
	due     int
	most    int // the largest due so far
	counted int // the position in the file up to which due counts

	loops     int // number of loops so far; the fields below also count so far
	tables    int // branch tables
	unmetered int // unmetered loops
	accesses  int // to memory and tables
	callees   int // units of callees that do not charge themselves
}

// unreachable is so far below zero that the work of no function can bring it above zero.
const unreachable = math.MinInt / 2

// advance adds the code up to a position in the file to due.
func (m *meter) advance(pos int) {
	m.add(pos - m.counted)
	m.counted = pos
}

// add adds work, in bytes of code, to due.
func (m *meter) add(work int) {
	m.due += work
	m.most = max(m.most, m.due)
}

// access counts an access to a memory or a table.
func (m *meter) access() {
	m.accesses++
	m.add(unitBytes)
}

// branch processes a branch to a block's label. For a branch back that comes after a branch table, it returns by how
// much the due here exceeds the due where the loop begins; the branch has to count that.
func (m *meter) branch(f *frame) (back int) {
	if f.op != opLoop {
		f.join = max(f.join, m.due)
		return 0
	}
	if m.tables > f.tables {
		return max(m.due-f.due, 0)
	}
	f.round = max(f.round, m.due-f.due)
	return 0
}

// emitCharge takes the number that amount pushes from the budget. The count is inline. Only if the budget is
// exhausted, it calls tick and then repeats the charge from the full budget.
//
// Here and in emitLoop the rare path leads back to a loop header instead of past the call. Where two paths join,
// wazero v1.12.0 keeps values where the first path left them. After a call that is the stack, so each round of a
// loop would begin with loads. At a loop header the first path is the entry, where the values are in registers.
func (d *parts) emitCharge(b []byte, amount func([]byte) []byte) []byte {
	g := d.counterIndex()
	b = append(b, opLoop, 0x40)
	b = appendU32(append(b, 0x23), g) // global.get
	b = amount(b)
	b = append(b, 0x6b)               // i32.sub
	b = appendU32(append(b, 0x24), g) // global.set
	b = appendU32(append(b, 0x23), g) // global.get
	b = append(b, 0x41, 0, 0x48)      // i32.const 0, i32.lt_s
	b = append(b, opIf, 0x40)
	b = d.emitTick(b, 0)
	return append(b, opBr, 1, opEnd, opEnd)
}

// fillTicks writes the number of units after which the function's loops report.
func (m *meter) fillTicks(b []byte) {
	every := tickEvery
	if m.calls {
		every = tickEveryAround
	}
	fillPadded(b, m.startOffsets, every-firstTick)
	fillPadded(b, m.tickOffsets, every)
}

// emitPadded writes an i32.const whose value is filled in later, and records its offset.
func emitPadded(b []byte, offsets *[]int) []byte {
	b = append(b, 0x41, 0x80, 0x80, 0x00)
	*offsets = append(*offsets, len(b)-3)
	return b
}

// fillPadded writes v at the offsets that emitPadded recorded.
func fillPadded(b []byte, offsets []int, v int) {
	for _, offset := range offsets {
		putPadded(b[offset:], v)
	}
}

// addedCode returns the bodies of tick, fill, copy and the guards.
func (d *parts) addedCode() (int, []byte) {
	bodies := [][]byte{d.tickBody(), d.fillBody(), d.copyBody()}
	for _, g := range d.guards {
		bodies = append(bodies, d.guardBody(g))
	}
	var b []byte
	for _, body := range bodies {
		b = appendU32(b, uint32(len(body)))
		b = append(b, body...)
	}
	return len(bodies), b
}

// tickBody takes units from the budget. If the budget is exhausted, it refills it and calls the host.
func (d *parts) tickBody() []byte {
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

// Bulk operations of up to smallBulk bytes cost smallBulkUnits. Operations above largeBulk are done in chunks. Here,
// a unit is 256 bytes.
const (
	smallBulk      = 1 << 10
	smallBulkUnits = smallBulk >> bulkShift
	largeBulk      = 1 << 20
	bulkShift      = 8
)

// fillBody is memory.fill with a charge for its length. Like the original, it writes nothing if the range exceeds the
// memory.
func (d *parts) fillBody() []byte {
	if !d.memory {
		return []byte{0, opEnd}
	}
	whole := []byte{0x20, 0, 0x20, 1, 0x20, 2, 0xfc, 11, 0}
	b := []byte{0}
	b = d.emitSmallBulk(b, whole)
	b = rangeCheck(b, whole, 0)
	chunk := append(appendS32([]byte{0x20, 0, 0x20, 1, 0x41}, largeBulk), 0xfc, 11, 0)
	b = d.emitChunks(b, advance(advance(chunk, 0, 0x6a), 2, 0x6b))
	b = append(b, whole...) // the rest
	return append(b, opEnd)
}

// emitChunks repeats the code for a chunk, and charges it, until at most one chunk is left.
func (d *parts) emitChunks(b, chunk []byte) []byte {
	b = append(b, opLoop, 0x40)
	b = d.emitTick(b, largeBulk>>bulkShift)
	b = append(b, chunk...)
	b = appendS32(append(b, 0x20, 2, 0x41), largeBulk)
	return append(b, 0x4b, 0x0d, 0, opEnd) // i32.gt_u, br_if 0, end
}

// copyBody is memory.copy with a charge for its length. The ranges may overlap, so chunks ascend if the target is
// below the source, and descend otherwise.
func (d *parts) copyBody() []byte {
	if !d.memory {
		return []byte{0, opEnd}
	}
	whole := []byte{0x20, 0, 0x20, 1, 0x20, 2, 0xfc, 10, 0, 0}
	b := []byte{0}
	b = d.emitSmallBulk(b, whole)
	b = rangeCheck(b, whole, 0)
	b = rangeCheck(b, whole, 1)

	b = append(b, 0x20, 0, 0x20, 1, 0x4d, opIf, 0x40) // local.get d, local.get s, i32.le_u, if
	up := append(appendS32([]byte{0x20, 0, 0x20, 1, 0x41}, largeBulk), 0xfc, 10, 0, 0)
	b = d.emitChunks(b, advance(advance(advance(up, 0, 0x6a), 1, 0x6a), 2, 0x6b))
	b = append(b, opElse)
	down := advance(nil, 2, 0x6b)
	down = append(down, 0x20, 0, 0x20, 2, 0x6a, 0x20, 1, 0x20, 2, 0x6a) // d+n, s+n
	b = d.emitChunks(b, append(appendS32(append(down, 0x41), largeBulk), 0xfc, 10, 0, 0))
	b = append(b, opEnd)
	b = append(b, whole...)
	return append(b, opEnd)
}

// emitSmallBulk does a small operation at once, and a medium one after charging it.
func (d *parts) emitSmallBulk(b, whole []byte) []byte {
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

// rangeCheck does the whole operation, which then traps, if local p + local 2 is beyond the memory.
func rangeCheck(b, whole []byte, p byte) []byte {
	b = append(b, 0x20, p, 0xad, 0x20, 2, 0xad, 0x7c) // i64.extend_i32_u twice, i64.add
	b = append(b, 0x3f, 0, 0xad, 0x42, 16, 0x86)      // memory.size as i64, i64.const 16, i64.shl
	b = append(b, 0x56, opIf, 0x40)                   // i64.gt_u, if
	b = append(b, whole...)
	return append(b, 0x00, opEnd) // unreachable
}

// advance adds the length of a chunk to a local, or subtracts it.
func advance(b []byte, local, op byte) []byte {
	b = appendS32(append(b, 0x20, local, 0x41), largeBulk)
	return append(b, op, 0x21, local)
}

// guardBody charges a call of an imported function. If an argument is too large, it returns the error number.
// Otherwise it calls the function, with the code around the call.
func (d *parts) guardBody(g guard) []byte {
	charge := int32(importCharge)
	if g.Heavy {
		charge = yieldNow
	}
	before, after, locals := g.Before, g.After, []byte{2, 1, typeI64, 1, typeI32}
	if before == nil && after == nil || !d.memory {
		before, after, locals = nil, nil, []byte{0}
	}
	b := d.emitTick(locals, charge)
	for _, p := range g.Params {
		b = appendU32(append(b, 0x20), uint32(p))
		b = appendS32(append(b, 0x41), int32(g.Max))
		b = append(b, 0x4b, opIf, 0x40) // i32.gt_u, if
		b = appendS32(append(b, 0x41), g.Errno)
		b = append(b, 0x0f, opEnd)
	}
	b = append(b, before...)
	for i := range d.params[g.typeIndex] {
		b = appendU32(append(b, 0x20), uint32(i))
	}
	b = appendU32(append(b, opCall), g.index)
	b = append(b, after...)
	return append(b, opEnd)
}
