package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest"
)

// Invoke runs a verb.
func (p *Provider) Invoke(ctx context.Context, r *host.Request) (*job.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &invocation{provider: p, Request: r}
	run := c.verb
	if own := c.own(r.Tool); own != nil {
		run = own
	} else if r.Tool == "do" {
		run = c.do
	}
	done, err := run(ctx, r.Tool, r.Params)
	if err != nil {
		failed := c.hostError(err)
		k, ok := errors.AsType[*api.Error](err)
		if e, known := errors.AsType[*host.Error](failed); ok && known {
			e.Subject = k.Subject
		}
		return nil, failed
	}
	if len(done.Before) > 0 {
		done.Data = prepend("before", done.Before, done.Data)
	}
	return &job.Result{Data: done.Data, Content: c.content, Warnings: done.Warnings, Subject: done.Subject}, nil
}

// prepend returns an object with one more member, which comes first.
func prepend(name string, value, object json.RawMessage) json.RawMessage {
	more := fmt.Appendf(nil, "{%q:%s", name, value)
	if len(object) > len("{}") {
		more = append(more, ',')
	}
	return append(more, object[1:]...)
}

// invocation is a call of a verb, or of do with the verbs of its steps.
type invocation struct {
	*host.Request
	provider *Provider
	secrets  map[string]api.PageSecret
	opens    bool          // its first step opens a page
	content  []job.Content // pictures and other files that steps of do return
}

// verb runs a verb in one trip to the keeper.
func (c *invocation) verb(ctx context.Context, tool string, params json.RawMessage) (api.PageResult, error) {
	params, err := c.prepare(ctx, tool, params)
	if err != nil {
		return api.PageResult{}, err
	}
	starts := 0
	if tool == "open" {
		starts = cdp.MaxStarts
	}
	return c.send(ctx, tool, params, starts)
}

func (c *invocation) send(ctx context.Context, verb string, params json.RawMessage, starts int) (
	api.PageResult, error,
) {
	q := api.PageRequest{Secrets: c.secrets}
	q.Params, q.VerbOptions = params, api.VerbOptions{Target: c.Options.Target, OnDialog: c.Options.OnDialog,
		Wait: c.Options.Wait}
	done, notes, err := c.provider.chrome.PageVerb(ctx, c.Request, verb, q, starts)
	done.Warnings = append(notes, done.Warnings...)
	return done, err
}

// prepare returns the parameters of a verb in the keeper's form. It does what needs the host: it copies files for the
// page to where its browser finds them, and reads the secret for a field.
func (c *invocation) prepare(ctx context.Context, tool string, params json.RawMessage) (json.RawMessage, error) {
	switch tool {
	case "downloads", "fill", "open", "press", "upload":
	default:
		return params, nil
	}
	q := map[string]json.RawMessage{}
	err := json.Unmarshal(params, &q)
	switch {
	case err != nil:
	case tool == "press":
		return params, checkPaste(c.Request, tool, q)
	case tool == "downloads" && given(q, "save"):
		var path string
		err = json.Unmarshal(q["save"], &path)
		c.RecordUse("fs:write:" + filepath.Clean(path))
		return params, err
	case tool == "open" && given(q, "here") && string(q["here"]) == string(q["new"]):
		wrong := api.Errorf(api.CodeInvalidArgs, "here is the opposite of new")
		wrong.Invalid = &api.Invalid{Pointer: "/here", Expected: "the opposite of new, or one of them alone",
			Provided: "the same"}
		err = wrong
	case tool == "open" && given(q, "here") && !given(q, "new"):
		q["new"] = json.RawMessage(fmt.Sprint(string(q["here"]) != "true"))
	case tool == "fill" && given(q, "secret"):
		return params, c.readSecret(ctx, q["secret"])
	case tool == "upload" && given(q, "files"):
		var files []string
		if err = json.Unmarshal(q["files"], &files); err == nil {
			files, err = c.provider.chrome.Files(ctx, c.Request, files, c.opens)
		}
		if err == nil {
			q["files"], err = manifest.Marshal(files)
		}
	default:
		return params, nil
	}
	if err != nil {
		return nil, err
	}
	delete(q, "here")
	return manifest.Marshal(q)
}

// readSecret reads a secret that a field is to get, if the policy binds it to an origin.
func (c *invocation) readSecret(ctx context.Context, raw json.RawMessage) error {
	var name string
	if err := json.Unmarshal(raw, &name); err != nil {
		return err
	}
	if _, known := c.secrets[name]; known {
		return nil
	}
	s, err := host.AskFor[job.BoundSecret](ctx, c.Request, job.AskBoundSecret, job.NameArgument{Name: name})
	if err != nil {
		return err
	}
	if c.secrets == nil {
		c.secrets = map[string]api.PageSecret{}
	}
	c.secrets[name] = api.PageSecret{Text: s.Value, Origins: s.Origins}
	return nil
}

// stateParams are the parameters of state, here and in the plugin cdp.
type stateParams struct {
	Action  string   `json:"action"`
	Name    string   `json:"name,omitempty"`
	Origins []string `json:"origins,omitempty"`
}

// own returns the function that runs a tool in the host, or nil for a tool that the keeper runs in one trip.
func (c *invocation) own(tool string) func(context.Context, string, json.RawMessage) (api.PageResult, error) {
	switch tool {
	case "state":
		return c.state
	case "compare":
		return c.compare
	}
	return nil
}

// state saves or loads a login, which the host stores together with the logins of the plugin cdp. Without origins it
// saves the login of the page's origin.
func (c *invocation) state(ctx context.Context, tool string, params json.RawMessage) (done api.PageResult, err error) {
	var q stateParams
	if err := json.Unmarshal(params, &q); err != nil {
		return done, err
	}
	if q.Action == "save" && q.Name != "" && len(q.Origins) == 0 {
		at, err := c.send(ctx, tool, params, 0)
		if err == nil {
			err = json.Unmarshal(at.Data, &q)
		}
		if err != nil {
			return done, err
		}
	}
	own := *c.Request
	own.Tool = tool
	if own.Params, err = manifest.Marshal(q); err != nil {
		return done, err
	}
	kept, err := c.provider.chrome.Invoke(ctx, &own)
	if err != nil {
		return done, err
	}
	var answer struct {
		Name    string            `json:"name,omitempty"`
		Origins []string          `json:"origins,omitempty"`
		Cookies int               `json:"cookies,omitempty"`
		Items   int               `json:"items,omitempty"`
		States  []json.RawMessage `json:"states,omitempty"`
	}
	if err = json.Unmarshal(kept.Data, &answer); err != nil {
		return done, err
	}
	done.Warnings = kept.Warnings
	if c.Tool == "do" { // the caller of do has written the name, and knows the origins
		if answer.Name, answer.Origins = "", nil; q.Action == "load" {
			return done, nil
		}
	}
	done.Data, err = manifest.Marshal(answer)
	return done, err
}

// do runs steps in one trip, except for the steps that the host runs itself.
func (c *invocation) do(ctx context.Context, _ string, params json.RawMessage) (done api.PageResult, err error) {
	q := map[string]json.RawMessage{}
	var steps []api.PageStep
	if err = json.Unmarshal(params, &q); err == nil {
		err = json.Unmarshal(q["steps"], &steps)
	}
	if err != nil {
		return done, err
	}
	c.opens = len(steps) > 0 && steps[0].Tool == "open"
	for i := range steps {
		if steps[i].Params, err = c.prepare(ctx, steps[i].Tool, steps[i].Params); err != nil {
			return done, failedStep(err, i, steps[i].Tool, api.StepsDone{})
		}
	}
	var sum api.StepsDone
	for len(steps) > sum.Done {
		rest := steps[sum.Done:]
		part, ended := rest[:1], api.PageResult{}
		if own := c.own(rest[0].Tool); own != nil {
			ended, err = own(ctx, rest[0].Tool, rest[0].Params)
			if err != nil {
				return done, failedStep(err, sum.Done, rest[0].Tool, sum)
			}
			if sum.Done++; len(ended.Data) > 0 {
				sum.Results = append(sum.Results, api.StepResult{Step: sum.Done, Result: ended.Data})
			}
		} else {
			for len(part) < len(rest) && c.own(rest[len(part)].Tool) == nil {
				part = rest[:len(part)+1]
			}
			if ended, err = c.doPart(ctx, q, part, &sum); err != nil {
				return done, err
			}
		}
		if done.Before == nil {
			done.Before = ended.Before
		}
		done.Warnings = append(done.Warnings, ended.Warnings...)
		done.Subject = cmp.Or(ended.Subject, done.Subject)
	}
	for i := range sum.Results {
		c.takeContent(steps[sum.Results[i].Step-1].Tool, &sum.Results[i])
	}
	done.Data, err = manifest.Marshal(sum)
	return done, err
}

// takeContent moves the file that a step returns, such as a picture, from its result into the content of the call.
func (c *invocation) takeContent(tool string, r *api.StepResult) {
	r.Result = manifest.ReplaceBinary(r.Result, tools.Tool(tool).Returns, func(data, media string) any {
		block := job.Content{Type: job.ContentImage, Data: data, MIME: media}
		if !strings.HasPrefix(media, "image/") {
			block.Type, block.URI = job.ContentResource, "page:"+tool
		}
		c.content = append(c.content, block)
		return fmt.Sprintf("content %d", len(c.content))
	})
}

// doPart runs steps in one trip, and adds what they did to sum.
func (c *invocation) doPart(ctx context.Context, q map[string]json.RawMessage, steps []api.PageStep,
	sum *api.StepsDone) (ended api.PageResult, err error) {
	if q["steps"], err = manifest.Marshal(steps); err == nil {
		q["done"], err = manifest.Marshal(sum)
	}
	if err != nil {
		return ended, err
	}
	params, err := manifest.Marshal(q)
	if err != nil {
		return ended, err
	}
	starts := 0
	if steps[0].Tool == "open" {
		starts = 1 // after a failure nobody knows how far it got
	}
	if ended, err = c.send(ctx, "do", params, starts); err != nil {
		return ended, err
	}
	*sum = api.StepsDone{}
	return ended, json.Unmarshal(ended.Data, sum)
}
