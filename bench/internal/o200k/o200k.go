// Package o200k counts tokens as OpenAI's models do, with a vocabulary that is compiled in.
package o200k

import (
	"sync"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// encoding is loaded on first use.
var encoding = sync.OnceValue(func() *tiktoken.Tiktoken {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	e, err := tiktoken.GetEncoding(tiktoken.MODEL_O200K_BASE)
	if err != nil {
		panic(err) // what is compiled in is always there
	}
	return e
})

// Count returns the number of tokens in a text.
func Count(text string) int { return len(encoding().EncodeOrdinary(text)) }
