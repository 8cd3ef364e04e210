package main

import "testing"

func TestInspect(t *testing.T) {
	module := []byte("\x00asm\x01\x00\x00\x00" +
		"\x09\x07\x01\x00\x41\x01\x0b\x81\x01" + // an element segment at 1 of 129 functions, which are left out
		"\x0b\x03\x01\x02\x03")
	data, elements, err := inspect(module)
	if err != nil || data != 3 || elements != 129 {
		t.Errorf("%d bytes of data, %d elements, %v", data, elements, err)
	}
	if _, _, err := inspect(module[:len(module)-1]); err == nil {
		t.Error("a module that was cut is accepted")
	}
}
