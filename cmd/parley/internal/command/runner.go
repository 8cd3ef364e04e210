package command

import (
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

// RunnersData are runners: processes in which the guests of isolated calls run.
type RunnersData struct {
	Runners []wasm.RunnerInfo `json:"runners"`
	Total   int               `json:"total"`
}

// Runners lists the runners that run, the one that was used last first.
func Runners(d *Deps) *RunnersData {
	running, _ := d.runners()
	return runnersData(running)
}

func runnersData(all []wasm.RunnerInfo) *RunnersData {
	data := &RunnersData{Runners: []wasm.RunnerInfo{}, Total: len(all)}
	for i := range all {
		r := all[len(all)-1-i]
		for _, text := range []*string{&r.Plugin, &r.Caller, &r.Session} {
			*text = manifest.CleanLine(manifest.Clip(*text, 200)) // a file says so, which a plugin may not have written
		}
		r.Started, r.Used = r.Started.UTC(), r.Used.UTC()
		data.Runners = append(data.Runners, r)
	}
	return data
}

// runners returns the runners that run, and the names of those that have ended but left files.
func (d *Deps) runners() (running []wasm.RunnerInfo, stale []string) {
	for _, r := range wasm.Runners(d.Dirs().Run) {
		if r.PID == 0 {
			if !r.Busy { // else it is being started
				stale = append(stale, r.Name)
			}
			continue
		}
		running = append(running, r)
	}
	return running, stale
}

// StopRunnersOptions say which runners to stop.
type StopRunnersOptions struct {
	Plugin string // "" means those of all plugins
}

// StopRunners ends runners, also in the middle of a call, and returns them. The error is not_found if the plugin has
// none.
func StopRunners(d *Deps, o StopRunnersOptions) (*RunnersData, error) {
	stopped := wasm.StopRunners(d.Dirs().Run, func(r wasm.RunnerInfo) bool {
		return o.Plugin == "" || strings.EqualFold(r.Plugin, o.Plugin)
	})
	if len(stopped) == 0 && o.Plugin != "" {
		return nil, host.Errorf(host.NotFound, "no runner of the plugin %q runs",
			manifest.CleanLine(manifest.Clip(o.Plugin, 80))).WithNext("parley runner list")
	}
	return runnersData(stopped), nil
}
