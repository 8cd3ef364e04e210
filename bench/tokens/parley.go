package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-tools/parley/bench/internal/server"
)

// commonPins are 22 tools that an agent that works with a browser would pin.
var commonPins = []string{
	"cdp.open", "cdp.close", "cdp.Page.navigate", "cdp.Page.reload", "cdp.Page.captureScreenshot",
	"cdp.Page.printToPDF", "cdp.Runtime.evaluate", "cdp.DOM.getDocument", "cdp.DOM.querySelector",
	"cdp.DOM.getOuterHTML", "cdp.Input.dispatchKeyEvent", "cdp.Input.dispatchMouseEvent", "cdp.Input.insertText",
	"cdp.Network.getCookies", "cdp.Network.setCookie", "cdp.Network.getResponseBody",
	"cdp.Accessibility.getFullAXTree", "cdp.Target.getTargets", "json.query", "json.convert", "text.hash", "text.count",
}

// perPlugin is the number of tools of a generated plugin.
const perPlugin = 500

// parleyModes returns parley mcp in each mode: with the shipped tools, with ten more and with ten thousand more.
// Generated plugins are written to work and have the code of module.
func parleyModes(parley, module, work string) ([]server.Server, error) {
	few, err := loadCrowd(module, filepath.Join(work, "few"), 10)
	if err != nil {
		return nil, err
	}
	many, err := loadCrowd(module, filepath.Join(work, "many"), 10_000)
	if err != nil {
		return nil, err
	}
	mcp := func(what, mode string, loaded []string, pinned ...string) server.Server {
		return server.Server{
			Name: "parley mcp --docs " + mode + what, Command: append([]string{parley, "mcp", "--docs", mode}, loaded...),
			Env: []string{"PARLEY_PINNED_TOOLS=" + strings.Join(pinned, ",")},
		}
	}
	return []server.Server{
		mcp("", "minimal", nil),
		mcp(", 10 tools more", "minimal", few),
		mcp(", 10,000 tools more", "minimal", many),
		mcp(", 22 pinned", "progressive", nil, commonPins...),
		mcp(", 10,000 tools more, 22 pinned", "progressive", many, commonPins...),
		mcp("", "full", nil),
	}, nil
}

// loadCrowd writes plugins with the given number of tools to dir and returns the options that load them.
func loadCrowd(module, dir string, tools int) (options []string, err error) {
	code, err := os.ReadFile(module)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for first := 0; first < tools; first += perPlugin {
		name := fmt.Sprintf("crowd%d", first/perPlugin)
		var all []string
		for i := first; i < min(first+perPlugin, tools); i++ {
			all = append(all, fmt.Sprintf(`{"name":"order-article-%d","docs":{"brief":"Order article %d from the stock"},"effect":"write","params":{"type":"object",
			  "properties":{"count":{"type":"integer","minimum":1,"description":"How many to order."},"note":{"type":"string","description":"What the stock is told."}},
			  "required":["count"],"additionalProperties":false}}`, i, i))
		}
		manifest := fmt.Sprintf(`{"manifest":1,"name":%q,"version":"1.0.0","kind":"parley/1","docs":{"brief":"Order from stock %s"},"tools":[%s]}`, name, name, strings.Join(all, ","))
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file+".wasm", code, 0o644); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file+".manifest.json", []byte(manifest), 0o644); err != nil {
			return nil, err
		}
		options = append(options, "--load", file+".wasm")
	}
	return options, nil
}
