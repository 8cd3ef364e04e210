package instrument_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/parley-tools/parley/host/wasm/internal/instrument"
)

// flowGenerator turns bytes into functions of only branches and work. Work is counted in a global, so that it can
// be compared with the yields.
type flowGenerator struct {
	data           []byte
	out            []byte
	labels         []label
	statementsLeft int // statements that may still be written
}

type label struct {
	param    bool // a branch to it has an i32
	dispatch int  // for a loop in the form of Go's compiler, the number of its targets
}

const (
	flowFunctions        = 5
	globalRandom         = 0
	globalWork           = 1
	localTarget          = 0
	maxWorkBetweenYields = 4 << 20 // bytes of code between two yields; yieldEvery units of 16 bytes are a quarter of it
)

func (g *flowGenerator) next() int {
	if len(g.data) == 0 {
		return 0
	}
	b := g.data[0]
	g.data = g.data[1:]
	return int(b)
}

func (g *flowGenerator) emit(b ...byte) { g.out = append(g.out, b...) }

func (g *flowGenerator) number(op byte, v int) { g.out = append(append(g.out, op), sleb(v)...) }

func sleb(v int) []byte {
	var out []byte
	for v >= 0x40 || v < -0x40 {
		out = append(out, byte(v)&0x7f|0x80)
		v >>= 7
	}
	return append(out, byte(v)&0x7f)
}

// random leaves a number from 0 to mask on the stack.
func (g *flowGenerator) random(mask int) {
	g.emit(0x23, globalRandom)
	g.number(0x41, 1103515245)
	g.emit(0x6c)
	g.number(0x41, 12345)
	g.emit(0x6a, 0x24, globalRandom, 0x23, globalRandom, 0x41, 16, 0x76)
	g.number(0x41, mask)
	g.emit(0x71)
}

// work writes n bytes of code without effect.
func (g *flowGenerator) work(n int) {
	g.emit(0x23, globalWork)
	g.number(0x42, n)
	g.emit(0x7c, 0x24, globalWork)
	for range n {
		g.emit(0x01)
	}
}

func (g *flowGenerator) open(op byte, l label, body func()) {
	if l.param {
		g.emit(0x41, 0, op, 1, 0x1a) // i32.const, type 1, drop
	} else {
		g.emit(op, 0x40)
	}
	g.labels = append(g.labels, l)
	body()
	g.labels = g.labels[:len(g.labels)-1]
	g.emit(opEnd)
}

const opEnd = 0x0b

func (g *flowGenerator) statements() {
	for n := g.next() % 6; n >= 0 && g.statementsLeft > 0; n-- {
		g.statementsLeft--
		g.statement()
	}
}

// target chooses a label and writes the value that a branch to it takes. With tables, it only chooses labels
// without values.
func (g *flowGenerator) target(tables bool) int {
	n := g.next() % len(g.labels)
	for i := range g.labels {
		if d := (n + i) % len(g.labels); !tables || !g.labels[len(g.labels)-1-d].param {
			return d
		}
	}
	return 0
}

func (g *flowGenerator) statement() {
	switch b := g.next(); b % 18 {
	case 0, 1:
		g.work(g.next())
	case 2:
		g.work(g.next() * 128)
	case 3:
		g.open(0x02, label{}, g.statements)
	case 4, 5:
		g.open(0x03, label{param: g.next()%4 == 0}, g.statements)
	case 6:
		g.random(1)
		g.open(0x04, label{}, func() {
			g.statements()
			g.emit(0x05)
			g.statements()
		})
	case 7, 8: // br_if, with its values below the condition
		d := g.target(false)
		param := g.labels[len(g.labels)-1-d].param
		if param {
			g.emit(0x41, 0)
		}
		g.random(g.next() % 4)
		g.emit(0x0d, byte(d))
		if param {
			g.emit(0x1a)
		}
	case 9:
		d := g.target(false)
		if g.labels[len(g.labels)-1-d].param {
			g.emit(0x41, 0)
		}
		g.emit(0x0c, byte(d))
	case 10:
		n := g.next() % 5
		if g.labels[len(g.labels)-1-g.target(true)].param {
			return
		}
		g.random(7)
		g.emit(0x0e, byte(n))
		for range n + 1 {
			g.emit(byte(g.target(true)))
		}
	case 11:
		g.emit(0x10, byte(g.next()%flowFunctions))
	case 12:
		g.random(7)
		g.emit(0x11, 0, 0)
	case 13:
		g.dispatch()
	case 14:
		g.jump()
	case 15:
		g.number(0x41, g.next()%8)
		g.emit(0x21, localTarget)
	case 16:
		g.shortLoop(func() { g.work(g.next() % 24) })
	case 17:
		g.shortLoop(func() { g.emit(0x10, byte(g.next()%flowFunctions)) })
	}
}

// shortLoop writes a loop of few instructions that ends with a branch back, conditional or not.
func (g *flowGenerator) shortLoop(body func()) {
	g.open(0x02, label{}, func() {
		g.open(0x03, label{}, func() {
			for range g.next() % 3 {
				body()
				if n := g.next(); n%2 == 0 {
					g.random(n % 16)
					g.emit(0x45, 0x0d, byte(n/16%2)) // i32.eqz, br_if
				}
			}
			if g.next()%2 == 0 {
				g.random(15)
				g.emit(0x45, 0x0d, 1, 0x0c, 0) // i32.eqz, br_if 1, br 0
			} else {
				g.random(15)
				g.emit(0x0d, 0)
			}
		})
	})
}

// dispatch writes the form in which Go compiles a function: a loop, nested blocks, a br_table, and code after each
// block.
func (g *flowGenerator) dispatch() {
	n := 1 + g.next()%6
	g.open(0x03, label{dispatch: n}, func() {
		for range n {
			g.emit(0x02, 0x40)
			g.labels = append(g.labels, label{})
		}
		g.emit(0x20, localTarget, 0x0e, byte(n))
		for range n + 1 {
			g.emit(byte(g.next() % (n + 1)))
		}
		for range n {
			g.labels = g.labels[:len(g.labels)-1]
			g.emit(opEnd)
			g.work(g.next() * 64)
			switch g.next() % 8 {
			case 0, 1:
				g.statements()
			case 2:
				g.open(0x02, label{}, func() { g.work(g.next() * 64); g.jump() })
			}
			if g.next()%4 > 0 {
				g.jump()
			}
		}
	})
}

// jump branches to a target of the nearest dispatch loop, with the instructions that Go uses or with others.
func (g *flowGenerator) jump() {
	for d := range g.labels {
		l := g.labels[len(g.labels)-1-d]
		if l.dispatch == 0 {
			continue
		}
		if g.next()%8 == 0 {
			g.random(7)
		} else {
			g.number(0x41, g.next()%(l.dispatch+2)-1)
		}
		if local := g.next() % 8; local == 1 {
			g.emit(0x21, 1)
		} else {
			g.emit(0x21, localTarget)
		}
		if g.next()%8 == 0 {
			g.random(1)
			g.emit(0x0d, byte(d))
		} else {
			g.emit(0x0c, byte(d))
		}
		return
	}
}

// flowModule returns a module whose function "f" may call itself and the others, directly and through a table.
func flowModule(data []byte) []byte {
	var bodies [][]byte
	for i := range flowFunctions {
		g := &flowGenerator{statementsLeft: 60, labels: []label{{}}}
		g.data = data[i*len(data)/flowFunctions : (i+1)*len(data)/flowFunctions]
		if g.next()%2 == 0 { // a dispatch loop around everything, as Go's compiler writes it
			g.dispatch()
		}
		for len(g.data) > 0 && g.statementsLeft > 0 {
			g.statementsLeft--
			g.statement()
		}
		body := append(append([]byte{1, 2, 0x7f}, g.out...), opEnd)
		bodies = append(bodies, append(leb(len(body)), body...))
	}
	functions, elements := []byte{3, flowFunctions}, []byte{9, 1, 0, 0x41, 0, opEnd, 8}
	for i := range 8 {
		elements = append(elements, byte(i%flowFunctions))
		if i < flowFunctions {
			functions = append(functions, 0)
		}
	}
	return module([]byte{1, 2, 0x60, 0, 0, 0x60, 1, 0x7f, 0}, functions, []byte{4, 1, 0x70, 0, 8},
		[]byte{6, 2, 0x7f, 1, 0x41, 1, opEnd, 0x7e, 1, 0x42, 0, opEnd},
		[]byte("\x07\x02\x01f\x00\x00\x01w\x03\x01"), elements, list(10, bodies))
}

var errEnough = errors.New("enough")

// checkYields runs a module of flowModule until it has yielded often, and checks the work between yields.
func checkYields(t *testing.T, wasm []byte) (yields int) {
	t.Helper()
	m, err := instrument.Rewrite(wasm, instrument.Config{MaxPages: 1})
	if err != nil {
		t.Fatalf("%x: %v", wasm, err)
	}
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	last := uint64(0)
	check := func(mod api.Module) {
		work := mod.ExportedGlobal("w").Get()
		if work-last > maxWorkBetweenYields {
			t.Errorf("%x\ndoes %d bytes of work between two yields", wasm, work-last)
		}
		last = work
	}
	yield := func(_ context.Context, mod api.Module, _ []uint64) {
		check(mod)
		if yields++; yields > 20 {
			panic(errEnough)
		}
	}
	if _, err := r.NewHostModuleBuilder(instrument.YieldModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(yield), nil, nil).Export(instrument.YieldName).Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	mod, err := r.Instantiate(ctx, m.Wasm)
	if err != nil {
		t.Fatalf("%x: %v", wasm, err)
	}
	// Code that never yields cannot be stopped, so the process exits, unless a garbage collection waits for that
	// code.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	watchdog := time.AfterFunc(20*time.Second, func() {
		fmt.Fprintf(os.Stderr, "%x\nnever yields\n", wasm)
		os.Exit(3)
	})
	_, _ = mod.ExportedFunction("f").Call(ctx)
	watchdog.Stop()
	check(mod)
	return yields
}

// TestYields checks that guests yield before they have done much work, whatever their control flow.
func TestYields(t *testing.T) {
	rounds, ran, yielded := 300, 0, 0
	if hammer {
		rounds = 10_000
	}
	for seed := range rounds {
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		data := make([]byte, 20+random.IntN(400))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		ran++
		if checkYields(t, flowModule(data)) > 0 {
			yielded++
		}
	}
	t.Logf("%d modules, %d of them yielded", ran, yielded)
	if yielded < rounds/20 {
		t.Errorf("only %d of %d modules ran long enough to yield", yielded, ran)
	}
}

func FuzzYields(f *testing.F) {
	for seed := range 50 {
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		data := make([]byte, 200)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2000 {
			checkYields(t, flowModule(data))
		}
	})
}
