package service

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/config"
	"github.com/parley-tools/parley/host"
)

// defaultConfig is the configuration file without --config.
const defaultConfig = "/etc/parley/parleyd.toml"

const usage = `parleyd serves the tools of Parley over MCP.

  parleyd serve [--config FILE]   serve until SIGTERM; SIGHUP reads the files again
  parleyd check [--config FILE]   say what is wrong in the configuration
  parleyd version

FILE is ` + defaultConfig + ` by default.
`

// Main runs a command line and returns the exit code.
func Main(args []string, out, errs io.Writer) int {
	name := "help"
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	path := flags.String("config", defaultConfig, "")
	err := flags.Parse(args)
	switch {
	case err != nil:
		err = host.Errorf(host.InvalidArgs, "parleyd %s: %v; expected --config FILE", name, err)
	case flags.NArg() > 0:
		err = host.Errorf(host.InvalidArgs, "parleyd %s: got %q, expected --config FILE", name, flags.Arg(0))
	case name == "serve":
		err = serve(*path, errs)
	case name == "check":
		if err = checkConfig(*path, errs); err == nil {
			fmt.Fprintf(out, "%s is valid\n", *path)
		}
	case name == "version":
		fmt.Fprintln(out, parley.Version)
	case name == "help", name == "-h", name == "--help":
		fmt.Fprint(out, usage)
	default:
		err = host.Errorf(host.InvalidArgs, "unknown command %q; expected serve, check or version", name)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintf(errs, "Error: %v\n", err)
	return host.AsError(err).ExitCode()
}

// serve serves what a configuration says until a signal ends it.
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
	_, err = load(cfg, nil, func(text string) { fmt.Fprintln(errs, "note: "+text) })
	return err
}
