package setup

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// The buckets and the stream of each account.
const (
	// Code is the object store of artifacts, by digest.
	Code = "parley_code"
	// Catalog is the key-value bucket with a line for each published plugin.
	Catalog = "parley_catalog"
	// Records is the stream of what fronts record, on the subject parley.v1.record.FRONT.
	Records = "parley_records"
)

// Provision makes the buckets and the stream of an account where they are missing. It leaves those that exist as they
// are, since an operator may have given them other limits. Only the key of the operator may do so.
func Provision(ctx context.Context, js jetstream.JetStream) error {
	_, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: Code, Description: "artifacts of plugins"})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return fmt.Errorf("make the object store %s: %w", Code, err)
	}
	_, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: Catalog, Description: "published plugins"})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return fmt.Errorf("make the bucket %s: %w", Catalog, err)
	}
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{
		Name: Records, Description: "records of calls", Subjects: []string{"parley.v1.record.*"},
		AllowDirect: true,
		Discard:     jetstream.DiscardNew, // a full stream refuses records and keeps those that it has
		DenyDelete:  true, DenyPurge: true,
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return fmt.Errorf("make the stream %s: %w", Records, err)
	}
	return nil
}
