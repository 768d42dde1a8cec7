// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// reader takes fields off the front of b. Once b is too short, truncated is set and every
// further field is zero, so that a body is read without a check after each field; the
// caller checks truncated and malformed at the end.
type reader struct {
	b         []byte
	truncated bool
	malformed string // the first field with an impossible value
}

func (r *reader) take(n int) []byte {
	if r.truncated || len(r.b) < n {
		r.truncated = true
		return nil
	}
	t := r.b[:n]
	r.b = r.b[n:]
	return t
}

// fail notes a field with an impossible value, unless it is one that is not there.
func (r *reader) fail(text string) {
	if r.malformed == "" && !r.truncated {
		r.malformed = text
	}
}

func (r *reader) u8() byte {
	if t := r.take(1); t != nil {
		return t[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if t := r.take(2); t != nil {
		return binary.BigEndian.Uint16(t)
	}
	return 0
}

func (r *reader) u24() uint32 {
	if t := r.take(3); t != nil {
		return uint32(t[0])<<16 | uint32(t[1])<<8 | uint32(t[2])
	}
	return 0
}

func (r *reader) u32() uint32 {
	if t := r.take(4); t != nil {
		return binary.BigEndian.Uint32(t)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if t := r.take(8); t != nil {
		return binary.BigEndian.Uint64(t)
	}
	return 0
}

func (r *reader) addr(v6 bool) netip.Addr {
	n := 4
	if v6 {
		n = 16
	}
	a, _ := netip.AddrFromSlice(r.take(n)) // the zero Addr if short, which the caller sees
	return a
}

func (r *reader) duration() time.Duration {
	v := r.u64()
	if v>>63 != 0 {
		r.fail("negative duration")
		return 0
	}
	return time.Duration(v)
}

func (r *reader) key(v6 bool) MemberKey {
	return MemberKey{IP: r.addr(v6), QPN: rocev2.QPN(r.u24())}
}

// optionalKey reads a key; an all-zero one means none.
func (r *reader) optionalKey(v6 bool) MemberKey {
	k := r.key(v6)
	if k.IP.IsUnspecified() && k.QPN == 0 {
		return MemberKey{}
	}
	return k
}

func (r *reader) window() mcast.Window {
	return mcast.Window{Base: r.u64(), Len: r.u64(), RKey: r.u32()}
}

func append24(b []byte, v uint32) []byte { return append(b, byte(v>>16), byte(v>>8), byte(v)) }

func appendWindow(b []byte, w mcast.Window) []byte {
	b = binary.BigEndian.AppendUint64(b, w.Base)
	b = binary.BigEndian.AppendUint64(b, w.Len)
	return binary.BigEndian.AppendUint32(b, w.RKey)
}
