package page_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
)

func steps(list ...string) (p DoParams) {
	for _, step := range list {
		tool, params, _ := strings.Cut(step, " ")
		p.Steps = append(p.Steps, json.RawMessage(fmt.Sprintf(`{"tool":%q,"params":%s}`, tool, params)))
	}
	return p
}

// TestStepsTellLateEffects does something that has effects after its step. They are in the answer, once.
func TestStepsTellLateEffects(t *testing.T) {
	c := startChrome(t)
	url := site(t, c)
	c.show(t, url+"/", `<title>Late</title><button onclick="setTimeout(() => { history.pushState({}, '', '#late');
		console.error('late'); out.textContent = 'Done' }, 200)">Go</button><p id=out></p>`)
	r, err := run(t, c, Do, steps(`click {"element":"Go"}`, `wait {"text":"Done","timeout":5000}`, `get {"element":"css=h9","what":"count"}`))
	if err != nil || r.URL != url+"/#late" || r.Done != 3 || len(r.Results) != 2 || r.Results[0].Step != 1 ||
		!strings.Contains(effects(r.Results[0]), `"errors":["\"late\""]`) {
		t.Errorf("%s, %s", effects(r), exit(err))
	}
	if e, err := run(t, c, Hover, ElementParams{Element: "Go"}); err != nil || e.Before != nil {
		t.Errorf("told again: %s, %s", effects(e), exit(err))
	}
}

// TestStatesAmongSteps saves and loads a login between other steps, which the host does itself. The steps have their
// numbers, also in errors. What was loaded is not repeated.
func TestStatesAmongSteps(t *testing.T) {
	c := startChrome(t)
	url := server(t, c)
	c.show(t, url+"/", `<title>States</title><button>Go</button>`)
	save, load := `state {"action":"save","name":"steps"}`, `state {"action":"load","name":"steps"}`
	set := `cookies {"name":"a","value":"1"}`
	r, err := run(t, c, Do, steps(set, save, `get {"element":"css=button","what":"text"}`, load, save))
	if err != nil || r.Done != 5 || len(r.Results) != 4 {
		t.Fatalf("%s, %s", effects(r), exit(err))
	}
	for i, one := range r.Results {
		if one.Step != []int{1, 2, 3, 5}[i] {
			t.Errorf("result %d is of step %d", i, one.Step)
		}
	}
	if got := effects(r.Results[1].Result) + effects(r.Results[2].Result); !strings.HasPrefix(got, `{"cookies":1}`) ||
		!strings.Contains(got, `{"value":"Go"}`) {
		t.Error(got)
	}
	for _, test := range []struct {
		last, want string
	}{
		{`get {"element":"None","what":"text"}`, `no_match: step 3, get: `},
		{`route {"action":"mock"}`, `/steps/2/params/address`},
		{`state {"action":"load","name":"none"}`, `not_found: step 3, state: `},
	} {
		if _, err := run(t, c, Do, steps(set, save, test.last)); !strings.Contains(exit(err), test.want) {
			t.Errorf("%s: %s", test.last, exit(err))
		}
	}
	c.evaluate(t, `document.cookie = "a=; max-age=0; path=/"`)
	if _, err := run(t, c, State, StateParams{Action: "delete", Name: "steps"}); err != nil {
		t.Error(exit(err))
	}
}

// TestFailedStepsKeepResults checks that the error of a step tells what was done before it, whatever its code, also
// where the host runs a step itself.
func TestFailedStepsKeepResults(t *testing.T) {
	c := startChrome(t)
	url := server(t, c)
	const get = `get {"element":"css=button","what":"text"}`
	for _, before := range [][]string{{get}, {get, `state {"action":"list"}`, get}} {
		for last, code := range map[string]string{
			`get {"element":"None","what":"text"}`:  "no_match",
			`route {"action":"mock"}`:               "invalid_args",
			`state {"action":"load","name":"none"}`: "not_found",
			`evaluate {"expression":"alert(1)"}`:    "busy",
		} {
			c.show(t, url+"/", `<title>Steps</title><button>Go</button>`)
			if code == "timeout" {
				c.deadline = 6 * time.Second
			}
			_, err := run(t, c, Do, steps(append(slices.Clone(before), last)...))
			if err == nil {
				t.Errorf("%s did not fail", last)
				continue
			}
			e, said := host.AsError(err), api.StepsDone{}
			if e.Tool != nil {
				_ = json.Unmarshal(e.Tool.Details, &said)
			}
			if string(e.Code) != code || said.Done != len(before) || len(said.Results) != len(before) ||
				effects(said.Results[0].Result) != `{"value":"Go"}` || said.Results[len(before)-1].Step != len(before) {
				t.Errorf("%d steps and %s: %s, %+v", len(before), last, exit(err), e.Tool)
			}
		}
	}
}

// TestSecretsAndFilesOfSteps fills in a secret and gives a file in steps, as the verbs do alone.
func TestSecretsAndFilesOfSteps(t *testing.T) {
	c := startChrome(t)
	const html = `<label>Password <input type=password id=pass></label><label>Photo <input type=file id=photo></label>`
	c.open(t, html)
	r, err := run(t, c, Do, steps(`fill {"element":"Password","secret":"PASSWORD"}`,
		`upload {"element":"Photo","files":["handed:a1/3/one.txt"]}`))
	if got := c.evaluate(t, "pass.value + photo.files[0].name"); err != nil || got != `"the secretone.txt"` {
		t.Errorf("%s, %s, %s", effects(r), exit(err), got)
	}
	c.open(t, html)
	if _, err := run(t, c, Fill, FillParams{Element: "Password", Secret: "PASSWORD"}); err != nil ||
		c.evaluate(t, "pass.value") != `"the secret"` {
		t.Errorf("%s, %s", exit(err), c.evaluate(t, "pass.value"))
	}
	c.show(t, site(t, c)+"/", html) // to whose origin the secret is not bound
	if _, err := run(t, c, Fill, FillParams{Element: "Password", Secret: "PASSWORD"}); err == nil ||
		c.evaluate(t, "pass.value") != `""` {
		t.Errorf("a secret of another origin: %s, %s", exit(err), c.evaluate(t, "pass.value"))
	}
}

// TestPicturesOfSteps takes pictures in steps. They are in the content of the answer, in order, and not in its JSON.
func TestPicturesOfSteps(t *testing.T) {
	c := startChrome(t)
	c.show(t, site(t, c)+"/", `<title>Pictures</title><button>Go</button>`)
	params, _ := json.Marshal(steps(`screenshot {"element":"Go"}`, `click {"element":"Go"}`, `screenshot {}`, `compare {}`))
	done, err := c.send(t.Context(), c.pages, "do", string(params))
	if err != nil {
		t.Fatal(exit(err))
	}
	if len(done.Content) != 2 || len(done.Data) > 600 || strings.Contains(string(done.Data), "iVBOR") {
		t.Fatalf("%d pictures beside %.600s", len(done.Content), done.Data)
	}
	for i, picture := range done.Content {
		if picture.Type != job.ContentImage || picture.MIME != "image/png" || !strings.HasPrefix(picture.Data, "iVBOR") ||
			!strings.Contains(string(done.Data), fmt.Sprintf(`"content %d"`, i+1)) {
			t.Errorf("%s %s, %.20s; %s", picture.Type, picture.MIME, picture.Data, done.Data)
		}
	}
}
