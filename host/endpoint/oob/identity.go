// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
)

// Exchange is the use of a connection that carries the exchange of this package, with its
// version. Other uses, for example that of gleam perf, have other names: a connection for
// one use is not accepted for another.
const Exchange = "gleam-oob/2"

// identityLabel separates the key pair of connections from all other values derived from
// a group's key.
const identityLabel = "gleam out-of-band exchange 2, Ed25519 seed"

// Identity proves to the other side of a connection that this host has a group's key, and
// checks that the other side has it. Without a key, which the application has to request
// explicitly ([envelope.Auth].Insecure), connections are plain text and nothing is
// proved.
type Identity struct {
	// Log gets a line for each refused connection, at most one in a second, one call at a
	// time. It may be nil, and is set before first use.
	Log func(text string)

	send    envelope.KeyID // 0: plain text
	certs   map[envelope.KeyID]*tls.Certificate
	refused atomic.Uint64
	kept    kept

	logging sync.Mutex // held during a call of Log
	logged  time.Time  // time of the last call of Log
}

// NewIdentity derives a key pair from every key. The keys are those of the envelopes:
// connections are opened under the sending key, and accepted under all.
func NewIdentity(auth envelope.Auth) (*Identity, error) {
	id := &Identity{send: auth.Send, certs: make(map[envelope.KeyID]*tls.Certificate), kept: kept{idle: keptIdle, changed: make(chan struct{})}}
	if auth.Send == 0 {
		if !auth.Insecure {
			return nil, errors.New("no key for the out-of-band exchange: configure the group's, or set insecure")
		}
		return id, nil
	}
	for n, key := range auth.Keys {
		if len(key) < envelope.MinKeyLen {
			return nil, fmt.Errorf("key %d has %d bytes; use at least %d random ones", n, len(key), envelope.MinKeyLen)
		}
		cert, err := certificate(key)
		if err != nil {
			return nil, fmt.Errorf("derive the key pair of key %d: %w", n, err)
		}
		id.certs[n] = cert
	}
	if id.certs[id.send] == nil {
		return nil, fmt.Errorf("key %d to authenticate with is not configured", id.send)
	}
	return id, nil
}

// Refused returns the number of connections that were closed because the other side did
// not prove that it has the key, violated the exchange, or was not admitted.
func (id *Identity) Refused() uint64 { return id.refused.Load() }

// log passes a line to Log unless the last one was less than a second ago.
func (id *Identity) log(now time.Time, text string) {
	if id.Log == nil {
		return
	}
	id.logging.Lock()
	defer id.logging.Unlock()
	if now.Sub(id.logged) < time.Second {
		return
	}
	id.logged = now
	id.Log(text)
}

// certificate derives the key pair of a group's key. The content of the certificate has
// no meaning: sides compare public keys.
func certificate(key []byte) (*tls.Certificate, error) {
	seed, err := hkdf.Key(sha256.New, key, nil, identityLabel, ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	private := ed25519.NewKeyFromSeed(seed)
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gleam"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(nil, &template, &template, private.Public(), private) // Ed25519 needs no randomness
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, nil
}

// config returns the configuration of both sides: TLS 1.3, and a peer whose key pair is
// the one derived from the same key. TLS checks that the peer has the private key of its
// certificate.
func config(cert *tls.Certificate, use string) *tls.Config {
	own := cert.PrivateKey.(ed25519.PrivateKey).Public().(ed25519.PublicKey)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{use}, Certificates: []tls.Certificate{*cert},
		ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		InsecureSkipVerify: true, // no check of chain and name: VerifyConnection compares the key instead
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || !own.Equal(s.PeerCertificates[0].PublicKey) {
				return errOtherKey
			}
			if s.NegotiatedProtocol != use {
				return errOtherUse
			}
			return nil
		},
	}
}

// errOtherKey and errOtherUse are errors of VerifyConnection.
var (
	errOtherKey = errors.New("it has another key")
	errOtherUse = errors.New("it did not name the use of the connection")
)

// A client sends the id of its key as the server name.
const namePrefix = "key-"

func serverName(id envelope.KeyID) string { return namePrefix + strconv.Itoa(int(id)) }

// keyOf is the inverse of serverName; 0 if name is none.
func keyOf(name string) envelope.KeyID {
	digits, ok := strings.CutPrefix(name, namePrefix)
	n, err := strconv.ParseUint(digits, 10, 16)
	if !ok || err != nil {
		return 0
	}
	return envelope.KeyID(n)
}
