package index

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"
)

// installed returns the segments that the queries of testdata/search expect: cdp, then third-party plugins.
func installed(t testing.TB) []*Segment {
	t.Helper()
	data, err := os.ReadFile("../../../cdp/segment.bin")
	if err != nil {
		t.Fatal(err)
	}
	cdp, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	segs := []*Segment{cdp}
	plugins, docs := others(t)
	for _, name := range plugins {
		segs = append(segs, open(t, name, docs[name]))
	}
	return segs
}

func merged(t testing.TB, segs ...*Segment) *Segment {
	t.Helper()
	seg, err := Open(Merge(segs, func(plugin string) string { return "build of " + plugin }))
	if err != nil {
		t.Fatal(err)
	}
	return seg
}

// TestMergeFindsTheSame runs all queries of testdata/search, unchanged, with a typo and with filters, on separate and
// on merged segments.
func TestMergeFindsTheSame(t *testing.T) {
	separate := installed(t)
	whole := merged(t, separate...)
	some := merged(t, whole) // a merged one may be merged again
	removed := func(plugin string) bool { return len(plugin)%3 == 0 }
	some.Keep(func(plugin, _ string) bool { return !removed(plugin) })
	mixed := []*Segment{some}
	for _, s := range separate {
		if removed(s.members[0].plugin) {
			mixed = append(mixed, s)
		}
	}
	if len(mixed) < 10 {
		t.Fatalf("%d segments beside the merged one", len(mixed))
	}
	n := 0
	ask := func(q Query) {
		n++
		q.Explain = true
		want := Search(separate, q)
		segs := mixed
		if n%2 == 0 {
			segs = []*Segment{whole}
		}
		if got := Search(segs, q); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v in %d segments:\n%+v\nexpected\n%+v", q, len(segs), got, want)
		}
	}
	for _, file := range []string{"cdp.jsonl", "cdp_holdout.jsonl", "cdp_later.jsonl", "others.jsonl",
		"others_later.jsonl"} {
		eachLine(t, file, func(line []byte) error {
			var q struct{ Query string }
			if err := json.Unmarshal(line, &q); err != nil {
				return err
			}
			ask(Query{Text: q.Query, Limit: 20})
			if typo := []byte(q.Query); n%3 == 0 && len(typo) > 6 {
				i := 2 + n%(len(typo)-4)
				typo[i], typo[i+1] = typo[i+1], typo[i]
				ask(Query{Text: string(typo)})
			}
			switch n % 10 {
			case 0:
				ask(Query{Text: q.Query, Kind: "event"})
			case 1:
				ask(Query{Text: q.Query, Kind: "type", Limit: -1})
			case 2:
				ask(Query{Text: q.Query, Group: "Network"})
			case 3:
				ask(Query{Text: q.Query, Effect: "write", Category: "action", Limit: -1})
			}
			return nil
		})
	}
	if n < 1200 {
		t.Errorf("only %d queries", n)
	}
}

func TestMergeIsDeterministic(t *testing.T) {
	build := func(plugin string) string { return plugin }
	segs := installed(t)
	want := Merge(segs, build)
	reversed := slices.Clone(segs)
	slices.Reverse(reversed)
	if !bytes.Equal(Merge(reversed, build), want) {
		t.Error("the order of the segments changes the bytes")
	}
	if again := merged(t, merged(t, segs[:40]...), merged(t, segs[40:]...)); !bytes.Equal(Merge([]*Segment{again}, build),
		want) {
		t.Error("merging in steps produces other bytes")
	}
	some := merged(t, segs...)
	some.Keep(func(plugin, build string) bool {
		return build == "build of "+plugin && slices.ContainsFunc(segs[:5],
			func(s *Segment) bool { return s.members[0].plugin == plugin })
	})
	if !bytes.Equal(Merge([]*Segment{some}, build), Merge(segs[:5], build)) {
		t.Error("excluded plugins leave data behind")
	}
}
