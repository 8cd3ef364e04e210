package cdp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
)

// TestStatusOfAnotherVersion checks that status does not report a keeper with another wire version as ended.
func TestStatusOfAnotherVersion(t *testing.T) {
	dir := fakeKeeper(t, `{"parley_keeper":2,"version":"0.0.9"}`, nil)
	got, err := New(Config{RunDir: dir}).browsers.status(t.Context(), &host.Request{Job: job.Job{Caller: "cli",
		Params: json.RawMessage("{}")}})
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(got.Warnings, "; "); !strings.Contains(said, "version 0.0.9") ||
		!strings.Contains(said, "replaces it") {
		t.Errorf("warnings %q, browsers %s", said, got.Data)
	}
}
