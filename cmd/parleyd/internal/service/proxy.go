package service

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientAddress returns the address of the client of a request. It is the address of the connection or, if that is a
// trusted proxy, the last address in X-Forwarded-For that is not a trusted proxy.
func clientAddress(r *http.Request, proxies []netip.Prefix) string {
	connection, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !isAmong(connection.Addr(), proxies) {
		return r.RemoteAddr
	}
	client := r.RemoteAddr
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(forwarded) {
		text = strings.TrimSpace(text)
		if name, _, err := net.SplitHostPort(text); err == nil {
			text = name
		}
		address, err := netip.ParseAddr(text)
		if err != nil {
			break // no trusted proxy wrote what comes before
		}
		client = address.String()
		if !isAmong(address, proxies) {
			break
		}
	}
	return client
}

func isAmong(address netip.Addr, networks []netip.Prefix) bool {
	address = address.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) })
}
