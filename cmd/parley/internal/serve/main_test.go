package serve

import (
	"os"
	"testing"

	"github.com/parley-tools/parley"
)

func TestMain(m *testing.M) {
	parley.Child()
	os.Exit(m.Run())
}
