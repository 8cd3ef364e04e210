package cdp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

type scriptParams struct {
	Script        string            `json:"script"`
	Call          string            `json:"call"`
	Args          []json.RawMessage `json:"args"`
	DocumentStart bool              `json:"document_start"`
	Files         []string          `json:"files"`
	ClosedRoots   bool              `json:"closed_roots"`
}

// effectOf returns the effect of a call: that of route is read where it only lists the rules.
func effectOf(j *host.Job) string {
	var q api.RouteRequest
	if j.Tool == "route" && json.Unmarshal(j.Params, &q) == nil && q.Rules == nil && len(q.Add)+len(q.Remove) == 0 {
		return manifest.EffectRead
	}
	return manifest.EffectDestructive // not less than that of the tool
}

// script calls a function of a script that the calling plugin ships. Its text is read only if the keeper lacks it.
func (b *browsers) script(ctx context.Context, r *host.Request) (*host.Result, error) {
	var q scriptParams
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return nil, err
	}
	if q.Call == "" && !q.DocumentStart {
		e := host.Errorf(host.InvalidArgs, "script requires call, the name of a function, or document_start")
		e.Details = []host.Detail{{Parameter: "/call", Keyword: "required", Provided: "nothing",
			Expected: "the name of a function that the script exports"}}
		return nil, e
	}
	argument := host.ScriptArgument{Name: q.Script}
	declared, err := host.AskFor[host.Script](ctx, r, host.AskScript, argument)
	if err != nil {
		return nil, err
	}
	c, err := b.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	request := api.NewScriptRequest(declared.Plugin, q.Script, declared.SHA256, "")
	request.Target, request.OnDialog = r.Options.Target, r.Options.OnDialog
	request.Function, request.Args, request.DocumentStart = q.Call, q.Args, q.DocumentStart
	request.ClosedRoots = q.ClosedRoots
	if request.Files, err = filesFor(ctx, c, r, q.Files); err != nil {
		return nil, err
	}
	done, err := c.Script(ctx, request)
	if errors.Is(err, api.ErrNoScript) {
		argument.Text = true
		if declared, err = host.AskFor[host.Script](ctx, r, host.AskScript, argument); err != nil {
			return nil, err
		}
		request.Script.Text = declared.Text
		done, err = c.Script(ctx, request)
	}
	if err != nil {
		return nil, err
	}
	if done.Exception != nil {
		return nil, scriptError(done.Exception)
	}
	return result(done)
}

// filesFor returns the paths of files for a page: those that the host has handed to the plugin are copied to where the
// session's pages get theirs from; the others are downloads, which the keeper checks.
func filesFor(ctx context.Context, c *keeper.Client, r *host.Request, given []string) ([]string, error) {
	var paths []string
	for _, file := range given {
		if strings.HasPrefix(file, host.SharedFilePrefix) {
			folder, err := c.UploadFolder(ctx)
			if err != nil {
				return nil, err
			}
			argument := host.SharedFileArgument{Text: file, Folder: folder.Path}
			if file, err = host.AskFor[string](ctx, r, host.AskSharedFile, argument); err != nil {
				return nil, err
			}
		}
		paths = append(paths, file)
	}
	return paths, nil
}
