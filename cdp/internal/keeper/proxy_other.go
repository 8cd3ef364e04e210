//go:build !linux

package keeper

import "net"

// isFromBrowser returns true, because this system does not tell.
func isFromBrowser(net.Conn, int) bool { return true }
