//go:build !wasip1

package main

import (
	"encoding/json"
	"go/ast"
	gofmt "go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"math/rand/v2"
	"strings"
	"testing"

	sdk "github.com/parley-tools/parley/sdk/go"
)

func samples(list ...string) (raws []json.RawMessage) {
	for _, s := range list {
		raws = append(raws, raw(s))
	}
	return raws
}

func TestSchema(t *testing.T) {
	const order = `{"id":1,"placed_at":"2026-01-02T03:04:05Z","price":1.5,"ship-to":{"zip":"1"},"items":[{"sku":"a","n":1}],` +
		`"note":null,"byDay":{"2026-01-01":1,"2026-01-02":2}}`
	for _, c := range []struct {
		format string
		in     []string
		want   string
	}{
		{"schema", []string{`{"b":1,"a":"x"}`, `{"b":1.5}`}, `{"$schema":"` + dialect + `","title":"Order","type":"object",` +
			`"properties":{"b":{"type":"number"},"a":{"type":"string"}},"required":["b"]}`},
		{"schema", []string{`[]`}, `{"$schema":"` + dialect + `","title":"Order","type":"array"}`},
		{"schema", []string{`[1,"2026-01-02",null]`}, `{"$schema":"` + dialect + `","title":"Order","type":"array",` +
			`"items":{"type":["string","integer","null"],"format":"date"}}`},
		{"go", []string{order, `{"id":2,"placed_at":"2026-01-02T03:04:05Z","items":[]}`}, "package types\n\n" +
			"import \"time\"\n\n" +
			"type Order struct {\n" +
			"\tID       int64            `json:\"id\"`\n" +
			"\tPlacedAt time.Time        `json:\"placed_at\"`\n" +
			"\tPrice    float64          `json:\"price,omitempty\"`\n" +
			"\tShipTo   *OrderShipTo     `json:\"ship-to,omitempty\"`\n" +
			"\tItems    []OrderItem      `json:\"items\"`\n" +
			"\tNote     any              `json:\"note,omitempty\"`\n" +
			"\tByDay    map[string]int64 `json:\"byDay,omitempty\"`\n}\n\n" +
			"type OrderShipTo struct {\n\tZip string `json:\"zip\"`\n}\n\n" +
			"type OrderItem struct {\n\tSku string `json:\"sku\"`\n\tN   int64  `json:\"n\"`\n}\n"},
		{"go", []string{`[12345678901234567890]`}, "package types\n\nimport \"encoding/json\"\n\ntype Order []json.Number\n"},
		{"go", []string{`{"a,b":1}`}, "package types\n\ntype Order map[string]any\n"},
		{"typescript", []string{order, `{"id":2,"placed_at":"x","items":[null]}`}, `export interface Order {
  id: number;
  placed_at: string;
  price?: number;
  "ship-to"?: OrderShipTo;
  items: (OrderItem | null)[];
  note?: null;
  byDay?: Record<string, number>;
}

export interface OrderShipTo {
  zip: string;
}

export interface OrderItem {
  sku: string;
  n: number;
}
`},
		{"typescript", []string{`["a",1,[]]`}, "export type Order = (unknown[] | string | number)[];\n"},
	} {
		got, err := Schema(&sdk.Call{}, SchemaParams{Samples: samples(c.in...), Format: c.format, Name: "order"})
		if text := string(got.Schema) + got.Code; err != nil || text != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.in, err, text, c.want)
		}
		if !strings.HasPrefix(got.Path, "order.") || got.Description == "" || got.Dependencies == nil {
			t.Errorf("%+v", got)
		}
	}
}

func TestSchemaWarnsOfWhatNoSampleShows(t *testing.T) {
	c := &sdk.Call{}
	if _, err := Schema(c, SchemaParams{Samples: samples(`{"a":[],"b":null,"c":1}`)}); err != nil {
		t.Fatal(err)
	}
	if w := strings.Join(c.Warnings(), ""); !strings.Contains(w, `"/a/0", "/b"`) {
		t.Error(w)
	}
}

// TestSchemaAcceptsItsSamples reviews random values against the schema that was inferred from them, and compiles the Go
// types of each.
func TestSchemaAcceptsItsSamples(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	imports := importer.ForCompiler(token.NewFileSet(), "source", nil)
	for i := range 2000 {
		data := samples(string(randomJSON(r, 3)), string(randomJSON(r, 3)))
		schema, err := Schema(&sdk.Call{}, SchemaParams{Samples: data})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range data {
			review, err := Review(&sdk.Call{}, ReviewParams{Data: d, Schema: schema.Schema})
			if err != nil || len(review.Findings) > 0 || len(review.Unchecked) > 0 {
				t.Fatalf("%s against %s: %+v, %v", d, schema.Schema, review, err)
			}
		}
		code, err := Schema(&sdk.Call{}, SchemaParams{Samples: data, Format: "go", Name: "x"})
		if err != nil || i > 300 {
			continue
		}
		formatted, err := gofmt.Source([]byte(code.Code))
		if err != nil || string(formatted) != code.Code {
			t.Fatalf("%v\n%s is not as gofmt writes it", err, code.Code)
		}
		files := token.NewFileSet()
		file, _ := parser.ParseFile(files, "x.go", code.Code, 0)
		if _, err := (&types.Config{Importer: imports}).Check("types", files, []*ast.File{file}, nil); err != nil {
			t.Fatalf("%v\n%s", err, code.Code)
		}
	}
}
