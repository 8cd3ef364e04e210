package instrument

// Stub returns an instrumented module whose function bodies only trap. An engine decodes and validates it at next
// to no cost, and an instance of it works if the engine already has the native code of the real bodies. module must
// be the output of [Rewrite].
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
			body := []byte{3, 0, 0x00, opEnd} // size, no locals, unreachable, end
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
