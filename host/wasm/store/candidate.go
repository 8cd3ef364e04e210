package store

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/sections"
)

// IsExtism reports whether a module imports functions of Extism.
func IsExtism(wasm []byte) bool {
	return strings.Contains("\n"+instrument.Describe(wasm), "\nimport "+module.ExtismModule+".")
}

// maxWasm is the maximum size of a module in bytes. A larger file is assumed to be a mistake: CPython has 25 MiB.
const maxWasm = grant.MaxModuleMiB << 20

// Candidate is a plugin that has been read and validated but is not installed. It can be run.
type Candidate struct {
	Path          string // of the wasm file, absolute
	Wasm          []byte
	ManifestJSON  []byte
	Manifest      *manifest.Manifest
	Digest        string
	Signature     []byte // of the signature file next to it, or nil
	Signer        string // the key of the signature once it is verified, else ""
	Owner         string // host.OwnerShipped for a plugin that ships with the host; "" if its signer owns it
	ReplacedOwner string // identity of a plugin that is no longer installed and whose name it takes; "" if none
	TakesName     bool   // a person has confirmed that it takes the name of another owner
	Engine        string // digest of the engine of a script that will be installed; "" for others
}

// ReadCandidate reads a plugin from a wasm file, or from a folder that holds exactly one, and validates it as far
// as that is possible without running it. hostVersion is compared with the manifest's min_host.
//
// A wasm file may be gzipped if its name ends in ".gz". A JavaScript file with a name that ends in ".js" is read as a
// module that contains only the text. A manifest of kind http with a name that ends in ".json" is read as a module
// that contains only the manifest. The manifest of any other file is in the custom section parley.manifest, or next
// to X.wasm in X.manifest.json. Next to plugin.wasm it may also be in manifest.json, so that the folder of an
// installed plugin can be installed again. If there are two manifests, they must be equal. A signature next to the
// file (see [SignatureName]) is read but not verified. Each file is read once.
//
// Errors are *host.Error: 81 if the path does not exist, 84 for a reserved name, 86 for invalid content, 87 for a
// file that cannot be a signature, 105 if a file cannot be read.
func ReadCandidate(path, hostVersion string) (*Candidate, error) {
	isFolder, err := isFolder(path)
	if isFolder {
		path, err = findOnlyPlugin(path)
	}
	if err != nil {
		return nil, err
	}
	return readCandidate(path, hostVersion)
}

func isFolder(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, openError(path, err)
	}
	return info.IsDir(), nil
}

// ReadCandidateFile is like [ReadCandidate] but refuses folders (81).
func ReadCandidateFile(path, hostVersion string) (*Candidate, error) {
	switch isFolder, err := isFolder(path); {
	case err != nil:
		return nil, err
	case isFolder:
		return nil, host.Errorf(host.InvalidArgs, "%s is a folder; expected a plugin file (FILE.wasm). A folder that "+
			"holds one plugin can be installed", path).
			WithSteps(step.Operator(step.OpPluginInstall, path))
	}
	return readCandidate(path, hostVersion)
}

// Source returns the parts of the candidate in memory.
func (c *Candidate) Source() Source {
	e := entryFromManifest(c.Manifest)
	e.Digest, e.Signer, e.Owner, e.ReplacedOwner = c.Digest, c.Signer, c.Owner, c.ReplacedOwner
	return Source{
		Info:     e.Info(),
		Manifest: func() (*manifest.Manifest, error) { return c.Manifest, nil },
		Wasm:     func() ([]byte, error) { return c.Wasm, nil },
		Segment:  sync.OnceValues(func() ([]byte, error) { return segment.Of(c.Manifest), nil }),
	}
}

func readCandidate(path, hostVersion string) (*Candidate, error) {
	var wasm, manifestJSON []byte
	var err error
	from := path
	if ext := filepath.Ext(path); ext == ".json" || ext == ".yaml" || ext == ".yml" {
		if manifestJSON, err = readCodeless(path); err == nil {
			wasm = sections.Module(manifestJSON)
		}
	} else if wasm, err = ReadModule(path); err == nil {
		manifestJSON, from, err = findManifest(path, wasm)
	}
	if err != nil {
		return nil, err
	}
	c, err := newCandidate(path, wasm, manifestJSON, from, hostVersion)
	if err != nil {
		return nil, err
	}
	if c.Signature, err = findSignature(path); err != nil {
		return nil, err
	}
	return c, nil
}

// readCodeless reads the manifest of a plugin of kind http, which has nothing else.
func readCodeless(path string) ([]byte, error) {
	data, err := readBounded(path, manifest.MaxSize)
	if err != nil {
		return nil, asInvalidPlugin(path, err)
	}
	var head struct {
		Manifest json.RawMessage
		Kind     string
	}
	_ = json.Unmarshal(data, &head)
	coded := []string{manifest.KindParley, manifest.KindWASI, manifest.KindScript, manifest.KindExtism}
	switch {
	case head.Manifest == nil && (bytes.Contains(data, []byte("openapi")) || bytes.Contains(data, []byte("swagger"))):
		return nil, host.Errorf(host.InvalidPlugin, "%s is not a manifest; from an OpenAPI document, make one with parley "+
			"plugin wrap", path).WithSteps(step.Operator(step.OpPluginWrap, path))
	case head.Manifest == nil:
		return nil, host.Errorf(host.InvalidPlugin, "%s is not a manifest; expected a JSON object with the fields of "+
			"parley plugin schema", path).WithSteps(step.Operator(step.OpPluginSchema))
	case slices.Contains(coded, head.Kind):
		return nil, host.Errorf(host.InvalidPlugin, "%s is a manifest of kind %s, whose code is in another file; name "+
			"FILE.wasm or FILE.js", path, head.Kind)
	case head.Kind != manifest.KindHTTP:
		return nil, host.Errorf(host.InvalidPlugin, "%s: /kind is %q; expected http for a manifest without code, or one "+
			"of %s with it", path, manifest.CleanValue(head.Kind), strings.Join(coded, ", ")).
			WithSteps(step.Operator(step.OpPluginSchema))
	}
	return bytes.TrimSpace(data), nil
}

// Pack puts a manifest into the module of a wasm file, right after its header, and replaces the module's manifest.
// from is the file that the manifest came from, for errors. Pack writes nothing. Errors are as for [ReadCandidate].
func Pack(path string, wasm, manifestJSON []byte, from, hostVersion string) (*Candidate, error) {
	manifestJSON = bytes.TrimSpace(manifestJSON)
	packed, err := sections.WriteManifest(wasm, manifestJSON)
	if err != nil {
		return nil, asInvalidPlugin(path, err)
	}
	return newCandidate(path, packed, manifestJSON, from, hostVersion)
}

// NewCandidate is [ReadCandidate] for a plugin in memory. path names its origin.
func NewCandidate(path string, wasm, manifestJSON, signature []byte, hostVersion string) (*Candidate, error) {
	c, err := newCandidate(path, wasm, manifestJSON, path, hostVersion)
	if err != nil {
		return nil, err
	}
	c.Path, c.Signature = path, signature
	return c, nil
}

// newCandidate validates a plugin in memory. from is the path of the file that contains its manifest.
func newCandidate(path string, wasm, manifestJSON []byte, from, hostVersion string) (*Candidate, error) {
	m, err := manifest.Parse(manifestJSON, hostVersion)
	if err != nil {
		return nil, manifestError(from, err)
	}
	if err := checkName(m.Name); err != nil {
		return nil, err
	}
	if err := module.Check(wasm, m); err != nil {
		return nil, asInvalidPlugin(path, err)
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return &Candidate{Path: path, Wasm: wasm, ManifestJSON: manifestJSON, Manifest: m,
		Digest: Digest(wasm, manifestJSON)}, nil
}

// ManifestEmbedded reports whether the wasm contains the manifest.
func (c *Candidate) ManifestEmbedded() bool {
	section, err := sections.ReadManifest(c.Wasm)
	return err == nil && bytes.Equal(section, c.ManifestJSON)
}

// findManifest returns the manifest of a wasm file and the path of the file that holds it.
func findManifest(path string, wasm []byte) (data []byte, from string, err error) {
	embedded, err := sections.ReadManifest(wasm)
	if err != nil && !errors.Is(err, sections.ErrNoManifest) {
		return nil, "", asInvalidPlugin(path, err)
	}
	names := sidecarNames(path)
	for _, name := range names {
		beside, err := readBounded(name, manifest.MaxSize)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, "", asInvalidPlugin(name, err)
		}
		if embedded == nil {
			return beside, name, nil
		}
		if !bytes.Equal(manifest.CompactJSON(beside), manifest.CompactJSON(embedded)) {
			return nil, "", host.Errorf(host.InvalidPlugin, "%s contains a manifest and %s is a different one; expected "+
				"one manifest, or two equal ones. Remove the file, or put its manifest into the module",
				path, name).WithSteps(step.Operator(step.OpPluginPack, path, "--manifest", name))
		}
	}
	if embedded != nil {
		return embedded, path, nil
	}
	command := &manifest.Manifest{Name: pluginStem(filepath.Base(path)), Kind: manifest.KindWASI}
	if IsExtism(wasm) {
		command.Kind = manifest.KindExtism
	}
	_, err = module.ValidateModule(wasm, command, module.LargestModule)
	if broken := (*instrument.Error)(nil); errors.Is(err, module.ErrForeign) || errors.As(err, &broken) {
		return nil, "", err // no manifest can make the file a plugin
	}
	refused := host.Errorf(host.InvalidPlugin, "%s contains no manifest, and there is none beside it in %s. "+
		"For a plugin with source, parley plugin build adds one; for a WASI command or an Extism plugin parley plugin "+
		"wrap writes one; for any other module, write one (parley plugin schema prints its format) and pack it",
		path, names[0])
	if err == nil {
		refused.WithSteps(step.Operator(step.OpPluginWrap, path))
	}
	return nil, "", refused.
		WithSteps(step.Operator(step.OpPluginSchema), step.Operator(step.OpHelp, "plugin pack"))
}

// ManifestBeside returns the file next to a wasm file that holds its manifest, or "" if there is none.
func ManifestBeside(path string) string {
	for _, name := range sidecarNames(path) {
		if _, err := os.Stat(name); err == nil {
			return name
		}
	}
	return ""
}

// sidecarNames returns the paths next to a wasm file that may hold its manifest, in order of preference.
func sidecarNames(path string) []string {
	dir, stem := filepath.Dir(path), pluginStem(filepath.Base(path))
	names := []string{filepath.Join(dir, stem+".manifest.json")}
	if stem == "plugin" {
		names = append(names, filepath.Join(dir, manifestName))
	}
	return names
}

// pluginStem strips .wasm, .wasm.gz or .js from a file name.
func pluginStem(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".wasm"), scriptSuffix)
}

// scriptSuffix is the suffix of files with the text of a plugin of kind script.
const scriptSuffix = ".js"

// findOnlyPlugin returns the path of the only plugin in a folder. If it is there both plain and gzipped, it returns
// the plain form.
func findOnlyPlugin(dir string) (string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return "", openError(dir, err)
	}
	found := map[string]string{}
	for _, f := range files { // sorted, so that x.wasm comes before x.wasm.gz
		name := f.Name()
		if f.IsDir() || !strings.HasSuffix(strings.TrimSuffix(name, ".gz"), ".wasm") {
			continue
		}
		if stem := pluginStem(name); found[stem] == "" {
			found[stem] = name
		}
	}
	names := slices.Sorted(maps.Values(found))
	switch len(names) {
	case 1:
		return filepath.Join(dir, names[0]), nil
	case 0:
		return "", host.Errorf(host.InvalidPlugin, "the folder %s contains no plugin; expected one file plugin.wasm, "+
			"NAME.wasm or plugin.wasm.gz. If it contains a plugin's source, build it first", dir).
			WithSteps(step.Operator(step.OpPluginBuild, dir))
	}
	listed := strings.Join(names[:min(len(names), 5)], ", ")
	if len(names) > 5 {
		listed += ", …"
	}
	return "", host.Errorf(host.InvalidPlugin,
		"the folder %s contains %d wasm files (%s); expected one. Name one of the files", dir, len(names), listed).
		WithSteps(step.Operator(step.OpPluginInstall, filepath.Join(dir, names[0])))
}

// ReadModule reads a wasm file, which may be gzipped, and refuses everything but core modules. A JavaScript file
// becomes a module that contains only the text. Errors are as for [ReadCandidate].
func ReadModule(path string) ([]byte, error) {
	if strings.HasSuffix(path, scriptSuffix) {
		text, err := readBounded(path, sections.MaxSource)
		if err != nil {
			return nil, asInvalidPlugin(path, err)
		}
		return sections.WriteSource(filepath.Base(path), text), nil
	}
	data, err := readBounded(path, maxWasm)
	if err != nil {
		return nil, asInvalidPlugin(path, err)
	}
	if strings.HasSuffix(path, ".gz") {
		if data, err = gunzip(data); err != nil {
			return nil, asInvalidPlugin(path, err)
		}
	}
	if err := sections.CheckHeader(data); err != nil {
		return nil, asInvalidPlugin(path, err)
	}
	return data, nil
}

func gunzip(data []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("not a gzip file: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(z, maxWasm+1))
	if err != nil {
		return nil, fmt.Errorf("the gzip file is damaged: %w", err)
	}
	if len(out) > maxWasm {
		return nil, fmt.Errorf("decompressed it is larger than %d MiB, the limit for a plugin", maxWasm>>20)
	}
	return out, nil
}

// readBounded reads a regular file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path) // checked before opening, because opening a pipe waits for its writer
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errors.New("not a regular file: this is a folder")
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file (%s)", info.Mode().Type())
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%d bytes; the limit is %d MiB", info.Size(), limit>>20)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return protect.ReadAll(f, info, limit)
}

// openError returns the error for a path that the caller gave and that cannot be opened.
func openError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG) {
		if strings.Contains(path, "://") {
			return world.Failed(host.InvalidArgs, err, "URLs are not fetched; download %s first", path)
		}
		missing := world.Failed(host.InvalidArgs, err, "%s does not exist; expected a plugin file (FILE.wasm) or a folder "+
			"that holds one", cmp.Or(path, `""`))
		if server, _, ok := strings.Cut(path, "/"); ok && strings.Contains(strings.Trim(server, "."), ".") {
			missing.Message += "; one in a registry is named oci://" + path
		}
		return missing
	}
	return world.Failed(host.Unavailable, err, "cannot read the plugin: %v", err)
}

// asInvalidPlugin returns the error that the file is not a valid plugin, with err as the cause. It returns err itself
// if that is a *host.Error or says that the file cannot be read.
func asInvalidPlugin(path string, err error) error {
	if _, known := errors.AsType[*host.Error](err); known {
		return err
	}
	if _, unreadable := errors.AsType[*fs.PathError](err); unreadable {
		return openError(path, err)
	}
	invalid := world.Failed(host.InvalidPlugin, err, "%s: %v", path, err)
	if format, ok := errors.AsType[*sections.FormatError](err); ok && format.Fix == "" {
		invalid.Message += "; expected a plugin as a core WebAssembly module"
	}
	return invalid
}

// manifestError returns one error for the problems of a manifest: a single problem is in its message, several are in
// its details.
func manifestError(from string, err error) error {
	invalid := world.Failed(host.InvalidPlugin, err, "the manifest in %s is refused: %v", from, err)
	if refused, ok := errors.AsType[*manifest.Error](err); ok && len(refused.Problems) > 1 {
		invalid.Message = fmt.Sprintf("the manifest in %s has %d problems", from, len(refused.Problems))
		for _, p := range refused.Problems {
			invalid.Details = append(invalid.Details, host.Detail{Parameter: p.Pointer, Keyword: "manifest",
				Expected: p.Message})
		}
	}
	return invalid
}
