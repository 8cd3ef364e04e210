// Package approve stores approvals in files that processes share. An approval outlives the call that asked for it,
// everybody who may answer can do so, and the first answer counts.
package approve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/durable"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

const (
	// openFor is how long an approval waits for an answer.
	openFor = 24 * time.Hour
	// countsFor is how long an answer counts for the same call, made again: it decides it one time.
	countsFor = 15 * time.Minute
	// keptFor is how long an approval that is no longer open is listed.
	keptFor = 24 * time.Hour

	// maxOpen bounds the open approvals of one caller. maxAll bounds those of all callers, because clients choose the
	// names of callers.
	maxOpen = 20
	maxAll  = 1000

	maxParams = 4 << 10 // bytes of the parameters, before they are cut
	maxReason = 16 << 10
	maxWord   = 300
	maxWhy    = 200
	maxFile   = 1 << 20

	lockWait = 2 * time.Second
)

// Store is the approvals of one host, a file for each. It is safe for concurrent use by any number of processes.
type Store struct {
	Dir string
	Now func() time.Time // nil: time.Now
}

// stored is the file of an approval.
type stored struct {
	approval.Approval
	Subject string     `json:"subject"` // digest of what an answer "session" is valid for
	Request string     `json:"request"` // digest of what any other answer is valid for
	Served  *time.Time `json:"served,omitempty"`
}

// List returns all approvals, the oldest first.
func (s *Store) List() ([]approval.Approval, error) {
	all, err := s.read()
	return lists.Map(all, func(a *stored) approval.Approval { return a.Approval }), err
}

// CountOpen returns how many approvals are open.
func (s *Store) CountOpen() int {
	all, _ := s.read()
	return len(lists.Filter(all, func(a *stored) bool { return a.State == approval.Open }))
}

// Find returns the approval with an id, or the only one whose id begins with a text. The error is not_found.
func (s *Store) Find(id string) (approval.Approval, error) {
	all, err := s.read()
	if err != nil {
		return approval.Approval{}, err
	}
	a, err := find(all, id)
	if err != nil {
		return approval.Approval{}, err
	}
	return a.Approval, nil
}

func find(all []*stored, id string) (found *stored, err error) {
	for _, a := range all {
		switch {
		case a.ID == id:
			return a, nil
		case !strings.HasPrefix(a.ID, id) || id == "":
		case found != nil:
			return nil, host.Errorf(host.NotFound, "%s is the beginning of several approval ids; give more of the id",
				host.Printable(id)).WithSteps(step.Operator(step.OpApprovalsList))
		default:
			found = a
		}
	}
	if found == nil {
		return nil, host.Errorf(host.NotFound, "no approval has the id %s", host.Printable(id)).
			WithSteps(step.Operator(step.OpApprovalsList))
	}
	return found, nil
}

// Answer records the first answer to an open approval, and returns the approval. The error is already_exists if it has
// been answered, denied if it has expired or the answer does not suit it, or not_found.
func (s *Store) Answer(id string, r approval.Reply) (approval.Approval, error) {
	var answered approval.Approval
	err := s.exclusive(func(all []*stored) error {
		a, err := find(all, id)
		if err != nil {
			return err
		}
		switch {
		case a.State == approval.Expired:
			return host.Errorf(host.Denied, "approval %s has expired; the caller has to ask again", a.ID)
		case a.State != approval.Open:
			return host.Errorf(host.AlreadyExists, "approval %s has been answered: %s, by %s", a.ID, a.Answered.Answer,
				a.Answered.By).WithSteps(step.Operator(step.OpApprovalsList))
		}
		if err := Suits(&a.Approval, r); err != nil {
			return err
		}
		a.State = approval.Allowed
		if r.Answer == approval.Deny {
			a.State = approval.Denied
		}
		r.Word, r.Time = manifest.Clip(manifest.CleanLine(r.Word), maxWord), s.now()
		a.Answered = &r
		answered = a.Approval
		return s.write(a)
	})
	return answered, err
}

// Suits returns an error that says why an approval cannot be answered so, or nil.
func Suits(a *approval.Approval, r approval.Reply) error {
	refused := func(code host.Code, why string) error {
		return host.Errorf(code, "approval %s cannot be answered with %s: %s", a.ID, r.Answer, why)
	}
	kind := approval.Kinds[a.Kind]
	switch {
	case !slices.Contains([]approval.Answer{approval.Deny, approval.Once, approval.Session, approval.Always},
		r.Answer):
		return refused(host.InvalidArgs, "expected deny, once, session or always")
	case r.Answer == approval.Deny:
	case r.By == approval.ByMCP && (!kind.ByClient || r.Answer == approval.Always):
		return refused(host.Denied, "an MCP client can only confirm calls, and not with always")
	case r.Answer != approval.Once && !kind.Lasts:
		return refused(host.InvalidArgs, "a "+string(a.Kind)+" can only be allowed once")
	case r.Answer == approval.Session && a.Session == "":
		return refused(host.InvalidArgs, "the call belongs to no session")
	case slices.ContainsFunc(RightsOf(a, r), lacksFolder):
		return refused(host.InvalidArgs, "a folder has to be chosen for "+strings.Join(RightsOf(a, r), ", "))
	}
	return nil
}

// RightsOf returns the rights that a reply allows.
func RightsOf(a *approval.Approval, r approval.Reply) []string {
	if r.Rights != nil {
		return r.Rights
	}
	return grant.Named(a.Rights)
}

// lacksFolder reports whether a right still has PATH for a folder that a person chooses.
func lacksFolder(right string) bool { return strings.Contains(right, ":PATH=") }

// EndSession closes the open approvals of a session, as records name it, and ends what was allowed for its duration.
func (s *Store) EndSession(session string) error {
	if _, err := os.Stat(s.Dir); session == "" || err != nil {
		return nil
	}
	return s.exclusive(func(all []*stored) error {
		for _, a := range all {
			lasts := a.State == approval.Allowed && a.Answered.Answer == approval.Session
			if a.Session != session || a.State != approval.Open && !lasts {
				continue
			}
			a.State, a.Expires = approval.Expired, s.now()
			if err := s.write(a); err != nil {
				return err
			}
		}
		return nil
	})
}

// begin returns the known answer to an approval, and counts it as used. Without an answer the approval is open
// afterwards: a gets its times, or the id and times of an equal approval that is open already. The error is busy if
// the caller has too many open approvals.
func (s *Store) begin(a *approval.Approval) (approval.Reply, error) {
	var known approval.Reply
	err := s.exclusive(func(all []*stored) error {
		if other, reply := s.same(all, a); other != nil {
			a.ID, a.Asked, a.Expires, a.State, known = other.ID, other.Asked, other.Expires, other.State, reply
			if reply.Answer != "" && reply.Answer != approval.Session {
				now := s.now()
				other.Served = &now
				return s.write(other)
			}
			return nil
		}
		open, ofCaller := 0, 0
		for _, other := range all {
			if other.State == approval.Open {
				open++
				if other.Principal == a.Principal {
					ofCaller++
				}
			}
		}
		if ofCaller >= maxOpen || open >= maxAll {
			return host.Errorf(host.Busy, "%s already has %d open approvals, of %d in all; a person has to answer some first",
				manifest.CleanLine(a.Principal), ofCaller, open).WithSteps(step.Operator(step.OpApprovalsList))
		}
		if slices.ContainsFunc(all, func(other *stored) bool { return other.ID == a.ID }) {
			a.ID = approval.NewID() // another call has used the approval with its id
		}
		now := s.now().UTC().Truncate(time.Millisecond)
		a.Asked, a.Expires, a.State = now, now.Add(openFor), approval.Open
		subject := subjectOf(a)
		return s.write(&stored{Approval: bounded(a), Subject: subject, Request: digest(subject, string(a.Exact))})
	})
	return known, err
}

// same returns the stored approval that is equal to a, if it is open or its answer is still valid, with the answer. If
// a names no rights, any rights are equal, and a gets the rights of the stored approval.
func (s *Store) same(all []*stored, a *approval.Approval) (*stored, approval.Reply) {
	for _, other := range slices.Backward(all) {
		if other.Kind != a.Kind || other.Tool != a.Tool {
			continue // to compute the digests of all approvals takes too long
		}
		probe := *a
		if a.Rights == nil {
			probe.Rights = other.Rights
		}
		subject := subjectOf(&probe)
		if other.Subject != subject {
			continue
		}
		if reply, valid := s.validFor(other, digest(subject, string(a.Exact))); valid {
			a.Rights = probe.Rights
			return other, reply
		}
	}
	return nil, approval.Reply{}
}

// validFor returns the answer to an approval, if it has one, and whether the approval is about a request and can still
// decide it.
func (s *Store) validFor(a *stored, request string) (reply approval.Reply, valid bool) {
	switch {
	case a.State == approval.Open:
		return reply, a.Request == request
	case a.State == approval.Expired, a.Answered.Answer == approval.Always: // the policy knows these answers
		return reply, false
	case a.Answered.Answer == approval.Session:
		return *a.Answered, true
	}
	return *a.Answered, a.Request == request && a.Served == nil && s.now().Sub(a.Answered.Time) <= countsFor
}

// subjectOf identifies what an answer for a session is valid for: the kind, the tool in its present build, the caller
// and the session, and the rights.
func subjectOf(a *approval.Approval) string {
	parts := []string{string(a.Kind), a.Principal, a.Key, a.Tool, a.Digest}
	return digest(append(parts, grant.Named(a.Rights)...)...)
}

func digest(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// bounded returns an approval as it is kept: texts are cleaned and long ones are cut.
func bounded(a *approval.Approval) approval.Approval {
	kept := *a
	kept.Reason = manifest.Clip(manifest.Clean(a.Reason), maxReason)
	kept.Rights = lists.Map(a.Rights, func(r grant.Denial) grant.Denial {
		return grant.Denial{Right: manifest.CleanLine(r.Right), Why: manifest.Clip(manifest.CleanLine(r.Why), maxWhy)}
	})
	kept.Params = a.ShortParams(maxParams)
	return kept
}

// exclusive calls do with the approvals while no other process changes them. It removes approvals that were closed
// long ago.
func (s *Store) exclusive(do func([]*stored) error) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return failed(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	lock := protect.NewLock(filepath.Join(s.Dir, "lock"))
	if ok, err := lock.TryLockContext(ctx, 2*time.Millisecond); !ok {
		return failed(err)
	}
	defer lock.Unlock()
	all, err := s.read()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(a *stored) bool {
		ended := a.Expires
		if a.Answered != nil && a.State != approval.Expired {
			ended = a.Answered.Time
		}
		isOver := a.State != approval.Open && s.now().Sub(ended) > keptFor
		return isOver && os.Remove(s.path(a.ID)) == nil
	})
	return do(all)
}

// read returns all approvals, the oldest first. It skips damaged files.
func (s *Store) read() ([]*stored, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !os.IsNotExist(err) {
		return nil, failed(err)
	}
	all := []*stored{}
	for _, e := range entries {
		if id, is := strings.CutSuffix(e.Name(), ".json"); is {
			if a := s.readOne(id); a != nil {
				all = append(all, a)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *stored) int { return a.Asked.Compare(b.Asked) })
	return all, nil
}

// readOne returns the approval with an id as it is now, nil if there is none.
func (s *Store) readOne(id string) *stored {
	data, err := protect.Read(s.path(id), maxFile)
	a := &stored{}
	if err != nil || json.Unmarshal(data, a) != nil || a.ID != id ||
		a.State != approval.Open && a.State != approval.Expired && a.Answered == nil {
		return nil
	}
	if a.State == approval.Open && s.now().After(a.Expires) {
		a.State = approval.Expired
	}
	return a
}

func (s *Store) write(a *stored) error {
	data, err := manifest.Marshal(a)
	if err == nil {
		err = durable.Write(s.path(a.ID), append(data, '\n'))
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

func (s *Store) path(id string) string { return filepath.Join(s.Dir, id+".json") }

func (s *Store) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// failed returns the error of a folder of approvals that cannot be used.
func failed(err error) error {
	return &host.Error{Code: host.Unavailable, Cause: err,
		Message: "approvals cannot be kept: " + manifest.CleanLine(err.Error()) + "; nothing was run"}
}
