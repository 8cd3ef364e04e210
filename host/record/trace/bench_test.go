package trace

import "testing"

// BenchmarkRecord measures what a trace adds to a call. The aim is 20 us.
func BenchmarkRecord(b *testing.B) {
	recorder := Open(b.TempDir(), Config{Warn: func(err error) { b.Error(err) }})
	e := refused()
	e.Members = map[string][]string{"mode": {"all"}}
	for b.Loop() {
		recorder.Record(e)
	}
}
