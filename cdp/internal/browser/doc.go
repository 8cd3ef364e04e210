// Package browser finds Chrome, launches it over the debugging pipe, attaches to a running one, and carries
// DevTools messages behind one interface, [Conn].
//
// A launched Chrome uses --remote-debugging-pipe: it reads from file descriptor 3 and writes to 4, one JSON text
// per message, each terminated by a NUL byte. It opens no port and exits when the pipe closes. On Linux the kernel
// also kills it when its parent dies.
package browser
