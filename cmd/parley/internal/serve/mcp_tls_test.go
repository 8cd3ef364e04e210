package serve

import (
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
	"testing"
	"time"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

// TestCertificate checks that the files of a certificate and its key are those that a client meets.
func TestCertificate(t *testing.T) {
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
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for path, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	home := t.TempDir()
	deps := command.NewApp(&command.Streams{Env: func(string) string { return home }}, nil)
	config, err := certificate(t.Context(), deps, certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	cert, _ := x509.ParseCertificate(der)
	roots.AddCert(cert)
	server, client := net.Pipe()
	go func() { _ = tls.Server(server, config).Handshake() }()
	if err := tls.Client(client, &tls.Config{RootCAs: roots, ServerName: "localhost"}).Handshake(); err != nil {
		t.Error(err)
	}
	for _, wrong := range [][2]string{{keyFile, certFile}, {certFile, "missing"}, {"missing", keyFile}} {
		if _, err := certificate(t.Context(), deps, wrong[0], wrong[1]); err == nil {
			t.Errorf("%q are a certificate and its key", wrong)
		}
	}
}
