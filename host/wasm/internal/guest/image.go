package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/manifest"
)

// Image describes the state of an instance after _initialize, or after an example that has run in it since. Other
// instances of the module begin with this state instead of computing it again. The memory is in a file, and the
// globals are in the module's stub.
type Image struct {
	Warm    bool          `json:"warm"` // an example has run
	Globals []uint64      `json:"globals"`
	Pages   uint32        `json:"pages"`  // of memory, each of 64 KiB
	Data    []span        `json:"data"`   // the parts of memory that are not all zero
	Clock   time.Duration `json:"clock"`  // what the guest's monotonic clock showed
	Random  int64         `json:"random"` // number of bytes that it had read from the stream of [clock.random]

	file *os.File // holds the memory
}

// span is a part of a memory, in bytes.
type span struct {
	At   int64 `json:"at"`
	Size int64 `json:"size"`
}

// ImageOrder asks the compiler for an image.
type ImageOrder struct {
	Name   string `json:"name"`   // the plugin's name, which is the guest's argument 0
	Pages  uint32 `json:"pages"`  // maximum size of its memory
	Assets string `json:"assets"` // where the guest finds its assets; "" if it has none
	Clock  bool   `json:"clock"`  // calls may be granted the wall clock, so the image must not depend on it
	// Warm is the call to run in the instance if the manifest allows that; otherwise nil.
	Warm *warmUp `json:"warm,omitempty"`
}

type warmUp struct {
	Tool   string          `json:"tool"`
	Params json.RawMessage `json:"params"`
}

// Names of files in a slot. The compiler writes both; the description then becomes part of the checksums.
const (
	ImageName            = "image"
	imageDescriptionName = "image.json"
)

const (
	imageTimeout = 5 * time.Second
	// minImageData is the size of the data below which creating an instance without an image is faster.
	minImageData = 256 << 10
	// maxImageData bounds the data on disk.
	maxImageData        = 64 << 20
	maxImageDescription = 1 << 20
	// MaxWarmUp bounds the parameters of an example. The compiler gets them as an argument.
	MaxWarmUp  = 16 << 10
	imageBlock = 4 << 10 // blocks of zeros are holes in the file
)

// OrderImage returns the order for a module, or nil if it must begin without an image: if its manifest requests
// folders, variables or randomness, which _initialize could use, or if an instance has state that an image cannot
// hold.
func OrderImage(module *instrument.Module, m *manifest.Manifest) *ImageOrder {
	asks := m.Capabilities
	if m.Kind != manifest.KindParley || !module.Imageable || module.Export("_initialize") == nil ||
		len(asks.FS) > 0 || len(asks.Env) > 0 || asks.Random != nil {
		return nil
	}
	o := &ImageOrder{Name: m.Name, Pages: world.RequestedMemoryMiB(m) * world.PagesPerMiB, Clock: asks.Clock != nil}
	if m.Assets != nil {
		o.Assets = m.Assets.Path
	}
	if def, example := WarmingExample(m); example != nil && len(example.Params) <= MaxWarmUp {
		o.Warm = &warmUp{def.Name, example.Params}
	}
	return o
}

// fitsImage reports whether a call can begin with the image: it has none of the rights that [OrderImage] looks for.
func fitsImage(g grant.Grant) bool {
	return len(g.FS) == 0 && len(g.Env) == 0 && !g.Random
}

// TakeImage runs _initialize and, if the order has one, an example, and writes the state of the instance to dir. If
// the example does something that an image cannot hold, the image is taken without the example. The error says why
// there is no image: the guest failed, or asked for more than the time, randomness and its assets.
func TakeImage(r wazero.Runtime, compiled wazero.CompiledModule, globals []string, dir string, o *ImageOrder) (*Image,
	error) {
	ctx := context.Background()
	p := &Code{Module: &instrument.Module{}, Runtime: r, Compiled: compiled}
	if o.Assets != "" {
		var err error
		if p.Assets, err = world.ReadAssets(dir); err != nil {
			return nil, err
		}
	}
	refused := func(name string) bool {
		return !slices.Contains(imageFunctions, name) && (o.Assets == "" || !slices.Contains(imageFileFunctions, name))
	}
	if err := p.Link(ctx, refused); err != nil {
		return nil, err
	}
	if o.Warm != nil {
		if i, err := runForImage(ctx, p, globals, dir, o, o.Warm); err == nil {
			return i, nil
		}
	}
	return runForImage(ctx, p, globals, dir, o, nil)
}

// runForImage creates and runs the instance for [TakeImage].
func runForImage(ctx context.Context, p *Code, globals []string, dir string, o *ImageOrder, warm *warmUp,
) (*Image, error) {
	ctx, cancel := context.WithTimeout(ctx, imageTimeout)
	defer cancel()
	m := &manifest.Manifest{Name: o.Name, Kind: manifest.KindParley}
	if o.Assets != "" {
		m.Assets = &manifest.Assets{Path: o.Assets}
	}
	j := NewJob("", grant.Limits{}, m, nil, &host.Request{})
	j.Limits.Pages = o.Pages
	j.Serve = func(context.Context, string, []byte) []byte { return nil }
	c := New(p, j)
	defer c.Close()
	c.image, c.Clock.Frozen = &Image{Warm: warm != nil}, &world.Frozen{}
	c.Control.Begin(ctx)
	c.Enter()
	if err := c.Initialize(); err != nil {
		return nil, err
	}
	if warm != nil {
		c.Request.Tool, c.Request.Params, c.Prepared = warm.Tool, warm.Params, true
		if _, err := c.RunReactor(); err != nil {
			return nil, err
		}
	}
	folders := 0
	if o.Assets != "" {
		folders = 1 // the engine keeps this folder open
	}
	switch {
	case c.Files.Opened > folders:
		return nil, errors.New("it has open files")
	case c.Clock.Frozen.Wall && o.Clock:
		return nil, errors.New("it has read the clock")
	}
	memory := c.mod.Memory()
	data, ok := memory.Read(0, memory.Size())
	if !ok {
		return nil, errors.New("its memory cannot be read")
	}
	i := c.image
	i.Pages, i.Clock, i.Random = memory.Size()/world.PageBytes, c.Clock.Frozen.Clock, c.Clock.Frozen.Random
	for _, name := range globals {
		i.Globals = append(i.Globals, c.mod.ExportedGlobal(name).Get())
	}
	return i, i.write(dir, data)
}

// write writes the image's files. It returns an error if the image is too small or too large to be useful.
func (i *Image) write(dir string, memory []byte) error {
	file, err := os.OpenFile(filepath.Join(dir, ImageName), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	zeros, size := make([]byte, imageBlock), int64(0)
	for at := int64(0); at < int64(len(memory)); at += imageBlock {
		block := memory[at : at+imageBlock]
		if bytes.Equal(block, zeros) {
			continue
		}
		if _, err := file.WriteAt(block, at); err != nil {
			return err
		}
		size += imageBlock
		if last := len(i.Data) - 1; last >= 0 && i.Data[last].At+i.Data[last].Size == at {
			i.Data[last].Size += imageBlock
		} else {
			i.Data = append(i.Data, span{at, imageBlock})
		}
	}
	if size < minImageData || size > maxImageData {
		return fmt.Errorf("it has %d bytes of data", size)
	}
	description, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(int64(len(memory))),
		os.WriteFile(filepath.Join(dir, imageDescriptionName), description, 0o600))
}

// ReadImage returns the description of the image that the compiler has left in a folder, or nil if there is none. Of
// the image's files only the memory stays in the folder.
func ReadImage(dir string) *Image {
	path := filepath.Join(dir, imageDescriptionName)
	data, err := protect.ReadProject(path, maxImageDescription)
	i := &Image{}
	if err != nil || json.Unmarshal(data, i) != nil || os.Remove(path) != nil {
		return nil
	}
	return i
}

// Functions of WASI that a guest may call while an image is taken, because their outcome is the same in every call.
// The flags belong to the standard streams, which are in memory and never block. The second list is for plugins with
// assets.
var (
	imageFunctions = []string{"args_get", "args_sizes_get", "clock_res_get", "clock_time_get", "environ_get",
		"environ_sizes_get", "fd_fdstat_get", "fd_fdstat_set_flags", "fd_prestat_dir_name", "fd_prestat_get",
		"random_get", "sched_yield"}
	imageFileFunctions = []string{"fd_close", "fd_filestat_get", "fd_pread", "fd_read", "fd_readdir", "fd_seek", "fd_tell",
		"path_filestat_get", "path_open"}
)

// Open opens the memory of the image.
func (i *Image) Open(dir string) (err error) {
	for _, d := range i.Data {
		if d.At < 0 || d.Size < 0 || d.At > math.MaxInt64-d.Size || d.At+d.Size > int64(i.Pages)*world.PageBytes {
			return errors.New("its image has data outside its memory")
		}
	}
	i.file, err = os.Open(filepath.Join(dir, ImageName))
	return err
}

// load fills the memory of an instance that begins with the image. Reading the file is faster than mapping it,
// because each page that the guest then writes would cause a fault.
func (i *Image) load(m *world.Memory, limit uint64) error {
	data := m.Prepare(limit, uint64(i.Pages)*world.PageBytes)
	for _, s := range i.Data {
		if _, err := i.file.ReadAt(data[s.At:s.At+s.Size], s.At); err != nil {
			return err
		}
	}
	return nil
}

// WarmingExample returns the example that warms an instance, or nil. It is the first example that succeeds, belongs
// to a tool that changes nothing, and needs no calls before it.
func WarmingExample(m *manifest.Manifest) (*manifest.Tool, *manifest.Example) {
	for i := range m.Tools {
		if def := &m.Tools[i]; m.Warm && def.Effect == manifest.EffectRead {
			for j := range def.Examples {
				if e := &def.Examples[j]; e.ExitCode == 0 && len(e.Before) == 0 {
					return def, e
				}
			}
		}
	}
	return nil, nil
}
