package session

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
)

// StoredSession is what is stored of a session.
type StoredSession struct {
	Session host.Session // Owner, Name and Within
	Used    time.Time
	Shown   []ShownTool
	Results []StoredResult // the latest one first
}

// ShownTool is a tool, and the tiers of its documentation that a session has been shown.
type ShownTool struct {
	Tool  string `json:"tool"`
	Tiers []int  `json:"tiers"`
}

// StoredResult is what is stored of the result of a call; see [ResultFile].
type StoredResult struct {
	CallID string    `json:"call_id"`
	Bytes  int64     `json:"bytes"` // of all its files
	Time   time.Time `json:"time"`
}

// List returns the stored sessions, the last used one first. Results of calls without a session belong to the zero
// [Session].
func (s *Store) List() []StoredSession {
	if s == nil || s.Dir == "" {
		return nil
	}
	found := map[string]*StoredSession{} // by file name
	at := func(file string) *StoredSession {
		if found[file] == nil {
			found[file] = &StoredSession{}
		}
		return found[file]
	}
	for _, path := range filesIn(s.Dir, ".json") {
		file := strings.TrimSuffix(filepath.Base(path), ".json")
		var stored State
		data, err := protect.Read(path, maxResultBytes)
		if err != nil || json.Unmarshal(data, &stored) != nil || s.now().Sub(protect.ModTime(path)) >= sessionTTL {
			continue
		}
		of := host.SessionOf(stored.Of)
		if name, named := strings.CutPrefix(file, "s-"); named {
			of = host.Session{Name: name}
		} else if stored.Of == "" {
			continue // written by a version that did not record its owner
		}
		of.Within = stored.Within
		entry := at(file)
		entry.Session, entry.Used = of, protect.ModTime(path)
		for _, tool := range slices.Sorted(maps.Keys(stored.Tiers)) {
			entry.Shown = append(entry.Shown, ShownTool{tool, stored.Tiers[tool]})
		}
	}
	for _, f := range s.resultFiles("") {
		name, named := strings.CutPrefix(f.session, "s-")
		info, err := os.Lstat(f.path)
		if err != nil || s.now().Sub(info.ModTime()) >= sessionTTL ||
			!named && f.session != "none" && found[f.session] == nil {
			continue
		}
		entry := at(f.session)
		if named {
			entry.Session.Name = name
		}
		if info.ModTime().After(entry.Used) {
			entry.Used = info.ModTime()
		}
		i := slices.IndexFunc(entry.Results, func(r StoredResult) bool { return r.CallID == f.callID })
		if i >= 0 { // another file of the same call
			entry.Results[i].Bytes += info.Size()
			continue
		}
		entry.Results = append(entry.Results, StoredResult{f.callID, info.Size(), info.ModTime().UTC()})
	}
	all := []StoredSession{}
	for _, entry := range found {
		slices.SortFunc(entry.Results, func(a, b StoredResult) int { return b.Time.Compare(a.Time) })
		all = append(all, *entry)
	}
	slices.SortFunc(all, func(a, b StoredSession) int {
		return cmp.Or(b.Used.Compare(a.Used), strings.Compare(a.Session.Key(), b.Session.Key()))
	})
	return all
}
