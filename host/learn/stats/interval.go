package stats

import (
	"math"
	"slices"
)

// z is the number of standard deviations of a 95 % interval.
const z = 1.96

// minShare is the number of cases from which a share is given.
const minShare = 5

// Share is a number of cases out of all, with Wilson's 95 % interval of the share.
type Share struct {
	N     int     `json:"n"`
	Of    int     `json:"of"`
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// ShareOf returns a share with its interval, nil for fewer than five cases.
func ShareOf(n, of int) *Share {
	if of < minShare {
		return nil
	}
	low, high := Wilson(n, of)
	return &Share{n, of, round(float64(n) / float64(of)), round(low), round(high)}
}

// Wilson returns Wilson's 95 % interval of a share. Without cases it is 0 to 1.
func Wilson(n, of int) (low, high float64) { return wilson(n, of, z) }

// wilson is [Wilson] with z standard deviations.
func wilson(n, of int, z float64) (low, high float64) {
	if of == 0 {
		return 0, 1
	}
	p, count := float64(n)/float64(of), float64(of)
	center := (p + z*z/(2*count)) / (1 + z*z/count)
	half := z / (1 + z*z/count) * math.Sqrt(p*(1-p)/count+z*z/(4*count*count))
	return max(0, center-half), min(1, center+half)
}

// Quantile is the value below which a share of values lies, with the distribution-free 95 % interval, whose ends are
// two of the values.
type Quantile struct {
	Of    int     `json:"of"`
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// QuantileOf returns a quantile of values, nil if they are too few for its interval: the median needs 8.
func QuantileOf(values []float64, q float64) *Quantile {
	n := float64(len(values))
	half := z * math.Sqrt(n*q*(1-q))
	low, high := int(math.Floor(n*q-half)), int(math.Ceil(n*q+half))
	if low < 0 || high >= len(values) {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	at := min(len(sorted)-1, int(n*q))
	return &Quantile{len(values), round(sorted[at]), round(sorted[low]), round(sorted[high])}
}

func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// minWorks is the least share of successful calls, by the upper end of its interval, of a tool that texts lead to.
const minWorks = 0.5

// Fails reports whether a share of successful calls is too small to lead callers to their tool.
func (s *Share) Fails() bool { return s != nil && s.High < minWorks }
