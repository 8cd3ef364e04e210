package environment

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

type routeParams struct {
	Action   string            `json:"action"` // mock, block, delay, remove, or "" to list
	Address  string            `json:"address"`
	Resource string            `json:"resource"` // image, ..; "" for anything
	Body     string            `json:"body"`
	Status   int               `json:"status"`
	Headers  map[string]string `json:"headers"`
	Method   string            `json:"method"`
	Delay    int64             `json:"delay"` // milliseconds
}

// routeList are all rules; the first one that matches a request decides.
type routeList struct {
	Rules   []routeRule `json:"rules"`
	changed bool
}

// Step implements [page.Step]. Callers know the rules that their steps set.
func (r *routeList) Step() (string, any) {
	if r.changed {
		return "", nil
	}
	return "", r
}

type routeRule struct {
	Address  string `json:"address"`
	Method   string `json:"method,omitempty"`   // "" for any
	Resource string `json:"resource,omitempty"` // "" for any
	Action   string `json:"action"`
	Requests int    `json:"requests"` // number of requests that it has matched
}

// route adds a rule for requests of the session, removes or lists them.
func route(v *page.Visit, p routeParams) (*routeList, *api.Error) {
	var q api.RouteRequest
	switch {
	case p.Action == "":
	case p.Action == "remove" && p.Address == "":
		q.Rules = &[]api.RouteRule{}
	case p.Action == "remove":
		q.Remove = []string{p.Address}
	case p.Address == "" && p.Resource == "":
		return nil, page.Invalid("/address", "a pattern such as */api/*", "none", "")
	case p.Action == "delay" && p.Delay == 0:
		return nil, page.Invalid("/delay", "milliseconds, such as 1000", "none", "")
	default:
		rule := page.Object{"url": cmp.Or(p.Address, "*"), "action": p.Action, "delay_ms": p.Delay, "method": p.Method}
		if p.Resource != "" {
			rule["type"] = strings.ToUpper(p.Resource[:1]) + p.Resource[1:]
		}
		if p.Action == "mock" {
			maps.Copy(rule, page.Object{"body": p.Body, "headers": p.Headers, "status": p.Status})
		}
		q.Add = make([]api.RouteRule, 1)
		if err := api.Decode(scan.Marshal(rule), &q.Add[0]); err != nil {
			return nil, err
		}
	}
	all, err := v.Keeper.Routes(v.By, q)
	r := &routeList{Rules: []routeRule{}, changed: p.Action != ""}
	for _, rule := range all.Rules {
		r.Rules = append(r.Rules, routeRule{rule.URL, rule.Method, strings.ToLower(rule.Type), rule.Action, rule.Requests})
	}
	return r, err
}

type emulateParams struct {
	Device      string            `json:"device"` // or a size, such as 390x844
	Dark        *bool             `json:"dark"`
	Locale      string            `json:"locale"`
	Timezone    string            `json:"timezone"`
	Geolocation []float64         `json:"geolocation"` // latitude and longitude
	Headers     map[string]string `json:"headers"`
	Origins     []string          `json:"origins"` // the origins that get the headers; empty: the page's origin
	Permissions []string          `json:"permissions"`
	Network     string            `json:"network"`
	CPU         float64           `json:"cpu"` // slowdown factor
	Reset       bool              `json:"reset"`
}

// emulated has the settings of the page after the call.
type emulated struct {
	Set []string `json:"set"`
}

// device is what a page sees of a device: its size, its device pixels per CSS pixel, and its user agent.
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

// deviceOf returns the device that a caller names: a known one, or only a size.
func deviceOf(given string) (device, *api.Error) {
	if d, known := devices[given]; known {
		return d, nil
	}
	d := device{}
	if _, err := fmt.Sscanf(given, "%dx%d", &d.width, &d.height); err != nil || d.width < 50 || d.height < 50 ||
		d.width > 10_000 || d.height > 10_000 {
		return d, page.Invalid("/device", "iphone, iphone-se, ipad, pixel, galaxy, or a size such as 390x844", given, "")
	}
	return d, nil
}

// emulate changes the device, the place and the network that the page sees. The changes last until they are reset or
// the page ends.
func emulate(v *page.Visit, p emulateParams) (*emulated, *api.Error) {
	d := device{}
	if p.Device != "" {
		var err *api.Error
		if d, err = deviceOf(p.Device); err != nil {
			return nil, err
		}
	}
	e := &emulation{v: v, done: emulated{Set: []string{}}}
	if p.Reset {
		e.reset()
	}
	if p.Device != "" {
		e.device(p.Device, d)
	}
	if p.Dark != nil {
		scheme := map[bool]string{true: "dark", false: "light"}[*p.Dark]
		e.set(scheme, "Emulation.setEmulatedMedia", page.Object{"features": []page.Object{{"name": "prefers-color-scheme",
			"value": scheme}}})
	}
	if p.Locale != "" {
		e.set(p.Locale, "Emulation.setLocaleOverride", page.Object{"locale": p.Locale})
	}
	if p.Timezone != "" {
		e.set(p.Timezone, "Emulation.setTimezoneOverride", page.Object{"timezoneId": p.Timezone})
	}
	if len(p.Geolocation) == 2 {
		p.Permissions = append(p.Permissions, "geolocation")
		e.set("geolocation", "Emulation.setGeolocationOverride", page.Object{"latitude": p.Geolocation[0],
			"longitude": p.Geolocation[1], "accuracy": 10})
	}
	if p.Headers != nil && e.err == nil {
		e.headers(p)
	}
	for name := range strings.FieldsSeq(strings.ReplaceAll(strings.Join(p.Permissions, " "), ",", " ")) {
		e.set("permission "+name, "Browser.setPermission", page.Object{"permission": page.Object{"name": name},
			"setting": "granted"})
	}
	if p.Network != "" {
		e.network(p.Network, p.Network)
	}
	if p.CPU != 0 {
		e.set(fmt.Sprintf("cpu %gx slower", p.CPU), "Emulation.setCPUThrottlingRate", page.Object{"rate": p.CPU})
	}
	return &e.done, e.err
}

// emulation is a call of emulate.
type emulation struct {
	v    *page.Visit
	done emulated
	err  *api.Error // of the first command that failed; nothing is set afterwards
}

// set sends a command that sets the setting called name. "" marks a command that belongs to the setting of the next
// one.
func (e *emulation) set(name, command string, params any) {
	if e.err != nil {
		return
	}
	if e.err = e.v.Command(command, params, nil); e.err == nil && name != "" {
		e.done.Set = append(e.done.Set, name)
	}
}

func (e *emulation) reset() {
	e.set("", "Emulation.clearDeviceMetricsOverride", nil)
	e.set("", "Emulation.setTouchEmulationEnabled", page.Object{"enabled": false})
	e.set("", "Emulation.setUserAgentOverride", page.Object{"userAgent": ""})
	e.set("", "Emulation.setLocaleOverride", nil)
	e.set("", "Emulation.setTimezoneOverride", page.Object{"timezoneId": ""})
	e.set("", "Emulation.clearGeolocationOverride", nil)
	e.err = cmp.Or(e.err, e.v.Keeper.Owners.SetHeaders(e.v.By.SessionKey(), nil, nil))
	e.set("", "Emulation.setCPUThrottlingRate", page.Object{"rate": 1})
	e.set("", "Browser.resetPermissions", nil)
	e.network("", "online")
	e.set("as it was", "Emulation.setEmulatedMedia", page.Object{"features": []any{}})
}

// headers adds headers to the requests of the session to some origins.
func (e *emulation) headers(p emulateParams) {
	given := p.Origins
	if len(given) == 0 {
		given = []string{e.v.URL("")}
	}
	var origins []string
	for _, one := range given {
		of := api.OriginOf(one)
		if of == "" {
			e.err = page.Invalid("/origins", "origins such as https://api.example.com", page.Clip(one, 80), "")
			return
		}
		origins = append(origins, of)
	}
	if e.err = e.v.Keeper.Owners.SetHeaders(e.v.By.SessionKey(), origins, p.Headers); e.err == nil {
		e.done.Set = append(e.done.Set, "headers for "+strings.Join(origins, ", "))
	}
}

func (e *emulation) device(name string, d device) {
	if d.agent != "" {
		e.set("", "Emulation.setUserAgentOverride", page.Object{"userAgent": d.agent})
		e.set("", "Emulation.setTouchEmulationEnabled", page.Object{"enabled": true, "maxTouchPoints": 5})
		e.v.Warn("the page was made for another device; page.go reload loads it again")
	}
	e.set(name, "Emulation.setDeviceMetricsOverride", page.Object{"width": d.width, "height": d.height,
		"deviceScaleFactor": d.scale, "mobile": d.agent != ""})
}

func (e *emulation) network(name, network string) {
	s, offline := speeds[network], network == "offline"
	e.set("", "Network.emulateNetworkConditionsByRule", page.Object{"offline": offline,
		"matchedNetworkConditions": []page.Object{
			{"urlPattern": "", "latency": s[2], "downloadThroughput": s[0], "uploadThroughput": s[1]}}})
	e.set(name, "Network.overrideNetworkState", page.Object{"offline": offline, "latency": s[2],
		"downloadThroughput": s[0],
		"uploadThroughput":   s[1]})
}

// vitalsResult says how fast the page was, in milliseconds since its navigation began. CLS has no unit.
type vitalsResult struct {
	TTFB      int64   `json:"ttfb"`
	FCP       int64   `json:"fcp,omitempty"`
	LCP       int64   `json:"lcp,omitempty"`
	Element   string  `json:"lcp_element,omitempty"`
	CLS       float64 `json:"cls"`
	LongTasks int     `json:"long_tasks"` // over 50 ms
	Longest   int64   `json:"longest_task,omitempty"`
	Load      int64   `json:"load,omitempty"`
}

// vitals measures how fast the page was.
func vitals(v *page.Visit, _ struct{}) (r vitalsResult, err *api.Error) {
	var got struct {
		vitalsResult
		Shifts [][2]float64 // when, and how much
	}
	err = v.Script("", &got, "vitals")
	r = got.vitalsResult
	// Shifts count in windows of at most 5 s, with less than 1 s between them; the worst window is the figure.
	sum, first, before := 0.0, 0.0, math.Inf(-1)
	for _, shift := range got.Shifts {
		at := shift[0]
		if at-before > 1000 || at-first > 5000 {
			sum, first = 0, at
		}
		sum, before = sum+shift[1], at
		r.CLS = max(r.CLS, math.Round(sum*1000)/1000)
	}
	return r, err
}
