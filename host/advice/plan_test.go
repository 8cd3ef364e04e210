package advice

import "testing"

// A hole ends at a whole clause of the description.
func TestHolesEndAtAClause(t *testing.T) {
	for about, want := range map[string]string{
		`Column, for example "price".`: "<f: string, Column>",
		"Column, such as price":        "<f: string, Column>",
		"What it is. And more":         "<f: string, What it is>",
		"":                             "<f: string>",
		"The name of the column that is read, which the table must have, and which no other row of it names": "<f: string, " +
			"The name of the column that is read, which the table must have>",
	} {
		if got := holeOf(nil)("/f", "f", "string", about); got != want {
			t.Errorf("%s: %s", about, got)
		}
	}
}
