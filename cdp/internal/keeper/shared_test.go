//go:build linux

package keeper

import (
	"errors"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// pageTest is a test that can run in a browser with other pages.
type pageTest struct {
	name string
	run  func(t *testing.T, c *Client)
}

// runInOneBrowser runs tests one after the other in one browser, because launching Chrome is the most expensive part of
// most tests. Between them it closes all pages but one, and the scopes of plugins.
func runInOneBrowser(t *testing.T, tests []pageTest) {
	t.Helper()
	t.Parallel()
	c := startBrowser(t, config(t))
	base := openPage(t, c, "")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			defer closePages(t, c, base.Target)
			test.run(t, c)
		})
	}
}

// closePages closes all pages except one, and the contexts of plugins.
func closePages(t *testing.T, c *Client, except string) {
	t.Helper()
	for _, name := range []string{"one", "two"} {
		if _, err := c.As(plugin(name)).CloseSession(testContext(t), ""); err != nil {
			t.Error(err)
		}
	}
	for _, target := range value(c.Status(testContext(t), true)).Targets {
		if target.Type == "page" && target.ID != except {
			_, err := c.CloseTarget(testContext(t), target.ID, api.DialogAccept)
			failed, _ := errors.AsType[*api.Error](err)
			if err != nil && (failed == nil || failed.Code != api.CodeNotFound) { // that one is gone already
				t.Error("closing ", target.URL, ": ", err)
			}
		}
	}
	waitFor(t, "the pages to close", func() bool {
		for _, target := range value(c.Status(testContext(t), true)).Targets {
			if target.Type == "page" && target.ID != except {
				return false
			}
		}
		return true
	})
}

// TestPages tests commands, events and navigation of pages.
func TestPages(t *testing.T) {
	runInOneBrowser(t, []pageTest{
		{"DownloadsAreKept", testDownloadsAreKept}, // before one that chooses another folder
		{"Download", testDownload},
		{"ListenMarksReplayedHistory", testListenMarksReplayedHistory},
		{"ListenUntilMaxTimeout", testListenUntilMaxTimeout},
		{"WebSocket", testWebSocket},
		{"Redirects", testRedirects},
		{"SlowAndEndlessResponses", testSlowAndEndlessResponses},
		{"BeforeUnloadDialog", testBeforeUnloadDialog},
		{"CloseNavigatingPages", testCloseNavigatingPages},
		{"SlowServerDoesNotStopScripts", testSlowServerDoesNotStopScripts},
		{"ListenOnCrashedPage", testListenOnCrashedPage},
		{"ServiceWorker", testServiceWorker},
		{"Wait", testWait},
		{"RecordedFromTheStart", testRecordedFromTheStart},
		{"RecordedFailures", testRecordedFailures},
		{"RecordsAreRedacted", testRecordsAreRedacted},
		{"RecordingSurvivesDisable", testRecordingSurvivesDisable},
		{"StreamsOfRecordedDomains", testStreamsOfRecordedDomains},
		{"LoggedObjectsAreReleased", testLoggedObjectsAreReleased},
	})
}

// TestEnabling tests calls for which domains are enabled.
func TestEnabling(t *testing.T) {
	runInOneBrowser(t, []pageTest{
		{"IsNotSeen", testEnablingIsNotSeen},
		{"ForCall", testEnableForCall},
		{"IDsSurvive", testIDsSurvive},
		{"EventsAreQuiet", testEnabledEventsAreQuiet},
		{"DebuggerSkipsPauses", testDebuggerSkipsPauses},
		{"Never", testNeverEnabled},
		{"DuringNavigations", testEnablingDuringNavigations},
	})
}

// TestCallers tests what each caller may use and see.
func TestCallers(t *testing.T) {
	runInOneBrowser(t, []pageTest{
		{"RequestsNameTheirCaller", testRequestsNameTheirCaller},
		{"StatusForPlugins", testStatusForPlugins},
		{"PluginNetworkGrants", testPluginNetworkGrants},
		{"UsedRightsAreReported", testUsedRightsAreReported},
		{"EveryCallUpdatesGrants", testEveryCallUpdatesGrants},
		{"DownloadGrantEnds", testDownloadGrantEnds},
		{"NewPluginVersionInheritsNothing", testNewPluginVersionInheritsNothing},
		{"PagesAtForbiddenURLsAreClosed", testPagesAtForbiddenURLsAreClosed},
		{"FulfilledRequestsCannotEscapeGrants", testFulfilledRequestsCannotEscapeGrants},
		{"EventOwnership", testEventOwnership},
		{"PDFViewerIsHiddenFromOthers", testPDFViewerIsHiddenFromOthers},
		{"OwnershipWithoutOpener", testOwnershipWithoutOpener},
	})
}

// TestScripts tests what sessions set up in pages, and what they do in frames.
func TestScripts(t *testing.T) {
	runInOneBrowser(t, []pageTest{
		{"Script", testScript},
		{"Frames", testFrames},
		{"DocumentStart", testDocumentStart},
		{"Input", testInput},
		{"Route", testRoute},
		{"RouteKeepsGrants", testRouteKeepsGrants},
		{"Uploads", testUploads},
	})
}
