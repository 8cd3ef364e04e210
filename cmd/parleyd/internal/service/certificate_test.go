package service

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pairOf makes a certificate of a name that ends after some time, and its key.
func pairOf(t *testing.T, name string, left time.Duration) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(left),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// TestCertificates replaces the files of a certificate. A pair that does not fit together keeps the one before.
func TestCertificates(t *testing.T) {
	cert, key := pairOf(t, "one", 90*24*time.Hour)
	f := start(t, "[tls]\ncert = \"DIR/cert\"\nkey = \"DIR/key\"", "cert", cert, "key", key)
	served := func() string {
		conn, err := tls.Dial("tcp", f.sockets[0].Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := served(); got != "one" {
		t.Errorf("%s is served", got)
	}
	otherCert, _ := pairOf(t, "two", time.Hour)
	soonCert, soonKey := pairOf(t, "soon", 10*24*time.Hour)
	goneCert, goneKey := pairOf(t, "gone", -time.Hour)
	for _, c := range []struct {
		cert, key string // "": stays
		served    string
		log       string
	}{
		{otherCert, "", "one", "the certificate stays as it was"},
		{"nothing", "", "one", "failed to find any PEM"},
		{soonCert, soonKey, "soon", "the certificate was read again"},
		{goneCert, goneKey, "gone", "the certificate was read again"},
	} {
		before := len(f.log.String())
		if f.write(t, "cert", c.cert); c.key != "" {
			f.write(t, "key", c.key)
		}
		if got := served(); got != c.served {
			t.Errorf("%s is served, want %s", got, c.served)
		}
		if !strings.Contains(f.log.String()[before:], c.log) {
			t.Errorf("%s: no %q in the log", c.served, c.log)
		}
		warnings := map[string]string{"soon": "expires on", "gone": "expired on"}
		if want := warnings[c.served]; want != "" {
			f.signals <- syscall.SIGHUP
			f.log.await(t, "level=WARN msg=\"the certificate "+want)
			if r := f.readiness(); !r.Ready || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], want) {
				t.Errorf("%s: %+v", c.served, r)
			}
		}
	}
	conn, err := net.Dial("tcp", f.sockets[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"))
	answer := make([]byte, 100)
	if n, _ := conn.Read(answer); strings.Contains(string(answer[:n]), "200") {
		t.Errorf("plain HTTP is answered: %s", answer[:n])
	}
}
