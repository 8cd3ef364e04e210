package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// task is what an agent is asked to do. Its check trusts no tool: it asks the site, or knows what a reply must contain.
type task struct {
	name  string
	asked string
	page  string
	check func(s *site, a *agent) outcome
}

var tasks = []task{
	{"title", "Open the page and say its title.", "title.html",
		says(func(s *site) []string { return []string{fmt.Sprintf("Harbour timetable %d", s.nonce)} })},
	{"login", "Log in as ada with the password secret, and say how you are greeted (Welcome, ..).", "login.html",
		says(func(s *site) []string { return []string{fmt.Sprintf("Welcome, Ada. You have %d letters", s.nonce)} })},
	{"list", "Delete the member Carl with the button Delete Carl.", "list.html",
		did(func(s *site) bool { return s.was("delete", "Carl") })},
	{"table", "Add up the amounts of all invoices.", "table.html",
		says(func(s *site) []string { return []string{fmt.Sprint(s.sum)} })},
	{"frames", "Enter the coupon SPRING and the card number 4111.", "frames.html",
		did(func(s *site) bool { return s.ended("coupon", "SPRING") && s.ended("card", "4111") })},
	{"shadow", "Press the button Renew.", "shadow.html",
		did(func(s *site) bool { return s.was("renew", "yes") })},
	{"dialogs", "Press Archive and confirm it; then press Rename and enter Spring.", "dialogs.html",
		did(func(s *site) bool { return s.was("archive", "true") && s.was("rename", "Spring") })},
	{"download", "Download the Report of March, and say where the file is.", "download.html", downloaded},
	{"failures", "Say which requests fail while the page loads, and which errors are in the console.", "failures.html",
		says(func(s *site) []string {
			return []string{fmt.Sprintf("/chart-%d.png", s.nonce), fmt.Sprintf("/rates-%d", s.nonce),
				fmt.Sprintf("rates missing %d", s.nonce), fmt.Sprintf("startTicker_%d is not defined", s.nonce)}
		})},
	{"worker", "Say the answer of the page (Answer: ..).", "worker.html",
		says(func(s *site) []string { return []string{fmt.Sprint(3*s.nonce + 1)} })},
	{"tab", "Follow the link Terms, and say the reference of the terms.", "tab.html",
		says(func(s *site) []string { return []string{fmt.Sprintf("Reference of these terms: %d", s.nonce)} })},
	{"upload", "Give the file to the field Photo.", "upload.html",
		did(func(s *site) bool { return s.was("upload", uploadName+": "+uploadText) })},
	{"drag", "Drag Letter to Archive.", "drag.html",
		did(func(s *site) bool { return s.was("drop", "Letter") })},
	{"canvas", "Click the point 120, 80 of the canvas.", "canvas.html",
		did(func(s *site) bool { return s.was("mark", "120,80") })},
	{"covered", "Press the button Order, or say what keeps you from it.", "covered.html", refused},
	{"slow", "Wait for the result of the page (Result: ..), and say it.", "slow.html",
		says(func(s *site) []string { return []string{fmt.Sprintf("Result: %d", s.nonce)} })},
	{"cards", "See what is on the page, then open the card Fern 417.", "cards.html",
		did(func(s *site) bool { return s.was("of", "416") })},
}

// leaving are tasks that may leave something in the browser: a tab, or a listener of Playwright.
var leaving = []string{"dialogs", "tab"}

// The file that agents upload.
const (
	uploadName = "photo.txt"
	uploadText = "a photo"
)

// says checks that the agent has read some texts.
func says(want func(s *site) []string) func(s *site, a *agent) outcome {
	return func(s *site, a *agent) outcome {
		for _, text := range want(s) {
			if !strings.Contains(a.read(), text) {
				return failed
			}
		}
		if a.err != nil {
			return failed
		}
		return succeeded
	}
}

// doubt is how tools tell that an action which succeeded may have had no effect.
var doubt = regexp.MustCompile(`no change seen`)

// did checks what the site knows.
func did(done func(s *site) bool) func(s *site, a *agent) outcome {
	return func(s *site, a *agent) outcome {
		switch {
		case a.err != nil:
			return failed
		case done(s):
			return succeeded
		case doubt.MatchString(a.read()):
			return failed
		}
		return silent
	}
}

// refused checks that the tool names what covers a button, if it did not get it out of the way.
func refused(s *site, a *agent) outcome {
	last := a.log[len(a.log)-1].read // earlier replies may show the page
	switch {
	case s.was("order", "yes"):
		return succeeded
	case strings.Contains(last, "cookie-notice") || strings.Contains(last, "We use cookies"):
		return succeeded
	case a.err != nil || doubt.MatchString(last):
		return failed
	}
	return silent
}

// pathLike matches words that may be paths.
var pathLike = regexp.MustCompile(`[\w./~@+-]*[\w-]`)

// downloaded checks that a path which the agent wrote or read leads to the file.
func downloaded(s *site, a *agent) outcome {
	line := strings.Split(s.reportText(), "\n")[1]
	for _, e := range a.log {
		for _, word := range pathLike.FindAllString(e.wrote+"\n"+e.read, -1) {
			if !filepath.IsAbs(word) {
				word = filepath.Join(filepath.Dir(a.upload), word)
			}
			if content, err := os.ReadFile(word); err == nil && strings.Contains(string(content), line) && a.err == nil {
				return succeeded
			}
		}
	}
	return failed
}
