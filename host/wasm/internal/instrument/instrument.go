// Package instrument is the gate in front of the wasm engine and the meter inside the guest: it decodes
// a module strictly, refuses what would hurt the decoder or the compiler behind it, and rewrites the code
// so that it hands control back to the host again and again.
//
// Why rewrite: wazero's own way to stop a guest (WithCloseOnContextDone) leaves native code at every loop
// header, which slows compute 9 to 25 times, and never stops recursion without loops (measured on
// v1.12.0). Here each loop counts in a local variable and each function in a global. When the budget is used up, one imported
// function is called, which lets Go's scheduler and collector do their work and ends the guest where its time is over.
//
// A function is charged where it begins, with all its code; a loop from its second round on, several rounds at once where these are short. A
// small function without loops is charged by those who call it, and pays itself only for the small ones that it calls: so a leaf costs
// nothing, and recursion pays at every level.
//
// What the guest wrote must not reach what was added: every index in the module is checked against the
// counts that the module itself declares, before the additions.
package instrument

import "fmt"

// Version changes whenever the same input would be rewritten to another output. It belongs in the key of
// whatever caches the output.
const Version = 6

// YieldModule and YieldName name the imported function of type () -> () that rewritten modules call.
const (
	YieldModule = "parley:host"
	YieldName   = "yield"
)

// The budget. A unit is an access to memory or 16 bytes of code, and takes 0.1 to 3 ns as a rule and about 150 ns where it misses all caches:
// between two yields at most yieldEvery are used, plus what one stretch of code or one bulk operation costs. That is
// some tens of microseconds for plain code, and 10 ms for what is made to be slow.
const (
	unitBytes    = 16
	yieldEvery   = 1 << 16
	yieldNow     = yieldEvery + 1 // charged, it yields whatever is left
	tickEvery    = 1 << 10        // a loop tells its local count to the global one this often,
	firstTick    = 1 << 6         // and first after so many units, which the function's charge covers: short loops never tell
	maxSmallBody = 128            // bytes of a function that others pay for, if it has no loop
	segmentUnits = yieldEvery / 4 // of code: the function's charge holds the first, each other is charged where it begins, on all ways to it
	// importCharge is what a call of the host costs: it may take up to a hundred microseconds.
	importCharge = yieldEvery / 64
	// tableOpCharge is what an operation on a table costs, whose length is not looked at: the limit of tables bounds it.
	tableOpCharge = yieldEvery / 8
)

// Limits of what is accepted. Each stops something that kills or stalls the process when it reaches wazero;
// real programs (CPython, Ruby, PHP, Go) stay far below.
const (
	maxFile         = 128 << 20
	maxTypes        = 50_000
	maxParams       = 1_000   // and results
	maxAllParams    = 1 << 20 // of all types together, and results
	maxImports      = 10_000
	maxFunctions    = 250_000
	maxTables       = 8
	maxTableSize    = 1 << 18 // entries; a larger maximum is clamped, tables lie outside the memory limit
	maxGlobals      = 100_000
	maxExports      = 250_000
	maxElements     = 100_000
	maxDataSegments = 250_000 // Go has 36,776
	maxBody         = 4 << 20
	maxInitData     = 4 << 20 // of a data segment that instructions copy, which cannot be interrupted
	maxLocals       = 50_000
	maxAllLocals    = 4 << 20 // in all functions together: wazero allocates each
	maxNesting      = 10_000
	maxLoopNesting  = 128 // compile time grows with a power of it: 500 nested loops take 9 s
	maxName         = 10_000
)

// Error says why a module is refused, and where.
type Error struct {
	Section string // "code", "type" ..., or "" for the file as a whole
	Offset  int    // in the file
	Message string
	Fix     string // what to do about it, where that is known
}

func (e *Error) Error() string {
	where := fmt.Sprintf("at offset %d", e.Offset)
	if e.Section != "" {
		where = "section " + e.Section + ", offset " + fmt.Sprint(e.Offset)
	}
	s := e.Message + " (" + where + ")"
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

// Module is what the decoder found, and the rewritten form.
type Module struct {
	// Wasm is the instrumented module without custom sections.
	Wasm    []byte `json:"-"`
	Imports []Import
	Exports []Export
	// MemoryMin and MemoryMax are in pages of 64 KiB, MemoryMax after clamping. HasMemory is false for a module without one.
	HasMemory            bool
	MemoryMin, MemoryMax uint32
	HasStart             bool
	CodeBytes            int // of the code section as it came
}

// Import is an imported function. Nothing else may be imported.
type Import struct {
	Module, Name string
	Type         FuncType
}

// Kinds of export.
const (
	KindFunc = iota
	KindTable
	KindMemory
	KindGlobal
)

// Export is an exported name. Type is set for functions. Imported says that it is an import handed on.
type Export struct {
	Name     string
	Kind     byte
	Type     FuncType
	Imported bool
}

// FuncType is a signature in the form "i32,i32->i64".
type FuncType string

// Export finds an export by name; nil if there is none.
func (m *Module) Export(name string) *Export {
	for i := range m.Exports {
		if m.Exports[i].Name == name {
			return &m.Exports[i]
		}
	}
	return nil
}

// Guard bounds integer arguments of an imported function: a call with a larger one returns Errno at once, and the
// host never sees it. Calls through tables and references are bounded in the same way.
type Guard struct {
	Type   FuncType // of the function, with one result i32; another type is not guarded
	Params []int    // which arguments, all of type i32
	Max    uint32
	Errno  int32
	Heavy  bool // a call may take a millisecond: each yields
}

// Config bounds what a module may have.
type Config struct {
	// MaxPages is the largest memory in pages of 64 KiB: a module that starts with more is refused, a larger maximum is clamped.
	MaxPages uint32
	// Guards are put around imported functions, named "module.function".
	Guards map[string]Guard
	// Plain leaves out the metering: the gate alone. Used to measure what metering costs.
	Plain bool
}

// Rewrite judges a module and instruments it. Errors are *Error.
func Rewrite(wasm []byte, cfg Config) (*Module, error) {
	if len(wasm) > maxFile {
		return nil, &Error{Offset: 0, Message: fmt.Sprintf("the file has %d bytes, at most %d are read", len(wasm), maxFile)}
	}
	d := &decoder{reader: reader{data: wasm, end: len(wasm)}, cfg: cfg}
	if err := d.decodeModule(); err != nil {
		return nil, err
	}
	d.found.Wasm = d.out
	return &d.found, nil
}
