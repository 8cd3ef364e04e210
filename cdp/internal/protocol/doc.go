// Package protocol knows the Chrome DevTools Protocol: what its domains, commands, events and types are called, take, return and do.
//
// The pinned protocol is embedded as one flat, indexed string. Looking up a member is a binary search over names and the decoding of
// that member alone, so describing one command costs microseconds in a cold process and nothing when the package is only linked.
// The protocol of a running browser, read by [Parse], takes the same form and is used in the same way.
//
//go:generate go run ../gen
package protocol
