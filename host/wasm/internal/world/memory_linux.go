package world

import "golang.org/x/sys/unix"

const mapNoReserve = unix.MAP_NORESERVE

// preferHugePages asks the kernel for huge pages, which may not be available.
func preferHugePages(data []byte) { _ = unix.Madvise(data, unix.MADV_HUGEPAGE) }
