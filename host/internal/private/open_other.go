//go:build !unix

package private

const openNonblock = 0
