package trace

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Limits of what is remembered of results.
const (
	maxSessions    = 64       // the oldest one is forgotten
	maxOrigins     = 512      // values of a session; later ones are not remembered
	maxResult      = 16 << 10 // bytes of a result; larger ones are not read
	minText        = 4        // bytes of a text; shorter ones are often equal by chance
	maxText        = 256
	maxOriginDepth = 8
)

// origins remembers which results of a session had which values, so that the record of a later call says where its
// parameters came from. It has only hashes of values, for sessions that this process serves.
type origins struct {
	seed maphash.Seed

	mu       sync.Mutex
	sessions map[string]map[uint64]string // session -> hash of a value -> "TOOL/POINTER" of the result that had it first
	order    []string                     // sessions in the order in which they began
}

// note returns, by parameter, the results that the parameters of a call came from, and remembers its own result.
func (o *origins) note(e *host.Event) (from map[string]string) {
	if e.Op != opCall || e.Err != nil || e.Session == "" || !json.Valid(e.Params) {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.sessions[e.Session]
	given := map[uint64]bool{}
	o.values(e.Params, func(hash uint64, pointer string) {
		given[hash] = true
		if source := known[hash]; source != "" && strings.Count(pointer, "/") == 1 {
			if from == nil {
				from = map[string]string{}
			}
			from[pointer[1:]] = source
		}
	})
	if len(e.Result) == 0 || len(e.Result) > maxResult || !json.Valid(e.Result) {
		return from
	}
	o.values(e.Result, func(hash uint64, pointer string) {
		source := e.Tool + pointer
		if given[hash] || known[hash] != "" || len(known) >= maxOrigins || record.Name(source) != source {
			return // what the caller knew before comes from elsewhere
		}
		if known == nil {
			known = o.begin(e.Session)
		}
		known[hash] = source
	})
	return from
}

func newOrigins() *origins {
	return &origins{seed: maphash.MakeSeed(), sessions: map[string]map[uint64]string{}}
}

// begin begins to remember a session.
func (o *origins) begin(session string) map[uint64]string {
	if len(o.order) == maxSessions {
		delete(o.sessions, o.order[0])
		o.order = o.order[1:]
	}
	o.order = append(o.order, session)
	o.sessions[session] = map[uint64]string{}
	return o.sessions[session]
}

// values visits the values of a JSON text that identify something: texts without white space, and numbers, which are
// the same only under the same name. A pointer has 0 for each index of an array. What lies under a key that is not a
// plain name is left out: such a key may be data, such as an address.
func (o *origins) values(text []byte, visit func(hash uint64, pointer string)) {
	s := jsontext.Scan(text)
	var value func(pointer string, depth int)
	value = func(pointer string, depth int) {
		switch first := s.Peek(); {
		case (first == '{' || first == '[') && depth == maxOriginDepth:
			s.Skip()
		case first == '{':
			s.Members(func(raw []byte) {
				if key := raw[1 : len(raw)-1]; isPlainName(key) {
					value(pointer+"/"+string(key), depth+1)
				} else {
					s.Skip()
				}
			})
		case first == '[':
			s.Items(func() { value(pointer+"/0", depth+1) })
		default:
			token := s.Next()
			if len(token) < 1 || pointer == "" {
				return
			}
			switch {
			case token[0] == '"' && len(token) >= minText+2 && len(token) <= maxText && !bytes.ContainsAny(token, " \\"):
				visit(maphash.Bytes(o.seed, token), pointer)
			case token[0] == '-' || token[0] >= '0' && token[0] <= '9':
				name := strings.ToLower(pointer[strings.LastIndexByte(pointer, '/')+1:])
				visit(maphash.String(o.seed, name+" "+string(token)), pointer)
			}
		}
	}
	value("", 0)
}

// isPlainName reports whether a key is at most 40 letters, digits, "_" and "-".
func isPlainName(key []byte) bool {
	for _, c := range key {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '_' && c != '-' {
			return false
		}
	}
	return len(key) > 0 && len(key) <= 40
}
