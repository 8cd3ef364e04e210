package guest

import (
	"strconv"
	"strings"

	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/internal/lazy"
)

// frameLine matches a frame in the engine's error: a function of the guest by its index, or a function of the host by
// its name.
var frameLine = lazy.Pattern(`^\t(?:\.\$(\d+)|([a-z0-9_:]+\.[a-z0-9_]+))\(`)

// trace returns where the guest was when it ended with err, which may be nil, and its last output. It returns nil if
// the caller did not ask for a trace.
func (c *Call) trace(err error) *job.Trace {
	if !c.Request.Wants.Trace {
		return nil
	}
	t := &job.Trace{Log: c.log.Last}
	if c.Streams.Stderr != nil {
		t.Stderr, _ = c.Streams.Stderr.LastLines(world.TraceLines)
	}
	if err == nil {
		return t
	}
	for line := range strings.Lines(err.Error()) {
		match := frameLine().FindStringSubmatch(line)
		switch {
		case match == nil || len(t.Frames) == world.TraceFrames:
		case match[2] != "":
			if !strings.HasPrefix(match[2], instrument.YieldModule) {
				t.Frames = append(t.Frames, job.Frame{Function: -1, Name: "host function " + match[2]})
			}
		default:
			if n, err := strconv.Atoi(match[1]); err == nil {
				if n, ok := c.plugin.Module.OriginalIndex(n); ok {
					t.Frames = append(t.Frames, job.Frame{Function: n})
				}
			}
		}
	}
	return t
}
