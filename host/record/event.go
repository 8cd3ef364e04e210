package record

import (
	"math"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// MaxName is how many bytes a name or an id in a record has at most. Longer ones are cut, and the cut is visible.
const MaxName = 256

// maxSubject is how many bytes the subject of a call has at most.
const maxSubject = 200

// Name returns a name or an id as records have it: clean, on one line, and cut.
func Name(s string) string { return Text(s, MaxName) }

// Text returns a text clean, on one line, and cut to a number of bytes.
func Text(s string, limit int) string { return manifest.Clip(manifest.CleanLine(s), limit) }

// Named returns an event whose names and ids have the form of [Name], and whose subject has that of [Text].
func Named(e host.Event) host.Event {
	for _, s := range []*string{
		&e.CallID, &e.Within, &e.Session, &e.Caller, &e.Peer, &e.Token, &e.Tool, &e.Digest, &e.RetryOf, &e.By, &e.Question,
	} {
		*s = Name(*s)
	}
	e.Subject = Text(e.Subject, maxSubject)
	return e
}

// Milliseconds returns a duration to the microsecond.
func Milliseconds(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }
