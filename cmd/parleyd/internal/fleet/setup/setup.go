// Package setup makes what a fleet starts from: keys, accounts with narrow permissions, certificates, the
// configuration of nats-server.
package setup

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"
	"github.com/pelletier/go-toml/v2"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/durable"
	"github.com/parley-tools/parley/internal/lazy"
)

// Usage describes [Init].
const Usage = `parleyd fleet init DIR [--host NAME].. [--account NAME].. [--front NAME].. [--worker NAME].. [--revoke NAME]..
  [--storage SIZE].. [--remove NAME].. [--renew]

It writes to DIR a folder for the server of NATS and one for each machine. Run it again to add or revoke names; the rest
stays as it is. An account is a tenant: other accounts cannot reach it or read its messages.

  --host NAME      a name or IP address by which machines reach the server; the first run requires one
  --account NAME   the account of the names that follow; "parley" before the first one
  --front NAME     a machine that runs parleyd serve
  --worker NAME    a machine that runs parleyd worker
  --revoke NAME    a front or worker that may no longer connect; "operator" gets a new key at once
  --storage SIZE   how much the account may store, such as 20GB, which the server reserves for it; default: no limit
  --remove NAME    an account that may no longer connect, with all of its names
  --renew          make new certificates; machines with the old ones accept them
`

const (
	defaultAccount = "parley"
	// serverDir is the folder in DIR for the server, and no name of an account.
	serverDir = "server"
	// machineDir is where fronts and workers keep the folder that was made for them.
	machineDir = "/etc/parley/fleet"
	port       = "4222"
)

// fleet is what fleet.json has, from which the configuration of the server is made. It has no secret.
type fleet struct {
	Hosts    []string                      `json:"hosts"`
	Accounts map[string]map[string]*member `json:"accounts"`          // by the names of accounts, then of members
	Storage  map[string]string             `json:"storage,omitempty"` // of accounts that have a limit

	dir          string
	newHosts     bool
	renew        bool
	revoked      []string // folders
	newAuthority bool
	out          io.Writer
	changed      bool
}

type member struct {
	Role role   `json:"role"`
	Key  string `json:"key"` // the public one

	account, name string
	seed          []byte // of a new key
}

// Init runs a command line as [Usage] describes it, and prints what it wrote and what to do next.
func Init(args []string, out io.Writer) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return host.Errorf(host.InvalidArgs, "parleyd fleet init: no folder is given; expected DIR first\n%s", Usage)
	}
	f, err := read(args[0], out)
	if err != nil {
		return host.Errorf(host.ConfigError, "%v; expected what parleyd fleet init wrote", err)
	}
	isNew := len(f.Hosts) == 0
	if err := f.parse(args[1:]); err != nil {
		return host.Errorf(host.InvalidArgs, "parleyd fleet init: %v\n%s", err, Usage)
	}
	if err := f.write(); err != nil {
		return host.Errorf(host.ConfigError, "%v", err)
	}
	f.next(isNew)
	return nil
}

// read returns the fleet of a folder, which may have none yet.
func read(dir string, out io.Writer) (*fleet, error) {
	dir, err := filepath.Abs(dir)
	f := &fleet{Accounts: map[string]map[string]*member{}, Storage: map[string]string{}, dir: dir, out: out}
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "fleet.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	} else if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.Accounts == nil {
		return nil, fmt.Errorf("%s has no accounts", path)
	}
	for account, members := range f.Accounts {
		for name, m := range members {
			isNamed := isName().MatchString(account) && isName().MatchString(name)
			if !isNamed || m == nil || !nkeys.IsValidPublicUserKey(m.Key) {
				return nil, fmt.Errorf("%s: the member %q of the account %q is not valid", path, name, account)
			}
		}
	}
	return f, nil
}

// parse applies options in their order.
func (f *fleet) parse(args []string) error {
	account := ""
	flags := flag.NewFlagSet("init", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("host", "", f.addHost)
	flags.Func("account", "", func(name string) error {
		account = name
		return f.add(account, string(operator), operator)
	})
	for _, r := range []role{front, worker} {
		flags.Func(string(r), "", func(name string) error {
			account = cmp.Or(account, defaultAccount)
			return errors.Join(f.add(account, string(operator), operator), f.add(account, name, r))
		})
	}
	flags.Func("revoke", "", func(name string) error { return f.revoke(cmp.Or(account, defaultAccount), name) })
	flags.Func("storage", "", func(size string) error { return f.limit(cmp.Or(account, defaultAccount), size) })
	flags.Func("remove", "", f.remove)
	flags.BoolVar(&f.renew, "renew", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected %q", flags.Arg(0))
	case len(f.Hosts) == 0:
		return fmt.Errorf("%s has no fleet yet; expected --host with a name or IP address of its server", f.dir)
	case len(f.Accounts) == 0:
		return f.add(defaultAccount, string(operator), operator)
	}
	return nil
}

var (
	isSize = lazy.Pattern(`^[1-9][0-9]{0,5}[MGT]B$`)
	isHost = lazy.Pattern(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)
	isName = lazy.Pattern(`^[a-z0-9][a-z0-9_-]{0,62}$`) // a part of a subject, and a folder
)

func (f *fleet) addHost(name string) error {
	if net.ParseIP(name) == nil && !isHost().MatchString(name) {
		return errors.New("expected the name or IP address of a machine, without a port")
	}
	if !slices.Contains(f.Hosts, name) {
		f.Hosts, f.newHosts = append(f.Hosts, name), true
	}
	return nil
}

// add adds a member with a new key, unless it was there before.
func (f *fleet) add(account, name string, r role) error {
	if !isName().MatchString(account) || account == serverDir || !isName().MatchString(name) {
		return errors.New("expected a name of at most 63 of a-z, 0-9, - and _ that begins with a letter or digit")
	}
	old := f.Accounts[account][name]
	switch {
	case old == nil:
	case old.Role != r:
		return fmt.Errorf("the account %s has the %s %s; expected another name", account, old.Role, name)
	case old.seed != nil && r != operator:
		return errors.New("it is given twice; expected another name for each machine")
	default:
		return nil
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	seed, errSeed := pair.Seed()
	key, errKey := pair.PublicKey()
	if f.Accounts[account] == nil {
		f.Accounts[account] = map[string]*member{}
	}
	f.Accounts[account][name] = &member{Role: r, Key: key, seed: seed}
	return errors.Join(errSeed, errKey)
}

func (f *fleet) revoke(account, name string) error {
	old := f.Accounts[account][name]
	if old == nil || old.seed != nil {
		return fmt.Errorf("the account %s has no such name; expected one of %s", account,
			strings.Join(slices.Sorted(maps.Keys(f.Accounts[account])), ", "))
	}
	delete(f.Accounts[account], name)
	f.revoked = append(f.revoked, filepath.Join(account, name))
	if old.Role == operator {
		return f.add(account, name, operator)
	}
	return nil
}

// limit sets how much an account may store.
func (f *fleet) limit(account, size string) error {
	if !isSize().MatchString(size) {
		return errors.New("expected a size in MB, GB or TB, such as 20GB")
	}
	f.changed = f.changed || f.Storage[account] != size
	f.Storage[account] = size
	return f.add(account, string(operator), operator)
}

// remove removes an account.
func (f *fleet) remove(account string) error {
	if f.Accounts[account] == nil {
		return fmt.Errorf("there is no such account; expected one of %s",
			strings.Join(slices.Sorted(maps.Keys(f.Accounts)), ", "))
	}
	delete(f.Accounts, account)
	delete(f.Storage, account)
	f.revoked = append(f.revoked, account)
	return nil
}

// write writes what is new: certificates, a folder for each machine, and the files of the server.
func (f *fleet) write() error {
	if err := errors.Join(os.MkdirAll(filepath.Join(f.dir, serverDir), 0o700), f.certificates()); err != nil {
		return err
	}
	for _, folder := range f.revoked {
		if err := os.RemoveAll(filepath.Join(f.dir, folder)); err != nil {
			return err
		}
		f.say(folder, "revoked and removed")
	}
	authority, err := os.ReadFile(filepath.Join(f.dir, "ca.pem"))
	if err != nil {
		return err
	}
	for _, m := range f.members() {
		if m.seed != nil {
			err = f.writeMember(m, authority)
		} else if f.newAuthority {
			err = f.put(filepath.Join(m.account, m.name, "ca.pem"), authority)
		}
		if err != nil {
			return err
		}
	}
	state, err := json.MarshalIndent(f, "", "  ")
	err = errors.Join(err, f.put("fleet.json", append(state, '\n')), f.put(serverDir+"/accounts.conf", f.accounts()))
	if f.changed && err == nil {
		f.say(serverDir, "the files of the server; accounts.conf says who may connect, and to what")
	}
	if _, missing := os.Stat(filepath.Join(f.dir, serverDir, "nats-server.conf")); missing == nil || err != nil {
		return err
	}
	return f.put(serverDir+"/nats-server.conf", []byte(serverConf))
}

// members returns all members, in order.
func (f *fleet) members() (all []*member) {
	for _, account := range slices.Sorted(maps.Keys(f.Accounts)) {
		for _, name := range slices.Sorted(maps.Keys(f.Accounts[account])) {
			m := f.Accounts[account][name]
			m.account, m.name = account, name
			all = append(all, m)
		}
	}
	return all
}

// writeMember writes a folder with all that the machine of a member requires.
func (f *fleet) writeMember(m *member, authority []byte) error {
	var urls []string
	for _, name := range f.Hosts {
		urls = append(urls, "tls://"+net.JoinHostPort(name, port))
	}
	folder := filepath.Join(m.account, m.name)
	there := machineDir
	if m.Role == operator {
		there = filepath.Join(f.dir, folder)
	}
	config, err := toml.Marshal(map[string]map[string]string{"fleet": {
		"url": strings.Join(urls, ","), "name": m.name, "key": there + "/" + m.name + ".nk", "ca": there + "/ca.pem",
	}})
	if m.Role == front {
		config = fmt.Appendf(config, "# policy = %q # to have the policy that the operator publishes\n",
			f.Accounts[m.account][string(operator)].Key)
	}
	err = errors.Join(err, os.MkdirAll(filepath.Join(f.dir, folder), 0o700),
		f.put(filepath.Join(folder, m.name+".nk"), append(m.seed, '\n')), f.put(filepath.Join(folder, "ca.pem"), authority),
		f.put(filepath.Join(folder, "fleet.toml"), config))
	f.say(folder, "key and configuration of the "+string(m.Role))
	return err
}

// put replaces a file, which only this user can read then.
func (f *fleet) put(name string, data []byte) error {
	return durable.Write(filepath.Join(f.dir, name), data)
}

func (f *fleet) say(name, what string) {
	f.changed = true
	fmt.Fprintf(f.out, "%s: %s\n", filepath.Join(f.dir, name), what)
}

// next prints what to do after a run.
func (f *fleet) next(isNew bool) {
	if !f.changed {
		fmt.Fprintf(f.out, "%s has all of this already; nothing was written\n", f.dir)
		return
	}
	fmt.Fprintln(f.out, "\nNext:")
	start, server := map[bool]string{true: "start", false: "reload"}[isNew], filepath.Join(f.dir, serverDir)
	fmt.Fprintf(f.out, "- Copy %s to /etc/nats of the server, and systemctl %s nats-server.\n", server, start)
	if !isNew && f.newAuthority {
		fmt.Fprintf(f.out, "- Copy %s/ca.pem to %s of each machine that has the old one, and restart its parleyd.\n", f.dir,
			machineDir)
	}
	for _, m := range f.members() {
		folder := filepath.Join(f.dir, m.account, m.name)
		switch {
		case m.seed == nil:
		case m.Role == operator:
			fmt.Fprintf(f.out, "- Commands of an operator take --config %s/fleet.toml.\n", folder)
		case m.Role == front:
			fmt.Fprintf(f.out, "- Copy %s to %s of its machine, append its fleet.toml to /etc/parley/parleyd.toml there, and "+
				"systemctl restart parleyd.\n", folder, machineDir)
		default:
			fmt.Fprintf(f.out, "- Copy %s to %s of its machine, and systemctl start parleyd-worker.\n", folder, machineDir)
		}
	}
}
