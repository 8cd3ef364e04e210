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

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Approval is the option of commands that ask the operator: Yes approves without a question, if the policy allows that.
type Approval struct {
	Yes bool `flag:"yes" usage:"do not ask; only if the policy sets allow_yes"`
}

// TakesText says that a plugin takes a name from another owner.
func TakesText(name, owner string) string {
	whose := Either(owner == host.OwnerShipped, "Parley, which ships a plugin of that name", "the signer "+owner)
	return "It takes the name " + name + " from " + whose + ". Grants of its tools to other plugins no longer hold.\n"
}

// replaceLoaded is parley.Config.Replace: the operator approves the names in d.Replace.
func replaceLoaded(a *App, name, owner string) error {
	if !slices.ContainsFunc(a.Replace, func(r string) bool { return strings.EqualFold(r, name) }) {
		whose := Either(owner == host.OwnerShipped, "is that of a plugin that Parley ships",
			"belongs to the signer "+owner)
		return host.Errorf(host.AlreadyExists, "the name %s %s; --replace %s lets the loaded file take it; nothing was run",
			name, whose, name)
	}
	return a.Approve(context.Background(), Change{Diff: TakesText(name, owner), ByPolicy: true}, false)
}

// Change is what the operator has to approve: a change of the operator's files, or sending data to a model.
type Change struct {
	// Installs describes the plugin that is installed together with the change; "" means none.
	Installs string
	// Diff has a line that names the file, lines that begin with "-" and "+", and notes. With Sends it says what is sent
	// where, and what that can cost.
	Diff string
	// Sends says that nothing is written and something is sent.
	Sends bool
	// What is what a person approves; "" means rights and trust.
	What string
	// ByPolicy says that nobody is asked where the policy allows --yes.
	ByPolicy bool
}

// Undone says what has not happened to a change that is not approved.
func (c *Change) Undone() string {
	return Either(c.Sends, "nothing was sent", "nothing was changed")
}

// ErrDeclined is the cause of the error of a change that a person was asked about and has not approved.
var ErrDeclined = errors.New("not confirmed")

// Approve returns an error unless the operator approves a change. With yes there is no question: either the policy
// allows that, or the change is denied.
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
	}
	if a.ApproveChange == nil {
		return host.Errorf(host.Denied, "an operator must approve this, and none can be asked here; %s", c.Undone())
	}
	approved, err := a.ApproveChange(ctx, c)
	if err == nil && !approved {
		err = &host.Error{Code: host.Denied, Message: "not confirmed; " + c.Undone(), Cause: ErrDeclined}
	}
	return err
}

// maxShownParams bounds how much of a call's parameters a question shows, in bytes.
const maxShownParams = 2000

// terminal is the approver of the command line: the person at the controlling terminal.
type terminal struct {
	mu sync.Mutex // one question at a time
}

// Approve implements [host.Approver].
func (t *terminal) Approve(ctx context.Context, q *host.Question) (host.Approval, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tty, err := OpenTerminal()
	if err != nil {
		return host.Approval{}, host.NoApproverError("there is no terminal to ask on")
	}
	defer tty.Close()
	return askOn(ctx, tty, bufio.NewReader(&abandonableReader{ctx: ctx, in: tty}), q)
}

// askOn shows a question and reads the reply.
func askOn(ctx context.Context, out io.Writer, lines *bufio.Reader, q *host.Question) (host.Approval, error) {
	fmt.Fprintf(out, "%s wants to call %s.%s %s", q.Ask.Principal.Name, q.Ask.Plugin, q.Ask.Tool, shownParams(q.Params))
	PrintIf(out, q.Reason != "", " (%s)", manifest.CleanLine(q.Reason))
	approval := host.Approval{By: host.ByTerminal}
	if q.Kind == host.AskRight {
		fmt.Fprintf(out, ".\n%s needs rights that are not granted:\n", q.Ask.Plugin)
		for _, right := range q.Rights {
			why := When(right.Why != "", fmt.Sprintf("  %q", manifest.CleanLine(right.Why)))
			fmt.Fprintf(out, "  %s%s\n", manifest.CleanLine(right.Right), why)
		}
		for _, right := range q.Rights {
			allowed, err := chooseFolder(ctx, out, lines, right.Right)
			if err != nil || allowed == "" {
				return approval, err
			}
			approval.Rights = append(approval.Rights, allowed)
		}
		fmt.Fprint(out, "Allow this for this call only? [y/N] ")
	} else {
		fmt.Fprint(out, ". Allow it? [y/N] ")
	}
	var err error
	approval.Yes, err = readYes(ctx, lines)
	return approval, err
}

// approveOnTerminal shows a change at the controlling terminal and asks whether to make it.
func approveOnTerminal(ctx context.Context, c Change) (bool, error) {
	tty, err := OpenTerminal()
	if err != nil {
		e := host.Errorf(host.Denied, "a person at a terminal must approve %s, and there is no terminal; %s",
			cmp.Or(c.What, "rights and trust"), c.Undone())
		return false, e.WithNext("run it at a terminal, or " + Either(c.What != "",
			"with --yes where the policy sets allow_yes", "edit the file yourself"))
	}
	defer tty.Close()
	question := "Write this?"
	switch {
	case c.Sends:
		question = "Send this?"
	case c.Installs != "" && c.Diff == "":
		question = "Install it?"
	case c.Installs != "":
		question = "Install it and write this?"
	}
	fmt.Fprintf(tty, "%s%s%s [y/N] ", c.Installs, c.Diff, question)
	return readYes(ctx, bufio.NewReader(&abandonableReader{ctx: ctx, in: tty}))
}

// shownParams returns parameters as a question shows them.
func shownParams(params []byte) string {
	shown := string(manifest.EscapeJSON(params))
	if len(shown) <= maxShownParams {
		return shown
	}
	return fmt.Sprintf("%s (%d bytes in all)", manifest.Clip(shown, maxShownParams), len(shown))
}

// chooseFolder asks for the folder that stands for PATH in a right, and returns the right with it, or "" if the person
// names none. A right without PATH is returned as it is.
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

// readReply reads a line. A terminal that cannot be read replies nothing; the end of the context is an error.
func readReply(ctx context.Context, lines *bufio.Reader) (string, error) {
	line, err := lines.ReadString('\n')
	if err != nil && ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return strings.TrimSpace(line), nil
}

// readYes reads a reply, and reports whether it is y or yes, in any case.
func readYes(ctx context.Context, lines *bufio.Reader) (bool, error) {
	reply, err := readReply(ctx, lines)
	reply = strings.ToLower(reply)
	return reply == "y" || reply == "yes", err
}

// ReadHidden writes a prompt, and reads a line at a terminal that does not show what is typed.
func ReadHidden(ctx context.Context, tty *os.File, prompts io.Writer, prompt string) (string, error) {
	fmt.Fprint(prompts, prompt)
	shown, err := term.GetState(int(tty.Fd()))
	if err != nil {
		return "", host.Errorf(host.Unavailable, "the terminal cannot hide what is typed: %v; nothing was changed", err)
	}
	line, err := awaitOrAbandon(ctx, func() ([]byte, error) { return term.ReadPassword(int(tty.Fd())) })
	fmt.Fprintln(prompts)
	if err != nil {
		_ = term.Restore(int(tty.Fd()), shown) // an abandoned read does not do that
	}
	return string(line), err
}

// OpenTerminal opens the controlling terminal, which an agent behind a pipe does not have.
func OpenTerminal() (*os.File, error) {
	name := Either(runtime.GOOS == "windows", "CONIN$", "/dev/tty")
	return os.OpenFile(name, os.O_RDWR, 0)
}
