package page_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// pixelmatch compares two PNG files as others do.
const pixelmatch = `import pixelmatch from "pixelmatch";
import {PNG} from "pngjs";
import {readFileSync} from "node:fs";
let text = "";
for await (const part of process.stdin) text += part;
for (const line of text.trim().split("\n")) {
	const [a, b, threshold] = line.split(" "), [x, y] = [a, b].map(f => PNG.sync.read(readFileSync(f)));
	console.log(pixelmatch(x.data, y.data, null, x.width, x.height, {threshold: Number(threshold), includeAA: true}));
}`

// drawing returns a white picture with filled rectangles.
func drawing(width, height int, c color.Color, filled ...image.Rectangle) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(m, m.Rect, image.White, image.Point{}, draw.Src)
	for _, r := range filled {
		draw.Draw(m, r, image.NewUniform(c), image.Point{}, draw.Src)
	}
	return m
}

func save(t *testing.T, name string, m image.Image) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestComparePictures compares files, and asks a program of others how many pixels differ.
func TestComparePictures(t *testing.T) {
	c := startChrome(t)
	black, many := color.Gray{}, []image.Rectangle{}
	for i := range 30 {
		many = append(many, image.Rect(i*64, 10, i*64+1+i, 12))
	}
	noise := func(seed uint64, spread int) *image.RGBA {
		m, r := image.NewRGBA(image.Rect(0, 0, 64, 48)), rand.New(rand.NewPCG(seed, 1))
		for i := range m.Pix {
			if m.Pix[i] = uint8(128 + r.IntN(spread)); i%4 == 3 {
				m.Pix[i] = 255
			}
		}
		return m
	}
	plain := drawing(200, 100, black)
	var asked strings.Builder
	var counts []int
	for i, test := range []struct {
		a, b      image.Image
		threshold float64
		want      string
	}{
		{plain, plain, 0.1, "true [] "},
		{plain, drawing(200, 100, black, image.Rect(20, 30, 21, 31)), 0.1, "false [[20 30 1 1]] "},
		{plain, drawing(200, 100, black, image.Rect(10, 10, 50, 20), image.Rect(50, 16, 90, 40)), 0.1,
			"false [[10 10 80 30]] "},
		{plain, drawing(200, 100, black, image.Rect(0, 0, 9, 9), image.Rect(190, 90, 200, 100)), 0.1,
			"false [[190 90 10 10] [0 0 9 9]] "},
		{plain, drawing(200, 100, color.Gray{254}, image.Rect(0, 0, 9, 9)), 0.1, "true [] "},
		{plain, drawing(200, 100, color.Gray{254}, image.Rect(0, 0, 9, 9)), 0, "false [[0 0 9 9]] "},
		{plain, drawing(200, 100, black, image.Rect(0, 0, 200, 100)), 1, "true [] "},
		{plain, drawing(200, 100, color.RGBA{255, 250, 240, 255}, plain.Rect), 0.05, ""},
		{noise(1, 30), noise(2, 30), 0.05, ""},
		{noise(3, 127), noise(4, 127), 0.1, ""},
		{noise(5, 127), noise(6, 127), 0.3, ""},
		{drawing(2000, 50, black), drawing(2000, 50, black, many...), 0.1, "false 20 10 smaller boxes (picture shows all)"},
		{plain, drawing(200, 120, black), 0.1, "false [[0 100 200 20]] 200 x 100, then 200 x 120"},
		{drawing(210, 100, black), plain, 0.1, "false [[200 0 10 100]] 210 x 100, then 200 x 100"},
		{image.NewNRGBA(plain.Rect), plain, 0.1, "true [] "}, // transparent
	} {
		p := CompareParams{Baseline: save(t, "a.png", test.a), Current: save(t, "b.png", test.b), Threshold: test.threshold,
			Picture: true}
		r, err := run(t, c, Compare, p)
		if err != nil {
			t.Fatalf("%d: %s", i, exit(err))
		}
		got := fmt.Sprint(r.Same, " ", r.Boxes, " ", r.Sizes)
		if r.LeftOut != "" {
			got = fmt.Sprint(r.Same, " ", len(r.Boxes), " ", r.LeftOut)
		}
		if test.want != "" && got != test.want {
			t.Errorf("%d: %s, want %s", i, got, test.want)
		}
		if i == 12 && r.Percent != 16.6667 {
			t.Errorf("%d: %g %%", i, r.Percent)
		}
		red := 0
		if r.Same != (r.Data == nil) {
			t.Errorf("%d: same %t, and a picture of %d bytes", i, r.Same, len(r.Data))
		} else if r.Data != nil {
			drawn := must(png.Decode(bytes.NewReader(r.Data)))
			for y := range drawn.Bounds().Dy() {
				for x := range drawn.Bounds().Dx() {
					if cr, g, _, _ := drawn.At(x, y).RGBA(); cr == 0xffff && g == 0 {
						red++
					}
				}
			}
		}
		if red != r.Pixels {
			t.Errorf("%d: %d pixels differ, %d are red", i, r.Pixels, red)
		}
		if _, transparent := test.a.(*image.NRGBA); test.a.Bounds() == test.b.Bounds() && !transparent {
			fmt.Fprintln(&asked, p.Baseline, p.Current, p.Threshold)
			counts = append(counts, r.Pixels)
		}
	}
	for i, line := range strings.Fields(string(runModule(t, "pixelmatch", pixelmatch, asked.String()))) {
		if theirs := must(strconv.Atoi(line)); theirs != counts[i] {
			t.Errorf("%d pixels differ, pixelmatch says %d: %s", counts[i], theirs, strings.Split(asked.String(), "\n")[i])
		}
	}
}

// TestComparePage compares the page with files and with its last picture.
func TestComparePage(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	if _, err := run(t, c, Open, OpenParams{URL: url + "/next", New: true}); err != nil { // of it no picture was taken
		t.Fatal(exit(err))
	}
	c.closeOthers(t)
	c.show(t, url+"/", `<title>Shop</title><h1>Shop</h1><button id=b>Buy</button><div id=box
		style="position:fixed;left:100px;top:200px;width:50px;height:40px;background:#eee"></div>
		<div style="height:2000px"></div>`)
	compare := func(p CompareParams) string {
		t.Helper()
		p.Threshold = 0.1
		r, err := run(t, c, Compare, p)
		if err != nil {
			return exit(err)
		}
		return fmt.Sprint(r.Same, " ", r.Pixels, " ", r.Boxes, " ", r.Diff)
	}
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	shot := func(name string, p ScreenshotParams) string {
		t.Helper()
		r, err := run(t, c, Screenshot, p)
		if err != nil {
			t.Fatal(exit(err))
		}
		return write(name, must(base64.StdEncoding.DecodeString(r.Data)))
	}
	if got := compare(CompareParams{}); !strings.HasPrefix(got, "no_match: no picture of the page was taken before") {
		t.Error(got)
	}
	view, full, box := shot("view.png", ScreenshotParams{}), shot("full.png", ScreenshotParams{Full: true}),
		shot("box.png", ScreenshotParams{Element: "css=#box"})
	s, err := run(t, c, Snapshot, SnapshotParams{MaxTokens: 1500})
	if err != nil {
		t.Fatal(exit(err))
	}
	text, result := write("a.txt", []byte(s.Text)), write("a.json", []byte(effects(s)))
	told := "<page 12345678>\n" + s.Text + "\n</page 12345678>"
	const wrong = "Tool 'page.compare' failed: 1 violation: "
	for _, test := range []struct {
		script string
		p      CompareParams
		want   string
	}{
		{"", CompareParams{}, "true 0 [] "},
		{"", CompareParams{Baseline: view}, "true 0 [] "},
		{"", CompareParams{Baseline: full, Full: true}, "true 0 [] "},
		{"", CompareParams{Baseline: text}, "true 0 [] "},
		{"", CompareParams{Baseline: write("told.txt", []byte(told))}, "true 0 [] "},
		{"", CompareParams{Baseline: write("told.json", []byte(`{"text":`+strconv.Quote(told)+`}`)), Current: text},
			"true 0 [] "},
		{"", CompareParams{Element: "css=h1"},
			"no_match: the last picture is of another part; page.screenshot takes one of this"},
		{"", CompareParams{Element: "css=#box"}, "true 0 [] "},
		{"location.reload()", CompareParams{Baseline: result}, "true 0 [] "},
		{"box.style.background = 'red'", CompareParams{Baseline: view}, "false 2000 [[100 200 50 40]] "},
		{"", CompareParams{}, "false 2000 [[0 0 50 40]] "}, // with the last screenshot, not the last comparison
		{"", CompareParams{}, "false 2000 [[0 0 50 40]] "},
		{"box.style.background = '#eee'", CompareParams{}, "true 0 [] "},
		{"box.style.background = 'red'", CompareParams{Baseline: box, Element: "css=#box"}, "false 2000 [[0 0 50 40]] "},
		{"b.textContent = 'Sold'; b.disabled = true", CompareParams{Baseline: result},
			"false 0 [] @@ -1,2 +1,2 @@\n heading \"Shop\"\n-button \"Buy\"\n+button \"Sold\" [disabled]\n"},
		{"", CompareParams{Baseline: text, Current: write("b.txt", []byte("\""))},
			"false 0 [] @@ -1,2 +1,1 @@\n-heading \"Shop\"\n-button \"Buy\"\n+\"\n"},
		{"", CompareParams{Current: view}, wrong + "/baseline is to be a PNG file of at most 16777216 pixels"},
		{"", CompareParams{Baseline: view, Current: text}, wrong + "/current is to be a PNG file of at most 16777216 pixels"},
		{"", CompareParams{Baseline: box, Element: "css=#none"},
			"no_match: nothing matches \"css=#none\" (page.snapshot shows the page)"},
	} {
		if test.script != "" {
			c.evaluate(t, test.script)
			if _, err := run(t, c, Wait, WaitParams{Element: "css=#box", Timeout: 5000}); err != nil {
				t.Fatal(exit(err))
			}
		}
		if got := compare(test.p); got != test.want {
			t.Errorf("%s %+v:\n%s\nwant\n%s", test.script, test.p, got, test.want)
		}
	}
	r, err := run(t, c, Do, DoParams{Steps: []json.RawMessage{json.RawMessage(`{"tool":"screenshot","params":{}}`),
		json.RawMessage(`{"tool":"evaluate","params":{"expression":"box.remove()"}}`),
		json.RawMessage(`{"tool":"compare","params":{"threshold":0.1}}`)}})
	if err != nil || r.Done != 3 || !strings.Contains(effects(r.Results[len(r.Results)-1]), `"boxes":[[100,200,50,40]]`) {
		t.Errorf("%s, %s", effects(r), exit(err))
	}
}
