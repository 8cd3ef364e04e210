//go:build linux

package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// TestPanicEndsItsCall calls operations of each kind that panic. Only the call ends, in an error, and the log has the
// stack.
func TestPanicEndsItsCall(t *testing.T) {
	p := inProcess(t)
	fails := func(context.Context, request) (json.RawMessage, *api.Error) { panic("boom") }
	s := &server{verbs: p.Keeper, connections: newConnections(time.Second, func(string) {}),
		operations: map[string]operation{"fails": fails},
		pages: page.New(p.Keeper, page.Verbs{"fails": page.Manage(func(*page.Visit, struct{}) (any, *api.Error) {
			panic("boom")
		})})}
	c := &client{s: s}
	call := func(op string) *api.Error {
		var beside aside
		_, err := c.handleSafely(t.Context(), request{op: op, by: api.CommandLine, timeout: time.Second,
			body: []byte(`{"params":{}}`)}, &beside)
		return err
	}
	var written bytes.Buffer
	before := log.Writer()
	log.SetOutput(&written)
	defer log.SetOutput(before)
	for range 2 { // nothing stays locked
		for _, op := range []string{"fails", "page.fails"} {
			written.Reset()
			if err := call(op); err == nil || err.Code != api.CodeInternal ||
				!strings.Contains(written.String(), "panic_test.go") {
				t.Errorf("%s: %+v\n%s", op, err, written.String())
			}
		}
	}
	if err := call("targets"); err != nil && err.Code == api.CodeInternal {
		t.Error(err.Message)
	}
}

// TestOpenAnswersDialogs opens a page that shows dialogs while it loads, and says how to answer them.
func TestOpenAnswersDialogs(t *testing.T) {
	p := inProcess(t)
	url := site(t, map[string]string{"/": "<script>alert(1); document.title = [confirm('?'), prompt('?', 'x')]</script>"})
	for how, title := range map[string]string{"accept": "true,x", "dismiss": "false,", "accept=y": "true,y"} {
		body := fmt.Sprintf(`{"params":{"url":%q,"new":true},"on_dialog":%q}`, url+"/", how)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		done, err := p.Run(ctx, api.CommandLine, page.Prefix+"open", []byte(body))
		cancel()
		if err != nil || scan.Text(done, "data", "title") != title {
			t.Errorf("%s: %s, %+v", how, done, err)
		}
	}
}
