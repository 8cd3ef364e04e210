package tree

import (
	"fmt"
	"os"
	"regexp"
)

// Section is a part of a document that a command writes: the lines between <!-- NAME: written by `COMMAND` --> and
// <!-- /NAME -->.
type Section struct{ File, Name string }

func (s Section) find(text []byte) (begin, end int, err error) {
	m := regexp.MustCompile("(?s)<!-- " + s.Name + ": written by `[^\n]*` -->\n(.*?)<!-- /" + s.Name + " -->").
		FindSubmatchIndex(text)
	if m == nil {
		return 0, 0, fmt.Errorf("%s has no section %s: <!-- %s: written by `COMMAND` --> and <!-- /%s -->", s.File, s.Name,
			s.Name, s.Name)
	}
	return m[2], m[3], nil
}

// Read returns the content of the section.
func (s Section) Read() (string, error) {
	text, err := os.ReadFile(s.File)
	if err != nil {
		return "", err
	}
	begin, end, err := s.find(text)
	return string(text[begin:end]), err
}

// Write replaces the content of the section.
func (s Section) Write(content string) error {
	text, err := os.ReadFile(s.File)
	if err != nil {
		return err
	}
	begin, end, err := s.find(text)
	if err != nil {
		return err
	}
	return os.WriteFile(s.File, append(append(text[:begin:begin], content...), text[end:]...), 0o644)
}
