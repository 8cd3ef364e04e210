package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// Bounds of a document that Parse accepts. Chrome 154 answers 1.6 MB, 59 domains, 1,520 members and a nesting of 3.
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

// node is anything that the protocol names: a command, an event, a type, a parameter or a property. What does not apply is absent.
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

// members answers the domain's commands, events or types.
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
				return nil, fmt.Errorf("two domains are called %s", d.Domain)
			} else {
				domains[fold] = true
			}
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// decode reads one document and refuses what the flat form could not hold or look up unambiguously.
func decode(raw []byte) (*document, error) {
	if len(raw) > maxDocument {
		return nil, fmt.Errorf("the protocol document has %d bytes; at most %d are read", len(raw), maxDocument)
	}
	var doc document
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("the protocol document is not as /json/protocol answers it: %w", err)
	}
	if len(doc.Domains) == 0 {
		return nil, errors.New(`the protocol document has no "domains"`)
	}
	return &doc, check(&doc)
}

func check(doc *document) error {
	if len(doc.Domains) > maxDomains {
		return fmt.Errorf("the protocol document has %d domains; at most %d are read", len(doc.Domains), maxDomains)
	}
	for _, number := range []string{doc.Version.Major, doc.Version.Minor} {
		if number == "" || len(number) > 9 || strings.Trim(number, "0123456789") != "" {
			return fmt.Errorf("the version is %q.%q; two numbers were expected", truncate(doc.Version.Major), truncate(doc.Version.Minor))
		}
	}
	members := 0
	for i := range doc.Domains {
		d := &doc.Domains[i]
		d.Description = manifest.Clean(d.Description)
		if !identifier(d.Domain) {
			return fmt.Errorf("domain %d is called %q; a name of letters, digits and _ was expected", i, truncate(d.Domain))
		}
		for _, other := range d.Dependencies {
			if !identifier(other) {
				return fmt.Errorf("%s depends on %q; the name of a domain was expected", d.Domain, truncate(other))
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
					return fmt.Errorf("%s %d of %s is called %q; a name of letters, digits and _ was expected", k, j, d.Domain, truncate(n.Name))
				}
				if fold := strings.ToLower(n.Name); names[fold] {
					return fmt.Errorf("two %ss of %s are called %s", k, d.Domain, n.Name)
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

// checkNode bounds what n lists, and cleans its texts.
func checkNode(n *node, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("nested deeper than %d", maxNesting)
	}
	if len(n.Enum) > maxEnum {
		return fmt.Errorf("an enum of %d values; at most %d are read", len(n.Enum), maxEnum)
	}
	for _, v := range n.Enum {
		if manifest.Clean(v) != v {
			return fmt.Errorf("an enum value with hidden characters: %q", truncate(v))
		}
	}
	switch {
	case n.Type == "binary": // what a browser says where the npm package says string and explains
		n.Type, n.Description = "string", strings.TrimSpace(n.Description+" "+binaryMark)
	case n.Type != "" && !identifier(n.Type):
		return fmt.Errorf("the type is %q; the name of a type was expected", truncate(n.Type))
	case n.Type != "" && !isJSONType(n.Type):
		n.Type = "any"
	}
	domain, name, dotted := strings.Cut(n.Ref, ".")
	if n.Ref != "" && (!identifier(domain) || dotted && !identifier(name)) {
		return fmt.Errorf("$ref is %q; the name of a type was expected", truncate(n.Ref))
	}
	if n.Redirect != "" && !identifier(n.Redirect) {
		return fmt.Errorf("redirect is %q; the name of a domain was expected", truncate(n.Redirect))
	}
	n.Description = manifest.Clean(n.Description)
	if n.Items != nil {
		if err := checkNode(n.Items, depth+1); err != nil {
			return err
		}
	}
	for _, list := range [][]node{n.Properties, n.Parameters, n.Returns} {
		if len(list) > maxFields {
			return fmt.Errorf("%d parameters or properties; at most %d are read", len(list), maxFields)
		}
		names := make(map[string]bool, len(list))
		for i := range list {
			p := &list[i]
			if !identifier(p.Name) || names[p.Name] {
				return fmt.Errorf("parameter %d is called %q; a name of letters, digits and _ that no other has was expected", i, truncate(p.Name))
			}
			names[p.Name] = true
			if err := checkNode(p, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// identifier is true for a name that needs no quoting anywhere: in JSON, in a shell, in a dotted tool name.
func identifier(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func truncate(s string) string {
	if len(s) > 40 {
		return s[:40]
	}
	return s
}
