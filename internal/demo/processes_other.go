//go:build !linux

package main

import (
	"os/exec"
	"runtime"
	"strings"
)

// processes lists the processes whose command line, as ps prints it, names the folder. On Windows it finds none.
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
