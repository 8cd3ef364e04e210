package service

import (
	"crypto/x509"
	"fmt"
	"time"
)

// expiresSoon is the time before a certificate's end when warnings start.
const expiresSoon = 14 * 24 * time.Hour

// changed logs what became of a change of the certificate.
func (s *Service) changed(now *x509.Certificate, err error) {
	if err != nil {
		s.log.Error("the certificate stays as it was", "error", err)
		return
	}
	s.log.Info("the certificate was read again", "expires", now.NotAfter)
}

// certificateWarning warns that the certificate has expired or expires soon. It returns "" otherwise.
func (l *loaded) certificateWarning() string {
	if l.certificate == nil {
		return ""
	}
	pair, err := l.certificate.Current()
	if err != nil { // it has been read
		return ""
	}
	end := pair.Leaf.NotAfter
	switch left := time.Until(end); {
	case left < 0:
		return fmt.Sprintf("the certificate expired on %s", end.Format(time.DateOnly))
	case left < expiresSoon:
		return fmt.Sprintf("the certificate expires on %s", end.Format(time.DateOnly))
	}
	return ""
}
