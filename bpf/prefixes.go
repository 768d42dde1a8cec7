// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
)

// MaxPrefixes is how many group prefixes of each address family there can be.
const MaxPrefixes = 1024

// prefixes are the group prefixes, which all programs look up in two tries, and the bits that
// they have in common.
type prefixes struct {
	mu     sync.Mutex
	list   []netip.Prefix
	common common // the common bits, with the masks that are in force
}

// begin enters the first prefixes. Programs are loaded after that.
func (x *prefixes) begin(maps *steerMaps, list []netip.Prefix) error {
	x.common = commonBits(list)
	return x.replace(maps, list)
}

// SetPrefixes replaces the group prefixes. Frames to an address that is in prefixes of before
// and of now go on to their sockets meanwhile. After an error the former prefixes count.
func (s *Steering) SetPrefixes(list []netip.Prefix) error {
	if err := checkPrefixes(list); err != nil {
		return err
	}
	return s.prefixes.replace(&s.maps, list)
}

// bits returns the bits that the masks are of. They never change.
func (x *prefixes) bits() (bits4 uint32, bits6 uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.common.bits4, x.common.bits6
}

func (x *prefixes) replace(maps *steerMaps, list []netip.Prefix) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.common
	c.narrow(list)
	if err := maps.Common.Put(uint32(0), c.masks()); err != nil {
		return explain("enter the bits that all group prefixes have in common", err)
	}
	x.common = c // also if list is not entered: a mask may have fewer bits than it could
	var fresh []netip.Prefix
	for _, p := range list {
		if slices.Contains(x.list, p) {
			continue
		}
		if err := enter(maps, p); err != nil {
			return errors.Join(explain(fmt.Sprintf("enter group prefix %s", p), err), leave(maps, fresh))
		}
		fresh = append(fresh, p)
	}
	former := x.list
	x.list = slices.Clone(list)
	return leave(maps, slices.DeleteFunc(former, func(p netip.Prefix) bool { return slices.Contains(list, p) }))
}

// enter adds a group prefix to its trie.
func enter(maps *steerMaps, p netip.Prefix) error {
	if p.Addr().Is4() {
		return maps.Prefixes4.Put(prefixKey4(p), uint32(0))
	}
	return maps.Prefixes6.Put(prefixKey6(p), uint32(0))
}

// leave removes group prefixes from their tries.
func leave(maps *steerMaps, list []netip.Prefix) (err error) {
	for _, p := range list {
		trie, key := maps.Prefixes6, any(prefixKey6(p))
		if p.Addr().Is4() {
			trie, key = maps.Prefixes4, any(prefixKey4(p))
		}
		if e := trie.Delete(key); e != nil && !errors.Is(e, ebpf.ErrKeyNotExist) {
			err = errors.Join(err, explain(fmt.Sprintf("remove group prefix %s", p), e))
		}
	}
	return err
}

func checkPrefixes(prefixes []netip.Prefix) error {
	if len(prefixes) == 0 {
		return errors.New("no group prefix: without one no packet would be steered")
	}
	var n4, n6 int
	for _, p := range prefixes {
		switch {
		case !p.IsValid():
			return errors.New("a group prefix is not valid")
		case p.Addr().Is4In6():
			return fmt.Errorf("group prefix %s is an IPv4-mapped one: write it as IPv4", p)
		case p.Bits() == 0:
			return fmt.Errorf("group prefix %s would take every RoCEv2 packet: make it longer", p)
		case p != p.Masked():
			return fmt.Errorf("group prefix %s has host bits set: did you mean %s?", p, p.Masked())
		case p.Addr().Is4():
			n4++
		default:
			n6++
		}
	}
	if n4 > MaxPrefixes || n6 > MaxPrefixes {
		return fmt.Errorf("%d IPv4 and %d IPv6 group prefixes: at most %d of each", n4, n6, MaxPrefixes)
	}
	return nil
}

// prefixKey4 is struct prefix4 of prefixes.h.
func prefixKey4(p netip.Prefix) (k [8]byte) {
	binary.NativeEndian.PutUint32(k[:], uint32(p.Bits()))
	a := p.Addr().As4()
	copy(k[4:], a[:])
	return k
}

// prefixKey6 is struct prefix6.
func prefixKey6(p netip.Prefix) (k [20]byte) {
	binary.NativeEndian.PutUint32(k[:], uint32(p.Bits()))
	a := p.Addr().As16()
	copy(k[4:], a[:])
	return k
}
