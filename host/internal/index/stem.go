package index

// stem returns the stem of an English word in lower case by the Porter2 (Snowball English) algorithm. It returns words
// that are not plain ASCII letters unchanged.
func stem(word string) string {
	if len(word) < 3 || len(word) > maxTerm {
		return word
	}
	for i := 0; i < len(word); i++ {
		if c := word[i]; (c < 'a' || c > 'z') && c != '\'' {
			return word
		}
	}
	switch word {
	case "skis":
		return "ski"
	case "skies":
		return "sky"
	case "dying":
		return "die"
	case "lying":
		return "lie"
	case "tying":
		return "tie"
	case "idly":
		return "idl"
	case "gently":
		return "gentl"
	case "ugly":
		return "ugli"
	case "early":
		return "earli"
	case "only":
		return "onli"
	case "singly":
		return "singl"
	case "sky", "news", "howe", "atlas", "cosmos", "bias", "andes":
		return word
	}
	s := stemmer{b: append(make([]byte, 0, maxTerm+2), word...)}
	s.prepare()
	s.step0()
	s.step1a()
	switch string(s.b) {
	case "inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed":
		return string(s.b)
	}
	s.step1b()
	s.step1c()
	s.step2()
	s.step3()
	s.step4()
	s.step5()
	for i, c := range s.b {
		if c == 'Y' {
			s.b[i] = 'y'
		}
	}
	return string(s.b)
}

// stemmer is the state of stemming one word. r1 and r2 are the offsets of its regions, and Y is a y that stands for a
// consonant.
type stemmer struct {
	b      []byte
	r1, r2 int
}

func vowel(c byte) bool {
	return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u' || c == 'y'
}

func (s *stemmer) prepare() {
	if s.b[0] == '\'' {
		s.b = s.b[1:]
	}
	for i, c := range s.b {
		if c == 'y' && (i == 0 || vowel(s.b[i-1])) {
			s.b[i] = 'Y'
		}
	}
	s.r1 = s.region(0)
	for _, p := range [...]string{"gener", "commun", "arsen"} {
		if len(s.b) >= len(p) && string(s.b[:len(p)]) == p {
			s.r1 = len(p)
		}
	}
	s.r2 = s.region(s.r1)
}

// region returns the offset of the part after the first consonant that follows a vowel, searching from i on.
func (s *stemmer) region(i int) int {
	for i++; i < len(s.b); i++ {
		if !vowel(s.b[i]) && vowel(s.b[i-1]) {
			return i + 1
		}
	}
	return len(s.b)
}

func (s *stemmer) ends(suffix string) bool {
	return len(s.b) >= len(suffix) && string(s.b[len(s.b)-len(suffix):]) == suffix
}

// inR1 and inR2 report whether the last n bytes are in the region.
func (s *stemmer) inR1(n int) bool { return len(s.b)-n >= s.r1 }
func (s *stemmer) inR2(n int) bool { return len(s.b)-n >= s.r2 }

func (s *stemmer) replace(n int, by string) { s.b = append(s.b[:len(s.b)-n], by...) }

// hasVowel reports whether there is a vowel before the last n bytes.
func (s *stemmer) hasVowel(n int) bool {
	for _, c := range s.b[:len(s.b)-n] {
		if vowel(c) {
			return true
		}
	}
	return false
}

// shortSyllable reports whether the word up to end ends with a short syllable.
func (s *stemmer) shortSyllable(end int) bool {
	b := s.b[:end]
	switch n := len(b); {
	case n == 2:
		return vowel(b[0]) && !vowel(b[1])
	case n > 2:
		c := b[n-1]
		return !vowel(b[n-3]) && vowel(b[n-2]) && !vowel(c) && c != 'w' && c != 'x' && c != 'Y'
	}
	return false
}

func (s *stemmer) step0() {
	for _, suffix := range [...]string{"'s'", "'s", "'"} {
		if s.ends(suffix) {
			s.replace(len(suffix), "")
			return
		}
	}
}

func (s *stemmer) step1a() {
	switch {
	case s.ends("sses"):
		s.replace(4, "ss")
	case s.ends("ied"), s.ends("ies"):
		if len(s.b) > 4 {
			s.replace(3, "i")
		} else {
			s.replace(3, "ie")
		}
	case s.ends("us"), s.ends("ss"):
	case s.ends("s"):
		if len(s.b) > 2 && s.hasVowel(2) {
			s.replace(1, "")
		}
	}
}

func (s *stemmer) step1b() {
	for _, suffix := range [...]string{"eedly", "eed"} {
		if s.ends(suffix) {
			if s.inR1(len(suffix)) {
				s.replace(len(suffix), "ee")
			}
			return
		}
	}
	for _, suffix := range [...]string{"ingly", "edly", "ing", "ed"} {
		if !s.ends(suffix) {
			continue
		}
		if !s.hasVowel(len(suffix)) {
			return
		}
		s.replace(len(suffix), "")
		n := len(s.b)
		switch {
		case s.ends("at"), s.ends("bl"), s.ends("iz"):
			s.b = append(s.b, 'e')
		case n > 1 && s.b[n-1] == s.b[n-2] && double(s.b[n-1]):
			s.replace(1, "")
		case s.r1 >= n && s.shortSyllable(n):
			s.b = append(s.b, 'e')
		}
		return
	}
}

func double(c byte) bool {
	switch c {
	case 'b', 'd', 'f', 'g', 'm', 'n', 'p', 'r', 't':
		return true
	}
	return false
}

func (s *stemmer) step1c() {
	n := len(s.b)
	if n > 2 && (s.b[n-1] == 'y' || s.b[n-1] == 'Y') && !vowel(s.b[n-2]) {
		s.b[n-1] = 'i'
	}
}

// rule replaces one ending with another. In each table the longest endings come first.
type rule struct{ from, to string }

var step2 = [...]rule{
	{"ational", "ate"}, {"fulness", "ful"}, {"iveness", "ive"}, {"ization", "ize"}, {"ousness", "ous"},
	{"biliti", "ble"}, {"lessli", "less"}, {"tional", "tion"},
	{"alism", "al"}, {"aliti", "al"}, {"ation", "ate"}, {"entli", "ent"}, {"fulli", "ful"}, {"iviti", "ive"},
	{"ousli", "ous"},
	{"abli", "able"}, {"alli", "al"}, {"anci", "ance"}, {"ator", "ate"}, {"enci", "ence"}, {"izer", "ize"},
	{"bli", "ble"}, {"ogi", "og"}, {"li", ""},
}

func (s *stemmer) step2() {
	for _, r := range step2 {
		if !s.ends(r.from) {
			continue
		}
		n := len(r.from)
		if !s.inR1(n) {
			return
		}
		before := byte(0)
		if len(s.b) > n {
			before = s.b[len(s.b)-n-1]
		}
		switch r.from {
		case "ogi":
			if before != 'l' {
				return
			}
		case "li":
			switch before {
			case 'c', 'd', 'e', 'g', 'h', 'k', 'm', 'n', 'r', 't':
			default:
				return
			}
		}
		s.replace(n, r.to)
		return
	}
}

var step3 = [...]rule{
	{"ational", "ate"}, {"tional", "tion"}, {"alize", "al"}, {"ative", ""}, {"icate", "ic"}, {"iciti", "ic"},
	{"ical", "ic"}, {"ness", ""}, {"ful", ""},
}

func (s *stemmer) step3() {
	for _, r := range step3 {
		if !s.ends(r.from) {
			continue
		}
		if n := len(r.from); s.inR1(n) && (r.from != "ative" || s.inR2(n)) {
			s.replace(n, r.to)
		}
		return
	}
}

var step4 = [...]string{
	"ement", "able", "ance", "ence", "ible", "ment", "ant", "ate", "ent", "ion", "ism", "iti", "ive", "ize", "ous", "al",
	"er", "ic",
}

func (s *stemmer) step4() {
	for _, suffix := range step4 {
		if !s.ends(suffix) {
			continue
		}
		n := len(suffix)
		if !s.inR2(n) {
			return
		}
		if suffix == "ion" {
			if before := s.b[:len(s.b)-n]; len(before) == 0 || before[len(before)-1] != 's' && before[len(before)-1] != 't' {
				return
			}
		}
		s.replace(n, "")
		return
	}
}

func (s *stemmer) step5() {
	switch {
	case s.ends("e"):
		if s.inR2(1) || s.inR1(1) && !s.shortSyllable(len(s.b)-1) {
			s.replace(1, "")
		}
	case s.ends("l"):
		if s.inR2(1) && len(s.b) > 1 && s.b[len(s.b)-2] == 'l' {
			s.replace(1, "")
		}
	}
}
