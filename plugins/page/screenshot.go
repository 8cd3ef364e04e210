package main

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/draw"
	"image/png"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// ScreenshotParams say what to show.
type ScreenshotParams struct {
	// Ref or locator of an element; without it, the visible part of the page.
	Element string `json:"element,omitempty" aliases:"ref,uid,selector,sel,target,locator"`
	// Take the whole page, not only the visible part.
	Full bool `json:"full,omitempty" aliases:"full_page,fullPage"`
	// Draw a box with its ref around each control.
	Refs bool `json:"refs,omitempty" aliases:"marks,annotate,labels,highlight"`
}

// ScreenshotResult is a picture.
type ScreenshotResult struct {
	// The picture, a PNG file.
	Data string `json:"data" media:"image/png"`
}

// area is a part of the page, in pixels of CSS.
type area struct{ X, Y, Width, Height float64 }

// Screenshot takes a picture.
func Screenshot(c *sdk.Call, p ScreenshotParams) (ScreenshotResult, error) {
	b := &browser{Call: c}
	params := map[string]any{"format": "png"}
	var r ScreenshotResult
	var part area
	if p.Element != "" || p.Full {
		var err error
		if part, err = b.areaOf(p.Element); err != nil {
			return r, err
		}
		params["clip"] = map[string]any{"x": part.X, "y": part.Y, "width": part.Width, "height": part.Height, "scale": 1}
		params["captureBeyondViewport"] = true
	}
	var marks []mark
	if p.Refs {
		all, view, err := b.marks(p.Full || p.Element != "")
		if err != nil {
			return r, err
		}
		if part.Width == 0 {
			part = view
		}
		marks = all
	}
	if err := b.cdp("Page.captureScreenshot", params, &r); err != nil || !p.Refs {
		return r, err
	}
	drawn, err := drawMarks(r.Data, marks, part)
	return ScreenshotResult{drawn}, err
}

// areaOf returns the area of an element in the page, of "" the whole page.
func (b *browser) areaOf(word string) (area, error) {
	var found, page struct {
		area
		Scroll  struct{ X, Y float64 }
		Failure *failure
	}
	in, e, err := b.focus(word)
	if err != nil {
		return area{}, err
	}
	if _, err := b.script(in, &found, "area", e.Ref); err != nil {
		return area{}, err
	}
	if found.Failure != nil {
		return area{}, found.Failure.error(word)
	}
	if in == "" {
		return found.area, nil
	}
	// In a frame the area is one of its document, which may be scrolled.
	if _, err := b.script("", &page, "area", ""); err != nil {
		return area{}, err
	}
	all, err := b.frames()
	if err != nil {
		return area{}, err
	}
	x, y, err := b.originOf(in, all)
	found.X += x + page.Scroll.X - found.Scroll.X
	found.Y += y + page.Scroll.Y - found.Scroll.Y
	return found.area, err
}

// mark is a control in a picture: its ref, and where it is in the page.
type mark struct {
	Ref string
	area
}

// marks returns the controls of the page and its frames, those in the view or all, and the part of the page that is in
// the view. Its height is not known.
func (b *browser) marks(all bool) ([]mark, area, error) {
	found, view, err := b.marksIn("", all)
	if err != nil {
		return nil, view, err
	}
	children, err := b.frames()
	for _, f := range children {
		inner, scrolled, err := b.marksIn(f.id, all)
		if err != nil {
			continue // it is being replaced
		}
		x, y, err := b.originOf(f.id, children)
		if err != nil {
			continue // it is not visible
		}
		for _, m := range inner {
			m.X += x + view.X - scrolled.X
			m.Y += y + view.Y - scrolled.Y
			found = append(found, m)
		}
	}
	return found, view, err
}

// marksIn is marks for one frame, with places in its document.
func (b *browser) marksIn(in frame, all bool) ([]mark, area, error) {
	var r struct {
		Marks  []mark
		Scroll struct{ X, Y float64 }
		Width  float64
	}
	if _, err := b.script(in, &r, "marks", map[string]any{"all": all}); err != nil {
		return nil, area{}, err
	}
	for i := range r.Marks {
		r.Marks[i].X += r.Scroll.X
		r.Marks[i].Y += r.Scroll.Y
	}
	return r.Marks, area{X: r.Scroll.X, Y: r.Scroll.Y, Width: r.Width}, nil
}

// originOf returns where the view of a frame begins in the view of the page.
func (b *browser) originOf(in frame, all []pageFrame) (x, y float64, err error) {
	err = b.outward(in, all, "the frame", func(in frame, of place) (at point, err error) {
		_, err = b.script(in, &at, "origin", of)
		x, y = x+at.X, y+at.Y
		return at, err
	})
	return x, y, err
}

// markColors are those of boxes and labels, which differ from one control to the next.
var markColors = []color.RGBA{{200, 0, 0, 255}, {0, 90, 200, 255}, {0, 120, 40, 255}, {150, 0, 150, 255},
	{170, 80, 0, 255}}

// drawMarks draws boxes and refs on a picture of a part of the page, both in Base64.
func drawMarks(picture string, marks []mark, part area) (string, error) {
	data, err := base64.StdEncoding.DecodeString(picture)
	if err != nil {
		return "", err
	}
	decoded, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	on := image.NewRGBA(decoded.Bounds())
	draw.Draw(on, on.Bounds(), decoded, decoded.Bounds().Min, draw.Src)
	scale := float64(on.Bounds().Dx()) / max(part.Width, 1) // pixels of the picture for one of CSS
	fill := func(r image.Rectangle, c color.RGBA) { draw.Draw(on, r, image.NewUniform(c), image.Point{}, draw.Src) }
	face := basicfont.Face7x13
	for i, m := range marks {
		x, y := int((m.X-part.X)*scale), int((m.Y-part.Y)*scale)
		box := image.Rect(x, y, x+int(m.Width*scale), y+int(m.Height*scale))
		if !box.Overlaps(on.Bounds()) {
			continue
		}
		c := markColors[i%len(markColors)]
		const line = 2
		fill(image.Rect(box.Min.X, box.Min.Y, box.Max.X, box.Min.Y+line), c)
		fill(image.Rect(box.Min.X, box.Max.Y-line, box.Max.X, box.Max.Y), c)
		fill(image.Rect(box.Min.X, box.Min.Y, box.Min.X+line, box.Max.Y), c)
		fill(image.Rect(box.Max.X-line, box.Min.Y, box.Max.X, box.Max.Y), c)
		// The label is above the box if there is room, and in the picture in any case.
		width := len(m.Ref)*face.Advance + 4
		left := max(min(box.Min.X, on.Bounds().Dx()-width), 0)
		top := box.Min.Y - face.Height
		if top < 0 {
			top = box.Min.Y
		}
		fill(image.Rect(left, top, left+width, top+face.Height), c)
		text := font.Drawer{Dst: on, Src: image.White, Face: face, Dot: fixed.P(left+2, top+face.Ascent)}
		text.DrawString(m.Ref)
	}
	var out bytes.Buffer
	if err := png.Encode(&out, on); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(out.Bytes()), nil
}
