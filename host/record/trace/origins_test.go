package trace

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
)

func called(session, tool, params, result string) host.Event {
	return host.Event{Op: "call", Session: session, Tool: tool, Params: json.RawMessage(params),
		Result: json.RawMessage(result)}
}

// TestOrigins records calls whose parameters have values of earlier results.
func TestOrigins(t *testing.T) {
	o := newOrigins()
	for _, c := range []struct {
		what  string
		event host.Event
		want  map[string]string
	}{
		{"the first call", called("a", "shop.list", `{"query":"tea-pot"}`,
			`{"query":"tea-pot","items":[{"id":"ab-1","nodeId":7,"name":"Tea pot"},{"id":"cd-2","nodeId":9}],"q":"x"}`), nil},
		{"a text of any item", called("a", "shop.get", `{"item":"cd-2"}`, `{"id":"cd-2","owner":"ann-07"}`),
			map[string]string{"item": "shop.list/items/0/id"}},
		{"a text that the caller knew", called("a", "shop.find", `{"word":"tea-pot"}`, `null`), nil},
		{"a result of a call with the same value", called("a", "shop.buy", `{"item":"cd-2"}`, `null`),
			map[string]string{"item": "shop.list/items/0/id"}},
		{"another result", called("a", "shop.mail", `{"to":"ann-07","node":7,"nodeId":9}`, `{}`),
			map[string]string{"to": "shop.get/owner", "nodeId": "shop.list/items/0/nodeId"}},
		{"keys that may be data", called("a", "shop.users", `{}`, `{"ann@a.test":{"id":"us-77"},"users":{"id":"us-78"}}`),
			nil},
		{"a value under such a key", called("a", "shop.mail", `{"a":"us-77","b":"us-78"}`, ``),
			map[string]string{"b": "shop.users/users/id"}},
		{"values within parameters", called("a", "shop.mail", `{"to":["ann-07"]}`, `{}`), nil},
		{"short texts and texts with spaces", called("a", "shop.get", `{"item":"x","name":"Tea pot"}`, ``), nil},
		{"another session", called("b", "shop.get", `{"item":"cd-2"}`, ``), nil},
		{"no session", called("", "shop.get", `{"item":"cd-2"}`, ``), nil},
		{"a result that is not JSON", called("a", "shop.get", `{"item":"cd-2"}`, `{"id`),
			map[string]string{"item": "shop.list/items/0/id"}},
		{"parameters that are not JSON", called("a", "shop.get", `{"item":"cd-2"`, `{}`), nil},
	} {
		if got := o.note(&c.event); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, expected %v", c.what, got, c.want)
		}
	}
	failed := called("a", "shop.get", `{"item":"cd-2"}`, `{"id":"ef-9"}`)
	failed.Err = &host.Error{Code: host.ToolFailed}
	if got := o.note(&failed); got != nil {
		t.Errorf("a call that failed: %v", got)
	}
}

// TestOriginsAreBounded remembers no more than a number of values and of sessions.
func TestOriginsAreBounded(t *testing.T) {
	o := newOrigins()
	var ids []string
	for i := range 3 * maxOrigins {
		ids = append(ids, fmt.Sprintf(`"id-%05d"`, i))
	}
	for i := range 10 {
		part := ids[i*len(ids)/10 : (i+1)*len(ids)/10]
		e := called("a", "shop.list", `{}`, `{"ids":[`+strings.Join(part, ",")+`]}`)
		o.note(&e)
	}
	if n := len(o.sessions["a"]); n != maxOrigins {
		t.Errorf("%d values are remembered", n)
	}
	for i := range 2 * maxSessions {
		e := called(fmt.Sprint("s", i), "shop.list", `{}`, `{"id":"ab-1"}`)
		o.note(&e)
	}
	if len(o.sessions) != maxSessions || o.sessions["a"] != nil {
		t.Errorf("%d sessions are remembered", len(o.sessions))
	}
	deep := called("deep", "shop.list", `{}`, strings.Repeat("[", 5000)+`"ab-1"`+strings.Repeat("]", 5000))
	large := called("large", "shop.list", `{}`, `{"id":"ab-1","text":"`+strings.Repeat("x", maxResult)+`"}`)
	o.note(&deep)
	o.note(&large)
	if len(o.sessions["deep"])+len(o.sessions["large"]) != 0 {
		t.Error("values of a deep or large result are remembered")
	}
}
