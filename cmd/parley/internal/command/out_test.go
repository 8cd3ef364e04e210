package command

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const pictureSchema = `{"type":"object","properties":{"kind":{"type":"string"},
	"data":{"type":"string","contentEncoding":"base64","contentMediaType":"image/png"}}}`

// TestOutInPieces writes results in two pieces, cut at each position after the bytes that reveal their kind. The file
// is always the same.
func TestOutInPieces(t *testing.T) {
	picture := []byte("\x89PNG\r\n\x1a\n and what follows it")
	text := base64.StdEncoding.EncodeToString(picture)
	for _, c := range []struct{ name, result, want, mime string }{
		{"binary", `{"data":"` + text + `"}`, string(picture), "image/png"},
		{"binary, not first", `{"kind":"p","data": "` + text + `","more":{"data":"!"}}`, string(picture), "image/png"},
		{"empty binary", `{"data":""}`, "", "image/png"},
		{"not a text", `{"data":null}`, "{\"data\":null}\n", "application/json"},
		{"elsewhere", `{"within":{"data":"` + text + `"}}`, `{"within":{"data":"` + text + "\"}}\n", "application/json"},
		{"not an object", `["data"]`, "[\"data\"]\n", "application/json"},
	} {
		for cut := min(32, len(c.result)); cut <= len(c.result); cut++ {
			path := filepath.Join(t.TempDir(), "out")
			o := &OutFile{Path: path, Returns: []byte(pictureSchema)}
			for piece := range bytes.SplitSeq([]byte(c.result[:cut]+"\x00"+c.result[cut:]), []byte{0}) {
				if _, err := o.Write(piece); err != nil {
					t.Fatalf("%s, cut at %d: %v", c.name, cut, err)
				}
			}
			answer, err := o.Done()
			if err != nil {
				t.Fatal(err)
			}
			got, _ := os.ReadFile(path)
			if string(got) != c.want || !strings.Contains(string(answer), `"mime":"`+c.mime+`"`) {
				t.Fatalf("%s, cut at %d: %q, %s", c.name, cut, got, answer)
			}
		}
	}
}

// FuzzOutInPieces cuts results after the bytes that reveal their kind: pieces and the whole produce the same file,
// or both fail.
func FuzzOutInPieces(f *testing.F) {
	f.Add(`{"data":"aGVsbG8gd29ybGQsIGhlbGxvIHdvcmxk"}`, 36)
	f.Add(`{"kind":"x","data":"!!"}`, 20)
	f.Add(`[1,2`, 3)
	f.Fuzz(func(t *testing.T, result string, cut int) {
		if len(result) < 2 || cut < len(result)/2 || cut > len(result) {
			return
		}
		at, media := binaryAt([]byte(result[:cut]), []byte(pictureSchema))
		if again, _ := binaryAt([]byte(result), []byte(pictureSchema)); at != again {
			return // the kind is known only later
		}
		decode := func(pieces ...string) (string, error) {
			if at < 0 {
				return strings.Join(pieces, ""), nil
			}
			d, all := &decoder{skip: at}, ""
			for _, p := range pieces {
				content, err := d.next([]byte(p))
				if err != nil {
					return "", err
				}
				all += string(content)
			}
			return all, nil
		}
		whole, err := decode(result)
		if pieces, err2 := decode(result[:cut], result[cut:]); err == nil && (err2 != nil || pieces != whole) {
			t.Fatalf("%q cut at %d (%s): %q, %v; as a whole %q", result, cut, media, pieces, err2, whole)
		}
	})
}

func TestOutRemovesFailedFile(t *testing.T) {
	dir := t.TempDir()
	o := &OutFile{Path: filepath.Join(dir, "out"), Returns: []byte(pictureSchema)}
	if _, err := o.Write([]byte(`{"data":"no base64 at all!"`)); err == nil || !strings.Contains(err.Error(), "base64") {
		t.Errorf("error %v", err)
	}
	o.Discard()
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("remaining files: %v", left)
	}
}
