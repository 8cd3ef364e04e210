package service

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/config"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/setup"
	"github.com/parley-tools/parley/cmd/parleyd/internal/systemd"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

// work runs a worker until a signal ends it. It then takes no more calls and waits for those under way, until a
// second signal or the drain time ends them. pool, unless empty, and slots, unless negative, replace the values of the
// configuration.
func work(path, pool string, slots int, log io.Writer) error {
	cfg, err := config.ReadFleet(path, func(c *config.Config) {
		if pool != "" {
			c.Worker.Pool = pool
		}
		if slots >= 0 {
			c.Worker.Slots = slots
		}
	})
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: cfg.Level}))
	dirs := parley.FindDirs("", os.Getenv)
	if err := dirs.Check(); err != nil {
		return err
	}
	w, err := cfg.Fleet.Worker(cfg.Worker, dirs, logger)
	if err != nil {
		return err
	}
	manager := systemd.Find()
	manager.Notify("READY=1", "STATUS=running calls of the pool "+cfg.Worker.Pool)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	hurry, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-signals
		manager.Notify("STOPPING=1", "STATUS=draining")
		w.Drain()
		select {
		case <-signals:
		case <-time.After(cfg.DrainTime):
		}
		cancel()
	}()
	return w.Wait(hurry)
}

const fleetUsage = `parleyd fleet operates the machines that run calls for the services of a team.

  parleyd fleet init DIR          write keys, certificates and the configuration of the server and of each machine
  parleyd fleet publish NAME..    hand the code of installed plugins to the workers, and list them at every front;
                                  --withdraw takes them out of the lists; --policy FILE signs a policy and
                                  hands it to all fronts whose fleet.policy is the operator's key
  parleyd fleet status            list the workers and how many calls they can take
  parleyd fleet explain TOOL      say where calls of a tool run, and which of their data leave this machine
  parleyd fleet drain WORKER      have a worker end once its calls are done

All but init take --config FILE, which has the table [fleet]; ` + defaultConfig + ` by default. That of a
front is enough for status and explain, which goes by the policy that the user of the command has.
`

// runFleet runs a command of parleyd fleet.
func runFleet(args []string, out io.Writer) error {
	name, args := args[0], args[1:]
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	flags := newFlags("fleet " + name)
	path := flags.String("config", defaultConfig, "")
	policyFile := "" // option of publish
	operate := func(most int, asks bool, run func(o *fleet.Operator, args []string) error) error {
		rest, err := parseFlags(flags, args, most)
		if err != nil {
			return err
		}
		if most > 0 && len(rest) == 0 && policyFile == "" {
			return host.Errorf(host.InvalidArgs, "parleyd fleet %s: a name is missing; see parleyd fleet help", name)
		}
		cfg, err := config.ReadFleet(*path, nil)
		if err != nil {
			return err
		}
		is := cfg.Fleet.IsOperators()
		if !is && !asks {
			return host.Errorf(host.ConfigError, "parleyd fleet %s takes the key of an operator, and %s is of %s; expected "+
				"--config with the file operator/fleet.toml that parleyd fleet init has written", name, *path, cfg.Fleet.Name)
		}
		o, err := cfg.Fleet.Operator()
		if err != nil {
			return err
		}
		defer o.Close()
		if is {
			err = o.Provision(ctx)
		}
		if err != nil {
			return err
		}
		return run(o, rest)
	}
	switch name {
	case "init":
		return setup.Init(args, out)
	case "publish":
		withdraw := flags.Bool("withdraw", false, "")
		flags.StringVar(&policyFile, "policy", "", "")
		return operate(maxPublished, false, func(o *fleet.Operator, names []string) error {
			if policyFile != "" {
				if err := publishPolicy(ctx, o, policyFile, out); err != nil {
					return err
				}
			}
			return publish(ctx, o, names, *withdraw, out)
		})
	case "status":
		return operate(0, true, func(o *fleet.Operator, _ []string) error { return showWorkers(ctx, o, out) })
	case "explain":
		return operate(1, true, func(o *fleet.Operator, args []string) error { return explain(ctx, o, args[0], out) })
	case "drain":
		return operate(1, false, func(o *fleet.Operator, args []string) error {
			drained, err := o.Drain(ctx, args[0])
			for _, w := range drained {
				fmt.Fprintf(out, "%s drains: %d calls are under way\n", w.Worker, w.Slots-w.Free)
			}
			return err
		})
	}
	return host.Errorf(host.InvalidArgs, "unknown command %q; expected init, publish, status, explain or drain",
		manifest.CleanLine(name))
}

// renewTime is how long before its end a certificate is reported.
const renewTime = 90 * 24 * time.Hour

// keepTime is how long the code of a plugin stays in the fleet after the plugin was replaced or withdrawn.
const keepTime = time.Hour

// maxPublished limits the plugins of one command.
const maxPublished = 1000

// publishPolicy signs a policy and publishes it to the fronts that share it.
func publishPolicy(ctx context.Context, o *fleet.Operator, path string, out io.Writer) error {
	key, err := o.ReadKey()
	if err == nil {
		err = o.PublishPolicy(ctx, path, key)
	}
	if err == nil {
		fmt.Fprintf(out, "published %s\n", manifest.CleanLine(path))
	}
	return err
}

// publish makes the code of installed plugins available to the workers, and lists the plugins at all fronts. With
// withdraw it removes them from the lists.
func publish(ctx context.Context, o *fleet.Operator, names []string, withdraw bool, out io.Writer) error {
	p := parley.New(parley.Config{})
	defer p.Close()
	for _, name := range names {
		if withdraw {
			if err := o.Withdraw(ctx, name); err != nil {
				return err
			}
			fmt.Fprintf(out, "withdrew %s\n", manifest.CleanLine(name))
			continue
		}
		entry, err := o.PublishInstalled(ctx, p, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "published %s %s (%s)\n", entry.Name, manifest.CleanLine(entry.Version), entry.Digest)
	}
	return o.Prune(ctx, keepTime)
}

func showWorkers(ctx context.Context, o *fleet.Operator, out io.Writer) error {
	all, err := o.Workers(ctx)
	if err != nil {
		return err
	}
	if at := o.Expires(); !at.IsZero() && time.Until(at) < renewTime {
		fmt.Fprintf(out, "a certificate of the server ends on %s: see parleyd fleet init --renew\n", at.Format(time.DateOnly))
	}
	if len(all) == 0 {
		fmt.Fprintln(out, "no workers")
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "POOL\tWORKER\tSLOTS\tFREE\tVERSION\tNOTES")
	names := map[string]int{}
	for _, w := range all {
		names[w.Worker]++
	}
	for _, w := range all {
		var notes []string
		if w.Draining {
			notes = append(notes, "draining")
		}
		if w.Lacks != "" {
			notes = append(notes, "cannot isolate: "+manifest.CleanLine(w.Lacks))
		}
		if names[w.Worker] > 1 {
			notes = append(notes, fmt.Sprintf("one of %d of this name (%s)", names[w.Worker], w.Instance))
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\n", w.Pool, w.Worker, w.Slots, w.Free, manifest.CleanLine(w.Host),
			strings.Join(notes, "; "))
	}
	return table.Flush()
}

// explain says where calls of a tool run, according to the policy of this machine and the present workers.
func explain(ctx context.Context, o *fleet.Operator, tool string, out io.Writer) error {
	p := parley.New(parley.Config{})
	defer p.Close()
	catalog, err := p.Catalog()
	if err != nil {
		return err
	}
	at, err := catalog.Find(tool)
	if err != nil {
		return err
	}
	m, err := at.Provider.Manifest()
	if err != nil {
		return err
	}
	rules, err := p.Policy()
	if err != nil {
		return err
	}
	workers, err := o.Workers(ctx)
	if err != nil {
		return err
	}
	x := rules.Explain(at.Provider.Info(), m, "")
	_, err = io.WriteString(out, explained(at.Name(), at.Provider.Info().Kind, x, workers))
	return err
}

// explained returns the text of explain.
func explained(tool, kind string, x policy.Explanation, workers []fleet.Status) string {
	var goes, stays []string
	for _, r := range x.Rights {
		if len(r.Grants) == 0 {
			continue
		}
		if wasm.StaysHere(r.Right) {
			stays = append(stays, r.Right)
		} else {
			goes = append(goes, r.Right)
		}
	}
	slots, lacks, of, able := 0, "", 0, 0
	for _, w := range workers {
		if w.Pool == x.Pool && !w.Draining {
			slots, of = slots+w.Slots, of+1
			if lacks = cmp.Or(lacks, w.Lacks); w.Lacks == "" {
				able++
			}
		}
	}
	leaves := "parameters, settings, limits"
	if len(goes) > 0 {
		leaves += ", the names of the rights " + strings.Join(slices.Compact(goes), ", ")
	}
	runs, here := fmt.Sprintf("on a worker of the pool %s, which has %d with %d slots", x.Pool, of, slots), "nothing"
	switch {
	case kind == manifest.KindHTTP || kind == manifest.KindBuiltin:
		runs, leaves = "at the front: it has no code that could run elsewhere", here
	case x.Pool == "":
		runs, leaves = "at the front: policy.toml has no run = \"fleet:POOL\" in [plugin."+x.Plugin+"]", here
	case len(stays) > 0:
		runs, leaves = "at the front, because of what stays", here
	case x.Isolate == "none":
		runs, leaves = "at the front, because of isolate = \"none\"", here
	case of > 0 && able == 0:
		runs = "at the front if a call must be isolated: the workers lack " + manifest.CleanLine(lacks)
	case of == 0:
		runs = "nowhere now: the pool " + x.Pool + " has no worker"
	}
	return fmt.Sprintf("%s\n  runs    %s\n  leaves  %s\n  stays   %s\n", tool, runs, leaves,
		strings.Join(append(stays, "values of secrets and variables, requests, records"), ", "))
}
