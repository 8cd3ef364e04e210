package guest

import (
	"context"
	"math"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/parley-tools/parley/host/wasm/internal/module"
)

// pollUnstable is poll_oneoff of the WASI draft. Files and streams are always ready.
func pollUnstable(ctx context.Context, mod api.Module, stack []uint64) {
	in, out, n, count := uint32(stack[0]), uint32(stack[1]), uint32(stack[2]), uint32(stack[3])
	if n == 0 {
		stack[0] = module.ErrnoInval
		return
	}
	memory := mod.Memory()
	subscriptions, ok := memory.Read(in, n*module.UnstableSubscription) // the guard bounds n
	events, okEvents := memory.Read(out, n*module.UnstableEvent)
	if !ok || !okEvents {
		stack[0] = module.ErrnoFault
		return
	}
	subscriptions = append([]byte{}, subscriptions...) // both ranges may overlap
	k := callOf(ctx).Clock
	waits := make([]time.Duration, n)
	wait := time.Duration(math.MaxInt64)
	for i := range waits {
		if waits[i], ok = k.UnstableWait(subscriptions[i*module.UnstableSubscription:]); !ok {
			stack[0] = module.ErrnoInval
			return
		}
		wait = min(wait, waits[i])
	}
	if wait > 0 {
		k.Sleep(int64(wait))
	}
	var ready uint32
	for i, s := 0, subscriptions; i < int(n); i, s = i+1, s[module.UnstableSubscription:] {
		if waits[i] > wait {
			continue
		}
		event := events[ready*module.UnstableEvent:][:module.UnstableEvent]
		clear(event)
		copy(event, s[:8]) // userdata
		event[10] = s[8]   // type
		ready++
	}
	stack[0] = 0
	if !memory.WriteUint32Le(count, ready) {
		stack[0] = module.ErrnoFault
	}
}
