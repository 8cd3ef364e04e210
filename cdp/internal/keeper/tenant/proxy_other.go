//go:build !linux

package tenant

import "net"

// isFromBrowser returns true, because this system does not report it.
func isFromBrowser(net.Conn, int) bool { return true }
