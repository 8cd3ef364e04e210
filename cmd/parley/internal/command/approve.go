package command

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// Approval is the option of commands that ask the operator. Yes approves without a question, if the policy allows
// that.
type Approval struct {
	Yes bool `flag:"yes" usage:"do not ask; only if the policy sets allow_yes"`
}

// TakesText returns a text that says that a plugin takes a name from another owner.
func TakesText(name, owner string) string {
	whose := Either(owner == host.OwnerShipped, "Parley, which ships a plugin of that name", "the signer "+owner)
	return "It takes the name " + name + " from " + whose + ". Other plugins lose their grants of its tools.\n"
}

// replaceLoaded is parley.Config.Replace: the operator approves the names in a.Replace.
func replaceLoaded(a *App, name, owner string) error {
	if !slices.ContainsFunc(a.Replace, func(r string) bool { return strings.EqualFold(r, name) }) {
		whose := Either(owner == host.OwnerShipped, "belongs to a plugin that Parley ships", "belongs to the signer "+owner)
		return host.Errorf(host.AlreadyExists, "the name %s %s; --replace %s lets the loaded file take it; nothing was run",
			name, whose, name)
	}
	return a.Approve(context.Background(), Change{Diff: TakesText(name, owner), ByPolicy: true}, false)
}

// Change is what the operator has to approve: a change of the operator's files, or sending data to a model.
type Change struct {
	// Installs describes the plugin that is installed together with the change; "" if there is none.
	Installs string
	// Diff has a line that names the file, lines that begin with "-" and "+", and notes. If Sends is set, it says what
	// is sent where, and what that can cost.
	Diff string
	// Sends says that data is sent, and nothing is written.
	Sends bool
	// What names what a person approves; "" means rights and trust.
	What string
	// ByPolicy says that there is no question if the policy allows --yes.
	ByPolicy bool
	// Prompt is the question to a person who answers an approval. Such a change does not wait for another approval. ""
	// means any other change.
	Prompt string
}

// Undone says what did not happen because a change was not approved.
func (c *Change) Undone() string {
	switch {
	case c.Prompt != "":
		return "the approval is still open"
	case c.Sends:
		return "nothing was sent"
	}
	return "nothing was changed"
}

// ErrDeclined is the cause of the error for a change that a person was asked about and did not approve.
var ErrDeclined = errors.New("not confirmed")

// Approve returns an error unless the operator approves a change. With yes there is no question: the change is made
// if the policy allows that, and otherwise denied. Without a terminal the change waits for an approval. Once a person
// has allowed it, the same command makes the change.
func (a *App) Approve(ctx context.Context, c Change, yes bool) error {
	rules, err := a.Parley().Policy()
	if err != nil {
		return err
	}
	switch allowed, err := rules.AllowYes(); {
	case err != nil || allowed && (yes || c.ByPolicy):
		return err
	case yes:
		return host.Errorf(host.Denied, "--yes is refused: policy.toml does not set allow_yes = true under [operator]")
	case a.AskNobody:
		return host.Errorf(host.Denied, "an operator must approve this, and none can be asked here; %s", c.Undone())
	}
	asked := c.approval(cmp.Or(a.Words, a.Args[0]))
	approver := approval.Approver(parley.Approvals(a.Parley()))
	if c.Prompt != "" {
		approver = &terminal{}
	}
	reply, err := approver.Approve(ctx, asked)
	nobody, isNobody := errors.AsType[approval.NoApproverError](err)
	switch {
	case isNobody:
		e := host.Errorf(host.Denied, "a person at a terminal must approve %s, and %s; %s", c.What, nobody, c.Undone())
		return e.WithNext("run it at a terminal, or with --yes where the policy sets allow_yes")
	case err != nil:
		return err
	case reply.Answer == "":
		return c.unanswered(asked, reply)
	case !reply.Allows():
		return &host.Error{Code: host.Denied, Cause: ErrDeclined, Approval: asked.ID,
			Message: "not confirmed" + When(reply.Word != "", " ("+reply.Word+")") + "; " + c.Undone()}
	}
	return nil
}

// approval returns the question to a person about the change of a command.
func (c *Change) approval(command string) *approval.Approval {
	text := c.Installs + c.Diff
	prompt := "Write this?"
	switch {
	case c.Prompt != "":
		prompt = c.Prompt
	case c.Sends:
		prompt = "Send this?"
	case c.Installs != "" && c.Diff == "":
		prompt = "Install it?"
	case c.Installs != "":
		prompt = "Install it and write this?"
	}
	return &approval.Approval{ID: approval.NewID(), Kind: approval.ForChange, Principal: Caller, Tool: command,
		Reason: text, Exact: []byte(text), Prompt: prompt}
}

// unanswered returns the error for a change that nobody has approved yet.
func (c *Change) unanswered(asked *approval.Approval, reply approval.Reply) error {
	e := host.Errorf(host.Denied, "a person at a terminal must approve %s, and %s; %s; approval %s is open until %s: run "+
		"the same command again once a person has allowed it", cmp.Or(c.What, "rights and trust"), reply.Nobody, c.Undone(),
		asked.ID, asked.Expires.Format("2006-01-02 15:04 MST"))
	e.Approval = asked.ID
	return e.WithSteps(step.Operator(step.OpApprovalsAllow, asked.ID))
}

// maxShownParams bounds the parameters of a call in a question, in bytes.
const maxShownParams = 2000

// terminal is the approver of the command line: the person at the controlling terminal.
type terminal struct {
	mu sync.Mutex // one question at a time
}

// Approve implements [approval.Approver].
func (t *terminal) Approve(ctx context.Context, a *approval.Approval) (approval.Reply, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tty, err := openTerminal()
	if err != nil {
		return approval.Reply{}, approval.NoApproverError("there is no terminal to ask on")
	}
	defer tty.Close()
	return askOn(ctx, tty, bufio.NewReader(&abandonableReader{ctx: ctx, in: tty}), a)
}

// askOn shows an approval and reads the reply.
func askOn(ctx context.Context, out io.Writer, lines *bufio.Reader, a *approval.Approval) (approval.Reply, error) {
	reply := approval.Reply{Answer: approval.Deny, By: approval.ByTerminal}
	prompt := "Allow it?"
	switch a.Kind {
	case approval.ForChange:
		prompt = a.Prompt
		fmt.Fprint(out, a.Reason)
	default:
		fmt.Fprintf(out, "%s wants to call %s %s", manifest.CleanLine(a.Principal), a.Tool, a.ShortParams(maxShownParams))
		PrintIf(out, a.Reason != "", " (%s)", manifest.CleanLine(a.Reason))
		fmt.Fprint(out, Either(a.Kind == approval.ForRight, ".\n", ". "))
	}
	if a.Kind == approval.ForRight {
		plugin, _, _ := strings.Cut(a.Tool, ".")
		fmt.Fprintf(out, "%s needs rights that are not granted:\n", plugin)
		for _, right := range a.Rights {
			why := When(right.Why != "", fmt.Sprintf("  %q", manifest.CleanLine(right.Why)))
			fmt.Fprintf(out, "  %s%s\n", manifest.CleanLine(right.Right), why)
		}
		for _, right := range a.Rights {
			chosen, err := chooseFolder(ctx, out, lines, right.Right)
			if err != nil || chosen == "" {
				return reply, err
			}
			reply.Rights = append(reply.Rights, chosen)
		}
		prompt = "Allow this for this call only?"
	}
	fmt.Fprint(out, prompt+" [y/N] ")
	yes, err := readReply(ctx, lines)
	if yes = strings.ToLower(yes); yes == "y" || yes == "yes" {
		reply.Answer = approval.Once
	}
	return reply, err
}

// chooseFolder asks for the folder that replaces PATH in a right, and returns the right with that folder, or "" if
// the person names none. A right without PATH is returned unchanged.
func chooseFolder(ctx context.Context, out io.Writer, lines *bufio.Reader, right string) (string, error) {
	mode, guest, found := strings.Cut(right, ":PATH=")
	if !found || !strings.HasPrefix(mode, "fs:") {
		return right, nil
	}
	fmt.Fprintf(out, "Folder of this machine for %s (%s): ", manifest.CleanLine(guest),
		map[string]string{"fs:ro": "to read", "fs:rw": "to read and write"}[mode])
	folder, err := readReply(ctx, lines)
	if err != nil || folder == "" {
		return "", err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", host.Errorf(host.ConfigError, "the current folder cannot be found: %v", err)
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return "", host.Errorf(host.Denied, "%s is not a folder; nothing was run", manifest.CleanLine(folder))
	}
	return mode + ":" + folder + "=" + guest, nil
}

// readReply reads a line. If the terminal cannot be read, the reply is empty. The end of the context is an error.
func readReply(ctx context.Context, lines *bufio.Reader) (string, error) {
	line, err := lines.ReadString('\n')
	if err != nil && ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return strings.TrimSpace(line), nil
}

// ReadPassword reads the password of a key at the controlling terminal and does not show what is typed.
func ReadPassword(ctx context.Context, prompt string) (string, error) {
	tty, err := openTerminal()
	if err != nil {
		return "", host.Errorf(host.InvalidArgs,
			"the key is encrypted, and there is no terminal to ask for its password; expected --password-file FILE")
	}
	defer tty.Close()
	line, err := ReadHidden(ctx, tty, tty, prompt)
	if errors.Is(err, io.EOF) {
		err = nil // the text that was typed counts
	}
	return line, err
}

// ReadHidden writes a prompt, and reads a line at a terminal without showing what is typed.
func ReadHidden(ctx context.Context, tty *os.File, prompts io.Writer, prompt string) (string, error) {
	fmt.Fprint(prompts, prompt)
	shown, err := term.GetState(int(tty.Fd()))
	if err != nil {
		return "", host.Errorf(host.Unavailable, "the terminal cannot hide what is typed: %v; nothing was changed", err)
	}
	line, err := awaitOrAbandon(ctx, func() ([]byte, error) { return term.ReadPassword(int(tty.Fd())) })
	fmt.Fprintln(prompts)
	if err != nil {
		_ = term.Restore(int(tty.Fd()), shown) // an abandoned read does not restore it
	}
	return string(line), err
}

// openTerminal opens the controlling terminal. An agent behind a pipe does not have one.
func openTerminal() (*os.File, error) {
	name := Either(runtime.GOOS == "windows", "CONIN$", "/dev/tty")
	return os.OpenFile(name, os.O_RDWR, 0)
}
