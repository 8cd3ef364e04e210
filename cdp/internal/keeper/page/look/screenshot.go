package look

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

type screenshotParams struct {
	Element  string `json:"element"`
	Full     bool   `json:"full"`
	Refs     bool   `json:"refs"`
	Tile     int    `json:"tile"`
	Compare  bool   `json:"compare"`  // the picture is for a comparison
	Baseline string `json:"baseline"` // of the comparison; "": the last picture, which is returned and whose area is used
}

// picture is a PNG file in Base64.
type picture struct {
	Data    string `json:"data"`
	Earlier string `json:"earlier,omitempty"` // the previous picture
	LeftOut string `json:"left_out,omitempty"`
	of      screenshotParams
	in      string
}

// area is a part of the page, in CSS pixels. Ratio is the number of device pixels per CSS pixel.
type area struct{ X, Y, Width, Height, Ratio float64 }

// A picture drawn by a GPU is limited by the size of its textures, and repeats itself beyond that. Without a GPU
// Chrome has drawn pictures of 80,000 pixels, which take 6 s. A tile is small enough for both.
const tileSide, wholeSide = 16384, 65535

// tile reduces an area to the requested tile, or without one to what Chrome can draw whole. leftOut says what is
// missing.
func (a *area) tile(v *page.Visit, number int) (leftOut string, err *api.Error) {
	side, ratio := float64(tileSide), max(a.Ratio, 1)
	if number == 0 && a.Height*ratio > side {
		info, err := v.Keeper.Tracker.Sender.Do(v.Ctx, nil, "SystemInfo.getInfo", nil)
		if err == nil && strings.HasPrefix(scan.Text(info, "gpu", "featureStatus", "gpu_compositing"), "disabled") {
			side = wholeSide
		}
	}
	side = math.Floor(side / ratio)
	whole, tiles := a.Height, int(math.Ceil(a.Height/math.Floor(tileSide/ratio)))
	which := fmt.Sprintf(": tile %d of %d", number, tiles)
	if number == 0 {
		which, number = "", 1
	}
	if number > tiles {
		return "", page.Invalid("/tile", fmt.Sprintf("1 to %d", tiles), strconv.Itoa(number), "")
	}
	top := float64(number-1) * side
	a.Y, a.Height = a.Y+top, min(side, whole-top)
	if a.Height < whole {
		leftOut = fmt.Sprintf("all but pixels %.0f to %.0f of %.0f from top to bottom%s (tile 1 to %d)", top, top+a.Height,
			whole, which, tiles)
	}
	if a.Width > side {
		leftOut += fmt.Sprintf(", all to the right of %.0f pixels of %.0f (element)", side, a.Width)
		a.Width = side
	}
	return strings.TrimPrefix(leftOut, ", "), nil
}

// screenshot takes a picture. Unless it is for a comparison, it becomes the last picture of the page.
func screenshot(v *page.Visit, p screenshotParams) (picture, *api.Error) {
	last, earlier, compares := picture{}, "", p.Compare
	if p.Compare && p.Baseline == "" {
		if last, _ = v.Ledger().Picture.Load().(picture); last.Data == "" {
			return last, page.Exit("no_match", "no picture of the page was taken before; page.screenshot takes one", nil)
		}
		if isPart(v, p) && (p.Element != last.of.Element || v.In != last.in) {
			return last, page.Exit("no_match", "the last picture is of another part; page.screenshot takes one of this", nil)
		}
		p, v.In, earlier = last.of, last.in, last.Data
	}
	taken, err := take(v, p)
	if err == nil && !compares {
		v.Ledger().Picture.Store(picture{Data: taken.Data, of: p, in: v.In})
	}
	taken.Earlier = earlier
	return taken, err
}

// isPart reports whether the call names a part of the page.
func isPart(v *page.Visit, p screenshotParams) bool { return p.Element != "" || v.In != "" }

// take takes a picture.
func take(v *page.Visit, p screenshotParams) (picture, *api.Error) {
	params := page.Object{"format": "png", "optimizeForSpeed": !p.Full}
	var r picture
	var part area
	p.Full = p.Full || p.Tile > 0
	clips := p.Full || isPart(v, p)
	if clips {
		var err *api.Error
		if part, err = areaOf(v, p.Element); err == nil {
			r.LeftOut, err = part.tile(v, p.Tile)
		}
		if err != nil {
			return r, err
		}
		params["clip"] = page.Object{"x": part.X, "y": part.Y, "width": part.Width, "height": part.Height, "scale": 1}
		params["captureBeyondViewport"] = true
	}
	var marks []mark
	if p.Refs {
		all, view, err := findMarks(v, clips)
		if err != nil {
			return r, err
		}
		if part.Width == 0 {
			part = view
		}
		marks = all
	}
	stop := showLate(v)
	failed := capture(v, params, &r)
	if stop(); failed != nil || !p.Refs {
		return r, failed
	}
	drawn, err := drawMarks(r.Data, marks, part)
	if err != nil {
		return r, api.Errorf(api.CodeInternal, "the picture cannot be drawn on: %v", err)
	}
	r.Data = drawn
	return r, nil
}

// capture takes the picture. Chrome may drop the command when the page gets another document; it is then sent again.
func capture(v *page.Visit, params page.Object, r *picture) *api.Error {
	for {
		ctx, cancel := context.WithCancel(v.Ctx)
		attempt := *v
		attempt.Ctx = ctx
		commits := page.Locked(v, func() int { return v.Page.Commits })
		go func() {
			replaced := func() (bool, *api.Error) { return v.Page.Commits > commits, nil }
			if v.Keeper.Mux.Wait(ctx, "for another document", replaced) == nil {
				time.AfterFunc(droppedTime, cancel)
			}
		}()
		err := attempt.Command("Page.captureScreenshot", params, r)
		dropped := err != nil && ctx.Err() != nil && v.Ctx.Err() == nil
		if cancel(); !dropped {
			return err
		}
	}
}

// droppedTime is how long a picture may take once the page has another document.
const droppedTime = 3 * time.Second

// areaOf returns the area of an element in the page, or for "" the whole page.
func areaOf(v *page.Visit, word string) (area, *api.Error) {
	var found, page struct {
		area
		Scroll  struct{ X, Y float64 }
		Failure *page.Failure
	}
	in, e, err := v.Focus(word)
	if err != nil {
		return area{}, err
	}
	if err := v.Script(in, &found, "area", e.Ref); err != nil {
		return area{}, err
	}
	if found.Failure != nil {
		return area{}, found.Failure.Exit(word)
	}
	if in == "" {
		return found.area, nil
	}
	// In a frame the area refers to the frame's document, which may be scrolled.
	if err := v.Script("", &page, "area", ""); err != nil {
		return area{}, err
	}
	toPage, err := viewOf(v, in)
	if err != nil {
		return area{}, err
	}
	box := area{found.X - found.Scroll.X, found.Y - found.Scroll.Y, found.Width, found.Height, found.Ratio}.through(toPage)
	box.X += page.Scroll.X
	box.Y += page.Scroll.Y
	return box, nil
}

// viewOf returns a function that maps points of a frame's view to the view of the page.
func viewOf(v *page.Visit, in page.Frame) (func(x, y float64) (float64, float64), *api.Error) {
	toPage := func(x, y float64) (float64, float64) { return x, y }
	err := v.Outward(in, "the frame", func(_ page.Frame, _ page.Place, toView func(x, y float64) (float64,
		float64)) *api.Error {
		inner := toPage
		toPage = func(x, y float64) (float64, float64) { return toView(inner(x, y)) }
		return nil
	})
	return toPage, err
}

// through returns the bounding box of an area whose points are mapped by move.
func (a area) through(move func(x, y float64) (float64, float64)) area {
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, c := range [][2]float64{{0, 0}, {1, 0}, {1, 1}, {0, 1}} {
		x, y := move(a.X+c[0]*a.Width, a.Y+c[1]*a.Height)
		low, high = [2]float64{min(low[0], x), min(low[1], y)}, [2]float64{max(high[0], x), max(high[1], y)}
	}
	return area{low[0], low[1], high[0] - low[0], high[1] - low[1], a.Ratio}
}

// mark is a control in a picture: its ref, and its place in the page.
type mark struct {
	Ref string
	area
}

// findMarks returns the controls of the page and its frames, all or only those in the view, and the part of the page
// that is in the view. Its height is not known.
func findMarks(v *page.Visit, all bool) ([]mark, area, *api.Error) {
	found, view, err := marksIn(v, "", all)
	if err != nil {
		return nil, view, err
	}
	for _, f := range v.Frames() {
		inner, scrolled, err := marksIn(v, f.ID, all)
		if err != nil {
			continue // it is being replaced
		}
		toPage, err := viewOf(v, f.ID)
		if err != nil {
			continue // it is not visible
		}
		for _, m := range inner {
			box := area{X: m.X - scrolled.X, Y: m.Y - scrolled.Y, Width: m.Width, Height: m.Height}.through(toPage)
			box.X += view.X
			box.Y += view.Y
			found = append(found, mark{m.Ref, box})
		}
	}
	return found, view, nil
}

// marksIn is findMarks for one frame. The places refer to its document.
func marksIn(v *page.Visit, in page.Frame, all bool) ([]mark, area, *api.Error) {
	var r struct {
		Marks  []mark
		Scroll struct{ X, Y float64 }
		Width  float64
	}
	if err := v.Script(in, &r, "marks", page.Object{"all": all, "time": v.TimeLeft()}); err != nil {
		return nil, area{}, err
	}
	for i := range r.Marks {
		r.Marks[i].X += r.Scroll.X
		r.Marks[i].Y += r.Scroll.Y
	}
	return r.Marks, area{X: r.Scroll.X, Y: r.Scroll.Y, Width: r.Width}, nil
}

// markColors are the colors of boxes and labels. They change from one control to the next.
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
	scale := float64(on.Bounds().Dx()) / max(part.Width, 1) // picture pixels per CSS pixel
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
		// The label is above the box if there is room for it, and always within the picture.
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
