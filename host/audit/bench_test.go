package audit

import (
	"testing"
	"time"
)

func BenchmarkRecord(b *testing.B) {
	for _, m := range []string{On, Required} {
		b.Run(m, func(b *testing.B) {
			l := openTest(b, b.TempDir(), Config{Mode: mode(m)})
			for b.Loop() {
				l.Record(called("c0123456789abcdef"))
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	l := openTest(b, b.TempDir(), Config{})
	for range 10_000 {
		l.Record(called("c0123456789abcdef"))
	}
	for b.Loop() {
		if r, err := l.Verify(""); err != nil || r.Broken != nil {
			b.Fatal(r.Broken, err)
		}
	}
}

// Without fsync a record may cost 100 microseconds; this allows ten times that.
func TestRecordIsCheap(t *testing.T) {
	l := openTest(t, t.TempDir(), Config{})
	best := time.Hour
	for range 5 {
		began := time.Now()
		for range 100 {
			l.Record(called("c1"))
		}
		best = min(best, time.Since(began)/100)
	}
	if t.Logf("%s a record", best); best > time.Millisecond {
		t.Errorf("%s a record", best)
	}
}
