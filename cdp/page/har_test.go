package page_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// harModule reads an archive by a validator of others, which throws where it is not HAR 1.2, and prints its entries.
const harModule = `import validator from "har-validator/lib/promise.js";
let text = "";
for await (const part of process.stdin) text += part;
const har = await validator.har(JSON.parse(text)).catch(e => { throw JSON.stringify(e.errors) });
console.log(JSON.stringify(har.log.entries));`

// harEntry is a part of an entry.
type harEntry struct {
	Time    float64
	Frame   string `json:"_frame"`
	Error   string `json:"_error"`
	Request struct {
		URL      string
		PostData struct {
			MimeType, Text, Comment string
			Encoding                string `json:"_encoding"`
		}
	}
	Response struct {
		Status      int
		RedirectURL string
		HeadersSize int
		BodySize    int
		Content     struct {
			Size                    int
			Text, Encoding, Comment string
		}
	}
	Timings struct{ Blocked, DNS, Connect, SSL, Send, Wait, Receive float64 }
}

// TestHAR checks an archive with bodies by a validator of others: what each kind of request leaves in it.
func TestHAR(t *testing.T) {
	c := startChrome(t)
	far := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		switch r.URL.Path {
		case "/echo":
			body, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "got %s", body)
		case "/bytes":
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte{0x89, 'P', 'N', 'G', 0, 1, 2})
		case "/moved":
			http.Redirect(w, r, "/echo?token=hidden", http.StatusFound)
		case "/gone.js", "/gone.css":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "nothing here\n")
		case "/missing":
			http.Error(w, "nothing here", http.StatusNotFound)
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/cut":
			panic(http.ErrAbortHandler)
		case "/events":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: 1\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/large":
			_, _ = io.WriteString(w, strings.Repeat("0123456789abcdef", 5<<16))
		case "/near", "/far":
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprintf(w, `<script>fetch("/echo?from=%s")</script>`, r.URL.Path[1:])
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprintf(w, `<title>HAR</title><script src=/gone.js></script><link rel=stylesheet href=/gone.css><iframe src=/near></iframe><iframe src="%s/far"></iframe><script>(async () => {
				const get = (...a) => fetch(...a).then(r => r.text()).catch(() => 0);
				await get("/echo?text", {method: "POST", body: "sent ü", headers: {"Content-Type": "text/x-own"}});
				await get("/echo?form", {method: "POST", body: new URLSearchParams({a: "1 2"})});
				await get("/echo?binary", {method: "POST", body: new Uint8Array([0, 255, 254])});
				new EventSource("/events").onmessage = (e) => e.target.close();
				for (const path of ["/bytes", "/moved", "/missing", "/empty", "/cut", "/large"]) await get(path);
				await (await fetch("/echo?blob")).blob();
				document.title = "Done"; })()</script>`, far)
		}
	}))
	s.Config.ErrorLog = nil
	t.Cleanup(s.Close)
	far = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	c.show(t, s.URL+"/", "")
	if _, err := run(t, c, Wait, WaitParams{Expression: `document.title == "Done"`, Timeout: 20_000}); err != nil {
		t.Fatal(exit(err))
	}
	waitUntil(t, "the requests of the frames", func() bool {
		r, err := run(t, c, Requests, RequestsParams{Limit: 30, Address: "from="})
		return err == nil && strings.Count(r.Text, " ms ") == 2
	})
	r, err := run(t, c, Requests, RequestsParams{Limit: 1, Bodies: true})
	if err != nil {
		t.Fatal(exit(err))
	}
	if r.LeftOut != "bodies of 5 requests: the comments in their entries say why" {
		t.Errorf("left out: %q", r.LeftOut)
	}
	var entries []harEntry
	if err := json.Unmarshal(runModule(t, "har-validator", harModule, effects(r.HAR)), &entries); err != nil {
		t.Fatal(err)
	}
	png := base64.StdEncoding.EncodeToString([]byte{0x89, 'P', 'N', 'G', 0, 1, 2})
	for _, test := range []struct {
		url, want string
		size      int // of the body, -1: any
	}{
		{"/echo?text", `200 [text/x-own: sent ü] [got sent ü]`, 11},
		{"/echo?form", `200 [application/x-www-form-urlencoded;charset=UTF-8: a=1+2] [got a=1+2]`, 9},
		{"/echo?binary", `200 [: base64 AP/+] [base64 ` + base64.StdEncoding.EncodeToString([]byte("got \x00\xff\xfe")) + `]`, 7},
		{"/bytes", `200 [base64 ` + png + `]`, 7},
		{"/moved", `302 to /echo?token=[redacted]`, -1},
		{"/echo?token=[redacted]", `200 [got ]`, 4},
		{"/missing", "404 [nothing here\n]", 13},
		{"/gone.js", "404 the page cancelled the request before all of the body had come", 13},
		{"/gone.css", "404 the page cancelled the request before all of the body had come", 13},
		{"/events", "200 the page cancelled the request before all of the body had come", -1},
		{"/empty", `204`, 0},
		{"/cut", `0`, 0},
		{"/large", `200 the browser no longer has the body of the response`, -1},
		{"/echo?blob", `200 the browser did not keep the body: the page took it as a file`, -1},
		{"/near", `200 [<script>fetch("/echo?from=near")</script>] in a frame`, -1},
		{"/far", `200 [<script>fetch("/echo?from=far")</script>] in a frame`, -1},
		{"/echo?from=near", `200 [got ] in frame URL/near`, 4},
		{"/echo?from=far", `200 [got ] in frame FAR/far`, 4},
	} {
		got, size := "no entry", -2
		for _, e := range entries {
			if !strings.HasSuffix(e.Request.URL, test.url) {
				continue
			}
			content := e.Response.Content
			got, size = fmt.Sprint(e.Response.Status), content.Size
			if sent := e.Request.PostData; sent.Text != "" {
				got += " [" + sent.MimeType + ": " + strings.TrimLeft(sent.Encoding+" ", " ") + sent.Text + "]"
			}
			if content.Text != "" {
				got += " [" + strings.TrimLeft(content.Encoding+" ", " ") + content.Text + "]"
			}
			if e.Response.RedirectURL != "" {
				got += " to " + e.Response.RedirectURL
			}
			if content.Comment != "" {
				got += " " + content.Comment
			}
			if e.Frame != "" {
				got += " in " + e.Frame
			}
			if at := e.Response; at.Status != 0 && (e.Error != "" || at.HeadersSize < 50 || content.Text != "" &&
				content.Encoding == "" && at.BodySize != content.Size) {
				t.Errorf("%s: error %q, %d bytes of headers, %d of the body", test.url, e.Error, at.HeadersSize, at.BodySize)
			}
			p := e.Timings
			sum := max(p.Blocked, 0) + max(p.DNS, 0) + max(p.Connect, 0) + p.Send + p.Wait + p.Receive
			if math.Abs(sum-e.Time) > 0.01 || e.Time < 0 || e.Response.Status == 200 && p.Wait <= 0 {
				t.Errorf("%s: %+v, in sum %g", test.url, p, e.Time)
			}
		}
		want := strings.NewReplacer("URL", s.URL, "FAR", far).Replace(test.want)
		if got != want && got != strings.Replace(want, "to /", "to "+s.URL+"/", 1) || test.size >= 0 && size != test.size {
			t.Errorf("%s:\n%.300s, %d bytes\nwant\n%s", test.url, got, size, want)
		}
	}
	list, err := run(t, c, Requests, RequestsParams{Limit: 30, Address: "from="})
	if err != nil || !strings.Contains(list.Text, " in frame "+s.URL+"/near") ||
		!strings.Contains(list.Text, " in frame "+far+"/far") {
		t.Errorf("%s\n%s", list.Text, exit(err))
	}
	id, _, _ := strings.Cut(list.Text, " ")
	if one, err := run(t, c, Requests, RequestsParams{ID: id, Limit: 1}); err != nil ||
		!strings.HasPrefix(one.Request.Frame, "frame ") {
		t.Errorf("%+v\n%s", one.Request, exit(err))
	}
}
