// Package schema judges JSON by JSON Schema, and says what to do about each fault.
//
// Two engines decide whether a value is valid, and who wrote the schema decides which: [CompileTrusted] is for schemas that this
// project wrote or generated (gojsonschema, draft-07), [CompileUntrusted] for schemas that came with a plugin (kaptinlin/jsonschema
// behind a gate that refuses what would hang, crash or silently accept). Neither engine sees a document as it was read:
// each gets a small canonical one, printed from the compiled tree, in which only the keywords that assert something are
// left. What the engines call a fault is told by one walk over the same tree, so that a violation reads the same whoever
// judged: where, which keyword, what was given, what was wanted, and the corrected value where one can be computed.
//
// Keywords newer than the dialect of a schema are judged all the same ("$ref" alone hides its siblings in draft-06 and
// draft-07, as their text says). "format" and the "content" keywords are annotations in every dialect.
package schema
