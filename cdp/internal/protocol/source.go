package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// Limits of a document that Parse accepts. Chrome 154's document has 1.6 MB, 59 domains, 1,520 members and a nesting
// depth of 3.
const (
	maxDocument = 16 << 20
	maxDomains  = 1000
	maxMembers  = 20000
	maxNesting  = 32
	maxFields   = 1000 // of one command or type
	maxEnum     = 2000
)

// document is the protocol as Chrome publishes it.
type document struct {
	Version struct {
		Major string `json:"major"`
		Minor string `json:"minor"`
	} `json:"version"`
	Domains []sourceDomain `json:"domains"`
}

type sourceDomain struct {
	Domain       string   `json:"domain"`
	Description  string   `json:"description,omitempty"`
	Experimental bool     `json:"experimental,omitempty"`
	Deprecated   bool     `json:"deprecated,omitempty"`
	Dependencies []string `json:"dependencies,omitempty"`
	Types        []node   `json:"types,omitempty"`
	Commands     []node   `json:"commands,omitempty"`
	Events       []node   `json:"events,omitempty"`
}

// node is a command, an event, a type, a parameter or a property. Fields that do not apply are absent.
type node struct {
	Name         string   `json:"name,omitempty"`
	ID           string   `json:"id,omitempty"` // a type's name
	Description  string   `json:"description,omitempty"`
	Type         string   `json:"type,omitempty"`
	Ref          string   `json:"$ref,omitempty"`
	Redirect     string   `json:"redirect,omitempty"`
	Optional     bool     `json:"optional,omitempty"`
	Experimental bool     `json:"experimental,omitempty"`
	Deprecated   bool     `json:"deprecated,omitempty"`
	Enum         []string `json:"enum,omitempty"`
	Items        *node    `json:"items,omitempty"`
	Properties   []node   `json:"properties,omitempty"`
	Parameters   []node   `json:"parameters,omitempty"`
	Returns      []node   `json:"returns,omitempty"`
}

// members returns the domain's commands, events or types.
func (d *sourceDomain) members(k Kind) []node {
	switch k {
	case KindCommand:
		return d.Commands
	case KindEvent:
		return d.Events
	}
	return d.Types
}

// decodeAll reads the documents that make up one protocol.
func decodeAll(documents [][]byte) ([]*document, error) {
	var docs []*document
	domains := map[string]bool{}
	for _, raw := range documents {
		doc, err := decode(raw)
		if err != nil {
			return nil, err
		}
		for _, d := range doc.Domains {
			if fold := strings.ToLower(d.Domain); domains[fold] {
				return nil, fmt.Errorf("two domains have the name %s", d.Domain)
			} else {
				domains[fold] = true
			}
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// decode reads one document and rejects what the flat form cannot store or look up unambiguously.
func decode(raw []byte) (*document, error) {
	if len(raw) > maxDocument {
		return nil, fmt.Errorf("the protocol document has %d bytes; the limit is %d", len(raw), maxDocument)
	}
	var doc document
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("the document is not a protocol as served at /json/protocol: %w", err)
	}
	if len(doc.Domains) == 0 {
		return nil, errors.New(`the protocol document has no "domains"`)
	}
	return &doc, check(&doc)
}

func check(doc *document) error {
	if len(doc.Domains) > maxDomains {
		return fmt.Errorf("the protocol document has %d domains; the limit is %d", len(doc.Domains), maxDomains)
	}
	for _, number := range []string{doc.Version.Major, doc.Version.Minor} {
		if number == "" || len(number) > 9 || strings.Trim(number, "0123456789") != "" {
			return fmt.Errorf("invalid version %q.%q: expected two numbers", truncate(doc.Version.Major),
				truncate(doc.Version.Minor))
		}
	}
	members := 0
	for i := range doc.Domains {
		d := &doc.Domains[i]
		d.Description = manifest.Clean(d.Description)
		if !identifier(d.Domain) {
			return fmt.Errorf("invalid name %[2]q of domain %[1]d: expected letters, digits and _", i, truncate(d.Domain))
		}
		for _, other := range d.Dependencies {
			if !identifier(other) {
				return fmt.Errorf("%s depends on %q: expected the name of a domain", d.Domain, truncate(other))
			}
		}
		for _, k := range kinds {
			names := map[string]bool{}
			for j := range d.members(k) {
				n := &d.members(k)[j]
				if members++; members > maxMembers {
					return fmt.Errorf("the protocol document has more than %d members", maxMembers)
				}
				if k == KindType {
					n.Name, n.ID = n.ID, ""
				}
				if !identifier(n.Name) {
					return fmt.Errorf("invalid name %[4]q of %[1]s %[2]d of %[3]s: expected letters, digits and _", k, j, d.Domain,
						truncate(n.Name))
				}
				if fold := strings.ToLower(n.Name); names[fold] {
					return fmt.Errorf("two %ss of %s have the name %s", k, d.Domain, n.Name)
				} else {
					names[fold] = true
				}
				if err := checkNode(n, 0); err != nil {
					return fmt.Errorf("%s %s.%s: %w", k, d.Domain, n.Name, err)
				}
			}
		}
	}
	return nil
}

// checkNode checks the names and limits of a node and cleans its texts.
func checkNode(n *node, depth int) error {
	domain, name, dotted := strings.Cut(n.Ref, ".")
	hidden := slices.IndexFunc(n.Enum, func(v string) bool { return manifest.Clean(v) != v })
	switch {
	case depth > maxNesting:
		return fmt.Errorf("nested deeper than %d", maxNesting)
	case len(n.Enum) > maxEnum:
		return fmt.Errorf("an enum has %d values; the limit is %d", len(n.Enum), maxEnum)
	case hidden >= 0:
		return fmt.Errorf("an enum value contains hidden characters: %q", truncate(n.Enum[hidden]))
	case n.Type != "" && !identifier(n.Type):
		return fmt.Errorf("invalid type %q: expected the name of a type", truncate(n.Type))
	case n.Ref != "" && (!identifier(domain) || dotted && !identifier(name)):
		return fmt.Errorf("invalid $ref %q: expected the name of a type", truncate(n.Ref))
	case n.Redirect != "" && !identifier(n.Redirect):
		return fmt.Errorf("invalid redirect %q: expected the name of a domain", truncate(n.Redirect))
	case n.Type == "binary": // the npm package has a string with the mark in its description
		n.Type, n.Description = "string", strings.TrimSpace(n.Description+" "+binaryMark)
	case n.Type != "" && !isJSONType(n.Type):
		n.Type = "any"
	}
	n.Description = manifest.Clean(n.Description)
	if n.Items != nil {
		if err := checkNode(n.Items, depth+1); err != nil {
			return err
		}
	}
	for _, list := range [][]node{n.Properties, n.Parameters, n.Returns} {
		if len(list) > maxFields {
			return fmt.Errorf("%d parameters or properties; the limit is %d", len(list), maxFields)
		}
		names := make(map[string]bool, len(list))
		for i := range list {
			p := &list[i]
			if !identifier(p.Name) || names[p.Name] {
				return fmt.Errorf("invalid name %[2]q of parameter %[1]d: expected a unique name of letters, digits and _", i,
					truncate(p.Name))
			}
			names[p.Name] = true
			if err := checkNode(p, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// identifier reports whether s is a name that needs no quoting in JSON, in a shell or in a dotted tool name.
func identifier(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	return s != "" && len(s) <= 128 && strings.Trim(s, letters+"0123456789") == "" && strings.Trim(s[:1], letters) == ""
}

func truncate(s string) string {
	if len(s) > 40 {
		return s[:40]
	}
	return s
}
