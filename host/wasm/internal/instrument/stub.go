package instrument

// Stub is an instrumented module without its code: each body only traps. Decoding and validating it costs an engine next
// to nothing, and an instance of it needs nothing else where the native code of the bodies is at hand already.
// It must be given what Rewrite made.
func Stub(module []byte) []byte {
	out := append(make([]byte, 0, 1<<16), module[:8]...)
	r := reader{data: module, pos: 8, end: len(module)}
	for r.remaining() > 0 && r.err == nil {
		at := r.pos
		id := r.byte()
		size := int(r.u32())
		content := r.pos
		if id == secCode {
			n := r.u32()
			body := []byte{3, 0, 0x00, opEnd} // its size, no locals, unreachable, end
			code := appendU32(make([]byte, 0, int(n)*len(body)+5), n)
			for range n {
				code = append(code, body...)
			}
			out = append(appendU32(append(out, id), uint32(len(code))), code...)
		} else {
			out = append(out, module[at:content+size]...)
		}
		r.pos = content + size
	}
	return out
}
