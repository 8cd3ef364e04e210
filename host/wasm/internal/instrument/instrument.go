// Package instrument validates modules before the wasm engine sees them, and adds metering to guests. It decodes a
// module strictly, refuses whatever would harm the compiler behind it, and rewrites the code so that it returns
// control to the host regularly.
//
// wazero's own way to stop a guest (WithCloseOnContextDone) leaves native code at every loop header. That slows
// computations by a factor of 9 to 25, and never stops recursion without loops (measured with v1.12.0). Here each
// loop counts in a local variable and each function in a global. When the budget is exhausted, the code calls an
// imported function, which lets Go's scheduler and garbage collector run, and stops the guest after its deadline.
//
// Code is charged by the longest path. While a function is read, due is an upper bound of the work on any path from
// its beginning to this position that has not been charged since. Where blocks end it is the largest due of the
// paths that meet there. Where it exceeds a stretch, all of it is charged and it is zero again. The function itself
// is charged the largest due where it begins. A branch back needs no more: a walk from a loop's beginning back to it
// is charged by how much the due at the branch exceeds that at the beginning. Rounds thus count their longest path
// in the local variable; behind a branch table, which is where interpreters have arms of all lengths, each branch
// back counts its own path instead. Go's compiler turns each function into one loop around a branch table; a jump in
// that form, by a known number, counts as the branch that it is.
//
// Why this bounds the work of a function: let D be the due at the position that it has reached. Each instruction adds
// at least its work to D. Each charge of n units takes at most n from D. A branch forward leads to a position with the
// same D or a larger one, and a branch back to one whose D is smaller by at most what it counts. D is at most what the
// function was charged where it began. So at each position all work since then is charged or counted. What is counted
// and not yet reported when the function returns is covered by the function's charge too: until the first report by
// firstTick units, then by what the first report paid ahead.
//
// What is charged ahead limits the work between two yields, because a recursion can pay at each level and do the
// work on its way back. For a function on the stack that is at most a stretch, its largest callee and the local
// count, which is small where a function calls others. 300,000 levels of code that is written to be slow thus run for
// tens of milliseconds between two yields.
//
// A small function without loops is charged by its callers, and only charges itself for calls of other small
// functions. A leaf function thus costs nothing, and recursion is charged at every level. Short loops are charged
// for several rounds at once.
//
// Guest code cannot reach what is added: every index in the module is checked against the counts that the module
// itself declares.
package instrument

import (
	"cmp"
	"fmt"
)

// Version changes whenever the output, or an image of it, changes for any input. It must be part of the key under
// which output is cached.
const Version = 11

// YieldModule and YieldName name the imported function of type () -> () that instrumented modules call.
const (
	YieldModule = "parley:host"
	YieldName   = "yield"
)

// The budget is counted in units. A unit is a memory access or 16 bytes of code. It usually takes 0.1 to 3 ns, and
// about 150 ns if it misses all caches. Between two yields a guest uses at most yieldEvery units, plus one bulk
// operation, plus what the functions on the stack have paid ahead: some tens of microseconds for ordinary code, and
// 10 ms for code that is written to be slow.
const (
	unitBytes  = 16
	yieldEvery = 1 << 16
	yieldNow   = yieldEvery + 1 // always yields, however much of the budget is left
	tickEvery  = 1 << 10        // units after which a loop reports its local count
	// the same in a function that calls others; such a function may be on the stack many times, each time with work that
	// is charged but not done
	tickEveryAround = 1 << 7
	// units after which it first reports; the function's charge covers them, so short loops never report
	firstTick    = 1 << 6
	maxSmallBody = 128 // bytes of a function without loops that its callers pay for
	// stretch is the due, in bytes of code, above which code is charged.
	stretch = 64 * unitBytes
	// maxCharges bounds the number of such charges in straight code, in functions of more than this number of stretches,
	// because each charge takes compile time.
	maxCharges = 512
	// tableCost is the cost of a branch table, whatever its length.
	tableCost = unitBytes
	// importCharge is the cost of a call of the host, which may take a hundred microseconds.
	importCharge = yieldEvery / 64
	// tableOpCharge is the cost of a table operation, whatever its length. The limit of the table size bounds it.
	tableOpCharge = yieldEvery / 8
)

// Limits of what is accepted. Each prevents something that would crash or stall wazero. Real programs (CPython, Ruby,
// PHP, Go) stay far below them. The first three are defaults; see [Limits].
const (
	maxFile         = 128 << 20
	maxFunctions    = 250_000
	maxTableSize    = 1 << 18 // entries; a larger maximum is lowered, because tables are outside the memory limit
	maxTypes        = 50_000
	maxParams       = 1_000   // and results
	maxAllParams    = 1 << 20 // of all types together, including results
	maxImports      = 10_000
	maxTables       = 8
	maxGlobals      = 100_000
	maxExports      = 250_000
	maxElements     = 100_000
	maxDataSegments = 250_000 // a Go program has 36,776
	maxBody         = 4 << 20
	maxInitData     = 4 << 20 // bytes of a data segment that instructions copy; the copy cannot be interrupted
	maxLocals       = 50_000
	maxAllLocals    = 4 << 20 // of all functions together, because wazero allocates each; see allLocals
	maxNesting      = 10_000
	maxLoopNesting  = 128 // compile time grows polynomially with it: 500 nested loops take 9 s
	maxName         = 10_000
	maxConstant     = 64 // instructions of a constant expression, which an instance evaluates without interruption
)

// Limits are the limits that can be raised for one module. Zero means the default.
type Limits struct {
	FileBytes    int // 128 MiB
	Functions    int // 250,000
	TableEntries int // 262,144, of each table
}

func (l Limits) withDefaults() Limits {
	return Limits{cmp.Or(l.FileBytes, maxFile), cmp.Or(l.Functions, maxFunctions), cmp.Or(l.TableEntries, maxTableSize)}
}

// allLocals limits the locals of all functions together. It grows with the limit of functions.
func (l Limits) allLocals() int { return max(maxAllLocals, maxAllLocals/maxFunctions*l.Functions) }

// Names of the limits that can be raised.
const (
	LimitFile         = "file"
	LimitFunctions    = "functions"
	LimitTableEntries = "table entries"
)

// Error says why a module is refused, and where.
type Error struct {
	Section string // "code", "type" and so on, or "" for the whole file
	Offset  int    // in the file
	Message string
	Fix     string // advice how to fix it, if there is any
	// Limit is the name of the limit that the module exceeds, if raising the limit can help, and Needs the value that
	// the module needs; otherwise "" and 0.
	Limit string
	Needs int
}

func (e *Error) Error() string {
	if e.Fix != "" {
		return e.Rule() + "; " + e.Fix
	}
	return e.Rule()
}

// Rule returns the error text without the advice.
func (e *Error) Rule() string {
	where := fmt.Sprintf("at offset %d", e.Offset)
	if e.Section != "" {
		where = "section " + e.Section + ", offset " + fmt.Sprint(e.Offset)
	}
	return e.Message + " (" + where + ")"
}

// Module describes a decoded module and holds its instrumented form.
type Module struct {
	// Wasm is the instrumented module without custom sections.
	Wasm      []byte `json:"-"`
	Imports   []Import
	Exports   []Export
	HasMemory bool
	// MemoryMin and MemoryMax are in pages of 64 KiB. MemoryMax is at most [Config].MaxPages. Both are 0 if
	// HasMemory is false.
	MemoryMin, MemoryMax uint32
	HasStart             bool
	// Imageable means that the state of an instance consists of its memory and the numbers in its mutable globals, and
	// that an instance does nothing before its first call.
	Imageable bool
	CodeBytes int // size of the original code section
}

// Import is an imported function. Modules that import anything else are refused.
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
	kindTag // refused
)

// KindNames are the names of the kinds.
var KindNames = [...]string{"function", "table", "memory", "global", "tag"}

// Export is an exported name. Type is set for functions only. Imported means that an imported function is exported
// again.
type Export struct {
	Name     string
	Kind     byte
	Type     FuncType
	Imported bool
}

// FuncType is a function type in the form "i32,i32->i64".
type FuncType string

// Export returns the export of that name, or nil if there is none.
func (m *Module) Export(name string) *Export {
	for i := range m.Exports {
		if m.Exports[i].Name == name {
			return &m.Exports[i]
		}
	}
	return nil
}

// Guard bounds integer arguments of an imported function: a call with a larger argument returns Errno at once and
// never reaches the host. Calls through tables and references are bounded, too.
type Guard struct {
	Type   FuncType // of the function, with i32 as the only result; functions of another type are not guarded
	Params []int    // indices of the arguments to check, all of type i32
	Max    uint32
	Errno  int32
	Heavy  bool // a call may take a millisecond, so it also yields
	// Before and After are code around the call, for functions whose layouts differ from the host's. The first locals
	// are the arguments, followed by one local of type i64 and one of type i32. After finds the result on the stack, and
	// must leave it there.
	Before, After []byte
}

// Config configures [Rewrite].
type Config struct {
	// MaxPages is the largest memory in pages of 64 KiB. A module that starts with more is refused. A larger maximum is
	// lowered.
	MaxPages uint32
	// Guards maps imported functions, as "module.function", to their guards.
	Guards map[string]Guard
	// Limits of this module.
	Limits Limits
	// Plain validates without metering, to measure what metering costs.
	Plain bool
}

// Rewrite validates and instruments a module. Errors are *[Error].
func Rewrite(wasm []byte, cfg Config) (*Module, error) {
	cfg.Limits = cfg.Limits.withDefaults()
	if len(wasm) > cfg.Limits.FileBytes {
		return nil, &Error{Limit: LimitFile, Needs: len(wasm), Message: fmt.Sprintf(
			"the file has %d bytes, at most %d are accepted", len(wasm), cfg.Limits.FileBytes)}
	}
	d := &decoder{reader: reader{data: wasm, end: len(wasm)}, cfg: cfg}
	if err := d.decodeModule(); err != nil {
		return nil, err
	}
	d.found.Wasm = d.out
	return &d.found, nil
}
