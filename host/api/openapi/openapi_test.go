package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden compares the manifests and reports of two documents, which have all styles and bodies.
func TestGolden(t *testing.T) {
	for _, name := range []string{"orders.yaml", "files.json"} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			m, report, err := Derive(data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(map[string]any{"manifest": m, "report": report}, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))) {
				t.Errorf("the manifest of %s differs from %s; -update writes it:\n%s", name, golden, got)
			}
		})
	}
}

// minimal is a document with one operation, after the fields that are given.
func minimal(fields, operation string) string {
	return fmt.Sprintf(`{"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, %s "paths": {"/a": {"get": {%s}}}}`,
		fields, operation)
}

const server = `"servers": [{"url": "https://a.test"}],`

func TestRefused(t *testing.T) {
	many := strings.Builder{}
	for i := range maxTools + 1 {
		fmt.Fprintf(&many, `"/a%d": {"get": {"tags": ["t"]}},`, i)
	}
	bomb := "openapi: 3.0.0\nx: &x [*x]\npaths: {/a: {get: {}}}\n"
	for _, test := range []struct {
		name, document string
		opts           Options
		want           string
	}{
		{"empty", "", Options{}, "it is empty"},
		{"no JSON", "{", Options{}, "line 1"},
		{"key twice", `{"openapi": "3.0.0", "openapi": "3.0.0"}`, Options{}, "openapi"},
		{"key twice in YAML", "openapi: 3.0.0\nopenapi: 3.0.0\n", Options{}, "openapi"},
		{"anchor in itself", bomb, Options{}, "contains itself"},
		{"other version", `{"openapi": "4.0.0"}`, Options{}, `openapi: "4.0.0"`},
		{"AsyncAPI", "asyncapi: 2.6.0\n", Options{}, "is AsyncAPI; expected OpenAPI"},
		{"Postman", `{"info": {"_postman_id": "1"}, "item": []}`, Options{}, "is a Postman collection"},
		{"HAR", `{"log": {"entries": []}}`, Options{}, "is an HTTP archive"},
		{"GraphQL", `{"data": {"__schema": {}}}`, Options{}, "is a GraphQL schema"},
		{"Swagger 1", `{"swagger": "1.2"}`, Options{}, `swagger: "1.2"`},
		{"anything", `{"a": 1}`, Options{}, "of no known kind, and has neither openapi nor swagger"},
		{"no tags", minimal(server, ""), Options{Tags: []string{"y"}}, "the tags are: none; leave --tag out"},
		{"no paths", `{"openapi": "3.0.0", "paths": {}}`, Options{}, "/paths has no operation"},
		{"no server", minimal("", ""), Options{}, "--server https://"},
		{"relative server", minimal(`"servers": [{"url": "/v1"}],`, ""), Options{}, `"/v1"`},
		{"server without a name", minimal(`"servers": [{"url": "https://{region}.a.test"}],`, ""), Options{}, "{region}"},
		{"server with a query", minimal(`"servers": [{"url": "https://a.test/v1?tenant=7"}],`, ""), Options{}, "?tenant=7"},
		{"--server with a query", minimal(server, ""), Options{Server: "https://a.test?b"}, "--server \"https://a.test?b\""},
		{"odd address", minimal(`"servers": [{"url": "http://127.1/"}],`, ""), Options{}, "no server that can be used"},
		{"odd --server", minimal(server, ""), Options{Server: "http://2130706433"}, "--server \"http://2130706433\""},
		{"loopback", minimal(`"servers": [{"url": "http://127.0.0.1:8080"}],`, ""), Options{}, "--server http://127.0.0.1:8080"},
		{"bad --server", minimal(server, ""), Options{Server: "a.test"}, "--server \"a.test\""},
		{"bad --auth", minimal(server, ""), Options{Auth: "header:"}, "--auth \"header:\": expected header:NAME"},
		{"--auth of the host", minimal(server, ""), Options{Auth: "header:Host"}, "the host sets itself, such as Host"},
		{"--auth of a proxy", minimal(server, ""), Options{Auth: "header:Proxy-Authorization"}, "the host sets itself"},
		{"--auth with a space", minimal(server, ""), Options{Auth: "query:a b"}, "--auth \"query:a b\": expected"},
		{"unknown tag", minimal(server, `"tags": ["x"]`), Options{Tags: []string{"y"}}, "the tags are: x"},
		{"unknown tool", minimal(server, ""), Options{Effects: map[string]string{"a.gat": "read"}}, `no tool is named "a.gat"; expected one such as a.get`},
		{"bad effect", minimal(server, ""), Options{Effects: map[string]string{"a.get": "none"}}, "expected read, write or"},
		{"another file", minimal(server, `"parameters": [{"$ref": "b.yaml#/x"}]`), Options{}, "redocly bundle"},
		{"too many", `{"openapi": "3.0.0", "paths": {` + strings.TrimSuffix(many.String(), ",") + `},` +
			strings.TrimSuffix(server, ",") + `}`, Options{}, `--tag "t"`},
		{"no tool", minimal(server, `"parameters": [{"name": "s", "in": "body parts"}]`), Options{},
			"GET /a: the parameter s is in body parts"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := Derive([]byte(test.document), test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Derive: %v; want an error with %q", err, test.want)
			}
		})
	}
}

// TestAliases checks that aliases are read, and that aliases of aliases which stand for too much are refused.
func TestAliases(t *testing.T) {
	for _, levels := range []int{1, 10, 30} {
		for _, use := range []string{"schema: *a%d", "schema: {enum: [*a%d]}", "example: *a%d", "schema: {default: *a%d}"} {
			var b strings.Builder
			b.WriteString("openapi: 3.0.0\nservers: [{url: https://a.test}]\nx:\n  a0: &a0 {type: string}\n")
			for i := range levels {
				fmt.Fprintf(&b, "  a%d: &a%d {type: object, properties: {p: *a%d, q: *a%d}}\n", i+1, i+1, i, i)
			}
			b.WriteString("paths: {/a: {get: {parameters: [{name: p, in: query, " + fmt.Sprintf(use, levels) + "}]}}}\n")
			_, _, err := Derive([]byte(b.String()), Options{})
			if refused := err != nil && strings.Contains(err.Error(), "aliases stand for"); refused != (levels > 20) {
				t.Errorf("%d levels, %s: %v", levels, use, err)
			}
		}
	}
}

// TestFragments checks that operations which a fragment in the path sets apart are tools with the same request.
func TestFragments(t *testing.T) {
	document := `{"openapi": "3.1.0", "info": {"title": "T"}, ` + server + `"paths": {
		"/f/{id}": {"put": {"operationId": "set"}}, "/f/{id}#link": {"put": {"operationId": "link"}}}}`
	m, report, err := Derive([]byte(document), Options{})
	if err != nil || len(report.LeftOut) > 0 || len(m.Tools) != 2 {
		t.Fatalf("Derive: %+v, %v; want two tools", report, err)
	}
	for _, tool := range m.Tools {
		if tool.HTTP.Path != "/f/{id}" {
			t.Errorf("%s sends its request to %s", tool.Name, tool.HTTP.Path)
		}
	}
}

// TestManyGroups checks that a document with more tags than a manifest has groups is not refused.
func TestManyGroups(t *testing.T) {
	var paths []string
	for i := range 1200 {
		paths = append(paths, fmt.Sprintf(`"/a%d": {"get": {"tags": ["tag%[1]d"], "operationId": "get%[1]d"}}`, i))
	}
	m, _, err := Derive([]byte(`{"openapi": "3.0.0", `+server+`"paths": {`+strings.Join(paths, ",")+`}}`), Options{})
	if err != nil || len(m.Tools) != 1200 || len(m.Groups) != maxGroups {
		t.Fatalf("%v, %d tools in %d groups", err, len(m.Tools), len(m.Groups))
	}
}

// TestLarge checks that a tool whose parameters are too large for the least level of references keeps its names and as
// many levels as there is room for, and that one with too many names takes the body as a whole.
func TestLarge(t *testing.T) {
	members := func(n int, schema string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"name-of-a-member-%04d": %s`, i, schema))
		}
		return `{"type": "object", "properties": {` + strings.Join(all, ",") + `}}`
	}
	const leaf = `{"type": "string", "description": "A text of some length, which an agent has to read."}`
	for _, test := range []struct {
		name, schema string
		params, deep int // how many parameters there are, and how many members the first of them has; 0 for none
	}{
		{"one level", members(20, members(20, leaf)), 20, 20},
		{"too large", members(20, members(20, members(20, leaf))), 20, 20},
		{"names alone", members(50, members(100, leaf)), 50, 0},
		{"too many names", members(4000, leaf), 1, 0}, // the body as a whole
	} {
		t.Run(test.name, func(t *testing.T) {
			body := `"requestBody": {"content": {"application/json": {"schema": ` + test.schema + `}}}`
			m, report, err := Derive([]byte(minimal(server, body)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var params struct {
				Properties map[string]struct{ Properties map[string]any }
			}
			if err := json.Unmarshal(m.Tools[0].Params, &params); err != nil {
				t.Fatal(err)
			}
			deep := len(params.Properties["name-of-a-member-0000"].Properties)
			if len(params.Properties) != test.params || deep != test.deep || len(report.Unchecked) > 0 {
				t.Errorf("%d parameters, the first with %d members; want %d and %d; unchecked: %v", len(params.Properties), deep,
					test.params, test.deep, report.Unchecked)
			}
			if isCut := len(report.Shortened) > 0; isCut != (test.name != "one level") {
				t.Errorf("shortened: %v", report.Shortened)
			}
		})
	}
}

// TestBounded checks that references, which make a small document large, do not take time without end. Without the
// bounds, each of these takes minutes or never ends.
func TestBounded(t *testing.T) {
	const body = `"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}`
	repeat := func(n int, each string) string {
		var all []string
		for i := range n {
			all = append(all, strings.ReplaceAll(each, "N", fmt.Sprint(i)))
		}
		return strings.Join(all, ",")
	}
	schemas := func(a string) string { return server + `"components": {"schemas": {"A": ` + a + `}},` }
	properties := schemas(`{"type": "object", "properties": {` + repeat(10_000, `"pN": {"type": "string"}`) + `}}`)
	for _, test := range []struct {
		name, document string
		tools, leftOut int
	}{
		{"parts of itself", minimal(schemas(`{"allOf": [`+repeat(100, `{"$ref": "#/components/schemas/A"}`)+`]}`), body), 1, 0},
		{"properties", `{"openapi": "3.0.0", ` + properties + `"paths": {` + repeat(2000, `"/a/bN": {"post": {`+body+`}}`) +
			`}}`, 2000, 0},
		{"parameters in a path", `{"openapi": "3.0.0", ` + server + `"paths": {"/a": {"get": {}}, "` +
			strings.Repeat("/{p}", 100_000) + `": {"get": {}}}}`, 1, 1},
		{"long name", `{"openapi": "3.0.0", ` + server + `"paths": {"/a": {"get": {}}, "/b": {"get": {"parameters": [` +
			`{"name": "` + strings.Repeat("n", 501) + `", "in": "query"}]}}}}`, 1, 1},
		{"query in a path", `{"openapi": "3.0.0", ` + server + `"paths": {"/a?b={c}": {"get": {}}, "/a b": {"get": {}}}}`, 1, 1},
		{"methods", `{"openapi": "3.0.0", ` + server + `"paths": {"/a": {"get": {}, "options": {}, "trace": {}}}}`, 2, 1},
		{"parameters in a query", `{"openapi": "3.0.0", ` + server + `"paths": {"/a": {"get": {}}, "/b": {"get": {` +
			`"parameters": [` + repeat(501, `{"name": "qN", "in": "query"}`) + `]}}}}`, 1, 1},
		{"equal names", `{"openapi": "3.0.0", ` + server + `"paths": {` + repeat(4000, `"/{aN}": {"get": `+
			`{"operationId": "x", "tags": ["t"]}}`) + `}}`, 4000, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, report, err := Derive([]byte(test.document), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Tools) != test.tools || len(report.LeftOut) != test.leftOut {
				t.Errorf("%d tools, %d operations left out; want %d and %d", len(m.Tools), len(report.LeftOut), test.tools,
					test.leftOut)
			}
		})
	}
}

func TestNames(t *testing.T) {
	for _, test := range []struct{ tag, id, path, method, want string }{
		{"orders", "cancelOrder", "/orders/{id}", "POST", "orders.cancel"},
		{"order", "listOrders", "/orders", "GET", "order.list"},
		{"issues", "issues/list-for-repo", "/issues", "GET", "issues.list-for-repo"},
		{"core_v1", "listCoreV1NamespacedPod", "/api/v1/pods", "GET", "core-v1.list-namespaced-pod"},
		{"orders", "orders", "/orders", "GET", "orders.orders"},
		{"", "", "/api/v2/pets/{petId}", "GET", "pets.get-by-pet-id"},
		{"", "", "/", "GET", "default.get"},
		{"Größe", "übung", "/x", "GET", "grosse.ubung"},
		{"Straße", "getÜbersicht", "/x", "GET", "strasse.get-ubersicht"},
		{"", "", "/cafe\u0301/{id}", "GET", "cafe.get-by-id"},
		{"Заказы", "list", "/orders", "GET", "orders.list"},
		{"Page", "page_open", "/pages", "GET", "page-api.open"},
	} {
		o := &operation{test.method, test.path, object{"operationId": test.id}, nil}
		if test.tag != "" {
			o.fields["tags"] = []any{test.tag}
		}
		n := newNames([]string{"page"})
		if got, _ := n.tool(o); got != test.want {
			t.Errorf("tag %q, id %q, path %q: %q, want %q", test.tag, test.id, test.path, got, test.want)
		}
	}
}

// TestSchemes checks which secrets security schemes become, and that schemes which no call can send are reported where
// there is no other.
func TestSchemes(t *testing.T) {
	for _, test := range []struct{ schemes, secrets, unsent string }{
		{`"k": {"type": "apiKey", "in": "header", "name": "api_key"}`, "api_key: {secret}", ""},
		{`"k": {"type": "apiKey", "in": "query", "name": "key"}, "c": {"type": "apiKey", "in": "cookie", "name": "sid"}`, "?key", ""},
		{`"c": {"type": "apiKey", "in": "cookie", "name": "sid"}, "m": {"type": "mutualTLS"}`, "",
			"c: apiKey cookie sid; m: mutualTLS"},
		{`"d": {"type": "http", "scheme": "digest"}`, "", "d: http digest"},
		{`"h": {"type": "apiKey", "in": "header", "name": "Host"}`, "", "h: apiKey header Host"},
		{`"q": {"type": "apiKey", "in": "query", "name": "a b"}`, "", "q: apiKey query a b"},
	} {
		m, report, err := Derive([]byte(minimal(server+`"components": {"securitySchemes": {`+test.schemes+`}},`, "")), Options{})
		if err != nil {
			t.Errorf("%s: %v", test.schemes, err)
			continue
		}
		secrets := ""
		for _, s := range m.Capabilities.Secrets {
			if secrets += s.Header; s.Query != "" {
				secrets += "?" + s.Query
			}
		}
		if unsent := strings.Join(report.Unsent, "; "); secrets != test.secrets || unsent != test.unsent {
			t.Errorf("%s: secrets %q, unsent %q", test.schemes, secrets, unsent)
		}
	}
}

// TestParts checks the media types that a document gives for properties of a form.
func TestParts(t *testing.T) {
	for _, test := range []struct{ body, schema, media, want string }{
		{"multipart/form-data", `"type": "array", "items": {"type": "integer"}`, "application/json; charset=utf-8",
			`{"contentMediaType":"application/json","items":{"type":"integer"},"type":"array"}`},
		{"multipart/form-data", `"type": "string", "format": "binary"`, "*/*", `{"contentEncoding":"base64","type":"string"}`},
		{"multipart/form-data", `"type": "string", "format": "binary"`, "image/png",
			`{"contentEncoding":"base64","contentMediaType":"image/png","type":"string"}`},
		{"multipart/form-data", `"type": "string", "format": "binary"`, "image/png, image/jpeg",
			`{"contentEncoding":"base64","type":"string"}`},
		{"multipart/form-data", `"type": "array", "items": {"type": "string", "format": "binary"}`, "image/png",
			`{"items":{"contentEncoding":"base64","contentMediaType":"image/png","type":"string"},"type":"array"}`},
		{"multipart/form-data", `"type": "string"`, "text/markdown", `{"contentMediaType":"text/markdown","type":"string"}`},
		{"multipart/form-data", `"type": "string"`, `text/a\r\nX-B: c`, `{"type":"string"}`},
		{"multipart/form-data", `"type": "object", "description": "Data."`, "application/xml",
			`{"contentMediaType":"application/xml","description":"Data. A text, as application/xml.","type":"string"}`},
		{"application/x-www-form-urlencoded", `"type": "object"`, "application/json",
			`{"contentMediaType":"application/json","type":"object"}`},
		{"application/x-www-form-urlencoded", `"type": "object"`, "application/xml", `{"type":"object"}`},
	} {
		m, _, err := Derive([]byte(`{"openapi": "3.0.3", "info": {"title": "T"}, `+server+`"paths": {"/a": {"post": {"requestBody":
			{"content": {"`+test.body+`": {"schema": {"type": "object", "properties": {"p": {`+test.schema+`}}},
			"encoding": {"p": {"contentType": "`+test.media+`"}}}}}}}}}`), Options{})
		if err != nil || !strings.Contains(string(m.Tools[0].Params), `{"p":`+test.want+`}`) {
			t.Errorf("%s of %s: %v, %s; want %s", test.schema, test.media, err, m.Tools[0].Params, test.want)
		}
	}
}

// TestStyles checks how the styles of parameters are bound: in the path, in the query, or as a text that the caller
// writes in the format.
func TestStyles(t *testing.T) {
	const list = `"description": "Ids.", "schema": {"type": "array", "items": {"type": "string"}}`
	const swaggerList = `"description": "Ids.", "type": "array", "items": {"type": "string"}`
	for _, test := range []struct{ version, parameter, path, style, property string }{
		{"openapi", `"in": "path", "style": "label", ` + list, "/a/{.l}", "", `"items":{"type":"string"},"type":"array"`},
		{"openapi", `"in": "path", "style": "label", "explode": true, ` + list, "/a/{.l*}", "", `"type":"array"`},
		{"openapi", `"in": "path", "style": "matrix", ` + list, "/a/{;l}", "", `"type":"array"`},
		{"openapi", `"in": "path", "style": "matrix", "explode": true, "schema": {"type": "string"}`, "/a/{;l}", "", `"string"`},
		{"openapi", `"in": "path", "explode": true, "schema": {"type": "object"}`, "/a/{l*}", "", `"type":"object"`},
		{"openapi", `"in": "header", "explode": true, "schema": {"type": "object"}`, "", "repeat", `"type":"object"`},
		{"openapi", `"in": "header", ` + list, "", "", `"type":"array"`},
		{"openapi", `"in": "cookie", ` + list, "", "", `"type":"array"`},
		{"openapi", `"in": "cookie", "explode": false, ` + list, "", "comma", `"type":"array"`},
		{"openapi", `"in": "path", ` + list, "/a/{l}", "", `"type":"array"`},
		{"openapi", `"in": "query", ` + list, "", "", `"type":"array"`},
		{"openapi", `"in": "query", "explode": false, ` + list, "", "comma", `"type":"array"`},
		{"openapi", `"in": "query", "style": "spaceDelimited", ` + list, "", "space", `"type":"array"`},
		{"openapi", `"in": "query", "style": "pipeDelimited", "explode": true, ` + list, "", "", `"type":"array"`},
		{"openapi", `"in": "query", "description": "How many.", "schema": {"type": "integer", "default": 30}`, "", "",
			`{"description":"How many. Default: 30.","type":"integer"}`},
		{"openapi", `"in": "query", "description": "How many.", "schema": {"$ref": "#/components/schemas/N"}`, "", "",
			`{"description":"How many. Default: 3.","type":"integer"}`},
		{"swagger", `"in": "query", ` + swaggerList, "", "comma", `"type":"array"`},
		{"swagger", `"in": "query", "collectionFormat": "multi", ` + swaggerList, "", "", `"type":"array"`},
		{"swagger", `"in": "query", "collectionFormat": "tsv", ` + swaggerList, "", "",
			`{"description":"Ids. A list, as tsv.","type":"string"}`},
		{"swagger", `"in": "query", "type": "integer", "default": 3, "description": "How many."`, "", "",
			`{"description":"How many. Default: 3.","type":"integer"}`},
		{"swagger", `"in": "path", ` + swaggerList, "/a/{l}", "", `"type":"array"`},
		{"swagger", `"in": "path", "collectionFormat": "pipes", ` + swaggerList, "/a/{l}", "",
			`{"description":"Ids. A list, as pipes.","type":"string"}`},
		{"swagger", `"in": "header", "collectionFormat": "ssv", ` + swaggerList, "", "",
			`{"description":"Ids. A list, as ssv.","type":"string"}`},
		{"swagger", `"in": "formData", ` + swaggerList, "", "", `{"description":"Ids. A list, as csv.","type":"string"}`},
		{"swagger", `"in": "formData", "collectionFormat": "pipes", ` + swaggerList, "", "",
			`{"description":"Ids. A list, as pipes.","type":"string"}`},
		{"swagger", `"in": "formData", "collectionFormat": "multi", ` + swaggerList, "", "",
			`{"description":"Ids.","items":{"type":"string"},"type":"array"}`},
	} {
		path := "/a"
		if test.path != "" {
			path = "/a/{l}"
		}
		m, _, err := Derive([]byte(`{"`+test.version+`": "`+map[string]string{"openapi": "3.0.0", "swagger": "2.0"}[test.version]+
			`", "host": "a.test", `+server+` "components": {"schemas": {"N": {"type": "integer", "default": 3}}}, "paths": {"`+
			path+`": {"post": {"parameters": [{"name": "l", `+test.parameter+`}]}}}}`), Options{})
		if err != nil {
			t.Fatalf("%s: %v", test.parameter, err)
		}
		b, params, style := m.Tools[0].HTTP, string(m.Tools[0].Params), ""
		for _, p := range slices.Concat(b.Query, b.Header, b.Cookie) {
			style = p.Style
		}
		if b.Path != cmp.Or(test.path, path) || style != test.style || !strings.Contains(params, test.property) {
			t.Errorf("%s: %s, %s, %s; want %s", test.parameter, b.Path, style, params, test.property)
		}
	}
}

// TestPaths checks that parameters of the path are those in its braces, whatever the document says about them.
func TestPaths(t *testing.T) {
	for _, test := range []struct{ path, parameter, want string }{
		{"/a/{user id}", "user id", "/a/{user-id}"},
		{"/a/{id}", "other", "/a/{id}"},
		{"/a/{Id}", "id", "/a/{Id}"},
		{"/a/{proxy+}", "proxy+", "/a/{proxy}"},
		{"/a/{path*}", "path*", "/a/{path}"},
		{"/a/{.ext}", "other", "/a/{ext}"},
		{"/a/{x}{y}.json", "y", "/a/{x}{y}.json"},
	} {
		m, _, err := Derive([]byte(strings.Replace(minimal(server, `"parameters": [{"name": "`+test.parameter+
			`", "in": "path", "required": true, "schema": {"type": "string"}}]`), `"/a"`, `"`+test.path+`"`, 1)), Options{})
		if err != nil || m.Tools[0].HTTP.Path != test.want {
			t.Errorf("%s with %s: %v; want %s", test.path, test.parameter, err, test.want)
		}
	}
}

// TestDefinitions checks the names of definitions: each has its own, and none reads like an order.
func TestDefinitions(t *testing.T) {
	var refs, schemas []string
	for _, name := range []string{"x-2", "x", "X", "x-3", "ChaseNoteModel", "конь"} {
		refs = append(refs, `"`+name+`": {"$ref": "#/components/schemas/`+name+`"}`)
		schemas = append(schemas, `"`+name+`": {"type": "object", "properties": {"a": {"type": "string"}}}`)
	}
	m, _, err := Derive([]byte(minimal(server+`"components": {"schemas": {`+strings.Join(schemas, ",")+`}},`, `"requestBody":
		{"content": {"application/json": {"schema": {"type": "object", "properties": {`+strings.Join(refs, ",")+`}}}}}`)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var params struct {
		Defs map[string]any `json:"$defs"`
	}
	err = json.Unmarshal(m.Tools[0].Params, &params)
	if got := strings.Join(slices.Sorted(maps.Keys(params.Defs)), " "); got != "part part-2 x x-2 x-2-2 x-3" {
		t.Errorf("%v, %s", err, got)
	}
}

func TestAuth(t *testing.T) {
	for auth, want := range map[string]string{
		"none": "", "bearer": "Authorization: Bearer {secret}", "basic": "Authorization: Basic {secret:basic}",
		"header:X-Key": "X-Key: {secret}", "query:key": "?key", "oauth:https://login.test": "Authorization: Bearer {secret}",
	} {
		m, _, err := Derive([]byte(minimal(server, "")), Options{Auth: auth})
		if err != nil {
			t.Fatalf("%s: %v", auth, err)
		}
		got := ""
		for _, s := range m.Capabilities.Secrets {
			if got = s.Header; s.Query != "" {
				got = "?" + s.Query
			}
		}
		if got != want {
			t.Errorf("--auth %s asks for %q, want %q", auth, got, want)
		}
	}
}

// TestOwnServers checks where the requests of operations with a server of their own go.
func TestOwnServers(t *testing.T) {
	for own, want := range map[string]string{
		"https://files.test/up/": "https://files.test/up", "http://old.test": "http://old.test", "/v2": "https://a.test/v2",
		"https://a.test": "", "http://127.0.0.1:80": "left out", "https://{region}.test": "left out",
		"ftp://a.test": "left out", "http://0x7f.1": "left out", "https://b.test?tenant=7": "left out",
	} {
		document := minimal(server, `"servers": [{"url": "`+own+`"}, {"url": "https://b.test"}]`)
		document = strings.Replace(document, `"paths": {`, `"paths": {"/b": {"get": {}},`, 1)
		m, report, err := Derive([]byte(document), Options{})
		if err != nil {
			t.Fatalf("%s: %v", own, err)
		}
		got := m.Tools[0].HTTP.Base
		if len(report.LeftOut) > 0 && strings.Contains(report.LeftOut[0].Reason, own) {
			got = "left out"
		}
		if got != want {
			t.Errorf("%s: %q, %v; want %q", own, got, report.LeftOut, want)
		}
	}
}

// TestFormLists checks that the lists of a form are in brackets where the document says so.
func TestFormLists(t *testing.T) {
	for media, want := range map[string]map[string]string{
		"application/x-www-form-urlencoded": {"a": "a[]", "b": "b[]"},
		"multipart/form-data":               {"a": "a[]", "b": "b[]", "o": "o[]"},
	} {
		m, _, err := Derive([]byte(minimal(server, `"requestBody": {"content": {"`+media+`": {
			"schema": {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}, "o": {"type": "object"},
				"b": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string", "enum": [""]}]},
				"s": {"type": "string"}, "plain": {"type": "array", "items": {"type": "string"}}}},
			"encoding": {"a": {"style": "deepObject"}, "o": {"style": "deepObject"}, "b": {"style": "deepObject"},
				"s": {"style": "deepObject"}}}}}`)), Options{})
		if err != nil || !maps.Equal(m.Tools[0].HTTP.As, want) {
			t.Errorf("%s: %v, %+v", media, err, m.Tools[0].HTTP)
		}
	}
}

// TestEncodings checks that a list which a form has in one value is a text: a form repeats the name of a list.
func TestEncodings(t *testing.T) {
	for _, test := range []struct{ encoding, want string }{
		{`"explode": false`, "A list, as csv."}, {`"style": "form", "explode": false`, "A list, as csv."},
		{`"style": "spaceDelimited"`, "A list, as ssv."}, {`"style": "pipeDelimited", "explode": false`, "A list, as pipes."},
		{`"style": "form"`, ""}, {`"explode": true`, ""}, {`"style": "pipeDelimited", "explode": true`, ""},
		{`"style": "deepObject", "explode": false`, ""}, {`"contentType": "text/plain"`, ""},
	} {
		m, _, err := Derive([]byte(minimal(server, `"requestBody": {"content": {"application/x-www-form-urlencoded": {"schema":
			{"type": "object", "properties": {"p": {"type": "array", "items": {"type": "string"}}, "o": {"type": "object"}}},
			"encoding": {"p": {`+test.encoding+`}, "o": {"explode": false}}}}}`)), Options{})
		if err != nil || !strings.Contains(string(m.Tools[0].Params), test.want) ||
			strings.Contains(string(m.Tools[0].Params), `"p":{"items"`) != (test.want == "") {
			t.Errorf("%s: %v, %s; want %q", test.encoding, err, m.Tools[0].Params, test.want)
		}
	}
}

// TestValues checks which values of a property are valid, as its schema is taken over.
func TestValues(t *testing.T) {
	for _, test := range []struct{ schema, want string }{
		{`"type": "string", "nullable": true, "enum": ["a"]`, `{"enum":["a",null],"type":["string","null"]}`},
		{`"allOf": [{"$ref": "#/components/schemas/o"}], "nullable": true, "description": "An o."`,
			`{"anyOf":[{"allOf":[{"$ref":"#/$defs/o"}]},{"type":"null"}],"description":"An o."}`},
		{`"type": "object", "allOf": [{"$ref": "#/components/schemas/o"}], "x-nullable": true`,
			`{"anyOf":[{"allOf":[{"$ref":"#/$defs/o"}],"type":"object"},{"type":"null"}]}`},
		{`"oneOf": [{"type": "string"}, {"type": "integer"}], "nullable": true`,
			`{"anyOf":[{"anyOf":[{"type":"string"},{"type":"integer"}]},{"type":"null"}]}`},
		{`"type": "string", "enum": [1.10, "1.2", 3]`, `{"enum":["1.10","1.2","3"],"type":"string"}`},
		{`"type": "number", "enum": [1.10, 3]`, `{"enum":[1.10,3],"type":"number"}`},
	} {
		m, _, err := Derive([]byte(minimal(server+`"components": {"schemas": {"o": {"type": "object", "properties": {"a":
			{"type": "string"}}}}},`, `"requestBody": {"content": {"application/json": {"schema": {"type": "object",
			"properties": {"p": {`+test.schema+`}, "q": {"type": "string"}}}}}}`)), Options{})
		if err != nil || !strings.Contains(string(m.Tools[0].Params), `"p":`+test.want+`,"q"`) {
			t.Errorf("%s: %v, %s; want %s", test.schema, err, m.Tools[0].Params, test.want)
		}
	}
}

// TestAlternatives checks which ways to authenticate are used: what operations need, and of a choice one.
func TestAlternatives(t *testing.T) {
	const schemes = `"components": {"securitySchemes": {"h": {"type": "apiKey", "in": "header", "name": "X-H"},
		"q": {"type": "apiKey", "in": "query", "name": "q"}, "s": {"type": "apiKey", "in": "query", "name": "s"},
		"c": {"type": "apiKey", "in": "cookie", "name": "c"}, "b": {"type": "http", "scheme": "bearer"}}},`
	for _, test := range []struct{ root, own, want string }{
		{`[{"h": []}, {"q": []}]`, "", "X-H"},
		{`[{"q": []}, {"h": []}]`, "", "?q"},
		{`[{"q": [], "s": []}]`, "", "?q ?s"},
		{`[{"h": []}, {"q": [], "s": []}]`, `[{"q": [], "s": []}]`, "?q ?s"}, // the operation does not have the first
		{`[{}, {"h": []}]`, "", "X-H"},
		{`[{"c": []}, {"h": []}]`, "", "X-H"},
		{`[{"c": [], "h": []}, {"q": []}]`, "", "?q"},
		{`[{"unknown": []}, {"q": []}]`, "", "?q"},
		{`[{"h": []}, {"q": []}]`, `[]`, "Authorization X-H ?q ?s"}, // no operation says what it needs
		{`[{"c": []}]`, "", "Authorization X-H ?q ?s"},
		{`"odd"`, `[7, {"b": []}]`, "Authorization"},
	} {
		own := ""
		if test.own != "" {
			own = `"security": ` + test.own
		}
		m, _, err := Derive([]byte(minimal(server+schemes+`"security": `+test.root+`,`, own)), Options{})
		if err != nil {
			t.Errorf("%v: %v", test, err)
			continue
		}
		var got []string
		for _, s := range m.Capabilities.Secrets {
			header, _, _ := strings.Cut(s.Header, ":")
			got = append(got, header+map[bool]string{true: "?" + s.Query}[s.Query != ""])
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%v: %q", test, got)
		}
	}
}

// TestHeaders checks that no parameter is a header which the host sets itself, or which cannot be sent.
func TestHeaders(t *testing.T) {
	var given []string
	for _, name := range []string{"Accept", "Accept-Encoding", "TE", "Proxy-Foo", "Bad Name", "Näme", "Host", "If-Match",
		"Test"} {
		given = append(given, fmt.Sprintf(`{"name": %q, "in": "header", "required": true}`, name))
	}
	m, _, err := Derive([]byte(minimal(server, `"parameters": [`+strings.Join(given, ",")+`]`)), Options{})
	if err != nil || !slices.Equal(m.Tools[0].HTTP.Header, []manifest.Placed{{Name: "if-match"}, {Name: "test"}}) {
		t.Errorf("%v, %+v", err, m.Tools[0].HTTP)
	}
}

func TestEffects(t *testing.T) {
	for _, test := range []struct{ method, tag, id, path, want string }{
		{"GET", "t", "listTokens", "/tokens", "read"},
		{"GET", "t", "deleteToken", "/tokens/delete", "destructive"},
		{"GET", "t", "listToDelete", "/tokens", "read"},
		{"POST", "t", "addToken", "/tokens", "write"},
		{"POST", "revoke", "tokens.revoke", "/revoke", "destructive"},
		{"POST", "purge", "", "/caches/purge", "destructive"},
		{"PUT", "", "", "/revoke", "destructive"},
		{"POST", "delete", "deleteUser", "/d", "destructive"},
		{"POST", "archive", "createArchiveEntry", "/archive/entries", "write"},
		{"DELETE", "", "", "/", "destructive"},
	} {
		o := &operation{test.method, test.path, object{"operationId": test.id, "tags": []any{test.tag}}, nil}
		name, _ := newNames(nil).tool(o)
		if got := effect(o, name); got != test.want {
			t.Errorf("%+v, named %s: %s", test, name, got)
		}
	}
}

// TestConsumes checks in which media type the body of Swagger 2 is sent.
func TestConsumes(t *testing.T) {
	for consumes, want := range map[string]string{
		"": "json", `"*/*"`: "json", `"text/csv"`: "raw:text/csv", `"text/xml", "application/json"`: "json",
		`"application/json-patch+json", "application/merge-patch+json"`: "raw:application/merge-patch+json",
	} {
		for _, format := range []string{`{%s, "paths": {"/a": {"put": {%s}}}}`, `{%s, %s, "paths": {"/a": {"put": {%s}}}}`} {
			args := []any{`"swagger": "2.0", "host": "a.test"`, `"consumes": [` + consumes + `]`,
				`"parameters": [{"name": "x", "in": "body", "schema": {"type": "object"}}]`}
			if strings.Count(format, "%s") == 2 { // of the operation
				args = []any{args[0], args[1].(string) + "," + args[2].(string)}
			}
			m, _, err := Derive([]byte(fmt.Sprintf(format, args...)), Options{})
			if err != nil || m.Tools[0].HTTP.Body != want {
				t.Errorf("%s: %v, %+v; want %s", consumes, err, m.Tools[0].HTTP, want)
			}
		}
	}
}

// FuzzDerive checks that Derive ends in a valid manifest or in an error, whatever the document is.
func FuzzDerive(f *testing.F) {
	for _, name := range []string{"orders.yaml", "files.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(minimal(server, `"parameters": [{"name": "a b", "in": "query", "schema": {"enum": [null, 1, "x"]}}]`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, report, err := Derive(data, Options{Server: "https://a.test"})
		if err != nil {
			return
		}
		if len(m.Tools) != report.Tools || report.Tools+len(report.LeftOut) != report.Operations {
			t.Errorf("%d tools, %d left out, of %d operations", len(m.Tools), len(report.LeftOut), report.Operations)
		}
		if slices.ContainsFunc(m.Tools, func(t manifest.Tool) bool { return t.HTTP == nil }) {
			t.Error("a tool has no request")
		}
	})
}

// TestCarriedSecrets checks which secrets the requests of an operation carry: what its own security requirements or the
// document's name, and nothing where they require nothing.
func TestCarriedSecrets(t *testing.T) {
	const schemes = `"components": {"securitySchemes": {"h": {"type": "apiKey", "in": "header", "name": "X-H"},
		"q": {"type": "apiKey", "in": "query", "name": "q"}, "c": {"type": "apiKey", "in": "cookie", "name": "c"}}},`
	for _, test := range []struct{ root, other, own, auth, want string }{
		{`[{"h": []}]`, `[{"q": []}]`, `[]`, "", "[]"},
		{`[{"h": []}]`, `[{"q": []}]`, `[{}]`, "", "[]"},
		{`[{"h": []}]`, `[{"q": []}]`, ``, "", "[ITEMS_X_H]"},
		{`[{"h": []}]`, `[{"q": []}]`, `[{}, {"q": []}]`, "", "all"},
		{`[{"h": []}]`, `[{"q": []}]`, `[{"c": []}, {"q": []}]`, "", "all"},
		{`[{"h": []}]`, `[{"q": []}]`, `[{"h": [], "q": []}]`, "", "all"},
		{`[{"h": []}]`, `[{"q": []}]`, `[{"c": []}]`, "", "all"}, // it is not known what else the server takes
		{`[{"h": []}]`, `[{"h": []}]`, ``, "", "all"},
		{`[]`, `[{"h": []}]`, ``, "", "[]"},
		{``, `[{"h": []}]`, ``, "", "all"},
		{`[{"h": []}]`, `[{"q": []}]`, `[]`, "bearer", "[]"},
		{`[{"h": []}]`, `[{"q": []}]`, `[{"q": []}]`, "bearer", "all"},
	} {
		stated := func(security, after string) string {
			return map[bool]string{true: `"security": ` + security + after}[security != ""]
		}
		doc := minimal(server+schemes+stated(test.root, ","), stated(test.own, ""))
		doc = strings.Replace(doc, `"paths": {`, `"paths": {"/other": {"get": {`+stated(test.other, ",")+
			`"operationId": "other", "responses": {}}},`, 1)
		m, _, err := Derive([]byte(doc), Options{Name: "items", Auth: test.auth})
		if err != nil {
			t.Errorf("%v: %v", test, err)
			continue
		}
		i := slices.IndexFunc(m.Tools, func(t manifest.Tool) bool { return t.HTTP.Path != "/other" })
		got := "all"
		if of := m.Tools[i].HTTP.Secrets; of != nil {
			got = fmt.Sprint(of)
		}
		if got != test.want {
			t.Errorf("%v: the request carries %s", test, got)
		}
	}
}
