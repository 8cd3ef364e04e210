package wasm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/wire"
)

// A runner collects no garbage while a caller waits for its first call: with startGCPercent, collection begins at a
// heap of 16 MB. Afterwards residentGCPercent makes it begin at 1 MB, because many runners wait at the same time.
// Their heaps are small, since a guest's memory is not in the heap.
const (
	startGCPercent    = 400
	residentGCPercent = 25
)

// reside opens what a shared runner needs: its socket, its lock file, and notifications of changes of the files that
// it watches. serve then serves the calls.
func reside(s *resident) (serve func(*runner) int, err error) {
	debug.SetGCPercent(startGCPercent)
	changes, err := watchFiles(s.Lock, s.Watch)
	if err != nil {
		return nil, host.Errorf(host.Busy, "the files of the runner cannot be watched: %v", err)
	}
	lock, err := os.Open(s.Lock)
	if err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.Socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err := os.Chmod(s.Socket, 0o600); err != nil {
		return nil, err
	}
	return func(r *runner) int {
		go r.accept(listener)
		r.serveCalls(lock, changes)
		return runnerOK
	}, nil
}

// accept serves connections, each in a goroutine.
func (r *runner) accept(listener *net.UnixListener) {
	for {
		socket, err := listener.AcceptUnix()
		if err != nil {
			time.Sleep(10 * time.Millisecond) // the limit of open descriptors is reached
			continue
		}
		go func() {
			defer socket.Close()
			if _, err := wire.Peer(socket); err != nil {
				return
			}
			h := r.connection(wire.NewConn(bufio.NewReader(socket), socket))
			h.close = func() { _ = socket.Close() }
			if _, err := h.conn.ReceiveHello(); err == nil && h.conn.SendHello(wire.Hello{Host: h.Host}) == nil {
				h.read()
			}
		}()
	}
}

// serveCalls runs calls, one at a time, until the runner ends: when a watched file has changed, when it has not been
// used for a while, when it has become old, or after a call that may have left a changed state.
func (r *runner) serveCalls(lock *os.File, changes <-chan struct{}) {
	started := time.Now()
	for calls := 0; calls < maxRunnerCalls && time.Since(started) < maxRunnerAge; calls++ {
		if calls == 1 {
			debug.SetGCPercent(residentGCPercent)
			debug.FreeOSMemory()
		}
		r.prepare()
		idle := time.NewTimer(r.Resident.Idle)
		for waiting := true; waiting; {
			select {
			case call := <-r.calls:
				if !call.from.run(call.body) {
					return
				}
				waiting = false
				// The caller that waits for the outcome may also wait for this processor, and goes before the next instance.
				_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			case <-changes:
				return
			case <-idle.C:
				// A process that holds the lock is about to call. The kernel releases the lock when that process ends.
				if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
					return
				}
				idle.Reset(time.Second)
			}
		}
		idle.Stop()
	}
}

const (
	removes = unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	changes = removes | unix.IN_CREATE | unix.IN_CLOSE_WRITE | unix.IN_MOVED_TO
)

// watchFiles returns a channel that is closed when kept is removed, or when one of the files, or a folder on the way
// to it, is changed, replaced, created or removed.
func watchFiles(kept string, files []string) (<-chan struct{}, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "inotify")
	names := watchedNames{}
	watch := func(path string, mask uint32) error {
		// If a file does not exist, watch the nearest existing folder for the next element of its path.
		folder, name := filepath.Split(path)
		for folder = filepath.Clean(folder); ; folder, name = filepath.Dir(folder), filepath.Base(folder) {
			id, err := unix.InotifyAddWatch(fd, folder, changes|unix.IN_ONLYDIR)
			switch {
			case err == nil:
				names[watchedName{int32(id), name}] |= mask
				return nil
			case !errors.Is(err, unix.ENOENT) || folder == filepath.Dir(folder):
				return err
			}
		}
	}
	err = watch(kept, removes)
	for _, path := range files {
		err = errors.Join(err, watch(path, changes))
		if target, linkErr := filepath.EvalSymlinks(path); linkErr == nil && target != path {
			err = errors.Join(err, watch(target, changes))
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		buffer := make([]byte, 4096)
		for {
			n, err := file.Read(buffer)
			if err != nil || names.concerned(buffer[:n]) {
				return
			}
		}
	}()
	return changed, nil
}

// watchedNames has the inotify events that matter for each name in a watched folder.
type watchedNames map[watchedName]uint32

type watchedName struct {
	folder int32 // id of the watch
	name   string
}

// concerned reports whether one of the inotify events concerns a watched name, or a watched folder itself.
func (w watchedNames) concerned(events []byte) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		id := int32(binary.NativeEndian.Uint32(events[0:]))
		mask, length := binary.NativeEndian.Uint32(events[4:]), int(binary.NativeEndian.Uint32(events[12:]))
		events = events[unix.SizeofInotifyEvent:]
		if length > len(events) {
			return true
		}
		name := strings.TrimRight(string(events[:length]), "\x00")
		events = events[length:]
		if name == "" || w[watchedName{id, name}]&mask != 0 {
			return true
		}
	}
	return false
}
