package fleet

import (
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-tools/parley/manifest"
)

// offer asks a worker for a slot.
type offer struct {
	Wire   int    `json:"wire"` // version of the frames
	Call   string `json:"call"` // id that nobody can guess
	Digest string `json:"digest"`
	// Engine is the digest of the engine of a plugin of kind script.
	Engine  string        `json:"engine,omitempty"`
	Isolate string        `json:"isolate,omitempty"` // as in host.Job
	Left    time.Duration `json:"left"`              // until the deadline, in nanoseconds: clocks differ
}

// Verdicts on an offer.
const (
	accepted = "accepted"
	busy     = "busy"
	unfit    = "unfit" // for this call
)

// verdict is the reply to an offer.
type verdict struct {
	Status
	Verdict string `json:"verdict"`
	Why     string `json:"why,omitempty"` // the worker is unfit
}

// Status is how a worker is. It announces it when it starts, when it ends, when it has a slot again after it was busy,
// and when it is asked.
type Status struct {
	Worker   string `json:"worker"`
	Instance string `json:"instance"` // of several processes with the name of one worker
	Pool     string `json:"pool"`
	// Turn counts what the worker says, so that what it said first is not taken for what is new.
	Turn     uint64 `json:"turn"`
	Slots    int    `json:"slots"`
	Free     int    `json:"free"`
	Draining bool   `json:"draining,omitempty"` // it takes no more calls
	Lacks    string `json:"lacks,omitempty"`    // what its kernel lacks to isolate a plugin
	Host     string `json:"host"`               // its version
	Wire     int    `json:"wire"`
}

// address is where messages reach a worker.
func (s *Status) address() string { return s.Worker + "." + s.Instance }

// encode encodes a message. It is plain data.
func encode(v any) []byte {
	data, _ := manifest.Marshal(v)
	return data
}

// decode decodes a message of somebody who is not trusted.
func decode[T any](m *nats.Msg) (v T, ok bool) {
	err := json.Unmarshal(m.Data, &v)
	return v, err == nil
}
