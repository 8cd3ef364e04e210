package audit

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// Report is the result of [Log.Verify].
type Report struct {
	Files   int       `json:"files"`
	Records int       `json:"records"`
	First   time.Time `json:"first,omitzero"` // the earliest and the latest time of a record
	Last    time.Time `json:"last,omitzero"`
	Head    Head      `json:"head"`
	Anchor  *Head     `json:"anchor,omitempty"`  // the record whose head was given, if the log has it
	Dropped uint64    `json:"dropped,omitempty"` // rotations removed the records up to this one, and say so
	Repairs int       `json:"repairs,omitempty"` // half-written records that were cut off
	Torn    int64     `json:"torn,omitempty"`    // bytes of a half-written record at the end
	Broken  *Fault    `json:"broken,omitempty"`  // nil: the log is intact
}

// Kinds of [Fault].
const (
	Changed     = "changed"      // the record is not what was written
	Missing     = "missing"      // there were other records before this one
	Misplaced   = "misplaced"    // the record was inserted, repeated or moved
	Truncated   = "truncated"    // there were other records after this one, the anchored one among them
	WrongAnchor = "wrong_anchor" // the anchor is from another log, or the log no longer reaches back to it
)

// Fault is the first thing that is wrong with a log.
type Fault struct {
	Intact   uint64 `json:"intact"` // number of the last record before the fault; 0 where no record is proved
	File     string `json:"file"`
	Line     int    `json:"line"`
	Kind     string `json:"kind"`
	Message  string `json:"message"`
	Expected string `json:"expected"`
	Provided string `json:"provided"`
}

// Verdict completes the sentence "the log is", such as "intact up to record 7, then".
func (f *Fault) Verdict() string {
	switch {
	case f.Kind == WrongAnchor:
		return "not proved by the given head"
	case f.Intact == 0:
		return "not intact"
	}
	return fmt.Sprintf("intact up to record %d, then", f.Intact)
}

// Verify checks that each record of the log follows the one before it. The chain proves that nothing within the log
// was changed. Only an anchor proves that nothing was cut off its end, and that the log was not rewritten as a whole.
// An anchor is a head that was kept elsewhere, as [Head.String] returns it, "SEQ:sha256:.." or "sha256:.." alone; ""
// is none. The error says that the anchor has another form, or that files cannot be read.
func (l *Log) Verify(anchor string) (Report, error) {
	want, err := parseAnchor(anchor)
	if err != nil {
		return Report{}, err
	}
	files, err := l.journal.OpenFiles(record.Cursor{}, record.Filter{})
	defer record.CloseFiles(files)
	if err != nil {
		return Report{}, err
	}
	v := verifier{report: Report{Files: len(files)}, anchor: want}
	for line, err := range l.journal.Lines(files, record.Cursor{}) {
		if err != nil {
			return v.report, err
		}
		v.add(line)
	}
	v.finish()
	return v.report, nil
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
		return Head{}, host.Errorf(host.InvalidArgs,
			"%q is not the head of an audit log; expected \"sha256:\" and 64 digits, or what parley audit head printed",
			manifest.CleanValue(s)).WithSteps(step.Operator(step.OpAuditHead))
	}
	return h, nil
}

// entry is a line of the log.
type entry struct {
	record.Line
	record Record
	hash   string
	err    error // why the line is not a record
}

// verifier checks the lines of a log in one pass. After the first line that does not follow from the one before it, it
// only collects what diagnose needs.
type verifier struct {
	report  Report
	anchor  Head
	atSeq   string // hash of the record that has the anchor's number
	dropped []*Dropped
	hasOne  bool // there is a record number 1

	first *entry // first line of the log
	good  *entry // last line that followed from the one before it
	bad   *entry // first line that did not
	next  *entry // the line after it
	late  bool   // the record that was expected in place of bad came later
}

func (v *verifier) add(line record.Line) {
	if line.Tail {
		v.report.Torn = line.Size
		return
	}
	e := entry{Line: line, hash: hashOf(line.Sum)}
	if e.record, _, e.err = decode(line); e.err == nil {
		v.count(e)
	}
	if v.first == nil {
		v.first = &e
	}
	switch {
	case v.bad != nil:
		if v.next == nil {
			v.next = &e
		}
		v.late = v.late || v.good != nil && e.record.Seq == v.good.record.Seq+1
	case e.err != nil, v.good != nil && (e.record.Prev != v.good.hash || e.record.Seq != v.good.record.Seq+1):
		v.bad = &e
	default:
		v.good = &e
	}
}

func (v *verifier) count(e entry) {
	r := &v.report
	r.Records++
	if r.First.IsZero() || e.record.Time.Before(r.First) {
		r.First = e.record.Time
	}
	if e.record.Time.After(r.Last) {
		r.Last = e.record.Time
	}
	r.Head = Head{e.hash, e.record.Seq, e.record.Time}
	if e.hash == v.anchor.Hash && (v.anchor.Seq == 0 || v.anchor.Seq == e.record.Seq) {
		found := r.Head
		r.Anchor = &found
	}
	v.hasOne = v.hasOne || e.record.Seq == 1
	if e.record.Seq == v.anchor.Seq {
		v.atSeq = e.hash
	}
	switch {
	case e.record.Op == opRepair:
		r.Repairs++
	case e.record.Op == opRotate && e.record.Dropped != nil && e.Number == 1:
		if e.record.Dropped.Seq < e.record.Seq { // a rotation drops what is before it
			v.dropped = append(v.dropped, e.record.Dropped)
		}
	}
}

func (v *verifier) finish() {
	r := &v.report
	if r.Broken = v.checkFirst(); r.Broken == nil && v.bad != nil {
		r.Broken = v.diagnose()
	}
	switch {
	case r.Broken != nil:
		r.Anchor = nil // what comes after a fault proves nothing
	case v.anchor.Hash != "" && r.Anchor == nil:
		r.Broken = v.checkAnchor()
	}
}

func faultAt(e *entry, intact uint64, kind, expected, provided, message string) *Fault {
	return &Fault{intact, filepath.Base(e.Path), e.Number, kind, message, expected, manifest.CleanLine(provided)}
}

func number(seq uint64) string { return fmt.Sprintf("record %d", seq) }

// checkFirst checks the first record: it is number 1, or the one after those that a rotation dropped.
func (v *verifier) checkFirst() *Fault {
	if v.first == nil || v.first.err != nil {
		return nil
	}
	r := v.first.record
	for _, d := range v.dropped {
		// Some of the dropped files may still be there: a host was killed while it removed them.
		if r.Seq > 1 && (r.Seq == d.Seq+1 && r.Prev == d.Hash || r.Seq <= d.Seq) {
			v.report.Dropped = r.Seq - 1
			return nil
		}
	}
	switch {
	case r.Seq > 1 && v.hasOne:
		return faultAt(v.first, 0, Misplaced, number(1), number(r.Seq), "is the first record, and those before it come later")
	case r.Seq > 1:
		return faultAt(v.first, 0, Missing, number(1), number(r.Seq),
			"is the first record: those before it were removed, and no rotation says that it dropped them")
	case r.Prev != genesis:
		return faultAt(v.first, 0, Changed, genesis, r.Prev,
			"was changed: it is the first record, and it names a record before it")
	}
	return nil
}

// diagnose returns what is wrong with the first line that does not follow from the one before it.
func (v *verifier) diagnose() *Fault {
	bad, good, next := v.bad, v.good, v.next
	seq, hash := uint64(0), genesis
	if good != nil {
		seq, hash = good.record.Seq, good.hash
	}
	r, expected, provided := bad.record, number(seq+1), number(bad.record.Seq)
	if bad.err != nil {
		expected, provided = "a record", bad.err.Error()
	}
	switch {
	case next != nil && next.err == nil && next.record.Prev == hash:
		return faultAt(bad, seq, Misplaced, expected, provided,
			"does not belong here: the next record follows the one before it")
	case bad.err != nil:
		return faultAt(bad, seq, Changed, expected, provided, "was changed: it is not a record")
	case r.Prev == hash:
		return faultAt(bad, seq, Changed, expected, provided, "was changed: it has another number")
	case r.Seq == seq+1:
		return faultAt(good, seq-1, Changed, r.Prev, hash,
			"was changed, or the next record was, which holds a different hash for it")
	case r.Seq == seq && r.Prev == good.record.Prev && bad.hash != hash && next != nil && next.record.Prev == bad.hash:
		return faultAt(good, seq-1, Misplaced, number(seq), "another "+number(seq)+" after it",
			"was inserted: the chain goes on from the next record")
	case r.Seq > seq && !v.late:
		return faultAt(bad, seq, Missing, expected, provided, "comes where other records were removed")
	}
	return faultAt(bad, seq, Misplaced, expected, provided, "was inserted, repeated or moved")
}

// checkAnchor returns why the anchored head is not in a log whose chain is whole. It returns nil if a rotation dropped
// the anchored record, and the record after it has the anchor's hash.
func (v *verifier) checkAnchor() *Fault {
	a, last := v.anchor, v.good
	expected := a.Hash
	if a.Seq > 0 {
		expected = number(a.Seq) + " with " + a.Hash
	}
	if last == nil {
		return &Fault{0, currentName, 1, Truncated, "is empty: the log was removed", expected, "no record"}
	}
	seq := last.record.Seq
	switch {
	case a.Seq > seq:
		return faultAt(last, seq, Truncated, expected, number(seq)+" with "+last.hash,
			"is the last record: those after it were cut off")
	case v.atSeq != "":
		return faultAt(last, 0, WrongAnchor, expected, number(a.Seq)+" with "+v.atSeq,
			"is the end of another log: the log whose head was given was cut off and rewritten")
	case a.Seq > 0 && v.report.Dropped == a.Seq && v.first.record.Prev == a.Hash:
		v.report.Anchor = &a
		return nil
	case a.Seq > 0:
		return faultAt(v.first, 0, WrongAnchor, expected, number(v.first.record.Seq),
			"is the first record: rotation dropped the record of the given head, which therefore proves nothing; store "+
				"heads more often")
	}
	return faultAt(last, 0, WrongAnchor, expected, number(seq)+" with "+last.hash,
		"is the last record, and none has the given hash: it was cut off, rewritten or dropped by rotation; "+
			"also give the number of the head to find out which")
}
