package main

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strings"
	"unicode/utf8"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// HashParams are the text to hash and the algorithm.
type HashParams struct {
	// Text to hash, e.g. "hello".
	Text string `json:"text"`
	// Digest to compute.
	Algorithm string `json:"algorithm,omitempty" enum:"sha256,sha512,sha1,md5" default:"sha256"`
	// How text holds the bytes: as they are, or base64.
	Input string `json:"input,omitempty" enum:"utf8,base64" default:"utf8"`
}

// HashResult is a digest.
type HashResult struct {
	// Digest in lower-case hex.
	Hex string `json:"hex"`
}

// Hash computes a digest.
func Hash(_ *sdk.Call, p HashParams) (HashResult, error) {
	data := []byte(p.Text)
	if p.Input == "base64" {
		var err error
		if data, err = decodeBase64(p.Text); err != nil {
			return HashResult{}, malformed("base64", err)
		}
	}
	switch p.Algorithm {
	case "sha512":
		return HashResult{fmt.Sprintf("%x", sha512.Sum512(data))}, nil
	case "sha1":
		return HashResult{fmt.Sprintf("%x", sha1.Sum(data))}, nil
	case "md5":
		return HashResult{fmt.Sprintf("%x", md5.Sum(data))}, nil
	}
	return HashResult{fmt.Sprintf("%x", sha256.Sum256(data))}, nil
}

// EncodeParams are the text to encode and the encoding.
type EncodeParams struct {
	// Text to encode, e.g. "a b&c".
	Text string `json:"text"`
	// Encoding to write.
	To string `json:"to" enum:"base64,base64url,base32,hex,url,html"`
}

// EncodeResult is encoded text.
type EncodeResult struct {
	// The encoded text.
	Text string `json:"text"`
}

// Encode writes text in another alphabet.
func Encode(_ *sdk.Call, p EncodeParams) (EncodeResult, error) {
	switch p.To {
	case "base64":
		return EncodeResult{base64.StdEncoding.EncodeToString([]byte(p.Text))}, nil
	case "base64url":
		return EncodeResult{base64.RawURLEncoding.EncodeToString([]byte(p.Text))}, nil
	case "base32":
		return EncodeResult{base32.StdEncoding.EncodeToString([]byte(p.Text))}, nil
	case "hex":
		return EncodeResult{hex.EncodeToString([]byte(p.Text))}, nil
	case "url":
		return EncodeResult{strings.ReplaceAll(url.QueryEscape(p.Text), "+", "%20")}, nil
	case "html":
		return EncodeResult{html.EscapeString(p.Text)}, nil
	}
	return EncodeResult{}, sdk.Invalid("/to", "base64, base64url, base32, hex, url or html", p.To, "")
}

// DecodeParams are the text to decode and the encoding.
type DecodeParams struct {
	// Text to decode, e.g. "aGVsbG8=".
	Text string `json:"text"`
	// Encoding that text is in.
	From string `json:"from" enum:"base64,base64url,base32,hex,url,html"`
}

// DecodeResult holds the decoded bytes, as text if they are valid UTF-8.
type DecodeResult struct {
	// The decoded text; absent if it is not UTF-8.
	Text *string `json:"text,omitempty"`
	// The decoded bytes where they are not UTF-8.
	Base64 []byte `json:"base64,omitempty"`
	// Number of decoded bytes.
	Bytes int `json:"bytes"`
}

// Decode reverses Encode. It ignores padding and white space in base64, base32 and hex.
func Decode(_ *sdk.Call, p DecodeParams) (DecodeResult, error) {
	var data []byte
	var err error
	switch p.From {
	case "base64", "base64url":
		data, err = decodeBase64(p.Text)
	case "base32":
		text := strings.ToUpper(strings.TrimRight(withoutSpace(p.Text), "="))
		data, err = base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(text)
	case "hex":
		data, err = hex.DecodeString(withoutSpace(p.Text))
	case "url":
		var text string
		text, err = url.QueryUnescape(p.Text)
		data = []byte(text)
	case "html":
		data = []byte(html.UnescapeString(p.Text))
	default:
		err = sdk.Invalid("/from", "base64, base64url, base32, hex, url or html", p.From, "")
	}
	if invalid := (*sdk.InvalidError)(nil); errors.As(err, &invalid) {
		return DecodeResult{}, err
	}
	if err != nil {
		return DecodeResult{}, malformed(p.From, err)
	}
	if !utf8.Valid(data) {
		return DecodeResult{Base64: data, Bytes: len(data)}, nil
	}
	text := string(data)
	return DecodeResult{Text: &text, Bytes: len(data)}, nil
}

// decodeBase64 reads both alphabets, with and without padding.
func decodeBase64(text string) ([]byte, error) {
	text = strings.NewReplacer("-", "+", "_", "/").Replace(withoutSpace(text))
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
}

func withoutSpace(text string) string { return strings.Join(strings.Fields(text), "") }

func malformed(encoding string, err error) error {
	return sdk.Exit("malformed", "text is not "+encoding+": "+err.Error(), nil)
}
