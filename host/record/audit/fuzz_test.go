package audit

import (
	"strings"
	"testing"
)

// Whatever the file contains, a record can be appended and read, and all complete lines remain.
func FuzzLog(f *testing.F) {
	l := written(f)
	f.Add([]byte(content(f, l.Dir())), "")
	f.Add([]byte(content(f, l.Dir())[:300]), "sha256:"+strings.Repeat("0", 64))
	f.Add([]byte("\n\n{}\n"), "7 sha256:")
	f.Add([]byte(`{"v":1,"seq":18446744073709551615,"t":"2026-07-01T12:00:00Z","prev":"`+genesis+`","op":"call"}`+"\n"),
		"1:sha256:")
	f.Add([]byte("x"), "x")
	f.Fuzz(func(t *testing.T, data []byte, anchor string) {
		if len(data) > 1<<16 {
			return
		}
		l := openTest(t, t.TempDir(), Config{})
		put(t, l.Dir(), currentName, string(data))
		before, err := l.Verify("")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = l.Verify(anchor)
		if before.Broken == nil && before.Records > 0 {
			if r, err := l.Verify(before.Head.String()); err != nil || r.Broken != nil {
				t.Fatalf("its own head: %v %v", r.Broken, err)
			}
		}
		l.Record(called("c1"))
		whole := string(data[:strings.LastIndexByte(string(data), '\n')+1])
		if !strings.HasPrefix(content(t, l.Dir()), whole) {
			t.Error("earlier lines have changed")
		}
		records := all(t, l)
		if last := records[len(records)-1]; last.Call != "c1" {
			t.Errorf("the last record is %+v", last)
		}
		after, err := l.Verify("")
		if err != nil || after.Torn != 0 || (before.Broken == nil) != (after.Broken == nil) {
			t.Errorf("%v, before %v; %d torn; %v", after.Broken, before.Broken, after.Torn, err)
		}
	})
}
