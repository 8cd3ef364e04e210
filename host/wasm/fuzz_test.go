package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/manifest"
)

func fuzzCall() *guest.Call {
	m := &manifest.Manifest{Name: "fuzz", Kind: manifest.KindParley,
		ExitCodes: []manifest.ExitCode{{Code: 10, Name: "ten"}}}
	r := &host.Request{Job: job.Job{Tool: "tool", Grant: grant.Grant{Tools: []string{"cdp.*"}}}}
	serving(r).CallTool = func(context.Context, string, json.RawMessage, job.Options) (*job.Result, error) {
		return &job.Result{}, nil
	}
	return guest.New(nil, guest.NewJob("", grant.Limits{}, m, nil, r))
}

// FuzzResponse checks that any response becomes a result or a *host.Error.
func FuzzResponse(f *testing.F) {
	for _, s := range []string{`{"ok":true,"result":1}`, `{"ok":false,"exit":10,"message":"m","details":{}}`,
		`{"ok":false,"exit":99999999999999999999}`,
		`{"ok":false,"invalid":[{"pointer":"/a"}]}`, `{"ok":true,"result":"\ud800"}`, `null`, `[]`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		result, err := fuzzCall().InterpretResponse(data)
		var e *host.Error
		switch {
		case err == nil && !json.Valid(result.Data):
			t.Errorf("the result is not valid JSON: %q", result.Data)
		case err != nil && !errors.As(err, &e):
			t.Errorf("%T: %v", err, err)
		case err != nil:
			if _, err := json.Marshal(e.Object()); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzHostRequest checks that the reply to any request is JSON.
func FuzzHostRequest(f *testing.F) {
	f.Add("call_tool", []byte(`{"tool":"cdp.open","params":{},"options":{"timeout":"1s"}}`))
	f.Add("http_request", []byte(`{"method":"GET","url":"http://127.0.0.1"}`))
	f.Add("read_secret", []byte(`{"name":"\u001b[31m"}`))
	f.Fuzz(func(t *testing.T, function string, request []byte) {
		if reply := fuzzCall().Serve(context.Background(), function, request); !json.Valid(reply) {
			t.Errorf("%q", reply)
		}
	})
}
