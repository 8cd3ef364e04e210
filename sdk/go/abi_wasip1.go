package sdk

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Main does nothing here: the host calls a reactor through its exports.
func Main() {}

// blocks keeps every block that the host can still read or write, by address, so
// that the garbage collector does not free it.
var blocks = map[uint32][]byte{}

//go:wasmexport parley_alloc
func parleyAlloc(n uint32) uint32 {
	if n > 1<<30 {
		return 0
	}
	b := make([]byte, max(n, 1))
	at := address(b)
	blocks[at] = b
	return at
}

//go:wasmexport parley_call
func parleyCall(ptr, n uint32) uint64 {
	host := wire{callImport: callImport, log: logLine, progress: reportProgress}
	raw, err := takeBlock(uint64(ptr)<<32 | uint64(n))
	if err != nil {
		return keepBlock(encodeResponse(response{Exit: 1, Message: "request: " + err.Error()}))
	}
	return keepBlock(serve(&registered, raw, host))
}

// warm decodes a request and encodes a response, because that is slower the first time. It is part of the image with
// which the host lets calls begin.
func warm() {
	request := []byte(`{"tool":"","params":{},"call_id":"","session":"","caller":"","host":"","deadline_ms":0,"settings":{},` +
		`"granted":{"fs":[],"http":[],"tools":[],"secrets":[],"env":[],"browser":false,"clock":false,"random":false}}`)
	at := parleyAlloc(uint32(len(request)))
	copy(blocks[at], request)
	packed := parleyCall(at, uint32(len(request)))
	delete(blocks, uint32(packed>>32))
}

func callImport(function string, request []byte) ([]byte, error) {
	var packed uint64
	data, n := unsafe.Pointer(unsafe.SliceData(request)), uint32(len(request))
	switch function {
	case "call_tool":
		packed = callTool(data, n)
	case "http_request":
		packed = httpRequest(data, n)
	case "read_secret":
		packed = readSecret(data, n)
	}
	runtime.KeepAlive(request)
	return takeBlock(packed)
}

func logLine(level Level, message string) {
	hostLog(int32(level), unsafe.Pointer(unsafe.StringData(message)), uint32(len(message)))
	runtime.KeepAlive(message)
}

func reportProgress(done, total float64, message string) {
	hostProgress(done, total, unsafe.Pointer(unsafe.StringData(message)), uint32(len(message)))
	runtime.KeepAlive(message)
}

// takeBlock returns a block that the host has filled; the guest owns it again.
func takeBlock(packed uint64) ([]byte, error) {
	at, n := uint32(packed>>32), uint32(packed)
	b, ok := blocks[at]
	if !ok || int(n) > len(b) {
		return nil, fmt.Errorf("the host passed %d bytes at %#x, which parley_alloc did not return", n, at)
	}
	delete(blocks, at)
	return b[:n], nil
}

func keepBlock(b []byte) uint64 {
	at := address(b)
	blocks[at] = b
	return uint64(at)<<32 | uint64(len(b))
}

func address(b []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

//go:wasmimport parley call_tool
func callTool(ptr unsafe.Pointer, n uint32) uint64

//go:wasmimport parley http_request
func httpRequest(ptr unsafe.Pointer, n uint32) uint64

//go:wasmimport parley read_secret
func readSecret(ptr unsafe.Pointer, n uint32) uint64

//go:wasmimport parley log
func hostLog(level int32, ptr unsafe.Pointer, n uint32)

//go:wasmimport parley progress
func hostProgress(done, total float64, ptr unsafe.Pointer, n uint32)
