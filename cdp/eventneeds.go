package cdp

import (
	"slices"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/protocol"
)

// eventStarts are the commands without which Chrome never sends an event, also while its domain is enabled, and the
// events of each.
var eventStarts = []struct {
	command string
	events  []string
}{
	{"BackgroundService.startObserving", []string{
		"BackgroundService.backgroundServiceEventReceived", "BackgroundService.recordingStateChanged"}},
	{"Browser.setDownloadBehavior", []string{"Browser.downloadWillBegin", "Browser.downloadProgress"}},
	{"CSS.trackComputedStyleUpdates", []string{"CSS.computedStyleUpdated"}},
	{"DOM.requestChildNodes", []string{"DOM.setChildNodes"}},
	{"Emulation.setVirtualTimePolicy", []string{"Emulation.virtualTimeBudgetExpired"}},
	{"HeapProfiler.startTrackingHeapObjects", []string{"HeapProfiler.heapStatsUpdate", "HeapProfiler.lastSeenObjectId"}},
	{"HeapProfiler.takeHeapSnapshot", []string{
		"HeapProfiler.addHeapSnapshotChunk", "HeapProfiler.reportHeapSnapshotProgress"}},
	{"Input.setInterceptDrags", []string{"Input.dragIntercepted"}},
	{"Overlay.setInspectMode", []string{
		"Overlay.inspectNodeRequested", "Overlay.nodeHighlightRequested", "Overlay.inspectModeCanceled"}},
	{"Page.setInterceptFileChooserDialog", []string{"Page.fileChooserOpened"}},
	{"Page.startScreencast", []string{"Page.screencastFrame", "Page.screencastVisibilityChanged"}},
	{"PerformanceTimeline.enable", []string{"PerformanceTimeline.timelineEventAdded"}},
	{"Profiler.start", []string{"Profiler.consoleProfileStarted"}},
	{"Profiler.startPreciseCoverage", []string{"Profiler.preciseCoverageDeltaUpdate"}},
	{"Runtime.addBinding", []string{"Runtime.bindingCalled"}},
	{"Storage.setStorageBucketTracking", []string{
		"Storage.storageBucketCreatedOrUpdated", "Storage.storageBucketDeleted"}},
	{"Storage.trackCacheStorageForOrigin", []string{
		"Storage.cacheStorageContentUpdated", "Storage.cacheStorageListUpdated"}},
	{"Storage.trackIndexedDBForOrigin", []string{
		"Storage.indexedDBContentUpdated", "Storage.indexedDBListUpdated"}},
	{"Tethering.bind", []string{"Tethering.accepted"}},
	{"Tracing.end", []string{"Tracing.dataCollected", "Tracing.tracingComplete"}},
	{"Tracing.start", []string{"Tracing.bufferUsage"}},
	{"WebAuthn.addVirtualAuthenticator", []string{"WebAuthn.credentialAdded", "WebAuthn.credentialAsserted"}},
}

// eventNeeds returns the calls without which an event never comes, as qualified names: what starts it, or what enables
// its domain. A stream enables most domains itself.
func eventNeeds(event, domain string) (needs []string) {
	enable := domain + ".enable"
	if _, ok := protocol.Embedded().Command(enable); ok && !api.ListenEnables(domain) {
		needs = append(needs, Name+"."+enable)
	}
	for _, start := range eventStarts {
		if slices.Contains(start.events, event) && !slices.Contains(needs, Name+"."+start.command) {
			needs = append(needs, Name+"."+start.command)
		}
	}
	return needs
}
