package instrument

// OriginalIndex returns the index that a function of the instrumented module has in the original one. ok is false for
// an added function.
func (m *Module) OriginalIndex(function int) (int, bool) {
	switch {
	case function < len(m.Imports):
		return function, true
	case function == len(m.Imports):
		return 0, false
	}
	return function - 1, true // functions added at the end have no name
}

const functionNames = 1 // the subsection of the section "name" that contains the names of functions

// FunctionNames sets the values of wanted, whose keys are indices of functions, to the names that a module has for
// them. It reports whether the module has any names. It reads only the headers of sections and these names. From a
// damaged section it takes the names before the damage.
func FunctionNames(wasm []byte, wanted map[int]string) bool {
	for s := range sectionsOf(wasm) {
		if s.id != secCustom || s.name() != "name" || s.err != nil {
			continue
		}
		for names := range sectionsIn(s.reader) {
			if names.id == functionNames {
				n := names.count("names", 2, maxFunctions)
				for range n {
					index, name := int(names.u32()), names.name()
					if _, ok := wanted[index]; ok && names.err == nil {
						wanted[index] = name
					}
				}
				return n > 0
			}
		}
		return false
	}
	return false
}
