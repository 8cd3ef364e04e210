package sections

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest"
)

// section is a section of a wasm module.
func section(id byte, body ...byte) []byte {
	return append(binary.AppendUvarint([]byte{id}, uint64(len(body))), body...)
}

func custom(name, content string) []byte {
	return section(0, append(binary.AppendUvarint(nil, uint64(len(name))), name+content...)...)
}

func module(sections ...[]byte) []byte {
	return append(bytes.Clone(moduleHeader), bytes.Join(sections, nil)...)
}

func TestReadSection(t *testing.T) {
	types := section(1, 1, 0x60, 0, 0)
	for _, c := range []struct {
		name string
		wasm []byte
		want string
	}{
		{"first", module(custom(Name, `{"a":1}`), types), `{"a":1}`},
		{"last", module(types, custom("name", "x"), custom(Name, `{"a":1}`)), `{"a":1}`},
		{"alone", module(custom(Name, "x")), "x"},
		{"empty", module(custom(Name, ""), types), ""},
		{"a length with redundant bytes", module([]byte{0, 0x94, 0x80, 0x80, 0x80, 0x00}, custom("ignored", "")[1:1],
			append(binary.AppendUvarint(nil, uint64(len(Name))), Name+"{} x"...)), "{} x"},
	} {
		got, err := ReadManifest(c.wasm)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v; expected %q", c.name, got, err, c.want)
		}
		if cap(got) != len(got) {
			t.Errorf("%s: appending to the manifest would write into the module", c.name)
		}
	}
	for _, wasm := range [][]byte{
		module(), module(types), module(custom("parley.manifesto", "{}")), module(custom("", "")),
	} {
		if got, err := ReadManifest(wasm); !errors.Is(err, ErrNoManifest) || got != nil {
			t.Errorf("%q: got %q, %v; expected no section", wasm, got, err)
		}
	}
}

func TestReadSectionRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		wasm   []byte
		offset int
		says   string
	}{
		{"empty", nil, 0, "the file is empty"},
		{"component", []byte("\x00asm\x0d\x00\x01\x00rest"), 4,
			"this is a component, and Parley runs core modules (at offset 4); " +
				"rebuild it for WASI preview 1: cargo build --target wasm32-wasip1"},
		{"beginning of a component", []byte("\x00asm\x0d\x00"), 6, "ends within the header"},
		{"half a header", []byte("\x00asm\x01\x00"), 6, "ends within the header"},
		{"another version", []byte("\x00asm\x02\x00\x00\x00"), 4, "its binary version is 2"},
		{"gzip", []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"), 0, "gunzip it first"},
		{"ELF", []byte("\x7fELF\x02\x01\x01\x00\x00"), 0, "native Linux program"},
		{"Mach-O", []byte("\xcf\xfa\xed\xfe\x07\x00\x00\x01"), 0, "native macOS program"},
		{"PE", []byte("MZ\x90\x00\x03\x00\x00\x00"), 0, "native Windows program"},
		{"zip", []byte("PK\x03\x04\x14\x00\x00\x00"), 0, "unzip it first"},
		{"bitcode", []byte("BC\xc0\xde\x35\x14\x00\x00"), 0, "LLVM bitcode"},
		{"archive", []byte("!<arch>\n"), 0, "library of object files"},
		{"WAT", []byte("(module (func))"), 0, "run wat2wasm on it first"},
		{"WAT after a comment", []byte("\n ;; a plugin\n(module)"), 0, "run wat2wasm on it first"},
		{"WAT of an editor that marks UTF-8", []byte("\ufeff(module)"), 0, "run wat2wasm on it first"},
		{"WAT in UTF-16", []byte("\xff\xfe(\x00m\x00o\x00d\x00"), 0, "text in UTF-16"},
		{"WAT in UTF-16, other order", []byte("\xfe\xff\x00(\x00m\x00o"), 0, "text in UTF-16"},
		{"WAT in UTF-16 without a mark", []byte("(\x00m\x00o\x00d\x00"), 0, "text in UTF-16"},
		{"a pointer of Git LFS", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00"), 0, "run git lfs pull"},
		{"a page", []byte("<!DOCTYPE html><title>404</title>"), 0, "download the file again"},
		{"JavaScript", []byte("import { a } from './b.js'"), 0, "a text in JavaScript (at offset 0); as a plugin its name"},
		{"JavaScript of Emscripten", []byte("\nvar Module = (() => {"), 0, "loads a .wasm file"},
		{"text", []byte("#!/bin/sh\necho hello"), 0, "this is a script"},
		{"Go", []byte("package main\n"), 0, "build its folder"},
		{"Python", []byte("print(1)\n"), 0, "this is a script"},
		{"tar", append(bytes.Repeat([]byte("x"), 257), "ustar\x0000"...), 0, "this is a tar archive (at offset 0); unpack"},
		{"a HAR", []byte(`{"log":{}}`), 0, "this is JSON"},
		{"GraphQL", []byte("type Query { a: Int }"), 0, "OpenAPI"},
		{"Protocol Buffers", []byte("syntax = \"proto3\";"), 0, "OpenAPI"},
		{"RAML", []byte("#%RAML 1.0\n"), 0, "OpenAPI"},
		{"short text", []byte("hi"), 0, `it begins with "hi"`},
		{"text with terminal escapes", []byte("\x1b[31mred\x1b[0m"), 0, `it begins with "\x1b[31mred"`},
		{"two manifests", module(custom(Name, "{}"), custom(Name, "{}")), 28, "two sections parley.manifest"},
		{"two, the first empty", module(custom(Name, ""), custom(Name, "{}")), 26,
			"two sections parley.manifest"},
		{"no length", module([]byte{1}), 9, "truncated within a length"},
		{"half a length", module([]byte{1, 0x80}), 9, "truncated within a length"},
		{"a length of six bytes", module([]byte{1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}), 9, "truncated within a length"},
		{"a length of 4 GiB", module([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f}), 9,
			"it declares 4294967295 bytes and has 0"},
		{"a length of 32 GiB", module([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x7f}), 9,
			"it declares 34359738367 bytes and has 0"},
		{"a name beyond its section", module(section(0, 200, 1), section(1, make([]byte, 300)...)), 10,
			"it declares 200 bytes"},
		{"a custom section without a name", module(section(0)), 10, "truncated within a length"},
	} {
		got, err := ReadManifest(c.wasm)
		var f *FormatError
		if got != nil || !errors.As(err, &f) || f.Offset != c.offset || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %q, %v; expected offset %d and %q", c.name, got, err, c.offset, c.says)
			continue
		}
		if _, err := WriteManifest(c.wasm, []byte("{}")); err == nil && !strings.HasPrefix(c.name, "two") {
			t.Errorf("%s: a manifest was written to it", c.name)
		}
	}
}

// Only a custom section can be the manifest, even if others have the same content.
func TestReadSectionOfAnotherKind(t *testing.T) {
	content := custom(Name, "{}")[2:]
	for id := byte(1); id <= 12; id++ {
		if got, err := ReadManifest(module(section(id, content...))); !errors.Is(err, ErrNoManifest) {
			t.Errorf("section %d: got %q, %v", id, got, err)
		}
	}
}

// TestReadSectionTruncated cuts a module at every byte: each is read up to the cut or refused, never read as
// something else.
func TestReadSectionTruncated(t *testing.T) {
	manifest := `{"manifest":1}`
	whole := module(section(1, 1, 0x60, 0, 0), custom(Name, manifest), custom("name", "\x00\x01m"))
	ends := map[int]bool{8: true, 14: true} // between sections, before the manifest's
	end := len(module(section(1, 1, 0x60, 0, 0), custom(Name, manifest)))
	for n := range len(whole) {
		got, err := ReadManifest(whole[:n])
		switch {
		case n == end:
			if err != nil || string(got) != manifest {
				t.Errorf("cut at %d: got %q, %v", n, got, err)
			}
		case ends[n]:
			if !errors.Is(err, ErrNoManifest) {
				t.Errorf("cut at %d: got %v", n, err)
			}
		default:
			var f *FormatError
			if !errors.As(err, &f) {
				t.Errorf("cut at %d: got %q, %v; expected it refused", n, got, err)
			}
		}
	}
}

func TestWriteSection(t *testing.T) {
	types, debug := section(1, 1, 0x60, 0, 0), custom("name", "x")
	bare := module(types, debug)
	first, err := WriteManifest(bare, []byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := module(custom(Name, `{"a":1}`), types, debug); !bytes.Equal(first, want) {
		t.Errorf("got %q, expected the section right after the header: %q", first, want)
	}
	if !bytes.Equal(bare, module(types, debug)) {
		t.Error("the module that was given has changed")
	}
	long := strings.Repeat("x", 70000)
	second, err := WriteManifest(first, []byte(long))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ReadManifest(second); err != nil || string(got) != long {
		t.Errorf("read back %d bytes, %v", len(got), err)
	}
	if len(second) != len(bare)+len(custom(Name, long)) {
		t.Error("the previous section was not removed")
	}
	twice := module(custom(Name, "1"), types, custom(Name, "2"))
	rewritten, err := WriteManifest(twice, []byte("3"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ReadManifest(rewritten); err != nil || string(got) != "3" {
		t.Errorf("one of two sections must remain: %q, %v", got, err)
	}
	if _, err := WriteManifest(bare, nil); err != nil {
		t.Errorf("an empty manifest: %v", err)
	}
}

func TestReadSectionAllocatesNothing(t *testing.T) {
	huge := module([]byte{0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	if n := testing.AllocsPerRun(100, func() { _, _ = ReadManifest(huge) }); n > 100 {
		t.Errorf("%v allocations for a module of %d bytes", n, len(huge))
	}
	sections := module(bytes.Repeat(custom("x", ""), 100000), custom(Name, "{}"))
	if n := testing.AllocsPerRun(10, func() { _, _ = ReadManifest(sections) }); n > 100 {
		t.Errorf("%v allocations while looking through a module", n)
	}
}

func FuzzReadSection(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(module(section(1, 1, 0x60, 0, 0), custom(Name, `{}`)))
	f.Add(module(custom(Name, ``), custom(Name, `{}`)))
	f.Add(module([]byte{0, 0xff, 0xff, 0xff, 0xff, 0x0f}))
	f.Add([]byte("\x00asm\x0d\x00\x01\x00"))
	files, _ := filepath.Glob("../host/wasm/testdata/*.wasm")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && len(data) < 1<<16 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		before := bytes.Clone(wasm)
		got, err := ReadManifest(wasm)
		if err == nil && !bytes.Contains(wasm, got) {
			t.Errorf("%q is not a part of the module", got)
		}
		written, err := WriteManifest(wasm, []byte("new"))
		if err == nil {
			if back, err := ReadManifest(written); err != nil || string(back) != "new" {
				t.Errorf("written and read back: %q, %v", back, err)
			}
		}
		if !bytes.Equal(before, wasm) {
			t.Error("the module that was given has changed")
		}
	})
}

func TestScripts(t *testing.T) {
	const text = "exports.f = () => 1"
	whole, err := WriteScript(module(section(1, 1, 0x60, 0, 0)), "page", []byte("old"))
	if err == nil {
		whole, err = WriteScript(whole, "page", []byte(text))
	}
	if err == nil {
		whole, err = WriteManifest(whole, []byte("{}"))
	}
	if err != nil {
		t.Fatal(err)
	}
	digest := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	page := &manifest.Script{Name: "page", SHA256: digest(text)}
	if got, err := ReadScript(whole, page); err != nil || string(got) != text {
		t.Errorf("got %q, %v", got, err)
	}
	large, invalid := strings.Repeat(" ", MaxScript+1), "\xff"
	for _, c := range []struct {
		script manifest.Script
		want   string
	}{
		{manifest.Script{Name: "page", SHA256: digest("old")}, "the manifest declares"},
		{manifest.Script{Name: "other", SHA256: digest(text)}, "is missing"},
		{manifest.Script{Name: "large", SHA256: digest(large)}, "the limit is"},
		{manifest.Script{Name: "invalid", SHA256: digest(invalid)}, "not UTF-8"},
	} {
		wasm := module(custom("parley.script.page", text), custom("parley.script.large", large),
			custom("parley.script.invalid", invalid))
		if _, err := ReadScript(wasm, &c.script); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.script.Name, err, c.want)
		}
	}
}
