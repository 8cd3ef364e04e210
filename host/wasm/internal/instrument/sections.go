package instrument

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/sections"
)

// Section ids. Sections come in this order, except that the data count precedes the code.
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
	secTag // refused
)

var sectionNames = [...]string{"custom", "type", "import", "function", "table", "memory", "global", "export", "start",
	"element", "code", "data", "data count"}

var sectionRank = [...]int{secType: 1, secImport: 2, secFunction: 3, secTable: 4, secMemory: 5, secGlobal: 6,
	secExport: 7, secStart: 8, secElement: 9, secDataCount: 10, secCode: 11, secData: 12}

// decoder reads a module once from front to back, and writes the instrumented module on the way.
type decoder struct {
	reader
	cfg   Config
	out   []byte
	found Module
	has   parts

	dataCount int  // -1 without a data count section
	usesData  bool // an instruction refers to a data segment
	hasState  bool // an instance can have state in its tables, or in globals that hold no numbers
	locals    int  // number declared so far in all functions

	callerPays    []uint8 // for each function, its weight in units if its callers are charged for it; otherwise 0
	maxCallerPays int
	growth        int // bytes added by unrolling

	body   []byte  // the function being rewritten
	frames []frame // reused for each function
}

// newIndex returns the new index of a function. The import of yield now follows the imported functions, and imports
// are replaced by their guards.
func (d *decoder) newIndex(f uint32) uint32 {
	switch {
	case d.cfg.Plain:
		return f
	case int(f) >= d.has.imported:
		return f + 1
	}
	return d.has.guardIndex(int(f))
}

func (d *decoder) decodeModule() error {
	if err := checkHeader(d.data); err != nil {
		return err
	}
	d.pos = headerBytes
	d.dataCount = -1
	d.out = append(make([]byte, 0, len(d.data)+len(d.data)/4+256), d.data[:headerBytes]...)
	rank := 0
	for d.pos < len(d.data) {
		at := d.pos
		d.end, d.section = len(d.data), ""
		id := d.byte()
		size := d.u32()
		if d.err == nil && int64(size) > int64(d.remaining()) {
			d.fail(at, "a section of %d bytes is declared but only %d are left", size, d.remaining())
		}
		if d.err == nil && int(id) >= len(sectionNames) {
			d.refuse(at, map[byte]feature{secTag: exceptions}[id], "section %d", id)
		}
		if d.err != nil {
			return d.err
		}
		d.end = d.pos + int(size)
		if id == secCustom {
			d.pos = d.end // nothing after this decoder reads them
			continue
		}
		if sectionRank[id] <= rank {
			return &Error{Offset: at, Message: "section " + sectionNames[id] + " appears twice or too late"}
		}
		if err := d.checkCodeSection(rank, sectionRank[id]); err != nil {
			return err
		}
		d.writeAddedSections(rank+1, sectionRank[id]-1)
		rank = sectionRank[id]
		d.section = sectionNames[id]
		d.readSection(id)
		if d.err == nil && d.pos != d.end {
			d.fail(d.pos, "%d extra bytes", d.remaining())
		}
		if d.err != nil {
			return d.err
		}
	}
	d.section = ""
	if err := d.checkCodeSection(rank, sectionRank[secData]+1); err != nil {
		return err
	}
	d.writeAddedSections(rank+1, sectionRank[secData])
	d.found.HasMemory = d.has.memory
	d.found.Imageable = d.found.HasMemory && !d.found.HasStart && !d.usesData && !d.hasState
	return nil
}

// checkCodeSection returns an error if the code section is missing between two successive ranks.
func (d *decoder) checkCodeSection(from, to int) error {
	code := sectionRank[secCode]
	if n := len(d.has.funcs) - d.has.imported; n > 0 && from < code && code < to {
		return &Error{Offset: d.pos, Message: fmt.Sprintf("%d functions are declared but the code section is missing; "+
			"the file is probably truncated", n)}
	}
	return nil
}

// addedTo returns for each section what metering adds to it: the number of items, and their bytes.
var addedTo = map[byte]func(*parts) (n int, content []byte){
	secType: (*parts).addedTypes, secImport: (*parts).addedImport, secFunction: (*parts).addedFunctions,
	secGlobal: (*parts).addedGlobal, secCode: (*parts).addedCode,
}

// writeAddedSections writes the sections between two ranks that metering needs and that the module lacks.
func (d *decoder) writeAddedSections(from, to int) {
	for _, id := range []byte{secType, secImport, secFunction, secGlobal, secCode} {
		if r := sectionRank[id]; r >= from && r <= to && !d.cfg.Plain {
			d.writeVector(id, 0, nil)
		}
	}
}

// writeVector writes a section of n items, including the items that metering adds.
func (d *decoder) writeVector(id byte, n int, content []byte) {
	var added []byte
	if add := addedTo[id]; add != nil && !d.cfg.Plain {
		var more int
		more, added = add(&d.has)
		n += more
	}
	d.writeSection(id, append(append(appendU32(nil, uint32(n)), content...), added...))
}

func (d *decoder) writeSection(id byte, content []byte) {
	d.out = appendSection(d.out, id, content)
}

func (d *decoder) readSection(id byte) {
	start := d.pos
	switch id {
	case secType:
		d.readTypes()
		d.writeVector(id, len(d.has.types), d.vectorBody(start))
	case secImport:
		d.readImports()
		d.writeVector(id, d.has.imported, d.vectorBody(start))
	case secFunction:
		n := d.count("functions", 1, d.cfg.Limits.Functions)
		declared := reader{data: d.data, pos: start, end: d.end}
		if n := int(declared.u32()); d.err != nil && n > d.cfg.Limits.Functions {
			d.err.Limit, d.err.Needs = LimitFunctions, n
		}
		for range n {
			d.has.funcs = append(d.has.funcs, d.index("type", len(d.has.types)))
		}
		d.writeVector(id, n, d.vectorBody(start))
	case secTable:
		d.writeSection(id, d.readTables())
	case secMemory:
		d.writeSection(id, d.readMemory())
	case secGlobal:
		content := d.readGlobals()
		d.writeVector(id, d.has.globals, content)
	case secExport:
		d.writeSection(id, d.readExports())
	case secStart:
		d.found.HasStart = true
		d.writeSection(id, appendU32(nil, d.newIndex(d.index("function", len(d.has.funcs)))))
	case secElement:
		d.writeSection(id, d.readElements())
	case secDataCount:
		d.dataCount = int(d.u32()) // written once it is known whether it is needed
		if d.dataCount > maxDataSegments {
			d.fail(start, "%d data segments are declared, at most %d are accepted", d.dataCount, maxDataSegments)
		}
	case secCode:
		d.readCode()
	case secData:
		d.writeSection(id, d.readData())
	}
}

// vectorBody returns the vector that begins at start, without its count.
func (d *decoder) vectorBody(start int) []byte {
	if d.err != nil {
		return nil
	}
	r := reader{data: d.data, pos: start, end: d.end}
	r.u32()
	return d.data[r.pos:d.end]
}

func (d *decoder) readTypes() {
	var b strings.Builder
	all := 0
	for range d.count("types", 3, maxTypes) {
		at := d.pos
		if form := d.byte(); form != 0x60 {
			d.refuse(at, gc, "type 0x%02x, which is not a function type,", form)
		}
		b.Reset()
		n := d.count("parameters", 1, maxParams)
		d.readTypeList(&b, n)
		b.WriteString("->")
		results := d.count("results", 1, maxParams)
		d.readTypeList(&b, results)
		if all += n + results; all > maxAllParams {
			d.fail(at, "the types have more than %d parameters and results in total", maxAllParams)
		}
		d.has.types = append(d.has.types, FuncType(b.String()))
		d.has.params = append(d.has.params, n)
	}
}

func (d *decoder) readTypeList(b *strings.Builder, n int) {
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(typeNames[d.valueType()])
	}
}

var typeNames = map[byte]string{typeI32: "i32", typeI64: "i64", typeF32: "f32", typeF64: "f64", typeV128: "v128",
	typeFunc: "funcref", typeExtern: "externref"}

func (d *decoder) readImports() {
	for range d.count("imports", 4, maxImports) {
		at := d.pos
		module, name := d.name(), d.name()
		if d.remaining() > 0 && d.data[d.pos] != KindFunc {
			kind := d.importKind(nil)
			if f, ok := importFeatures[kind]; ok {
				d.refuse(at, f, "the import %s.%s, a %s,", shortName(module), shortName(name), kind)
			}
			d.fail(at, "the module imports a %s, %s.%s, but only functions can be imported", kind, shortName(module),
				shortName(name))
			switch kind {
			case "memory":
				d.err.Fix = "link it without --import-memory (asc: --importMemory)"
			case "table":
				d.err.Fix = "link it without --import-table (asc: --importTable)"
			}
			return
		}
		d.byte()
		t := d.index("type", len(d.has.types))
		if d.err != nil {
			return
		}
		g, ok := d.cfg.Guards[module+"."+name]
		if !ok || g.Type != d.has.types[t] {
			g = Guard{}
		}
		d.has.guards = append(d.has.guards, guard{g, uint32(d.has.imported), t})
		d.has.funcs = append(d.has.funcs, t)
		d.has.imported++
		d.found.Imports = append(d.found.Imports, Import{Module: module, Name: name, Type: d.has.types[t]})
	}
}

// shortName cleans and truncates a name of the guest for a message.
func shortName(s string) string { return manifest.Clip(manifest.CleanLine(s), 60) }

func (d *decoder) readTables() []byte {
	d.has.tables = d.count("tables", 3, maxTables)
	b := appendU32(nil, uint32(d.has.tables))
	for range d.has.tables {
		b = append(b, d.refType())
		at := d.pos
		flag, size, declared := d.limits()
		if flag > 1 {
			d.refuse(at, limitsFeatures[flag], "a table with limits of form %d", flag)
		}
		maxEntries := uint32(d.cfg.Limits.TableEntries)
		if size > maxEntries && d.err == nil {
			d.fail(at, "a table of %d entries is declared, at most %d are accepted", size, maxEntries)
			d.err.Limit, d.err.Needs = LimitTableEntries, int(size)
		}
		if flag == 1 {
			if declared < size && d.err == nil {
				d.fail(at, "a table's minimum %d is above its maximum %d", size, declared)
			}
			maxEntries = min(maxEntries, declared)
		}
		b = append(b, 1)
		b = appendU32(b, size)
		b = appendU32(b, maxEntries)
	}
	return b
}

func (d *decoder) readMemory() []byte {
	at := d.pos
	n := d.count("memories", 2, d.remaining())
	if n == 0 {
		return appendU32(nil, 0)
	}
	if n > 1 {
		d.refuse(at, multiMemory, "a module with %d memories", n)
	}
	at = d.pos
	flag, size, declared := d.limits()
	if flag > 1 {
		d.refuse(at, limitsFeatures[flag], "a memory with limits of form %d", flag)
	}
	maxPages := d.cfg.MaxPages
	if flag == 1 {
		if (declared < size || declared > 1<<16) && d.err == nil {
			d.fail(at, "the memory's maximum of %d pages is below its minimum %d or above 65536", declared, size)
		}
		maxPages = min(maxPages, declared)
	}
	if size > d.cfg.MaxPages && d.err == nil {
		d.fail(at, "the module starts with %d MiB of memory, the limit is %d MiB", (uint64(size)+15)/16, d.cfg.MaxPages/16)
		d.err.Fix = "raise the plugin's memory limit, or build the module with less"
	}
	d.has.memory, d.found.MemoryMin, d.found.MemoryMax = true, size, maxPages
	b := append(appendU32(nil, 1), 1)
	b = appendU32(b, size)
	return appendU32(b, maxPages)
}

func (d *decoder) readGlobals() []byte {
	var b []byte
	for range d.count("globals", 4, maxGlobals) {
		b = append(b, d.valueType())
		at := d.pos
		mutable := d.byte()
		if mutable > 1 && d.err == nil {
			d.fail(at, "a global's mutability must be 0 or 1 but is %d", mutable)
		}
		if kind := b[len(b)-1]; mutable == 1 && kind != typeI32 && kind != typeI64 && kind != typeF32 && kind != typeF64 {
			d.hasState = true
		}
		b = append(b, mutable)
		b = d.copyConstant(b)
		if mutable == 1 {
			d.has.mutable = append(d.has.mutable, uint32(d.has.globals))
		}
		d.has.globals++
	}
	return b
}

// copyConstant copies a constant expression. The expression may use the arithmetic of the extended-const feature. It
// may read only immutable globals, because in a guest that begins with an image the mutable ones differ from the
// module's.
func (d *decoder) copyConstant(b []byte) []byte {
	for n := 0; d.err == nil; n++ {
		at := d.pos
		op := d.byte()
		switch op {
		case opI32, opI64, opF32, opF64:
			d.number(op)
		case 0x23:
			g := d.index("global", d.has.globals)
			if _, mutable := slices.BinarySearch(d.has.mutable, g); mutable && d.err == nil {
				d.fail(at, "a constant expression reads global %d, which is mutable", g)
			}
		case 0xd0:
			d.refType()
		case 0xfd:
			if v := d.byte(); v != 12 && d.err == nil {
				d.fail(at, "vector instruction %d is not constant", v)
			}
			d.skip(16)
		case 0xd2:
			b = appendU32(append(b, op), d.newIndex(d.index("function", len(d.has.funcs))))
			continue
		case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e: // add, sub and mul
		case opEnd:
			if n == 0 {
				d.fail(at, "a constant expression is empty")
			}
			return append(b, op)
		default:
			if d.err == nil {
				d.fail(at, "instruction 0x%02x is not constant", op)
			}
		}
		if n >= maxConstant && d.err == nil {
			d.fail(at, "a constant expression has more than %d instructions", maxConstant)
		}
		b = append(b, d.data[at:d.pos]...)
	}
	return b
}

func (d *decoder) readExports() []byte {
	n := d.count("exports", 3, maxExports)
	b := appendU32(nil, uint32(n))
	for range n {
		name := d.name()
		at := d.pos
		kind := d.byte()
		e := Export{Name: name, Kind: kind}
		b = append(appendName(b, name), kind)
		switch kind {
		case KindFunc:
			f := d.index("function", len(d.has.funcs))
			if d.err == nil {
				e.Type, e.Imported = d.has.types[d.has.funcs[f]], int(f) < d.has.imported
			}
			b = appendU32(b, d.newIndex(f))
		case KindTable:
			b = appendU32(b, d.index("table", d.has.tables))
		case KindMemory:
			memories := 0
			if d.has.memory {
				memories = 1
			}
			b = appendU32(b, d.index("memory", memories))
		case KindGlobal:
			b = appendU32(b, d.index("global", d.has.globals))
		default:
			d.refuse(at, map[byte]feature{kindTag: exceptions}[kind], "the export %s of kind %d", shortName(name), kind)
		}
		if d.err != nil {
			return nil
		}
		d.found.Exports = append(d.found.Exports, e)
	}
	return b
}

func (d *decoder) readElements() []byte {
	d.has.elements = d.count("element segments", 2, maxElements)
	b := appendU32(nil, uint32(d.has.elements))
	for range d.has.elements {
		at := d.pos
		flag := d.u32()
		if flag > 7 && d.err == nil {
			d.fail(at, "element segments of form %d are not accepted", flag)
		}
		b = appendU32(b, flag)
		if flag&1 == 0 { // active
			if flag&2 != 0 {
				b = appendU32(b, d.index("table", d.has.tables))
			}
			b = d.copyConstant(b)
		}
		if flag&3 != 0 { // the element kind or type is explicit
			if flag&4 == 0 {
				d.zero("an element kind")
				b = append(b, 0)
			} else {
				b = append(b, d.refType())
			}
		}
		size := 1
		if flag&4 != 0 {
			size = 3
		}
		n := d.count("elements", size, d.cfg.Limits.FileBytes)
		b = appendU32(b, uint32(n))
		for range n {
			if flag&4 == 0 {
				b = appendU32(b, d.newIndex(d.index("function", len(d.has.funcs))))
			} else {
				b = d.copyConstant(b)
			}
			if d.err != nil {
				return nil
			}
		}
	}
	return b
}

// readData copies the data segments and merges neighbors: modules of Go have tens of thousands of segments, and
// each costs an instance as much as 200 bytes of data. Segments that instructions refer to are not merged.
func (d *decoder) readData() []byte {
	at := d.pos
	n := d.count("data segments", 2, maxDataSegments)
	if d.dataCount >= 0 && n != d.dataCount && d.err == nil {
		d.fail(at, "%d data segments are declared before the code but %d follow", d.dataCount, n)
	}
	m := merger{out: make([]byte, 0, d.remaining()+64), mayMerge: !d.cfg.Plain && !d.usesData}
	for range n {
		at := d.pos
		flag := d.u32()
		if flag > 2 && d.err == nil {
			d.fail(at, "data segments of form %d are not accepted", flag)
		}
		if flag == 2 {
			d.zero("a memory index")
		}
		var offset []byte
		if flag != 1 {
			offset = d.copyConstant(nil)
		}
		size := d.count("bytes of data", 1, d.cfg.Limits.FileBytes)
		if d.usesData && size > maxInitData && d.err == nil {
			d.fail(at, "a data segment of %d bytes can be copied by instructions, at most %d are accepted", size, maxInitData)
		}
		if d.err != nil {
			return nil
		}
		m.add(flag, offset, d.data[d.pos:d.pos+size])
		d.pos += size
	}
	m.flush()
	return append(appendU32(nil, uint32(m.count)), m.out...)
}

// maxGap is the largest gap in bytes between two segments that are merged. The gap is filled with zeros.
const maxGap = 64

// merger writes data segments and merges neighbors.
type merger struct {
	mayMerge bool
	out      []byte
	count    int

	data       []byte // data of the segment that may still grow; nil if there is none
	start, end uint64
	limit      uint64 // no earlier segment wrote to the bytes from start to here, so a gap in them is still zero

	earlier []span // segments written so far, at most maxSpans
}

type span struct{ start, end uint64 }

// maxSpans bounds the search through earlier segments. Go's linker writes two ascending runs.
const maxSpans = 256

// unwrittenUntil returns the end of the range from start to which no segment has written.
func (m *merger) unwrittenUntil(start uint64) uint64 {
	if len(m.earlier) >= maxSpans {
		return start
	}
	limit := uint64(1) << 32
	for _, s := range m.earlier {
		if s.end > start {
			limit = min(limit, max(s.start, start))
		}
	}
	return limit
}

func (m *merger) add(flag uint32, offset, data []byte) {
	at, known := constantOffset(offset)
	if !m.mayMerge || flag == 1 || !known {
		m.flush()
		if flag != 1 {
			m.mayMerge = false // its address is unknown, so later segments may overlap it
		}
		m.count++
		m.out = appendU32(m.out, flag&1) // form 2 with memory 0 equals form 0
		m.out = append(m.out, offset...)
		m.out = append(appendU32(m.out, uint32(len(data))), data...)
		return
	}
	if gap := at - m.end; m.data != nil && at >= m.end && gap <= maxGap && (gap == 0 || at <= m.limit) && at+
		uint64(len(data)) <= 1<<32 {
		m.data = append(append(m.data, make([]byte, gap)...), data...)
	} else {
		m.flush()
		m.start, m.limit, m.data = at, m.unwrittenUntil(at), append(make([]byte, 0, len(data)), data...)
	}
	m.end = m.start + uint64(len(m.data))
}

func (m *merger) flush() {
	if m.data == nil {
		return
	}
	if len(m.earlier) < maxSpans {
		m.earlier = append(m.earlier, span{m.start, m.end})
	}
	m.count++
	m.out = append(m.out, 0, 0x41)
	m.out = append(appendS32(m.out, int32(uint32(m.start))), opEnd)
	m.out = append(appendU32(m.out, uint32(len(m.data))), m.data...)
	m.data = nil
}

// constantOffset returns the value of a validated constant expression that consists of a single number.
func constantOffset(expr []byte) (uint64, bool) {
	if len(expr) == 0 || expr[0] != 0x41 {
		return 0, false
	}
	r := reader{data: expr, pos: 1, end: len(expr)}
	at := uint64(uint32(r.signed(32)))
	return at, r.err == nil && r.remaining() == 1 // only the end instruction follows
}

func checkHeader(data []byte) error {
	err := sections.CheckHeader(data)
	if err == nil {
		return nil
	}
	if f, ok := err.(*sections.FormatError); ok {
		return &Error{Offset: f.Offset, Message: "not a wasm module: " + f.Message, Fix: f.Fix}
	}
	return &Error{Message: err.Error()}
}
