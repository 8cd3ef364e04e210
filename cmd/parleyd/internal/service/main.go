package service

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/config"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/records"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/setup"
	"github.com/parley-tools/parley/host"
)

// defaultConfig is the configuration file that is used without --config.
const defaultConfig = "/etc/parley/parleyd.toml"

const usage = `parleyd serves the tools of Parley over MCP.

  parleyd serve [--config FILE]   serve until SIGTERM; SIGHUP reads the files again
  parleyd check [--config FILE]   check the configuration
  parleyd worker [--config FILE] [--pool NAME] [--slots N]
                                  run calls of the fleet's fronts until SIGTERM
  parleyd fleet COMMAND           operate a fleet: init, publish, status, explain, drain
  parleyd version

FILE is ` + defaultConfig + ` by default.
`

// Main runs a command line and returns the exit code.
func Main(args []string, out, errs io.Writer) int {
	if text := help(args); text != "" {
		fmt.Fprint(out, text)
		return 0
	}
	name, args := args[0], args[1:]
	var err error
	switch name {
	case "serve", "check", "worker":
		err = runConfigured(name, args, out, errs)
	case "fleet":
		err = runFleet(args, out)
	case "version":
		fmt.Fprintln(out, parley.Version)
	default:
		err = host.Errorf(host.InvalidArgs, "unknown command %q; expected serve, check, worker, fleet or version", name)
	}
	if err == nil {
		return 0
	}
	e := host.AsError(err)
	fmt.Fprintf(errs, "Error: %v\n", e)
	for _, next := range e.Next {
		fmt.Fprintf(errs, "Tip: %s\n", next)
	}
	return e.ExitCode()
}

// help returns the help for a command line that asks for it or that names no command, else "".
func help(args []string) string {
	words := append(slices.Clone(args), "help", "help")
	isFleet := words[0] == "fleet"
	switch asks := slices.Contains(args, "--help") || slices.Contains(args, "-h"); {
	case isFleet && words[1] == "init" && asks:
		return setup.Usage
	case isFleet && (words[1] == "help" || asks):
		return fleetUsage
	case words[0] == "help" || asks:
		return usage
	}
	return ""
}

// runConfigured runs a command whose only argument is the configuration file.
func runConfigured(name string, args []string, out, errs io.Writer) error {
	flags := newFlags(name)
	path := flags.String("config", defaultConfig, "")
	var pool *string
	var slots *int
	if name == "worker" {
		pool, slots = flags.String("pool", "", ""), flags.Int("slots", -1, "")
	}
	if _, err := parseFlags(flags, args, 0); err != nil {
		return err
	}
	switch name {
	case "serve":
		return serve(*path, errs)
	case "worker":
		return work(*path, *pool, *slots, errs)
	}
	err := checkConfig(*path, errs)
	if err == nil {
		fmt.Fprintf(out, "%s is valid\n", *path)
	}
	return err
}

func newFlags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// parseFlags parses options, which may stand before, between and after the arguments. It returns the arguments, at
// most most of them.
func parseFlags(flags *flag.FlagSet, args []string, most int) (rest []string, err error) {
	for err = flags.Parse(args); err == nil && flags.NArg() > 0; err = flags.Parse(flags.Args()[1:]) {
		rest = append(rest, flags.Arg(0))
	}
	var known []string
	flags.VisitAll(func(f *flag.Flag) { known = append(known, "--"+f.Name) })
	expected := strings.Join(known, ", ")
	switch {
	case err != nil:
		text := strings.NewReplacer("flag provided but not defined: -", "unknown option --",
			"flag needs an argument: -", "a value is missing after --").Replace(err.Error())
		return nil, host.Errorf(host.InvalidArgs, "parleyd %s: %s; expected %s", flags.Name(), text, expected)
	case len(rest) > most && most > 0:
		return nil, host.Errorf(host.InvalidArgs, "parleyd %s: got %d names, expected at most %d, and %s", flags.Name(),
			len(rest), most, expected)
	case len(rest) > most:
		return nil, host.Errorf(host.InvalidArgs, "parleyd %s: got %q, expected %s", flags.Name(), rest[0], expected)
	}
	return rest, nil
}

// serve serves a configuration until a signal ends it.
func serve(path string, log io.Writer) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	s, err := open(path, log)
	if err != nil {
		return err
	}
	return s.Serve(signals)
}

// checkConfig reads a configuration and the files that it names.
func checkConfig(path string, errs io.Writer) error {
	cfg, err := config.Read(path)
	if err != nil {
		return err
	}
	notice := func(text string) { fmt.Fprintln(errs, "note: "+text) }
	if _, err = load(cfg, nil, notice, nil); err != nil || cfg.Fleet.Records != fleet.RecordsRequired {
		return err
	}
	note, err := records.CheckDurable(context.Background(), nil, cfg.Fleet.Monitor)
	if note != "" {
		notice(note)
	}
	return err
}
