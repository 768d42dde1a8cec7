// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"crypto/hmac"
	"crypto/sha256"
)

// A key of switches makes a switch a neighbour, and gives it no right in any group. A relay
// carries the proof that its sender has the group's key: an HMAC under that key over all bytes
// before it. These have the session of the adjacency and a sequence number, so that a
// proof counts once, and at the neighbour that it was made for. Only that a switch lacks the
// key can be said without a proof.

// proofLabel is covered by a proof, before the relay's own bytes. It is none of an envelope's
// labels, nor the beginning of one.
const proofLabel = "gleam: registration between switches, by the group's key\x00"

func proofOf(secret, b []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(proofLabel))
	h.Write(b)
	return h.Sum(nil)
}

// secretOf returns the secret of a group's key, or nil. One that is no longer configured still
// tells neighbours of the end of its groups.
func (l *endpointLink) secretOf(key KeyID) []byte {
	if secret, ok := l.auth.Keys[key]; ok {
		return secret
	}
	return l.retiredAuth[key]
}

// cutProof divides a relay without its MAC into its own bytes and the proof; nil: there is none.
func cutProof(b []byte) (own, proof []byte) {
	at := len(b) - MACLen
	if b[relayFlagsOffset]&relayProof == 0 || at < relayFixedLen {
		return b, nil
	}
	return b[:at], b[at:]
}

// checkProof reports why m, of the bytes own, does not prove the key of its group.
func (r *Registrar) checkProof(m *relay, own, proof []byte) *ParseError {
	secret, known := r.auth.Keys[m.id.key]
	switch {
	case m.id.key == 0 && r.auth.Insecure, m.unproved && m.saysKeyMissing():
		return nil
	case m.id.key == 0 || m.unproved:
		return defect(Unauthenticated, "a %v without the proof of key %d", m.kind, m.id.key)
	case !known:
		return defect(UnknownKey, "no key of id %d is configured here", m.id.key)
	case !hmac.Equal(proofOf(secret, own), proof):
		return defect(BadMAC, "the key of id %d is another one at the switch that sent the %v", m.id.key, m.kind)
	}
	return nil
}

// saysKeyMissing reports whether m says that a switch lacks the group's key, and nothing else.
func (m *relay) saysKeyMissing() bool {
	return m.kind == relayRefused && len(m.problems) == 1 && m.problems[0].Reason == KeyMissing
}

// keyMissing is why this switch refuses groups of a key that it lacks.
func (r *Registrar) keyMissing() Problem {
	return Problem{Reason: KeyMissing, Value: uint64(r.cfg.Switch.ID)}
}
