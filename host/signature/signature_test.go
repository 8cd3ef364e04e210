package signature

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/durable/durabletest"
)

// buildOf returns a build with a unique digest; this package does not care what the digest covers.
func buildOf(name, version, wasm string) Build {
	return Build{Name: name, Version: version, Wasm: []byte(wasm), Digest: fmt.Sprintf("sha256:%x",
		sha256.Sum256([]byte(name+version+wasm)))}
}

func newKey(t testing.TB) SecretKey {
	t.Helper()
	k, err := NewSecretKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustParse(t testing.TB, text []byte) *Signature {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "minisign", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func wantError(t *testing.T, what string, err error, code host.Code, text string) {
	t.Helper()
	var e *host.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Message, text) {
		t.Errorf("%s: got %v, want %s with %q", what, err, code, text)
	}
}

func TestSignAndVerify(t *testing.T) {
	mine, other := newKey(t), newKey(t)
	b := buildOf("hello", "1.2.0", "\x00asm the code")
	text := mine.Sign(b)
	want := "trusted comment: parley name:hello version:1.2.0 digest:" + b.Digest + " key:" + string(mine.Public()) + "\n"
	if !strings.Contains(string(text), want) {
		t.Errorf("the signature is\n%s, want the line\n%s", text, want)
	}
	s := mustParse(t, text)
	if s.ID() != mine.Public().ID() || s.claim.key != mine.Public() ||
		!strings.HasPrefix(s.Comment(), "parley name:hello ") {
		t.Errorf("got %s, %s, %q", s.ID(), s.claim.key, s.Comment())
	}
	for name, keys := range map[string][]Key{
		"by its key": {mine.Public()}, "by one of several": {other.Public(), mine.Public()}, "by the key that it names": nil,
		"with an empty key": {""},
	} {
		if got, err := s.Verify(b, keys...); err != nil || got != mine.Public() {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// Whatever part of a signed build changes, the signature becomes invalid.
func TestVerifyRefuses(t *testing.T) {
	mine, other := newKey(t), newKey(t)
	b := buildOf("hello", "1.2.0", "\x00asm the code")
	text := string(mine.Sign(b))
	wasm, manifest := b, b
	wasm.Wasm = []byte("\x00asm the cole")
	manifest.Digest = buildOf("hello", "1.2.0", "another manifest").Digest
	lines := strings.Split(text, "\n")
	replaced := func(i int, with string) string {
		changed := append([]string{}, lines...)
		changed[i] = with
		return strings.Join(changed, "\n")
	}
	othersLines := strings.Split(string(other.Sign(b)), "\n")
	for _, c := range []struct {
		name, text string
		b          Build
		want       string
	}{
		{"another wasm under the same digest", text, wasm, "was not made over these bytes"},
		{"another manifest beside the same wasm", text, manifest, "it was made for " + b.Digest},
		{"a comment changed after signing", replaced(2, strings.Replace(lines[2], "1.2.0", "9.2.0", 1)), b,
			"was not made over these bytes"},
		{"a digest changed in the comment", replaced(2, strings.Replace(lines[2], b.Digest, manifest.Digest, 1)), manifest,
			"was not made over these bytes"},
		{"the comment's signature of another key", replaced(3, othersLines[3]), b, "was not made over these bytes"},
	} {
		_, err := mustParse(t, []byte(c.text)).Verify(c.b, mine.Public())
		wantError(t, c.name, err, host.Integrity, c.want)
	}
}

// An attacker can give a key the ID of a trusted one. That must not make its signatures those of the trusted key.
func TestKeyIDCollision(t *testing.T) {
	trusted, b := newKey(t).Public(), buildOf("hello", "1.2.0", "x")
	text, err := newKey(t).FileText("")
	if err != nil {
		t.Fatal(err)
	}
	comment, word, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	raw, err := base64.StdEncoding.DecodeString(word)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint64(raw[54:], trusted.numericID()) // after the algorithms, salt and limits
	evil, err := ReadSecretKey([]byte(comment+"\n"+base64.StdEncoding.EncodeToString(raw)), nil)
	if err != nil || evil.Public().ID() != trusted.ID() || evil.Public() == trusted {
		t.Fatalf("the key is %s, %v", evil.Public(), err)
	}
	s := mustParse(t, evil.Sign(b))
	_, err = s.Verify(b, trusted)
	wantError(t, "a chosen ID", err, host.Integrity, "was not made over these bytes with the key "+string(trusted))
	if got, err := s.Verify(b); err != nil || got != evil.Public() {
		t.Errorf("without the trusted key: %s, %v", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	mine, other := newKey(t), newKey(t)
	text := string(mine.Sign(buildOf("hello", "1.2.0", "x")))
	for name, c := range map[string]struct{ text, want string }{
		"nothing":      {"", "not a minisign signature"},
		"prose":        {"signed, me", "not a minisign signature"},
		"a public key": {string(mine.Public().FileText()), "not a minisign signature"},
		"three lines":  {strings.Join(strings.Split(text, "\n")[:3], "\n"), "not a minisign signature"},
		"another's key": {strings.Replace(text, "key:"+string(mine.Public()), "key:"+string(other.Public()), 1),
			"names a different key"},
		"half a key": {strings.Replace(text, "key:RW", "key:RX", 1), "names a different key"},
		"no digest":  {strings.Replace(text, "digest:", "dijest:", 1), "has no digest"},
		"a long comment": {strings.Replace(text, "parley name:", "parley name:"+strings.Repeat("x", MaxBytes), 1),
			"has at most"},
	} {
		if _, err := Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := Parse([]byte(strings.ReplaceAll(text, "\n", "\r\n"))); err != nil {
		t.Errorf("lines that end as on Windows: %v", err)
	}
}

// A signature by the minisign tool is valid only for a plugin with an embedded manifest.
func TestMinisignTool(t *testing.T) {
	key, err := ParseKey(string(fixture(t, "tool.pub")))
	if err != nil {
		t.Fatal(err)
	}
	b := Build{Name: "signed", Version: "1.2.0", Digest: "sha256:" + strings.Repeat("0", 64), Wasm: fixture(t,
		"signed.wasm"), ManifestEmbedded: true}
	for _, name := range []string{"signed.wasm.minisig", "signed.legacy.minisig"} {
		s := mustParse(t, fixture(t, name))
		if got, err := s.Verify(b, newKey(t).Public(), key); err != nil || got != key {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		_, err := s.Verify(b)
		wantError(t, name+" without a key", err, host.Integrity,
			"is signed with the key "+key.ID()+", which is not known here")
		if !errors.Is(err, ErrUnknownKey) {
			t.Errorf("%s without a key: %v has another cause", name, err)
		}
		beside := b
		beside.ManifestEmbedded = false
		_, err = s.Verify(beside, key)
		wantError(t, name+" with a manifest beside", err, host.Integrity, "covers only its wasm")
		tampered := b
		tampered.Wasm = append(append([]byte{}, b.Wasm...), 0)
		_, err = s.Verify(tampered, key)
		wantError(t, name+" with another wasm", err, host.Integrity, "was not made over these bytes")
	}
}

func TestSecretKeyFiles(t *testing.T) {
	noPassword := func() (string, error) { return "", errors.New("asked for a password") }
	k, err := ReadSecretKey(fixture(t, "tool.key"), noPassword)
	if pub, _ := ParseKey(string(fixture(t, "tool.pub"))); err != nil || k.Public() != pub {
		t.Errorf("a key of the minisign tool: %v", err)
	}
	secret := func() (string, error) { return "secret", nil }
	k, err = ReadSecretKey(fixture(t, "encrypted.key"), secret)
	if pub, _ := ParseKey(string(fixture(t, "encrypted.key.pub"))); err != nil || k.Public() != pub {
		t.Errorf("an encrypted key: %v", err)
	}
	plain, err := k.FileText("")
	if again, err2 := ReadSecretKey(plain, noPassword); err != nil || err2 != nil || again.Public() != k.Public() {
		t.Errorf("the written key: %v, %v", err, err2)
	}
	torn := append([]byte{}, plain...)
	torn[len(torn)-60] ^= 1
	for name, c := range map[string]struct {
		text     []byte
		password func() (string, error)
		want     string
	}{
		"a wrong password": {fixture(t, "encrypted.key"), func() (string, error) { return "sekret", nil },
			"the password is wrong"},
		"no password":    {fixture(t, "encrypted.key"), noPassword, "asked for a password"},
		"a public key":   {fixture(t, "tool.pub"), secret, "not a minisign secret key"},
		"nothing":        {nil, secret, "not a minisign secret key"},
		"prose":          {[]byte("my key"), secret, "not a minisign secret key"},
		"too long":       {[]byte(strings.Repeat("x", MaxBytes+1)), secret, "fewer than 300"},
		"a changed half": {torn, secret, "do not match"},
	} {
		if _, err := ReadSecretKey(c.text, c.password); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestWritePair(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "my.key")
	k := newKey(t)
	if err := k.WritePair(path, ""); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{path: 0o600, path + ".pub": 0o644} {
		if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, "again", newKey(t).WritePair(path, ""), host.AlreadyExists, "never overwritten")
	if err := os.Remove(path + ".pub"); err != nil {
		t.Fatal(err)
	}
	wantError(t, "over the secret half", newKey(t).WritePair(path, ""), host.AlreadyExists, path+" already exists")
	if _, err := os.Stat(path + ".pub"); !os.IsNotExist(err) {
		t.Errorf("half of a pair remains: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the old key has changed: %v", err)
	}
	locked := filepath.Join(dir, "locked.key")
	if err := newKey(t).WritePair(locked, "sesame"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(locked); err != nil || !minisign.IsEncrypted(text) {
		t.Errorf("a key with a password is not encrypted: %v", err)
	}
	wantError(t, "nowhere", newKey(t).WritePair(filepath.Join(dir, "none", "my.key"), ""), host.Unavailable,
		"cannot be written")
}

func TestParseKey(t *testing.T) {
	k := newKey(t).Public()
	if len(k) != 56 || !strings.HasPrefix(string(k), "RW") || len(k.ID()) != 16 {
		t.Errorf("key %s with the ID %s", k, k.ID())
	}
	for _, text := range []string{string(k), " " + string(k) + "\n", string(k.FileText()),
		strings.ReplaceAll(string(k.FileText()), "\n", "\r\n")} {
		if got, err := ParseKey(text); err != nil || got != k {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	padded := string(k.FileText()) + strings.Repeat("\n", MaxBytes)
	for _, text := range []string{padded, "", "RW", "my.key", string(k)[1:], string(k) + "A", "untrusted comment: x\n",
		strings.Repeat("A", MaxBytes+1), "RX" + string(k)[2:]} {
		if got, err := ParseKey(text); err == nil {
			t.Errorf("%.80q was parsed as %s", text, got)
		}
	}
}

// No signature file causes a panic, and only those that Sign wrote are valid.
func FuzzParse(f *testing.F) {
	k := newKey(f)
	b := buildOf("hello", "1.2.0", "\x00asm")
	good := k.Sign(b)
	f.Add(good)
	f.Add(fixture(f, "signed.wasm.minisig"))
	f.Add([]byte("untrusted comment: \nRW\ntrusted comment: parley name:\n\n"))
	want := mustParse(f, good)
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		_ = s.ID() + s.Comment() + s.claim.key.ID()
		if got, err := s.Verify(b, k.Public()); err == nil && got == k.Public() && !s.raw.Equal(want.raw) {
			t.Errorf("%q verifies", text)
		}
	})
}

// Encrypted keys are left out, because opening them is deliberately slow.
func FuzzSecretKey(f *testing.F) {
	f.Add(fixture(f, "tool.key"))
	f.Add(fixture(f, "tool.pub"))
	stop := errors.New("encrypted")
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := ReadSecretKey(text, func() (string, error) { return "", stop })
		if err == nil && mustParse(t, k.Sign(buildOf("a", "1.0.0", "x"))).claim.key != k.Public() {
			t.Errorf("%q signs with another key", text)
		}
	})
}

// A new key is flushed before it is used: if a crash lost it, nothing could be signed as its owner again.
func TestKeysAreFlushed(t *testing.T) {
	disk, dir := durabletest.Watch(t), t.TempDir()
	if err := newKey(t).WritePair(filepath.Join(dir, "my.key"), ""); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(disk.Took(dir)); got != "[my.key.pub my.key]" {
		t.Error(got)
	}
	disk.Err = errors.New("the disk is gone")
	wantError(t, "not on the disk", newKey(t).WritePair(filepath.Join(dir, "other.key"), ""), host.Unavailable,
		"the disk is gone")
}
