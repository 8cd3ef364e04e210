package page

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
)

// difference is the result of compare.
type difference struct {
	Same    bool     `json:"same"`
	Percent float64  `json:"percent,omitempty"`
	Pixels  int      `json:"pixels,omitempty"`
	Boxes   [][4]int `json:"boxes,omitempty"` // x, y, width and height, the largest first
	Sizes   string   `json:"sizes,omitempty"` // where they differ
	Diff    string   `json:"diff,omitempty"`  // of snapshots
	LeftOut string   `json:"left_out,omitempty"`
	Data    []byte   `json:"data,omitempty"` // a picture
}

// compare compares two pictures or snapshots: files, the last picture that was taken of the page, or the page now.
func (c *invocation) compare(ctx context.Context, _ string, params json.RawMessage) (done api.PageResult, err error) {
	var q struct {
		Baseline, Current string // files; "": the last picture of the page, and the page now
		Threshold         float64
		Picture           bool
	}
	if err := json.Unmarshal(params, &q); err != nil {
		return done, err
	}
	sides := [2][]byte{}
	for i, file := range []string{q.Baseline, q.Current} {
		if sides[i], err = c.readFile(ctx, file); err != nil {
			return done, err
		}
	}
	var now struct {
		Data, Earlier []byte
		Text          string
		LeftOut       string `json:"left_out"`
	}
	answered := func(r difference) (api.PageResult, error) {
		r.LeftOut = cmp.Or(r.LeftOut, now.LeftOut)
		done.Data, err = manifest.Marshal(r)
		return done, err
	}
	isText := q.Baseline != "" && !bytes.HasPrefix(sides[0], []byte("\x89PNG"))
	if q.Current == "" {
		verb := "screenshot"
		if isText {
			verb, params = "snapshot", json.RawMessage(`{"max_tokens":1500}`)
		} else {
			params = prepend("compare", json.RawMessage("true"), params)
		}
		if done, err = c.send(ctx, verb, params, 0); err == nil {
			err = json.Unmarshal(done.Data, &now)
		}
		if err != nil {
			return done, err
		}
		sides = [2][]byte{slices.Concat(sides[0], now.Earlier), slices.Concat(now.Data, []byte(now.Text))}
	}
	if isText {
		return answered(compareSnapshots(sides))
	}
	pictures := [2]*image.RGBA{}
	for i, name := range []string{"/baseline", "/current"} {
		if pictures[i], err = decode(sides[i]); err != nil {
			expected := fmt.Sprintf("a PNG file of at most %d pixels", maxPixels)
			e := api.Errorf(api.CodeInvalidArgs, "%s: expected %s", name, expected)
			e.Invalid = &api.Invalid{Pointer: name, Expected: expected, Provided: err.Error()}
			return done, e
		}
	}
	var drawn *image.RGBA
	if q.Picture {
		drawn = image.NewRGBA(pictures[0].Rect.Union(pictures[1].Rect))
	}
	r := comparePictures(pictures[0], pictures[1], q.Threshold, drawn)
	if q.Picture && !r.Same {
		var out bytes.Buffer
		_ = png.Encode(&out, drawn) // a buffer takes all
		r.Data = out.Bytes()
	}
	return answered(r)
}

// maxFile limits a compared file in bytes, maxPixels a picture in pixels.
const maxFile, maxPixels = 64 << 20, 16 << 20

// readFile returns the content of a file that was handed to the call, nil if none is named.
func (c *invocation) readFile(ctx context.Context, file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	path, err := host.AskFor[string](ctx, c.Request, job.AskSharedFile,
		job.SharedFileArgument{Text: file, Folder: os.TempDir()})
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(filepath.Dir(path))
	if info, err := os.Stat(path); err == nil && info.Size() > maxFile {
		return nil, host.Errorf(host.LimitExceeded, "%s has %d bytes; the limit is %d", filepath.Base(path), info.Size(),
			maxFile)
	}
	return os.ReadFile(path)
}

// refs matches the ref of an element in a line of a snapshot, which differs from document to document.
var refs = lazy.Pattern(`(?m)^( *\S+(?: "(?:[^"\\]|\\.)*")?) [a-z]{3}[0-9]+`)

// boundary matches the lines that the host puts around what a page wrote. Their number differs in each answer.
var boundary = lazy.Pattern(`(?m)^</?page [0-9]{8}>\n?`)

// compareSnapshots compares the lines of two snapshots, as text or as the result of snapshot.
func compareSnapshots(sides [2][]byte) difference {
	for i, side := range sides {
		var saved struct{ Text string }
		if json.Unmarshal(side, &saved) == nil {
			side = []byte(saved.Text)
		}
		side = boundary().ReplaceAll(side, nil)
		sides[i] = append(bytes.TrimSpace(refs().ReplaceAll(side, []byte("$1"))), '\n')
	}
	_, changes, _ := bytes.Cut(diff.Diff("baseline", sides[0], "current", sides[1]), []byte("+++ current\n"))
	return difference{Same: len(changes) == 0, Diff: string(changes)}
}

// decode reads a PNG file and draws it on white.
func decode(file []byte) (*image.RGBA, error) {
	config, err := png.DecodeConfig(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	if config.Width > maxPixels/config.Height {
		return nil, fmt.Errorf("%d x %d pixels", config.Width, config.Height)
	}
	decoded, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	on := image.NewRGBA(decoded.Bounds())
	draw.Draw(on, on.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(on, on.Rect, decoded, on.Rect.Min, draw.Over)
	return on, nil
}

// maxBoxes bounds the boxes in an answer. Differences that are less than boxGap pixels apart are in one box.
const maxBoxes, boxGap = 20, 16

// comparePictures compares opaque pictures. In drawn, which may be nil, what differs is made red.
func comparePictures(a, b *image.RGBA, threshold float64, drawn *image.RGBA) (r difference) {
	all := a.Rect.Union(b.Rect)
	cells := map[image.Point]image.Rectangle{}
	for y := range all.Dy() {
		for x := range all.Dx() {
			at, c := image.Pt(x, y), b.RGBAAt(x, y)
			same := at.In(a.Rect) && at.In(b.Rect) && isNear(a.RGBAAt(x, y), c, threshold)
			if drawn != nil {
				drawn.SetRGBA(x, y, shade(c, same))
			}
			if same {
				continue
			}
			r.Pixels++
			cell := at.Div(boxGap)
			cells[cell] = cells[cell].Union(image.Rectangle{at, at.Add(image.Pt(1, 1))})
		}
	}
	r.Same, r.Percent = r.Pixels == 0, math.Round(float64(r.Pixels)/float64(max(all.Dx()*all.Dy(), 1))*1e6)/1e4
	if a.Rect != b.Rect {
		r.Sizes = fmt.Sprintf("%d x %d, then %d x %d", a.Rect.Dx(), a.Rect.Dy(), b.Rect.Dx(), b.Rect.Dy())
	}
	boxes := boxesOf(cells)
	for _, box := range boxes[:min(len(boxes), maxBoxes)] {
		r.Boxes = append(r.Boxes, [4]int{box.Min.X, box.Min.Y, box.Dx(), box.Dy()})
	}
	if more := len(boxes) - maxBoxes; more > 0 {
		r.LeftOut = fmt.Sprintf("%d smaller boxes (picture shows all)", more)
	}
	return r
}

// shade returns the color of a pixel in the picture of the differences: pale gray if it is the same, and red
// otherwise.
func shade(c color.RGBA, same bool) color.RGBA {
	if !same {
		return color.RGBA{R: 255, A: 255}
	}
	gray := 255 - (255-color.GrayModel.Convert(c).(color.Gray).Y)/8
	return color.RGBA{gray, gray, gray, 255}
}

// isNear reports whether two colors look the same. The threshold is 0 for equal ones, and 1 for any (Kotsarenko and
// Ramos, Measuring perceived color difference using YIQ NTSC transmission color space, 2010).
func isNear(a, b color.RGBA, threshold float64) bool {
	if a == b {
		return true
	}
	dr, dg, db := float64(a.R)-float64(b.R), float64(a.G)-float64(b.G), float64(a.B)-float64(b.B)
	y := dr*0.29889531 + dg*0.58662247 + db*0.11448223
	i := dr*0.59597799 - dg*0.27417610 - db*0.32180189
	q := dr*0.21147017 - dg*0.52261711 + db*0.31114694
	const most = 35215
	return 0.5053*y*y+0.299*i*i+0.1957*q*q <= most*threshold*threshold
}

// boxesOf joins differences in cells that touch each other, and returns their bounding boxes, the largest first.
func boxesOf(cells map[image.Point]image.Rectangle) (boxes []image.Rectangle) {
	for _, first := range slices.Collect(maps.Keys(cells)) {
		var box image.Rectangle
		for next := []image.Point{first}; len(next) > 0; {
			at := next[len(next)-1]
			next = next[:len(next)-1]
			if cell, left := cells[at]; left {
				delete(cells, at)
				box = box.Union(cell)
				for i := range 9 {
					next = append(next, at.Add(image.Pt(i%3-1, i/3-1)))
				}
			}
		}
		if !box.Empty() {
			boxes = append(boxes, box)
		}
	}
	slices.SortFunc(boxes, func(a, b image.Rectangle) int {
		return cmp.Or(b.Dx()*b.Dy()-a.Dx()*a.Dy(), a.Min.Y-b.Min.Y, a.Min.X-b.Min.X)
	})
	return boxes
}
