package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// processes lists the processes whose command line or environment names the folder.
func processes(folder string) ([]string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A process that ends meanwhile, or belongs to another user, yields nothing.
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if bytes.Contains(line, []byte(folder)) || bytes.Contains(env, []byte(folder)) {
			name, _, _ := bytes.Cut(line, []byte{0})
			found = append(found, fmt.Sprintf("%d %s", pid, name))
		}
	}
	return found, nil
}
