package main

import (
	"fmt"
	"strings"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// RouteParams are a rule for requests, or what to do with the rules.
type RouteParams struct {
	// What to do; without it the rules are listed.
	Action string `json:"action,omitempty" enum:"mock,block,delay,remove" aliases:"do,type"`
	// URL pattern with * and ?, such as */api/*; with remove, all without it.
	Address string `json:"address,omitempty" maxLength:"2000" aliases:"url,pattern,match"`
	// Body of the mocked response.
	Body string `json:"body,omitempty" maxLength:"1000000" aliases:"response"`
	// HTTP status of the mocked response.
	Status int `json:"status,omitempty" minimum:"200" maximum:"599"`
	// Headers of the mocked response.
	Headers map[string]string `json:"headers,omitempty"`
	// Match only this method, such as POST.
	Method string `json:"method,omitempty" pattern:"^[A-Za-z]{1,20}$"`
	// How long to delay the request, in milliseconds.
	Delay int64 `json:"delay,omitempty" minimum:"0" maximum:"60000" aliases:"delay_ms"`
}

// RouteResult are the rules now.
type RouteResult struct {
	// All rules; the first one that matches a request decides.
	Rules []RouteRule `json:"rules"`
}

// RouteRule is a rule.
type RouteRule struct {
	// URL pattern.
	Address string `json:"address"`
	// HTTP method; absent for any.
	Method string `json:"method,omitempty"`
	// What happens to matching requests.
	Action string `json:"action"`
	// Number of requests that it has matched.
	Requests int `json:"requests"`
}

// Route adds a rule for requests of the session, removes or lists them.
func Route(c *sdk.Call, p RouteParams) (*RouteResult, error) {
	b := &browser{Call: c}
	params := map[string]any{}
	switch {
	case p.Action == "":
	case p.Action == "remove" && p.Address == "":
		params["rules"] = []any{}
	case p.Action == "remove":
		params["remove"] = []string{p.Address}
	case p.Address == "":
		return nil, sdk.Invalid("/address", "a pattern such as */api/*", "none", "")
	default:
		rule := map[string]any{"url": p.Address, "action": p.Action, "delay_ms": p.Delay}
		if p.Action == "delay" && p.Delay == 0 {
			return nil, sdk.Invalid("/delay", "milliseconds, such as 1000", "none", "")
		}
		if p.Method != "" {
			rule["method"] = p.Method
		}
		if p.Action == "mock" {
			rule["body"], rule["headers"] = p.Body, p.Headers
			if p.Headers == nil {
				rule["headers"] = map[string]string{}
			}
			if p.Status != 0 {
				rule["status"] = p.Status
			}
		}
		params["add"] = []any{rule}
	}
	var got struct {
		Rules []struct {
			URL, Method, Action string
			Requests            int
		}
	}
	if err := b.cdp("route", params, &got); err != nil {
		return nil, err
	}
	r := &RouteResult{Rules: []RouteRule{}}
	for _, rule := range got.Rules {
		r.Rules = append(r.Rules, RouteRule{rule.URL, rule.Method, rule.Action, rule.Requests})
	}
	return r, nil
}

// EmulateParams say how the page is to find its environment.
type EmulateParams struct {
	// Device or size: iphone, ipad, 390x844.
	Device string `json:"device,omitempty" maxLength:"20" pattern:"^(iphone|iphone-se|ipad|pixel|galaxy|[0-9]+x[0-9]+)$" aliases:"viewport,size"`
	// Prefer dark mode, or with false light mode.
	Dark *bool `json:"dark,omitempty" aliases:"dark_mode"`
	// Locale of the browser, such as de-DE.
	Locale string `json:"locale,omitempty" maxLength:"40" aliases:"language"`
	// Time zone, such as Europe/Oslo.
	Timezone string `json:"timezone,omitempty" maxLength:"60" aliases:"time_zone,timezone_id"`
	// Position as [latitude, longitude].
	Geolocation []float64 `json:"geolocation,omitempty" minItems:"2" maxItems:"2" minimum:"-180" maximum:"180" aliases:"location,position"`
	// Headers to add to all requests.
	Headers map[string]string `json:"headers,omitempty" aliases:"extra_http_headers"`
	// Permissions to grant, such as camera.
	Permissions []string `json:"permissions,omitempty" maxItems:"20" aliases:"permission"`
	// Network to emulate; by default that of the machine.
	Network string `json:"network,omitempty" enum:"offline,slow-3g,3g,4g,online" aliases:"connection,throttle,network_conditions"`
	// How many times slower the processor is to be.
	CPU float64 `json:"cpu,omitempty" minimum:"1" maximum:"100" aliases:"cpu_slowdown,cpu_throttling_rate"`
	// End all earlier emulation first.
	Reset bool `json:"reset,omitempty" aliases:"clear"`
}

// EmulateResult says what the page finds now.
type EmulateResult struct {
	// What is emulated by this call.
	Set []string `json:"set"`
}

// device is what a page sees of a device: its size, its pixels for each of a style sheet, and its browser's name.
type device struct {
	width, height int
	scale         float64
	agent         string
}

const (
	appleAgent = "Mozilla/5.0 (%s; CPU %s17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 " +
		"Mobile/15E148 Safari/604.1"
	androidAgent = "Mozilla/5.0 (Linux; Android 14; %s) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0.0.0 Mobile " +
		"Safari/537.36"
)

var devices = map[string]device{
	"iphone":    {393, 852, 3, fmt.Sprintf(appleAgent, "iPhone", "iPhone OS ")},
	"iphone-se": {375, 667, 2, fmt.Sprintf(appleAgent, "iPhone", "iPhone OS ")},
	"ipad":      {820, 1180, 2, fmt.Sprintf(appleAgent, "iPad", "OS ")},
	"pixel":     {412, 915, 2.625, fmt.Sprintf(androidAgent, "Pixel 8")},
	"galaxy":    {360, 780, 3, fmt.Sprintf(androidAgent, "SM-S921B")},
}

// speeds are networks: bytes a second down and up, and the delay in milliseconds.
var speeds = map[string][3]float64{"slow-3g": {50_000, 50_000, 2000}, "3g": {180_000, 84_375, 560},
	"4g": {1_125_000, 337_500, 165}, "online": {-1, -1, 0}, "offline": {0, 0, 0}}

// deviceOf returns the device that a caller names: one that is known, or a size alone.
func deviceOf(given string) (device, error) {
	if d, known := devices[given]; known {
		return d, nil
	}
	d := device{}
	if _, err := fmt.Sscanf(given, "%dx%d", &d.width, &d.height); err != nil || d.width < 50 || d.height < 50 ||
		d.width > 10_000 || d.height > 10_000 {
		return d, sdk.Invalid("/device", "iphone, iphone-se, ipad, pixel, galaxy, or a size such as 390x844", given, "")
	}
	return d, nil
}

// Emulate changes what the page finds: its device, place and network. It lasts until it is reset or the page ends.
func Emulate(c *sdk.Call, p EmulateParams) (*EmulateResult, error) {
	d := device{}
	if p.Device != "" {
		var err error
		if d, err = deviceOf(p.Device); err != nil {
			return nil, err
		}
	}
	e := &emulation{b: &browser{Call: c}, done: EmulateResult{Set: []string{}}}
	if p.Reset {
		e.reset()
	}
	if p.Device != "" {
		e.device(p.Device, d)
	}
	if p.Dark != nil {
		scheme := map[bool]string{true: "dark", false: "light"}[*p.Dark]
		e.set(scheme, "Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme",
			"value": scheme}}})
	}
	if p.Locale != "" {
		e.set(p.Locale, "Emulation.setLocaleOverride", object{"locale": p.Locale})
	}
	if p.Timezone != "" {
		e.set(p.Timezone, "Emulation.setTimezoneOverride", object{"timezoneId": p.Timezone})
	}
	if len(p.Geolocation) == 2 {
		p.Permissions = append(p.Permissions, "geolocation")
		e.set("geolocation", "Emulation.setGeolocationOverride", object{"latitude": p.Geolocation[0],
			"longitude": p.Geolocation[1], "accuracy": 10})
	}
	if p.Headers != nil {
		e.set("headers", "Network.setExtraHTTPHeaders", object{"headers": p.Headers})
	}
	for name := range strings.FieldsSeq(strings.ReplaceAll(strings.Join(p.Permissions, " "), ",", " ")) {
		e.set("permission "+name, "Browser.setPermission", object{"permission": object{"name": name},
			"setting": "granted"})
	}
	if p.Network != "" {
		e.network(p.Network, p.Network)
	}
	if p.CPU != 0 {
		e.set(fmt.Sprintf("cpu %gx slower", p.CPU), "Emulation.setCPUThrottlingRate", object{"rate": p.CPU})
	}
	return &e.done, e.err
}

type object = map[string]any

// emulation is a call of Emulate.
type emulation struct {
	b    *browser
	done EmulateResult
	err  error // of the first command that failed, after which nothing is set
}

// set sends a command that sets what name says; "" is a part of what the next one sets.
func (e *emulation) set(name, command string, params any) {
	if e.err != nil {
		return
	}
	if e.err = e.b.cdp(command, params, nil); e.err == nil && name != "" {
		e.done.Set = append(e.done.Set, name)
	}
}

func (e *emulation) reset() {
	e.set("", "Emulation.clearDeviceMetricsOverride", nil)
	e.set("", "Emulation.setTouchEmulationEnabled", object{"enabled": false})
	e.set("", "Emulation.setUserAgentOverride", object{"userAgent": ""})
	e.set("", "Emulation.setLocaleOverride", nil)
	e.set("", "Emulation.setTimezoneOverride", object{"timezoneId": ""})
	e.set("", "Emulation.clearGeolocationOverride", nil)
	e.set("", "Network.setExtraHTTPHeaders", object{"headers": object{}})
	e.set("", "Emulation.setCPUThrottlingRate", object{"rate": 1})
	e.set("", "Browser.resetPermissions", nil)
	e.network("", "online")
	e.set("as it was", "Emulation.setEmulatedMedia", object{"features": []any{}})
}

func (e *emulation) device(name string, d device) {
	if d.agent != "" {
		e.set("", "Emulation.setUserAgentOverride", object{"userAgent": d.agent})
		e.set("", "Emulation.setTouchEmulationEnabled", object{"enabled": true, "maxTouchPoints": 5})
		e.b.Warn("the page was made for another device; page.go reload loads it again")
	}
	e.set(name, "Emulation.setDeviceMetricsOverride", object{"width": d.width, "height": d.height,
		"deviceScaleFactor": d.scale, "mobile": d.agent != ""})
}

func (e *emulation) network(name, network string) {
	s, offline := speeds[network], network == "offline"
	e.set("", "Network.emulateNetworkConditionsByRule", object{"offline": offline, "matchedNetworkConditions": []object{
		{"urlPattern": "", "latency": s[2], "downloadThroughput": s[0], "uploadThroughput": s[1]}}})
	e.set(name, "Network.overrideNetworkState", object{"offline": offline, "latency": s[2], "downloadThroughput": s[0],
		"uploadThroughput": s[1]})
}

// VitalsParams have nothing to say.
type VitalsParams struct{}

// VitalsResult are how fast the page was, in milliseconds since its navigation began.
type VitalsResult struct {
	// Time to first byte, in ms.
	TTFB int64 `json:"ttfb"`
	// First contentful paint, in ms.
	FCP int64 `json:"fcp,omitempty"`
	// Largest contentful paint, in ms.
	LCP int64 `json:"lcp,omitempty"`
	// Element of the largest contentful paint.
	Element string `json:"lcp_element,omitempty"`
	// Cumulative layout shift, without unit.
	CLS float64 `json:"cls"`
	// Number of tasks over 50 ms.
	LongTasks int `json:"long_tasks"`
	// Duration of the longest task, in ms.
	Longest int64 `json:"longest_task,omitempty"`
	// Time of the load event, in ms.
	Load int64 `json:"load,omitempty"`
}

// Vitals measures how fast the page was.
func Vitals(c *sdk.Call, _ VitalsParams) (*VitalsResult, error) {
	b := &browser{Call: c}
	r := &VitalsResult{}
	if _, err := b.script("", r, "vitals"); err != nil {
		return nil, err
	}
	return r, nil
}
