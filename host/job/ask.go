package job

import "encoding/json"

// SharedFilePrefix begins the text that a tool gets for a file that was handed on, "handed:RANDOM/SIZE/NAME".
const SharedFilePrefix = "handed:"

// Functions of the host that every provider may ask for. A guest's imports of these names take the same arguments.
const (
	// AskTool runs a tool of another plugin through all of call.Host.Call: {"tool","params","options"}.
	AskTool = "call_tool"
	// AskTools runs several tools at once, each as [AskTool] does: {"pending":[{"id","tool","params","options"}]}. The
	// result is {"answers":[{"id","ok","result" or "error"}]}. Guests do not import it: a guest that waits for calls
	// lists them in its response.
	AskTools = "call_tools"
	// AskHTTP sends a request within the grant: {"method","url","headers","body" or "body_base64"}. The response has no
	// secrets that the guest may not read.
	AskHTTP = "http_request"
	// AskSecret returns a secret that the grant lets the guest read: {"name"}.
	AskSecret = "read_secret"
)

// Functions of the host that guests cannot import. The last three are for built-in providers only.
const (
	// AskMayCall returns whether the caller may also call another tool of this plugin without confirmation: {"tool"}, its
	// local name. A provider asks before it does the work of that tool. Everybody on whose behalf the caller calls must
	// be allowed, too.
	AskMayCall = "may_call"
	// AskLast returns whether a record is the last one of the stream. The argument is the record. See [Wants].
	AskLast = "is_last"
	// AskBoundSecret returns a secret that is to be typed into a page, as a [BoundSecret]: {"name"}. The error is denied
	// if the policy binds it to no origin, or if the calling plugin was not granted it.
	AskBoundSecret = "bound_secret"
	// AskScript returns a script for pages that the calling plugin ships, as a [Script]: {"name","text"}. It has its text
	// only if text is true. The error is denied if the caller is not a plugin, and not_found if it ships no such script.
	AskScript = "script"
	// AskSharedFile copies a file that was handed to the calling plugin into a folder, and returns its path there:
	// {"text","folder"}, where text is what the plugin got for the file.
	AskSharedFile = "copy_handed"
)

// Script is a script for pages that a plugin ships.
type Script struct {
	Plugin string `json:"plugin"`
	SHA256 string `json:"sha256"` // hash of the text, in hexadecimal
	Text   string `json:"text,omitempty"`
}

// BoundSecret is the value of a secret and the origins of the pages into which it may be typed.
type BoundSecret struct {
	Value   string   `json:"value"`
	Origins []string `json:"origins"`
}

// ToolArgument is the argument of [AskTool] and, with only the tool, of [AskMayCall].
type ToolArgument struct {
	Tool    string          `json:"tool"`
	Params  json.RawMessage `json:"params,omitempty"`
	Options json.RawMessage `json:"options,omitempty"`
}

// SharedFileArgument is the argument of [AskSharedFile]: the text that stands for a file, and the folder for its copy.
type SharedFileArgument struct {
	Text   string `json:"text"`
	Folder string `json:"folder"`
}

// ScriptArgument is the argument of [AskScript]. Text asks for the text beside the digest.
type ScriptArgument struct {
	Name string `json:"name"`
	Text bool   `json:"text"`
}

// NameArgument is the argument of [AskSecret] and [AskBoundSecret]: the name of a secret.
type NameArgument struct {
	Name string `json:"name"`
}
