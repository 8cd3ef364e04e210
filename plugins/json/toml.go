package main

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/parley-tools/parley/internal/lazy"
)

// table is what a key of TOML holds.
type table struct {
	kind byte
	at   int // of its key, in bytes
	keys map[string]*table
	last *table // of an array of tables
}

const (
	plainValue  = iota // a value, an array or an inline table
	superTable         // named by the header of a table in it
	headedTable        // with a header of its own
	dottedTable        // made by a dotted key
	tableArray         // made by headers in two brackets
)

func (t *table) add(name string, kind byte, at int) *table {
	if t.keys == nil {
		t.keys = map[string]*table{}
	}
	t.keys[name] = &table{kind: kind, at: at}
	return t.keys[name]
}

// tomlReader checks what the parser leaves to its caller: keys and tables that stand twice, numbers and dates.
type tomlReader struct {
	root, current *table
	at            int // of the last key
	wrong         string
	other         int // of what a key contradicts, -1 for nothing
}

// checkTOML returns where TOML does not parse, or where a key or a table stands twice.
func checkTOML(text string) *fault {
	p := &unstable.Parser{}
	p.Reset([]byte(text))
	r := &tomlReader{root: &table{}, other: -1}
	r.current = r.root
	for r.wrong == "" && p.NextExpression() {
		r.expression(p.Expression())
	}
	if err, ok := errors.AsType[*unstable.ParserError](p.Error()); ok {
		r.at, r.wrong = int(p.Range(err.Highlight).Offset), err.Message
	}
	if r.wrong == "" {
		return nil
	}
	f := &fault{strings.Count(text[:r.at], "\n"), -1, strings.Count(text[r.at:], "\n"), r.wrong}
	if r.other >= 0 {
		f.other = strings.Count(text[:r.other], "\n")
	}
	return f
}

func (r *tomlReader) expression(e *unstable.Node) {
	switch e.Kind {
	case unstable.KeyValue:
		r.member(r.current, e)
	case unstable.Table, unstable.ArrayTable:
		holder, name := r.walk(r.root, e, superTable)
		t := holder.keys[name]
		switch {
		case t == nil && e.Kind == unstable.Table:
			t = holder.add(name, headedTable, r.at)
		case t == nil:
			t = holder.add(name, tableArray, r.at)
		case e.Kind == unstable.Table && t.kind == superTable:
			t.kind = headedTable
		case e.Kind == unstable.Table || t.kind != tableArray:
			r.contradicts(t)
		}
		if r.current = t; t.kind == tableArray {
			t.last = &table{}
			r.current = t.last
		}
	}
}

func (r *tomlReader) contradicts(t *table) {
	if r.wrong == "" {
		r.wrong, r.other = "the key or table stands twice", t.at
	}
}

// walk returns the table that holds the last part of a key. Tables on the way that do not exist are made.
func (r *tomlReader) walk(t *table, e *unstable.Node, kind byte) (holder *table, name string) {
	for key := e.Key(); key.Next(); {
		if r.wrong == "" {
			r.at = int(key.Node().Raw.Offset)
		}
		if name = string(key.Node().Data); key.IsLast() {
			break
		}
		inner := t.keys[name]
		switch {
		case inner == nil:
			inner = t.add(name, kind, r.at)
		case inner.kind == tableArray && kind == superTable:
			inner = inner.last
		case inner.kind == plainValue, kind == dottedTable && inner.kind != dottedTable:
			r.contradicts(inner)
		}
		t = inner
	}
	return t, name
}

func (r *tomlReader) member(t *table, e *unstable.Node) {
	holder, name := r.walk(t, e, dottedTable)
	if old := holder.keys[name]; old != nil {
		r.contradicts(old)
	}
	holder.add(name, plainValue, r.at)
	r.value(e.Value())
}

var isTOMLNumber = pattern(`^[+-]?((0|[1-9](_?\d)*)(\.\d(_?\d)*)?([eE][+-]?\d(_?\d)*)?|inf|nan)$|` +
	`^0x[0-9A-Fa-f](_?[0-9A-Fa-f])*$|^0o[0-7](_?[0-7])*$|^0b[01](_?[01])*$`)

// tomlTime is a date, a time or both, in which the seconds may be missing.
var tomlTime = lazy.Pattern(`^(\d{4}-\d\d-\d\d)?(?:(?:^|[Tt ])(\d\d:\d\d)(:\d\d(?:\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?)?$`)

func isTOMLTime(s string) bool {
	m := tomlTime().FindStringSubmatch(s)
	if m == nil {
		return false
	}
	_, err := time.Parse(time.RFC3339, cmp.Or(m[1], "2000-01-01")+"T"+cmp.Or(m[2], "00:00")+cmp.Or(m[3], ":00")+
		strings.ToUpper(cmp.Or(m[4], "Z")))
	return err == nil
}

func (r *tomlReader) value(v *unstable.Node) {
	data := string(v.Data)
	wrong := false
	switch v.Kind {
	case unstable.InlineTable, unstable.Array:
		inner := &table{}
		for items := v.Children(); items.Next(); {
			if item := items.Node(); item.Kind == unstable.KeyValue {
				r.member(inner, item)
			} else {
				r.value(item)
			}
		}
	case unstable.Integer:
		_, err := strconv.ParseInt(strings.ReplaceAll(data, "_", ""), 0, 64)
		wrong = err != nil || !isTOMLNumber(data)
	case unstable.Float:
		wrong = !isTOMLNumber(data)
	case unstable.LocalDate, unstable.LocalTime, unstable.LocalDateTime, unstable.DateTime:
		wrong = !isTOMLTime(data)
	}
	if wrong && r.wrong == "" {
		r.wrong = strconv.Quote(data) + " is neither a number nor a date of TOML"
	}
}
