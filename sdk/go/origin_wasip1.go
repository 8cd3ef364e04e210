package sdk

// origin is empty here: the manifest already contains the schemas and the docs.
type origin struct{}

func originOf[P, R any](any) origin { return origin{} }
