package admin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/approve"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/manifest"
)

var approvalsCommand = &command.Group{
	Use: "approvals", Short: "Answer approvals",
	Long: "A call that requires confirmation or a right that is not granted waits here for a person. So does a change " +
		"of trust or rights that is made without a terminal. An open approval expires after 24 hours. An answer counts " +
		"once, within 15 minutes, for exactly the call or change that was asked about.",
	Of: []command.Maker{
		approvalsListCommand,
		command.Plain("show ID", "Show an approval: who asks for what, with which parameters and rights",
			"parley approvals show a1b2", runApprovalsShow, command.CompleteApprovals),
		approvalsAllowCommand, approvalsDenyCommand,
		command.Plain("follow", "Print approvals as they are asked for and answered", "parley approvals follow",
			runApprovalsFollow),
	},
}

var approvalsListCommand = &command.Command[*approvalsListOptions]{
	Use: "list", Run: runApprovalsList, Short: "List the open approvals",
	Example: "parley approvals list\nparley approvals list --all",
}

type approvalsListOptions struct {
	All bool `flag:"all" usage:"also list those answered or expired in the last 24 hours"`
}

func runApprovalsList(_ context.Context, app *command.App, opts *approvalsListOptions) error {
	all, err := parley.Approvals(app.Parley()).Store.List()
	if err != nil {
		return err
	}
	if !opts.All {
		all = slices.DeleteFunc(all, func(a approval.Approval) bool { return a.State != approval.Open })
	}
	data := struct {
		Approvals []approval.Approval `json:"approvals"`
		Total     int                 `json:"total"`
	}{append([]approval.Approval{}, all...), len(all)}
	var next []string
	if data.Total > 0 {
		next = []string{"parley approvals show " + data.Approvals[data.Total-1].ID}
	}
	return app.Print(data, next, func(w io.Writer) {
		command.PrintIf(w, data.Total == 0, "No approval is open.\n")
		command.WriteLines(w, "", command.Map(data.Approvals, approvalLine))
		command.WriteLines(w, "Next: ", next)
	})
}

// approvalLine returns an approval on one line: its id and state, who asks, and for what.
func approvalLine(a approval.Approval) string {
	what := a.Tool
	if len(a.Rights) > 0 {
		what += "  " + strings.Join(grant.Named(a.Rights), ", ")
	} else if len(a.Params) > 0 {
		what += " " + manifest.Clip(string(a.Params), 60)
	}
	return fmt.Sprintf("%s  %-7s  %-6s  %s  %s  %s", a.ID, a.State, a.Kind, a.Asked.Format("15:04"),
		manifest.CleanLine(a.Principal), manifest.CleanLine(manifest.Clip(what, 120)))
}

func runApprovalsShow(_ context.Context, app *command.App, id string) error {
	a, err := parley.Approvals(app.Parley()).Store.Find(id)
	if err != nil {
		return err
	}
	var next []string
	if a.State == approval.Open {
		next = []string{"parley approvals allow " + a.ID, "parley approvals deny " + a.ID}
	}
	return app.Print(a, next, func(w io.Writer) {
		writeApproval(w, &a)
		command.WriteLines(w, "Next: ", next)
	})
}

// writeApproval writes everything that a person should know before answering.
func writeApproval(w io.Writer, a *approval.Approval) {
	fmt.Fprintf(w, "%s  %s: %s", a.ID, a.State, manifest.CleanLine(a.Principal))
	command.PrintIf(w, a.Session != "", " in session %s", manifest.CleanLine(a.Session))
	if a.Kind == approval.ForChange {
		fmt.Fprintf(w, " wants to run parley %s:\n", manifest.CleanLine(a.Tool))
		command.WriteLines(w, "  ", strings.Split(strings.TrimRight(manifest.Clean(a.Reason), "\n"), "\n"))
	} else {
		fmt.Fprintf(w, " wants to call %s\n", manifest.CleanLine(a.Tool))
		command.PrintIf(w, a.Effect != "", "  effect: %s\n", a.Effect)
		command.PrintIf(w, len(a.Params) > 0, "  parameters: %s\n", manifest.EscapeJSON(a.Params))
		command.PrintIf(w, a.Reason != "", "  reason: %s\n", manifest.CleanLine(a.Reason))
		command.PrintIf(w, len(a.Rights) > 0, "  it needs these rights, which are not granted:\n")
		command.WriteLines(w, "    ", command.Map(a.Rights, func(r grant.Denial) string {
			return r.Right + command.When(r.Why != "", fmt.Sprintf("  %q", r.Why))
		}))
		command.PrintIf(w, a.Digest != "", "  build: %s\n", a.Digest)
	}
	fmt.Fprintf(w, "  asked: %s  expires: %s\n", a.Asked.Format(time.DateTime+" MST"),
		a.Expires.Format(time.DateTime+" MST"))
	if r := a.Answered; r != nil {
		fmt.Fprintf(w, "  answered: %s by %s at %s", r.Answer, r.By, r.Time.UTC().Format(time.DateTime+" MST"))
		command.PrintIf(w, r.Word != "", " (%s)", manifest.CleanLine(r.Word))
		fmt.Fprintln(w)
	}
}

// prompts are the questions to confirm an answer, by the kind of the answer.
var prompts = map[approval.Answer]string{
	approval.Once: "Allow it once?", approval.Session: "Allow it in this session?",
	approval.Always: "Write this, and allow it?",
}

var approvalsAllowCommand = &command.Command[*approvalsAllowOptions]{
	Use: "allow ID [HOW]", Run: runApprovalsAllow, Words: command.CompleteApprovals,
	Short: "Allow what an approval asks for: once, for the session, or always",
	Long: "HOW is once, the default; session, with any parameters until the session of the caller ends; or always, " +
		"which writes a line to grants.toml after showing it. always does not overrule policy.toml. A person at a terminal " +
		"confirms the answer, or --yes does where the policy sets allow_yes.",
	Example: "parley approvals allow a1b2\nparley approvals allow a1b2 always\n" +
		"parley approvals allow a1b2 --right fs:ro:/srv/notes=/data",
}

type approvalsAllowOptions struct {
	ID     string   `word:""`
	How    string   `word:""`
	Rights []string `flag:"right" usage:"allow this RIGHT instead of the requested ones, such as with your folder"`
	command.Approval
}

func runApprovalsAllow(ctx context.Context, app *command.App, o *approvalsAllowOptions) error {
	how := approval.Answer(cmp.Or(o.How, string(approval.Once)))
	prompt := prompts[how]
	if prompt == "" {
		return host.Errorf(host.InvalidArgs, "%q is not a way to allow; expected once, session or always",
			manifest.CleanValue(o.How)).WithNext("parley approvals allow " + command.ShellQuote(o.ID) + " once")
	}
	reply := approval.Reply{Answer: how, Rights: o.Rights,
		By: command.Either(o.Yes, approval.ByPolicy, approval.ByTerminal)}
	store := parley.Approvals(app.Parley()).Store
	a, err := store.Find(o.ID)
	if err != nil {
		return err
	}
	if err := cmp.Or(approve.Suits(&a, reply), checkBuild(app, &a)); err != nil {
		return err
	}
	edit, err := lasting(app, &a, reply)
	if err != nil {
		return err
	}
	var card strings.Builder
	writeApproval(&card, &a)
	command.PrintIf(&card, len(reply.Rights) > 0, "  to be allowed: %s\n", strings.Join(reply.Rights, ", "))
	command.PrintIf(&card, edit.Path != "", "%s", edit.Diff())
	change := command.Change{Diff: card.String(), Prompt: prompt, What: "what an approval asks for"}
	if err := app.Approve(ctx, change, o.Yes); err != nil {
		return err
	}
	if edit.Path != "" {
		rules, err := app.Parley().Policy()
		if err != nil {
			return err
		}
		if err := rules.WriteGrants(edit); err != nil {
			return err
		}
		app.Note("grant", cmp.Or(edit.Plugin, edit.Caller), edit.Added...)
	}
	return answer(app, store, a.ID, reply)
}

// checkBuild returns an error if the plugin of an approval is no longer the build that asked.
func checkBuild(app *command.App, a *approval.Approval) error {
	if a.Digest == "" || a.State != approval.Open {
		return nil
	}
	plugin, _, _ := strings.Cut(a.Tool, ".")
	at, err := app.Plugin(plugin)
	if err != nil {
		return err
	}
	if now := at.Provider.Info().Digest; now != a.Digest {
		return host.Errorf(host.Integrity, "%s has changed since approval %s was asked for: it was %s and is %s; the caller "+
			"has to ask again", plugin, a.ID, a.Digest, now)
	}
	return nil
}

// lasting returns the change of grants.toml for the answer always to a call or to rights, or the zero value for other
// answers.
func lasting(app *command.App, a *approval.Approval, reply approval.Reply) (policy.Edit, error) {
	if reply.Answer != approval.Always {
		return policy.Edit{}, nil
	}
	rules, err := app.Parley().Policy()
	if err != nil {
		return policy.Edit{}, err
	}
	if a.Kind == approval.ForCall {
		return rules.Unconfirm(a.Principal, a.Tool, a.Effect)
	}
	plugin, _, _ := strings.Cut(a.Tool, ".")
	var grants []policy.Grant
	for _, right := range approve.RightsOf(a, reply) {
		g, err := policy.ParseGrant(right)
		if err != nil {
			return policy.Edit{}, host.Errorf(host.InvalidArgs, "%s", manifest.CleanLine(err.Error()))
		}
		grants = append(grants, g)
	}
	return rules.Grant(plugin, a.Digest, grants...)
}

var approvalsDenyCommand = &command.Command[*approvalsDenyOptions]{
	Use: "deny ID [WORD...]", Run: runApprovalsDeny, Words: command.CompleteApprovals,
	Short:   "Deny what an approval asks for, with a word for the caller",
	Example: "parley approvals deny a1b2\nparley approvals deny a1b2 use the staging account",
}

type approvalsDenyOptions struct {
	ID   string   `word:""`
	Word []string `word:""`
}

func runApprovalsDeny(_ context.Context, app *command.App, o *approvalsDenyOptions) error {
	return answer(app, parley.Approvals(app.Parley()).Store, o.ID, approval.Reply{Answer: approval.Deny,
		By: approval.ByTerminal, Word: strings.Join(o.Word, " ")})
}

// answer records an answer, and prints the approval.
func answer(app *command.App, store *approve.Store, id string, reply approval.Reply) error {
	a, err := store.Answer(id, reply)
	if err != nil {
		return err
	}
	app.Note("approval", a.ID, string(a.Kind), a.Principal, a.Tool, string(reply.Answer))
	return app.Print(a, []string{"parley approvals list"}, func(w io.Writer) {
		fmt.Fprintf(w, "%s  %s: %s of %s, %s\n", a.ID, a.State, manifest.CleanLine(a.Tool), manifest.CleanLine(a.Principal),
			reply.Answer)
	})
}

// runApprovalsFollow prints open approvals and their outcomes until it is interrupted.
func runApprovalsFollow(ctx context.Context, app *command.App, _ string) error {
	store, seen := parley.Approvals(app.Parley()).Store, map[string]approval.State{}
	for first := true; ; first = false {
		all, err := store.List()
		if err != nil {
			return err
		}
		for _, a := range all {
			before, known := seen[a.ID]
			if seen[a.ID] = a.State; known && before == a.State || first && a.State != approval.Open {
				continue
			}
			if app.JSON {
				err = command.WriteJSON(app.Out, a, false)
			} else {
				_, err = fmt.Fprintln(app.Out, approvalLine(a))
			}
			if err != nil {
				return command.WriteError(err)
			}
		}
		select {
		case <-ctx.Done():
			return nil // the intended way to end it
		case <-time.After(followEvery):
		}
	}
}

// followEvery is the time between two checks of the approvals.
const followEvery = 200 * time.Millisecond
