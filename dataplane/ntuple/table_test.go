// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package ntuple

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// nic plays a driver's table.
type nic struct {
	special bool // finds places itself
	places  int
	rules   map[uint32][]byte
	err     error // the error of the next request
}

func (n *nic) ioctl(b []byte) error {
	if err := n.err; err != nil {
		n.err = nil
		return err
	}
	e := binary.NativeEndian
	switch e.Uint32(b) {
	case cmdCount:
		e.PutUint32(b[atCount:], uint32(len(n.rules)))
		e.PutUint64(b[atData:], uint64(n.places))
		if n.special {
			e.PutUint64(b[atData:], uint64(n.places)|specialLocation)
		}
	case cmdAll:
		if int(e.Uint32(b[atCount:])) < len(n.rules) {
			return unix.EMSGSIZE
		}
		e.PutUint64(b[atData:], uint64(n.places))
		i := 0
		for at := range n.rules {
			e.PutUint32(b[atList+4*i:], at)
			i++
		}
		e.PutUint32(b[atCount:], uint32(i))
	case cmdInsert:
		at := e.Uint32(b[atLocation:])
		if at == anyLocation {
			if !n.special {
				return unix.EINVAL
			}
			at = uint32(len(n.rules) + 100)
			e.PutUint32(b[atLocation:], at)
		}
		if n.rules[at] != nil || !n.special && int(at) >= n.places {
			return unix.EINVAL
		}
		n.rules[at] = slices.Clone(b)
	case cmdDelete:
		at := e.Uint32(b[atLocation:])
		if n.rules[at] == nil {
			return unix.ENOENT
		}
		delete(n.rules, at)
	default:
		return unix.EOPNOTSUPP
	}
	return nil
}

func tableOf(n *nic) *Table { return New("eth9", n.ioctl) }

// Rules go to free places, from the last one on, or where the driver likes; others'
// rules stay, ours are gone at the end.
func TestRulesComeAndGo(t *testing.T) {
	group := netip.MustParseAddr("10.77.254.1")
	for _, special := range []bool{false, true} {
		n := &nic{special: special, places: 4, rules: map[uint32][]byte{3: {1}, 0: {2}}}
		tab := tableOf(n)
		a, err := tab.Add(group, 4791, 1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := tab.Add(group.Next(), 4791, 2)
		if err != nil {
			t.Fatal(err)
		}
		if !special && (a != 2 || b != 1) {
			t.Errorf("rules at %d and %d, want 2 and 1", a, b)
		}
		if _, err := tab.Add(group.Next().Next(), 4791, 3); (err == nil) != special {
			t.Errorf("a rule too many: %v", err)
		}
		if err := tab.Delete(a); err != nil {
			t.Error(err)
		}
		if err := tab.Delete(a); err == nil {
			t.Error("deleted twice")
		}
		if err := tab.Delete(3); err == nil {
			t.Error("somebody else's rule was deleted")
		}
		if err := tab.Close(); err != nil {
			t.Error(err)
		}
		if len(n.rules) != 2 || n.rules[3] == nil || n.rules[0] == nil {
			t.Errorf("rules after Close: %v", n.rules)
		}
	}
}

// The request is that of the kernel's header: the bytes at these places were found by
// offsetof in C, for x86-64 and all others with 64-bit alignment.
func TestRuleIsTheKernels(t *testing.T) {
	for _, c := range []struct {
		dst  string
		want map[int]byte // nothing else is set
	}{
		{"10.77.254.1", map[int]byte{
			0: 0x32, 16: 0x02, 24: 10, 25: 77, 26: 254, 27: 1, 30: 0x12, 31: 0xB7,
			96: 255, 97: 255, 98: 255, 99: 255, 102: 255, 103: 255, 168: 3, 176: 7,
		}},
		{"fd77::6c65:1", map[int]byte{
			0: 0x32, 16: 0x06, 36: 0xFD, 37: 0x77, 48: 0x6C, 49: 0x65, 51: 1, 54: 0x12, 55: 0xB7,
			108: 255, 109: 255, 110: 255, 111: 255, 112: 255, 113: 255, 114: 255, 115: 255, 116: 255, 117: 255, 118: 255, 119: 255,
			120: 255, 121: 255, 122: 255, 123: 255, 126: 255, 127: 255, 168: 3, 176: 7,
		}},
	} {
		b := rule(netip.MustParseAddr(c.dst), 4791, 3, 7)
		if len(b) != 192 {
			t.Errorf("%d bytes", len(b))
		}
		if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
			t.Skip("the bytes below are a little-endian machine's")
		}
		for i, v := range b {
			if v != c.want[i] {
				t.Errorf("%s: byte %d is %#x, want %#x", c.dst, i, v, c.want[i])
			}
		}
	}
}

// The loopback interface has no such rules, and says so; what fails says what to do.
func TestErrors(t *testing.T) {
	if _, err := Open("lo"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("lo: %v", err)
	}
	if _, err := Open("no-such-dev"); !errors.Is(err, unix.ENODEV) || errors.Is(err, ErrUnsupported) {
		t.Errorf("no such interface: %v", err)
	}
	n := &nic{special: true, places: 4, rules: make(map[uint32][]byte)}
	tab := tableOf(n)
	at, err := tab.Add(netip.MustParseAddr("fd77::1"), 4791, 0)
	if err != nil {
		t.Fatal(err)
	}
	n.err = unix.ENODEV
	if err := tab.Close(); err != nil {
		t.Errorf("close, the interface being gone (rule %d): %v", at, err)
	}
}
