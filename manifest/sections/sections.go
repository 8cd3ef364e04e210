// Package sections reads and writes the custom sections of wasm files. They contain a plugin's manifest, scripts,
// text and assets.
package sections

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/manifest"
)

// Name is the name of the custom section of a wasm file that contains the manifest.
const Name = "parley.manifest"

// ErrNoManifest is returned for a wasm file without a manifest.
var ErrNoManifest = errors.New("no custom section " + Name)

var moduleHeader = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

// FormatError says why a file is not a wasm module, and at which byte that shows.
type FormatError struct {
	Offset  int
	Message string
	Fix     string // what to do about it; "" if unknown
}

func (e *FormatError) Error() string {
	s := fmt.Sprintf("not a wasm module: %s (at offset %d)", e.Message, e.Offset)
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

// CheckHeader checks that a file begins as a core wasm module. For the files that people install by mistake, the
// *[FormatError] says what they are and how to make a module.
func CheckHeader(wasm []byte) error {
	switch {
	case len(wasm) == 0:
		return &FormatError{Message: "the file is empty", Fix: "build it again"}
	case len(wasm) >= 8 && bytes.Equal(wasm[:4], moduleHeader[:4]) && wasm[6] == 1:
		return &FormatError{Offset: 4, Message: "this is a component, and Parley runs core modules",
			Fix: "rebuild it for WASI preview 1: cargo build --target wasm32-wasip1, or " +
				"GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared, or clang --target=wasm32-wasi"}
	case len(wasm) < 8 && (bytes.HasPrefix(moduleHeader, wasm) || bytes.HasPrefix(wasm, moduleHeader[:4])):
		return &FormatError{Offset: len(wasm), Message: "the file ends within the header", Fix: "copy or build it again"}
	case len(wasm) < 8 || !bytes.Equal(wasm[:4], moduleHeader[:4]):
		head := strings.TrimLeft(string(wasm[:min(len(wasm), 1024)]), "\ufeff \t\r\n")
		for _, f := range foreign {
			for start := range strings.SplitSeq(f.starts, "|") {
				if strings.HasPrefix(head, start) {
					return &FormatError{Message: "this is " + f.what, Fix: f.fix}
				}
			}
		}
		if len(wasm) > 262 && string(wasm[257:262]) == "ustar" {
			return &FormatError{Message: "this is a tar archive", Fix: "unpack it first"}
		}
		return &FormatError{Message: fmt.Sprintf("it begins with %+q, not with \"\\x00asm\"", wasm[:min(len(wasm), 8)])}
	case !bytes.Equal(wasm, moduleHeader) && !bytes.Equal(wasm[4:8], moduleHeader[4:]):
		version := binary.LittleEndian.Uint32(wasm[4:8])
		return &FormatError{Offset: 4, Message: fmt.Sprintf("its binary version is %d, and Parley reads version 1", version)}
	}
	return nil
}

// foreign are other file formats: their first bytes after any white space, and how to get a module from such a file.
var foreign = []struct{ starts, what, fix string }{
	{"(module|(component|(;|;;", "WebAssembly text", "run wat2wasm on it first"},
	{"\xff\xfe|\xfe\xff|(\x00|\x00(", "text in UTF-16",
		"save it in UTF-8; if it is WebAssembly text, run wat2wasm on it then"},
	{"version https://git-lfs", "a pointer of Git LFS, which stands for the file", "run git lfs pull"},
	{"<", "a page of HTML or XML, such as servers send instead of a file", "download the file again"},
	{"import |import{|export |const |let |var |function|async |(function|(()|(async|class |//|/*|\"use |'use |module.",
		"a text in JavaScript", "as a plugin its name ends in .js; a text of Emscripten or wasm-bindgen loads a .wasm file"},
	{"package |#include ", "source", "build its folder with parley plugin build DIR"},
	{"{", "JSON", convertToOpenAPI},
	{"syntax =|syntax=", "a schema of Protocol Buffers", convertToOpenAPI},
	{"type |schema |directive |\"\"\"", "a schema of GraphQL", convertToOpenAPI},
	{"#%RAML", "RAML", convertToOpenAPI},
	{"\x1f\x8b", "a gzip file", "gunzip it first"},
	{"PK\x03\x04", "a zip file", "unzip it first"},
	{"AGFzbQ", "base64 text", "decode it first: base64 -d"},
	{"\x7fELF", "a native Linux program", rebuildForWASI},
	{"\xcf\xfa\xed\xfe", "a native macOS program", rebuildForWASI},
	{"\xca\xfe\xba\xbe", "a native macOS program or a Java class", rebuildForWASI},
	{"MZ", "a native Windows program", rebuildForWASI},
	{"BC\xc0\xde", "LLVM bitcode", "link it: clang --target=wasm32-wasi without -c and -flto"},
	{"!<arch>\n", "a library of object files", "link it: clang --target=wasm32-wasi or wasm-ld"},
	{"#!|def |from |print(", "a script", "a plugin is a wasm module, or a text of JavaScript whose name ends in .js"},
}

const convertToOpenAPI = "of an API, parley plugin wrap takes an OpenAPI document in JSON or YAML: convert it to one"

const rebuildForWASI = "build it with GOOS=wasip1 GOARCH=wasm or --target=wasm32-wasi"

// ReadManifest returns the manifest in a wasm file, as a part of wasm. It compiles nothing, and allocates no memory
// by lengths that the file declares. The error is [ErrNoManifest] or a *[FormatError].
func ReadManifest(wasm []byte) ([]byte, error) {
	found, err := readCustom(wasm, Name)
	if err == nil && found == nil {
		err = ErrNoManifest
	}
	return found, err
}

// scriptSection is the beginning of the names of custom sections that contain scripts.
const scriptSection = "parley.script."

// MaxScript is the maximum size of a script in bytes.
const MaxScript = 256 << 10

// ReadScript returns the text of a script that a wasm file ships, as a part of wasm. The error says that it is
// missing, larger than [MaxScript], not UTF-8, or not the text that the manifest declares; or it is a *[FormatError].
func ReadScript(wasm []byte, s *manifest.Script) ([]byte, error) {
	text, err := readCustom(wasm, scriptSection+s.Name)
	switch {
	case err != nil:
		return nil, err
	case text == nil:
		return nil, fmt.Errorf("script %s is missing: the file has no custom section %s%s", s.Name, scriptSection, s.Name)
	case len(text) > MaxScript:
		return nil, fmt.Errorf("script %s has %d bytes; the limit is %d", s.Name, len(text), MaxScript)
	case !utf8.Valid(text):
		return nil, fmt.Errorf("script %s is not UTF-8", s.Name)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != s.SHA256 {
		return nil, fmt.Errorf("script %s has the SHA-256 %x; the manifest declares %s", s.Name, sum, s.SHA256)
	}
	return text, nil
}

// sourceSection is the name of the custom section that contains the text of a plugin of kind script: the name of its
// file, a line break, the text.
const sourceSection = "parley.source"

// MaxSource is the maximum size of a [SourceFile] in bytes.
const MaxSource = 1 << 20

// SourceFile is the text of a plugin of kind script.
type SourceFile struct {
	File   string `json:"file"` // its name, for errors
	Source string `json:"source"`
}

// ReadSource returns the text of a plugin of kind script. The plugin's module must have only custom sections. The
// error says what is wrong with the text or the module, or is a *[FormatError].
func ReadSource(wasm []byte) (*SourceFile, error) {
	content, err := readCustom(wasm, sourceSection)
	if err != nil {
		return nil, err
	}
	for s, err := range all(wasm) {
		if err != nil {
			return nil, err
		}
		if s.id != 0 {
			return nil, errors.New("the file has code, and a script has only a text; set another kind in its manifest")
		}
	}
	file, text, found := bytes.Cut(content, []byte{'\n'})
	switch {
	case !found || len(file) == 0:
		return nil, fmt.Errorf("the file has no text of a script: it has no custom section %s", sourceSection)
	case len(text) > MaxSource:
		return nil, fmt.Errorf("the script has %d bytes; the limit is %d", len(text), MaxSource)
	case !utf8.Valid(content):
		return nil, errors.New("the script is not UTF-8")
	}
	return &SourceFile{File: manifest.CleanLine(string(file)), Source: string(text)}, nil
}

// WriteSource returns a module that contains only the text of a script. A line break ends the file name.
func WriteSource(file string, text []byte) []byte {
	file, _, _ = strings.Cut(file, "\n")
	wasm, _ := writeCustom(moduleHeader, sourceSection, append([]byte(file+"\n"), text...)) // a valid header
	return wasm
}

// assetsSection is the name of the custom section that contains a tar of the files for [manifest.Assets].
const assetsSection = "parley.assets"

// ReadAssets returns the tar of the assets in a wasm file, as a part of wasm, nil if there is none. The error is a
// *[FormatError].
func ReadAssets(wasm []byte) ([]byte, error) { return readCustom(wasm, assetsSection) }

// part is a section of a wasm file, with the offsets where it begins and ends.
type part struct {
	id         byte
	begin, end int
	name       []byte // for a custom section; nil for others
	content    []byte // for a custom section, a slice of the file
}

// all yields the sections of a wasm file. After an error, which is a *[FormatError], it ends.
func all(wasm []byte) iter.Seq2[part, error] {
	return func(yield func(part, error) bool) {
		if err := CheckHeader(wasm); err != nil {
			yield(part{}, err)
			return
		}
		for at := len(moduleHeader); at < len(wasm); {
			s := part{id: wasm[at], begin: at}
			body, end, err := span(wasm, at+1)
			if s.end = end; err == nil && s.id == 0 {
				var name, rest int
				if name, rest, err = span(wasm[:end], body); err == nil {
					s.name, s.content = wasm[name:rest], wasm[rest:end:end]
				}
			}
			if !yield(s, err) || err != nil {
				return
			}
			at = end
		}
	}
}

// readCustom returns the content of the custom section with a name, nil if there is none.
func readCustom(wasm []byte, name string) (found []byte, err error) {
	for s, err := range all(wasm) {
		if err != nil {
			return nil, err
		}
		if string(s.name) == name {
			if found != nil {
				return nil, &FormatError{Offset: s.begin, Message: "it has two sections " + name}
			}
			found = s.content
		}
	}
	return found, nil
}

// span reads a length at offset at, and returns the bounds of the bytes that follow it.
func span(data []byte, at int) (start, end int, err error) {
	n, width := binary.Uvarint(data[at:min(len(data), at+5)])
	if width <= 0 {
		return 0, 0, &FormatError{Offset: at, Message: "it is truncated within a length"}
	}
	start = at + width
	if n > uint64(len(data)-start) {
		return 0, 0, &FormatError{Offset: at,
			Message: fmt.Sprintf("it is cut off or was changed as text: it declares %d bytes and has %d", n, len(data)-start)}
	}
	return start, start + int(n), nil
}

// WriteManifest returns a copy of wasm with the manifest in a custom section right after the header. It replaces the
// manifest that wasm had before.
func WriteManifest(wasm, manifest []byte) ([]byte, error) {
	return writeCustom(wasm, Name, manifest)
}

// Module returns a module that contains only a manifest, as for plugins of kind http.
func Module(manifest []byte) []byte {
	wasm, _ := writeCustom(moduleHeader, Name, manifest) // a valid header
	return wasm
}

// WriteScript returns a copy of wasm with the text of a script in a custom section. It replaces the script of that name
// that wasm had before.
func WriteScript(wasm []byte, name string, text []byte) ([]byte, error) {
	return writeCustom(wasm, scriptSection+name, text)
}

// WriteAssets returns a copy of wasm with the tar of the assets in a custom section. It replaces the tar that wasm
// had before.
func WriteAssets(wasm, tar []byte) ([]byte, error) { return writeCustom(wasm, assetsSection, tar) }

// writeCustom returns a copy of wasm with a custom section right after the header. It removes other sections of that
// name.
func writeCustom(wasm []byte, name string, content []byte) ([]byte, error) {
	body := append(binary.AppendUvarint(nil, uint64(len(name))), name...)
	out := append(bytes.Clone(moduleHeader), 0)
	out = binary.AppendUvarint(out, uint64(len(body)+len(content)))
	out = append(append(out, body...), content...)
	for s, err := range all(wasm) {
		if err != nil {
			return nil, err
		}
		if string(s.name) != name {
			out = append(out, wasm[s.begin:s.end]...)
		}
	}
	return out, nil
}
