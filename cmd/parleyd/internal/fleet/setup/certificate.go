package setup

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// validFor is how long certificates are valid. They begin a day ago, since the clocks of machines differ.
const validFor = 10 * 365 * 24 * time.Hour

// certificates makes an authority if there is none, and a certificate for the server if it has new names. When both are
// renewed, the authority keeps its name and key, so a machine that has only the old one accepts the new server.
func (f *fleet) certificates() error {
	_, err := os.Stat(filepath.Join(f.dir, "ca.pem"))
	isNew := errors.Is(err, fs.ErrNotExist)
	if !isNew && (err != nil || !f.newHosts && !f.renew) {
		return err
	}
	names := strings.Join(f.Hosts, ", ")
	load := func() (tls.Certificate, error) {
		authority, err := tls.LoadX509KeyPair(filepath.Join(f.dir, "ca.pem"), filepath.Join(f.dir, "ca.key"))
		if err != nil {
			err = fmt.Errorf("a certificate for %s requires ca.pem and ca.key of the first run: %w", names, err)
		}
		return authority, err
	}
	if isNew || f.renew {
		c := template("Parley fleet")
		c.IsCA, c.MaxPathLenZero, c.BasicConstraintsValid, c.KeyUsage = true, true, true, x509.KeyUsageCertSign
		var old tls.Certificate
		if !isNew {
			if old, err = load(); err != nil {
				return err
			}
		}
		if err := f.certify("ca", c, old.PrivateKey, nil); err != nil {
			return err
		}
		f.newAuthority = true
		f.say("ca.pem", "the authority of the certificate; ca.key is its key, which only this command uses")
	}
	authority, err := load()
	if err != nil {
		return err
	}
	c := template(f.Hosts[0])
	c.KeyUsage, c.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range f.Hosts {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	f.say(serverDir, "a certificate for "+names)
	return f.certify(serverDir+"/server", c, nil, &authority)
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-24 * time.Hour),
		NotAfter: time.Now().Add(validFor)}
}

// certify writes NAME.pem and NAME.key, with a new key if there is none, signed by an authority or, without one, by
// itself.
func (f *fleet) certify(name string, c *x509.Certificate, key crypto.PrivateKey, authority *tls.Certificate) error {
	var err error
	if key == nil {
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return err
		}
	}
	parent, signer := c, key
	if authority != nil {
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	certificate, err := x509.CreateCertificate(rand.Reader, c, parent, key.(crypto.Signer).Public(), signer)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	return errors.Join(err, f.put(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		f.put(name+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
}
