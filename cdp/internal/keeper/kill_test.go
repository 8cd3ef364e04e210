//go:build linux

package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// agentJob is what an agent's process reads from its input.
type agentJob struct {
	Config Config
	By     api.Caller
}

// runAgent works in a session without end: it opens pages, loads them and closes some. A browser that ends under it is
// no failure, a call that does not end is.
func runAgent() int {
	var job agentJob
	if json.NewDecoder(os.Stdin).Decode(&job) != nil {
		return 1
	}
	os.Unsetenv(ChildVar)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		c, err := Start(ctx, job.Config)
		if err == nil {
			c := c.As(job.By)
			for range 3 {
				_, err = c.Open(ctx, api.OpenRequest{})
				if err == nil {
					_, err = c.Call(ctx, api.CallRequest{Method: "Page.reload", Wait: api.WaitLoad})
				}
			}
			if err == nil {
				_, err = c.CloseTarget(ctx, "", "")
			}
			c.Close()
		}
		timedOut := ctx.Err() != nil
		cancel()
		if timedOut {
			fmt.Println("a call did not end:", err)
			return 1
		}
	}
}

// TestHammerKilledAgents kills agents' processes at random moments, each time beside a person's page in the same
// browser, and now and then the keeper or Chrome. Only what the killed process had opened goes, after the grace, and
// nothing is left in the end.
func TestHammerKilledAgents(t *testing.T) {
	t.Parallel()
	kills := 6
	if os.Getenv("PARLEY_HAMMER") != "" {
		kills = 60 // of each repetition
	}
	cfg := config(t)
	cfg.Grace = 200 * time.Millisecond
	person := inSession("work")
	var c *Client
	open := func() (page api.Page) {
		for { // an agent may have just started the browser, or one may just be ending
			client, err := Start(testContext(t), cfg)
			if err == nil {
				if page, err = client.As(person).Open(testContext(t), api.OpenRequest{}); err == nil {
					c = client
					return page
				}
			}
			if asError(err).Code != api.CodeChromeConnection {
				t.Fatal(err)
			}
		}
	}
	page := open()
	t.Cleanup(func() {
		Stop(context.Background(), cfg.RunDir, cfg.Browser, "test")
		requireNothingLeft(t, cfg)
	})
	for i := range kills {
		id := fmt.Sprint("agent", i)
		job, _ := json.Marshal(agentJob{cfg, api.Caller{
			Name: "mcp:some", Session: "user/" + id, Connection: id, Temporary: true,
		}})
		var out bytes.Buffer
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), ChildVar+"=agent")
		cmd.Stdin, cmd.Stdout = bytes.NewReader(job), &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		select { // a random stage of its work
		case <-time.After(rand.N(400 * time.Millisecond)):
		case <-c.done:
		}
		victim := cmd.Process.Pid
		ends := false // the browser
		if s, err := c.Status(testContext(t), true); err == nil {
			switch i % 6 {
			case 4:
				victim, ends = s.KeeperPID, true
			case 5:
				victim, ends = s.ChromePID, true
			}
		}
		syscall.Kill(victim, syscall.SIGKILL)
		if ends {
			waitFor(t, "the browser to end", c.Ended)
			page = open()
		} else {
			wantValue(t, c.As(person), page.Target, "1+1", "2")
		}
		cmd.Process.Kill()
		cmd.Wait()
		if out.Len() > 0 {
			t.Errorf("kill %d: %s", i, &out)
		}
	}
	var left api.Status
	closed := func() bool {
		var err error
		left, err = c.Status(testContext(t), true)
		return err == nil && len(left.Sessions) == 1 && len(left.Targets) <= 2
	}
	for end := time.Now().Add(testTimeout); !closed(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("of what the killed agents have opened there are %+v, %+v", left.Sessions, left.Targets)
		}
	}
	wantValue(t, c.As(person), page.Target, "1+1", "2")
	if closed, err := c.As(person).CloseSession(testContext(t), ""); err != nil || closed.Browser == "" {
		t.Errorf("closed %+v, %v", closed, err)
	}
	requireNothingLeft(t, cfg)
}
