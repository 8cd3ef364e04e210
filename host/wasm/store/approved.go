package store

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
	"github.com/parley-tools/parley/manifest/sections"
)

// One folder holds the manifests of all builds that were ever installed, so that a change can be shown against the
// approved manifest. A file's name is the hash of the build's digest, a hyphen, and the hash of the manifest; a
// file with other content is ignored.
const (
	approvedDir    = ".approved"
	approvedSuffix = ".json"
	maxApproved    = 100 // of builds that are not installed; the oldest are removed first
)

// diffLines bounds the difference that an error shows.
const diffLines = 40

// Approved returns the manifest of the build with the given digest, if it was installed here and is still stored.
func (s *Store) Approved(digest string) ([]byte, bool) {
	if !isHash(hexOf(digest)) {
		return nil, false
	}
	for _, f := range ReadDir(filepath.Join(s.Dir, approvedDir)) {
		if sum, ok := strings.CutPrefix(f.Name(), hexOf(digest)+"-"); ok {
			if data, ok := s.approved(digest, strings.TrimSuffix(sum, approvedSuffix)); ok {
				return data, true
			}
		}
	}
	return nil, false
}

// approved reads the manifest of a build. A file whose hash differs is ignored.
func (s *Store) approved(digest, sum string) ([]byte, bool) {
	data, err := readBounded(s.approvedPath(digest, sum), manifest.MaxSize)
	return data, err == nil && hashOf(data) == sum
}

func (s *Store) approvedPath(digest, sum string) string {
	return filepath.Join(s.Dir, approvedDir, hexOf(digest)+"-"+sum+approvedSuffix)
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// saveApproved saves the manifest of a build that is being installed.
func (s *Store) saveApproved(e Entry, manifestJSON []byte) error {
	if _, ok := s.approved(e.Digest, e.ManifestSHA256); ok {
		return nil
	}
	if err := makeDir(filepath.Join(s.Dir, approvedDir)); err != nil {
		return err
	}
	return writeFile(s.approvedPath(e.Digest, e.ManifestSHA256), manifestJSON)
}

// pruneApproved removes the oldest manifests of builds that are not installed, keeping maxApproved.
func (s *Store) pruneApproved(entries []Entry) {
	dir := filepath.Join(s.Dir, approvedDir)
	var former []os.FileInfo
	for _, f := range ReadDir(dir) {
		installed := slices.ContainsFunc(entries, func(e Entry) bool {
			return strings.HasPrefix(f.Name(), hexOf(e.Digest)+"-")
		})
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

// integrityError returns the error for a part of an installed plugin that has changed. found is the present manifest;
// if it is not nil, the error shows the difference.
func (s *Store) integrityError(e Entry, what, path string, found []byte) error {
	err := host.Errorf(host.Integrity, "the %s of plugin %s is not the one that was installed: %s does not match %s; "+
		"it was not used. Install the plugin again if you trust its source",
		what, e.Name, path, e.Digest).WithSteps(reinstall(e))
	if found == nil {
		return err
	}
	approved, ok := s.Approved(e.Digest)
	if !ok {
		approved, ok = s.embeddedManifest(e)
	}
	if !ok {
		err.Message += "\nThe manifest that was installed is no longer stored, so the difference cannot be shown."
		return err
	}
	if hashOf(found) != hashOf(approved) {
		err.Message += "\nHow the manifest differs (- as it was installed, + as it is now):\n" +
			ManifestDiff(approved, found, diffLines)
	}
	return err
}

// embeddedManifest returns the manifest embedded in the wasm of an installed plugin, if it is the manifest that was
// installed.
func (s *Store) embeddedManifest(e Entry) ([]byte, bool) {
	wasm, err := readBounded(filepath.Join(s.pluginDir(e), wasmName), maxWasm)
	if err != nil {
		return nil, false
	}
	section, err := sections.ReadManifest(wasm)
	return section, err == nil && hashOf(section) == e.ManifestSHA256
}

// Difference describes how the manifests of a build and an approved build differ, or why the difference cannot be
// shown. found is the manifest of the build, or nil if the build was installed here.
func (s *Store) Difference(approvedDigest, foundDigest string, found []byte) string {
	approved, ok := s.Approved(approvedDigest)
	if !ok {
		return "The manifest of the approved build is not stored: the build was never installed here, or too long ago."
	}
	if found == nil {
		if found, ok = s.Approved(foundDigest); !ok {
			return "The manifest of this build is not stored, so the difference cannot be shown."
		}
	}
	if hashOf(found) == hashOf(approved) {
		return "The manifests are equal; the wasm differs."
	}
	return fmt.Sprintf("How the manifest differs (- as it was approved, + as it is):\n%s", ManifestDiff(approved, found,
		diffLines))
}
