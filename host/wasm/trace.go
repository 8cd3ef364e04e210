package wasm

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/manifest"
)

// Bounds of a trace: frames, as many as the engine has, and lines of each text.
const (
	traceFrames = 30
	traceLines  = 20
)

// frameLine is a frame in the engine's error: a function of the guest by its index, or one of the host by its name.
var frameLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\t(?:\.\$(\d+)|([a-z0-9_:]+\.[a-z0-9_]+))\(`)
})

// trace returns where the guest was when it ended with err, which may be nil, and what it wrote last. It returns nil if
// the caller did not ask.
func (c *call) trace(err error) *host.Trace {
	if !c.request.Wants.Trace {
		return nil
	}
	t := &host.Trace{Log: c.log.last}
	if c.streams.stderr != nil {
		t.Stderr, _ = c.streams.stderr.lastLines(traceLines)
	}
	if err == nil {
		return t
	}
	for line := range strings.Lines(err.Error()) {
		match := frameLine().FindStringSubmatch(line)
		switch {
		case match == nil || len(t.Frames) == traceFrames:
		case match[2] != "":
			if !strings.HasPrefix(match[2], instrument.YieldModule) {
				t.Frames = append(t.Frames, host.Frame{Function: -1, Name: "host function " + match[2]})
			}
		default:
			if n, err := strconv.Atoi(match[1]); err == nil {
				if n, ok := c.plugin.module.OriginalIndex(n); ok {
					t.Frames = append(t.Frames, host.Frame{Function: n})
				}
			}
		}
	}
	return t
}

// nameFrames adds the names of functions, which compiled code does not have, to a trace.
func (p *Provider) nameFrames(t *host.Trace) {
	on, err := p.runsOn()
	if err != nil {
		return
	}
	wasm, err := on.loadParts().src.Wasm()
	if err != nil {
		return
	}
	wanted := map[int]string{}
	for _, f := range t.Frames {
		wanted[f.Function] = ""
	}
	t.Unnamed = !instrument.FunctionNames(wasm, wanted)
	for i := range t.Frames {
		if f := &t.Frames[i]; f.Function >= 0 {
			f.Name = manifest.Clip(manifest.CleanLine(readableName(wanted[f.Function])), 200)
		}
	}
}

// readableName returns the path in a mangled name of Rust, such as plugin::list for
// _ZN6plugin4list17h0123456789abcdefE, and any other name as it is.
func readableName(name string) string {
	rest, mangled := strings.CutPrefix(name, "_ZN")
	var path []string
	for mangled && rest != "E" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n > len(rest)-digits {
			return name
		}
		path, rest = append(path, rest[digits:digits+n]), rest[digits+n:]
	}
	if len(path) < 2 {
		return name
	}
	if last := path[len(path)-1]; len(last) == 17 && last[0] == 'h' {
		path = path[:len(path)-1] // a hash
	}
	return strings.Join(path, "::")
}
