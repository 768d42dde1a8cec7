// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/rocev2"
)

// fakeBridge is a kernel with one bridge port.
type fakeBridge struct {
	port     locate.BridgePort
	stations []locate.Station
	err      error
}

func (f *fakeBridge) Port(int) (locate.BridgePort, error) { return f.port, f.err }
func (f *fakeBridge) Close()                              {}
func (f *fakeBridge) Stations(int, *locate.BridgePort) ([]locate.Station, error) {
	return f.stations, f.err
}

// fakeProgram is the program of that port.
type fakeProgram struct {
	policy   bpf.Policy
	set      int
	stations map[bpf.Station]bool
}

func (f *fakeProgram) SetPolicy(p *bpf.Policy) error { f.policy = *p; f.set++; return nil }
func (f *fakeProgram) SetStation(s bpf.Station, on bool) error {
	f.stations[s] = on
	return nil
}

// The policy of a port's program is what its bridge does, and is set when that changes;
// stations come and go. A port that cannot be asked for stays as it was, and that is
// said once.
func TestBridging(t *testing.T) {
	kernel, program := &fakeBridge{}, &fakeProgram{stations: make(map[bpf.Station]bool)}
	said, applied := 0, 0
	b := &Bridging{kernel: kernel, notify: func(bool, string, ...any) { said++ }, apply: func(int, locate.BridgePort) { applied++ }}
	b.ports = []bridgedPort{{
		BridgedPort: BridgedPort{Name: "p1", Program: program, Allow: &config.Allow{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}},
		stations:    make(map[locate.Station]struct{}),
	}}
	if b.poll(); program.set != 0 || applied != 0 || said != 0 {
		t.Errorf("nothing has changed: policy set %d times, applied %d times, %d lines", program.set, applied, said)
	}
	kernel.port = locate.BridgePort{Bridge: 7, Filters: true, PVID: 3, TagType: 0x8100}
	kernel.port.Own[0], kernel.port.Local[0] = 0b1010, 0b1100
	b.poll()
	b.poll()
	p := &program.policy
	if program.set != 1 || applied != 1 || said != 1 || p.Blocked || p.Locked || !p.Filters || p.PVID != 3 || p.VLANs[0] != 0b1000 || p.Addresses == nil || p.MACs != nil {
		t.Errorf("a bridge that filters: set %d times, applied %d times, %d lines, %+v", program.set, applied, said, *p)
	}
	one, two := locate.Station{MAC: locate.MAC{1}, VID: 3}, locate.Station{MAC: locate.MAC{2}, VID: 3}
	kernel.port.Locked, kernel.stations = true, []locate.Station{one}
	b.poll()
	kernel.stations = []locate.Station{two}
	b.poll()
	if !program.policy.Locked || len(program.stations) != 2 || program.stations[bpf.Station{MAC: one.MAC, VID: 3}] || !program.stations[bpf.Station{MAC: two.MAC, VID: 3}] {
		t.Errorf("a locked port: %+v", program.stations)
	}
	kernel.err, said = errors.New("no"), 0
	b.poll()
	b.poll()
	if said != 1 || !program.policy.Locked {
		t.Errorf("the kernel does not answer: %d lines", said)
	}
	kernel.err = nil
	kernel.port.Blocked = true
	if b.poll(); !program.policy.Blocked {
		t.Error("the port is blocked, and its program does not know")
	}
	kernel.port = locate.BridgePort{}
	if b.poll(); program.policy.Blocked || program.policy.Locked || program.policy.Filters || program.policy.Addresses == nil {
		t.Errorf("it left the bridge: %+v", program.policy)
	}
}

// A neighbour switch may send by a port whose policy is about hosts, as long as it is up, and
// by that port alone.
func TestPolicyAdmitsTheNeighbour(t *testing.T) {
	program := [2]*fakeProgram{{}, {}}
	b := &Bridging{kernel: &fakeBridge{}, bell: make(chan struct{}, 1), rebound: make(map[int]bridgedPort), notify: func(bool, string, ...any) {}, apply: func(int, locate.BridgePort) {}}
	for i := range program {
		b.ports = append(b.ports, bridgedPort{BridgedPort: BridgedPort{Name: "p", Program: program[i], Allow: &config.Allow{MACs: []config.MAC{{1}}}}})
	}
	mac := rocev2.MAC{2, 0, 0, 0, 0, 7}
	b.SetNeighbours(map[int]rocev2.MAC{1: mac})
	if len(b.bell) != 1 {
		t.Error("nobody wakes the follower")
	}
	b.poll()
	if program[0].set != 0 || program[1].policy.Neighbour != mac || len(program[1].policy.MACs) != 1 {
		t.Errorf("up: %+v", program)
	}
	b.poll()
	if program[1].set != 1 {
		t.Errorf("set %d times", program[1].set)
	}
	b.Rebind(1, BridgedPort{Name: "p", Program: program[1], Allow: &config.Allow{}}) // another interface
	if b.poll(); program[1].policy.Neighbour != mac {
		t.Errorf("another interface: %+v", program[1].policy)
	}
	b.SetNeighbours(nil)
	if b.poll(); program[1].policy.Neighbour != [6]byte{} {
		t.Errorf("down: %+v", program[1].policy)
	}
}
