// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// KeyID names a key. 0 means that a message is not authenticated.
type KeyID uint16

// MACLen is the length in bytes of the HMAC-SHA-256 that ends every
// authenticated message. It covers the label of the message's direction and all
// bytes before it.
const MACLen = sha256.Size

// MinKeyLen is the least length of a key in bytes: with less than the output of
// the hash, the key is the weakest part (RFC 2104 §3).
const MinKeyLen = 32

// Keys are the shared secrets by id. All members, masters and switches that serve a group
// know its key: a holder of the key may register groups, and may change the groups that
// were registered under it.
type Keys map[KeyID][]byte

// String is the number of keys: a secret must not get into a log.
func (k Keys) String() string { return fmt.Sprintf("%d keys", len(k)) }

// GoString is String.
func (k Keys) GoString() string { return k.String() }

// Auth says how a machine authenticates the messages that it sends and receives.
type Auth struct {
	Keys     Keys
	Send     KeyID // the key for messages sent; 0 only if Insecure
	Insecure bool  // accept and send messages without a MAC
}

// check reports a configuration that cannot work, or that is less safe than it seems.
func (a *Auth) check() error {
	for id, k := range a.Keys {
		if id == 0 {
			return fmt.Errorf("key id 0 is reserved for unauthenticated messages; use 1..65535")
		}
		if len(k) < MinKeyLen {
			return fmt.Errorf("key %d has %d bytes; use at least %d random ones", id, len(k), MinKeyLen)
		}
	}
	if a.Send == 0 {
		if !a.Insecure {
			return fmt.Errorf("no key to authenticate with; configure one, or set insecure")
		}
		return nil
	}
	if _, ok := a.Keys[a.Send]; !ok {
		return fmt.Errorf("key %d to authenticate with is not configured", a.Send)
	}
	return nil
}

// Append appends m to b with the MAC of key id, or without one if id is 0.
func Append(b []byte, m *Message, k Keys, id KeyID) ([]byte, error) {
	m.KeyID = id
	if id == 0 {
		return m.append(b, 0)
	}
	key, ok := k[id]
	if !ok {
		return nil, fmt.Errorf("encode %v: key %d is not configured", m.Body.kind(), id)
	}
	start := len(b)
	b, err := m.append(b, MACLen)
	if err != nil {
		return nil, err
	}
	return append(b, macOf(key, m.Body.kind(), b[start:])...), nil
}

// Open checks the MAC of b, in constant time, then decodes b. Unless insecure is set, a
// message without MAC is refused. Before the MAC has been verified, only the header's
// fixed layout is read. Errors are *ParseError.
func Open(b []byte, k Keys, insecure bool) (Message, error) {
	m, _, perr := k.open(b, insecure)
	if perr != nil {
		return Message{}, perr
	}
	return m, nil
}

// open is Open for the machines: if the error is in the body of an authentic message,
// authentic is true, and m has the header that an answer needs.
func (k Keys) open(b []byte, insecure bool) (m Message, authentic bool, perr *ParseError) {
	h, body, perr := parseHeader(b)
	if perr != nil {
		return Message{Header: h}, false, perr
	}
	if h.KeyID == 0 {
		if !insecure {
			return Message{Header: h}, false, defect(Unauthenticated, "it has no MAC, and insecure is not set here")
		}
	} else {
		key, ok := k[h.KeyID]
		if !ok {
			return Message{Header: h}, false, defect(UnknownKey, "no key of id %d is configured here", h.KeyID)
		}
		n := len(b) - MACLen
		if !hmac.Equal(macOf(key, h.Type, b[:n]), b[n:]) {
			return Message{Header: h}, false, defect(BadMAC, "the key of id %d is another one here", h.KeyID)
		}
	}
	if m, perr = parseBody(h, body); perr != nil {
		return Message{Header: h}, true, perr
	}
	return m, true, nil
}
