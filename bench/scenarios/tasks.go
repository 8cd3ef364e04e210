package main

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// task is what the model is asked to do, and how to tell that it is done.
type task struct {
	name, kind string
	asked      string   // URL is the address of the site, with a slash at its end
	wants      []string // all of these are in the answer, without regard to case and spaces
	posted     string   // the form that the site has to receive; "" for none
}

// kinds are the kinds of tasks: the four scenarios of the guide to the documentation modes, and for each shipped plugin
// one normal, one complex and one edge task.
var kinds = []string{"scenario", "normal", "complex", "edge"}

func tasks() []task {
	const (
		simple = "Fishing grounds 417"
		title  = "Harbour timetable 83"
		coded  = "ferry & crew <2>"
		dates  = "Sailed 3.11.2026, back 24.11.2026."
		iso    = "Sailed 2026-11-03, back 2026-11-24."
	)
	return []task{
		{"simple", "scenario", `What is the SHA-256 digest of the text "` + simple + `"?`, wants(sha256Of(simple)), ""},
		{"several tools", "scenario", `Open the page URL. Answer with its title, the MD5 digest of the title, the text "` +
			coded + `" as base64, and the JSON Patch that leads from {"berth":4,"free":true} to {"berth":7}.`,
			wants(title, md5Of(title), base64Of(coded), `"remove"`, `"/free"`, `"replace"`, `"/berth"`), ""},
		recovery(),
		long(),

		{"text normal", "normal", `How many words and how many characters has the text "the quay, the quayside and the ` +
			`quaestor  -  naïve façades"?`, wants("10", "57"), ""},
		{"text complex", "complex", `In the text "` + dates + `" write every date as YYYY-MM-DD with two digits for month ` +
			`and day. Answer with the new text, its SHA-1 digest, and the digest as base64 of its hex form.`,
			wants(iso, sha1Of(iso), base64Of(sha1Of(iso))), ""},
		{"text edge", "edge", `Find all matches of the regular expression "(berth|quay" in the text "berth 4, quay 7". If ` +
			`the tool refuses the expression, answer with the reason that it gives, and do not correct the expression.`,
			wants("missing closing )"), ""},

		{"json normal", "normal", `With a tool for JSON, compute the sum of quantity times price of [{"quantity":37,` +
			`"price":19.25},{"quantity":112,"price":3.4},{"quantity":9,"price":208.5}].`, wants("2969.55"), ""},
		{"json complex", "complex", `The configuration is {"port":8080,"log":{"level":"info","file":"a.log"},"hosts":` +
			`["a","b"]}. Merge the overrides {"log":{"file":null,"level":"debug"},"port":9090} into it (null removes), ` +
			`convert the result to YAML, and count the operations of the JSON Patch from the original to the result. ` +
			`Answer with the YAML and the count.`, wants("level:debug", "port:9090", "-a", "3"), ""},
		{"json edge", "edge", `Convert this YAML to JSON, and if that is not possible, answer with the number of the line ` +
			`that the tool names and with its reason; do not mend the YAML. The YAML, with \n for line ends and \t for ` +
			`tabs: "quay: 1\nberths:\n\t- 2\n"`, wants("3", "character"), ""},

		{"js normal", "normal", `With one program that calls the tools itself, compute the MD5 digest of each of the texts ` +
			`pier-1, pier-2, pier-3, pier-4 and pier-5, and answer with the first 8 digits of each.`, piers(5), ""},
		greatest(),
		{"js edge", "edge", `Run the JavaScript program "while (true) {}" with a time limit of two seconds, once and as it ` +
			`is. Answer with the message of the error.`, wants("did not end within 2s"), ""},

		{"page normal", "normal", `Open URLlogin, sign in as ada with the password tide-9, and answer with the greeting ` +
			`that the page shows then.`, wants("Welcome, Ada. You have 31 letters"), "user=ada&password=tide-9"},
		{"page complex", "complex", `The invoices at URLinvoices fill several pages. Answer with the sum of all amounts ` +
			`and with the customer of the largest one.`, wants(invoiceSum(), "Gerda"), ""},
		{"page edge", "edge", `Open URLorder and press the button Order. If something prevents that, change nothing on ` +
			`the page, and answer with the id of the element that is in the way.`, wants("storm-warning"), ""},

		{"cdp normal", "normal", `Open URLlogin. With the tools of plugin cdp only, answer with the value of the cookie ` +
			`named harbour, which scripts of the page cannot read.`, wants("blue-17"), ""},
		{"cdp complex", "complex", `With the tools of plugin cdp only: override the metrics of the device with a width of ` +
			`400, a height of 300 and a scale factor of 2, open URLsize, and answer with the text that the page shows.`,
			wants("400x300@2"), ""},
		{"cdp edge", "edge", `With the tools of plugin cdp only: ask Chrome for the box model of the element #hidden of ` +
			`URLsize. Answer with the box, or with the reason that Chrome gives if there is none.`,
			wants("could not compute box model"), ""},
	}
}

// recovery is the scenario of calls that fail.
func recovery() task {
	return task{name: "error recovery", kind: "scenario", asked: `These five calls are from an old version of the tools. ` +
		`Make each exactly as it is here first, and when it fails, as it must be now; answer with the five results.
text.hash {"txt":"gull"}
text.encode {"text":"mast & sail","to":"baes64"}
json.query {"data":{"a":[14,29]},"filter":[".a[1]"]}
text.count {"params":{"text":"one two three"}}
text.replace {"text":"oar oaar","pattern":"a+","replace":"x"}`,
		wants: []string{sha256Of("gull"), base64Of("mast & sail"), "29", "3", "oxr oxr"}}
}

// long is the scenario of many calls.
func long() task {
	t := task{name: "long session", kind: "scenario"}
	var b strings.Builder
	b.WriteString("Do these jobs in their order, at most four in one reply, and answer with all results:\n")
	for i := range 5 {
		text := fmt.Sprintf("buoy %d of %d", i+3, 7*i+11)
		fmt.Fprintf(&b, "SHA-1 of the text %q; the text %q as hex; the text %q with every vowel replaced by *; the sum of "+
			"the numbers of the JSON [%d,%d,%d]\n", text, text, text, i*131+7, i*17+900, 5-i)
		t.wants = append(t.wants, sha1Of(text), fmt.Sprintf("%x", text),
			strings.NewReplacer("u", "*", "o", "*").Replace(text), strconv.Itoa(i*131+7+i*17+900+5-i))
	}
	t.asked = b.String()
	return t
}

// greatest is a task that takes forty calls, and their results only to compare them.
func greatest() task {
	at, top := 0, ""
	for i := range 40 {
		if sum := md5Of(fmt.Sprintf("n=%d", i+1)); sum > top {
			at, top = i+1, sum
		}
	}
	return task{name: "js complex", kind: "complex", asked: "Take the MD5 digests of the texts n=1, n=2 and so on to " +
		"n=40. Which text has the greatest digest, in alphabetical order of the hex form? Answer with the text and its " +
		"digest.",
		wants: []string{fmt.Sprintf("n=%d", at), top}}
}

func sha256Of(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
func sha1Of(text string) string   { return fmt.Sprintf("%x", sha1.Sum([]byte(text))) }
func md5Of(text string) string    { return fmt.Sprintf("%x", md5.Sum([]byte(text))) }

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func wants(texts ...string) []string { return texts }

// piers returns the beginnings of the digests of pier-1, pier-2 and so on.
func piers(n int) (all []string) {
	for i := range n {
		all = append(all, md5Of(fmt.Sprintf("pier-%d", i+1))[:8])
	}
	return all
}

// isDone reports whether the answer has all that the task wants, and the site got what it wants.
func (t *task) isDone(answer string, s *site) bool {
	plain := func(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), "")) }
	for _, want := range t.wants {
		if !strings.Contains(plain(answer), plain(want)) {
			return false
		}
	}
	return t.posted == "" || s.got(t.posted)
}

// onPage reports whether a task is about a page of the site.
func (t *task) onPage() bool { return strings.Contains(t.asked, "URL") }

// site serves the pages of the tasks on the loopback interface.
type site struct {
	address string
	server  *http.Server
	mu      sync.Mutex
	posted  []string
}

func serve() (*site, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &site{address: listener.Addr().String()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", page("Harbour timetable 83", "<h1>Timetable</h1>"))
	mux.HandleFunc("GET /login", s.login)
	mux.HandleFunc("POST /session", s.session)
	mux.HandleFunc("GET /invoices", invoices)
	mux.HandleFunc("GET /order", page("Order", orderPage))
	mux.HandleFunc("GET /size", page("Size", sizePage))
	s.server = &http.Server{Handler: mux}
	go s.server.Serve(listener)
	return s, nil
}

func (s *site) close() { s.server.Close() }

func (s *site) got(form string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.posted, form)
}

func page(title, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!doctype html><title>%s</title><link rel=icon href=data:,>%s", title, body)
	}
}

// The pages of the tasks. The one of the login renders its form again with each key, as frameworks do.
const (
	loginPage = `<div id=app></div><script>
const fields = {user: "", password: ""};
function render() {
  const focused = document.activeElement && document.activeElement.name;
  app.innerHTML = '<h1>Sign in</h1><label>User <input name=user></label><label>Password <input name=password ' +
    'type=password></label><button>Sign in</button>';
  for (const input of app.querySelectorAll("input")) {
    input.value = fields[input.name];
    input.oninput = () => { fields[input.name] = input.value; render(); };
    if (input.name === focused) { input.focus(); input.setSelectionRange(99, 99); }
  }
  app.querySelector("button").onclick = async () => {
    const reply = await fetch("session", {method: "POST", body: new URLSearchParams(fields)});
    app.textContent = await reply.text();
  };
}
render();</script>`
	orderPage = `<p>Rope, 20 m</p><button onclick="fetch('ordered')">Order</button>
<div id=storm-warning style="position:fixed;inset:0;background:#fffc"><p>Gale force 9</p></div>`
	sizePage = `<p id=size></p><p id=hidden style="display:none">below deck</p><script>
size.textContent = innerWidth + "x" + innerHeight + " @ " + devicePixelRatio</script>`
)

func (s *site) login(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: "harbour", Value: "blue-17", HttpOnly: true})
	page("Sign in", loginPage)(w, r)
}

func (s *site) session(w http.ResponseWriter, r *http.Request) {
	user, password := r.PostFormValue("user"), r.PostFormValue("password")
	s.mu.Lock()
	s.posted = append(s.posted, "user="+user+"&password="+password)
	s.mu.Unlock()
	if user != "ada" || password != "tide-9" {
		fmt.Fprint(w, "Wrong user or password.")
		return
	}
	fmt.Fprint(w, "Welcome, Ada. You have 31 letters.")
}

// amounts are those of the invoices, perPage on each page. The largest is Gerda's.
var amounts = func() (all []int) {
	for i := range 34 {
		all = append(all, 100+(i*7919)%883)
	}
	all[19] = 1204
	return all
}()

const perPage = 8

func invoiceSum() string {
	sum := 0
	for _, a := range amounts {
		sum += a
	}
	return strconv.Itoa(sum)
}

func invoices(w http.ResponseWriter, r *http.Request) {
	at, _ := strconv.Atoi(r.FormValue("page"))
	at = max(1, at)
	var b strings.Builder
	b.WriteString("<h1>Invoices</h1><table><tr><th>Number<th>Customer<th>Amount")
	for i := (at - 1) * perPage; i < min(at*perPage, len(amounts)); i++ {
		customer := []string{"Ada", "Bob", "Carl"}[i%3]
		if i == 19 {
			customer = "Gerda"
		}
		fmt.Fprintf(&b, "<tr><td>I-%03d<td>%s<td>%d", i+1, customer, amounts[i])
	}
	b.WriteString("</table>")
	if at*perPage < len(amounts) {
		fmt.Fprintf(&b, "<a href='?page=%d'>Next page</a>", at+1)
	}
	page("Invoices", b.String())(w, r)
}
