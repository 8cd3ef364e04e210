package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/internal/wasmtest"
)

// TestSwapped: while a guest uses names in every possible way, two goroutines replace the files behind them by files,
// folders, pipes and links that leave the mount. Nothing outside is read or changed. Each script runs twice, and again
// until names have been replaced often enough; PARLEY_HAMMER=1 runs each 100 times.
func TestSwapped(t *testing.T) {
	e := testEngine(t)
	m := wasmtest.Scripted(t)
	m.Tools[0].Returns = json.RawMessage(`{"type":"string","contentEncoding":"base64"}`)
	m.Tools[0].WASI.Output = "bytes" // entries of folders are printed as they are
	p := e.Provider(sourceOf(wasmtest.Hostile(t, "wasi.wasm"), m))
	inside, outside := tree(t)
	for name, content := range map[string]string{"secret": "not yours", "dir/secret": "not yours", "not yours": ""} {
		if err := os.WriteFile(filepath.Join(outside, filepath.FromSlash(name)), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, outside)
	root, err := os.OpenRoot(inside) // with os.Root the goroutines cannot follow each other's links
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	rounds, minSwaps := 2, int64(1_000)
	if hammer {
		rounds, minSwaps = 100, 100_000
	}

	var swaps atomic.Int64
	var swappers sync.WaitGroup
	for i := range 2 {
		swappers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for ctx.Err() == nil {
				swap(t, root, random, outside, fmt.Sprint("tmp", i))
				swaps.Add(1)
			}
		})
	}

	// Each script repeats its calls, so that swaps fall between the host's check and its use of a name.
	scripts := []string{
		"path_open 3 1 'x' 0 2 0 0 @; fd_read $ <64> @; print; fd_close $",
		"path_open 3 0 'x' 0 2 0 0 @; fd_read $ <64> @; print; fd_close $",
		"path_open 3 1 'x/secret' 0 2 0 0 @; fd_read $ <64> @; print; fd_close $",
		"path_open 3 1 'd/x/dir/secret' 0 2 0 0 @; fd_read $ <64> @; print; fd_close $",
		"path_open 3 1 'x' 9 0x42 0 0 @; fd_write $ <'written'> @; fd_close $",
		"path_open 3 1 'x/new' 1 0x42 0 0 @; fd_write $ <'written'> @; fd_close $",
		"path_open 3 1 'd/x/secret' 8 0x42 0 0 @; fd_close $",
		"path_open 3 1 'x' 2 2 0 0 @; path_open $ 1 'secret' 0 2 0 0 @; fd_read $ <64> @; print; fd_close $; fd_close $$",
		"path_open 3 1 'x' 2 2 0 0 @; fd_readdir $ ^ 4096 0 @; print; path_create_directory $ 'made'; path_unlink_file " +
			"$ 'secret'; fd_close $",
		"path_unlink_file 3 'x/secret'; path_unlink_file 3 'd/x/secret'; path_remove_directory 3 'x/dir'; " +
			"path_create_directory 3 'x/made'",
		"path_rename 3 'file' 3 'x/file'; path_rename 3 'x/secret' 3 'stolen'; " +
			"path_rename 3 'x' 3 'd/x'; path_rename 3 'd/x' 3 'x'",
		"path_link 3 1 'x' 3 'hard'; path_link 3 0 'x/secret' 3 'hard2'; path_link 3 0 'file' 3 'x/hard'; " +
			"path_unlink_file 3 'hard'",
		"path_filestat_set_times 3 1 'x' 0 0 5; path_filestat_set_times 3 0 'x' 0 0 5; path_filestat_set_times 3 1 " +
			"'x/secret' 0 0 5",
		"path_open 3 1 'x' 0 0x42 0 0 @; fd_filestat_set_times $ 0 0 5; fd_filestat_set_size $ 3; fd_close $",
		"path_readlink 3 'x/link' ^ 4096 @; path_filestat_get 3 1 'x/secret' ^; path_symlink 'x' 3 'x/soft'",
	}
	calls := 0
	for (calls < rounds*len(scripts) || swaps.Load() < minSwaps) && !t.Failed() {
		script := "path_open 3 1 '.' 2 2 0 0 @; fd_close $;" + strings.Repeat(scripts[calls%len(scripts)]+";", 200)
		r := requestFor(t, p, "run", string(guest.Marshal(map[string]string{"script": script})))
		r.Grant.FS = []grant.FS{{Path: "/data", Source: inside, Mode: "rw"}}
		result, err := invokeRequest(t, p, r)
		if err != nil && err.Code != host.LimitExceeded { // the guest reached the limit of created files
			t.Error(err)
		}
		var logged []byte
		if err == nil && (json.Unmarshal(result.Data, &logged) != nil || bytes.Contains(logged, []byte("not yours"))) {
			t.Errorf("%s read a file outside", scripts[calls%len(scripts)])
		}
		calls++
	}
	stop()
	swappers.Wait()
	t.Logf("figures: %d calls of 200 rounds each while names were replaced %d times", calls, swaps.Load())
	if changes := changesIn(before, snapshot(t, outside)); changes != "" {
		t.Errorf("files outside have changed:\n%s", changes)
	}
}

// swap replaces one of the names.
func swap(t testing.TB, root *os.Root, random *rand.Rand, outside, temp string) {
	_ = root.RemoveAll(temp)
	switch random.IntN(7) {
	case 0:
		_ = root.Symlink(outside, temp)
	case 1:
		_ = root.Symlink(filepath.Join(outside, "secret"), temp)
	case 2:
		_ = root.Symlink("../outside", temp)
	case 3:
		_ = root.MkdirAll(temp+"/dir", 0o700)
		_ = root.WriteFile(temp+"/secret", []byte("inside"), 0o600)
	case 4:
		_ = root.Symlink(".", temp)
	case 5:
		makePipe(t, filepath.Join(root.Name(), temp))
	default:
		_ = root.WriteFile(temp, []byte("inside"), 0o600)
	}
	target := []string{"x", "x", "d/x", "d"}[random.IntN(4)]
	if target == "d/x" {
		_ = root.Mkdir("d", 0o700)
	}
	if root.Rename(temp, target) != nil {
		_ = root.RemoveAll(target) // the existing one is of another kind
		_ = root.Rename(temp, target)
	}
}
