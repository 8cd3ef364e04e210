// Package o200k counts tokens as the models of OpenAI count them, from a vocabulary that is compiled in.
package o200k

import (
	"sync"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// encoding is read when it is first needed.
var encoding = sync.OnceValue(func() *tiktoken.Tiktoken {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	e, err := tiktoken.GetEncoding(tiktoken.MODEL_O200K_BASE)
	if err != nil {
		panic(err) // what is compiled in is always there
	}
	return e
})

// Count is the number of tokens in a text.
func Count(text string) int { return len(encoding().EncodeOrdinary(text)) }
