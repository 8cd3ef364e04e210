package egress

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/outbound"
)

// readResponse reads a response, decompressed, with at most limit bytes of body. Header names are in lower case and
// sorted; repeated headers stay separate. Only the response to HEAD has Content-Length.
func readResponse(response *http.Response, limit int64) (*outbound.Response, error) {
	if response.StatusCode == http.StatusSwitchingProtocols {
		return nil, problem{host.Unavailable, "it switched to another protocol without being asked to"}
	}
	body, err := readBody(response, limit)
	if err != nil {
		return nil, err
	}
	if response.Request.Method != http.MethodHead {
		// The length of the body changes where secrets are redacted.
		response.Header.Del("Content-Length")
	}
	result := &outbound.Response{Status: response.StatusCode, Headers: [][2]string{}, Body: body}
	for _, name := range slices.Sorted(maps.Keys(response.Header)) {
		for _, value := range response.Header[name] {
			result.Headers = append(result.Headers, [2]string{strings.ToLower(name), value})
		}
	}
	return result, nil
}

func readBody(response *http.Response, limit int64) ([]byte, error) {
	// The bytes that are sent, compressed or not, are hardly more than those of the body.
	wire := &io.LimitedReader{R: response.Body, N: limit + limit/8 + 4<<10}
	plain := io.Reader(wire)
	switch strings.ToLower(strings.Join(response.Header.Values("Content-Encoding"), ", ")) {
	case "", "identity":
	case "gzip", "x-gzip":
		unpacked, err := gzip.NewReader(wire)
		if err == io.EOF {
			return nil, nil // no body, as in the response to HEAD
		}
		if err != nil {
			return nil, err
		}
		plain = unpacked
		response.Header.Del("Content-Encoding")
	default:
		return nil, problem{host.Unavailable, "its response has a content encoding that was not requested"}
	}
	data, err := io.ReadAll(io.LimitReader(plain, limit+1))
	if int64(len(data)) > limit || wire.N <= 0 {
		return nil, problem{host.LimitExceeded,
			fmt.Sprintf("its response body has more than %d bytes; request less, or a part with a range header", limit)}
	}
	return data, err
}

// problem is what is wrong with a response, in the host's words.
type problem struct {
	code host.Code
	text string
}

func (c problem) Error() string { return c.text }

// hostError turns an error on the way to an origin into a *host.Error. Its text includes nothing that came from a
// server, which may have repeated a secret, and no path or query of a URL.
func hostError(ctx context.Context, target origin.Origin, err error) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		<-ctx.Done() // the timer of the context is late
	}
	if original, ok := errors.AsType[*host.Error](err); ok {
		return original
	}
	if ctx.Err() == nil {
		c := classify(err)
		return host.Errorf(c.code, "%s: %s", target, c.text)
	}
	if cause, ok := errors.AsType[*host.Error](context.Cause(ctx)); ok {
		return cause
	}
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return host.Errorf(host.Timeout, "%s did not respond within the time limit of the call", target)
	}
	return host.Errorf(host.Interrupted, "the request to %s was interrupted", target)
}

func classify(err error) problem {
	if known, ok := errors.AsType[problem](err); ok {
		return known
	}
	errno, isErrno := errors.AsType[syscall.Errno](err)
	name, isName := errors.AsType[*net.DNSError](err)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	network, isNetwork := errors.AsType[net.Error](err)
	text := "its response is not HTTP, or was cut off"
	switch {
	case isName && name.IsNotFound:
		text = "its name has no address"
	case isName:
		text = "its name could not be resolved"
	case isErrno:
		text = errno.Error()
	case is[tls.RecordHeaderError](err):
		text = "it does not speak TLS"
	case is[x509.UnknownAuthorityError](err):
		text = "its certificate is not signed by an authority that this machine trusts"
	case is[x509.HostnameError](err):
		text = "its certificate is for another name"
	case isInvalid && invalid.Reason == x509.Expired:
		text = "its certificate has expired, or is not valid yet"
	case is[*tls.CertificateVerificationError](err):
		text = "its certificate is not valid"
	case isNetwork && network.Timeout():
		text = "it did not accept a connection in time"
	// net/http returns this error without a type.
	case strings.Contains(err.Error(), "server response headers exceeded"):
		return problem{host.LimitExceeded, fmt.Sprintf("its response has more than %d bytes of headers", maxResponseHeader)}
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), is[flate.CorruptInputError](err):
		text = "its compressed body is damaged"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		text = "its response ends before it is complete"
	}
	return problem{host.Unavailable, text}
}

// is reports whether an error of a type is in the chain of err.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
