package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// side is a command line and how it is run.
type side struct {
	binary string
	env    []string
	folder string
}

// run is what a whole process took. CPU is that of the process and of those that it started and waited for.
type run struct {
	wall, cpu time.Duration
	text      string
}

// must runs a command that has to succeed. Its output goes to a file, because a daemon that it starts would keep a
// pipe open.
func (s side) must(args ...string) (r run, err error) {
	out, err := os.CreateTemp(s.folder, "output-")
	if err != nil {
		return r, err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd := exec.Command(s.binary, args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = s.env, s.folder, out, out
	start := time.Now()
	err = cmd.Run()
	r.wall = time.Since(start)
	if cmd.ProcessState != nil {
		r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	text, readErr := os.ReadFile(out.Name())
	r.text = string(text)
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", filepath.Base(s.binary), strings.Join(args, " "), err, text)
	}
	return r, errors.Join(err, readErr)
}

// processTime returns the processor time of the threads of a process that run.
func processTime(pid int) (sum time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, path := range threads {
		text, _ := os.ReadFile(path)
		first, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseInt(first, 10, 64)
		sum += time.Duration(ns)
	}
	return sum
}

// process is a row of the table of processes.
type process struct {
	pid, parent int
	command     string
}

func processes() (all []process) {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		open, end := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
		if err != nil || open < 0 || end < open {
			continue // it has ended
		}
		var p process
		var state string
		p.pid, _ = strconv.Atoi(strings.TrimSpace(string(text[:open])))
		if _, err := fmt.Sscan(string(text[end+1:]), &state, &p.parent); err != nil || state == "Z" {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		p.command = strings.ReplaceAll(string(line), "\x00", " ")
		all = append(all, p)
	}
	return all
}

// below returns the processes that a process started, and those that these started.
func below(pid int) (found []process) {
	all := processes()
	for wanted := []int{pid}; len(wanted) > 0; wanted = wanted[1:] {
		for _, p := range all {
			if p.parent == wanted[0] {
				found, wanted = append(found, p), append(wanted, p.pid)
			}
		}
	}
	return found
}

// memory returns the memory of a process in MB. Pages that it shares with others count in proportion.
func memory(pid int) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	_, after, _ := strings.Cut(string(text), "\nPss:")
	var kb float64
	_, _ = fmt.Sscan(after, &kb)
	return kb / 1000
}
