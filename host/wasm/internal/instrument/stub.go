package instrument

// Stub returns an instrumented module whose function bodies only trap. An engine decodes and validates it at next
// to no cost, and an instance of it works if the engine already has the native code of the real bodies. module must
// be the output of [Rewrite].
func Stub(module []byte) []byte {
	out := append(make([]byte, 0, 1<<16), module[:headerBytes]...)
	for s := range sectionsOf(module) {
		if s.id != secCode {
			out = append(out, s.whole...)
			continue
		}
		n := s.u32()
		body := []byte{3, 0, 0x00, opEnd} // size, no locals, unreachable, end
		code := appendU32(make([]byte, 0, int(n)*len(body)+5), n)
		for range n {
			code = append(code, body...)
		}
		out = appendSection(out, s.id, code)
	}
	return out
}
