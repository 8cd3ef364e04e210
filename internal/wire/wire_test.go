package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

func TestFrames(t *testing.T) {
	for _, size := range []int{0, 1, eagerBytes, eagerBytes + 1, 3 << 20} {
		var sent bytes.Buffer
		body := bytes.Repeat([]byte("a"), size)
		out := NewConn(nil, &sent)
		if err := errors.Join(out.Queue(KindBegun), out.Send(KindAsk, body[:size/2], body[size/2:])); err != nil {
			t.Fatal(err)
		}
		in := NewConn(&sent, nil)
		if kind, got, err := in.Receive(0); kind != KindBegun || len(got) != 0 || err != nil {
			t.Errorf("queued: %c %q %v", kind, got, err)
		}
		if kind, got, err := in.Receive(size); kind != KindAsk || !bytes.Equal(got, body) || err != nil {
			t.Errorf("%d bytes: %c %d bytes, %v", size, kind, len(got), err)
		}
		if _, _, err := in.Receive(size); err != io.EOF {
			t.Errorf("at the end: %v", err)
		}
	}
}

// TestLies checks that the length of a frame, which is only a claim, neither allocates memory nor passes the limit.
func TestLies(t *testing.T) {
	lie := append([]byte{byte(KindDone)}, binary.BigEndian.AppendUint32(nil, 1<<30)...)
	var large *TooLargeError
	if _, _, err := NewConn(bytes.NewReader(lie), nil).Receive(1 << 20); !errors.As(err, &large) || large.Bytes != 1<<30 {
		t.Errorf("%v", err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := NewConn(bytes.NewReader(lie), nil).Receive(1 << 30)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; err != io.ErrUnexpectedEOF || allocated > 10<<20 {
		t.Errorf("%v after %d bytes", err, allocated)
	}
	if _, _, err := NewConn(bytes.NewReader(lie[:3]), nil).Receive(1); err != io.ErrUnexpectedEOF {
		t.Errorf("a part of a head: %v", err)
	}
}

func TestHellos(t *testing.T) {
	var sent bytes.Buffer
	if err := NewConn(nil, &sent).SendHello(Hello{Host: "1.2.3"}); err != nil {
		t.Fatal(err)
	}
	if h, err := NewConn(&sent, nil).ReceiveHello(); err != nil || h.Host != "1.2.3" || h.Wire != Version {
		t.Errorf("%+v, %v", h, err)
	}
	for _, other := range []string{`{"parley_wire":0}`, `{}`, `[]`, "", `{"parley_wire":99}`} {
		sent.Reset()
		_ = NewConn(nil, &sent).Send(KindHello, []byte(other))
		_, err := NewConn(&sent, nil).ReceiveHello()
		var version *VersionError
		if err == nil || errors.As(err, &version) != strings.Contains(other, "99") {
			t.Errorf("%q: %v", other, err)
		}
	}
	sent.Reset()
	_ = NewConn(nil, &sent).Send(KindCall, []byte(`{"parley_wire":1}`))
	if _, err := NewConn(&sent, nil).ReceiveHello(); err == nil {
		t.Error("a call is taken for a hello")
	}
}

// fill sets everything in v that can be set, to a depth: the fields of documentation have fields themselves.
func fill(v reflect.Value, depth int) {
	switch {
	case depth == 0:
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"a":1}`))
	case v.Kind() == reflect.String:
		v.SetString("text")
	case v.CanInt():
		v.SetInt(7)
	case v.CanFloat():
		v.SetFloat(7)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth-1)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth-1)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), depth-1)
			}
		}
	}
}

// TestErrorsTravelWhole checks that every field of an error of the wire is that of an error of the host, and arrives.
func TestErrorsTravelWhole(t *testing.T) {
	from := &host.Error{}
	fill(reflect.ValueOf(from).Elem(), 12)
	want := ErrorOf(from)
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var sent Error
	if err := json.Unmarshal(data, &sent); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&sent, want) {
		t.Errorf("got  %+v\nwant %+v", sent, want)
	}
	for i, v := 0, reflect.ValueOf(sent); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not sent", v.Type().Field(i).Name)
		}
	}
}

// TestUntrustedErrors checks what remains of an error whose sender may be compromised.
func TestUntrustedErrors(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	rename := &step.Suggestion{Op: step.SuggestRename, Pointer: "/a", Value: "b"}
	from := &host.Error{Code: "declared", Exit: 10, Message: "\x1b[31mred\n" + long,
		Corrected: json.RawMessage(`{"a":"` + long + `"}`), Details: []host.Detail{{Parameter: "/a\x1b", Suggestion: rename}},
		Denied:   []grant.Denial{{Right: "fs:\u202e"}},
		Tool:     &host.ToolError{Exit: 10, Details: json.RawMessage(`{"a":"\u001b[31m"}`)},
		Protocol: &host.ProtocolError{Code: 1, Message: "\x1b"},
		Steps: []step.Step{step.Call("p.remove", nil), step.Operator(step.OpPolicyGrant, "p", "random"),
			{Op: step.OpSystem, Args: []string{"rm"}}, step.Describe("p.t", 2)},
		Docs: &host.Docs{ToolDocs: &manifest.ToolDocs{}}, Earlier: []string{"x"},
	}
	for range 10_000 {
		from.DidYouMean = append(from.DidYouMean, spelling.Near{Name: "x"})
	}
	got := ErrorOf(from).Untrusted()
	data, err := json.Marshal(ErrorOf(got))
	if err != nil || len(data) > 64<<10 || bytes.Contains(bytes.ReplaceAll(data, []byte(`\\`), nil), []byte(`\u001b`)) ||
		strings.Contains(string(data), "\u202e") {
		t.Errorf("%d bytes, %v: %.2000s", len(data), err, data)
	}
	if len(got.Steps) != 1 || got.Steps[0].Op != step.OpDescribe || got.Docs != nil || got.Corrected != nil {
		t.Errorf("%+v", got)
	}
	if got.Exit != 10 || got.Details[0].Suggestion.String() != "rename a to b" {
		t.Errorf("%+v", got)
	}
}

func TestRights(t *testing.T) {
	got := RightsOf(grant.Grant{Clock: true, Env: map[string]string{"LANG": "C"},
		FS: []grant.FS{{Path: "/data", Source: "/home/me", Mode: "rw"}}})
	if want := []string{"clock", "env:LANG", "fs:rw:/data"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if got := RightsOf(grant.Grant{}); got == nil {
		t.Error("no rights are null in JSON")
	}
	all := []string{"browser:session", "caller", "clock", "env:LANG", "fs:rw:/data", "http:GET,POST:https://a.test:8443",
		"random", "secret:A", "secret:read:B", "tool:cdp.Page.*"}
	g, err := (&Terms{Rights: all}).Grant()
	secrets := []grant.Secret{{Name: "A"}, {Name: "B", Read: true}}
	if back := RightsOf(g); err != nil || !reflect.DeepEqual(back, all) || !reflect.DeepEqual(g.Secrets, secrets) {
		t.Errorf("%q, %+v, %v", back, g.Secrets, err)
	}
	if _, err := (&Terms{Rights: []string{"root"}}).Grant(); err == nil {
		t.Error("an unknown right is accepted")
	}
}

func TestPeer(t *testing.T) {
	dir, err := os.MkdirTemp("", "wire-") // a path that is short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	if err != nil {
		t.Skip(err)
	}
	defer listener.Close()
	conn, err := net.DialUnix("unix", nil, listener.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if pid, err := Peer(conn); runtime.GOOS == "linux" && (err != nil || pid != os.Getpid()) {
		t.Errorf("%d, %v", pid, err)
	}
}

// FuzzFrames checks that any bytes become frames within the limit or an error, and that frames are read as they were
// written.
func FuzzFrames(f *testing.F) {
	var whole bytes.Buffer
	out := NewConn(nil, &whole)
	_ = errors.Join(out.SendHello(Hello{}), out.SendJSON(KindCall, Call{}), out.Send(KindBegun),
		out.SendJSON(KindEvent, job.Event{Kind: job.EventLog}), out.SendJSON(KindDone, Failed(&host.Error{})))
	f.Add(whole.Bytes())
	f.Add([]byte("e\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 16
		in := NewConn(bytes.NewReader(data), nil)
		var again bytes.Buffer
		for {
			kind, body, err := in.Receive(limit)
			if err != nil {
				break
			}
			if len(body) > limit {
				t.Fatalf("a body of %d bytes", len(body))
			}
			if err := NewConn(nil, &again).Send(kind, body); err != nil {
				t.Fatal(err)
			}
			var o Outcome
			if json.Unmarshal(body, &o) == nil {
				_, _ = o.Failure()
			}
		}
		if !bytes.HasPrefix(data, again.Bytes()) {
			t.Errorf("read %q from %q", again.Bytes(), data)
		}
	})
}
