// Package schema validates JSON by JSON Schema, and says what to do about each violation.
//
// Who wrote a schema decides how it is compiled: [CompileTrusted] is for schemas that this project wrote or generated,
// in draft-07; [CompileUntrusted] is for schemas that came with a plugin, in draft-07 or 2020-12, behind a gate that
// refuses what cannot be applied faithfully, safely and in bounded time. Both give a [Schema], a graph of nodes in the
// words of 2020-12, which one walker checks values by. A [Violation] says where it is, which keyword is broken, what
// was given and expected, and the corrected value where one can be computed.
//
// Keywords newer than the dialect of a schema apply all the same, but in draft-07 a "$ref" hides the keywords beside
// it, as this draft says. "format" and the "content" keywords are annotations in both dialects, unless "x-assert" is
// true beside them: then the format date-time and the contentEncoding base64 are validated.
package schema
