package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

// TestCompletion checks what a shell offers after some words.
func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		line string // the last word is being typed
		want string // the words that are offered
	}{
		// names of parameters, in each way to name a tool
		{"text hash --param ", "text= algorithm= input="},
		{"text.hash --param ", "text= algorithm= input="},
		{"call text.hash --param a", "algorithm="},
		{"cdp open --param u", "url= user_data_dir="},
		{"cdp Page.navigate --param ref", "referrer= referrerPolicy="},
		{"text hash --param x", ""},
		{"text nosuch --param ", ""},
		{"text --param ", ""},
		// their values
		{"text hash --param algorithm=", "algorithm=sha256 algorithm=sha512 algorithm=sha1 algorithm=md5"},
		{"text hash hello --param algorithm=sha2", "algorithm=sha256"},
		{"cdp Page.captureScreenshot --param format=p", "format=png"},
		{"cdp open --param headed=", "headed=true headed=false"},
		{"text hash --param text=", ""},
		// words
		{"text encode hello base3", "base32"},
		{"call text.encode hello base3", "base32"},
		{"text.encode hello base3", "base32"},
		{"text encode hello base32 ", ""},
		{"text hash ", ""},
		// targets without a browser
		{"cdp Page.navigate --target ", ""},
		{"cdp Page.navigate --browser ../x --target ", ""},
	} {
		t.Run(c.line, func(t *testing.T) {
			out, _, code := inProcess(t, append([]string{"__complete"}, strings.Split(c.line, " ")...)...)
			if code != 0 {
				t.Fatalf("exit code %d", code)
			}
			var got []string
			for line := range strings.Lines(out) {
				word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
				if !strings.HasPrefix(word, ":") {
					got = append(got, word)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestTargetWords: a URL stands for a target if no other matches it, and only as far as a shell takes it literally.
func TestTargetWords(t *testing.T) {
	words := command.TargetWords(json.RawMessage(`{"targets":[
		{"id":"A1","url":"https://a.test/x?q=1&b=$(id)","title":"One\tand\u001b[31m two"},
		{"id":"B2","url":"about:blank","title":""},
		{"id":"C3","url":"about:blank","title":""},
		{"id":"$(id)","url":"https://b.test/$(id)","title":"` + "`id`" + `"}]}`))
	offered := command.StartingWith("", words)
	for i, w := range offered {
		offered[i], _, _ = strings.Cut(w, "\t")
	}
	if want := []string{"A1", "https://a.test/x", "B2", "C3", "https://b.test/"}; !slices.Equal(offered, want) {
		t.Errorf("%q, want %q", offered, want)
	}
	if !strings.HasPrefix(words[0], "A1\tOne and\\u001b[31m two  https://a.test/x?") {
		t.Errorf("%q", words[0])
	}
	if got := command.StartingWith("https://B", words); len(got) != 1 || !strings.HasPrefix(got[0], "https://b.test/\t") {
		t.Errorf("%q", got)
	}
}
