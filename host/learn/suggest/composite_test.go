package suggest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host/learn/stats"
)

// TestComposites checks which sequences of calls become batches, and what their lines are.
func TestComposites(t *testing.T) {
	catalog := catalogOf(t, newPlugin(t, shop))
	find, add, count := "shop.article.find", "shop.article.add", "shop.stock.count"
	for _, c := range []struct {
		name     string
		sessions int
		make     func(l *log, s string)
		want     []string // lines of each batch
	}{
		{"too few sessions", 4, func(l *log, s string) {
			l.add(s, find, `{"title":"string(3)"}`)
			l.add(s, count, `{}`)
		}, nil},
		{"one tool", 6, func(l *log, s string) {
			l.add(s, count, `{}`)
			l.add(s, count, `{}`)
			l.add(s, count, `{}`)
		}, nil},
		{"a call between that failed", 6, func(l *log, s string) {
			l.add(s, find, `{"title":"string(3)"}`)
			l.add(s, add, `{"title":"string(3)"}`, violation("/count", "required", "integer"))
			l.add(s, count, `{}`)
		}, []string{`{"id":1,"tool":"shop.article.find","params":{"title":"${param.title}"}}` + "\n" +
			`{"id":2,"tool":"shop.stock.count"}`}},
		{"constants, results and rare parameters", 6, func(l *log, s string) {
			l.add(s, find, `{"title":"string(3)","forged":"string(3)"}`)
			params := `{"title":"string(3)","count":5,"size":"enum(small)"}`
			if s == "s1" {
				params = `{"title":"string(3)","count":5,"size":"enum(small)","color":"string(3)"}`
			}
			l.add(s, add, params).From = map[string]string{"title": find + "/items/0/name"}
		}, []string{`{"id":1,"tool":"shop.article.find","params":{"title":"${param.title}"}}` + "\n" +
			`{"id":2,"tool":"shop.article.add","params":{"count":5,"size":"small","title":"${1.items.0.name}"}}`}},
		{"different values", 6, func(l *log, s string) {
			l.add(s, count, `{}`)
			l.add(s, add, fmt.Sprintf(`{"title":"the same text","count":%s,"size":"enum(%s)"}`, s[1:],
				map[bool]string{true: "small", false: "large"}[s > "s3"]))
		}, []string{`{"id":1,"tool":"shop.stock.count"}` + "\n" +
			`{"id":2,"tool":"shop.article.add","params":{"count":"${param.count}","size":"${param.size}",` +
			`"title":"${param.title}"}}`}},
		{"the longest", 8, func(l *log, s string) {
			l.add(s, count, `{}`)
			l.add(s, find, `{"title":"string(3)"}`)
			if s != "s1" {
				l.add(s, count, `{}`)
			}
		}, []string{`{"id":1,"tool":"shop.stock.count"}` + "\n" +
			`{"id":2,"tool":"shop.article.find","params":{"title":"${param.title}"}}` + "\n" +
			`{"id":3,"tool":"shop.stock.count"}`}},
		{"a tool that does not exist", 6, func(l *log, s string) {
			l.add(s, count, `{}`)
			l.add(s, "shop.gone", `{}`)
		}, nil},
	} {
		var l log
		for i := range c.sessions {
			c.make(&l, fmt.Sprint("s", i))
		}
		var got []string
		for _, made := range Composites(stats.Compute(l.records, catalog, ""), catalog) {
			lines := []string{}
			for _, line := range made.Lines {
				lines = append(lines, string(line))
			}
			got = append(got, strings.Join(lines, "\n"))
			var test map[string]json.RawMessage
			if json.Unmarshal(made.Test, &test) != nil || len(test) != len(made.Parameters) {
				t.Errorf("%s: the test %s is not of %+v", c.name, made.Test, made.Parameters)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}
