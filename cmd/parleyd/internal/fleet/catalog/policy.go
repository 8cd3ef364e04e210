package catalog

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/policy/operator"
)

const (
	// policyKey is the key of the policy among the lines. No plugin has a name with a dot. Its value is a signature in
	// base64, a line break, and the signed policy.toml of the fronts, which begins with policyMark and the time at which
	// it was published.
	policyKey  = policy.PolicyFile
	policyMark = "# The policy of the fleet. Do not edit it here; parleyd fleet publish --policy FILE replaces it.\n# Of "
	timeFormat = "2006-01-02T15:04:05.000000000Z"
	// policyTime is how long the start of a front waits for the policy.
	policyTime = 5 * time.Second
)

// PublishPolicy signs the policy of a file and makes it that of all fronts that share it. The error is config_error,
// with each fault by its line, if the policy is not valid.
func (c *Catalog) PublishPolicy(ctx context.Context, path string, key nkeys.KeyPair) error {
	text, exists, err := operator.File{Path: path}.Read()
	if err == nil && !exists {
		err = host.Errorf(host.ConfigError, "%s does not exist; nothing was published", path)
	}
	if err == nil {
		err = policy.Check(path, text)
	}
	if err != nil {
		return err
	}
	return failed(c.putPolicy(ctx, text, key), "publish "+path)
}

func (c *Catalog) putPolicy(ctx context.Context, text []byte, key nkeys.KeyPair) error {
	lines, err := c.js.KeyValue(ctx, Lines)
	if err != nil {
		return err
	}
	at := time.Now().UTC().Format(timeFormat)
	if old, err := lines.Get(ctx, policyKey); err == nil { // by a clock that may be ahead of this one
		_, signed, _ := strings.Cut(string(old.Value()), "\n")
		if before, err := time.Parse(timeFormat, publishedAt(signed)); err == nil {
			at = max(at, before.Add(1).Format(timeFormat))
		}
	}
	signed := fmt.Appendf(nil, "%s%s\n\n%s", policyMark, at, text)
	signature, err := key.Sign(signed)
	if err == nil {
		_, err = lines.Put(ctx, policyKey, fmt.Appendf(nil, "%s\n%s", base64.StdEncoding.EncodeToString(signature), signed))
	}
	return err
}

// publishedAt returns when a policy.toml of the fleet was published, in timeFormat; "" for one of another origin.
func publishedAt(text string) string {
	rest, is := strings.CutPrefix(text, policyMark)
	if !is {
		return ""
	}
	at, _, _ := strings.Cut(rest, "\n")
	return at
}

// SharePolicy keeps policy.toml in a folder as the operator with a public key publishes it, from now on and while the
// mirror runs. Where none can be received or used, the one that was received before applies. Without that, the error
// says why, such as config_error for a policy.toml of the folder's own, and unavailable without the fleet.
func (m *Mirror) SharePolicy(conn *nats.Conn, key, dir string) error {
	m.policy, m.operator = operator.File{Path: filepath.Join(dir, policy.PolicyFile)}, key
	value, err := receivePolicy(conn)
	if err == nil {
		err = m.keepPolicy(value)
	}
	if err == nil {
		return nil
	}
	if old, _, _ := m.policy.Read(); publishedAt(string(old)) == "" {
		return err
	}
	m.log("the fleet's earlier policy stays in force: %v", err)
	return nil
}

// receivePolicy returns the policy that is published. It waits for the server.
func receivePolicy(conn *nats.Conn) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), policyTime)
	defer cancel()
	fleet, err := Of(conn)
	for err == nil {
		var lines jetstream.KeyValue
		var line jetstream.KeyValueEntry
		if lines, err = fleet.js.KeyValue(ctx, Lines); err == nil {
			line, err = lines.Get(ctx, policyKey)
		}
		switch {
		case err == nil:
			return line.Value(), nil
		case errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrBucketNotFound):
			return nil, host.Errorf(host.Unavailable, "the fleet has no policy, and fleet.policy requires one; publish it with "+
				"parleyd fleet publish --policy FILE")
		case ctx.Err() == nil:
			time.Sleep(10 * time.Millisecond)
			err = nil
		}
	}
	return nil, failed(err, "fetch the policy of the fleet")
}

// keepPolicy replaces policy.toml by a published one, if that is signed, newer, and valid here.
func (m *Mirror) keepPolicy(value []byte) error {
	encoded, next, _ := strings.Cut(string(value), "\n")
	signature, err := base64.StdEncoding.DecodeString(encoded)
	key, errKey := nkeys.FromPublicKey(m.operator)
	if err = errors.Join(err, errKey); err == nil {
		err = key.Verify([]byte(next), signature)
	}
	if err != nil {
		return host.Errorf(host.Integrity, "the fleet's policy is not signed by %s, the key in fleet.policy",
			m.operator)
	}
	old, exists, err := m.policy.Read()
	before, at := publishedAt(string(old)), publishedAt(next)
	switch {
	case err != nil:
		return err
	case exists && before == "":
		return host.Errorf(host.ConfigError, "%s is not the fleet's policy, which fleet.policy requires; publish it "+
			"with parleyd fleet publish --policy FILE, and move it away", m.policy.Path)
	case string(old) == next:
		return nil
	case at <= before:
		return host.Errorf(host.Integrity, "the fleet's policy is from %s, but the one here is from %s", at, before)
	}
	if err := policy.Check(m.policy.Path, []byte(next)); err != nil {
		return err
	}
	if err := m.policy.Replace(string(old), next); err != nil {
		return err
	}
	m.log("%s is now the fleet's policy from %s", m.policy.Path, at)
	return nil
}

// applyPolicy takes a change of the policy. One that is withdrawn stays in force: without it, other rights would apply.
func (m *Mirror) applyPolicy(change jetstream.KeyValueEntry) {
	if m.operator == "" || change.Operation() != jetstream.KeyValuePut {
		return
	}
	if err := m.keepPolicy(change.Value()); err != nil {
		m.log("the fleet's new policy is not used, the earlier one stays in force: %v", err)
	}
}
