package instrument_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
)

// Value types in the binary format.
const (
	i32 = 0x7f - iota
	i64
	f32
	f64
	v128
	funcref   = 0x70
	externref = 0x6f
)

var valueTypes = []byte{i32, i64, f32, f64, v128, funcref, externref}

// generator writes random valid modules with features that binaryen's generator omits: blocks and loops with parameters
// and several results, branches with values out of any depth, passive segments, bulk operations on memory and tables,
// references, vectors. Loops run thousands of rounds, so that metered code yields in them. Each call ends, because
// loops and functions consume fuel of the module's own.
type generator struct {
	*rand.Rand
	types     []signature // of functions and blocks; 0 has neither parameters nor results
	functions []int       // the type of each, after the imports
	globals   []byte      // their types; 0 is the fuel
	pages     int         // of memory

	// State of the current function:
	code             []byte
	locals           []byte
	labels           [][]byte // the types that a branch takes to each label, the innermost last
	instructionsLeft int      // instructions that may still be written
	depth            int
}

type signature struct{ params, results []byte }

// Parts that all modules share: the imports, two tables (functions and external references), and the segments.
const (
	imports     = 5      // log-i32, log-i64, log-f32, log-f64, log-v128
	fuel        = 20_000 // divided by the pages of memory, because operations on all of it are slow
	functable   = 12
	externtable = 6
	segments    = 3 // of data and of elements, each
)

func generate(seed uint64) []byte {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))}
	g.types = []signature{{}}
	for _, t := range valueTypes[:imports] {
		g.types = append(g.types, signature{params: []byte{t}})
	}
	for range 10 {
		g.types = append(g.types, signature{g.someTypes(), g.someTypes()})
	}
	for _, t := range valueTypes { // so that a call can produce any value
		g.types = append(g.types, signature{results: []byte{t}})
	}
	for range 4 + g.IntN(6) {
		g.functions = append(g.functions, g.IntN(len(g.types)))
	}
	g.globals = append([]byte{i32}, slices.Concat(valueTypes, valueTypes)...)
	g.pages = 1
	if g.IntN(4) == 0 {
		g.pages = 48 // large enough for bulk operations in chunks
	}
	return g.module()
}

func (g *generator) someTypes() []byte {
	out := make([]byte, g.IntN(4))
	for i := range out {
		out[i] = valueTypes[g.IntN(len(valueTypes))]
	}
	return out
}

func (g *generator) module() []byte {
	var types [][]byte
	for _, s := range g.types {
		types = append(types, slices.Concat([]byte{0x60}, leb(len(s.params)), s.params, leb(len(s.results)), s.results))
	}
	var imported [][]byte
	for i, name := range []string{"log-i32", "log-i64", "log-f32", "log-f64", "log-v128"} {
		imported = append(imported, slices.Concat(text("fuzzing-support"), text(name), []byte{0, byte(1 + i)}))
	}
	declared, exports, bodies := [][]byte{}, [][]byte{}, [][]byte{}
	for i, t := range g.functions {
		declared = append(declared, leb(t))
		exports = append(exports, slices.Concat(text("f"+string(rune('a'+i))), []byte{0}, leb(imports+i)))
	}
	declared = append(declared, []byte{0})
	exports = append(exports, slices.Concat(text(refuel), []byte{0}, leb(imports+len(g.functions))))
	for _, t := range g.functions {
		body := g.function(g.types[t])
		bodies = append(bodies, append(leb(len(body)), body...))
	}
	g.code = []byte{0}
	g.emit(0x41).sleb(int64(fuel/g.pages)).emit(0x24, 0, 0x0b)
	bodies = append(bodies, append(leb(len(g.code)), g.code...))

	var globals, elements, data [][]byte
	for _, t := range g.globals {
		g.code = nil
		if t == funcref {
			g.emit(0xd2).uleb(imports + g.initialReference())
		} else {
			g.constant(t)
		}
		globals = append(globals, slices.Concat([]byte{t, 1}, g.code, []byte{0x0b}))
	}
	// Active at 0 of table 0; passive; passive with expressions.
	all := leb(len(g.functions))
	var exprs []byte
	for i := range g.functions {
		all = append(all, leb(imports+i)...)
		exprs = append(append(append(exprs, 0xd2), leb(imports+i)...), 0x0b)
	}
	elements = append(elements, append([]byte{0, 0x41, 0, 0x0b}, all...), append([]byte{1, 0}, all...),
		slices.Concat([]byte{5, funcref}, leb(len(g.functions)+1), []byte{0xd0, funcref, 0x0b}, exprs))
	for i := range segments + g.pages/2 {
		head := []byte{1}
		if i == 0 || i >= segments { // active, spread over the memory
			g.code = nil
			g.sleb(int64(i * 120_000))
			head = slices.Concat([]byte{0, 0x41}, g.code, []byte{0x0b})
		}
		content := make([]byte, 50+g.IntN(3000))
		for i := range content {
			content[i] = byte(g.Uint32())
		}
		data = append(data, slices.Concat(head, leb(len(content)), content))
	}
	return module(list(1, types), list(2, imported), list(3, declared),
		[]byte{4, 2, funcref, 1, functable, 2 * functable, externref, 1, externtable, 2 * externtable},
		[]byte{5, 1, 1, byte(g.pages), byte(g.pages + 2)},
		list(6, globals), list(7, exports), list(9, elements), []byte{12, byte(len(data))}, list(10, bodies), list(11, data))
}

// list returns a section that contains a vector.
func list(id byte, items [][]byte) []byte {
	return slices.Concat([]byte{id}, leb(len(items)), bytes.Join(items, nil))
}

func text(s string) []byte { return append(leb(len(s)), s...) }

func (g *generator) emit(b ...byte) *generator {
	g.code = append(g.code, b...)
	return g
}

func (g *generator) uleb(n int) *generator { return g.emit(leb(n)...) }

func (g *generator) sleb(v int64) *generator {
	for {
		c := byte(v) & 0x7f
		if v >>= 7; v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return g.emit(c)
		}
		g.emit(c | 0x80)
	}
}

// function writes a body. Small ones are frequent, because they are charged differently.
func (g *generator) function(s signature) []byte {
	params := len(s.params)
	g.locals = slices.Concat(s.params, valueTypes, []byte{i32, i32, i32}) // the last three count rounds
	g.labels, g.instructionsLeft, g.depth = [][]byte{s.results}, 1<<g.IntN(9), 0
	g.code = leb(len(g.locals) - params)
	for _, t := range g.locals[params:] {
		g.emit(1, t)
	}
	g.consumeFuel()
	g.statements()
	g.values(s.results)
	return g.emit(0x0b).code
}

// consumeFuel consumes one unit of fuel, or traps without fuel.
func (g *generator) consumeFuel() {
	g.emit(0x23, 0, 0x45, 0x04, 0x40, 0x00, 0x0b, 0x23, 0, 0x41, 1, 0x6b, 0x24, 0)
}

func (g *generator) statements() {
	for range g.IntN(4) {
		g.statement()
	}
}

func (g *generator) values(types []byte) {
	for _, t := range types {
		g.value(t)
	}
}

// pop removes values from the stack. Their types are given bottom up.
func (g *generator) pop(types []byte) {
	for _, t := range slices.Backward(types) {
		if g.IntN(2) == 0 {
			g.emit(0x1a) // drop
		} else {
			g.emit(0x21).uleb(g.local(t))
		}
	}
}

// local returns a local of a type, except those that count rounds.
func (g *generator) local(t byte) int {
	var found []int
	for i, l := range g.locals[:len(g.locals)-3] {
		if l == t {
			found = append(found, i)
		}
	}
	return found[g.IntN(len(found))]
}

func (g *generator) global(t byte) int {
	for {
		if i := 1 + g.IntN(len(g.globals)-1); g.globals[i] == t {
			return i
		}
	}
}

// address writes an i32 that is usually within the memory.
func (g *generator) address() {
	if g.pages > 1 {
		g.smallInt(21)
	} else {
		g.smallInt(16)
	}
}

// length writes a length from any relevant range, often more than a megabyte if the memory is large.
func (g *generator) length() {
	switch {
	case g.IntN(3) == 0:
		g.smallInt(11)
	case g.pages > 1:
		g.smallInt(20)
		g.emit(0x41).sleb(1 << 20).emit(0x72)
	default:
		g.smallInt(15)
	}
}

// smallInt writes an i32 that is usually below 2^bits.
func (g *generator) smallInt(bits int) {
	g.value(i32)
	if g.IntN(40) > 0 {
		g.emit(0x41).sleb(1<<bits - 1).emit(0x71)
	}
}

// withLabel writes the content of a block whose label takes the given types.
func (g *generator) withLabel(label []byte, write func()) {
	g.labels = append(g.labels, label)
	g.depth++
	write()
	g.depth--
	g.labels = g.labels[:len(g.labels)-1]
	g.emit(0x0b)
}

func (g *generator) statement() {
	if g.instructionsLeft--; g.instructionsLeft < 0 || g.depth > 6 {
		g.emit(0x01)
		return
	}
	t := valueTypes[g.IntN(len(valueTypes))]
	switch g.IntN(23) {
	case 0, 1:
		g.value(t)
		g.emit(0x21).uleb(g.local(t))
	case 2, 3:
		g.value(t)
		g.emit(0x24).uleb(g.global(t))
	case 4, 5:
		s := stores[g.IntN(len(stores))]
		g.address()
		g.value(s.value)
		g.emit(s.op...).emit(0).uleb(g.IntN(16))
	case 6:
		t := g.IntN(imports)
		g.value(valueTypes[t])
		g.emit(0x10).uleb(t)
	case 7:
		g.call()
	case 8: // if and else
		g.value(i32)
		g.emit(0x04, 0x40)
		g.withLabel(nil, func() {
			g.statements()
			if g.IntN(2) == 0 {
				g.emit(0x05)
				g.statements()
			}
		})
	case 9, 10:
		g.countedLoop()
	case 22:
		g.shortLoop()
	case 11, 12:
		g.typedBlock(g.IntN(len(g.types)))
	case 13: // br_if
		n := g.IntN(len(g.labels))
		types := g.labels[len(g.labels)-1-n]
		g.values(types)
		g.value(i32)
		g.emit(0x0d).uleb(n)
		g.pop(types)
	case 14: // br
		if g.IntN(4) == 0 {
			n := g.IntN(len(g.labels))
			g.values(g.labels[len(g.labels)-1-n])
			g.emit(0x0c).uleb(n)
		}
	case 15:
		g.table()
	case 16: // return, rarely unreachable
		if g.IntN(6) == 0 {
			g.values(g.labels[0])
			g.emit(0x0f)
		} else if g.IntN(20) == 0 {
			g.emit(0x00)
		}
	case 17: // memory.fill, memory.copy
		g.address()
		if g.IntN(3) == 0 {
			g.value(i32)
			g.length()
			g.emit(0xfc, 11, 0)
		} else {
			g.address()
			g.length()
			g.emit(0xfc, 10, 0, 0)
		}
	case 18: // memory.init, data.drop
		if g.IntN(8) == 0 {
			g.emit(0xfc, 9, byte(g.IntN(segments)))
			return
		}
		g.address()
		g.smallInt(5)
		g.smallInt(5)
		g.emit(0xfc, 8, byte(1+g.IntN(segments-1)), 0)
	case 19: // table.set, table.fill
		table, t, bits := g.reference()
		g.smallInt(bits)
		g.value(t)
		if g.IntN(2) == 0 {
			g.emit(0x26, table)
		} else {
			g.smallInt(2)
			g.emit(0xfc, 17, table)
		}
	case 20: // table.init, elem.drop, table.copy
		switch g.IntN(8) {
		case 0:
			g.emit(0xfc, 13, byte(g.IntN(segments)))
		case 1, 2, 3:
			table, _, bits := g.reference()
			g.smallInt(bits)
			g.smallInt(bits)
			g.smallInt(2)
			g.emit(0xfc, 14, table, table)
		default:
			g.smallInt(3)
			g.smallInt(2)
			g.smallInt(2)
			g.emit(0xfc, 12, byte(1+g.IntN(segments-1)), 0) // the active one is dropped at instantiation
		}
	default:
		g.value(t)
		g.emit(0x1a)
	}
}

// reference returns a table, the type of its entries, and the bits of an index.
func (g *generator) reference() (table, t byte, bits int) {
	if g.IntN(2) == 0 {
		return 0, funcref, 3
	}
	return 1, externref, 2
}

// countedLoop writes a loop with a fixed number of rounds.
func (g *generator) countedLoop() {
	if g.depth > 2 {
		return
	}
	counter := len(g.locals) - 1 - g.depth
	g.emit(0x41).sleb(int64(1+g.IntN(1<<(1+g.IntN(13))))).emit(0x21).uleb(counter).emit(0x03, 0x40)
	g.withLabel(nil, func() {
		g.consumeFuel()
		g.statements()
		g.emit(0x20).uleb(counter).emit(0x41, 1, 0x6b, 0x22).uleb(counter).emit(0x0d, 0)
	})
}

// shortLoop writes a loop of few instructions with branches out of it and back from the middle.
func (g *generator) shortLoop() {
	if g.depth > 2 {
		return
	}
	counter := leb(len(g.locals) - 1 - g.depth)
	get := func() *generator { return g.emit(0x20).emit(counter...) }
	g.emit(0x41).sleb(int64(1+g.IntN(40))).emit(0x21).emit(counter...).emit(0x02, 0x40, 0x03, 0x40)
	for range 2 { // memory[counter] = 3*memory[counter] + counter
		get().emit(0x41, 63, 0x71)
	}
	g.emit(0x2d, 0, 0, 0x41, 3, 0x6c)
	get().emit(0x6a, 0x3a, 0, 0)
	get().emit(0x41, 1, 0x6b, 0x21).emit(counter...)
	for range g.IntN(3) {
		k := byte(g.IntN(30))
		switch g.IntN(5) {
		case 0: // out
			get().emit(0x41, k, 0x46, 0x0d, 1)
		case 1: // back
			get().emit(0x41, 0, 0x4a)
			get().emit(0x41, k&7, 0x71, 0x41, k&7, 0x46, 0x71, 0x0d, 0)
		case 2: // out of a block in it, or only to that block's end
			g.emit(0x02, 0x40)
			get().emit(0x41, k, 0x46, 0x0d, byte(2*g.IntN(2))).emit(0x0b)
		case 3: // out by a br_table
			g.emit(0x02, 0x40)
			get().emit(0x41, k, 0x46, 0x0e, 1, 0, 2, 0x0b)
		case 4: // out of an if in it
			get().emit(0x41, k, 0x46, 0x04, 0x40, 0x0c, 2, 0x0b)
		}
	}
	if get(); g.IntN(2) == 0 {
		g.emit(0x41, 0, 0x4a, 0x0d, 0)
	} else {
		g.emit(0x41, 0, 0x4c, 0x0d, 1, 0x0c, 0)
	}
	g.emit(0x0b, 0x0b)
}

// typedBlock writes a block, a loop or an if with a type of its own.
func (g *generator) typedBlock(n int) {
	s := g.types[n]
	g.values(s.params)
	switch g.IntN(3) {
	case 0:
		g.emit(0x02).uleb(n)
		g.withLabel(s.results, func() { g.body(s) })
	case 1: // a loop that a branch starts again with other values
		g.emit(0x03).uleb(n)
		g.withLabel(s.params, func() {
			g.consumeFuel()
			g.pop(s.params)
			g.statements()
			g.values(s.params)
			g.value(i32)
			g.emit(0x0d, 0)
			g.pop(s.params)
			g.values(s.results)
		})
	case 2:
		g.value(i32)
		g.emit(0x04).uleb(n)
		g.withLabel(s.results, func() {
			g.body(s)
			g.emit(0x05)
			g.body(s)
		})
	}
	g.pop(s.results)
}

// body writes a body that begins with values on the stack and leaves others.
func (g *generator) body(s signature) {
	g.pop(s.params)
	g.statements()
	g.values(s.results)
}

// table writes a br_table over labels that take the same types. It is usually skipped at run time, because nothing
// after it would run.
func (g *generator) table() {
	g.emit(0x02, 0x40)
	g.withLabel(nil, func() {
		g.value(i32)
		g.emit(0x41, 7, 0x71, 0x0d, 0)
		want := g.labels[g.IntN(len(g.labels))]
		var same []int
		for i, types := range g.labels {
			if bytes.Equal(types, want) {
				same = append(same, len(g.labels)-1-i)
			}
		}
		g.values(want)
		g.smallInt(2)
		g.emit(0x0e).uleb(len(same))
		for range len(same) + 1 {
			g.uleb(same[g.IntN(len(same))])
		}
	})
}

// initialReference returns the initial function of global references.
func (g *generator) initialReference() int { return len(g.functions) - 1 }

func (g *generator) call() {
	f := g.IntN(len(g.functions))
	s := g.types[g.functions[f]]
	switch g.IntN(4) {
	case 0, 1:
		g.values(s.params)
		g.emit(0x10).uleb(imports + f)
	case 2: // usually what the table contains initially
		g.values(s.params)
		if g.IntN(4) == 0 {
			g.smallInt(3)
		} else {
			g.emit(0x41).sleb(int64(f))
		}
		g.emit(0x11).uleb(g.functions[f]).emit(0)
	case 3: // the value to store
		g.emit(0x41, functable-1)
		if g.IntN(2) == 0 {
			g.emit(0xd2).uleb(imports + f)
		} else {
			f = g.initialReference()
			s = g.types[g.functions[f]]
			g.emit(0x23).uleb(g.global(funcref))
		}
		g.emit(0x26, 0)
		g.values(s.params)
		g.emit(0x41, functable-1, 0x11).uleb(g.functions[f]).emit(0)
	}
	g.pop(s.results)
}

// value writes code that leaves one value of a type on the stack.
func (g *generator) value(t byte) {
	if g.instructionsLeft--; g.instructionsLeft < 0 || g.depth > 8 {
		g.simple(t)
		return
	}
	g.depth++
	defer func() { g.depth-- }()
	switch g.IntN(12) {
	case 0, 1:
		g.simple(t)
	case 2: // a block with this result
		g.emit(0x02, t)
		g.withLabel([]byte{t}, func() { g.body(signature{results: []byte{t}}) })
	case 3: // select
		g.value(t)
		g.value(t)
		g.value(i32)
		g.emit(0x1c, 1, t)
	case 4:
		g.value(t)
		g.emit(0x22).uleb(g.local(t))
	case 5: // a call with this result, if there is one
		for i, f := range g.functions {
			if s := g.types[f]; bytes.Equal(s.results, []byte{t}) {
				g.values(s.params)
				g.emit(0x10).uleb(imports + i)
				return
			}
		}
		g.simple(t)
	default:
		g.operation(t)
	}
}

// simple writes a constant, a local or a global.
func (g *generator) simple(t byte) {
	switch g.IntN(4) {
	case 0:
		g.emit(0x23).uleb(g.global(t))
	case 1, 2:
		g.emit(0x20).uleb(g.local(t))
	default:
		if t == funcref && len(g.code) > 0 && g.IntN(2) == 0 {
			g.emit(0xd2).uleb(imports + g.IntN(len(g.functions)))
			return
		}
		g.constant(t)
	}
}

// constant writes small numbers and edge cases.
func (g *generator) constant(t byte) {
	bits := g.Uint64() >> g.IntN(64)
	if g.IntN(4) == 0 {
		bits = -bits
	}
	switch t {
	case i32:
		g.emit(0x41).sleb(int64(int32(bits)))
	case i64:
		g.emit(0x42).sleb(int64(bits))
	case f32:
		g.emit(0x43).fixed(bits, 4)
	case f64:
		g.emit(0x44).fixed(bits, 8)
	case v128:
		g.emit(0xfd, 12).fixed(bits, 8).fixed(g.Uint64(), 8)
	default:
		g.emit(0xd0, t)
	}
}

func (g *generator) fixed(bits uint64, n int) *generator {
	for i := range n {
		g.emit(byte(bits >> (8 * i)))
	}
	return g
}

// operation writes an instruction with this result, and its operands.
func (g *generator) operation(t byte) {
	if t == funcref || t == externref {
		table, bits := byte(0), 3
		if t == externref {
			table, bits = 1, 2
		}
		g.smallInt(bits)
		g.emit(0x25, table)
		return
	}
	if t == i32 && g.IntN(12) == 0 {
		switch g.IntN(5) {
		case 0:
			g.emit(0x3f, 0)
		case 1: // memory.grow
			g.smallInt(1)
			g.emit(0x40, 0)
		case 2:
			g.emit(0xfc, 16, byte(g.IntN(2)))
		case 3: // table.grow
			table, t, _ := g.reference()
			g.value(t)
			g.smallInt(2)
			g.emit(0xfc, 15, table)
		case 4: // ref.is_null
			_, t, _ := g.reference()
			g.value(t)
			g.emit(0xd1)
		}
		return
	}
	if g.IntN(4) == 0 {
		l := pick(g, loads, t)
		g.address()
		g.emit(l.op...).emit(0).uleb(g.IntN(16))
		return
	}
	o := pick(g, operations, t)
	g.values(o.params)
	g.emit(o.op...)
	if o.lanes > 0 {
		g.emit(byte(g.IntN(o.lanes)))
	}
}

func pick[T interface{ result() byte }](g *generator, all []T, t byte) T {
	for {
		if one := all[g.IntN(len(all))]; one.result() == t {
			return one
		}
	}
}

type access struct {
	op    []byte
	value byte
}

func (a access) result() byte { return a.value }

type operation struct {
	op, params []byte
	value      byte
	lanes      int // of its immediate, 0 if it has none
}

func (o operation) result() byte { return o.value }

var (
	stores = []access{
		{[]byte{0x36}, i32}, {[]byte{0x37}, i64}, {[]byte{0x38}, f32}, {[]byte{0x39}, f64}, {[]byte{0x3a}, i32},
		{[]byte{0x3b}, i32},
		{[]byte{0x3c}, i64}, {[]byte{0x3d}, i64}, {[]byte{0x3e}, i64}, {[]byte{0xfd, 11}, v128},
	}
	loads      = allLoads()
	operations = allOperations()
)

func allLoads() (loads []access) {
	for op := byte(0x28); op <= 0x35; op++ {
		loads = append(loads, access{[]byte{op}, [...]byte{i32, i64, f32, f64, i32, i32, i32, i32, i64, i64, i64, i64, i64,
			i64}[op-0x28]})
	}
	for op := byte(0); op <= 10; op++ { // v128.load, extending ones, splats
		loads = append(loads, access{[]byte{0xfd, op}, v128})
	}
	return loads
}

func allOperations() (operations []operation) {
	add := func(from, to int, prefix []byte, result byte, params ...byte) {
		for op := from; op <= to; op++ {
			code := append(bytes.Clone(prefix), byte(op))
			if len(prefix) > 0 {
				code = append(bytes.Clone(prefix), leb(op)...)
			}
			operations = append(operations, operation{op: code, params: params, value: result})
		}
	}
	add(0x45, 0x45, nil, i32, i32)
	add(0x46, 0x4f, nil, i32, i32, i32)
	add(0x50, 0x50, nil, i32, i64)
	add(0x51, 0x5a, nil, i32, i64, i64)
	add(0x5b, 0x60, nil, i32, f32, f32)
	add(0x61, 0x66, nil, i32, f64, f64)
	add(0x67, 0x69, nil, i32, i32)
	add(0x6a, 0x78, nil, i32, i32, i32)
	add(0x79, 0x7b, nil, i64, i64)
	add(0x7c, 0x8a, nil, i64, i64, i64)
	add(0x8b, 0x91, nil, f32, f32)
	add(0x92, 0x98, nil, f32, f32, f32)
	add(0x99, 0x9f, nil, f64, f64)
	add(0xa0, 0xa6, nil, f64, f64, f64)
	add(0xa7, 0xa7, nil, i32, i64)
	add(0xa8, 0xa9, nil, i32, f32)
	add(0xaa, 0xab, nil, i32, f64)
	add(0xac, 0xad, nil, i64, i32)
	add(0xae, 0xaf, nil, i64, f32)
	add(0xb0, 0xb1, nil, i64, f64)
	add(0xb2, 0xb3, nil, f32, i32)
	add(0xb4, 0xb5, nil, f32, i64)
	add(0xb6, 0xb6, nil, f32, f64)
	add(0xb7, 0xb8, nil, f64, i32)
	add(0xb9, 0xba, nil, f64, i64)
	add(0xbb, 0xbb, nil, f64, f32)
	add(0xbc, 0xbc, nil, i32, f32)
	add(0xbd, 0xbd, nil, i64, f64)
	add(0xbe, 0xbe, nil, f32, i32)
	add(0xbf, 0xbf, nil, f64, i64)
	add(0xc0, 0xc1, nil, i32, i32) // sign extension
	add(0xc2, 0xc4, nil, i64, i64)
	saturating := []byte{0xfc}
	add(0, 1, saturating, i32, f32)
	add(2, 3, saturating, i32, f64)
	add(4, 5, saturating, i64, f32)
	add(6, 7, saturating, i64, f64)
	vector := []byte{0xfd}
	add(15, 17, vector, v128, i32) // splat
	add(18, 18, vector, v128, i64)
	add(19, 19, vector, v128, f32)
	add(20, 20, vector, v128, f64)
	add(35, 64, vector, v128, v128, v128)          // comparisons
	add(78, 81, vector, v128, v128, v128)          // and, andnot, or, xor
	add(82, 82, vector, v128, v128, v128, v128)    // bitselect
	add(83, 83, vector, i32, v128)                 // any_true
	add(96, 98, vector, v128, v128)                // i8x16: abs, neg, popcnt
	add(99, 100, vector, i32, v128)                // all_true, bitmask
	add(107, 109, vector, v128, v128, i32)         // shifts
	add(110, 115, vector, v128, v128, v128)        // i8x16: add, sub
	add(139, 141, vector, v128, v128, i32)         // i16x8: shifts
	add(142, 147, vector, v128, v128, v128)        // i16x8: add, sub
	add(174, 174, vector, v128, v128, v128)        // i32x4.add
	add(206, 206, vector, v128, v128, v128)        // i64x2.add
	for i, lanes := range []int{16, 16, 8, 8, 4} { // extract_lane
		operations = append(operations, operation{[]byte{0xfd, [...]byte{21, 22, 24, 25, 27}[i]}, []byte{v128}, i32, lanes})
	}
	operations = append(operations, operation{[]byte{0xfd, 29}, []byte{v128}, i64, 2}, operation{[]byte{0xfd, 31},
		[]byte{v128}, f32, 4},
		operation{[]byte{0xfd, 33}, []byte{v128}, f64, 2}, operation{[]byte{0xfd, 28}, []byte{v128, i32}, v128, 4})
	return operations
}
