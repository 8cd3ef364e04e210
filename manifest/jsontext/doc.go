// Package jsontext reads and writes JSON as text. [Decode] is strict, with positions and limits; [Marshal] writes one
// canonical form; [Unmarshal] and [AppendTyped] read and write structs; [Scanner] walks a text without building its
// value; [Prune] edits a text and keeps its order; [Repair] proposes what a text that is nearly JSON may mean. The
// functions on JSON pointers are here, too.
package jsontext
