package cdp

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/protocol"
)

// TestEventNeeds checks that the table has only commands and events that exist, each event once, and what describe says
// of events.
func TestEventNeeds(t *testing.T) {
	p, seen := protocol.Embedded(), map[string]bool{}
	for _, start := range eventStarts {
		if _, ok := p.Command(start.command); !ok {
			t.Errorf("there is no command %s", start.command)
		}
		for _, event := range start.events {
			if _, ok := p.Event(event); !ok || seen[event] {
				t.Errorf("there is no event %s, or it is there twice", event)
			}
			seen[event] = true
		}
	}
	for event, want := range map[string][]string{
		"CSS.styleSheetAdded": nil, "Debugger.paused": nil, "Fetch.requestPaused": {"cdp.Fetch.enable"},
		"Page.screencastFrame": {"cdp.Page.startScreencast"}, "FedCm.dialogShown": {"cdp.FedCm.enable"},
	} {
		domain, _, _ := strings.Cut(event, ".")
		if got := eventNeeds(event, domain); !slices.Equal(got, want) {
			t.Errorf("%s needs %v, expected %v", event, got, want)
		}
	}
}
