// Command gen writes the embedded form of the Chrome DevTools Protocol from the pinned documents in ../protocol/source
// and the reviewed tables next to this file. Run it with `go generate ./cdp/...`. Its output is deterministic. A table
// that does not match the protocol is an error.
package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/parley-tools/parley/cdp/internal/protocol"
)

// revision is the version of the npm package devtools-protocol in ../protocol/source.
const revision = "0.0.1734725"

func main() {
	// The folders are relative to the folder of the go:generate line.
	p, err := generate("../protocol", "../gen")
	if err == nil {
		err = os.WriteFile("../protocol/protocol.bin", []byte(p.Encoded()), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate reads sources and tables.
func generate(folder, tables string) (*protocol.Protocol, error) {
	documents, err := readDocuments(folder)
	if err != nil {
		return nil, err
	}
	// The names that the tables must match come from a protocol without notes.
	bare, err := protocol.Build(revision, protocol.Notes{}, documents...)
	if err != nil {
		return nil, err
	}
	notes, err := readTables(tables, bare)
	if err != nil {
		return nil, err
	}
	if documents, err = correctNames(tables, documents, bare); err != nil {
		return nil, err
	}
	return protocol.Build(revision, notes, documents...)
}

// readDocuments returns the pinned documents.
func readDocuments(folder string) (documents [][]byte, err error) {
	for _, name := range []string{"browser_protocol.json.gz", "js_protocol.json.gz"} {
		raw, err := gunzip(filepath.Join(folder, "source", name))
		if err != nil {
			return nil, err
		}
		documents = append(documents, raw)
	}
	return documents, nil
}

func gunzip(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return io.ReadAll(z)
}
