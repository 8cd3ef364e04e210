package page_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image/png"
	"strings"
	"testing"
)

// TestTallScreenshots checks that pictures show all of what is tall, or say which part they show. Each 1,000 pixels
// have a colour of their own.
func TestTallScreenshots(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	page := func(height, width int) string {
		return fmt.Sprintf(`<!doctype html><title>T</title><body style="margin:0"><div id=tall style="width:%dpx"></div><script>
			for (let y = 0; y < %d; y += 1000) {
				const band = tall.appendChild(document.createElement("div"));
				band.style = "height:" + Math.min(1000, %[2]d - y) + "px;background:rgb(" + y / 1000 + ",99,99)";
			}</script>`, width, height)
	}
	const all = "all but pixels "
	for _, test := range []struct {
		name          string
		height, width int
		p             ScreenshotParams
		from, size    int // the pixels from top to bottom
		leftOut       string
	}{
		{"a page", 3000, 100, ScreenshotParams{Full: true}, 0, 3000, ""},
		{"a tall page", 17000, 100, ScreenshotParams{Full: true}, 0, 17000, ""},
		{"a tall element", 40000, 8, ScreenshotParams{Element: "css=#tall"}, 0, 40000, ""},
		{"the tallest element", 65535, 8, ScreenshotParams{Element: "css=#tall"}, 0, 65535, ""},
		{"a taller one", 70000, 8, ScreenshotParams{Element: "css=#tall"}, 0, 65535,
			all + "0 to 65535 of 70000 from top to bottom (tile 1 to 5)"},
		{"the first tile", 40000, 8, ScreenshotParams{Element: "css=#tall", Tile: 1}, 0, 16384,
			all + "0 to 16384 of 40000 from top to bottom: tile 1 of 3 (tile 1 to 3)"},
		{"the last tile", 40000, 8, ScreenshotParams{Element: "css=#tall", Tile: 3}, 32768, 7232,
			all + "32768 to 40000 of 40000 from top to bottom: tile 3 of 3 (tile 1 to 3)"},
		{"a tile of the page", 17000, 8, ScreenshotParams{Tile: 2}, 16384, 616,
			all + "16384 to 17000 of 17000 from top to bottom: tile 2 of 2 (tile 1 to 2)"},
		{"the only tile", 2000, 8, ScreenshotParams{Element: "css=#tall", Tile: 1}, 0, 2000, ""},
		{"with refs", 17000, 8, ScreenshotParams{Tile: 2, Refs: true}, 16384, 616,
			all + "16384 to 17000 of 17000 from top to bottom: tile 2 of 2 (tile 1 to 2)"},
		{"a wide element", 20, 20000, ScreenshotParams{Element: "css=#tall"}, 0, 20,
			"all to the right of 16384 pixels of 20000 (element)"},
	} {
		c.show(t, url+"/", page(test.height, test.width))
		r, err := run(t, c, Screenshot, test.p)
		if err != nil || r.LeftOut != test.leftOut {
			t.Errorf("%s: %s, left out: %s", test.name, exit(err), r.LeftOut)
			continue
		}
		shown := must(png.Decode(bytes.NewReader(must(base64.StdEncoding.DecodeString(r.Data)))))
		if got := shown.Bounds().Dy(); got != test.size {
			t.Errorf("%s: it has %d pixels from top to bottom, want %d", test.name, got, test.size)
		}
		for y := 10; y < shown.Bounds().Dy(); y += 250 {
			if red, _, _, _ := shown.At(4, y).RGBA(); int(red>>8) != (test.from+y)/1000 {
				t.Errorf("%s: at %d it shows part %d", test.name, y, red>>8)
				break
			}
		}
	}
	c.show(t, url+"/", page(20000, 8))
	if _, err := run(t, c, Screenshot, ScreenshotParams{Tile: 3}); !strings.Contains(exit(err), "1 to 2") {
		t.Error(exit(err))
	}
}
