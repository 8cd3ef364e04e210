package world

import (
	cryptorand "crypto/rand"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/parley-tools/parley/host"
)

// Clock is the time and the randomness that a guest sees.
type Clock struct {
	Control *Control
	Request *host.Request
	Started time.Time // when the guest's monotonic clock was 0
	skipped int64     // number of random bytes in the stream before the first one that the guest reads
	Frozen  *Frozen   // nil if the time is running
}

// Frozen is the time while an image of an instance is taken. It is the same each time.
type Frozen struct {
	Clock  time.Duration // what the monotonic clock shows
	Wall   bool          // the wall clock was read
	Random int64         // number of bytes read from the stream of random bytes
}

// maxFrozenRandom bounds the random bytes that every call that begins with an image has to skip.
const maxFrozenRandom = 4 << 10

// Begin starts the clock at the point where another instance left its clock and its stream of random bytes.
func (k *Clock) Begin(shown time.Duration, random int64) {
	k.Started, k.skipped = time.Now().Add(-shown), random
}

// Configure configures a guest's clocks and its random source.
func (k *Clock) Configure(config wazero.ModuleConfig) wazero.ModuleConfig {
	return config.
		WithWalltime(k.wall, sys.ClockResolution(time.Microsecond)).
		WithNanotime(k.monotonic, 1).
		WithNanosleep(k.Sleep).
		WithOsyield(k.Control.Checkpoint).
		WithRandSource(k.random())
}

// monotonic returns the nanoseconds since the start. A frozen clock advances whenever it is read, so that no guest
// waits forever.
func (k *Clock) monotonic() int64 {
	if k.Frozen != nil {
		k.Frozen.Clock += 100 * time.Millisecond
		return int64(k.Frozen.Clock)
	}
	return int64(time.Since(k.Started))
}

// wall returns the time if it is granted, and otherwise always the same time.
func (k *Clock) wall() (seconds int64, nanoseconds int32) {
	if k.Frozen != nil {
		k.Frozen.Wall = true
	}
	if !k.Request.Grant.Clock {
		return 0, 0
	}
	now := time.Now()
	return now.Unix(), int32(now.Nanosecond())
}

// Sleep sleeps for ns nanoseconds, or until the call ends.
func (k *Clock) Sleep(ns int64) {
	k.Control.Wait(func(ended <-chan struct{}) {
		timer := time.NewTimer(time.Duration(max(ns, 0)))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ended:
		}
	})
	k.Control.Checkpoint()
}

// random returns real randomness if it is granted, and otherwise the same stream in every call. It is read in chunks,
// with a checkpoint before each.
func (k *Clock) random() io.Reader {
	source := cryptorand.Reader
	if !k.Request.Grant.Random {
		source = rand.NewChaCha8([32]byte([]byte("parley: no randomness is granted")))
		_, _ = io.CopyN(io.Discard, source, k.skipped)
	}
	return readerFunc(func(p []byte) (int, error) {
		k.Control.Checkpoint()
		n, err := source.Read(p[:min(len(p), chunkBytes)])
		if k.Frozen != nil {
			if k.Frozen.Random += int64(n); k.Frozen.Random > maxFrozenRandom {
				panic(GuestHalt{host.Errorf(host.LimitExceeded, "it reads more than %d random bytes", maxFrozenRandom)})
			}
		}
		return n, err
	})
}

// chunkBytes is how many bytes a host function processes between checkpoints.
const chunkBytes = 1 << 20

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// UnstableWait returns how long to wait for a subscription, and false if it is invalid.
func (k *Clock) UnstableWait(s []byte) (time.Duration, bool) {
	const clock, read, write, realtime, absolute = 0, 1, 2, 0, 1
	switch s[8] {
	case clock:
	case read, write:
		return 0, true
	default:
		return 0, false
	}
	until := binary.LittleEndian.Uint64(s[32:])
	wait := time.Duration(min(until, math.MaxInt64))
	if binary.LittleEndian.Uint16(s[48:])&absolute == 0 {
		return wait, true
	}
	now := time.Since(k.Started)
	if binary.LittleEndian.Uint32(s[24:]) == realtime {
		seconds, nanoseconds := k.wall()
		now = time.Duration(seconds)*time.Second + time.Duration(nanoseconds)
	}
	return max(wait-now, 0), true
}
