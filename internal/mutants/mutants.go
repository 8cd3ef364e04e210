package main

import "path"

// mutants returns all mutants. Those of a package stand in one file.
func mutants() []Mutant {
	var all []Mutant
	for _, set := range [][]Mutant{egress, signatures} {
		all = append(all, set...)
	}
	return all
}

// byPackage groups mutants by the folder of their file.
func byPackage(all []Mutant) map[string][]Mutant {
	sets := map[string][]Mutant{}
	for _, m := range all {
		dir := path.Dir(m.File)
		sets[dir] = append(sets[dir], m)
	}
	return sets
}
