package audit

import (
	"testing"
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
