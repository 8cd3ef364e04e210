package store

import (
	"cmp"
	"slices"
	"strings"
)

// Older reports whether version a precedes version b by the rules of semver 2.0.0: 1.0.0-rc.1 is older than 1.0.0,
// and build metadata after a plus does not count.
func Older(a, b string) bool {
	coreA, preA := splitVersion(a)
	coreB, preB := splitVersion(b)
	if order := compareParts(coreA, coreB); order != 0 {
		return order < 0
	}
	if preA == "" || preB == "" {
		return preA != "" // a pre-release is older than its release
	}
	return compareParts(preA, preB) < 0
}

func splitVersion(v string) (core, pre string) {
	v, _, _ = strings.Cut(v, "+")
	core, pre, _ = strings.Cut(v, "-")
	return core, pre
}

// compareParts compares dot-separated identifiers: numbers by value and before words, and fewer identifiers before
// more.
func compareParts(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), comparePart)
}

func comparePart(x, y string) int {
	numX, numY := isNumber(x), isNumber(y)
	switch {
	case numX && numY: // numbers may have any length
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
	case numX:
		return -1
	case numY:
		return 1
	}
	return strings.Compare(x, y)
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
