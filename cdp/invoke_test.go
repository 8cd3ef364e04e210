package cdp

import (
	"strings"
	"testing"
)

func TestExceptionDetector(t *testing.T) {
	for text, thrown := range map[string]bool{
		`{"result":{"type":"string","value":"x"},"exceptionDetails":{"text":"Uncaught"}}`: true,
		`{"exceptionDetails":null}`:                                           true,
		` { "a" : [1,{"b":2}] , "exceptionDetails" : {} } `:                   true,
		`{"a":"\\","exceptionDetails":{}}`:                                    true,
		`{}`:                                                                  false,
		`{"result":{"exceptionDetails":{}}}`:                                  false,
		`{"result":"exceptionDetails"}`:                                       false,
		`{"result":"\",\"exceptionDetails\":{}"}`:                             false,
		`{"result":["exceptionDetails",{"exceptionDetails":1}]}`:              false,
		`{"exceptionDetailsToo":1,"exceptionDetail":2,"xexceptionDetails":3}`: false,
	} {
		for size := 1; size <= len(text); size += 3 {
			var out strings.Builder
			w := &exceptionDetector{out: &out}
			for rest := []byte(text); len(rest) > 0; {
				n, err := w.Write(rest[:min(size, len(rest))])
				if err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if out.String() != text || w.bytes != int64(len(text)) {
				t.Errorf("%s became %s, %d bytes", text, out.String(), w.bytes)
			}
			if got := w.err() != nil; got != thrown {
				t.Errorf("%s in pieces of %d: threw %v", text, size, got)
			}
		}
	}
}
