package environment

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/page"
)

// Limits of the source maps that a call reads: the number of scripts, the time, and the bytes of each map.
const (
	maxMaps  = 10
	mapTime  = 3 * time.Second
	maxBytes = 16 << 20
)

// findSources replaces the positions of calls in messages by positions in the sources of their scripts. leftOut names
// the scripts whose maps it could not read.
func findSources(v *page.Visit, messages []*message) (leftOut string) {
	calls := map[string][]*callFrame{}
	for _, m := range messages {
		for at := &m.at; at != nil; at = at.Parent {
			for i := range at.Frames {
				calls[at.Frames[i].URL] = append(calls[at.Frames[i].URL], &at.Frames[i])
			}
		}
	}
	if len(calls) == 0 {
		return ""
	}
	ctx := v.Ctx
	defer func() { v.Ctx = ctx }()
	var cancel context.CancelFunc
	v.Ctx, cancel = context.WithTimeoutCause(ctx, v.Within(mapTime), fmt.Errorf("it was not read within %s", mapTime))
	defer cancel()
	var left []string
	read := 0
	for _, x := range slices.Backward(exchanges(v, true)) {
		of := calls[x.sent.URL]
		if x.kind != "Script" || len(of) == 0 || read == maxMaps {
			continue
		}
		delete(calls, x.sent.URL)
		if err := x.findSources(v, of); err != nil {
			left = append(left, fmt.Sprintf("source map of %s: %v", shortURL(x.sent.URL), cmp.Or(context.Cause(v.Ctx), err)))
		}
		read++
	}
	return strings.Join(left, "; ")
}

// findSources replaces the positions of calls in a script by positions in its sources, if it has a map.
func (x *exchange) findSources(v *page.Visit, calls []*callFrame) error {
	_, script := x.bodies(v)
	const comment = "//# sourceMappingURL="
	name := headerOf(x.Headers, "sourcemap")
	if at := strings.LastIndex(script.text, comment); at >= 0 {
		name, _, _ = strings.Cut(script.text[at+len(comment):], "\n")
	}
	base, err := url.Parse(x.sent.URL)
	if name = strings.TrimSpace(name); err != nil || name == "" {
		return err
	}
	at, err := base.Parse(name)
	if err != nil {
		return errors.New("its address is not valid")
	}
	file, err := readMap(v, base, at)
	var m sourceMap
	if err == nil {
		err = json.Unmarshal(bytes.TrimPrefix(file, []byte(")]}'")), &m)
	}
	found := map[*callFrame]callFrame{}
	if err == nil {
		err = m.find(calls, found)
	}
	if at.Scheme == "data" {
		at = base
	}
	for call, source := range found {
		if in, err := at.Parse(source.URL); err == nil { // otherwise it may contain any characters
			source.URL = in.String()
			*call = source
		}
	}
	return err
}

// readMap returns the file of a source map. It is contained in the address, or served by the origin of both the
// script and the page.
func readMap(v *page.Visit, script, at *url.URL) ([]byte, error) {
	if kind, data, ok := strings.Cut(at.Opaque, ","); at.Scheme == "data" && ok {
		if strings.HasSuffix(kind, ";base64") {
			return base64.StdEncoding.DecodeString(data)
		}
		text, err := url.PathUnescape(data)
		return []byte(text), err
	}
	here, err := url.Parse(v.URL(""))
	if err != nil || at.Host != script.Host || at.Host != here.Host || at.Scheme != here.Scheme {
		return nil, errors.New("it is of another origin")
	}
	var got struct {
		Resource struct {
			Success bool
			Status  int `json:"httpStatusCode"`
			Stream  string
		}
	}
	if err := v.Command("Network.loadNetworkResource", page.Object{"frameId": v.Page.ID, "url": at.String(),
		"options": page.Object{"disableCache": false, "includeCredentials": true}}, &got); err != nil {
		return nil, err
	}
	if got.Resource.Stream == "" || got.Resource.Status != 200 {
		return nil, fmt.Errorf("HTTP status %d", got.Resource.Status)
	}
	file, failed := readStream(v, got.Resource.Stream, maxBytes)
	if failed != nil {
		return nil, failed
	}
	return file, nil
}

// sourceMap maps positions in a script to positions in its sources (ECMA-426).
type sourceMap struct {
	SourceRoot string
	Sources    []string
	Mappings   string
	Sections   []struct {
		Offset struct{ Line, Column int }
		Map    sourceMap
	}
}

// find finds the sources of calls in a script. The map may not cover all of them.
func (m *sourceMap) find(calls []*callFrame, found map[*callFrame]callFrame) error {
	err := m.findFrom(0, 0, calls, found)
	for _, section := range m.Sections {
		from := section.Offset
		rest := slices.DeleteFunc(slices.Clone(calls), func(call *callFrame) bool {
			return call.Line < from.Line || call.Line == from.Line && call.Column < from.Column
		})
		for _, call := range rest { // the previous section ends here
			delete(found, call)
		}
		err = cmp.Or(err, section.Map.findFrom(from.Line, from.Column, rest, found))
	}
	return err
}

// findFrom is find for a map without sections, which begins at a position.
func (m *sourceMap) findFrom(line, column int, calls []*callFrame, found map[*callFrame]callFrame) error {
	byLine := map[int][]*callFrame{}
	for _, call := range calls {
		byLine[call.Line] = append(byLine[call.Line], call)
	}
	root := m.SourceRoot
	if root != "" && !strings.HasSuffix(root, "/") {
		root += "/"
	}
	var at [5]int // column, source, line and column in it, name: each is counted from the one before
	for group := range strings.SplitSeq(m.Mappings, ";") {
		at[0] = column
		for field := range strings.SplitSeq(group, ",") {
			count, err := addVLQ(&at, field)
			if err != nil {
				return err
			}
			for _, call := range byLine[line] {
				if at[0] > call.Column || count == 0 {
					continue
				}
				delete(found, call)
				if count >= 4 && at[1] >= 0 && at[1] < len(m.Sources) && at[2] >= 0 && at[3] >= 0 {
					found[call] = callFrame{call.Function, root + m.Sources[at[1]], at[2], at[3]}
				}
			}
		}
		line, column = line+1, 0
	}
	return nil
}

// addVLQ adds the numbers of a field to those in at, and returns how many numbers the field has.
func addVLQ(at *[5]int, field string) (count int, err error) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	value, shift := 0, 0
	for i := range len(field) {
		digit := strings.IndexByte(digits, field[i])
		if digit < 0 || shift > 30 || count == len(at) {
			return 0, fmt.Errorf("%q is not a mapping", page.Clip(field, 20))
		}
		if value, shift = value|digit&31<<shift, shift+5; digit&32 != 0 {
			continue
		}
		if value&1 != 0 {
			value = -value
		}
		at[count] += value / 2
		count, value, shift = count+1, 0, 0
	}
	return count, nil
}
