// Command extism is a plugin for Extism that has tools for MCP, in the first form: describe and call.
package main

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/extism/go-pdk"
)

const tools = `{"tools":[
  {"name":"greet","description":"Greet a person. Uses the word of the configuration, or Hello.","annotations":{"readOnlyHint":true},
   "inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"Whom to greet, such as Ada."}},"required":["name"]}},
  {"name":"fetch","description":"Fetch a page.\nReturns what it says.",
   "inputSchema":{"type":"object","properties":{"url":{"type":"string","format":"uri"}},"required":["url"]}},
  {"name":"picture.dot","description":"Draw a dot","inputSchema":{"type":"object","properties":{}}},
  {"name":"clear","description":"Clear everything that was ever drawn in any of the pictures of all times","annotations":{"destructiveHint":true},
   "inputSchema":{"type":"object","properties":{}}}]}`

//go:wasmexport describe
func describe() int32 {
	pdk.OutputString(tools)
	return 0
}

//go:wasmexport call
func call() int32 {
	var input struct {
		Params struct {
			Name      string
			Arguments struct{ Name, URL string }
		}
	}
	if err := json.Unmarshal(pdk.Input(), &input); err != nil {
		pdk.SetError(err)
		return 1
	}
	switch given := input.Params.Arguments; input.Params.Name {
	case "greet":
		word, ok := pdk.GetConfig("word")
		if !ok {
			word = "Hello"
		}
		pdk.Log(pdk.LogInfo, "greeting "+given.Name)
		return text(word + ", " + given.Name)
	case "fetch":
		response := pdk.NewHTTPRequest(pdk.MethodGet, given.URL).SetHeader("Accept", "text/plain").Send()
		return text(strings.TrimSpace(string(response.Body())) + " " + response.Headers()["content-type"])
	case "picture.dot":
		return output(map[string]string{"type": "image", "mimeType": "image/png",
			"data": base64.StdEncoding.EncodeToString([]byte("a dot"))})
	}
	pdk.SetErrorString("nothing was drawn")
	return 1
}

func text(s string) int32 { return output(map[string]string{"type": "text", "text": s}) }

func output(block map[string]string) int32 {
	if err := pdk.OutputJSON(map[string]any{"content": []any{block}}); err != nil {
		pdk.SetError(err)
		return 1
	}
	return 0
}

func main() {}
