package serve

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

// writePair writes a certificate of localhost and its key, and returns a pool with it.
func writePair(t *testing.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private},
	} {
		_ = os.Remove(path) // so that another file has the name, whatever the resolution of its time
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	cert, _ := x509.ParseCertificate(der)
	roots.AddCert(cert)
	return roots
}

// TestCertificate checks that the files of a certificate and its key are those that a client meets, also after they
// were replaced, and that a pair that is not valid replaces none.
func TestCertificate(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	roots := writePair(t, certFile, keyFile)
	var errs bytes.Buffer
	deps := command.NewApp(&command.Streams{Env: func(string) string { return home }, Err: &errs}, nil)
	config, err := certificate(t.Context(), deps, mcpOptions{TLSCert: certFile, TLSKey: keyFile})
	if err != nil {
		t.Fatal(err)
	}
	handshake := func() {
		t.Helper()
		server, client := net.Pipe()
		go func() { _ = tls.Server(server, config).Handshake() }()
		if err := tls.Client(client, &tls.Config{RootCAs: roots, ServerName: "localhost"}).Handshake(); err != nil {
			t.Error(err)
		}
	}
	handshake()
	roots = writePair(t, certFile, keyFile)
	handshake()
	if err := os.WriteFile(certFile, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	handshake()
	if !strings.Contains(errs.String(), "the certificate stays as it was") {
		t.Errorf("stderr has %q", errs.String())
	}
	for _, wrong := range [][2]string{{keyFile, certFile}, {certFile, "missing"}, {"missing", keyFile}} {
		if _, err := certificate(t.Context(), deps, mcpOptions{TLSCert: wrong[0], TLSKey: wrong[1]}); err == nil {
			t.Errorf("%q are a certificate and its key", wrong)
		}
	}
}
