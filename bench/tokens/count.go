package main

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// o200k is the tokenizer, read from what is embedded when it is first needed.
var o200k = sync.OnceValues(func() (*tiktoken.Tiktoken, error) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	return tiktoken.GetEncoding(tiktoken.MODEL_O200K_BASE)
})

// count is the number of tokens in a text.
func count(text []byte) (int, error) {
	encoding, err := o200k()
	if err != nil {
		return 0, err
	}
	return len(encoding.EncodeOrdinary(string(text))), nil
}

// plain is JSON without escapes for HTML, as servers write it.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
