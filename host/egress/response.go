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
	"github.com/parley-tools/parley/host/internal/origin"
)

// readResponse takes an answer in, decompressed, with at most so many bytes of body. Names of headers are in lower case and sorted; values that were
// sent apart stay apart. Content-Length is told in an answer to HEAD alone.
func readResponse(response *http.Response, limit int64) (*host.HTTPResponse, error) {
	if response.StatusCode == http.StatusSwitchingProtocols {
		return nil, problem{host.Unavailable, "it changed to a protocol that nobody asked for"}
	}
	body, err := readBody(response, limit)
	if err != nil {
		return nil, err
	}
	if response.Request.Method != http.MethodHead {
		// The body has its own length, which changes where secrets are taken out of it.
		response.Header.Del("Content-Length")
	}
	result := &host.HTTPResponse{Status: response.StatusCode, Headers: [][2]string{}, Body: body}
	for _, name := range slices.Sorted(maps.Keys(response.Header)) {
		for _, value := range response.Header[name] {
			result.Headers = append(result.Headers, [2]string{strings.ToLower(name), value})
		}
	}
	return result, nil
}

func readBody(response *http.Response, limit int64) ([]byte, error) {
	// Compressed or not, what comes over the wire is hardly longer than what it stands for.
	wire := &io.LimitedReader{R: response.Body, N: limit + limit/8 + 4<<10}
	plain := io.Reader(wire)
	switch strings.ToLower(strings.Join(response.Header.Values("Content-Encoding"), ", ")) {
	case "", "identity":
	case "gzip", "x-gzip":
		unpacked, err := gzip.NewReader(wire)
		if err == io.EOF {
			return nil, nil // there is none, as in an answer to HEAD
		}
		if err != nil {
			return nil, err
		}
		plain = unpacked
		response.Header.Del("Content-Encoding")
	default:
		return nil, problem{host.Unavailable, "its answer is in a content coding that was not asked for"}
	}
	data, err := io.ReadAll(io.LimitReader(plain, limit+1))
	if int64(len(data)) > limit || wire.N <= 0 {
		return nil, problem{host.LimitExceeded, fmt.Sprintf("its answer has a body of more than %d bytes; ask for less, or for a part by a range header", limit)}
	}
	return data, err
}

// problem is what is wrong with an answer, in words of ours.
type problem struct {
	code host.Code
	text string
}

func (c problem) Error() string { return c.text }

// hostError turns what went wrong on the way to an origin into one of the host's errors. Its words hold nothing that came from a server,
// which may have repeated a secret, nor of a URL's path and query.
func hostError(ctx context.Context, target origin.Origin, err error) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 {
		<-ctx.Done() // its timer is late, not wrong
	}
	var original, cause *host.Error
	switch {
	case errors.As(err, &original):
		return original
	case ctx.Err() == nil:
		c := classify(err)
		return host.Errorf(c.code, "%s: %s", target, c.text)
	case errors.As(context.Cause(ctx), &cause):
		return cause
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return host.Errorf(host.Timeout, "%s did not answer before the time of the call was over", target)
	}
	return host.Errorf(host.Interrupted, "the request to %s was interrupted", target)
}

func classify(err error) problem {
	var (
		known        problem
		name         *net.DNSError
		errno        syscall.Errno
		noTLS        tls.RecordHeaderError
		unknown      x509.UnknownAuthorityError
		otherName    x509.HostnameError
		invalid      x509.CertificateInvalidError
		verification *tls.CertificateVerificationError
		network      net.Error
		corrupt      flate.CorruptInputError
	)
	text := "its answer is not HTTP, or broke off"
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &name) && name.IsNotFound:
		text = "its name has no address"
	case errors.As(err, &name):
		text = "its name could not be looked up"
	case errors.As(err, &errno):
		text = errno.Error()
	case errors.As(err, &noTLS):
		text = "it does not speak TLS"
	case errors.As(err, &unknown):
		text = "its certificate is not signed by an authority that this machine trusts"
	case errors.As(err, &otherName):
		text = "its certificate is for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		text = "its certificate has expired, or is not valid yet"
	case errors.As(err, &verification):
		text = "its certificate is not valid"
	case errors.As(err, &network) && network.Timeout():
		text = "it gave no connection in time"
	// This error has no type: net/http makes it of text.
	case strings.Contains(err.Error(), "server response headers exceeded"):
		return problem{host.LimitExceeded, fmt.Sprintf("its answer has more than %d bytes of headers", maxAnswerHeader)}
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		text = "its compressed body is damaged"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		text = "its answer ends before it is complete"
	}
	return problem{host.Unavailable, text}
}
