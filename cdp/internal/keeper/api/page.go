package api

import "encoding/json"

// PageRequest runs a verb of the plugin page, with the parameters that its manifest describes.
type PageRequest struct {
	VerbRequest[json.RawMessage]
	// Secrets are what the verb, or the steps of do, may type into fields, by the names in their parameters.
	Secrets map[string]PageSecret `json:"secrets,omitempty"`
}

// PageSecret is a secret and the origins of the documents into which it may be typed.
type PageSecret struct {
	Text    string   `json:"text"`
	Origins []string `json:"origins"`
}

// PageResult is the result of a verb of the plugin page.
type PageResult struct {
	Data json.RawMessage `json:"data"`
	// Subject says for records what the verb acted on: the role and name of an element, and the address of its document.
	Subject  string   `json:"subject,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}
