// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity has the certificates and keys by which the ends of gleamd's API over
// TCP know each other: how their files are read, and what TLS asks of both ends.
package identity

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/gleam-rdma/gleam/config/trusted"
)

// maxFile bounds the bytes that are read of a file.
const maxFile = 256 << 10

// File is a file in PEM, as it was read. It prints as its path, whatever the verb.
type File struct {
	Path string
	text *[]byte
}

// String returns the path.
func (f *File) String() string { return f.Path }

// Format prints the path for every verb.
func (f *File) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, f.Path) }

// ReadCertificates reads a file of certificates. Nobody but its owner may write to it.
func ReadCertificates(path string, by trusted.Reader) (*File, error) {
	f, err := read(path, trusted.Public, by)
	if err != nil {
		return nil, err
	}
	list, err := f.certificates()
	if err == nil && len(list) == 0 {
		err = errors.New("has no certificate: want PEM with BEGIN CERTIFICATE")
	}
	return f, err
}

// ReadKey reads a file with a private key. Only its owner, and the file's group, may read
// it, and nobody but the owner may write to it.
func ReadKey(path string, by trusted.Reader) (*File, error) {
	f, err := read(path, trusted.Secret, by)
	if err != nil {
		return nil, err
	}
	for rest := *f.text; ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			return nil, errors.New("has no private key: want PEM with BEGIN PRIVATE KEY")
		}
		switch b.Type {
		case "PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY":
			return f, nil
		case "ENCRYPTED PRIVATE KEY":
			return nil, errors.New("is protected by a pass phrase, which nobody can type at a start: want a key without one (openssl pkey)")
		}
	}
}

// read reads a file none of whose mode bits is in closed.
func read(path string, closed fs.FileMode, by trusted.Reader) (*File, error) {
	text, err := by(path, maxFile, closed)
	if p, ok := errors.AsType[*fs.PathError](err); ok { // the path is in the message already
		err = p.Err
	}
	if err != nil {
		return nil, err
	}
	return &File{path, &text}, nil
}

// certificates returns those in the file.
func (f *File) certificates() (list []*x509.Certificate, err error) {
	for rest := *f.text; ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			return list, nil
		}
		if b.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d in it: %w", len(list)+1, err)
		}
		list = append(list, c)
	}
}

// Files are what one end has: its certificate (with those between it and an authority), the
// private key of that, and the authorities that the other end's certificate is checked by.
type Files struct{ Certificate, Key, CA *File }

// Load reads the files of a client.
func Load(certificate, key, ca string) (*Files, error) {
	var f Files
	for _, one := range []struct {
		to   **File
		path string
		read func(string, trusted.Reader) (*File, error)
	}{{&f.Certificate, certificate, ReadCertificates}, {&f.Key, key, ReadKey}, {&f.CA, ca, ReadCertificates}} {
		var err error
		if *one.to, err = one.read(one.path, trusted.Read); err != nil {
			return nil, fmt.Errorf("%s: %w", one.path, err)
		}
	}
	return &f, nil
}

// config is what both ends ask for.
func (f *Files) config() (*tls.Config, *x509.CertPool, error) {
	pair, err := tls.X509KeyPair(*f.Certificate.text, *f.Key.text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s is not the private key of the first certificate in %s: %w", f.Key.Path, f.Certificate.Path, err)
	}
	pool := x509.NewCertPool()
	var list []*x509.Certificate
	if f.CA != nil {
		if list, err = f.CA.certificates(); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.CA.Path, err)
		}
	}
	for _, c := range list {
		pool.AddCert(c)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true}, pool, nil
}

// Server returns what a server asks for: TLS 1.3, and a certificate of the client that one of
// the authorities has signed for clients. No session is resumed, so each connection is
// checked by the authorities of now.
func (f *Files) Server() (*tls.Config, error) {
	c, pool, err := f.config()
	if err != nil {
		return nil, err
	}
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, pool
	return c, nil
}

// PageServer is Server for a page, whose browsers need no certificate if there is no CA: they
// prove themselves by something else.
func (f *Files) PageServer() (*tls.Config, error) {
	c, err := f.Server()
	if err == nil && f.CA == nil {
		c.ClientAuth, c.ClientCAs = tls.NoClientCert, nil
	}
	return c, err
}

// Client returns what a client asks for: TLS 1.3, and a certificate for the server's address
// or name, host, that one of the authorities has signed for servers.
func (f *Files) Client(host string) (*tls.Config, error) {
	c, pool, err := f.config()
	if err != nil {
		return nil, err
	}
	c.RootCAs, c.ServerName = pool, host
	return c, nil
}

// Expiry returns the time at which the first of the certificate's file ends.
func (f *Files) Expiry() (end time.Time) {
	list, _ := f.Certificate.certificates() // they were parsed when the file was read
	for _, c := range list {
		if end.IsZero() || c.NotAfter.Before(end) {
			end = c.NotAfter
		}
	}
	return end
}
