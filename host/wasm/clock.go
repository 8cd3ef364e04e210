package wasm

import (
	cryptorand "crypto/rand"
	"io"
	"math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/parley-tools/parley/host"
)

// clock is the time and the randomness that a guest finds.
type clock struct {
	control *control
	request *host.Request
	started time.Time // where the guest's monotonic clock is 0
	skipped int64     // of the stream of random bytes, before the first that the guest reads
	frozen  *frozen   // nil if the time goes on
}

// frozen is the time while an image is taken of an instance: the same each time.
type frozen struct {
	clock  time.Duration // what the monotonic clock shows
	wall   bool          // the wall clock was read
	random int64         // bytes that were read from the stream of random bytes
}

// maxFrozenRandom bounds the random bytes that every call has to skip that begins with an image.
const maxFrozenRandom = 4 << 10

// begin starts the clock, where another instance has left its clock and its stream of random bytes.
func (k *clock) begin(shown time.Duration, random int64) {
	k.started, k.skipped = time.Now().Add(-shown), random
}

// configure configures a guest's clocks and its random source.
func (k *clock) configure(config wazero.ModuleConfig) wazero.ModuleConfig {
	return config.
		WithWalltime(k.wall, sys.ClockResolution(time.Microsecond)).
		WithNanotime(k.monotonic, 1).
		WithNanosleep(k.sleep).
		WithOsyield(k.control.checkpoint).
		WithRandSource(k.random())
}

// monotonic returns the nanoseconds since the start. A frozen clock advances whenever it is read, so that no guest
// waits forever.
func (k *clock) monotonic() int64 {
	if k.frozen != nil {
		k.frozen.clock += 100 * time.Millisecond
		return int64(k.frozen.clock)
	}
	return int64(time.Since(k.started))
}

// wall returns the time if it is granted, else always the same.
func (k *clock) wall() (seconds int64, nanoseconds int32) {
	if k.frozen != nil {
		k.frozen.wall = true
	}
	if !k.request.Grant.Clock {
		return 0, 0
	}
	now := time.Now()
	return now.Unix(), int32(now.Nanosecond())
}

// sleep ends early when the call ends.
func (k *clock) sleep(ns int64) {
	k.control.wait(func(ended <-chan struct{}) {
		timer := time.NewTimer(time.Duration(max(ns, 0)))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ended:
		}
	})
	k.control.checkpoint()
}

// random returns real randomness if granted, else the same stream in every call. It is read in chunks, with a
// checkpoint before each.
func (k *clock) random() io.Reader {
	source := cryptorand.Reader
	if !k.request.Grant.Random {
		source = rand.NewChaCha8([32]byte([]byte("parley: no randomness is granted")))
		_, _ = io.CopyN(io.Discard, source, k.skipped)
	}
	return readerFunc(func(p []byte) (int, error) {
		k.control.checkpoint()
		n, err := source.Read(p[:min(len(p), chunkBytes)])
		if k.frozen != nil {
			if k.frozen.random += int64(n); k.frozen.random > maxFrozenRandom {
				panic(guestHalt{host.Errorf(host.LimitExceeded, "it reads more than %d random bytes", maxFrozenRandom)})
			}
		}
		return n, err
	})
}

// chunkBytes is how many bytes a host function processes between checkpoints.
const chunkBytes = 1 << 20

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
