// Package fleet runs calls of plugins on other machines, over NATS.
//
// A front ([Front]) keeps policy, secrets, requests and records. A worker ([Worker]) runs guests. For a call the front
// offers what the worker must know: the plugin's digest, the pool, the time that is left. The worker reserves a slot
// and accepts, or is busy. The call then goes to that worker alone, as the frames of package wire in counted messages;
// what the guest asks comes back the same way. A call without a slot waits in its front's line until a worker
// announces that it has one.
//
// A front asks each worker that runs its calls for a sign of life, a worker ends the calls of a front that does not ask
// any more, and whoever loses the connection to the server ends all that went over it.
package fleet

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp/access"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
)

// Config says how a process of a fleet reaches the server.
type Config struct {
	// URL is the address of the server, such as tls://nats.internal:4222; several are separated by commas. Without one
	// there is no fleet.
	URL string `toml:"url"`
	// Name is the name of the front or worker, one word. Empty means the name of the machine.
	Name string `toml:"name"`
	// Key is the file of the seed of its key.
	Key string `toml:"key"`
	// CA is the file of the certificates that sign the server's, in PEM. Empty means those of the system.
	CA string `toml:"ca"`
	// Policy is the public key of the operator whose policy a front has. Empty means that it has one of its own.
	Policy string `toml:"policy"`
	// Records is "required" if a call waits until its records are in the stream, and does not run otherwise. Empty means
	// that they are copied later.
	Records string `toml:"records"`
	// Monitor is the address at which the server says how it keeps records, such as http://127.0.0.1:8222; several are
	// separated by commas.
	Monitor string `toml:"monitor"`

	clock func() time.Time // checks the validity of certificates; set only in tests
}

// RecordsRequired is the other value of [Config.Records].
const RecordsRequired = "required"

// Check completes a configuration and reports the faults of its values.
func (c *Config) Check(expected func(key, given, expected string)) {
	if c.URL == "" {
		return
	}
	for url := range strings.SplitSeq(c.URL, ",") {
		if !strings.HasPrefix(url, "tls://") && !strings.HasPrefix(url, "nats://") {
			expected("fleet.url", url, "tls://HOST:PORT, or nats://HOST:PORT where nobody can read along")
		}
	}
	if c.Name == "" {
		name, _ := os.Hostname()
		c.Name, _, _ = strings.Cut(name, ".")
	}
	if c.Records != "" && c.Records != RecordsRequired {
		expected("fleet.records", c.Records, RecordsRequired+" or nothing")
	}
	if c.Policy != "" && !nkeys.IsValidPublicUserKey(c.Policy) {
		expected("fleet.policy", c.Policy, "the public key of an operator, which fleet.json of parleyd fleet init has")
	}
	if !isWord(c.Name) {
		expected("fleet.name", c.Name, "a name of letters, digits, - and _")
	}
}

// isWord reports whether a name can be a part of a subject.
func isWord(name string) bool {
	return len(name) <= 64 && access.IsName(name) && !strings.Contains(name, ".")
}

// subjects of a fleet. The first word after the prefix is the version of what is said under them.
//
// Whoever may read a stream can have the server send what it reads to any subject. Such a message does not ask for a
// reply at a subject of a front or operator, whose keys alone may do so. Workers obey only messages that do.
const (
	prefix          = "parley.v1."
	offerSubject    = prefix + "offer."  // and a pool: offers, to one worker of the queue group
	poolSubject     = prefix + "pool."   // and a pool and the name of a worker: what that announces
	workersSubject  = prefix + "workers" // who is there: workers announce themselves, or reply
	workerSubject   = prefix + "worker." // and the address of a worker
	frontSubject    = prefix + "front."  // and the name of a front
	operatorReplies = prefix + "operator.reply."

	workerGroup = "workers"
)

// How long what takes. Tests shorten some of it.
var (
	offerPatience = 500 * time.Millisecond  // of a front, for the reply to an offer
	reservation   = time.Second             // of a slot, for the call
	beginPatience = 2 * time.Second         // of a front, for the first message of a call
	pingEvery     = 250 * time.Millisecond  // of a front, to each worker that runs its calls
	signPatience  = 2500 * time.Millisecond // of a front or a worker, for a sign of life of the other
	suspicion     = 5 * time.Second         // after which a front offers again to a worker that was silent
	askEvery      = 5 * time.Second         // of the first call of a queue: who is there? A worker may go without a word
	patience      = 5 * time.Second         // of a call, for the server, or for the first worker of a pool
	serverPing    = 2 * time.Second         // to the server; three that it does not answer end the connection
)

// expectedKey is what a process expects that the fleet refuses.
const expectedKey = "expected fleet.key and fleet.name as parleyd fleet init wrote them for a machine of this role"

// connect connects to the server, now or as soon as it is there. who is a part of the subjects of replies. lost is
// called when the connection is lost, found when it is there again, and closed when the server refuses the key for
// good. The error is config_error for a file, and unavailable for the server, with options that do not wait for it.
func (c *Config) connect(who string, log *slog.Logger, lost func(), found nats.ConnHandler, closed func(),
	more ...nats.Option) (*nats.Conn, error) {
	var refused error
	options := []nats.Option{
		nats.Name("parleyd " + who), nats.CustomInboxPrefix(prefix + who + ".reply"),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond),
		nats.PingInterval(serverPing), nats.MaxPingsOutstanding(3), // a network that drops packets ends no connection
		nats.ReconnectBufSize(-1), // what was not sent is not sent later either
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // else this process has closed it
				log.Warn("the connection to the fleet is lost", "error", err)
			}
			lost()
		}),
		nats.ReconnectHandler(found), nats.ConnectHandler(found),
		nats.ClosedHandler(func(conn *nats.Conn) {
			if err := cmp.Or(refused, conn.LastError()); err != nil {
				log.Error("the fleet refuses this process; "+expectedKey, "error", err)
			}
			closed()
		}),
		nats.ErrorHandler(func(conn *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), "Subscription") {
				refused = err
				conn.Close() // it would hear nothing: its key is not for this name or role
				return
			}
			log.Warn("fleet", "error", err)
		}),
	}
	if c.Key != "" {
		key, err := c.ReadKey()
		if err != nil {
			return nil, err
		}
		public, err := key.PublicKey()
		if err != nil {
			return nil, err
		}
		options = append(options, nats.Nkey(public, key.Sign))
	}
	if c.CA != "" {
		text, err := protect.Read(c.CA, protect.MaxConfig)
		roots := x509.NewCertPool()
		if err == nil && !roots.AppendCertsFromPEM(text) {
			err = fmt.Errorf("%s has no certificate in PEM", c.CA)
		}
		if err != nil {
			return nil, host.Errorf(host.ConfigError, "cannot read fleet.ca: %s", manifest.CleanLine(err.Error()))
		}
		options = append(options, nats.Secure(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, Time: c.clock}))
	}
	conn, err := nats.Connect(c.URL, append(options, more...)...)
	if err != nil {
		return nil, host.Errorf(host.Unavailable, "cannot connect to %s: %v; expected fleet.url to be that of a running "+
			"nats-server", manifest.CleanLine(c.URL), err)
	}
	return conn, nil
}

// ReadKey reads the key of the process.
func (c *Config) ReadKey() (nkeys.KeyPair, error) {
	text, err := protect.Read(c.Key, protect.MaxConfig)
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "cannot read fleet.key: %s", manifest.CleanLine(err.Error()))
	}
	key, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(text))))
	if err != nil {
		return nil, host.Errorf(host.ConfigError, "fleet.key: %s has no seed of a key; parleyd fleet init writes one", c.Key)
	}
	return key, nil
}
