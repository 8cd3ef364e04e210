package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// jobRuns is how often a job is done at most: its tokens hardly differ from run to run.
const jobRuns = 3

// jobs are larger tasks. A tool may have no way to do one: then it has no script.
var jobs = []task{
	{"rows", "Give the 120 rows of the table, on 6 pages, as a JSON list of number, customer and amount: as your reply, " +
		"or in a file.", "table.html?pages=6&per=20", holds(inJSON)},
	{"busy", "Say which function keeps the page busy for so long while it loads.", "busy.html", holds(blamed)},
	{"form", "Fill in the order: Delivery Post, Day 2026-12-24, the file as Label, Card number 4111. Press Order.",
		"order.html", did(func(s *site) bool {
			return s.was("order", "post,2026-12-24,"+uploadName+","+uploadText) && s.ended("card", "4111")
		})},
	{"hash", "Download the Archive of March, and say the SHA-256 of the file.", "archive.html",
		says(func(s *site) []string { return []string{fmt.Sprintf("%x", sha256.Sum256(s.archive()))} })},
	{"users", "Sign in as ada and as bob at once: User, Password secret, button Sign in. Then ada posts the Note Lunch " +
		"with the button Post, then bob Yes, then ada Good.", "board", did(func(s *site) bool {
		return len(s.values("login")) == 2 && s.was("note", "ada: Lunch", "bob: Yes", "ada: Good")
	})},
	{"stock", "Say the SKUs of the items in /stock.json (5 MB) that are sold out and cost more than 900.", "stock.html",
		says((*site).sought)},
	{"watch", "Say the price when it changes.", "price.html",
		says(func(s *site) []string { return []string{fmt.Sprint(s.nonce)} })},
	{"error", "Press Pay. Say the error that this causes, the functions on its stack, and the request that failed, with " +
		"its status.", "pay.html", says(func(s *site) []string {
		return []string{"Cannot read properties of null (reading 'total')", fmt.Sprintf("renderTotal_%d", s.nonce),
			fmt.Sprintf("showReceipt_%d", s.nonce), fmt.Sprintf("/pay-%d", s.nonce), "503"}
	})},
	{"picture", "Take a picture of #poster, press Next edition, take another, and say which box of it has changed.",
		"poster.html", holds(boxed)},
	{"restart", "Sign in: User ada, Password secret. Restart the browser, and open the page again without signing in.",
		"board", did(func(s *site) bool { return s.was("login", "ada") && s.ended("visit", "ada:new") })},
	{"mock", "Open the page with images blocked and with the reply {\"left\": 0} for /api/left.", "shop.html",
		did(func(s *site) bool { return s.ended("left", "0") && s.ended("request", "page") })},
	{"article", "Give the article as Markdown, without what is around it.", "article.html", holds(asMarkdown)},
	{"program", "The page has invoices as JSON in a <pre>: a list of {number, customer, amount}. Say the SHA-256 of " +
		"the line Ada=SUM Bob=SUM Carl=SUM of the amounts of each.", "listed",
		says(func(s *site) []string { return []string{fmt.Sprintf("%x", sha256.Sum256([]byte(s.sums())))} })},
}

// results returns what the tool has printed, and the content of files in the folder of the agent.
func (a *agent) results() string {
	all := []string{a.read()}
	names, _ := filepath.Glob(filepath.Join(filepath.Dir(a.upload), "*"))
	for _, name := range names {
		content, _ := os.ReadFile(name) // folders have none
		all = append(all, string(content))
	}
	return strings.Join(all, "\n")
}

// last returns the reply to the last call, or "" after a failure.
func (a *agent) last() string {
	if a.err != nil || len(a.log) == 0 {
		return ""
	}
	return a.log[len(a.log)-1].read
}

// holds checks what a job results in, where a failure is told by what is missing.
func holds(right func(s *site, a *agent) bool) func(*site, *agent) outcome {
	return func(s *site, a *agent) outcome {
		if a.err == nil && right(s, a) {
			return succeeded
		}
		return failed
	}
}

// inJSON reports whether a reply or a file has all rows, in any layout.
func inJSON(s *site, a *agent) bool {
	got := regexp.MustCompile(`\\n|[\s\\]`).ReplaceAllString(a.results(), "")
	for i := range 120 {
		one := s.invoice(i)
		number, rest := fmt.Sprintf(`"number":"%s"`, one.Number), fmt.Sprintf(`"customer":"%s"`, one.Customer)
		amount := fmt.Sprintf(`"amount":%d`, one.Amount)
		if !strings.Contains(got, "{"+number+","+rest+","+amount+"}") &&
			!strings.Contains(got, "{"+amount+","+rest+","+number+"}") { // members in the order of names
			return false
		}
	}
	return true
}

// blamed reports whether the last reply names the slow function, and none that is fast.
func blamed(_ *site, a *agent) bool {
	return strings.Contains(a.last(), "indexPrices_") && !strings.Contains(a.last(), "drawMenu_")
}

// boxed reports whether the last reply has the edges of the box that changed, within two pixels.
func boxed(s *site, a *agent) bool {
	x, y := s.nonce%500, s.nonce%300
	seen := regexp.MustCompile(`\d+`).FindAllString(a.last(), -1)
	for _, either := range [][]int{{x}, {y}, {60, x + 60}, {40, y + 40}} {
		if !slices.ContainsFunc(seen, func(text string) bool {
			n, _ := strconv.Atoi(text)
			return slices.ContainsFunc(either, func(edge int) bool { return n >= edge-2 && n <= edge+2 })
		}) {
			return false
		}
	}
	return true
}

// asMarkdown reports whether the last reply has each kind of block of the article, and nothing from around it.
func asMarkdown(s *site, a *agent) bool {
	got := regexp.MustCompile(`[ \t]+`).ReplaceAllString(a.last(), " ")
	for _, want := range []string{`# Tides of the bay`, `\*\*\d+ millimetres\*\*`, `\[chart of the\s*(\\n)?bay\]\(`,
		`## When to sail`, `[-*] Bring a lamp`, `\| Monday \| 11:20 \|`, "```", fmt.Sprint("11:00 ", s.nonce)} {
		if !regexp.MustCompile(want).MatchString(got) {
			return false
		}
	}
	return !strings.Contains(got, "Subscribe") && !strings.Contains(got, "Imprint")
}
