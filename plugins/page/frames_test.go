package main

import (
	"fmt"
	"html"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// mix is a document with a button and frames in frames.
type mix struct {
	name   string
	origin string // "" for that of the document around it
	root   bool   // the frame is in a shadow root
	inner  []mix
}

func randomMix(random *rand.Rand, name string, depth int, origins []string) mix {
	m := mix{name: name, origin: origins[random.IntN(len(origins))], root: random.IntN(5) == 0}
	for i := range random.IntN(4) * min(depth, 1) {
		m.inner = append(m.inner, randomMix(random, fmt.Sprintf("%s%d", name, i), depth-1, origins))
	}
	return m
}

// count returns how many documents there are.
func (m mix) count() int {
	n := 1
	for _, f := range m.inner {
		n += f.count()
	}
	return n
}

// html writes the document. Each one comes from its origin by /echo.
func (m mix) html(own string) string {
	text := "<!doctype html><title>" + m.name + "</title><button>Leaf " + m.name + "</button>"
	for _, f := range m.inner {
		origin := f.origin
		if origin == "" {
			origin = own
		}
		frame := fmt.Sprintf(`<iframe title="F %s" src="%s/echo?%s"></iframe>`, f.name, origin,
			html.EscapeString(strings.ReplaceAll(strings.ReplaceAll(f.html(origin), "%", "%25"), "#", "%23")))
		if f.root {
			frame = `<div><template shadowrootmode=open>` + frame + `</template></div>`
		}
		text += frame
	}
	return text
}

// outline returns the lines of a snapshot that the document must have.
func (m mix) outline(indent string) (lines []string) {
	lines = append(lines, indent+fmt.Sprintf(`button "Leaf %s"`, m.name))
	for _, f := range m.inner {
		lines = append(lines, indent+fmt.Sprintf(`Iframe "F %s"`, f.name))
		lines = append(lines, f.outline(indent+"  ")...)
	}
	return lines
}

// TestMixesOfFrames checks that a snapshot has the document of each frame below its line, and that a search finds what is
// in any of them, in random trees of frames of several origins, in shadow roots, too.
func TestMixesOfFrames(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	origins := []string{"", url, strings.Replace(url, "127.0.0.1", "localhost", 1),
		strings.Replace(url, "127.0.0.1", "a.localhost", 1)}
	rounds := 3
	for seed := range rounds {
		random := rand.New(rand.NewPCG(uint64(seed), 33))
		top := mix{name: "top"}
		for i := range 3 {
			top.inner = append(top.inner, randomMix(random, fmt.Sprint("f", i), 2, origins))
		}
		c.show(t, url+"/", top.html(url))
		s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 6000})
		if err != nil {
			t.Fatal(exit(err))
		}
		got := regexp.MustCompile(` [a-z]{3}\d+$`).ReplaceAllString(strings.ReplaceAll(s.Text, "\n", "$\n"), "")
		got = regexp.MustCompile(` [a-z]{3}\d+\$?(\n|$)`).ReplaceAllString(got, "\n")
		if want := strings.Join(top.outline(""), "\n"); strings.TrimSpace(got) != want {
			t.Errorf("seed %d: the snapshot has\n%s\nwant\n%s\nleft out: %s", seed, got, want, s.LeftOut)
		}
		r, err := run(t, c, Find, FindParams{Element: `Leaf`, Limit: 5})
		if err != nil || r.Total != top.count() {
			t.Errorf("seed %d: %d of %d were found, %s: %+v", seed, r.Total, top.count(), exit(err), r)
		}
	}
}
