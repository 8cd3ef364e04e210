package wasm

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
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/manifest"
)

// image describes the state of an instance after _initialize, or after an example that has run in it since. Other
// instances of the module begin with it instead of computing it again. Its memory is a file of the slot, its globals
// are in the slot's stub.
type image struct {
	Memory  hashedFile    `json:"memory"`
	Warm    bool          `json:"warm"` // an example has run
	Globals []uint64      `json:"globals"`
	Pages   uint32        `json:"pages"`  // of memory, each of 64 KiB
	Data    []span        `json:"data"`   // the parts of memory that are not all zero
	Clock   time.Duration `json:"clock"`  // what the guest's monotonic clock showed
	Random  int64         `json:"random"` // bytes that it had read from the stream of [clock.random]

	file *os.File // with the memory
}

// span is a part of a memory, in bytes.
type span struct {
	At   int64 `json:"at"`
	Size int64 `json:"size"`
}

// imageOrder asks the compiler for an image.
type imageOrder struct {
	Name   string `json:"name"`   // of the plugin, which is the guest's argument 0
	Pages  uint32 `json:"pages"`  // that its memory may have
	Assets string `json:"assets"` // where its assets are; "" if it has none
	Clock  bool   `json:"clock"`  // calls can have the wall clock, so nothing in the image may have read it
	// Warm is the call to run in the instance, if the manifest allows that; else nil.
	Warm *warmUp `json:"warm,omitempty"`
}

type warmUp struct {
	Tool   string          `json:"tool"`
	Params json.RawMessage `json:"params"`
}

// Names of files in a slot. The compiler writes both; the description then becomes part of the checksums.
const (
	imageName            = "image"
	imageDescriptionName = "image.json"
)

const (
	imageTimeout = 5 * time.Second
	// minImageData is the size of the data below which an instance is made faster without an image.
	minImageData = 256 << 10
	// maxImageData bounds the data on disk.
	maxImageData        = 64 << 20
	maxImageDescription = 1 << 20
	// maxWarmUp bounds the parameters of an example, which the compiler gets as an argument.
	maxWarmUp  = 16 << 10
	imageBlock = 4 << 10 // blocks of zeros are holes in the file
)

// orderImage returns the order for a module, or nil if it must begin without an image: if its manifest asks for
// folders, variables or randomness, which _initialize could use, or if an instance has state that an image cannot
// hold.
func orderImage(module *instrument.Module, m *manifest.Manifest) *imageOrder {
	asks := m.Capabilities
	if m.Kind != manifest.KindParley || !module.Imageable || module.Export("_initialize") == nil ||
		len(asks.FS) > 0 || len(asks.Env) > 0 || asks.Random != nil {
		return nil
	}
	o := &imageOrder{Name: m.Name, Pages: requestedMemoryMiB(m) * pagesPerMiB, Clock: asks.Clock != nil}
	if m.Assets != nil {
		o.Assets = m.Assets.Path
	}
	if def, example := warmingExample(m); example != nil && len(example.Params) <= maxWarmUp {
		o.Warm = &warmUp{def.Name, example.Params}
	}
	return o
}

// fitsImage reports whether a call can begin with the image: it has none of the rights for which [orderImage] looks.
func fitsImage(g host.Grant) bool {
	return len(g.FS) == 0 && len(g.Env) == 0 && !g.Random
}

// takeImage runs _initialize and, if it is ordered, an example, and writes the state of the instance to dir. If the
// example does what an image cannot hold, the image is that of an instance in which it has not run. The error says why
// there is no image: the guest asked for anything but the time, randomness and its assets, or it failed.
func takeImage(r wazero.Runtime, compiled wazero.CompiledModule, globals []string, dir string, o *imageOrder) (*image,
	error) {
	ctx := context.Background()
	p := &compiledPlugin{module: &instrument.Module{}, runtime: r, compiled: compiled}
	if o.Assets != "" {
		var err error
		if p.assets, err = (slot{dir: dir}).openAssets(assetsName); err != nil {
			return nil, err
		}
	}
	refused := func(name string) bool {
		return !slices.Contains(imageFunctions, name) && (o.Assets == "" || !slices.Contains(imageFileFunctions, name))
	}
	if err := instantiateHostModules(ctx, r, p.module, refused); err != nil {
		return nil, err
	}
	if o.Warm != nil {
		if i, err := runForImage(ctx, p, globals, dir, o, o.Warm); err == nil {
			return i, nil
		}
	}
	return runForImage(ctx, p, globals, dir, o, nil)
}

// runForImage makes the instance of which [takeImage] takes an image.
func runForImage(ctx context.Context, p *compiledPlugin, globals []string, dir string, o *imageOrder, warm *warmUp,
) (*image, error) {
	ctx, cancel := context.WithTimeout(ctx, imageTimeout)
	defer cancel()
	m := &manifest.Manifest{Name: o.Name, Kind: manifest.KindParley}
	if o.Assets != "" {
		m.Assets = &manifest.Assets{Path: o.Assets}
	}
	j := newJob(&Config{}, m, nil, &host.Request{})
	j.limits.pages = o.Pages
	j.serve = func(context.Context, string, []byte) []byte { return nil }
	c := newCall(p, j)
	defer c.close()
	c.image, c.clock.frozen = &image{Warm: warm != nil}, &frozen{}
	c.control.begin(ctx)
	c.enter()
	if err := c.initialize(); err != nil {
		return nil, err
	}
	if warm != nil {
		c.request.Tool, c.request.Params, c.prepared = warm.Tool, warm.Params, true
		if _, err := c.runReactor(); err != nil {
			return nil, err
		}
	}
	folders := 0
	if o.Assets != "" {
		folders = 1 // which the engine keeps open
	}
	switch {
	case c.files.opened > folders:
		return nil, errors.New("it has open files")
	case c.clock.frozen.wall && o.Clock:
		return nil, errors.New("it has read the clock")
	}
	memory := c.mod.Memory()
	data, ok := memory.Read(0, memory.Size())
	if !ok {
		return nil, errors.New("its memory cannot be read")
	}
	i := c.image
	i.Pages, i.Clock, i.Random = memory.Size()/pageBytes, c.clock.frozen.clock, c.clock.frozen.random
	for _, name := range globals {
		i.Globals = append(i.Globals, c.mod.ExportedGlobal(name).Get())
	}
	return i, i.write(dir, data)
}

// write writes the image's files. The error says that it is too small or too large to be worth it.
func (i *image) write(dir string, memory []byte) error {
	file, err := os.OpenFile(filepath.Join(dir, imageName), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
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

// readImage returns the description of the image that the compiler has left in a slot, or nil if there is none.
func (s slot) readImage() *image {
	path := filepath.Join(s.dir, imageDescriptionName)
	data, err := readBounded(path, maxImageDescription)
	i := &image{}
	if err != nil || json.Unmarshal(data, i) != nil || os.Remove(path) != nil {
		return nil
	}
	i.Memory = hashedFile{Name: imageName}
	return i
}

// Functions of WASI that a guest may call while an image is taken: those whose outcome is the same in every call. The
// flags are those of the standard streams, which are in memory and never block. The second list is for plugins with
// assets.
var (
	imageFunctions = []string{"args_get", "args_sizes_get", "clock_res_get", "clock_time_get", "environ_get",
		"environ_sizes_get", "fd_fdstat_get", "fd_fdstat_set_flags", "fd_prestat_dir_name", "fd_prestat_get",
		"random_get", "sched_yield"}
	imageFileFunctions = []string{"fd_close", "fd_filestat_get", "fd_pread", "fd_read", "fd_readdir", "fd_seek", "fd_tell",
		"path_filestat_get", "path_open"}
)

// openImage opens the memory of an image; i may be nil.
func (s slot) openImage(i *image) (*image, error) {
	if i == nil {
		return nil, nil
	}
	for _, d := range i.Data {
		if d.At < 0 || d.Size < 0 || d.At > math.MaxInt64-d.Size || d.At+d.Size > int64(i.Pages)*pageBytes {
			return nil, errors.New("its image has data outside its memory")
		}
	}
	var err error
	i.file, err = os.Open(filepath.Join(s.dir, imageName))
	return i, err
}

// pages returns memory that begins with the image. Reading it takes less than mapping the file, where each page that
// the guest writes is a fault.
func (i *image) pages(limit uint64) (pages, error) {
	p := newPages(limit)
	memory := p.resize(uint64(i.Pages) * pageBytes)
	for _, s := range i.Data {
		if _, err := i.file.ReadAt(memory[s.At:s.At+s.Size], s.At); err != nil {
			p.free()
			return nil, err
		}
	}
	return p, nil
}
