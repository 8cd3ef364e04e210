// Package schema validates JSON by JSON Schema, and says how to fix each violation.
//
// The author of a schema decides how it is compiled: [CompileTrusted] is for schemas that this project wrote or
// generated, in draft-07; [CompileUntrusted] is for schemas that came with a plugin, in draft-07 or 2020-12, behind a
// gate that refuses what cannot be applied faithfully, safely and in bounded time. Both return a [Schema], a graph of
// nodes in the keywords of 2020-12. One walker checks values by it. A [Violation] says where it is, which keyword is
// broken, what was given and expected, and which known names or values are near; [Schema.Correct] proposes a
// corrected value.
//
// Keywords that are newer than the dialect of a schema apply, too. But in draft-07 a "$ref" hides the keywords next
// to it, as that draft specifies. "format" and the "content" keywords are annotations in both dialects, unless
// "x-assert" is true next to them: then the format date-time and the contentEncoding base64 are validated.
package schema
