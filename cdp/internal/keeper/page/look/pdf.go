package look

import (
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
)

// readPDF selects all of a PDF in the document of Chrome's viewer and returns it, as soon as it is loaded. The selection
// stays. Other versions of Chrome may have a viewer that answers nothing.
const readPDF = `new Promise(async (done) => {
	setTimeout(done, 3000, "");
	for (;;) {
		const viewer = document.querySelector("pdf-viewer");
		if (viewer?.loadState_ === "success") {
			viewer.pluginController_.selectAll();
			return done((await viewer.pluginController_.getSelectedText()).selectedText);
		}
		await new Promise((next) => setTimeout(next, 50));
	}
})`

// noPDFText says that a PDF has no text for Chrome, such as one of pictures, or with a password.
const noPDFText = `the PDF, which has no text for Chrome (page.screenshot shows it; page.evaluate with ` +
	`Object.assign(document.createElement("a"), {href: location.href, download: ""}).click() saves it, page.downloads has it)`

// pdfType is the media type of documents that are PDFs.
const pdfType = "application/pdf"

// pdfText returns the text of a document that is a PDF, "" if there is none. Chrome shows it in a frame with a viewer of
// its own, which no session may use: the keeper does, and only to read.
func pdfText(v *page.Visit, in page.Frame) string {
	viewer := v.Viewer(in, "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/")
	for turn := 0; viewer == nil && turn < 60 && v.Pause(pollTime); turn++ {
		viewer = v.Viewer(in, "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/")
	}
	if viewer == nil || v.Keeper.Tracker.Attach(v.Ctx, viewer, "") != nil {
		return ""
	}
	said, err := v.Keeper.Tracker.Sender.Do(v.Ctx, viewer, "Runtime.evaluate", scan.Marshal(page.Object{
		"expression": readPDF, "awaitPromise": true, "returnByValue": true, "timeout": 5 * time.Second.Milliseconds()}))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(scan.Text(said, "result", "value"), "\r\n", "\n"))
}

// showPDF makes the text of a PDF that of a snapshot, a line for each line, at most size bytes of it.
func (s *snapshotText) showPDF(text string, size int) {
	for line := range strings.Lines(text) {
		shown := page.Quote(page.Clip(strings.TrimSpace(line), 400))
		if size -= len(shown) + 1; size < 0 {
			s.Left.Cut++
		} else if shown != `""` {
			s.Text += shown + "\n"
		}
	}
	s.Text = strings.TrimSuffix(s.Text, "\n")
}
