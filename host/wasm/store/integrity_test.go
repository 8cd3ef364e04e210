package store

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest/sections"
)

// trapCommand is emptyCommand with one instruction, unreachable.
var trapCommand, _ = hex.DecodeString(
	"0061736d01000000010401600000030201000503010001071302066d656" +
		"d6f72790200065f737461727400000a05010300000b")

// writeEmbeddedPlugin writes a plugin file with the manifest of manifestFor embedded, in a folder of its own.
func writeEmbeddedPlugin(t testing.TB, code []byte, name, version string) string {
	t.Helper()
	whole, err := sections.WriteManifest(code, manifestFor(name, version))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".wasm")
	put(t, path, whole)
	return path
}

func readCandidateFrom(t testing.TB, path string) *Candidate {
	t.Helper()
	c, err := ReadCandidate(path, "0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestReadBytesAreInstalled replaces all files of a plugin between reading and installing it.
func TestReadBytesAreInstalled(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.wasm")
	put(t, path, emptyCommand)
	put(t, filepath.Join(dir, "x.manifest.json"), manifestFor("swap", "1.0.0"))
	put(t, path+signatureSuffix, []byte("signed"))
	c := readCandidateFrom(t, path)
	put(t, path, trapCommand)
	put(t, filepath.Join(dir, "x.manifest.json"), manifestFor("swap", "6.6.6"))
	put(t, path+signatureSuffix, []byte("forged"))
	s := Open(t.TempDir(), nil)
	entry, _, err := s.Install(c, false)
	if err != nil || entry.Version != "1.0.0" || entry.Digest != Digest(emptyCommand, manifestFor("swap", "1.0.0")) {
		t.Fatalf("%+v, %v", entry, err)
	}
	checkSource(t, s.Source(entry), c)
	if signature, err := s.Signature(entry); err != nil || string(signature) != "signed" {
		t.Errorf("signature %q, %v", signature, err)
	}
}

// TestDowngrade checks that an older version replaces a newer one only on request.
func TestDowngrade(t *testing.T) {
	s := Open(t.TempDir(), nil)
	now, _ := install(t, s, "text", "2.0.0")
	for _, version := range []string{"1.9.9", "2.0.0-rc.1"} {
		old := candidate(t, "Text", version)
		_, _, err := s.Install(old, false)
		wantError(t, version, err, host.Integrity, "text 2.0.0 is installed and "+old.Path+" is the older version "+version)
		steps := host.AsError(err).Steps
		if len(steps) != 1 || steps[0].String() != "plugin show text" {
			t.Errorf("%s: steps %v", version, steps)
		}
		if found, err := s.Find("text"); err != nil || found != now {
			t.Fatalf("%s: now %+v, %v", version, found, err)
		}
		if dirs := digestDirs(t, s.Dir); len(dirs) != 1 {
			t.Errorf("%s: folders %v", version, dirs)
		}
	}
	got, before, err := s.Install(candidate(t, "text", "1.9.9"), true)
	if err != nil || before == nil || *before != now || got.Version != "1.9.9" {
		t.Errorf("requested: %+v, %+v, %v", got, before, err)
	}
	rebuilt := candidate(t, "text", "1.9.9")
	rebuilt.Wasm = append(bytes.Clone(rebuilt.Wasm), 0, 2, 1, 'x')
	if got, _, err := s.Install(rebuilt, false); err != nil || got.Version != "1.9.9" || got.Digest == candidate(t,
		"text", "1.9.9").Digest {
		t.Errorf("the same version rebuilt: %+v, %v", got, err)
	}
}

// TestSignatureIsPreserved checks that a plugin's signature is stored and replaced together with the plugin.
func TestSignatureIsPreserved(t *testing.T) {
	s := Open(t.TempDir(), nil)
	with := func(version, signature, signer string) *Candidate {
		c := candidate(t, "text", version)
		c.Signer = signer
		if signature != "" {
			c.Signature = []byte(signature)
		}
		return c
	}
	for _, step := range []struct {
		name      string
		c         *Candidate
		signature string
		signer    string
		changed   bool
	}{
		{"unsigned", with("1.0.0", "", ""), "", "", true},
		{"signed with an unknown key", with("1.0.0", "whose?", ""), "whose?", "", true},
		{"signed", with("1.0.0", "mine", "RWme"), "mine", "RWme", true},
		{"again", with("1.0.0", "mine", "RWme"), "mine", "RWme", false},
		{"again without its signature", with("1.0.0", "", ""), "mine", "RWme", false},
		{"again with another unknown key", with("1.0.0", "whose?", ""), "mine", "RWme", false},
		{"signed by another", with("1.0.0", "other", "RWother"), "other", "RWother", true},
		{"a new version, unsigned", with("2.0.0", "", ""), "", "", true},
		{"a signed version", with("3.0.0", "mine", "RWme"), "mine", "RWme", true},
	} {
		lock := ""
		if step.name != "unsigned" {
			lock = content(t, s.LockPath())
		}
		step.c.TakesName = step.name == "a new version, unsigned"
		entry, _, err := s.Install(step.c, false)
		if err != nil || entry.Signer != step.signer {
			t.Fatalf("%s: signer %q, %v", step.name, entry.Signer, err)
		}
		found, err := s.Find("text")
		if err != nil || found != entry {
			t.Errorf("%s: the lock says %+v, %v", step.name, found, err)
		}
		opened, err := s.Open(entry)
		if err != nil || string(opened.Signature) != step.signature || opened.Signer != step.signer ||
			!opened.ManifestEmbedded() || !bytes.Equal(opened.Wasm, step.c.Wasm) {
			t.Errorf("%s: opened with %q by %q, %v", step.name, opened.Signature, opened.Signer, err)
		}
		if changed := lock != content(t, s.LockPath()); changed != step.changed {
			t.Errorf("%s: changed is %v", step.name, changed)
		}
	}
	entry, _ := s.Find("text")
	put(t, filepath.Join(s.pluginDir(entry), wasmName+signatureSuffix), []byte("forged"))
	if _, _, err := s.Install(with("3.0.0", "mine", "RWme"), false); err != nil {
		t.Fatal(err)
	}
	if signature, err := s.Signature(entry); err != nil || string(signature) != "mine" {
		t.Errorf("a changed signature is not repaired: %q, %v", signature, err)
	}
	// The folder of an installed plugin can be installed again with its signature.
	if c := readCandidateFrom(t, s.pluginDir(entry)); string(c.Signature) != "mine" {
		t.Errorf("read again with %q", c.Signature)
	}
}

func TestReadSignature(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put(t, at("x.wasm.minisig"), []byte("signed"))
	if data, err := ReadSignature(at("x.wasm.minisig")); err != nil || string(data) != "signed" {
		t.Errorf("%q, %v", data, err)
	}
	for file, want := range map[string]string{"x.wasm": "signed", "x.wasm.gz": "signed", "y.wasm": ""} {
		if data, err := findSignature(at(file)); err != nil || string(data) != want {
			t.Errorf("beside %s: %q, %v", file, data, err)
		}
	}
	put(t, at("x.wasm.gz.minisig"), []byte("its own"))
	if data, err := findSignature(at("x.wasm.gz")); err != nil || string(data) != "its own" {
		t.Errorf("%q, %v", data, err)
	}
	_, err := ReadSignature(at("none"))
	wantError(t, "none", err, host.NotFound, "does not exist")
	_, err = ReadSignature(dir)
	wantError(t, "a folder", err, host.Integrity, "not a regular file")
	put(t, at("large"), make([]byte, maxSignature+1))
	_, err = ReadSignature(at("large"))
	wantError(t, "a large file", err, host.Integrity, "is not a signature")
	if got := SignatureName("a/x.wasm.gz"); got != "a/x.wasm.minisig" {
		t.Error(got)
	}
}

// TestEveryByteIsHashed changes every byte of an installed plugin in turn (every fifth without PARLEY_HAMMER). Only
// what was installed runs, under its own name, version and description. Everything else ends in 87, or in 88 if the
// lock file is unreadable.
func TestEveryByteIsHashed(t *testing.T) {
	s := Open(t.TempDir(), nil)
	c := readCandidateFrom(t, writeEmbeddedPlugin(t, emptyCommand, "text", "1.0.0"))
	c.Signer = "RWme"
	entry, _, err := s.Install(c, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{s.LockPath(), filepath.Join(s.pluginDir(entry), wasmName),
		filepath.Join(s.pluginDir(entry), manifestName)} {
		whole := readFile(t, path)
		refused, tried := 0, 0
		for i := range whole {
			if i%5 != 0 && !hammer {
				continue
			}
			for _, bit := range []byte{0x01, 0x20} {
				tried++
				changed := bytes.Clone(whole)
				changed[i] ^= bit
				put(t, path, changed)
				entries, err := s.List()
				if err != nil {
					wantError(t, filepath.Base(path), err, host.ConfigError, "damaged")
					refused++
					continue
				}
				for _, e := range entries {
					source := s.Source(e)
					wasm, err := source.Wasm()
					if err == nil {
						_, err = source.Manifest()
					}
					if err != nil {
						wantError(t, string(changed), err, host.Integrity, "")
						refused++
						continue
					}
					// Only the lock file has the owner, which gives no rights to another build.
					source.Info.Owner, source.Info.ReplacedOwner = entry.Info().Owner, ""
					if !bytes.Equal(wasm, c.Wasm) || source.Info != entry.Info() {
						t.Errorf("byte %d of %s: %+v runs", i, path, source.Info)
					}
				}
			}
		}
		put(t, path, whole)
		if harmless := tried - refused; path != s.LockPath() && harmless > 0 || refused == 0 {
			t.Errorf("%s: %d of %d changes were refused", path, refused, tried)
		}
	}
	checkSource(t, s.Source(entry), c)
}

// TestDifferenceInError checks that a changed manifest is refused with its difference, if the installed manifest is
// still stored.
func TestDifferenceInError(t *testing.T) {
	const difference = "\nHow the manifest differs (- as it was installed, + as it is now):\n- /docs/brief: " +
		"\"Plugin text\"\n+ /docs/brief: \"Obey me\""
	for _, c := range []struct {
		name   string
		beside bool // the manifest is a file beside the wasm
		spoil  func(s *Store, e Entry)
		want   string
	}{
		{"kept", true, func(*Store, Entry) {}, difference},
		{"carried", false, func(s *Store, _ Entry) { os.RemoveAll(filepath.Join(s.Dir, approvedDir)) },
			difference},
		{"gone", true, func(s *Store, _ Entry) { os.RemoveAll(filepath.Join(s.Dir, approvedDir)) },
			"\nThe manifest that was installed is no longer stored"},
		{"forged, too", true, func(s *Store, e Entry) {
			put(t, s.approvedPath(e.Digest, e.ManifestSHA256), []byte(`{"approved":"anything"}`))
		}, "\nThe manifest that was installed is no longer stored"},
	} {
		s := Open(t.TempDir(), nil)
		path := writeEmbeddedPlugin(t, emptyCommand, "text", "1.0.0")
		if c.beside {
			put(t, path, emptyCommand)
			put(t, strings.TrimSuffix(path, ".wasm")+".manifest.json", manifestFor("text", "1.0.0"))
		}
		entry, _, err := s.Install(readCandidateFrom(t, path), false)
		if err != nil {
			t.Fatal(err)
		}
		c.spoil(s, entry)
		put(t, filepath.Join(s.pluginDir(entry), manifestName), bytes.Replace(manifestFor("text", "1.0.0"),
			[]byte("Plugin text"), []byte("Obey me"), 1))
		_, err = s.Source(entry).Manifest()
		wantError(t, c.name, err, host.Integrity, c.want)
		_, err = s.Source(entry).Wasm()
		wantError(t, c.name, err, host.Integrity, c.want)
	}
}

// TestForgedLockDifference checks that the digest reveals a forged manifest even if its hash in the lock file is
// forged, too.
func TestForgedLockDifference(t *testing.T) {
	s := Open(t.TempDir(), nil)
	entry, _ := install(t, s, "text", "1.0.0")
	forged := manifestFor("text", "1.0.0")
	forged = bytes.Replace(forged, []byte(`"effect":"read"`), []byte(`"effect":"write"`), 1)
	put(t, filepath.Join(s.pluginDir(entry), manifestName), forged)
	entry.ManifestSHA256 = hashOf(forged)
	_, err := s.Source(entry).Wasm()
	wantError(t, "forged", err, host.Integrity, "- /tools/run/effect: \"read\"\n+ /tools/run/effect: \"write\"")
}

// TestApprovedManifests checks that the newest manifests of removed builds are kept for comparison.
func TestApprovedManifests(t *testing.T) {
	s := Open(t.TempDir(), nil)
	one, _ := install(t, s, "text", "1.0.0")
	two, _ := install(t, s, "text", "2.0.0")
	if got := s.Difference(one.Digest, two.Digest, nil); !strings.HasPrefix(got, "How the manifest differs (- as it "+
		"was approved, + as it is):\n- /version: \"1.0.0\"\n+ /version: \"2.0.0\"") {
		t.Errorf("between two builds:\n%s", got)
	}
	if got := s.Difference(one.Digest, "sha256:"+strings.Repeat("0", 64),
		manifestFor("text", "1.0.0")); got != "The manifests are equal; the wasm differs." {
		t.Errorf("of one that was never installed:\n%s", got)
	}
	if got := s.Difference(one.Digest, "sha256:"+strings.Repeat("0", 64), nil); !strings.HasPrefix(got,
		"The manifest of this build is not stored") {
		t.Error(got)
	}
	for _, digest := range []string{"sha256:" + strings.Repeat("0", 64), "", "sha256:../../x"} {
		if got := s.Difference(digest, two.Digest, nil); !strings.HasPrefix(got,
			"The manifest of the approved build is not stored") {
			t.Errorf("%q: %s", digest, got)
		}
	}
	for i := range maxApproved + 10 {
		path := s.approvedPath("sha256:"+hashOf([]byte{byte(i)}), hashOf(nil))
		put(t, path, nil)
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Duration(i+1)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	old := s.approvedPath(two.Digest, two.ManifestSHA256)
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-10_000*time.Hour)); err != nil {
		t.Fatal(err)
	}
	install(t, s, "other", "1.0.0")
	if n := len(ReadDir(filepath.Join(s.Dir, approvedDir))); n != maxApproved+2 {
		t.Errorf("%d manifests are kept", n)
	}
	for _, digest := range []string{one.Digest, two.Digest} {
		if _, ok := s.Approved(digest); !ok {
			t.Errorf("the manifest of %s is missing", digest)
		}
	}
}

// TestReadBounded checks a file at its limit and beyond. A larger file is not read at all, whatever it claims to hold.
func TestReadBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, c := range []struct {
		size int64
		want string
	}{
		{0, ""},
		{1 << 20, ""},
		{1<<20 + 1, "1048577 bytes; the limit is 1 MiB"},
		{1 << 34, "17179869184 bytes; the limit is 1 MiB"},
	} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, c.size); err != nil {
			t.Fatal(err)
		}
		data, err := readBounded(path, 1<<20)
		if c.want == "" && (err != nil || int64(len(data)) != c.size) {
			t.Errorf("%d bytes: %d, %v", c.size, len(data), err)
		}
		if c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%d bytes: %v, want %s", c.size, err, c.want)
		}
	}
}
