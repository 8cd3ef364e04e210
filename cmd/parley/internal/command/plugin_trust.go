package command

import (
	"context"
	"strings"

	"github.com/parley-tools/parley/host/signature"
)

// TrustedKey is a key that the operator trusts.
type TrustedKey struct {
	Key  signature.Key `json:"key"`
	ID   string        `json:"id"`
	Name string        `json:"name,omitempty"` // the operator's name for the key
}

// String returns the key with its name.
func (k TrustedKey) String() string { return strings.TrimSpace(string(k.Key) + " " + k.Name) }

func trustedKey(k signature.TrustedKey) TrustedKey { return TrustedKey{k.Key, k.ID, k.Name} }

// TrustedKeysData are the trusted keys.
type TrustedKeysData struct {
	File  string       `json:"file"`
	Keys  []TrustedKey `json:"keys"`
	Total int          `json:"total"`
}

// TrustedKeys lists the keys that the operator trusts.
func TrustedKeys(d *Deps) (*TrustedKeysData, error) {
	trust := d.Parley().Trust()
	keys, err := trust.Keys()
	if err != nil {
		return nil, err
	}
	data := &TrustedKeysData{File: trust.Path, Keys: []TrustedKey{}, Total: len(keys)}
	for _, k := range keys {
		data.Keys = append(data.Keys, trustedKey(k))
	}
	return data, nil
}

// TrustOptions say which key to trust, or no longer to trust.
type TrustOptions struct {
	// Key is the public key or its file. For [Untrust] it is the key or its name.
	Key string
	// Name is the operator's name for the key; it may be "". [Untrust] ignores it.
	Name string
	// Yes approves the change without asking, if the policy allows it.
	Yes bool
}

// TrustData is a change of the list of trusted keys.
type TrustData struct {
	File    string `json:"file"`
	Removed bool   `json:"removed"` // false: added
	TrustedKey
	Plugins []string `json:"plugins"` // installed plugins that are signed with the key
}

// Trust adds a key to the list of trusted keys, once the operator has approved. The error is denied if the operator has
// not, and then nothing has changed.
func Trust(ctx context.Context, d *Deps, o TrustOptions) (*TrustData, error) {
	key, err := d.readPublicKey(o.Key)
	if err != nil {
		return nil, err
	}
	return d.changeTrust(ctx, o.Yes, func(t *signature.Trust) (signature.Change, error) { return t.Add(key, o.Name) })
}

// Untrust removes a key from the list of trusted keys, once the operator has approved. The errors are those of [Trust].
func Untrust(ctx context.Context, d *Deps, o TrustOptions) (*TrustData, error) {
	return d.changeTrust(ctx, o.Yes, func(t *signature.Trust) (signature.Change, error) { return t.Remove(o.Key) })
}

func (d *Deps) changeTrust(
	ctx context.Context, yes bool, prepare func(*signature.Trust) (signature.Change, error),
) (*TrustData, error) {
	rules, err := d.Policy()
	if err != nil {
		return nil, err
	}
	trust := d.Parley().Trust()
	change, err := prepare(trust)
	if err != nil {
		return nil, err
	}
	signed, err := d.signedWith(change.Entry.Key)
	if err != nil {
		return nil, err
	}
	diff := change.Diff()
	if !change.Removed {
		diff += "note: compare the key with the one that its owner publishes; anybody can make a key\n"
	}
	if len(signed) > 0 {
		diff += "note: installed plugins that are signed with it: " + strings.Join(signed, ", ") + "\n"
	}
	if err := d.approve(ctx, rules, Change{Diff: diff}, yes); err != nil {
		return nil, err
	}
	if err := trust.Write(change); err != nil {
		return nil, err
	}
	did := "added"
	if change.Removed {
		did = "removed"
	}
	d.note("trust", change.Entry.String(), did)
	return &TrustData{change.Path, change.Removed, trustedKey(change.Entry), signed}, nil
}

// signedWith returns the installed plugins that, by the lock file, are signed with a key. It is not nil.
func (d *Deps) signedWith(key signature.Key) ([]string, error) {
	entries, err := d.Store().List()
	names := []string{}
	for _, e := range entries {
		if e.Signer == string(key) {
			names = append(names, e.Name)
		}
	}
	return names, err
}
