package advice

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// CorrectOptions returns call options as they were probably meant, in the same form: a number for a timeout becomes a
// duration. The correction is complete if [option.Parse] accepts it.
func CorrectOptions(given map[string]any) schema.Correction {
	meant := maps.Clone(given)
	var changes []schema.Change
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if option.IsElsewhere(name) { // whatever its value would mean for another option
			delete(meant, name)
			changes = append(changes, schema.Change{From: "/" + jsontext.EscapeToken(name), How: schema.Dropped})
			continue
		}
		number := json.Number(strings.Trim(string(jsontext.Marshal(given[name])), `"`))
		if option.Named(name) == "timeout" && jsontext.ValidNumber(number.String()) && durationText(name, number) != "" {
			delete(meant, name)
			meant["timeout"] = durationText(name, number)
			changes = append(changes, schema.Change{From: "/" + jsontext.EscapeToken(name), To: "/timeout", How: schema.Coerced})
		}
	}
	prompt := meant["on_dialog"]
	if option.IsPromptText(prompt) {
		meant["on_dialog"] = "accept" // the schema has no texts
	}
	c := option.Schema().Correct(meant, holeOf(nil))
	if corrected, ok := c.Value.(map[string]any); ok && option.IsPromptText(prompt) {
		corrected["on_dialog"] = prompt
	}
	c.Changes = append(changes, c.Changes...)
	c.Complete = c.Complete && !slices.ContainsFunc(changes, func(c schema.Change) bool { return c.How == schema.Dropped })
	return c
}

// durationText returns a number in the place of a duration as a duration: in the unit that the name of the option
// contains. Without one, a number too large for seconds is in milliseconds, and the unit of others is unknown: "".
func durationText(name string, number json.Number) string {
	n, err := number.Float64()
	name = strings.ToLower(name)
	switch {
	case strings.HasSuffix(name, "ms"), err == nil && !strings.Contains(name, "sec") && n >= 1000:
		return number.String() + "ms"
	case strings.Contains(name, "sec"):
		return number.String() + "s"
	}
	return ""
}
