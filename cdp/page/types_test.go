package page_test

import (
	"encoding/json"
	"strings"
)

// verb is a tool with the types of its parameters and of its result.
type verb[P, R any] string

const (
	Open         verb[OpenParams, *PageResult]            = "open"
	Do           verb[DoParams, *DoResult]                = "do"
	Go           verb[GoParams, *PageResult]              = "go"
	Snapshot     verb[SnapshotParams, SnapshotResult]     = "snapshot"
	Text         verb[TextParams, TextResult]             = "text"
	Find         verb[FindParams, FindResult]             = "find"
	Get          verb[GetParams, GetResult]               = "get"
	Click        verb[ClickParams, *Effects]              = "click"
	Fill         verb[FillParams, *FillResult]            = "fill"
	Type         verb[TypeParams, *Effects]               = "type"
	Press        verb[PressParams, *Effects]              = "press"
	Select       verb[SelectParams, *Effects]             = "select"
	Check        verb[CheckParams, *Effects]              = "check"
	Hover        verb[ElementParams, *Effects]            = "hover"
	Drag         verb[DragParams, *Effects]               = "drag"
	Scroll       verb[ScrollParams, *Effects]             = "scroll"
	Wait         verb[WaitParams, WaitResult]             = "wait"
	Expect       verb[ExpectParams, ExpectResult]         = "expect"
	Screenshot   verb[ScreenshotParams, ScreenshotResult] = "screenshot"
	Evaluate     verb[EvaluateParams, EvaluateResult]     = "evaluate"
	Requests     verb[RequestsParams, *RequestsResult]    = "requests"
	Console      verb[ConsoleParams, *ConsoleResult]      = "console"
	AnswerDialog verb[DialogParams, *DialogResult]        = "dialog"
	Upload       verb[UploadParams, *UploadResult]        = "upload"
	Downloads    verb[DownloadsParams, *DownloadsResult]  = "downloads"
	Cookies      verb[CookiesParams, *CookiesResult]      = "cookies"
	Storage      verb[StorageParams, *StorageResult]      = "storage"
	State        verb[StateParams, *StateResult]          = "state"
	Route        verb[RouteParams, *RouteResult]          = "route"
	Emulate      verb[EmulateParams, *EmulateResult]      = "emulate"
	Vitals       verb[VitalsParams, *VitalsResult]        = "vitals"
	Record       verb[RecordParams, *RecordResult]        = "record"
	Compare      verb[CompareParams, *CompareResult]      = "compare"
)

type ClickParams struct {
	In        string    `json:"in,omitempty"`
	Element   string    `json:"element,omitempty"`
	At        []float64 `json:"at,omitempty"`
	Button    string    `json:"button,omitempty"`
	Count     int       `json:"count,omitempty"`
	Modifiers []string  `json:"modifiers,omitempty"`
}

type DragParams struct {
	Element string    `json:"element"`
	To      string    `json:"to,omitempty"`
	By      []float64 `json:"by,omitempty"`
}

type ElementParams struct {
	Element string `json:"element"`
}

type UploadParams struct {
	Element   string   `json:"element"`
	Files     []string `json:"files,omitempty"`
	Downloads []string `json:"downloads,omitempty"`
}

type UploadResult struct {
	Effects
	Files []UploadedFile `json:"files"`
}

type UploadedFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

type FillParams struct {
	In      string `json:"in,omitempty"`
	Element string `json:"element"`
	Value   string `json:"value"`
	Secret  string `json:"secret,omitempty"`
	Submit  bool   `json:"submit,omitempty"`
}

type FillResult struct {
	Effects
	Value string `json:"value,omitempty"`
}

type TypeParams struct {
	Text    string `json:"text"`
	Element string `json:"element,omitempty"`
	Submit  bool   `json:"submit,omitempty"`
}

type PressParams struct {
	Key     string `json:"key"`
	Element string `json:"element,omitempty"`
	Count   int    `json:"count,omitempty"`
}

type SelectParams struct {
	Element string   `json:"element"`
	Options []string `json:"options"`
}

type CheckParams struct {
	Element string `json:"element"`
	Off     bool   `json:"off,omitempty"`
}

type ScrollParams struct {
	Element string    `json:"element,omitempty"`
	By      []float64 `json:"by,omitempty"`
	To      string    `json:"to,omitempty"`
}

type element struct {
	Ref   string `json:"ref"`
	Role  string `json:"role"`
	Name  string `json:"name"`
	State string `json:"state,omitempty"`
	Value string `json:"value,omitempty"`
	CSS   string `json:"css,omitempty"`
}

type failure struct {
	element
	Code    string
	Why     string
	Foreign bool
	Hosts   bool
	Total   int
	Near    []element
	By      *element
}

type ConsoleParams struct {
	AsyncStacks *bool  `json:"async_stacks,omitempty"`
	Level       string `json:"level,omitempty"`
	Contains    string `json:"contains,omitempty"`
	All         bool   `json:"all,omitempty"`
	Limit       int    `json:"limit,omitempty"`
}

type ConsoleResult struct {
	Total   int    `json:"total"`
	Errors  int    `json:"errors,omitempty"`
	Text    string `json:"text,omitempty"`
	LeftOut string `json:"left_out,omitempty"`
}

type DialogParams struct {
	Action string `json:"action,omitempty"`
	Text   string `json:"text,omitempty"`
}

type DialogResult struct {
	Effects
	Dialog Dialog `json:"dialog"`
}

type DownloadsParams struct {
	Wait int64  `json:"wait,omitempty"`
	Save string `json:"save,omitempty"`
	Name string `json:"name,omitempty"`
}

type DownloadsResult struct {
	Downloads []Download `json:"downloads"`
	Saved     *Saved     `json:"saved,omitempty"`
}

type Saved struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

type Download struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Path  string `json:"path,omitempty"`
	URL   string `json:"url"`
	Bytes int64  `json:"bytes,omitempty"`
}

type DoParams struct {
	Steps []json.RawMessage `json:"steps"`
	Diff  bool              `json:"diff,omitempty"`
}

type DoResult struct {
	Done    int          `json:"done"`
	URL     string       `json:"url,omitempty"`
	Results []StepResult `json:"results,omitempty"`
	Diff    string       `json:"diff,omitempty"`
}

type StepResult struct {
	Step   int `json:"step"`
	Result any `json:"result"`
}

type Effects struct {
	Act    int     `json:"act,omitempty"`
	Before *Before `json:"before,omitempty"`
	On     string  `json:"on,omitempty"`
	URL    string  `json:"url,omitempty"`
	Title  string  `json:"title,omitempty"`
	Status int     `json:"status,omitempty"`
	Caused *Caused `json:"caused,omitempty"`
	Note   string  `json:"note,omitempty"`
}

type Caused struct {
	Failed     []string  `json:"failed,omitempty"`
	Pending    []string  `json:"pending,omitempty"`
	Errors     []string  `json:"errors,omitempty"`
	Dialog     *Dialog   `json:"dialog,omitempty"`
	Answered   []string  `json:"answered,omitempty"`
	Downloads  []string  `json:"downloads,omitempty"`
	NewPages   []NewPage `json:"new_pages,omitempty"`
	NotSettled string    `json:"not_settled,omitempty"`
	Chooser    string    `json:"chooser,omitempty"`
	Frames     []string  `json:"frames,omitempty"`
}

type Before struct {
	Act     int    `json:"act"`
	Of      string `json:"of"`
	Changed bool   `json:"changed,omitempty"`
	URL     string `json:"url,omitempty"`
	Caused
}

type Dialog struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

type NewPage struct {
	Target string `json:"target"`
	URL    string `json:"url"`
}

type SnapshotParams struct {
	MaxTokens int    `json:"max_tokens,omitempty"`
	Roles     string `json:"roles,omitempty"`
	Focus     string `json:"focus,omitempty"`
	Group     string `json:"group,omitempty"`
	Since     bool   `json:"since,omitempty"`
	Audit     bool   `json:"audit,omitempty"`
	Options   bool   `json:"options,omitempty"`
}

type SnapshotResult struct {
	Title   string `json:"title,omitempty"`
	URL     string `json:"url,omitempty"`
	Text    string `json:"text"`
	LeftOut string `json:"left_out,omitempty"`
}

type snapshot struct {
	SnapshotResult
	Failure *failure
	Frames  []element
	Hosts   bool
	Left    struct{ Prose, Grouped, Closed, Cut int } `json:"left_out"`
}

type TextParams struct {
	In        string `json:"in,omitempty"`
	Main      bool   `json:"main,omitempty"`
	Element   string `json:"element,omitempty"`
	MaxTokens int    `json:"max_tokens,omitempty"`
}

type TextResult struct {
	Text    string `json:"text"`
	Cut     int    `json:"cut,omitempty"`
	LeftOut string `json:"left_out,omitempty"`
}

type FindParams struct {
	Element string `json:"element"`
	Limit   int    `json:"limit,omitempty"`
}

type FindResult struct {
	Total   int       `json:"total"`
	Matches []element `json:"matches"`
	Note    string    `json:"note,omitempty"`
	LeftOut string    `json:"left_out,omitempty"`
}

type GetParams struct {
	In      string `json:"in,omitempty"`
	Element string `json:"element"`
	What    string `json:"what,omitempty"`
	Of      string `json:"of,omitempty"`
}

type GetResult struct {
	Value json.RawMessage `json:"value"`
}

type OpenParams struct {
	URL  string `json:"url"`
	New  bool   `json:"new,omitempty"`
	Here bool   `json:"here,omitempty"`
}

type PageResult struct {
	Before *Before `json:"before,omitempty"`
	URL    string  `json:"url"`
	Title  string  `json:"title"`
	Status int     `json:"status,omitempty"`
	Caused *Caused `json:"caused,omitempty"`
}

type GoParams struct {
	To string `json:"to"`
}

type EvaluateParams struct {
	Expression string `json:"expression"`
	Element    string `json:"element,omitempty"`
}

type EvaluateResult struct {
	Value json.RawMessage `json:"value"`
}

type RouteParams struct {
	Action   string            `json:"action,omitempty"`
	Address  string            `json:"address,omitempty"`
	Resource string            `json:"resource,omitempty"`
	Body     string            `json:"body,omitempty"`
	Status   int               `json:"status,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Method   string            `json:"method,omitempty"`
	Delay    int64             `json:"delay,omitempty"`
}

type RouteResult struct {
	Rules []RouteRule `json:"rules"`
}

type RouteRule struct {
	Address  string `json:"address"`
	Method   string `json:"method,omitempty"`
	Resource string `json:"resource,omitempty"`
	Action   string `json:"action"`
	Requests int    `json:"requests"`
}

type EmulateParams struct {
	Device      string            `json:"device,omitempty"`
	Dark        *bool             `json:"dark,omitempty"`
	Locale      string            `json:"locale,omitempty"`
	Timezone    string            `json:"timezone,omitempty"`
	Geolocation []float64         `json:"geolocation,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Origins     []string          `json:"origins,omitempty"`
	Permissions []string          `json:"permissions,omitempty"`
	Network     string            `json:"network,omitempty"`
	CPU         float64           `json:"cpu,omitempty"`
	Reset       bool              `json:"reset,omitempty"`
}

type EmulateResult struct {
	Set []string `json:"set"`
}

type VitalsParams struct{}

type VitalsResult struct {
	TTFB      int64   `json:"ttfb"`
	FCP       int64   `json:"fcp,omitempty"`
	LCP       int64   `json:"lcp,omitempty"`
	Element   string  `json:"lcp_element,omitempty"`
	CLS       float64 `json:"cls"`
	LongTasks int     `json:"long_tasks"`
	Longest   int64   `json:"longest_task,omitempty"`
	Load      int64   `json:"load,omitempty"`
}

type RequestsParams struct {
	ID      string `json:"id,omitempty"`
	Address string `json:"address,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
	All     bool   `json:"all,omitempty"`
	Limit   int    `json:"limit,omitempty"`
	Format  string `json:"format,omitempty"`
	Bodies  bool   `json:"bodies,omitempty"`
}

type RequestsResult struct {
	Total   int             `json:"total"`
	Failed  int             `json:"failed,omitempty"`
	Text    string          `json:"text,omitempty"`
	Request *RequestDetails `json:"request,omitempty"`
	HAR     any             `json:"har,omitempty"`
	LeftOut string          `json:"left_out,omitempty"`
}

type ScreenshotParams struct {
	In      string `json:"in,omitempty"`
	Element string `json:"element,omitempty"`
	Full    bool   `json:"full,omitempty"`
	Refs    bool   `json:"refs,omitempty"`
	Tile    int    `json:"tile,omitempty"`
}

type ScreenshotResult struct {
	Data    string `json:"data"`
	LeftOut string `json:"left_out,omitempty"`
}

type RecordParams struct {
	Action string `json:"action,omitempty"`
	For    int    `json:"for,omitempty"`
	Trace  bool   `json:"trace,omitempty"`
}

type RecordResult struct {
	Started   bool   `json:"started,omitempty"`
	Recorded  int64  `json:"recorded,omitempty"`
	Busy      int64  `json:"busy,omitempty"`
	LongTasks int    `json:"long_tasks,omitempty"`
	Longest   int64  `json:"longest_task,omitempty"`
	Text      string `json:"text,omitempty"`
	LeftOut   string `json:"left_out,omitempty"`
	Data      []byte `json:"data,omitempty"`
}

type CompareParams struct {
	Baseline  string  `json:"baseline,omitempty"`
	Current   string  `json:"current,omitempty"`
	Element   string  `json:"element,omitempty"`
	Full      bool    `json:"full,omitempty"`
	Threshold float64 `json:"threshold"`
	Picture   bool    `json:"picture,omitempty"`
}

type CompareResult struct {
	Same    bool    `json:"same"`
	Percent float64 `json:"percent,omitempty"`
	Pixels  int     `json:"pixels,omitempty"`
	Boxes   [][]int `json:"boxes,omitempty"`
	Sizes   string  `json:"sizes,omitempty"`
	Diff    string  `json:"diff,omitempty"`
	LeftOut string  `json:"left_out,omitempty"`
	Data    []byte  `json:"data,omitempty"`
}

type CookiesParams struct {
	Name     string  `json:"name,omitempty"`
	Value    *string `json:"value,omitempty"`
	Domain   string  `json:"domain,omitempty"`
	Path     string  `json:"path,omitempty"`
	MaxAge   int64   `json:"max_age,omitempty"`
	Secure   bool    `json:"secure,omitempty"`
	HTTPOnly bool    `json:"http_only,omitempty"`
	SameSite string  `json:"same_site,omitempty"`
}

type CookiesResult struct {
	Cookies []Cookie `json:"cookies"`
}

type Cookie struct {
	Name    string  `json:"name"`
	Value   *string `json:"value,omitempty"`
	For     string  `json:"for"`
	Expires string  `json:"expires,omitempty"`
	Flags   string  `json:"flags,omitempty"`
}

type StorageParams struct {
	Key   string  `json:"key,omitempty"`
	Value *string `json:"value,omitempty"`
	Area  string  `json:"area,omitempty"`
}

type StorageResult struct {
	Entries []StorageEntry `json:"entries"`
}

type StorageEntry struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Length int    `json:"length,omitempty"`
}

type StateParams struct {
	Action  string   `json:"action"`
	Name    string   `json:"name,omitempty"`
	Origins []string `json:"origins,omitempty"`
}

type StateResult struct {
	Name    string   `json:"name,omitempty"`
	Origins []string `json:"origins,omitempty"`
	Cookies int      `json:"cookies,omitempty"`
	Items   int      `json:"items,omitempty"`
	States  []any    `json:"states,omitempty"`
}

type WaitParams struct {
	Text       string `json:"text,omitempty"`
	Element    string `json:"element,omitempty"`
	URL        string `json:"address,omitempty"`
	Request    string `json:"request,omitempty"`
	Expression string `json:"expression,omitempty"`
	Idle       bool   `json:"idle,omitempty"`
	Gone       bool   `json:"gone,omitempty"`
	Timeout    int64  `json:"timeout,omitempty"`
}

type WaitResult struct {
	MS   int64  `json:"ms"`
	Line string `json:"line,omitempty"`
}

type ExpectParams struct {
	In      string  `json:"in,omitempty"`
	Text    string  `json:"text,omitempty"`
	Element string  `json:"element,omitempty"`
	State   string  `json:"state,omitempty"`
	Value   *string `json:"value,omitempty"`
	Count   *int    `json:"count,omitempty"`
	URL     string  `json:"address,omitempty"`
	Timeout int64   `json:"timeout,omitempty"`
}

type ExpectResult struct {
	Met bool `json:"met"`
}

type RequestDetails struct {
	Request  string            `json:"request"`
	Outcome  string            `json:"outcome"`
	Frame    string            `json:"frame,omitempty"`
	Sent     map[string]string `json:"sent,omitempty"`
	SentBody string            `json:"sent_body,omitempty"`
	Messages string            `json:"messages,omitempty"`
	Received map[string]string `json:"received,omitempty"`
	Body     string            `json:"body,omitempty"`
	Note     string            `json:"note,omitempty"`
}

// redacted stands for the value of a header or parameter that may be a secret.
const redacted = "[redacted]"

const bytesPerToken = 4

func clip(s string, size int) string {
	if len(s) <= size {
		return s
	}
	return strings.ToValidUTF8(s[:size], "") + "…"
}
