package main

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
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
	// Start returns a moment before the kernel shows the environment of the new program.
	found, err := processes(folder)
	for end := time.Now().Add(time.Minute); err == nil && len(found) == 0 && time.Now().Before(end); {
		found, err = processes(folder)
	}
	if err != nil || len(found) != 1 {
		t.Errorf("found %v, %v; want one", found, err)
	}
}
