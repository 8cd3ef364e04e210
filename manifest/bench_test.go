package manifest

import (
	"fmt"
	"testing"
)

// BenchmarkDescribe measures one description of one tool, which decides whether descriptions are cached.
func BenchmarkDescribe(b *testing.B) {
	m, err := Parse(small(b), hostVersion)
	if err != nil {
		b.Fatal(err)
	}
	for tier := Tier1; tier <= Tier3; tier++ {
		b.Run(fmt.Sprintf("tier%d", tier), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Describe(m, &m.Tools[0], tier)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	data := small(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data, hostVersion); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	data := small(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(data); err != nil {
			b.Fatal(err)
		}
	}
}
