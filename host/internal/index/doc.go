// Package index finds tools: it packs what a plugin says about its tools into a flat segment and ranks the documents of
// many segments for a query.
//
// # Segments
//
// [Build] turns the documents of one plugin into bytes, [Open] reads them in place (a file, a mapping, an embedded
// string) and [Search] ranks the documents of any number of segments. The package uses neither files nor the network.
// Plugins are scored independently: the score of a document is a share of the best score that the query could reach in
// its plugin, so that a plugin with 677 tools and one with three compete fairly.
//
// [Merge] combines the segments of many plugins into one. A search returns exactly the same results from it, but looks
// each word up once instead of a thousand times. Merging rebuilds nothing: it copies the documents and combines the
// words.
//
// # Ranking
//
// The evidence, strongest first: the whole query is a name in some naming style; a field of the query is a name; a word
// is known (as written, or by its stem); a word is a known word with one typo; a word is two known words run together;
// a word is a known word with two typos. Known words are weighted by BM25F over the fields of a document. Two adjacent
// words also count as one ("web socket"), parts of names count less than whole words, and synonyms from the thesaurus
// count less than the words of the query. The best candidates are then compared with each alias and task phrase as a
// whole. Unless the query is one known word, word vectors compare its meaning with each tool's. That finds tools that
// share no word with the query, and orders tools that share equally many. Deprecated and experimental documents rank
// lower.
//
// How likely it is that a right tool is among the first five is computed from a few signals of the ranking, whose
// weights are fitted to queries with and without a right tool in catalogs of 1 to 70 plugins (bench/catalogs). If it is
// less likely than not, the results are weak.
//
// # Layout, version 5
//
// All integers are little-endian; "v" is an unsigned varint; "str" is a length as v, followed by that many bytes.
//
//	header   0  magic "PARLEYIX"
//	         8  u32 version
//	        12  u32 size of the segment in bytes
//	        16  u32 CRC-32 (IEEE) of everything from byte 20 on
//	        20  u32 number of tools, of events, of types    documents are sorted by kind, then by plugin, then by name
//	        32  u32 width of a number in stems, in bytes (2 or 4)
//	        36  u32 offsets of: plugins, strings, docs, records, names, stems, terms
//	plugins     v count, then sorted by name: str name, str build (empty unless merged), v number of its tools, of its
//	            events, of its types, v size of its strings, of its records
//	strings     per plugin: v count, then str each: groups, categories and effects, referred to by number
//	docs        u32 per document: offset of its record within its plugin's; u8 per document: length of the group's part
//	            of its normalised name (255: longer); per tool 64 signed nibbles, the direction of its meaning
//	records     per plugin, per document: u8 flags (kind, deprecated, experimental, signature begins with the tool's own
//	            name, which is then left out), str name, v group, v category, v effect, str brief, str signature,
//	            v aliases, v tasks, str each
//	names       per document its name in lower case, letters and digits only, then "\n"
//	stems       per stem, sorted: offset of its group of terms
//	terms       groups of words with the same stem: str stem, v number of words; each word: u8 bytes shared with the
//	            stem, u8 length and bytes of the rest, v length of the postings, postings
//	postings    per document: v distance from the previous one, u8 weight (BM25F's saturated frequency, 255 = 1.0),
//	            u8 mask of the fields that contain the word; 0: the plugin's own documentation contains it, and the
//	            document is the first tool of the plugin
//
// Words longer than 40 bytes are not indexed. Open refuses a segment of another version with [ErrVersion]; it must be
// rebuilt. The bytes depend only on plugins and documents, not on their order.
package index
