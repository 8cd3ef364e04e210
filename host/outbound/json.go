package outbound

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// DecodeRequest decodes the argument of http_request, of at most limit bytes. Unknown fields are refused, because the
// author may rely on them. A null field counts as absent. The method is returned in upper case.
func DecodeRequest(data []byte, limit int) (*Request, error) {
	value, err := jsontext.Decode(data, jsontext.Limits{Depth: 4, Bytes: limit})
	if err != nil {
		return nil, err
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("expected an object")
	}
	request := &Request{Method: "GET"}
	var bodies int
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field := fields[name]
		if field == nil {
			continue
		}
		switch name {
		case "method":
			request.Method, err = stringField(field)
			request.Method = strings.ToUpper(request.Method)
		case "url":
			request.URL, err = stringField(field)
		case "headers":
			request.Headers, err = headersField(field)
		case "body":
			var text string
			text, err = stringField(field)
			request.Body = []byte(text)
			bodies++
		case "body_base64":
			request.Body, err = base64Field(field)
			bodies++
		default:
			err = errors.New("unknown field; known fields are method, url, headers, body and body_base64")
		}
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", manifest.Clip(manifest.CleanLine(name), 100), err)
		}
	}
	switch {
	case request.URL == "":
		return nil, errors.New("url is missing")
	case bodies > 1:
		return nil, errors.New("body and body_base64 exclude each other")
	}
	return request, nil
}

func stringField(field any) (string, error) {
	text, ok := field.(string)
	if !ok {
		return "", errors.New("expected a string")
	}
	return text, nil
}

func base64Field(field any) ([]byte, error) {
	text, err := stringField(field)
	if err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("expected padded base64 of the standard alphabet")
	}
	return data, nil
}

func headersField(field any) ([][2]string, error) {
	list, ok := field.([]any)
	if !ok {
		return nil, errors.New("expected an array")
	}
	var pairs [][2]string
	for i, item := range list {
		pair, _ := item.([]any)
		if len(pair) != 2 {
			return nil, fmt.Errorf("item %d is not a pair of name and value", i)
		}
		name, isName := pair[0].(string)
		value, isValue := pair[1].(string)
		if !isName || !isValue {
			return nil, fmt.Errorf("item %d is not a pair of strings", i)
		}
		pairs = append(pairs, [2]string{name, value})
	}
	return pairs, nil
}

// Reply is a response as guests read it. The body is text if it is UTF-8.
type Reply struct {
	Status  int         `json:"status"`
	Headers [][2]string `json:"headers"`
	Text    *string     `json:"body,omitempty"`
	Binary  []byte      `json:"body_base64,omitempty"`
}

// Reply returns the response as guests read it. Bytes of headers that are not UTF-8 become U+FFFD.
func (r *Response) Reply() Reply {
	out := Reply{Status: r.Status, Headers: append([][2]string{}, r.Headers...)}
	for i, h := range out.Headers {
		out.Headers[i] = [2]string{strings.ToValidUTF8(h[0], "\ufffd"), strings.ToValidUTF8(h[1], "\ufffd")}
	}
	if utf8.Valid(r.Body) {
		text := string(r.Body)
		out.Text = &text
	} else {
		out.Binary = r.Body
	}
	return out
}
