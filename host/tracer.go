package host

import (
	"context"

	"github.com/parley-tools/parley/host/caller"
	"slices"
)

// Tracer observes operations: calls, searches, descriptions, and the requests that go to the network. It must not
// block, and is used by many operations at once.
type Tracer interface {
	// Begin is called before an operation. An operation that begins with the returned context is a child of this one.
	// End is called once, with the operation as it ended.
	Begin(ctx context.Context, o Operation) (within context.Context, end func(Operation))
}

// Operation is what a [Tracer] learns. It has nothing that a caller or a plugin made up: no parameter, result, query,
// path, message, or name that the catalog does not have.
type Operation struct {
	Op            string // as [Event].Op, or "request"
	CallID        string
	Caller        string
	caller.Origin // origin of the caller
	// Tool is the qualified name of the tool. It is "" before the end, and if there is no such tool.
	Tool   string
	Method string // set for a request
	// Server is where a request goes, as "https://api.github.com": the origin of the grant, with "*" for a part of its
	// host that the grant leaves open.
	Server string
	Status int  // status of the response to a request; 0 if there was none
	Code   Code // one of [Outcomes]; "" before the end; [ToolFailed] for a plugin's own code
}

// Ended returns the operation as it ended with an error, which may be nil.
func (o Operation) Ended(err error) Operation {
	if o.Code = OK; err == nil {
		return o
	}
	e := AsError(err)
	o.Code = ToolFailed
	if e.Exit == 0 && slices.ContainsFunc(outcomes[:], func(known Outcome) bool { return known.Code == e.Code }) {
		o.Code = e.Code
	}
	return o
}
