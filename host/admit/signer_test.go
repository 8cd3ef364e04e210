package admit

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/policy/operator"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/wasm/store"
)

// TestSignersOfALongProcess checks that a running process uses the trusted keys and signatures that are on disk now.
func TestSignersOfALongProcess(t *testing.T) {
	home := t.TempDir()
	trust := &signature.Trust{Path: filepath.Join(home, "config", signature.TrustFile)}
	trust.File = operator.File{Path: trust.Path}
	who := New(Config{Store: store.Open(filepath.Join(home, "data", "plugins"), nil), Trust: trust,
		Shipped: func(string) (string, error) { return "", nil }})
	path := filepath.Join(t.TempDir(), "smallest.wasm")
	fixture := filepath.Join("..", "..", "testdata", "wasm", "smallest")
	copyFile(t, fixture+".wasm", path)
	copyFile(t, fixture+".manifest.json", strings.TrimSuffix(path, ".wasm")+".manifest.json")
	mine, other := secretKey(t), secretKey(t)
	c, err := store.ReadCandidate(path, "0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	c.Signature = mine.Sign(BuildOf(c))
	c.Signer = string(mine.Public())
	entry, _, err := who.cfg.Store.Install(c, false)
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(home, "data", "plugins", entry.Name, strings.TrimPrefix(entry.Digest, "sha256:"),
		"plugin.wasm.minisig")
	trusted := trust.Path
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name string
		do   func()
		want policy.Signer
	}{
		{"no trusted keys", func() {}, policy.Signer{Key: string(mine.Public())}},
		{"trusted", func() { write(trusted, string(mine.Public())+" me\n") },
			policy.Signer{Key: string(mine.Public()), Trusted: true}},
		{"trusted among others", func() { write(trusted, string(other.Public())+"\n"+string(mine.Public())+"\n") },
			policy.Signer{Key: string(mine.Public()), Trusted: true}},
		{"no longer trusted", func() { write(trusted, string(other.Public())+"\n") },
			policy.Signer{Key: string(mine.Public())}},
		{"signed by another on disk", func() { write(kept, string(other.Sign(BuildOf(c)))) },
			policy.Signer{Key: string(other.Public()), Trusted: true}},
		{"a signature of something else", func() {
			write(kept, string(other.Sign(signature.Build{Name: "x", Version: "1.0.0", Digest: "sha256:0"})))
		}, policy.Signer{}},
		{"no signature any more", func() { write(kept, "hello") }, policy.Signer{}},
		{"the first signature again", func() { write(kept, string(c.Signature)) }, policy.Signer{Key: string(mine.Public())}},
	} {
		step.do()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if got, err := who.BuildSigner("Smallest", entry.Digest); err != nil || got != step.want {
					t.Errorf("%s: %+v, %v", step.name, got, err)
				}
			})
		}
		wg.Wait()
	}
	// The same build again, from a file without a signature or with an invalid one.
	for _, text := range [][]byte{nil, []byte("hello")} {
		again := *c
		again.Signature, again.Signer = text, ""
		who.signers.builds.Store(again.Digest, &again)
		if got, err := who.BuildSigner("smallest", entry.Digest); err != nil || got.Key != string(mine.Public()) {
			t.Errorf("the installed build, loaded again: %+v, %v", got, err)
		}
	}
	if got, err := who.BuildSigner("smallest", "sha256:0"); err != nil || got != (policy.Signer{}) {
		t.Errorf("of a build that does not exist: %+v, %v", got, err)
	}
	write(trusted, "hello")
	if _, err := who.BuildSigner("smallest", entry.Digest); err == nil ||
		!strings.Contains(err.Error(), signature.TrustFile+":1") {
		t.Errorf("with an invalid list: %v", err)
	}
}

func secretKey(t *testing.T) signature.SecretKey {
	t.Helper()
	k, err := signature.NewSecretKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
