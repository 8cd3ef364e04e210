package frame

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Writer gives a client time to read each piece of a response, and counts the bytes that it has yet to read.
type Writer struct {
	http.ResponseWriter
	ClientTimeout time.Duration
	Unsent        *atomic.Int64
	Challenge     string
	Name          string // name that the token of the request is bound to
	Status        int    // 0 until the header is written
	Written       int64  // bytes of the body
}

// WriteHeader adds the expected scheme to the response to a client without a valid token.
func (w *Writer) WriteHeader(status int) {
	if w.Status == 0 {
		w.Status = status
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", w.Challenge)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *Writer) Write(p []byte) (int, error) {
	w.Extend()
	w.Unsent.Add(int64(len(p)))
	defer w.Unsent.Add(-int64(len(p)))
	w.Written += int64(len(p))
	return w.ResponseWriter.Write(p)
}

// FlushError is called by [http.ResponseController].
func (w *Writer) FlushError() error {
	w.Extend()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *Writer) Extend() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.ClientTimeout))
}
