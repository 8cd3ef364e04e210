// Command kernels contains the kernels of kernels.c that also measure other languages.
package main

import (
	"crypto/sha256"
	"encoding/binary"
)

func main() {}

//go:wasmexport fib
func fib(n uint32) uint32 {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

//go:wasmexport sieve
func sieve(n uint32) uint32 {
	composite := make([]bool, n)
	found := uint32(0)
	for i := uint32(2); i < n; i++ {
		if composite[i] {
			continue
		}
		found++
		for k := 2 * i; k < n; k += i {
			composite[k] = true
		}
	}
	return found
}

//go:wasmexport matmul
func matmul(n uint32) uint32 {
	var a, b, c [64][64]float64
	for i := range 64 {
		for k := range 64 {
			a[i][k], b[i][k] = float64(i+k), float64(i-k)
		}
	}
	sum := 0.0
	for round := range n {
		for i := range 64 {
			for j := range 64 {
				s := 0.0
				for k := range 64 {
					s += a[i][k] * b[k][j]
				}
				c[i][j] = s
			}
		}
		sum += c[round&63][7]
	}
	return uint32(int64(sum))
}

//go:wasmexport sha256
func hash(n uint32) uint32 {
	h := sha256.New()
	var block [64]byte
	for i := range n {
		for k := range block {
			block[k] = byte(7*i + uint32(k))
		}
		h.Write(block[:])
	}
	return binary.BigEndian.Uint32(h.Sum(nil))
}
