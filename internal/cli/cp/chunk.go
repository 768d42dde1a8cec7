// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
)

// A chunk on its way, through the group or over a connection, is its number, an HMAC of
// number and bytes, and the bytes.
const chunkHead = 8 + sha256.Size

// keySize is the length of the key of a transfer's HMACs.
const keySize = 32

// seal makes and checks chunks on their way. One goroutine at a time uses it.
type seal struct {
	mac hash.Hash
	sum [sha256.Size]byte
}

func newSeal(key []byte) *seal { return &seal{mac: hmac.New(sha256.New, key)} }

func (s *seal) of(msg []byte) []byte {
	s.mac.Reset()
	s.mac.Write(msg[:8])
	s.mac.Write(msg[chunkHead:])
	return s.mac.Sum(s.sum[:0])
}

// close fills in the head of msg, whose bytes are in place.
func (s *seal) close(msg []byte, chunk int) {
	binary.BigEndian.PutUint64(msg, uint64(chunk))
	copy(msg[8:], s.of(msg))
}

var errForged = errors.New("a chunk whose HMAC is wrong")

// open returns number and bytes of a chunk of m.
func (s *seal) open(m *manifest, msg []byte) (chunk int, data []byte, err error) {
	if len(msg) < chunkHead {
		return 0, nil, fmt.Errorf("a chunk of %d bytes with its head", len(msg))
	}
	if !hmac.Equal(s.of(msg), msg[8:chunkHead]) {
		return 0, nil, errForged
	}
	n := binary.BigEndian.Uint64(msg)
	if n >= uint64(m.chunks) {
		return 0, nil, fmt.Errorf("chunk %d of %d", n, m.chunks)
	}
	if _, _, want := m.place(int(n)); want != len(msg)-chunkHead {
		return 0, nil, fmt.Errorf("chunk %d has %d bytes, want %d", n, len(msg)-chunkHead, want)
	}
	return int(n), msg[chunkHead:], nil
}
