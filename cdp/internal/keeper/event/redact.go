package event

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// redacted replaces a value that a record must not have.
const redacted = `"[redacted]"`

// maxDataURL is how much a record keeps of a data: URL, which is a body.
const maxDataURL = 100

// redact returns a copy of an event's parameters without cookies, credentials and bodies. Streams get the event as it
// is: who listens has asked for it.
func redact(method string, params json.RawMessage) json.RawMessage {
	switch api.DomainOf(method) {
	case "Network", "Fetch", "Audits":
	default:
		return bytes.Clone(params)
	}
	if len(params) == 0 {
		return nil
	}
	data := method == "Network.eventSourceMessageReceived" || strings.HasPrefix(method, "Network.direct")
	return bytes.Clone(redactValue(make([]byte, 0, len(params)), params, data)) // as small as possible
}

// redactValue appends a value to b. data is set where members called data are bodies, too.
func redactValue(b, value []byte, data bool) []byte {
	switch {
	case len(value) > 0 && value[0] == '{':
		return redactObject(b, value, data)
	case len(value) > 0 && value[0] == '[':
		b = append(b, '[')
		begin := len(b)
		scan.EachElement(value, func(element []byte) {
			if len(b) > begin {
				b = append(b, ',')
			}
			b = redactValue(b, element, data)
		})
		return append(b, ']')
	}
	return append(b, value...)
}

func redactObject(b, object []byte, data bool) []byte {
	pair := false // of the name and the value of a header
	if name := scan.Field(object, "name"); len(name) > 2 {
		pair = isSecretHeader(name[1 : len(name)-1])
	}
	b = append(b, '{')
	begin := len(b)
	scan.EachField(object, func(key, value []byte) error {
		if isBody(string(key)) || data && string(key) == "data" {
			return nil
		}
		if len(b) > begin {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), key...), `":`...)
		switch {
		case isSecretHeader(key) || pair && string(key) == "value":
			b = append(b, redacted...)
		case bytes.HasPrefix(value, []byte(`"data:`)):
			b = appendClipped(b, value)
		default:
			b = redactValue(b, value, data)
		}
		return nil
	})
	return append(b, '}')
}

func isSecretHeader(name []byte) bool {
	for _, secret := range []string{"cookie", "set-cookie", "authorization", "proxy-authorization"} {
		if len(name) == len(secret) && strings.EqualFold(string(name), secret) {
			return true
		}
	}
	return false
}

// isBody reports whether a member is a body, or repeats headers or cookies in a form of its own.
func isBody(key string) bool {
	switch key {
	case "postData", "postDataEntries", "payloadData", "headersText", "requestHeadersText",
		"associatedCookies", "blockedCookies", "exemptedCookies", "cookieLine", "rawCookieLine":
		return true
	}
	return false
}

// appendClipped appends the beginning of a JSON string.
func appendClipped(b, value []byte) []byte {
	if len(value) <= maxDataURL {
		return append(b, value...)
	}
	end := maxDataURL
	for !utf8.RuneStart(value[end]) && end > 0 {
		end--
	}
	if escape := bytes.IndexByte(value[:end], '\\'); escape >= 0 {
		end = escape
	}
	return append(append(b, value[:end]...), `…"`...)
}
