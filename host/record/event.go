package record

import (
	"math"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
)

// MaxName is the maximum size of a name or an id in a record, in bytes. Longer ones are cut, and the cut is visible.
const MaxName = 256

// maxSubject is the maximum size of the subject of a call, in bytes.
const maxSubject = 200

// Name returns a name or an id as records have it: clean, on one line, and cut.
func Name(s string) string { return Text(s, MaxName) }

// Text returns a text clean, on one line, and cut to a number of bytes.
func Text(s string, limit int) string { return manifest.Clip(manifest.CleanLine(s), limit) }

// address matches an address in a subject. Its groups are what records keep: neither credentials nor a query, a
// fragment or data, which may be secrets and are parameters of the document.
var address = lazy.Pattern(`(?i)\b([a-z][a-z0-9+.-]*://)(?:[^/\s"?#]*@)?([^\s"?#]*)[^\s"]*|\b(data:)[^\s"]*`)

// Named returns an event with its names and ids in the form of [Name], and its subject in the form of [Text], without
// what follows the path of an address.
func Named(e host.Event) host.Event {
	for _, s := range []*string{
		&e.CallID, &e.Within, &e.Session, &e.Caller, &e.Peer, &e.Token, &e.Tool, &e.Digest, &e.RetryOf, &e.By, &e.Approval,
	} {
		*s = Name(*s)
	}
	if e.Subject != "" {
		e.Subject = Text(address().ReplaceAllString(e.Subject, "$1$2$3"), maxSubject)
	}
	return e
}

// UsageOf returns what the guest of a call used.
func UsageOf(e host.Event) host.Usage {
	return host.Usage{CPUMS: Milliseconds(e.CPU), PeakBytes: e.PeakBytes}
}

// Milliseconds returns a duration to the microsecond.
func Milliseconds(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }
