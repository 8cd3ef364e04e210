//go:build linux

package keeper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// testUploads gives files to a file input: those in the folder of its session, and no others.
func testUploads(t *testing.T, c *Client) {
	url := site(t, map[string]string{"/": `<title>Uploads</title><input type=file>`, "/none": plainPage})
	mine, other := c.As(inSession("one")), c.As(inSession("two"))
	openPage(t, mine, url+"/")
	openPage(t, other, url+"/")
	put := func(c *Client) (folder, file string) {
		t.Helper()
		f, err := c.UploadFolder(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		file = filepath.Join(f.Path, "1", "notes.txt")
		if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
		return f.Path, file
	}
	folder, file := put(mine)
	_, theirs := put(other)
	give := func(file string) error {
		q := scriptRequest("input")
		q.Files = []string{file}
		done, err := mine.Script(testContext(t), q)
		if err == nil && done.Exception != nil {
			return api.Errorf(api.CodeProtocolError, "%s", done.Exception)
		}
		return err
	}
	if err := give(file); err != nil {
		t.Fatal(err)
	}
	if got := evaluatePromise(t, mine, "",
		`(async (f) => f.name + await f.text())(document.querySelector("input").files[0])`); got !=
		`"notes.txtcontent"` {
		t.Errorf("the page got %s", got)
	}
	link := filepath.Join(folder, "1", "link")
	if err := os.Symlink(theirs, link); err != nil {
		t.Fatal(err)
	}
	for _, denied := range []string{theirs, link, "/etc/hostname", file + "/",
		folder + "/../x", filepath.Dir(file), filepath.Join(folder, "none")} {
		wantCode(t, give(denied), api.CodeDenied, "neither a file that was handed on")
	}
	openPage(t, mine, url+"/none")
	if err := give(file); err == nil || !strings.Contains(err.Error(), "did not return an Element") {
		t.Errorf("without an input: %v", err)
	}
	for _, of := range []*Client{mine, other} {
		of.CloseSession(testContext(t), "")
	}
	waitFor(t, "the folder to go", func() bool { _, err := os.Stat(folder); return os.IsNotExist(err) })
}
