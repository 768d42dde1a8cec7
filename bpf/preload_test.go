// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// One instance of each program serves all ports, loaded ahead or not.
func TestPreload(t *testing.T) {
	labtest.Require(t)
	s, err := NewSteering([]netip.Prefix{netip.MustParsePrefix("10.77.0.0/16")}, 4797, 3)
	if err != nil {
		t.Fatal(err)
	}
	s.Preload(false)
	var ports []*PortProgram
	for _, frags := range []bool{false, true, false} {
		p, err := s.Spare(frags)
		if err != nil {
			t.Fatal(err)
		}
		if p.Frags() != frags {
			t.Errorf("asked for %v, got %v", frags, p.Frags())
		}
		ports = append(ports, p)
	}
	if ports[0].program != ports[2].program || ports[0].program == ports[1].program {
		t.Error("the ports with frames in one buffer do not have the same program, or the third port has it")
	}
	if _, err := s.Spare(false); err == nil || !strings.Contains(err.Error(), "no slot") {
		t.Errorf("a fourth port of three: %v", err)
	}
	for _, p := range ports {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// What the maps have of a port is its own, and a port that comes later finds nothing of it.
func TestSlots(t *testing.T) {
	labtest.Require(t)
	s := newTestSteering(t)
	a, b := s.loadedPort(t, false), s.loadedPort(t, false)
	frame := udp4(t, inGroup4, 4791)
	run := func(p *PortProgram, want Reason) {
		t.Helper()
		runSteer(t, p, steerCase{name: p.ifname, frame: frame}, xdpDrop, want)
	}
	for _, p := range []*PortProgram{a, b} { // the other one's policy is as at first
		if err := p.SetPolicy(&Policy{Blocked: true}); err != nil {
			t.Fatal(err)
		}
		other := map[*PortProgram]*PortProgram{a: b, b: a}[p]
		if err := other.SetPolicy(&Policy{Addresses: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}, MACs: [][6]byte{{1}}}); err != nil {
			t.Fatal(err)
		}
		for _, at := range []*PortProgram{p, other} {
			if err := a.steer(0); err != nil {
				t.Fatal(err)
			}
			if err := b.steer(0); err != nil {
				t.Fatal(err)
			}
			if err := at.steer(testIfindex); err != nil {
				t.Fatal(err)
			}
			run(at, map[bool]Reason{true: DropPortBlocked, false: DropAllowMAC}[at == p])
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	c := s.loadedPort(t, false)
	if c.slot != b.slot {
		t.Fatalf("slot %d, want %d, which is free", c.slot, b.slot)
	}
	if n, err := c.Counters(); err != nil || n != (Counters{}) {
		t.Errorf("counters of a port that has come: %v, %v", n, err)
	}
	if err := a.steer(0); err != nil {
		t.Fatal(err)
	}
	run(c, DropNoSocket)
}

// Interfaces whose indexes are the same modulo the size of the map have a slot each, up to
// the size of a bucket.
func TestSlotsOfEqualIndexes(t *testing.T) {
	labtest.Require(t)
	s := newTestSteering(t)
	var ports []*PortProgram
	for i := range portsInBucket + 1 {
		p, err := s.Spare(false)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		ports = append(ports, p)
		err = p.steer(testIfindex + uint32(portsInBucket-1-i+portsInBucket)%portsInBucket*portBuckets + uint32(i/portsInBucket)*portsInBucket*portBuckets)
		if i < portsInBucket && err != nil || i == portsInBucket && (err == nil || !strings.Contains(err.Error(), fmt.Sprintf("modulo %d", portBuckets))) {
			t.Errorf("port %d: %v", i, err)
		}
	}
	runSteer(t, ports[portsInBucket-1], steerCase{name: "the last one", frame: udp4(t, inGroup4, 4791)}, xdpDrop, DropNoSocket)
	if err := ports[0].steer(0); err != nil {
		t.Fatal(err)
	}
	if err := ports[portsInBucket].steer(testIfindex + portsInBucket*portBuckets); err != nil {
		t.Errorf("where one has gone: %v", err)
	}
	runSteer(t, ports[portsInBucket-1], steerCase{name: "it stays", frame: udp4(t, inGroup4, 4791)}, xdpDrop, DropNoSocket)
}
