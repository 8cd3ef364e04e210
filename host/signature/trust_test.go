package signature

import (
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
)

// memory is a File in memory.
type memory struct {
	text   string
	exists bool
	err    error
}

func (m *memory) Read() ([]byte, bool, error) { return []byte(m.text), m.exists, m.err }

func (m *memory) Replace(old, text string) error {
	if m.text != old {
		return host.Errorf(host.Busy, "changed in the meantime")
	}
	m.text, m.exists = text, true
	return nil
}

func trustOf(text string) (*Trust, *memory) {
	m := &memory{text: text, exists: text != ""}
	return &Trust{Path: "trusted.keys", File: m}, m
}

func TestTrust(t *testing.T) {
	a, b := newKey(t).Public(), newKey(t).Public()
	list, file := trustOf("")
	if keys, err := list.Keys(); err != nil || len(keys) != 0 {
		t.Errorf("no file: %v, %v", keys, err)
	}
	do := func(c Change, err error) Change {
		t.Helper()
		if err == nil {
			err = list.Write(c)
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := do(list.Add(a, "Alice & Sons"))
	if want := "trusted.keys: trusted keys\n+ " + string(a) + " Alice & Sons\n"; c.Diff() != want {
		t.Errorf("the change is shown as %q", c.Diff())
	}
	do(list.Add(b, ""))
	if want := trustHeader + string(a) + " Alice & Sons\n" + string(b) + "\n"; file.text != want {
		t.Errorf("the list is\n%s", file.text)
	}
	keys, err := list.Keys()
	if err != nil || len(keys) != 2 || keys[0].Key != a || keys[0].ID != a.ID() || keys[0].Name != "Alice & Sons" ||
		keys[1].Key != b || keys[1].Name != "" {
		t.Errorf("keys %+v, %v", keys, err)
	}
	_, err = list.Add(a, "again")
	wantError(t, "twice", err, host.AlreadyExists, "is already trusted, in line 2")
	_, err = list.Add(newKey(t).Public(), "ALICE & sons")
	wantError(t, "a name that is taken", err, host.InvalidArgs, "another key is named Alice & Sons")
	_, err = list.Add(newKey(t).Public(), "a\x1b[31m\nb")
	wantError(t, "a name with terminal escapes", err, host.InvalidArgs, "is not a valid name for a key")
	_, err = list.Remove("bob")
	wantError(t, "nobody", err, host.NotFound, `"bob" is not a trusted key`)

	file.text = "# mine\n\n" + file.text + "# end"
	if c := do(list.Remove("alice & sons")); !strings.HasSuffix(c.Diff(), "\n- "+string(a)+" Alice & Sons\n") {
		t.Errorf("the change is shown as %q", c.Diff())
	}
	if want := "# mine\n\n" + trustHeader + string(b) + "\n# end"; file.text != want {
		t.Errorf("the list is\n%s", file.text)
	}
	do(list.Add(a, ""))
	if want := "# mine\n\n" + trustHeader + string(b) + "\n# end\n" + string(a) + "\n"; file.text != want {
		t.Errorf("the list is\n%s", file.text)
	}
	c, err = list.Remove(string(b))
	if err != nil {
		t.Fatal(err)
	}
	file.text += "# somebody\n"
	wantError(t, "changed meanwhile", list.Write(c), host.Busy, "")
}

// A list that cannot be read in full is an error with its line, never an empty list.
func TestTrustRefuses(t *testing.T) {
	a, b := string(newKey(t).Public()), string(newKey(t).Public())
	for name, c := range map[string]struct{ text, want string }{
		"not a key": {"# fine\nhello world\n",
			`trusted.keys:2: expected KEY NAME or a line that begins with #, and "hello" is not a key`},
		"half a key":           {a[:55] + "\n", "trusted.keys:1: "},
		"a key in front":       {" " + a + "\n", "trusted.keys:1: "},
		"the file of a key":    {string(newKey(t).Public().FileText()), `trusted.keys:1: expected KEY NAME`},
		"twice":                {a + " x\n\n" + a + " y\n", "trusted.keys:3: the key " + a + " is already in line 1"},
		"one name":             {a + " x\n" + b + " X\n", "trusted.keys:2: another key is named x, in line 1"},
		"two on a line":        {a + " " + b + "\n", "trusted.keys:1: the name of a key is itself a key"},
		"invisible characters": {a + " al\u202eice\n", `trusted.keys:1: "al\\u202eice" is not a valid name`},
		"not text":             {a + " \xff\n", "trusted.keys:1: "},
		"a long name":          {a + " " + strings.Repeat("x", 101) + "\n", "at most 100 visible bytes"},
		"NUL":                  {"\x00\n", "trusted.keys:1: "},
	} {
		list, _ := trustOf(c.text)
		_, err := list.Keys()
		wantError(t, name, err, host.ConfigError, c.want)
		_, err = list.Add(newKey(t).Public(), "")
		wantError(t, name+", adding", err, host.ConfigError, c.want)
		_, err = list.Remove(a)
		wantError(t, name+", removing", err, host.ConfigError, c.want)
	}
	list, file := trustOf("")
	file.err = host.Errorf(host.ConfigError, "everybody may write it")
	_, err := list.Keys()
	wantError(t, "a file that cannot be read", err, host.ConfigError, "everybody may write it")
}

// A list of keys that was read, written and read again is the same.
func FuzzTrust(f *testing.F) {
	key := string(newKey(f).Public())
	f.Add("# keys\n\n" + key + " alice\r\n" + key)
	f.Add(key + "  al  ice\n")
	f.Add(key + "\t#")
	f.Fuzz(func(t *testing.T, text string) {
		keys, line, err := parseTrusted(text)
		if err != nil {
			if line < 1 || line > strings.Count(text, "\n")+1 {
				t.Fatalf("%q: the fault is in line %d: %v", text, line, err)
			}
			return
		}
		var lines []string
		for _, k := range keys {
			lines = append(lines, k.String()+"\n")
		}
		again, _, err := parseTrusted(strings.Join(lines, ""))
		if err != nil || len(again) != len(keys) {
			t.Fatalf("%q: written as %q, read as %v, %v", text, lines, again, err)
		}
		for i, k := range again {
			if k.Key != keys[i].Key || k.Name != keys[i].Name {
				t.Fatalf("%q: %+v became %+v", text, keys[i], k)
			}
		}
	})
}
