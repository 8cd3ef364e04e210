// Package protocol describes the Chrome DevTools Protocol: its domains, commands, events and types, their parameters
// and results, and their effects.
//
// The pinned protocol is embedded as one flat, indexed string. A look-up is a binary search over names that decodes
// only the member it finds, so describing one command costs microseconds in a cold process, and linking the package
// costs nothing. [Parse] reads the protocol of a running browser into the same form.
//
//go:generate go run ../gen
package protocol
