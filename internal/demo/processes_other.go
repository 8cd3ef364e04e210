//go:build !linux

package main

import (
	"os/exec"
	"runtime"
	"strings"
)

// processes lists those whose command line names the folder, as far as ps can tell; Windows has none.
func processes(folder string) ([]string, error) {
	if runtime.GOOS == "windows" {
		return nil, nil
	}
	out, err := exec.Command("ps", "-A", "-o", "pid=,command=").Output()
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, folder) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found, nil
}
