// Package index finds tools: it packs what a plugin says of its tools into one flat segment and ranks the documents of
// many segments for a query.
//
// # What a segment is
//
// Build turns the documents of one plugin into bytes, Open reads them in place (a file, a mapping, an embedded string)
// and Search ranks the documents of any number of segments. Nothing here touches a file or the network. Plugins are judged
// apart: the score of a document is a share of what the query could have reached in its plugin at best, so that a plugin of
// 677 tools and one of three compete fairly.
//
// Merge makes one segment of many plugins' segments. A search finds the same in it to the last digit, but looks each word up once
// instead of a thousand times. Merging builds nothing anew: it takes the documents as they are and puts the words together.
//
// # How documents are ranked
//
// The evidence, strongest first: the whole query is a name in some style of writing; a field of the query is; a word is
// known (as written, or by its stem); a word is a known one with a letter wrong; a word is two known words run together;
// a word is a known one with two letters wrong. Known words are weighed by BM25F over the fields of a document. Two
// adjacent words also count as one ("web socket"), parts of names count less than whole words, and what the thesaurus
// calls nearly the same counts less than what was asked for. The best candidates are then compared with each alias and
// task phrase as a whole. Of queries that are more than one known word, what they are about is compared with what each
// tool is about, by vectors of words: that finds tools which share no word with the query, and orders those that share as much.
// Deprecated and experimental documents rank lower.
//
// # Layout, version 4
//
// All integers are little-endian; "v" is an unsigned varint; "str" is a v length and that many bytes.
//
//	header   0  magic "PARLEYIX"
//	         8  u32 version
//	        12  u32 size of the whole segment in bytes
//	        16  u32 CRC-32 (IEEE) of everything from byte 20 on
//	        20  u32 number of tools, of events, of types    documents are sorted by kind, then by plugin, then by name
//	        32  u32 width of a number in stems, in bytes (2 or 4)
//	        36  u32 offsets of: plugins, strings, docs, records, names, stems, terms
//	plugins     v count, then sorted by name: str name, str what it was built from (empty unless merged), v number of its tools,
//	            of its events, of its types, v size of its strings, of its records
//	strings     per plugin: v count, then str each: groups, categories and effects, named by number elsewhere
//	docs        u32 per document: offset of its record within its plugin's; u8 per document: length of the group's part in
//	            its normalised name (255: longer); per tool 64 signed nibbles that say what it is about
//	records     per plugin, per document: u8 flags (kind, deprecated, experimental, signature begins with the own name, which is
//	            left out there), str name, v group, v category, v effect, str brief, str signature, v aliases, v tasks, str each
//	names       per document its name in lower case, letters and digits only, then "\n"
//	stems       per stem, sorted: offset of its group of terms
//	terms       groups of words with one stem: str stem, v number of words; each word: u8 bytes shared with the
//	            stem, u8 length and bytes of the rest, v length of the postings, postings
//	postings    per document: v distance from the one before, u8 weight (BM25F's saturated frequency, 255 = 1.0),
//	            u8 mask of the fields it stands in
//
// Words longer than 40 bytes are not indexed. A segment of another version is refused with ErrVersion and must be built
// again; the bytes are a function of plugins and documents alone, whatever their order.
package index
