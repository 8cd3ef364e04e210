package command

// HelpData is the document of --help --json: everything that an agent needs before its first call.
type HelpData struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	Commands    []CommandHelp     `json:"commands"`
	ExitCodes   map[string]string `json:"exit_codes"`
	Next        []string          `json:"next"`
}

// CommandHelp is the help of a command.
type CommandHelp struct {
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Modes       []string     `json:"modes,omitempty"`
	Options     []OptionHelp `json:"options"`
	More        []string     `json:"more_options,omitempty"` // by name only; the full form explains them
	Examples    []string     `json:"examples"`
	// Commands are the subcommands, in the help of a single command.
	Commands []SubcommandHelp `json:"commands,omitempty"`
}

// SubcommandHelp is a line about a subcommand.
type SubcommandHelp struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// OptionHelp is the help of an option or of a positional word.
type OptionHelp struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Required    bool   `json:"required"`
	Default     any    `json:"default,omitempty"` // nil if there is none, and for a switch that is off
	Description string `json:"description,omitempty"`
}

// IntroData is what parley prints without a command.
type IntroData struct {
	Description string `json:"description"`
	Name        string `json:"name"`
	Version     string `json:"version"`
}
