package page

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
)

// ExceptionText is a thrown value of any type. The text says where it was not caught.
type ExceptionText struct {
	Text      string
	Exception logged
}

// String returns an exception as Chrome's console prints it; for an error only its first line.
func (e ExceptionText) String() string {
	if e.Exception.Type == "" { // the text contains it
		return e.Text
	}
	return e.Text + " " + e.Exception.String()
}

// LogEntry is a message of the browser, or a copy of a worker's message.
type LogEntry struct{ Source, Level, Text, URL, WorkerID string }

// Chooser is a file chooser that a page has opened. No person sees it.
type Chooser struct {
	Frame Frame  `json:"frameId"`
	Mode  string `json:"mode"`
	Node  int64  `json:"backendNodeId"` // the chooser's input element; 0 for a chooser of the File System API
}

// Takes says how many files the chooser accepts, or who can use it.
func (c Chooser) Takes() string {
	switch {
	case c.Node == 0:
		return ByPerson
	case c.Mode == "selectMultiple":
		return "several files"
	}
	return OneFile
}

// ByPerson is what Takes returns for a chooser of showOpenFilePicker, showSaveFilePicker or showDirectoryPicker.
const ByPerson = "by showOpenFilePicker or its like, in which only a person can choose"

// OneFile is what Takes returns for a chooser that accepts a single file.
const OneFile = "one file"

// ChooserOpened is the event of a new chooser.
const ChooserOpened = "Page.fileChooserOpened"

// ShownDialog is a JavaScript dialog.
type ShownDialog struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

type Download struct {
	Name  string `json:"name"`
	State string `json:"state"` // done, under way, cancelled
	Path  string `json:"path,omitempty"`
	URL   string `json:"url"`
	Bytes int64  `json:"bytes,omitempty"`
}

// DownloadList returns the downloads of the session. done says that none is under way.
func (v *Visit) DownloadList() (list []Download, done bool) {
	list, at := []Download{}, map[string]int{}
	records, _ := v.Records(0, "Browser.downloadWillBegin", "Browser.downloadProgress")
	for _, e := range records {
		var d struct {
			GUID  string
			URL   string
			State string
			File  string  `json:"filePath"`
			Name  string  `json:"suggestedFilename"`
			Bytes float64 `json:"totalBytes"`
		}
		_ = json.Unmarshal(e.Params, &d)
		if e.Method == "Browser.downloadWillBegin" {
			at[d.GUID] = len(list)
			list = append(list, Download{Name: d.Name, State: "under way", URL: Clip(d.URL, 200)})
			continue
		}
		i, known := at[d.GUID]
		if !known {
			continue
		}
		list[i].Bytes = int64(d.Bytes)
		switch d.State {
		case "completed":
			list[i].State, list[i].Path = "done", d.File
		case "canceled":
			list[i].State = "cancelled"
		}
	}
	return list, !slices.ContainsFunc(list, func(d Download) bool { return d.State == "under way" })
}

// NamedDownload returns the newest complete download with a name, or with any name for "". Where several downloads
// had the same name, their files have numbers.
func NamedDownload(list []Download, name string) (d Download, err *api.Error) {
	for _, d := range slices.Backward(list) {
		if d.State == "done" && (name == "" || name == d.Name || name == d.Path || name == filepath.Base(d.Path)) {
			return d, nil
		}
	}
	if name == "" {
		return d, Exit("no_match", "no download is complete", nil)
	}
	return d, Exit("no_match", fmt.Sprintf("no download is named %q; page.downloads lists them", name), nil)
}
