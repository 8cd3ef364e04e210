package wasm

import (
	"errors"
	"fmt"
	"testing"

	"github.com/parley-tools/parley/host"
)

// TestDenialsAreBounded: a call reports each denial once and 100 at most, whether it fails or succeeds.
func TestDenialsAreBounded(t *testing.T) {
	const limit = 100
	for _, tt := range []struct{ different, want int }{{0, 0}, {1, 1}, {limit, limit}, {limit + 1, limit},
		{10 * limit, limit}} {
		h := &hostFunctions{r: &host.Request{}}
		for i := range tt.different {
			for range 2 {
				h.deny(fmt.Sprint("right ", i), "why")
			}
		}
		_, err := h.withDenials(nil, errors.New("failed"))
		if e := host.AsError(err); len(e.Denied) != tt.want {
			t.Errorf("%d denials: the error has %d", tt.different, len(e.Denied))
		}
		result, err := h.withDenials(&host.Result{}, nil)
		if err != nil || len(result.Warnings) != tt.want {
			t.Errorf("%d denials: the result has %d, %v", tt.different, len(result.Warnings), err)
		}
	}
}
