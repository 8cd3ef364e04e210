package world

import "golang.org/x/sys/unix"

const mapNoReserve = unix.MAP_NORESERVE

// preferHugePages asks the kernel for huge pages, which it may not have.
func preferHugePages(data []byte) { _ = unix.Madvise(data, unix.MADV_HUGEPAGE) }
