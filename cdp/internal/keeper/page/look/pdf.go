package look

import (
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// pdfType is the media type of PDF documents.
const pdfType = "application/pdf"

// viewerURL begins the address of Chrome's PDF viewer, a built-in extension.
const viewerURL = "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/"

// readPDF selects the whole PDF in the viewer's document and returns its text, as soon as it is loaded. The selection
// stays. In other versions of Chrome the viewer may return nothing.
const readPDF = `(async () => {
	const viewer = () => document.querySelector("pdf-viewer"), pause = (ms) => new Promise((done) => setTimeout(done, ms));
	for (let turn = 0; viewer()?.loadState_ !== "success" && turn < 60; turn++) await pause(50);
	viewer().pluginController_.selectAll();
	return (await Promise.race([viewer().pluginController_.getSelectedText(), pause(3000)]))?.selectedText;
})()`

// noPDFText says that Chrome finds no text in a PDF, for example because it consists of pictures or has a password.
const noPDFText = `the PDF, which has no text for Chrome (page.screenshot shows it; page.evaluate with ` +
	`Object.assign(document.createElement("a"), {href: location.href, download: ""}).click() saves it, ` +
	`page.downloads has it)`

// pdfText returns the text of a PDF document, "" if there is none. Chrome shows it in a frame with a viewer that no
// session may use. The keeper uses it only to read.
func pdfText(v *page.Visit, in page.Frame) string {
	tr, viewer := v.Keeper.Tracker, page.ViewerIn(v, in, viewerURL)
	for turn := 0; viewer == nil && turn < 60 && v.Pause(pollTime); turn++ { // it appears a little later than the document
		viewer = page.ViewerIn(v, in, viewerURL)
	}
	if viewer == nil || tr.Attach(v.Ctx, viewer, "") != nil {
		return ""
	}
	said, err := tr.Sender.Do(v.Ctx, viewer, "Runtime.evaluate", scan.Marshal(page.Object{"expression": readPDF,
		"awaitPromise": true, "returnByValue": true}))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(scan.Text(said, "result", "value"), "\r\n", "\n"))
}

// showPDF replaces a snapshot by the text of a PDF, line by line, of at most size bytes.
func (s *snapshotText) showPDF(text string, size int) {
	if text == "" {
		s.LeftOut = noPDFText
		return
	}
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, page.Quote(page.Clip(strings.TrimSpace(line), 400)))
	}
	s.keep(lines, size)
}
