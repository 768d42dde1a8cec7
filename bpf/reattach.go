// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
)

// A process that has given up its privileges loads no program any more. So the program of a
// port whose interface vanishes is attached to the interface that comes in its place, and
// ports that are added later, or have another MTU, get one that was loaded at start.

// Spare is the program for a port that may be added later, for frames in one buffer or in
// several.
func (s *Steering) Spare(frags bool) (*PortProgram, error) {
	p, err := s.newPort("a port that is added later")
	if err != nil {
		return nil, err
	}
	if err := p.take(frags); err != nil {
		p.release()
		return nil, explain("load the XDP program for "+p.ifname, err)
	}
	return p, nil
}

// Detach detaches the program from its interface, which may be gone. The program, its
// counters and its policy stay for AttachTo.
func (p *PortProgram) Detach() error {
	if p.link == nil {
		return nil
	}
	err := errors.Join(p.link.Close(), p.steer(0))
	if p.clones != nil {
		err = errors.Join(err, p.clones.Close())
	}
	p.link, p.clones = nil, nil
	if err != nil {
		return fmt.Errorf("detach the XDP program from %s: %w", p.ifname, err)
	}
	return nil
}

// LoadBoth loads both programs: a port whose MTU grows, or falls, has the other one then. Linux before 5.18 has none for
// frames in several buffers: such a port then runs in generic mode.
func (s *Steering) LoadBoth() {
	_, _ = s.program(true)
	_, _ = s.program(false)
}

// AttachTo attaches the program, which is attached to no interface, to another one, or to the same at another MTU,
// like Attach, but with the programs that were loaded. One that took frames in several buffers does so again before
// it falls back to generic mode: a veth wants that as long as its peer's MTU is long.
func (p *PortProgram) AttachTo(ifindex int, ifname string, mode Mode, mtu int) error {
	was := p.frags
	_, one := p.steering.program(false)
	_, several := p.steering.program(true)
	if was {
		mtu = max(mtu, ethernetMTU+1)
	}
	ways := attempts(mode, mtu)
	for i := range ways {
		ways[i].frags = one != nil || ways[i].frags && several == nil
	}
	var before error
	for _, way := range slices.Compact(ways) {
		err := p.take(way.frags)
		if err == nil {
			err = p.attachTo(ifindex, ifname, way)
		}
		if err == nil {
			if way.mode == Native {
				before = nil
			}
			p.nativeErr = before
			return nil
		}
		if before != nil {
			err = fmt.Errorf("%w (before that: %w)", err, before)
		}
		if before = err; !driverRefused(err) {
			break
		}
	}
	_ = p.take(was) // the program before, which is loaded
	return before
}

// Reset makes the program that of a new port: its counters are 0, and it takes no frame of
// anybody until it has a policy.
func (p *PortProgram) Reset() error {
	if err := errors.Join(p.empty(), p.SetPolicy(&Policy{Blocked: true, MACs: [][6]byte{}})); err != nil {
		return fmt.Errorf("reset the XDP program of %s: %w", p.ifname, err)
	}
	return nil
}

// empty removes all that the maps have of the port: they are as at first.
func (p *PortProgram) empty() error {
	err := errors.Join(p.SetPolicy(&Policy{}), retain(p.maps.Stations, stationSlot(p.slot), nil))
	zero := make([]uint64, ebpf.MustPossibleCPU())
	for r := range NumReasons {
		err = errors.Join(err, p.maps.Counters.Put(p.reasonKey(r), zero), p.maps.Offenders.Put(p.reasonKey(r), uint64(0)))
	}
	return err
}

// retain removes the entries of a map that belong to a port and are not in wanted.
func retain[K comparable](m *ebpf.Map, own func(K) bool, wanted map[K]struct{}) error {
	var stale []K
	var k K
	for err := m.NextKey(nil, &k); ; err = m.NextKey(k, &k) {
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			break
		}
		if err != nil {
			return err
		}
		if _, ok := wanted[k]; !ok && own(k) {
			stale = append(stale, k)
		}
	}
	for _, k := range stale {
		if err := m.Delete(k); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
	}
	return nil
}
