// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"encoding/binary"
	"math"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// reader takes fields off the front of b. After the first one that is not there, or that
// has an impossible value, every further field is zero, and ok is false.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) ok() bool { return !r.bad }

func (r *reader) fail() { r.b, r.bad = nil, true }

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	t := r.b[:n:n]
	r.b = r.b[n:]
	return t
}

// roomFor returns an empty slice with room for n values of at least a byte each, nil for none. It is no longer than what
// is left to read.
func roomFor[T any](r *reader, n uint64) []T {
	if n == 0 {
		return nil
	}
	return make([]T, 0, min(n, uint64(len(r.b))))
}

func (r *reader) u8() byte {
	if t := r.bytes(1); t != nil {
		return t[0]
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// upTo reads a number that is not above most.
func (r *reader) upTo(most uint64) uint64 {
	v := r.uvarint()
	if v > most {
		r.fail()
		return 0
	}
	return v
}

func (r *reader) count() int { return int(r.upTo(math.MaxInt64)) }

func (r *reader) duration() time.Duration { return time.Duration(r.upTo(math.MaxInt64)) }

func (r *reader) flag() bool { return r.upTo(1) == 1 }

// u24 reads a PSN or a QPN.
func (r *reader) u24() uint32 {
	if t := r.bytes(3); t != nil {
		return uint32(t[0])<<16 | uint32(t[1])<<8 | uint32(t[2])
	}
	return 0
}

func (r *reader) psn() rocev2.PSN { return rocev2.PSN(r.u24()) }

func (r *reader) u32() uint32 {
	if t := r.bytes(4); t != nil {
		return binary.BigEndian.Uint32(t)
	}
	return 0
}

// addr reads an address. Without one it is the zero Addr.
func (r *reader) addr() netip.Addr {
	n := uint64(r.u8())
	if n == 0 {
		return netip.Addr{}
	}
	a, ok := netip.AddrFromSlice(r.bytes(n))
	if !ok {
		r.fail()
	}
	return a
}

func (r *reader) text() string { return string(r.bytes(r.uvarint())) }

// done reports whether all of the input was read, and is right.
func (r *reader) done() bool { return r.ok() && len(r.b) == 0 }

func appendUvarint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

// appendCount appends n, or 0 if n is negative.
func appendCount(b []byte, n int) []byte { return appendUvarint(b, uint64(max(0, n))) }

func appendDuration(b []byte, d time.Duration) []byte { return appendCount(b, int(d)) }

func appendFlag(b []byte, f bool) []byte {
	if f {
		return append(b, 1)
	}
	return append(b, 0)
}

func append24(b []byte, v uint32) []byte { return append(b, byte(v>>16), byte(v>>8), byte(v)) }

func append32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(b, v) }

func appendAddr(b []byte, a netip.Addr) []byte {
	s := a.AsSlice()
	return append(append(b, byte(len(s))), s...)
}
