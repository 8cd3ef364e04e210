package instrument_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
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
	maxWorkBetweenYields = 2 << 20 // bytes of code between two yields; yieldEvery units of 16 bytes are half of it
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
	switch b := g.next(); b % 20 {
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
	case 18, 19:
		g.switchLoop()
	}
}

// switchLoop writes a loop around a switch, as interpreters have it. Its arms are short or long, fall through, leave
// the switch, start the next round or end the loop; before it, a round may start a loop around it again.
func (g *flowGenerator) switchLoop() {
	n := 1 + g.next()%6
	g.open(0x02, label{}, func() {
		g.open(0x03, label{}, func() {
			g.open(0x03, label{}, func() {
				for range n + 1 {
					g.emit(0x02, 0x40)
					g.labels = append(g.labels, label{})
				}
				g.random(7)
				g.emit(0x0e, byte(n+2))
				for range n + 3 {
					g.emit(byte(g.next() % (n + 4))) // the ends of the arms, both loops, and the end
				}
				for arm := n; arm >= 0; arm-- {
					g.labels = g.labels[:len(g.labels)-1]
					g.emit(opEnd)
					g.work(g.next() << (g.next() % 10))
					switch leave := g.next() % 8; leave {
					case 0, 1, 2, 3: // the next round
						g.emit(0x0c, byte(arm))
					case 4:
						g.random(7)
						g.emit(0x0d, byte(arm+g.next()%2))
					case 5:
						if arm > 0 {
							g.emit(0x0c, byte(arm-1))
						}
					case 6:
						g.statements()
					}
				}
				g.random(15)
				g.emit(0x0d, byte(g.next()%3))
			})
		})
	})
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
		bodies = append(bodies, g.out)
	}
	return flowModuleOf(bodies...)
}

// flowModuleOf returns a module of up to flowFunctions functions with two locals each.
func flowModuleOf(code ...[]byte) []byte {
	var bodies [][]byte
	for i := range flowFunctions {
		body := []byte{1, 2, 0x7f}
		if i < len(code) {
			body = append(body, code[i]...)
		}
		body = append(body, opEnd)
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

// checkYields runs a module of flowModule until it has yielded often, and checks the work between yields, of which it
// returns the most.
func checkYields(t *testing.T, wasm []byte) (yields int, most uint64) {
	t.Helper()
	return workBetweenYields(t, wasm, maxWorkBetweenYields, 20)
}

// workBetweenYields is checkYields with a limit of the work, in bytes of code, and of the yields.
func workBetweenYields(t *testing.T, wasm []byte, limit uint64, maxYields int) (yields int, most uint64) {
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
		most = max(most, work-last)
		if work-last > limit {
			t.Errorf("%x\ndoes %d bytes of work between two yields", wasm, work-last)
		}
		last = work
	}
	yield := func(_ context.Context, mod api.Module, _ []uint64) {
		check(mod)
		if yields++; yields > maxYields {
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
	return yields, most
}

// TestYields checks that guests yield before they have done much work, whatever their control flow.
func TestYields(t *testing.T) {
	rounds, ran, yielded, most := 200, 0, 0, uint64(0)
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
		yields, work := checkYields(t, flowModule(data))
		if most = max(most, work); yields > 0 {
			yielded++
		}
	}
	t.Logf("%d modules, %d of them yielded, at most %d bytes of work between two yields", ran, yielded, most)
	if yielded < rounds/20 {
		t.Errorf("only %d of %d modules ran long enough to yield", yielded, ran)
	}
}

// TestYieldsInLoops checks shapes of loops whose rounds the weight of a path might miss.
func TestYieldsInLoops(t *testing.T) {
	code := func(write func(*flowGenerator)) []byte {
		g := &flowGenerator{labels: []label{{}}}
		write(g)
		return g.out
	}
	work := func(n int) []byte { return code(func(g *flowGenerator) { g.work(n) }) }
	random := code(func(g *flowGenerator) { g.random(3) })
	loop, block, end, zero := []byte{0x03, 0x40}, []byte{0x02, 0x40}, []byte{opEnd}, []byte{0x41, 0}
	setTarget := func(n byte) []byte { return []byte{0x41, n, 0x21, localTarget} }
	br := func(label byte) []byte { return []byte{0x0c, label} }
	brIf := func(label byte) []byte { return append(slices.Clone(random), 0x0d, label) }
	table := func(labels ...byte) []byte { return append([]byte{0x0e, byte(len(labels) - 1)}, labels...) }
	dispatch := slices.Concat([]byte{0x20, localTarget}, table(0, 1, 1), end)
	for _, tt := range []struct {
		name string
		body []byte
	}{
		{"a round of nothing", slices.Concat(loop, br(0), end)},
		{"a round of labels", slices.Concat(loop, block, loop, block, end, end, end, br(0), end)},
		{"a table that leads back", slices.Concat(loop, random, table(0, 0, 0), end)},
		{"a table that leads to the begin of two loops", slices.Concat(loop, work(3000), loop, random, table(0, 1, 0, 1),
			end, end)},
		{"the longest arm each round", slices.Concat(loop, block, block, block, zero, table(0, 1, 2), end, work(30_000),
			br(2), end, work(10), br(1), end, br(0), end)},
		{"the longest arm each round, to the end of the switch", slices.Concat(loop, block, block, block, zero,
			table(0, 1, 2), end, work(30_000), br(1), end, work(10), end, br(0), end)},
		{"arms that fall through", slices.Concat(loop, block, block, block, zero, table(0, 1, 2), end, work(900), end,
			work(900), end, work(900), br(0), end)},
		{"many arms of less than a stretch", slices.Concat(loop, slices.Repeat(slices.Concat(block, brIf(0), work(900),
			end), 50), br(0), end)},
		{"arms that skip the charge of what precedes", slices.Concat(loop, slices.Repeat(slices.Concat(work(1000), block,
			br(0), work(100), end), 50), br(0), end)},
		{"an if without an else around long code", slices.Concat(loop, slices.Repeat(slices.Concat([]byte{0x41, 1, 0x04,
			0x40}, work(500), end), 9), br(0), end)},
		{"an else, never the then", slices.Concat(loop, zero, []byte{0x04, 0x40}, work(3), []byte{0x05}, work(900), end,
			br(0), end)},
		{"a then, never the else", slices.Concat(loop, []byte{0x41, 1, 0x04, 0x40}, work(900), []byte{0x05}, work(3), end,
			br(0), end)},
		{"an else behind an arm that returns", slices.Concat(loop, zero, []byte{0x04, 0x40, 0x0f, 0x05}, work(900), end,
			br(0), end)},
		{"an arm that returns, never taken, behind long code", slices.Concat(loop, work(900), zero, []byte{0x04, 0x40, 0x0f},
			end, br(0), end)},
		{"the longer of two ways back", slices.Concat(loop, []byte{0x41, 1, 0x04, 0x40}, work(900), br(1), end, br(0), end)},
		{"a conditional branch back behind a table", slices.Concat(loop, block, random, table(0, 0), end, work(900),
			[]byte{0x41, 1, 0x0d, 0}, br(0), end)},
		{"a table that leads back behind another", slices.Concat(loop, block, random, table(0, 0), end, work(900), zero,
			table(0, 0), end)},
		{"an outer loop from behind an inner table", slices.Concat(loop, work(900), block, loop, random, table(1, 1, 0),
			end, end, br(0), end)},
		{"an inner table once each round of an outer loop", slices.Concat(loop, loop, block, zero, table(0, 0), end,
			work(900), br(1), end, end)},
		{"a dispatch that jumps back to its beginning", slices.Concat(loop, block, block, dispatch, work(900),
			setTarget(0), br(1), end, end)},
		{"a dispatch that jumps back over nothing", slices.Concat(loop, block, block, dispatch, setTarget(0), br(1), end,
			end)},
		{"a dispatch that jumps to and fro", slices.Concat(loop, block, block, dispatch, work(900), setTarget(1), br(1), end,
			work(900), setTarget(0), br(0), end)},
		{"a dispatch that jumps far and back at once", slices.Concat(loop, block, block, dispatch, work(900), setTarget(1),
			br(1), end, setTarget(0), br(0), end)},
		{"a dispatch that jumps forward with a number that another instruction replaces", slices.Concat(loop, block, block,
			dispatch, work(900), setTarget(1), setTarget(0), br(1), end, end)},
		{"a dispatch that jumps forward from where long code ends", slices.Concat(loop, block, block, dispatch, work(900),
			block, brIf(0), work(900), setTarget(1), br(2), end, work(900), setTarget(1), br(1), end, work(900),
			setTarget(0), br(0), end)},
		{"a dispatch in an arm of a dispatch", slices.Concat(loop, block, block, dispatch, loop, block, block, dispatch,
			work(900), setTarget(1), br(1), end, work(900), setTarget(0), br(2), end, end, end)},
		{"two entries to a loop", slices.Concat(random, []byte{0x21, localTarget}, loop, block, block, dispatch, work(9000),
			random, []byte{0x21, localTarget}, br(1), end, work(9000), random, []byte{0x45, 0x21, localTarget}, br(0), end)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if yields, most := checkYields(t, flowModuleOf(tt.body)); yields < 20 {
				t.Errorf("%d yields, at most %d bytes of work between two", yields, most)
			}
		})
	}
}

// TestYieldsOnReturn checks that work that follows a call is not paid for before it: a recursion would hold as much
// of it as its depth allows, and do it without a yield.
func TestYieldsOnReturn(t *testing.T) {
	const depth, perFrame = 20_000, 3 << 10 // bytes of work that a function on the stack may have paid for
	g := &flowGenerator{labels: []label{{}}}
	recurse := func() {
		g.out = nil
		g.emit(0x23, globalRandom, 0x41, 1, 0x6a, 0x24, globalRandom, 0x23, globalRandom)
		g.number(0x41, depth)
		g.emit(0x48, 0x04, 0x40, 0x10, 0, opEnd) // i32.lt_s, if, call, end
	}
	rounds := func(n int) {
		g.emit(0x41, 0, 0x21, localTarget, 0x03, 0x40)
		g.work(100)
		g.emit(0x20, localTarget, 0x41, 1, 0x6a, 0x22, localTarget)
		g.number(0x41, n)
		g.emit(0x48, 0x0d, 0, opEnd) // i32.lt_s, br_if, end
	}
	recurse()
	g.work(20_000)
	straight := g.out
	recurse()
	rounds(200)
	looping := g.out
	recurse()
	after := g.out
	g.out = nil
	rounds(12) // enough for a loop to report
	g.out = append(g.out, after...)
	rounds(100)
	both := g.out
	for name, body := range map[string][]byte{"code": straight, "a loop": looping, "loops before and after": both} {
		t.Run(name, func(t *testing.T) {
			const most = maxWorkBetweenYields + depth*perFrame
			_, work := workBetweenYields(t, flowModuleOf(body), most, 1<<30)
			t.Logf("at most %d bytes of work between two yields", work)
		})
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
