package audit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Report is what Verify found.
type Report struct {
	Files   int       `json:"files"`
	Records int       `json:"records"`
	First   time.Time `json:"first,omitzero"` // the earliest time of a record, and the latest
	Last    time.Time `json:"last,omitzero"`
	Head    Head      `json:"head"`
	Anchor  *Head     `json:"anchor,omitempty"`  // the record whose head was given, if it is still part of the log
	Dropped uint64    `json:"dropped,omitempty"` // records up to this one were removed by rotations, which say so
	Repairs int       `json:"repairs,omitempty"` // half-written records that were cut off
	Torn    int64     `json:"torn,omitempty"`    // bytes of one at the end
	Broken  *Fault    `json:"broken,omitempty"`  // nil: the chain is whole
}

// What a Fault can be.
const (
	Changed   = "changed"   // the record is not what was written
	Inserted  = "inserted"  // it was not written by the log, or stands here a second time
	Removed   = "removed"   // there were others before it
	Reordered = "reordered" // it was written, but elsewhere
	Torn      = "torn"      // a part of it is not there
	Damaged   = "damaged"   // it is no record
	Cut       = "cut"       // after it, there were others: the anchored head is not in the log any more
	Unproved  = "unproved"  // rotation dropped the anchored record
)

// Fault is the first thing that is wrong with a log.
type Fault struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Kind     string `json:"kind"`
	Message  string `json:"message"`
	Expected string `json:"expected"`
	Provided string `json:"provided"`
}

func (f *Fault) String() string {
	return fmt.Sprintf("%s:%d %s (expected %s, got %s)", f.File, f.Line, f.Message, f.Expected, f.Provided)
}

// Verify holds each record of the log against the one before it. The chain proves that nothing within it was changed; that nothing was cut
// off its end, or all of it written anew, only an anchor proves: a head that was kept elsewhere, as Head.String gives it, "SEQ:sha256:.." or
// "sha256:.." alone. Without one, give "". The error is that of an anchor of another form, or of files that cannot be read.
func (l *Log) Verify(anchor string) (Report, error) {
	want, err := parseAnchor(anchor)
	if err != nil {
		return Report{}, err
	}
	parts, err := l.openFiles()
	defer closeFiles(parts)
	if err != nil {
		return Report{}, err
	}
	w := walk{report: Report{Files: len(parts)}, anchor: want}
	for e, err := range entries(parts) {
		if err != nil {
			return w.report, err
		}
		w.step(e)
	}
	w.finish()
	return w.report, nil
}

// parseAnchor takes what people have at hand: the line that head prints, its hash alone, or both with a colon.
func parseAnchor(s string) (h Head, err error) {
	if s == "" {
		return Head{}, nil
	}
	words := strings.Fields(s)
	if len(words) > 0 {
		h.Hash = words[0]
	}
	seq := ""
	if len(words) > 1 {
		seq = words[1]
	} else if before, after, ok := strings.Cut(h.Hash, ":"); ok && before+":" != hashPrefix {
		seq, h.Hash = before, after
	}
	if seq != "" {
		h.Seq, err = strconv.ParseUint(seq, 10, 64)
	}
	if err != nil || seq == "0" || !isHash(h.Hash) {
		return Head{}, host.Errorf(host.InvalidArgs, "%q is no head of an audit log; expected \"sha256:\" and 64 digits, or what parley audit head printed",
			manifest.CleanLine(s)).WithNext("parley audit head")
	}
	return h, nil
}

// walk goes over the lines of a log once. After the first line that does not follow from the one before, it only gathers what tells why.
type walk struct {
	report  Report
	anchor  Head
	instead string // the hash of the record that has the anchor's number

	first    *entry // line of the log
	before   *entry // the last that was right
	dropped  []*Dropped
	wrong    *entry // the first that was not
	after    *entry // the next one
	expected bool   // the number that should have stood there came later
	home     bool   // so did the record that the wrong one was written after
	one      bool   // there is a record number 1
}

func (w *walk) step(e entry) {
	if e.tail {
		w.report.Torn = e.size
		return
	}
	if e.fault == nil {
		w.count(e)
	}
	if w.first == nil {
		w.first = &e
	}
	switch {
	case w.wrong != nil:
		if w.after == nil {
			w.after = &e
		}
		w.expected = w.expected || w.before != nil && e.record.Seq == w.before.record.Seq+1
		w.home = w.home || e.hash == w.wrong.record.Prev
	case e.fault != nil, w.before != nil && (e.record.Prev != w.before.hash || e.record.Seq != w.before.record.Seq+1):
		w.wrong = &e
	default:
		w.before = &e
	}
}

func (w *walk) count(e entry) {
	r := &w.report
	r.Records++
	if r.First.IsZero() || e.record.Time.Before(r.First) {
		r.First = e.record.Time
	}
	if e.record.Time.After(r.Last) {
		r.Last = e.record.Time
	}
	r.Head = Head{e.hash, e.record.Seq, e.record.Time}
	if e.hash == w.anchor.Hash && (w.anchor.Seq == 0 || w.anchor.Seq == e.record.Seq) {
		found := r.Head
		r.Anchor = &found
	}
	w.one = w.one || e.record.Seq == 1
	if e.record.Seq == w.anchor.Seq {
		w.instead = e.hash
	}
	switch {
	case e.record.Op == opRepair:
		r.Repairs++
	case e.record.Op == opRotate && e.record.Dropped != nil && e.line == 1:
		w.dropped = append(w.dropped, e.record.Dropped)
	}
}

func (w *walk) finish() {
	r := &w.report
	if r.Broken = w.beginning(); r.Broken == nil && w.wrong != nil {
		r.Broken = w.why()
	}
	switch {
	case r.Broken != nil:
		r.Anchor = nil // what comes after a fault proves nothing
	case w.anchor.Hash != "" && r.Anchor == nil:
		r.Broken = w.unanchored()
	}
}

func faultAt(e *entry, kind, expected, provided, message string) *Fault {
	return &Fault{e.file, e.line, kind, message, expected, manifest.CleanLine(provided)}
}

func number(seq uint64) string { return fmt.Sprintf("record %d", seq) }

// beginning judges the first record: number 1, or the one after those that a rotation dropped.
func (w *walk) beginning() *Fault {
	if w.first == nil || w.first.fault != nil {
		return nil
	}
	r := w.first.record
	for _, d := range w.dropped {
		// Of the dropped files some may still be there: a host was killed while it removed them.
		if r.Seq > 1 && (r.Seq == d.Seq+1 && r.Prev == d.Hash || r.Seq <= d.Seq) {
			w.report.Dropped = r.Seq - 1
			return nil
		}
	}
	switch {
	case r.Seq > 1 && w.one:
		return faultAt(w.first, Reordered, number(1), number(r.Seq), "is the first record here, and those before it stand further down")
	case r.Seq > 1:
		return faultAt(w.first, Removed, number(1), number(r.Seq),
			"is the first record here: those before it were removed, and no rotation says that it dropped them")
	case r.Prev != genesis:
		return faultAt(w.first, Changed, genesis, r.Prev, "was changed: it is the first record, and names one before it")
	}
	return nil
}

// why tells what happened to the first line that does not follow from the one before it.
func (w *walk) why() *Fault {
	e, b, n := w.wrong, w.before, w.after
	seq, hash := uint64(0), genesis
	if b != nil {
		seq, hash = b.record.Seq, b.hash
	}
	// What comes next goes on as if e were not there.
	skipped := n != nil && n.fault == nil && n.record.Prev == hash
	want, got := number(seq+1), number(e.record.Seq)
	switch r := e.record; {
	case e.fault != nil && skipped:
		return faultAt(e, Inserted, "a record", e.fault.Error(), "was inserted: it is no record, and the next one does not know it")
	case e.torn:
		return faultAt(e, Torn, "a whole record", e.fault.Error(), "is torn: only a part of the record is there")
	case e.fault != nil:
		return faultAt(e, Damaged, "a record", e.fault.Error(), "is no record")
	case skipped && (r.Seq == seq+1 || r.Prev == hash):
		return faultAt(e, Inserted, number(n.record.Seq), got+" before it", "was inserted: the next record follows the one before it")
	case r.Prev == hash:
		return faultAt(e, Changed, want, got, "was changed: it has another number")
	case r.Seq == seq+1 && (n == nil || n.record.Prev == e.hash):
		return faultAt(b, Changed, r.Prev, b.hash, "was changed: the record after it has another hash of it")
	case r.Seq == seq+1:
		return faultAt(b, Changed, r.Prev, b.hash,
			fmt.Sprintf("was changed, or the record after it was, %s:%d, which has another hash of it", e.file, e.line))
	case r.Seq == seq && r.Prev == b.record.Prev && e.hash != b.hash && n != nil && n.record.Prev == e.hash:
		return faultAt(b, Inserted, number(seq), "another "+got+" after it", "was inserted: the chain goes on from the next record, which stood here")
	case r.Seq > seq && !w.expected && !w.home:
		return faultAt(e, Removed, want, got, "stands where others were removed")
	case w.home, r.Seq < w.first.record.Seq:
		return faultAt(e, Reordered, want, got, "stands in another place than it was written")
	default:
		return faultAt(e, Inserted, want, got, "was inserted")
	}
}

// unanchored judges a whole chain in which the anchored head is not.
func (w *walk) unanchored() *Fault {
	a, e := w.anchor, w.before
	want := a.Hash
	if a.Seq > 0 {
		want = number(a.Seq) + " with " + a.Hash
	}
	if e == nil {
		return &Fault{currentName, 1, Cut, "is empty: the log was removed", want, "no record"}
	}
	got := number(e.record.Seq) + " with " + e.hash
	switch {
	case a.Seq > e.record.Seq:
		return faultAt(e, Cut, want, got, "is the last record: the end was cut off, with the record whose head was given")
	case w.instead != "":
		return faultAt(e, Cut, want, number(a.Seq)+" with "+w.instead,
			"ends a log that is whole, but not the one whose head was given: it was cut and written anew")
	case a.Seq > 0 && w.report.Dropped == a.Seq && w.first.record.Prev == a.Hash:
		w.report.Anchor = &a // the record is gone, and what follows names it
		return nil
	case a.Seq > 0:
		return faultAt(w.first, Unproved, want, number(w.first.record.Seq),
			"is the first record here: rotation dropped the one whose head was given, which proves nothing any more; keep heads more often")
	case w.report.Dropped > 0:
		return faultAt(w.first, Unproved, want, number(w.first.record.Seq),
			"is the first record here, and none has the given hash: it was cut off, or dropped by rotation; give the number, too, to know")
	}
	return faultAt(e, Cut, want, got, "is the last record, and none has the given hash: the end was cut off, or all was written anew")
}
