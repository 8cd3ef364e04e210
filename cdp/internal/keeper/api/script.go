package api

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ScriptRequest calls a function of a script that a plugin ships, in an isolated world of a frame: it sees the
// document, and nothing that the page's scripts have replaced. Each script has a world of its own in each document.
type ScriptRequest struct {
	Target string     `json:"target,omitempty"` // as in CallRequest, or the id of a frame
	Script PageScript `json:"script"`
	// Function is the name of an export of the script; "" calls none.
	Function string            `json:"function,omitempty"`
	Args     []json.RawMessage `json:"args,omitempty"`
	// DocumentStart runs the script at the start of each document of the session from now on, until the session ends.
	DocumentStart bool `json:"document_start,omitempty"`
	// Files are given to the file input that the function returns: files in the folder of [Client.UploadFolder], and
	// downloads of the session.
	Files []string `json:"files,omitempty"`
	// ClosedRoots says that the function returns elements. The script's function adopt is called with each of them that
	// has a closed shadow root, and with that root, which no script can get itself. The value is how many those are.
	ClosedRoots bool   `json:"closed_roots,omitempty"`
	OnDialog    string `json:"on_dialog,omitempty"`
}

// NewScriptRequest returns a request for a script of a plugin. SHA256 is the digest of its text. The text may be "" if
// the keeper has it: otherwise the error of the request is [ErrNoScript].
func NewScriptRequest(plugin, name, sha256, text string) ScriptRequest {
	return ScriptRequest{Script: PageScript{Plugin: plugin, Name: name, SHA256: sha256, Text: text}}
}

// ErrNoScript means that the keeper does not have the text of a script.
var ErrNoScript = errors.New("the keeper does not have the text of the script")

// ScriptResult is the result of a ScriptRequest.
type ScriptResult struct {
	Target string `json:"target"` // the page, or the frame if that is a target of its own
	Frame  string `json:"frame"`  // the id of the frame
	// LastSeq is the number of the session's newest event before the call.
	LastSeq int64           `json:"last_seq,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"` // what the function returned; nil if that is undefined
	// Exception is what it threw, as Chrome reports it; nil if nothing.
	Exception json.RawMessage `json:"exception,omitempty"`
}

// PageScript is a script that a plugin ships.
type PageScript struct {
	Plugin string `json:"plugin"`
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Text   string `json:"text,omitempty"`
}

// World returns the name of the isolated worlds in which the script runs. No two scripts share one.
func (s PageScript) World() string { return "parley/" + s.Plugin + "/" + s.Name + "/" + s.SHA256[:16] }

// ExportsKey is the property of the world's global object that has the exports, and the document that they are for: the
// blank document of a popup gives its global object to the next one. A page can name an element like it, but elements
// are not own properties of the global object.
const ExportsKey = "parleyExports"

// Program returns the text of the script as a program that keeps the exports. It runs once in a document.
func (s PageScript) Program() string {
	return fmt.Sprintf(`if (!Object.hasOwn(globalThis, %[1]q) || globalThis[%[1]q].document !== document) {
	const exports = Object.create(null);
	(function (exports) { "use strict";
%[2]s
	})(exports);
	Object.defineProperty(globalThis, %[1]q, {value: {document, exports, number: 0}, configurable: true});
}`, ExportsKey, s.Text)
}
