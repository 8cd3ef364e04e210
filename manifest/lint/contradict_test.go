package lint

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest"
)

// described is a manifest of two tools whose first has a parameter with a schema and a description, beside others.
func described(t *testing.T, name, schema, description, standard string) *manifest.Manifest {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		t.Fatalf("%v in %s", err, schema)
	}
	s["description"] = description
	required := []string{"query"}
	if s["required"] == true {
		required = append(required, name)
		delete(s, "required")
	}
	params, err := json.Marshal(map[string]any{"type": "object", "required": required, "properties": map[string]any{
		"query": map[string]any{"type": "string"}, "page_token": map[string]any{"type": "string"}, name: s}})
	if err != nil {
		t.Fatal(err)
	}
	old := manifest.Tool{Name: "find_records", Docs: manifest.Docs{Brief: "Find"}, Params: []byte(`{"properties":{"status":{}}}`),
		Deprecated: &manifest.Deprecated{Use: "search_records"}}
	return &manifest.Manifest{Name: "shop", Tools: []manifest.Tool{
		{Name: "search_records", Docs: manifest.Docs{Brief: "Search", Standard: standard}, Params: params},
		{Name: "list_orders", Params: []byte(`{"properties":{"status":{}}}`)}, old,
		{Name: "list_stock", Docs: manifest.Docs{Brief: "DEPRECATED: Use list_orders instead."}, Params: []byte(`{}`)}}}
}

// TestContradictions has a parameter with what its description says, and what the schema denies of it: "" for nothing.
func TestContradictions(t *testing.T) {
	const (
		count, wait, word = `{"type":"integer","minimum":1,"maximum":100,"default":20}`, `{"type":"integer","maximum":60000}`,
			`{"type":"string","minLength":2,"maxLength":40}`
		tags, sort = `{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":5}`, `{"type":"string","enum":["asc","desc","none"],"default":"asc"}`
	)
	for _, c := range []struct{ name, schema, says, denied, instead string }{
		{"limit", count, "Number of results, up to 500.", "up to 500", "up to 100"},
		{"limit", count, "How many to return (max 250).", "max 250", "max 100"},
		{"limit", count, "How many to return, 1-50.", "1-50", "1-100"},
		{"limit", count, "Between 1 and 1,000 results.", "1 and 1,000", "1 and 100"},
		{"limit", count, "At least 10.", "At least 10", "At least 1"},
		{"limit", count, "How many. Must not exceed 200.", "not exceed 200", "not exceed 100"},
		{"limit", count, "Page size; 500 or less.", "500 or less", "100 or less"},
		{"limit", count, "How many, counted starting at 0.", "starting at 0", "starting at 1"},
		{"limit", count, "How many. Can be raised to 500 if needed.", "raised to 500", "raised to 100"},
		{"limit", count, "How many. Values above 100 are refused.", "", ""},
		{"limit", count, "How many. Omit it for 50.", "Omit it for 50", "Omit it for 20"},
		{"limit", count, "How many. Without it, 20 is used.", "", ""},
		{"sort", sort, "Order. Without it, desc is used.", "Without it, desc is used", "Without it, asc is used"},
		{"limit", count, "How many, 1 to 100.", "", ""},
		{"sort", sort, "Order. Leave it out and desc is used.", "Leave it out and desc is used",
			"Leave it out and asc is used"},
		{"a", `{"type":"number","required":true}`, "A summand. Can be omitted, zero is assumed.", "Can be omitted", ""},
		{"title", `{"type":"string","required":true}`, "Title. If missing, the first line is used.", "If missing", ""},
		{"limit", count, "How many, up to 100; with a key up to 500.", "", ""},
		{"limit", count, "How many of at most 5 MB each.", "", ""},
		{"limit", count, "Defaults to 50.", "Defaults to 50", "Defaults to 20"},
		{"limit", count, "How many (default: 10).", "default: 10", "default: 20"},
		{"limit", count, "How many. The default is 20.", "", ""},
		{"limit", count, "Returns 30 items by default.", "30 items by default", "20 items by default"},
		{"limit", count, "How many, e.g. 250.", "e.g. 250", ""},
		{"limit", count, "How many, e.g. 25.", "", ""},
		{"timeout_ms", wait, "How long to wait, in seconds.", "in seconds", "in milliseconds"},
		{"timeout_ms", wait, "How long to wait, in ms.", "", ""},
		{"timeout_ms", wait, "How long to wait, at most 2 minutes.", "at most 2", "at most 1"},
		{"timeout_ms", wait, "How long to wait, at most 60 seconds.", "", ""},
		{"timeout", wait, "How long to wait, up to 5 minutes.", "", ""},
		{"temperature_celsius", `{"type":"number"}`, "Target in Fahrenheit.", "in Fahrenheit", "in celsius"},
		{"width_px", `{"type":"integer"}`, "Width of the picture in centimeters.", "in centimeters", "in pixels"},
		{"name", word, "Name, up to 256 characters.", "up to 256", "up to 40"},
		{"name", word, "Name, at least three characters.", "at least three", "at least 2"},
		{"name", word, "Name of up to 5 people.", "", ""},
		{"code", `{"type":"string","pattern":"^[A-Z]{3}$"}`, "Exactly 4 letters.", "Exactly 4", "Exactly 3"},
		{"code", `{"type":"string","pattern":"^[A-Z]{3}$"}`, "Currency, such as \"usd\".", "such as \"usd\"", ""},
		{"code", `{"type":"string","pattern":"^[A-Z]{3}$"}`, "Currency, such as \"USD\".", "", ""},
		{"tags", tags, "Up to 10 tags.", "Up to 10", "Up to 5"},
		{"tags", tags, "Tags of up to 30 characters.", "", ""},
		{"sort", sort, "One of asc, desc or random.", "One of asc, desc or random", "One of asc, desc, none"},
		{"sort", sort, "Order: `asc`, `random` or `desc`.", "`asc`, `random` or `desc`", "asc, desc, none"},
		{"sort", sort, "Use \"asc\" or \"newest\".", "\"asc\" or \"newest\"", "asc, desc, none"},
		{"sort", sort, "Order, 'asc' or 'desc'.", "", ""},
		{"sort", sort, "Order: asc, desc, etc.", "", ""},
		{"sort", sort, "Sorted by asc, desc or size", "asc, desc or size", "asc, desc, none"},
		{"sort", sort, "Use \"newest\" for the latest.", "Use \"newest\"", ""},
		{"sort", sort, "Ignored if `page_token` is set to `now`.", "", ""},
		{"limit", count, "How many, 0-based.", "0-based", "1-based"},
		{"sort", sort, "Either ascending or descending by `page_token`.", "", ""},
		{"sort", sort, "Order; defaults to desc.", "defaults to desc", "defaults to asc"},
		{"sort", sort, "Order; the default is to keep it.", "", ""},
		{"deep", `{"type":"boolean","default":false}`, "Whether to go on below; true by default.", "true by default", "false by default"},
		{"day", `{"type":"string","format":"date-time"}`, "Day as YYYY-MM-DD.", "YYYY-MM-DD", "ISO 8601 date-time"},
		{"day", `{"type":"string","format":"date"}`, "When, as an RFC 3339 timestamp.", "RFC 3339", "YYYY-MM-DD"},
		{"day", `{"type":"string","format":"date"}`, "Day, ISO 8601.", "", ""},
		{"day", `{"type":"string","format":"date"}`, "Day, as MM/DD/YYYY.", "MM/DD/YYYY", "YYYY-MM-DD"},
		{"day", `{"type":"string","format":"date-time"}`, "Start. In the form MM/DD/YYYY HH:MM.", "MM/DD/YYYY HH:MM", "ISO 8601 date-time"},
		{"day", `{"type":"integer"}`, "When, as an ISO 8601 date.", "ISO 8601 date", ""},
		{"day", `{"type":"integer"}`, "When, as a Unix timestamp.", "", ""},
		{"user", `{"type":"string","format":"uuid"}`, "Email address of the user.", "Email address", "UUID"},
		{"user", `{"type":"string","format":"email"}`, "Must be a valid UUID.", "UUID", "email address"},
		{"user", `{"type":"string","format":"uuid"}`, "User of the URL that is watched.", "", ""},
		{"link", `{"type":"string","format":"email"}`, "A URL to send to.", "A URL", "email address"},
		{"city", `{"type":"string"}`, "Required. Name of the city.", "Required", ""},
		{"city", `{"type":"string","required":true}`, "City (optional).", "(optional)", ""},
		{"city", `{"type":"string","required":true}`, "City. If omitted, the nearest one.", "If omitted", ""},
		{"city", `{"type":"string"}`, "City; must always be given.", "must always be given", ""},
		{"city", `{"type":"string"}`, "City. Must not be empty or missing.", "Must not be empty or missing", ""},
		{"city", `{"type":"string","required":true}`, "The city can be skipped.", "can be skipped", ""},
		{"city", `{"type":"string"}`, "Required if there is no query.", "", ""},
		{"city", `{"type":"string"}`, "Combined with the `country` parameter.", "`country` parameter", ""},
		{"city", `{"type":"string"}`, "Set the field `country`, too.", "field `country`", ""},
		{"city", `{"type":"string"}`, "Goes on with the page_tokn argument.", "page_tokn argument", "page_token argument"},
		{"city", `{"type":"string"}`, "Set `all` for all of them.", "", ""},
		{"city", `{"type":"string"}`, "An id that `list_cities` finds; see `list_cities`.", "see `list_cities`", ""},
		{"city", `{"type":"string"}`, "One of those that list_orders has; see `list_orders`.", "", ""},
		{"city", `{"type":"string"}`, "With the `status` parameter of `list_orders`.", "", ""},
		{"city", `{"type":"string"}`, "Used with country_code.", "Used with country_code", ""},
		{"city", `{"type":"string"}`, "City, only for an optional CITY_API_KEY.", "", ""},
		{"city", `{"type":"string"}`, "The number of items; no effect if `country` is given.", "", ""},
		{"city", `{"type":"string"}`, "City, as returned by list_cities.", "returned by list_cities", ""},
		{"city", `{"type":"string","required":true}`, "Leave empty for all cities.", "Leave empty for all cities", ""},
		{"limit", count, "How many; use 0 for all.", "use 0 for all", ""},
		{"limit", count, "How many. Unlimited if 0.", "Unlimited if 0", ""},
		{"limit", count, "10 per page by default.", "10 per page by default", "20 per page by default"},
		{"limit", count, "How many at most (max. 500).", "max. 500", "max. 100"},
		{"limit", count, "How many; anything over 500 is refused.", "anything over 500", "anything over 100"},
		{"limit", count, "Max page size is 50.", "Max page size is 50", "Max page size is 100"},
		{"name", word, "Max length 200.", "Max length 200", "Max length 40"},
		{"sort", sort, "Order: asc, none or desc (default).", "desc (default)", "asc (default)"},
		{"sort", sort, "Order: asc (default), none or desc.", "", ""},
		{"sort", sort, "One of: newest|oldest", "One of: newest|oldest", "One of: asc, desc, none"},
		{"sort", sort, "Order, e.g. newest", "e.g. newest", ""},
		{"sort", sort, "Order, for example newest before oldest.", "", ""},
		{"day", `{"type":"string","format":"date"}`, "Day, e.g. 2024/05/01.", "e.g. 2024/05/01", ""},
		{"day", `{"type":"string","format":"date"}`, "Day, such as \"today\".", "such as \"today\"", ""},
		{"day", `{"type":"string","format":"date"}`, "Day, e.g. \"2024-05-01\".", "", ""},
		{"day", `{"type":"string","format":"date"}`, "Unix seconds of the day.", "Unix seconds", "YYYY-MM-DD"},
		{"code", `{"type":"string","pattern":"^[A-Z]{3}-[0-9]+$"}`, "Code, for example abc_123", "for example abc_123", ""},
		{"limit", count, "Number of results, up to five hundred.", "up to five hundred", "up to 100"},
		{"limit", `{"type":"integer","maximum":10000}`, "Rows, up to 50k.", "up to 50k", "up to 10000"},
		{"limit", `{"type":"integer","maximum":10000}`, "Rows, at most 10k.", "", ""},
		{"limit", count, "How many. 500 is plenty.", "500 is plenty", ""},
		{"limit", count, "How many. More than 0.", "", ""},
		{"limit", count, "How many. With 200 requests per minute, fewer are better.", "", ""},
		{"limit", `{"type":"integer","minimum":0}`, "Negative values count from the end.", "Negative values count from the end", ""},
		{"level", `{"type":"integer","maximum":3}`, "Between 0 (quiet) and 5 (all).", "0 (quiet) and 5", "0 (quiet) and 3"},
		{"price_cents", `{"type":"integer"}`, "Price in dollars.", "in dollars", "in cents"},
		{"limit", count, "How many; 50 unless you say otherwise.", "50 unless you", "20 unless you"},
		{"limit", count, "How many; 20 unless you say otherwise, 50 at night.", "", ""},
		{"deep", `{"type":"boolean","default":true}`, "Go on below; off unless given.", "off unless given", "true unless given"},
		{"deep", `{"type":"boolean"}`, "Go on below, \"yes\" or \"no\".", "\"yes\" or \"no\"", "true or false"},
		{"sort", sort, "Order. With 'newest' the latest come first.", "", ""},
		{"sort", sort, "Order. Take 'newest' to see the latest.", "Take 'newest' to see the latest", ""},
		{"sort", sort, "Order. If the user says 'newest', take desc.", "", ""},
		{"sort", sort, "Order. Set sort to newest for all.", "Set sort to newest for", ""},
		{"tags", tags, "Comma-separated list of tags.", "Comma-separated list", "array"},
		{"code", `{"type":"string","pattern":"^[A-Z]{3}$"}`, "Currency; 'EURO' is one.", "'EURO' is one", ""},
		{"code", `{"type":"string","pattern":"^[A-Z]{3}$"}`, "Currency, without the prefix 'x-'.", "", ""},
		{"user", `{"type":"string","format":"uuid"}`, "User, such as 10442.", "such as 10442", ""},
		{"user", `{"type":"string","format":"email"}`, "The user's phone number.", "The user's phone number", "email address"},
		{"city", `{"type":"string","required":true}`, "You can skip it.", "You can skip it", ""},
		{"city", `{"type":"string","required":true}`, "Leave it out to get all.", "Leave it out to get all", ""},
		{"timeout_ms", wait, "How long to wait; unit: seconds.", "unit: seconds", "unit: milliseconds"},
		{"timeout_ms", wait, "How many seconds to wait.", "How many seconds", "How many milliseconds"},
		{"timeout_ms", wait, "How long to wait. Seconds are meant.", "Seconds are meant", "milliseconds are meant"},
		{"city", `{"type":"string"}`, "City. It has to be given.", "It has to be given", ""},
		{"city", `{"type":"string"}`, "City. Do not leave it out.", "Do not leave it out", ""},
		{"city", `{"type":"string"}`, "City. No call works without it.", "No call works without it", ""},
		{"city", `{"type":"string"}`, "City. Must be given as a name.", "", ""},
		{"city", `{"type":"string"}`, "City. Do not leave it out if there is no query.", "", ""},
		{"tags", tags, "You can pass 100 of them in one go.", "100 of them in one go", "5 of them in one go"},
		{"tags", tags, "You can pass 5 of them in one go.", "", ""},
		{"tags", `{"type":"array","items":{"type":"string","pattern":"^[a-z]+$"}}`, "Labels, like [\"Beach 2024\"].", "like [\"Beach 2024\"]", ""},
		{"tags", `{"type":"array","items":{"type":"string","pattern":"^[a-z]+$"}}`, "Labels, like [\"beach\"].", "", ""},
		{"angle_deg", `{"type":"number"}`, "How far to turn, in radians.", "in radians", "in degrees"},
		{"level", `{"type":"integer","enum":[1,2,3]}`, "1 is urgent, 2 normal, 4 someday.", "1 is urgent, 2 normal, 4 someday", ""},
		{"level", `{"type":"integer","enum":[1,2,3]}`, "1 is urgent, 3 someday.", "", ""},
		{"phone", `{"type":"string","pattern":"^\\+[0-9]{7,15}$"}`, "The number, digits only.", "digits only", ""},
		{"phone", `{"type":"string","pattern":"^[0-9]{7,15}$"}`, "The number, digits only.", "", ""},
		{"plate", `{"type":"string","pattern":"^[A-Z]{2}-[0-9]+$"}`, "What it says, in lower case.", "in lower case", ""},
		{"city", `{"type":"string"}`, "City. Its end is set by `until`.", "set by `until`", ""},
		{"city", `{"type":"string"}`, "The code that find_cities returns.", "that find_cities returns", ""},
		{"city", `{"type":"string"}`, "The code that list_orders returns.", "", ""},
	} {
		m := described(t, c.name, c.schema, c.says, "")
		found := Contradictions(m, &m.Tools[0])
		got := strings.Join(saysOf(found), "; ")
		if got != c.denied || len(found) == 1 && found[0].Instead != c.instead {
			t.Errorf("%s %s: %q\ngot  %v\nwant %q => %q", c.name, c.schema, c.says, found, c.denied, c.instead)
		}
	}
}

func saysOf(found []Contradiction) (list []string) {
	for _, c := range found {
		list = append(list, c.Said)
	}
	return list
}

// TestContradictionsOfTools has sentences about a tool.
func TestContradictionsOfTools(t *testing.T) {
	const limit = `{"type":"integer","minimum":1,"maximum":100,"default":20}`
	for _, c := range []struct{ says, denied string }{
		{"Finds records. Returns up to 500 results per call.", "up to 500"},
		{"Finds records. Returns up to 100 results per call.", ""},
		{"Finds records. Both query and page_token must be provided.", "Both query and page_token must be provided"},
		{"Finds records. If a page is due, both query and page_token must be provided.", ""},
		{"Finds records. Pass the owner's key as user_id together with a query.", "Pass the owner's key as user_id"},
		{"Finds records. `limit` defaults to 50.", "defaults to 50"},
		{"Finds records. The limit can be up to 1000.", "up to 1000"},
		{"Finds records; limit (max 500) bounds them.", "max 500"},
		{"Finds records. Needs `query`. At most 30 requests per minute.", ""},
		{"Finds records. `query` is optional.", "`query` is optional"},
		{"Finds records. `limit` is required.", "`limit` is required"},
		{"Finds records. Pass `country` to filter.", "Pass `country`"},
		{"Finds records. The response has a `country` field.", ""},
		{"Finds records. Use `query` with \"country\" in it.", ""},
		{"Call `get_catalog` first.", "Call `get_catalog`"},
		{"Use the frob_list tool for a list.", "Use the frob_list tool"},
		{"Use the frob_list tool for a list. frob_list is fast.", "Use the frob_list tool"},
		{"Use list_orders for orders.", ""},
		{"Deprecated: use `find_records` instead.", "use `find_records`"},
		{"To look for orders, use `list_orders`.", ""},
		{"For stock use `list_stock`.", "use `list_stock`"},
		{"Finds records. All parameters are optional.", "All parameters are optional"},
		{"Finds records. All other parameters are optional.", ""},
		{"Finds records. Replaced by find_all_records.", "Replaced by find_all_records"},
		{"Finds records. When show_deleted is set, also deleted ones.", "show_deleted is set"},
		{"Finds records. Returns up to 500 orders per page.", "up to 500"},
		{"Finds records. Example: {\"query\": \"x\", \"limit\": 500}", "Example: {\"query\": \"x\", \"limit\": 500}"},
		{"Finds records. Example: {\"query\": \"x\", \"count\": 5}", "Example: {\"query\": \"x\", \"count\": 5}"},
		{"Finds records. Example: {\"query\": \"x\", \"limit\": 5}", ""},
		{"Finds records. Returns, for example: {\"id\": 1, \"name\": \"x\"}", ""},
		{"Call it as search_records(query=\"x\", count=5).", "search_records(query=\"x\", count="},
		{"Finds records. Only the limit is required.", "Only the limit is required"},
		{"Finds records. Only the query is required.", ""},
		{"Finds records. Takes no parameters.", "Takes no parameters"},
		{"Finds records. Use `max_width` to set the width.", "Use `max_width` to"},
		{"Finds records. Set showDeleted to true for all.", "Set showDeleted to true"},
		{"Finds records. Do not combine `query` with `country`.", "combine `query` with `country`"},
		{"Finds records. Each entry of the list has `id` and optional `score`. When `score` is present, use it.", ""},
		{"Finds records. When `score` is present, use it.", "`score` is present"},
		{"Finds records. Pass arXiv ids of papers in query.", ""},
		{"Finds records. A healthy list mostly returns `new: 0` and few results.", ""},
	} {
		m := described(t, "limit", limit, "", c.says)
		if got := strings.Join(saysOf(Contradictions(m, &m.Tools[0])), "; "); got != c.denied {
			t.Errorf("%q: got %q, want %q", c.says, got, c.denied)
		}
	}
}

// TestMisleading has what calls failed by, and texts without the sentences that misled their callers.
func TestMisleading(t *testing.T) {
	const (
		code = `{"type":"string","pattern":"^[a-z]{2}-[0-9]{4}$"}`
		mode = `{"type":"string","enum":["fast","deep"]}`
		size = `{"type":"integer","maximum":100}`
	)
	failed := func(keyword string, values ...string) *Evidence {
		return &Evidence{Failed: map[string][]string{"it": {keyword}}, Refused: map[string][]string{"it": values}}
	}
	named := func(name, meant string) *Evidence { return &Evidence{Names: map[string]string{name: meant}} }
	for _, c := range []struct {
		schema, says string
		e            *Evidence
		want         string
	}{
		{size, "How many. Some callers take 500.", failed("maximum"), "How many."},
		{size, "How many. Most callers take 50.", failed("maximum"), "How many. Most callers take 50."},
		{size, "How many. Some callers take 500.", named("other", ""), "How many."},
		{mode, "How. Think of quick as the usual one.", failed("enum", "quick"), "How."},
		{mode, "How quick it is.", failed("enum", "quick"), "How quick it is."},
		{mode, "How. Deep takes long.", failed("enum", "deep"), "How. Deep takes long."},
		{code, "The code. A plain number.", failed("pattern", "12"), "The code."},
		{code, "The number of it. Such as ab-1234.", failed("pattern", "1234"), "The number of it. Such as ab-1234."},
		{`{"type":"string","required":true}`, "The text. There is no need for it.", failed("required"),
			"The text. There is no need for it."},
		{`{"type":"string","required":true}`, "The text. Callers need not pass it.", failed("required"), "The text."},
		{size, "How many. As page_count says.", named("page_count", ""), "How many."},
		{size, "How many. As page_count says.", named("page_count", "query"), "How many. As query says."},
		{`{"type":"string","required":true}`, "The text; callers need not pass it.", failed("required"), "The text."},
		{size, "How many to take.", named("to", "query"), "How many to take."},
		{size, "How many. See the status of list_orders.", named("status", ""), "How many. See the status of list_orders."},
	} {
		m := described(t, "it", c.schema, c.says, "")
		got := c.says
		for _, o := range Corrections(m, &m.Tools[0], c.e) {
			got = o.Text
		}
		if got != c.want {
			t.Errorf("%q, %+v: got %q, want %q", c.says, c.e, got, c.want)
		}
	}
}

// TestContradictionsElsewhere finds none in texts that are about something else.
func TestContradictionsElsewhere(t *testing.T) {
	for i, says := range []string{"", "1", "max", "up to", "`", "default", "\"", "e.g. ", "one of ", "100-", "in ",
		strings.Repeat("1 to ", 500)} {
		m := described(t, "limit", `{"type":["integer","null"],"maximum":1e300}`, says, says)
		if got := Contradictions(m, &m.Tools[0]); len(got) > 0 {
			t.Error(i, fmt.Sprint(got))
		}
	}
}
