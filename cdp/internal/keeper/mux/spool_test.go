package mux

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// throughSpool writes a message to a spool in two pieces and reads the result back.
func throughSpool(message, session string, cut int) (string, error) {
	s := newSpool([]byte(message), session)
	if s == nil {
		return "", io.EOF
	}
	defer s.Close()
	io.WriteString(s, message[:cut])
	io.WriteString(s, message[cut:])
	if err := s.result(); err != nil {
		return "", err
	}
	var result strings.Builder
	for {
		piece, err := s.Next()
		if err == io.EOF {
			return result.String(), nil
		}
		if err != nil {
			return "", err
		}
		result.Write(piece)
	}
}

func TestSpool(t *testing.T) {
	large := `{"data":"` + strings.Repeat("x", pieceSize) + `"}`
	for _, c := range []struct{ message, session, want string }{
		{`{"id":7,"result":{"a":1}}`, "", `{"a":1}`},
		{`{"id":7,"result":{"a":1},"sessionId":"S"}`, "S", `{"a":1}`},
		{`{"id":7,"result":` + large + `,"sessionId":"S"}`, "S", large},
		{`{"id":7,"result":{"a":"\"result\":"},"sessionId":"S"}`, "S", `{"a":"\"result\":"}`},
		{`{"id":7,"error":{"message":"no"}}`, "", "EOF"},
		{`{"id":7,"result":{"a":1},"sessionId":"other"}`, "S", `does not end as expected`},
		{`{"id":7,"result":`, "", "does not end"},
	} {
		got, err := throughSpool(c.message, c.session, len(c.message)/2)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && !(err != nil && strings.Contains(got, c.want)) {
			t.Errorf("%.60s in %q: %.60s, want %.60s", c.message, c.session, got, c.want)
		}
	}
}

// FuzzSpool feeds arbitrary messages to a spool: the result read back must equal the result in the message.
func FuzzSpool(f *testing.F) {
	f.Add(`{"a":1}`, "S", `{"id":1,"result":{}}`)
	f.Add(`"}"`, "", `{"result":`)
	f.Fuzz(func(t *testing.T, result, session, raw string) {
		throughSpool(raw, session, len(raw)/2)
		if !json.Valid([]byte(result)) {
			return
		}
		message := fmt.Sprintf(`{"id":1,"result":%s}`, result)
		if session != "" {
			message = fmt.Sprintf(`{"id":1,"result":%s,"sessionId":%s}`, result, scan.Quote(session))
		}
		if got, err := throughSpool(message, session, len(message)/2); err != nil || got != result {
			t.Fatalf("%q was read back as %q, %v", result, got, err)
		}
	})
}
