package wasm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// The manifests of what was installed, also of builds that have been replaced or removed, lie in one folder, so that it can be
// shown how a manifest differs from the one that was approved. The name of each is the hash of its build's digest and its own,
// with a hyphen between them: no other content is believed under that name.
const (
	approvedDir    = ".approved"
	approvedSuffix = ".json"
	maxApproved    = 100 // of builds that are not installed; the oldest go first
)

// diffLines bounds the difference of two manifests in an error.
const diffLines = 40

// Approved returns the manifest of the build that has a digest, if that was ever installed here and is still at hand.
func (s *Store) Approved(digest string) ([]byte, bool) {
	if !isHash(hexOf(digest)) {
		return nil, false
	}
	for _, f := range readDir(filepath.Join(s.dir, approvedDir)) {
		if sum, ok := approvedSum(f.Name(), digest); ok {
			if data, ok := s.approved(digest, sum); ok {
				return data, true
			}
		}
	}
	return nil, false
}

// approvedSum takes the hash of the manifest off a file name, if that is the name of a manifest of the build with this digest.
func approvedSum(name, digest string) (string, bool) {
	sum, ok := strings.CutPrefix(name, hexOf(digest)+"-")
	if !ok {
		return "", false
	}
	sum, ok = strings.CutSuffix(sum, approvedSuffix)
	return sum, ok && isHash(sum)
}

// approved reads the manifest of a build; what does not have the hash is not believed.
func (s *Store) approved(digest, sum string) ([]byte, bool) {
	data, err := readBounded(s.approvedPath(digest, sum), maxManifest)
	return data, err == nil && hashOf(data) == sum
}

func (s *Store) approvedPath(digest, sum string) string {
	return filepath.Join(s.dir, approvedDir, hexOf(digest)+"-"+sum+approvedSuffix)
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// saveApproved keeps the manifest of a build that is being installed.
func (s *Store) saveApproved(e Entry, manifestJSON []byte) error {
	if _, ok := s.approved(e.Digest, e.ManifestSHA256); ok {
		return nil
	}
	if err := makeDir(filepath.Join(s.dir, approvedDir)); err != nil {
		return err
	}
	return writeFile(s.approvedPath(e.Digest, e.ManifestSHA256), manifestJSON)
}

// pruneApproved removes the oldest manifests of builds that are not installed, beyond maxApproved.
func (s *Store) pruneApproved(entries []Entry) {
	dir := filepath.Join(s.dir, approvedDir)
	var former []os.FileInfo
	for _, f := range readDir(dir) {
		installed := slices.ContainsFunc(entries, func(e Entry) bool { return strings.HasPrefix(f.Name(), hexOf(e.Digest)+"-") })
		if info, err := f.Info(); err == nil && !installed {
			former = append(former, info)
		}
	}
	slices.SortFunc(former, func(a, b os.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, info := range former[min(len(former), maxApproved):] {
		if err := os.Remove(filepath.Join(dir, info.Name())); err != nil {
			s.logf("%v", err)
		}
	}
}

// integrityError says that a part of an installed plugin is not what was installed and, for a manifest, how: found is what is there now.
func (s *Store) integrityError(e Entry, what, path string, found []byte) error {
	err := host.Errorf(host.Integrity, "the %s of plugin %s is not the one that was installed: %s does not belong to %s; it was not used. Install the plugin again if you trust where it comes from",
		what, e.Name, path, e.Digest).WithNext(reinstall(e))
	if found == nil {
		return err
	}
	approved, ok := s.approved(e.Digest, e.ManifestSHA256)
	if !ok {
		approved, ok = s.Approved(e.Digest)
	}
	if !ok {
		approved, ok = s.embeddedManifest(e)
	}
	if !ok {
		err.Message += "\nThe manifest that was installed is not at hand any more, so the difference cannot be shown."
		return err
	}
	if hashOf(found) != hashOf(approved) {
		err.Message += "\nHow the manifest differs (- as it was installed, + as it is now):\n" + ManifestDiff(approved, found, diffLines)
	}
	return err
}

// embeddedManifest returns the manifest that the wasm of an installed plugin carries, if that is the one that was installed.
func (s *Store) embeddedManifest(e Entry) ([]byte, bool) {
	wasm, err := readBounded(filepath.Join(s.pluginDir(e), wasmName), maxWasm)
	if err != nil {
		return nil, false
	}
	section, err := manifest.ReadSection(wasm)
	return section, err == nil && hashOf(section) == e.ManifestSHA256
}

// Difference shows how the manifest of a build differs from that of one that was approved, or says why it cannot. found is the
// manifest, or nil if it is the one of a build that was installed here.
func (s *Store) Difference(approvedDigest, foundDigest string, found []byte) string {
	approved, ok := s.Approved(approvedDigest)
	if !ok {
		return "The manifest of the approved build is not at hand: that build was never installed here, or too long ago."
	}
	if found == nil {
		if found, ok = s.Approved(foundDigest); !ok {
			return "The manifest of this build is not at hand, so the difference cannot be shown."
		}
	}
	if hashOf(found) == hashOf(approved) {
		return "The manifests are the same; the wasm differs."
	}
	return fmt.Sprintf("How the manifest differs (- as it was approved, + as it is):\n%s", ManifestDiff(approved, found, diffLines))
}
