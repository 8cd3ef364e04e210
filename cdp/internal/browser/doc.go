// Package browser finds Chrome, launches it over the debugging pipe, attaches to
// one that already runs, and carries DevTools messages behind one interface, Conn.
//
// A launched Chrome speaks over --remote-debugging-pipe: its file descriptors 3
// (it reads) and 4 (it writes), one JSON text a message, each ended by a NUL byte.
// It opens no port, and it ends when the pipe closes; on Linux the kernel also
// kills it when its parent dies.
package browser
