package host

import (
	"context"
)

// Secrets returns the values of the operator's secrets. The error never contains any part of a value.
type Secrets interface {
	Secret(ctx context.Context, name string) (string, error)
}

// MinHeldSecret is the minimum size in bytes of a secret that is redacted from records of calls that do not use it.
const MinHeldSecret = 8
