package command

import "github.com/parley-tools/parley/host/policy"

// SecretsData are the secrets of the operator, without their values.
type SecretsData struct {
	Secrets []policy.SecretSource `json:"secrets"`
	Total   int                   `json:"total"`
}

// Secrets lists the names of secrets and the sources of their values.
func Secrets(d *Deps) (*SecretsData, error) {
	rules, err := d.Policy()
	if err != nil {
		return nil, err
	}
	sources, err := rules.Secrets()
	if err != nil {
		return nil, err
	}
	return &SecretsData{sources, len(sources)}, nil
}

// SecretData is a secret that was stored.
type SecretData struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"` // size of the value
}

// SetSecret stores the value of a secret and records that in the audit log. The value is in no error.
func SetSecret(d *Deps, name, value string) (*SecretData, error) {
	if err := d.Secrets().Set(name, value); err != nil {
		return nil, err
	}
	d.note("secret", name, "set")
	return &SecretData{name, len(value)}, nil
}

// RemovedSecret is a secret that was removed.
type RemovedSecret struct {
	Name string `json:"name"`
}

// RemoveSecret removes the value of a secret and records that in the audit log. The error is not_found for a secret
// that is not stored.
func RemoveSecret(d *Deps, name string) (*RemovedSecret, error) {
	if err := d.Secrets().Remove(name); err != nil {
		return nil, err
	}
	d.note("secret", name, "removed")
	return &RemovedSecret{name}, nil
}
