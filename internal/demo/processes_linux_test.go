package main

import (
	"context"
	"os"
	"os/exec"
	"testing"
)

// TestProcesses checks that a running process is found.
func TestProcesses(t *testing.T) {
	folder := t.TempDir()
	if found, err := processes(folder); err != nil || len(found) != 0 {
		t.Fatalf("found %v, %v; want none", found, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stays := exec.CommandContext(ctx, "sleep", "600")
	stays.Env = append(os.Environ(), "PARLEY_HOME="+folder)
	if err := stays.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = stays.Wait() }()
	if found, err := processes(folder); err != nil || len(found) != 1 {
		t.Errorf("found %v, %v; want one", found, err)
	}
}
