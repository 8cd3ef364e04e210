package sdk

// origin is empty here: what types and sources say is in the manifest already.
type origin struct{}

func originOf[P, R any](any) origin { return origin{} }
