package policy

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy/operator"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
)

const grantsHeader = `# Written by "parley policy grant" and "parley policy revoke"; comments are not kept.
# policy.toml takes precedence.
`

// Edit is a prepared change of grants.toml, to be reviewed before [Policy.WriteGrants] makes it.
type Edit struct {
	Path    string   `json:"file"`
	Old     string   `json:"-"`                // the present text; "" if there is no file
	New     string   `json:"-"`                // the text afterwards
	Plugin  string   `json:"plugin,omitempty"` // plugin whose grants change
	Caller  string   `json:"caller,omitempty"` // or caller whose calls need no confirmation any more
	To      string   `json:"to,omitempty"`     // the digest or signer that the grants are bound to
	Added   []string `json:"added"`            // grants
	Removed []string `json:"removed"`
	Notes   []string `json:"notes,omitempty"` // what else the operator should know

	document map[string]any    // the present text parsed, then changed
	owners   map[string]string // the owners that tool: grants are bound to, by plugin
}

// Diff returns the change as lines that begin with "+" or "-".
func (e Edit) Diff() string {
	var b strings.Builder
	if fmt.Fprintf(&b, "%s: ", e.Path); e.Plugin != "" {
		b.WriteString("grants of " + e.Plugin)
	} else {
		b.WriteString("what needs no confirmation of " + e.Caller)
	}
	if e.To != "" {
		fmt.Fprintf(&b, " (%s)", e.To)
	}
	b.WriteString("\n")
	for _, g := range e.Removed {
		b.WriteString("- " + g + "\n")
	}
	for _, g := range e.Added {
		b.WriteString("+ " + g + "\n")
	}
	for _, n := range e.Notes {
		b.WriteString("note: " + n + "\n")
	}
	return b.String()
}

// Grant prepares a change that grants rights to a build of a plugin. to is the digest of the build ("sha256:.."), or a
// signer, whose builds of the plugin all get the rights. Rights of another build of the same name do not carry over. A
// grant replaces an existing one for the same folder, origin, tool, variable or secret, except that the methods of an
// origin are merged. A relative folder starts at the current folder.
func (p *Policy) Grant(plugin, to string, grants ...Grant) (Edit, error) {
	s, edit, err := p.editOf(plugin)
	if err != nil {
		return edit, err
	}
	edit.To = to
	e := s.entry(plugin)
	if e.manual != nil && e.manual.granted {
		return edit, host.Errorf(host.ConfigError, "%s sets the grants of %s, which takes precedence over %s: change "+
			"them there", e.manual.grantsPos.location(), plugin, GrantsFile)
	}
	if !isDigest(to) && (!isSigner(to) || strings.HasPrefix(to, "sha256:")) {
		return edit, host.Errorf(host.InvalidArgs,
			"grants are bound to a digest (sha256: and 64 digits) or to a signer; %s is neither", quote(to))
	}
	if pin := e.manual; pin != nil && !pin.acceptsGrantsTo(to, p.env) {
		return edit, host.Errorf(host.ConfigError, "%s binds %s to another build, so the grant would have no effect: "+
			"change that line first", pin.boundPos.location(), plugin)
	}
	var list []Grant
	if generated := e.generated; generated != nil {
		if generated.digest == to || generated.digest == "" && generated.signer == to {
			list = unlocated(generated.grants)
		} else if len(generated.grants) > 0 {
			edit.Removed = texts(unlocated(generated.grants))
			edit.Notes = append(edit.Notes, "the removed grants were for "+cmp.Or(generated.digest,
				generated.signer)+" and do not carry over")
		}
	}
	for _, g := range grants {
		if g.Kind == Tool && strings.HasSuffix(g.Name, "*") && p.env.Outside(g.Name) {
			return edit, host.Errorf(host.InvalidArgs, "grant %s: tools that reach outside a page are never granted by a "+
				"wildcard; name each tool", quote(g.String()))
		}
		if g.Kind == FS {
			if g.Source, err = filepath.Abs(g.Source); err != nil {
				return edit, host.Errorf(host.ConfigError, "relative folders cannot be made absolute: %v", err)
			}
			err := p.env.Own.Check(g.Source, g.Mode == "rw")
			if info, failed := os.Stat(g.Source); failed == nil && !info.IsDir() {
				err = fmt.Errorf("%s is not a folder", g.Source)
			}
			if err != nil {
				return edit, host.Errorf(host.ConfigError, "%s cannot be granted: %v", g, err).
					WithSteps(step.Operator(step.OpPolicyExplain, plugin))
			}
		}
		list = edit.add(list, g)
	}
	if generated := e.generated; generated != nil {
		edit.owners = maps.Clone(generated.owners)
	}
	edit.bindOwners(p.env, grants)
	return edit, edit.write(s, plugin, list)
}

// bindOwners binds tool: grants to the present owners of their plugins.
func (e *Edit) bindOwners(env Env, grants []Grant) {
	for _, g := range grants {
		callee := pluginOf(g.Name)
		if g.Kind != Tool || callee == "" {
			continue
		}
		identity, displaced := env.Owner(callee)
		if identity == "" || identity == host.OwnerShipped && displaced == "" {
			delete(e.owners, strings.ToLower(callee)) // nobody has the name, or it cannot change hands unseen
			continue
		}
		if e.owners == nil {
			e.owners = map[string]string{}
		}
		if e.owners[strings.ToLower(callee)] != identity {
			e.Notes = append(e.Notes, fmt.Sprintf("tools of %s are granted as long as it belongs to %s", callee,
				ownerText(identity)))
		}
		e.owners[strings.ToLower(callee)] = identity
	}
}

// Unconfirm prepares a change that lets a caller call a tool, by its qualified name, without a confirmation. The error
// is config_error if policy.toml requires that confirmation.
func (p *Policy) Unconfirm(caller, tool, effect string) (Edit, error) {
	s, edit, err := p.edit()
	if err != nil {
		return edit, err
	}
	if !isCaller(caller) {
		return edit, host.Errorf(host.InvalidArgs, "%s cannot be named in %s", quote(caller), GrantsFile)
	}
	list := s.rulesFor(caller, confirm, true)
	if r := list.match(confirm, strings.ToLower(tool), effect); r != nil && list.isIn(s.manual) {
		return edit, host.Errorf(host.ConfigError, "%s requires confirmation of %s, which takes precedence over %s: change "+
			"it there", list.pos.String(), r.text, GrantsFile)
	}
	section := tableOf(tableOf(edit.document, "callers"), caller)
	tools, _ := section[verbs[unconfirmed]].([]any)
	section[verbs[unconfirmed]] = lists.Add(tools, any(tool))
	edit.Caller, edit.Added = caller, []string{verbs[unconfirmed] + " " + tool}
	return edit, edit.encode()
}

// Revoke prepares a change that takes rights from a plugin, all of them if none is given. It removes the grants for
// the same guest folder, origin, tool, variable or secret. For an origin it removes only the given methods.
func (p *Policy) Revoke(plugin string, grants ...Grant) (Edit, error) {
	s, edit, err := p.editOf(plugin)
	if err != nil {
		return edit, err
	}
	e := s.entry(plugin)
	if e.generated == nil || len(e.generated.grants) == 0 {
		if e.manual != nil && len(e.manual.grants) > 0 {
			return edit, host.Errorf(host.ConfigError, "the grants of %s are set by hand at %s: change them there", plugin,
				e.manual.grantsPos.location())
		}
		return edit, host.Errorf(host.NotFound, "%s has no grants", plugin).WithSteps(step.Operator(step.OpPolicyExplain,
			plugin))
	}
	edit.To, edit.owners = cmp.Or(e.generated.digest, e.generated.signer), e.generated.owners
	list, remaining := unlocated(e.generated.grants), []Grant(nil)
	if e.manual != nil && e.manual.granted {
		edit.Notes = append(edit.Notes, e.manual.grantsRemain(plugin))
	}
	if len(grants) == 0 {
		grants = list
	}
	for _, has := range list {
		i := slices.IndexFunc(grants, func(g Grant) bool { return g.subject() == has.subject() })
		if i < 0 {
			remaining = append(remaining, has)
			continue
		}
		edit.Removed = append(edit.Removed, has.String())
		has.Methods = lists.Filter(has.Methods, func(m string) bool { return !slices.Contains(grants[i].Methods, m) })
		if has.Kind == HTTP && len(has.Methods) > 0 {
			remaining, edit.Added = append(remaining, has), append(edit.Added, has.String())
		}
	}
	if len(edit.Removed) == 0 {
		return edit, host.Errorf(host.NotFound, "%s does not have that grant; it has %s", plugin,
			strings.Join(texts(remaining), ", ")).WithSteps(step.Operator(step.OpPolicyExplain, plugin))
	}
	return edit, edit.write(s, plugin, remaining)
}

// WriteGrants makes a prepared change atomically. If the file has changed since, it writes nothing and returns busy.
func (p *Policy) WriteGrants(e Edit) error { return operator.File{Path: e.Path}.Replace(e.Old, e.New) }

// editOf begins a change of the grants of a plugin.
func (p *Policy) editOf(plugin string) (*state, Edit, error) {
	if !isPlugin(plugin) {
		return nil, Edit{}, host.Errorf(host.InvalidArgs, "%s is not a valid name for a plugin", quote(plugin))
	}
	s, edit, err := p.edit()
	edit.Plugin = plugin
	return s, edit, err
}

// edit begins a change with the present content of the files.
func (p *Policy) edit() (*state, Edit, error) {
	edit := Edit{document: map[string]any{}}
	if p.dir == "" {
		return nil, edit, host.Errorf(host.ConfigError, "there is no configuration folder for %s", GrantsFile)
	}
	s, err := p.current()
	if err != nil {
		return nil, edit, err
	}
	edit.Path = filepath.Join(p.dir, GrantsFile)
	old, _, err := operator.File{Path: edit.Path}.Read()
	if err != nil {
		return nil, edit, err
	}
	edit.Old = string(old)
	if err := toml.Unmarshal(old, &edit.document); err != nil {
		return nil, edit, host.Errorf(host.ConfigError, "%s: %v", edit.Path, err)
	}
	return s, edit, nil
}

// unlocated returns grants without their positions.
func unlocated(grants []locatedGrant) []Grant {
	return lists.Map(grants, func(g locatedGrant) Grant { return g.Grant })
}

// texts returns grants as they are written.
func texts(grants []Grant) []string { return lists.Map(grants, Grant.String) }

// add adds a grant to a list, or replaces the one for the same subject.
func (e *Edit) add(list []Grant, g Grant) []Grant {
	i := slices.IndexFunc(list, func(existing Grant) bool { return existing.subject() == g.subject() })
	if i < 0 {
		e.Added = append(e.Added, g.String())
		return append(list, g)
	}
	if g.Kind == HTTP {
		g.Methods = lists.Add(slices.Clone(list[i].Methods), g.Methods...)
	}
	if existing := list[i].String(); existing != g.String() {
		if i := slices.Index(e.Added, existing); i >= 0 {
			e.Added = slices.Delete(e.Added, i, i+1)
		} else {
			e.Removed = append(e.Removed, existing)
		}
		e.Added = append(e.Added, g.String())
		list[i] = g
	}
	return list
}

// write makes the new text: the old one with the given grants for one plugin.
func (e *Edit) write(s *state, plugin string, list []Grant) error {
	if generated := s.entry(plugin).generated; generated != nil {
		plugin = generated.name // as spelled in the file
	}
	plugins := tableOf(e.document, "plugin")
	section := tableOf(plugins, plugin)
	for _, key := range []string{"digest", "signer", "grants", "owners"} {
		delete(section, key)
	}
	owners := map[string]string{}
	for _, g := range list {
		if callee := strings.ToLower(pluginOf(g.Name)); g.Kind == Tool && e.owners[callee] != "" {
			owners[callee] = e.owners[callee]
		}
	}
	if len(owners) > 0 {
		section["owners"] = owners
	}
	if len(list) > 0 {
		section["grants"] = texts(list)
		if strings.HasPrefix(e.To, "sha256:") {
			section["digest"] = e.To
		} else {
			section["signer"] = e.To
		}
	}
	if len(section) == 0 {
		delete(plugins, plugin)
	}
	if len(plugins) == 0 {
		delete(e.document, "plugin")
	}
	return e.encode()
}

// tableOf returns the table with a key of a document or of one of its tables, and adds a missing one.
func tableOf(in map[string]any, key string) map[string]any {
	table, _ := in[key].(map[string]any)
	if table == nil {
		table = map[string]any{}
		in[key] = table
	}
	return table
}

// encode makes the new text of the changed document.
func (e *Edit) encode() error {
	b := bytes.NewBufferString(grantsHeader)
	if len(e.document) > 0 {
		b.WriteString("\n")
	}
	enc := toml.NewEncoder(b)
	enc.SetArraysMultiline(true) // one grant a line, so that explanations can name the line
	if err := enc.Encode(e.document); err != nil {
		return host.Errorf(host.Internal, "%s cannot be written as TOML: %v", GrantsFile, err)
	}
	e.New = b.String()
	// A text that cannot be read back must never be written: it would stop everything.
	if _, problems := parseFile(e.Path, b.Bytes()); len(problems) > 0 || b.Len() > operator.MaxFile {
		text := fmt.Sprintf("larger than %d bytes", operator.MaxFile)
		if len(problems) > 0 {
			text = problems[0].text
		}
		return host.Errorf(host.InvalidArgs, "the grants of %s cannot be written: %s", cmp.Or(e.Plugin, e.Caller), text)
	}
	return nil
}
