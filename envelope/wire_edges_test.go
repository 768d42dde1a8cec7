// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"strings"
	"testing"
)

// TestNoFieldOfZeros: a field that is flagged as present has a value, or else one
// registration could be written in two ways.
func TestNoFieldOfZeros(t *testing.T) {
	reg := sample(1, 2)
	body := reg.groupBody(reg.Members)
	plain, err := (&body).append(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	fixed := body.size() // flags first, then what every group has
	for _, c := range []struct {
		name string
		flag byte
		size int
	}{
		{"window of zeros", groupWindow, 20}, {"base epoch of zero", groupUpdate, 8},
		{"policy details of zeros", groupPolicy, 15}, {"target key of zero", groupTarget, 4},
	} {
		b := append(append(append([]byte(nil), plain[:fixed]...), make([]byte, c.size)...), plain[fixed:]...)
		b[0] |= c.flag
		r := &reader{b: b}
		if parseGroup(r, false); r.malformed != c.name || r.truncated || len(r.b) > 0 {
			t.Errorf("%s: %q, truncated %t, %d bytes left", c.name, r.malformed, r.truncated, len(r.b))
		}
		b[fixed+c.size-1] = 1
		r = &reader{b: b}
		if parseGroup(r, false); r.malformed != "" || r.truncated || len(r.b) > 0 {
			t.Errorf("with a value instead of %s: %q, truncated %t, %d bytes left", c.name, r.malformed, r.truncated, len(r.b))
		}
	}
}

// TestEmptySections: a section without records has nothing but its counts.
func TestEmptySections(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		good bool
	}{
		{"nothing", []byte{sqEach | rqEach, 0, 0, 0}, true},
		{"an unknown flag", []byte{0x80 | sqEach | rqEach, 0, 0, 0}, false},
		{"a prefix of nobody", []byte{sqEach | rqEach, 1, 0, 0, 10}, false},
		{"a prefix that is longer than an address", []byte{sqEach | rqEach, 5, 0, 0, 10, 9, 0, 1, 2}, false},
	} {
		r := &reader{b: c.b}
		ms := parseSection(r, false)
		if good := r.malformed == "" && !r.truncated && len(r.b) == 0; good != c.good || len(ms) > 0 {
			t.Errorf("%s: %q, truncated %t, %d members", c.name, r.malformed, r.truncated, len(ms))
		}
	}
}

// TestMemoryIsBoundedByBytes: a section that claims more records than its bytes can hold
// costs no memory for them.
func TestMemoryIsBoundedByBytes(t *testing.T) {
	for _, prefix := range []byte{0, 4} {
		b := binary.BigEndian.AppendUint16([]byte{0, prefix}, 0xFFFF)
		b = append(b, make([]byte, 60)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := &reader{b: b}
		ms := parseSection(r, false)
		runtime.ReadMemStats(&after)
		if !r.truncated || len(ms) > 0 {
			t.Errorf("prefix of %d bytes: truncated %t, %d members", prefix, r.truncated, len(ms))
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("prefix of %d bytes: 64 bytes cost %d KiB", prefix, n>>10)
		}
	}
}

// TestEndsOfHeaders: the shortest header, and addresses that do not fit together.
func TestEndsOfHeaders(t *testing.T) {
	for n, want := range map[int]Drop{fixedLen - 1: Truncated, fixedLen: BadMagic} {
		_, err := Parse(make([]byte, n))
		if perr, ok := err.(*ParseError); !ok || perr.Drop != want {
			t.Errorf("%d bytes of zeros: %v, want %v", n, err, want)
		}
	}
	six := Message{Header{Total: 1, Group: netip.MustParseAddr("fd00:9::1")}, &Delete{}}
	if _, err := six.append(nil, 0); err == nil || !strings.Contains(err.Error(), "reply address") {
		t.Errorf("a group of IPv6 without a reply address: %v", err)
	}
	reg := sample(1, 2)
	reg.Members = make([]MemberRecord, 0xFFFF)
	for i := range reg.Members {
		reg.Members[i].IP = netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
	}
	if _, err := reg.Segments(1500); err != nil {
		t.Errorf("65,535 members: %v", err)
	}
}

// TestWindowEnds: the smallest window, and those at the end of the address space.
func TestWindowEnds(t *testing.T) {
	const last = ^uint64(0)
	for _, c := range []struct {
		base, length uint64
		good         bool
	}{{0, 0, false}, {5, 0, false}, {5, 1, true}, {last, 1, true}, {last, 2, false}, {0, last, true}, {1, last, true}, {2, last, false}} {
		w := withWindows(sample(1, 1)).Window
		w.Base, w.Len = c.base, c.length
		if validWindow(w) != c.good {
			t.Errorf("%d bytes from %#x: %t", c.length, c.base, !c.good)
		}
	}
}
