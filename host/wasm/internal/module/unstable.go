package module

// UnstableModule is the draft of WASI before preview 1. It has the same functions, but three layouts differ: the
// numbers of whence, filestat, whose nlink has 32 bits, and subscription, whose clocks have an identifier in front.
// The engine supports only the layouts of preview 1. So code around a call translates the first two layouts, and a
// function of its own handles the third.
const UnstableModule = "wasi_unstable"

// ErrnoFault is the error number of WASI for an address outside the memory.
const ErrnoFault = 21

// Sizes of the draft's layouts.
const (
	UnstableSubscription = 56
	UnstableEvent        = 32
)

// adapter is code around a call; see [instrument.Guard].
type adapter struct{ before, after []byte }

var unstableCode = map[string]adapter{
	"fd_seek":           {before: seekCode},
	"fd_filestat_get":   filestatCode(2, 1),
	"path_filestat_get": filestatCode(5, 4),
}

// seekCode translates whence, local 2: current, end and set are 0, 1 and 2 in the draft, set is 0 in preview 1.
var seekCode = []byte{
	0x20, 2, 0x41, 3, 0x4f, 0x04, 0x40, // local.get, i32.const 3, i32.ge_u, if
	0x41, ErrnoInval, 0x0f, 0x0b, // return
	0x20, 2, 0x41, 1, 0x6a, 0x41, 3, 0x70, 0x21, 2, // (whence + 1) % 3
}

// filestatCode translates the filestat at the address in local buf. params is the number of the function's
// parameters. A filestat of preview 1 is 8 bytes longer, so the bytes after the draft's filestat are restored.
func filestatCode(params, buf byte) adapter {
	behind, errno := params, params+1 // the additional locals
	code := adapter{
		before: []byte{
			0x20, buf, 0xad, 0x42, 0xc0, 0x00, 0x7c, // local.get, i64.extend_i32_u, i64.const 64, i64.add
			0x3f, 0, 0xad, 0x42, 16, 0x86, 0x56, 0x04, 0x40, // memory.size << 16, i64.gt_u, if
			0x41, ErrnoFault, 0x0f, 0x0b, // return
			0x20, buf, 0x29, 0, 56, 0x21, behind, // i64.load
		},
		after: []byte{
			0x22, errno, 0x45, 0x04, 0x40, // local.tee, i32.eqz, if
			0x20, buf, 0x20, buf, 0x28, 0, 24, 0x36, 0, 20, // nlink: i32.load, i32.store
		},
	}
	for _, from := range []byte{32, 40, 48, 56} { // size and times: i64.load, i64.store
		code.after = append(code.after, 0x20, buf, 0x20, buf, 0x29, 0, from, 0x37, 0, from-8)
	}
	code.after = append(code.after, 0x20, buf, 0x20, behind, 0x37, 0, 56, 0x0b, 0x20, errno)
	return code
}
