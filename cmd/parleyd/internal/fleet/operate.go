package fleet

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/catalog"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Operator is a person's connection to a fleet, and to what is published in it.
type Operator struct {
	*catalog.Catalog
	*Config
	conn *nats.Conn
}

// IsOperators reports whether the configuration belongs to an operator, by the name that parleyd fleet init gives it,
// or to a fleet without keys. With the configuration of a front, a person can only ask for information.
func (c *Config) IsOperators() bool { return c.Key == "" || c.Name == "operator" }

// Operator connects a person, as an operator or a front. The error is unavailable if the server is not there.
func (c *Config) Operator() (*Operator, error) {
	nobody, who := func() {}, "operator"
	if !c.IsOperators() {
		who = "front." + c.Name
	}
	conn, err := c.connect(who, slog.New(slog.DiscardHandler), nobody, nil, nobody, nats.RetryOnFailedConnect(false))
	if err != nil {
		return nil, err
	}
	published, err := catalog.Of(conn)
	return &Operator{published, c, conn}, err
}

// Expires returns when the first certificate of the server or its authority expires; zero without TLS.
func (o *Operator) Expires() (first time.Time) {
	state, _ := o.conn.TLSConnectionState()
	for _, c := range slices.Concat(state.VerifiedChains...) {
		if first.IsZero() || c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	return first
}

// Close ends the connection.
func (o *Operator) Close() { o.conn.Close() }

// listening is how long an operator waits for workers to say that they are there.
const listening = 500 * time.Millisecond

// Workers returns who is there, by pool and name.
func (o *Operator) Workers(ctx context.Context) ([]Status, error) {
	all, err := o.ask(ctx, workersSubject)
	slices.SortFunc(all, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.address(), b.address()))
	})
	return all, err
}

// Drain has a worker end once its calls are done, and returns it; several processes of one name all do. The error is
// not_found if there is none.
func (o *Operator) Drain(ctx context.Context, worker string) ([]Status, error) {
	if !isWord(worker) {
		return nil, host.Errorf(host.InvalidArgs, "%q is not the name of a worker; parleyd fleet status lists them",
			manifest.CleanLine(worker))
	}
	all, err := o.ask(ctx, workerSubject+worker+".drain")
	if err == nil && len(all) == 0 {
		err = host.Errorf(host.NotFound, "there is no worker %s; parleyd fleet status lists them", worker)
	}
	return all, err
}

// ask publishes a question, and returns the answers of all who answer in time.
func (o *Operator) ask(ctx context.Context, subject string) (all []Status, err error) {
	inbox := o.conn.NewInbox()
	answers, err := o.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answers.Unsubscribe() }()
	if err := o.conn.PublishRequest(subject, inbox, nil); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listening)
	defer cancel()
	for {
		m, err := answers.NextMsgWithContext(ctx)
		if refused := o.conn.LastError(); errors.Is(refused, nats.ErrPermissionViolation) {
			return nil, host.Errorf(host.ConfigError, "the key of %s may not ask; expected an operator or a front", o.Name)
		}
		if err != nil || isNobody(m) {
			return all, nil
		}
		if s, ok := decode[Status](m); ok && isAddress(&s) {
			all = append(all, s)
		}
	}
}
