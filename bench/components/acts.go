package main

import "strings"

// act is what an agent does with a component, by the names that it reads on the page.
type act struct {
	name  string
	steps [][]string // verbs of page and their words
	right string     // an expression of JavaScript on what the page reports, for a person who sees the act succeed
}

// The words that a step has in place of those that differ.
const (
	stars  = "STARS"  // the third star of a rating, which each library names in its own way
	volume = "Volume" // the slider
	file   = "note.txt"
)

var acts = []act{
	{"checkbox, by its label", [][]string{{"click", "text=News"}}, "seen.checkbox === true"},
	{"checkbox", [][]string{{"check", "News"}}, "seen.checkbox === true"},
	{"radio", [][]string{{"check", "Plan B"}}, "seen.radio === 'b'"},
	{"radio, by its label", [][]string{{"click", "text=Plan B"}}, "seen.radio === 'b'"},
	{"buttons", [][]string{{"click", "Week"}}, "seen.buttons === 'week'"},
	{"switch", [][]string{{"check", "Wifi"}}, "seen.switch === true"},
	{"select", [][]string{{"select", "Country", "Sweden"}}, "seen.select === 'se'"},
	{"select, by clicks", [][]string{{"click", "Country"}, {"click", "Sweden"}}, "seen.select === 'se'"},
	{"combobox", [][]string{{"fill", "Fruit", "Ban"}, {"click", "Banana"}}, "seen.combobox === 'Banana'"},
	{"date", [][]string{{"fill", "Due", "2026-03-04"}}, "seen.date === '2026-03-04'"},
	{"menu", [][]string{{"click", "Actions"}, {"click", "Archive"}}, "seen.menu === true"},
	{"dialog", [][]string{{"click", "Delete"}, {"click", "Yes"}}, "seen.dialog === true"},
	{"tabs", [][]string{{"click", "Two"}}, "seen.tabs === 'Two'"},
	{"slider", [][]string{{"fill", volume, "60"}}, "seen.slider === 60"},
	{"slider, by a key", [][]string{{"press", "ArrowRight", volume}}, "seen.slider === 31"},
	{"rating", [][]string{{"click", stars}}, "Number(seen.rating) === 3"},
	{"upload", [][]string{{"upload", "Upload file", file}}, "seen.upload === 1"},
	{"tooltip", [][]string{{"hover", "Info"}}, "seen.tooltip"},
	{"accordion", [][]string{{"click", "More"}}, "seen.accordion === true"},
	{"sort", [][]string{{"click", "Price"}}, "seen.sort === true"},
}

// library is a component library with a page in the folder pages.
type library struct {
	name    string
	without string // the reports that its page has no component for
	stars   string // see stars
	volume  string // what its slider is called, if it takes no name
}

// Parley's acts were once improved by what failed on known ones. Nobody looked at fresh ones meanwhile.
var (
	known = []library{
		{name: "bootstrap.js", without: "combobox rating sort"},
		{name: "mui.jsx", stars: "3 Stars"},
		{name: "antd.jsx", stars: "css=.ant-rate-star:nth-child(3)"},
		{name: "element.js", stars: "css=.el-rate span:nth-child(3)"},
		{name: "shoelace.js", without: "combobox upload sort", stars: "Stars"},
		{name: "daisy.js", without: "combobox sort", stars: "3 star"},
		{name: "flowbite.js", without: "buttons combobox rating sort"},
		{name: "radix.jsx", without: "combobox date rating upload sort"},
		{name: "headless.jsx", without: "buttons date slider rating upload tooltip sort"},
		{name: "aria.jsx", without: "rating"},
		{name: "mantine.jsx", without: "sort", stars: "css=[type=radio][value='3']"},
		{name: "fluent.js", without: "buttons rating upload sort"},
		{name: "primereact.jsx", stars: "css=.p-rating-item:nth-child(3)"},
		{name: "vuetify.js", stars: "Rating 3 of 5"},
		{name: "rsuite.jsx", stars: "css=.rs-rate-character:nth-child(3)"},
		{name: "naive.js", stars: "css=.n-rate__item:nth-child(3)", volume: "role=slider"},
		{name: "carbon.jsx", without: "rating"},
	}
	fresh = []library{
		{name: "quasar.js", stars: "css=.q-rating__icon-container:nth-child(3)"},
		{name: "chakra.jsx", without: "sort", stars: "3 stars"},
		{name: "blueprint.jsx", without: "rating sort"},
		{name: "ionic.js", without: "combobox rating upload tooltip sort"},
	}
)

// title returns the name of the library.
func (l library) title() string {
	name, _, _ := strings.Cut(l.name, ".")
	return name
}

// report returns the property of seen that an act is judged by.
func (a act) report() string {
	_, property, _ := strings.Cut(a.right, "seen.")
	name, _, _ := strings.Cut(property, " ")
	return strings.TrimSuffix(name, ")")
}

// outcome is what became of an act.
type outcome byte

const (
	right       outcome = '.'
	byNext      outcome = 'n' // a step was refused, and the call that the refusal suggests does it
	refused     outcome = 'R'
	wrong       outcome = 'W' // each step says that it succeeded, and a person would see that the act did not
	misreported outcome = 'e' // a step says that it failed, and a person would see that the act succeeded
	absent      outcome = ' ' // the library has no such component
)

// judge returns what became of an act. A refused step is one that neither succeeded itself nor by the suggested call.
func judge(isRefused, suggested, isRight bool) outcome {
	switch {
	case isRefused && isRight:
		return misreported
	case isRefused:
		return refused
	case !isRight:
		return wrong
	case suggested:
		return byNext
	}
	return right
}
