package verb

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/target"
)

// GiveFilesTo is GiveFiles for the input of a chooser.
func GiveFilesTo(e *Verbs, ctx context.Context, by api.Caller, t *target.Target, files []string, node int64) *api.Error {
	return giveFiles(e, ctx, by, t, files, dom.SetFileInputFilesParams{BackendNodeID: cdp.BackendNodeID(node)})
}

func giveFiles(e *Verbs, ctx context.Context, by api.Caller, t *target.Target, files []string,
	to dom.SetFileInputFilesParams) (err *api.Error) {
	if to.Files, err = e.filesFor(by, t, files); err == nil {
		_, err = target.Execute(ctx, e.sender, t, dom.SetFileInputFiles, to)
	}
	return err
}

// DropFiles drags files over a point of a page and drops them if the page takes them there, as far as the caller may use
// them in it.
func DropFiles(e *Verbs, ctx context.Context, by api.Caller, t *target.Target, x, y float64, files []string,
	takes func() bool) (dropped bool, err *api.Error) {
	p := input.DispatchDragEventParams{X: x, Y: y, Data: &input.DragData{Items: []*input.DragDataItem{},
		DragOperationsMask: 1}}
	if p.Data.Files, err = e.filesFor(by, t, files); err != nil {
		return false, err
	}
	send := func(kind input.DispatchDragEventType) {
		if p.Type = kind; err == nil {
			_, err = target.Execute(ctx, e.sender, t, input.DispatchDragEvent, p)
		}
	}
	send(input.DispatchDragEventTypeDragEnter)
	send(input.DispatchDragEventTypeDragOver)
	if err != nil || !takes() { // Chrome would open the file in place of the page
		send(input.DispatchDragEventTypeDragCancel)
		return false, err
	}
	send(input.DispatchDragEventTypeDrop)
	return true, err
}
