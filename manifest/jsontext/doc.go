// Package jsontext reads and writes JSON as text: strict decoding with positions and bounds, canonical encoding, JSON
// pointers, and the repair of texts that are nearly JSON.
package jsontext
