package main

const (
	keyFile       = "host/signature/key.go"
	signatureFile = "host/signature/signature.go"
	trustFile     = "host/signature/trust.go"
)

var signatures = []Mutant{
	{File: keyFile, Old: `Key(pub.String()) == k && minisign.Verify`, New: `minisign.Verify`,
		Why:        "a key in another spelling verifies, and is another name in the list of trust",
		Equivalent: "every Key comes from ParseKey, which spells it one way"},
	{File: keyFile, Old: `minisign.Verify(pub, message, signature)`, New: `(minisign.Verify(pub, message, signature) || len(message) > 0)`,
		Why: "any signature is valid", Hole: true},
	{File: keyFile, Old: `!k.Public().verifies(nil, minisign.Sign(k.key, nil))`, New: `false`,
		Why: "a key file whose halves differ makes signatures that nobody can verify"},
	{File: keyFile, Old: `writeNew(path, secret, 0o600)`, New: `writeNew(path, secret, 0o644)`, Why: "others read the secret key", Hole: true},
	{File: keyFile, Old: `os.O_WRONLY|os.O_CREATE|os.O_EXCL`, New: `os.O_WRONLY|os.O_CREATE`, Why: "a key is overwritten", Hole: true},
	{File: keyFile, Old: `if password != "" {`, New: `if false {`, Why: "the secret key is written without its password", Hole: true},
	{File: keyFile, Old: `len(text) > MaxBytes || pub`, New: `pub`, Why: "a huge key file is parsed"},

	{File: signatureFile, Old: `if len(text) > MaxBytes {`, New: `if false {`, Why: "a huge signature is parsed"},
	{File: signatureFile, Old: `err != nil || key.numericID() != id`, New: `err != nil`,
		Why: "a comment names another key than the one that signed", Hole: true},
	{File: signatureFile, Old: `if c.digest == "" {`, New: `if false {`, Why: "a claim without a digest covers any manifest", Hole: true},
	{File: signatureFile, Old: `if err := s.checkCoverage(b); err != nil {`, New: `if err := s.checkCoverage(b); err != nil && false {`,
		Why: "a signature covers what it was not made for", Hole: true},
	{File: signatureFile, Old: `s.claim.digest == "" && !b.ManifestEmbedded`, New: `false`,
		Why: "a manifest beside the wasm is not covered", Hole: true},
	{File: signatureFile, Old: `s.claim.digest != "" && s.claim.digest != b.Digest`, New: `false`,
		Why: "another manifest is put beside a signed wasm", Hole: true},
	{File: signatureFile, Old: `len(candidates) == 0 && s.claim.key != ""`, New: `s.claim.key != ""`,
		Why: "the key that a signature names is taken before a known one", Hole: true},
	{File: signatureFile, Old: `if k.verifies(b.Wasm, s.text) {`, New: `if k != "" {`, Why: "a signature is not verified", Hole: true},
	{File: signatureFile, Old: `k == "" || k.numericID() != s.raw.KeyID`, New: `k == ""`,
		Why: "a key with another ID is tried", Equivalent: "minisign refuses a signature with another ID"},

	{File: trustFile, Old: `if _, err := ParseKey(name); err == nil {`, New: `if false {`, Why: "a name of a key looks like a key"},
	{File: trustFile, Old: `case o.Key == entry.Key:`, New: `case false:`, Why: "a key is listed twice, and removing it leaves one", Hole: true},
	{File: trustFile, Old: `case name != "" && strings.EqualFold(o.Name, name):`, New: `case name != "" && o.Name == name:`,
		Why: "two keys have one name but for case", Hole: true},
	{File: trustFile, Old: `manifest.CleanLine(name) != name ||`, New: ``, Why: "a name hides characters", Hole: true},
	{File: trustFile, Old: `return "", nil, err
	}
	keys`, New: `return "", nil, nil
	}
	keys`, Why: "a list that cannot be read means that nobody is trusted, and a change replaces it", Hole: true},
	{File: trustFile, Old: `slices.Delete(lines, keys[i].line-1, keys[i].line)`, New: `lines`, Why: "a key stays trusted", Hole: true},
}
