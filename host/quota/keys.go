package quota

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parley-tools/parley/host/grant"
)

// Key is a key of the policy that limits what a caller uses.
type Key struct {
	Name string
	Most int // the largest value that the policy may set
	Of   func(q *grant.Quota) *int
}

// Rate is the key whose value is a text; see [ParseRate].
const Rate = "rate"

// Keys are all keys, in the order in which they are explained.
var Keys = []Key{
	{Rate, 1_000_000, func(q *grant.Quota) *int { return &q.Rate }},
	{"concurrent", 1000, func(q *grant.Quota) *int { return &q.Concurrent }},
	{"daily_calls", 1 << 40, func(q *grant.Quota) *int { return &q.DailyCalls }},
	{"daily_bytes", 1 << 50, func(q *grant.Quota) *int { return &q.DailyBytes }},
}

var periods = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

// ParseRate parses a number of calls and the time in which they may be made, such as "10/s", "100/m" or "1000/h".
func ParseRate(text string) (calls int, per time.Duration, ok bool) {
	number, unit, _ := strings.Cut(text, "/")
	calls, err := strconv.Atoi(number)
	per = periods[unit]
	return calls, per, err == nil && strconv.Itoa(calls) == number && calls > 0 && calls <= Keys[0].Most && per > 0
}

// Explain says what a caller may use, and which lines say so: "; daily_calls 5 (policy.toml:3)". It is "" for nil.
func Explain(q *grant.Quota) (text string) {
	for _, k := range Keys {
		if q == nil || q.In[k.Name] == "" {
			continue
		}
		text += fmt.Sprintf("; %s %d", k.Name, *k.Of(q))
		if k.Name == Rate {
			text += " in " + q.Per.String()
		}
		text += " (" + q.In[k.Name] + ")"
	}
	return text
}
