// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package certs makes authorities and certificates for tests of the API over TCP.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/config/identity"
)

// Authority signs certificates.
type Authority struct {
	t    testing.TB
	dir  string
	gid  int // the gid of the files' group, which may read them; -1: the process's
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	File string // its own certificate, in PEM
}

// Want is what a certificate is to say.
type Want struct {
	Name   string // common name
	Server netip.Addr
	Client bool
	Until  time.Time // the zero value is in an hour
}

// New makes an authority, whose files are in a folder of the test.
func New(t testing.TB) *Authority { return NewFor(t, -1) }

// NewFor makes one with files that a group of users may read.
func NewFor(t testing.TB, gid int) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir(), gid: gid}
	if gid >= 0 {
		if err := os.Chmod(filepath.Dir(a.dir), 0o711); err != nil { // the test's
			t.Fatal(err)
		}
	}
	var text []byte
	a.cert, a.key, text = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(2 * time.Hour),
	})
	a.File = filepath.Join(a.dir, "ca.crt")
	a.write(a.File, text)
	return a
}

func (a *Authority) write(path string, text []byte) {
	a.t.Helper()
	if err := errors.Join(os.WriteFile(path, text, 0o640), os.Chown(path, -1, a.gid)); err != nil {
		a.t.Fatal(err)
	}
}

// sign signs what is wanted, the authority's own certificate first.
func (a *Authority) sign(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore = big.NewInt(time.Now().UnixNano()), time.Now().Add(-24*time.Hour)
	by, with := a.cert, a.key
	if by == nil {
		by, with = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, with)
	if err != nil {
		a.t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return signed, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Issue makes a certificate and its key, as the files NAME.crt and NAME.key.
func (a *Authority) Issue(w Want) (certificate, key string) {
	a.t.Helper()
	c := &x509.Certificate{Subject: pkix.Name{CommonName: w.Name}, KeyUsage: x509.KeyUsageDigitalSignature, NotAfter: w.Until}
	if w.Until.IsZero() {
		c.NotAfter = time.Now().Add(time.Hour)
	}
	if w.Server.IsValid() {
		c.IPAddresses = []net.IP{w.Server.AsSlice()}
		c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if w.Client {
		c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	_, private, text := a.sign(c)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, key = filepath.Join(a.dir, w.Name+".crt"), filepath.Join(a.dir, w.Name+".key")
	a.write(certificate, text)
	a.write(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	return certificate, key
}

// Files are those of an end with that certificate, which trusts the authority.
func (a *Authority) Files(w Want) *identity.Files {
	a.t.Helper()
	certificate, key := a.Issue(w)
	f, err := identity.Load(certificate, key, a.File)
	if err != nil {
		a.t.Fatal(err)
	}
	return f
}
