// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/rocev2"
)

// expectedFrame is the frame that a sink should get; any other is counted as wrong.
type expectedFrame struct {
	mac rocev2.MAC
	dst netip.Addr
	qpn rocev2.QPN
}

// seenValue is struct seen of replicate.c.
type seenValue struct{ Good, Again, Wrong, Acks uint64 }

// psnNone is PSN_NONE of replicate.c.
const psnNone = uint32(0xFFFFFFFF)

// The sinks' bounds are those of replicate.c.
const (
	maxLegs   = 16 // the source included
	maxGroups = 4
	groupQPNs = 16 // the step from a member's QPN in one group to that in the next
)

// sinkIndex is the index of a leg of a group.
func sinkIndex(leg, group int) int { return leg + maxLegs*group }

// sinks count the frames that arrive at the hosts.
type sinks struct {
	groups        int // the number of groups whose frames count
	seen, arrived *ebpf.Map
	programs      []*ebpf.Program
	links         []link.Link
}

func newSinks(groups int) (*sinks, error) {
	spec, err := loadReplicate()
	if err != nil {
		return nil, err
	}
	f := &sinks{groups: groups}
	if f.seen, err = ebpf.NewMap(spec.Maps["seen"]); err != nil {
		return nil, fmt.Errorf("make the sinks' counters: %w", err)
	}
	if f.arrived, err = ebpf.NewMap(spec.Maps["arrived"]); err != nil {
		return nil, errors.Join(fmt.Errorf("make the sinks' counters: %w", err), f.Close())
	}
	for i := range maxLegs * maxGroups {
		if err := f.setLast(i, lastValue{PSN: psnNone}); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// lastValue is struct last of replicate.c.
type lastValue struct {
	PSN   uint32
	Pass  uint32
	Asked uint32
	Rest  [13]uint32
}

// setLast sets the last PSN at a sink, and whether its XDP program lets frames pass.
func (f *sinks) setLast(leg int, v lastValue) error {
	if err := f.arrived.Put(uint32(leg), &v); err != nil {
		return fmt.Errorf("set a sink's PSN: %w", err)
	}
	return nil
}

// pass makes the XDP program of a sink let frames pass to sockets, or drop them.
func (f *sinks) pass(leg int, passes bool) error {
	v, err := valueAt(f.arrived, leg)
	if err != nil {
		return err
	}
	v.Pass = 0
	if passes {
		v.Pass = 1
	}
	return f.setLast(leg, v)
}

// lastAt reads a sink's last PSN from arrived, or psnNone.
func lastAt(arrived *ebpf.Map, leg int) (uint32, error) {
	v, err := valueAt(arrived, leg)
	return v.PSN, err
}

func valueAt(arrived *ebpf.Map, leg int) (v lastValue, err error) {
	if err := arrived.Lookup(uint32(leg), &v); err != nil {
		return v, fmt.Errorf("read a sink's PSN: %w", err)
	}
	return v, nil
}

// load loads the program that counts the frames of sink leg, an XDP program if xdp is
// set.
func (f *sinks) load(leg, frameLen int, want expectedFrame, xdp bool) error {
	spec, err := loadReplicate()
	if err != nil {
		return err
	}
	dst := want.dst.As4()
	err = errors.Join(
		spec.Variables["leg"].Set(uint32(leg)),
		spec.Variables["groups"].Set(uint32(f.groups)),
		spec.Variables["expect_len"].Set(uint32(frameLen)),
		spec.Variables["expect_qpn"].Set(uint32(want.qpn)),
		spec.Variables["expect_dst"].Set(binary.LittleEndian.Uint32(dst[:])),
		spec.Variables["expect_mac_high"].Set(binary.LittleEndian.Uint32(want.mac[:4])),
		spec.Variables["expect_mac_low"].Set(binary.LittleEndian.Uint16(want.mac[4:])),
	)
	if err != nil {
		return err
	}
	options := &ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{"seen": f.seen, "arrived": f.arrived}}
	var tc struct {
		P *ebpf.Program `ebpf:"sink_tc"`
	}
	var inXDP struct {
		P *ebpf.Program `ebpf:"sink_xdp"`
	}
	if xdp {
		err = spec.LoadAndAssign(&inXDP, options)
	} else {
		err = spec.LoadAndAssign(&tc, options)
	}
	if err != nil {
		return fmt.Errorf("load a sink's program: %w", err)
	}
	f.programs = append(f.programs, cmp.Or(tc.P, inXDP.P))
	return nil
}

// attach counts frames that arrive at an interface from now on for sink leg, by an XDP
// program if xdp is set. The interface is in the calling thread's namespace, and so is
// h.
func (f *sinks) attach(h *netlink.Handle, ifindex, leg, frameLen int, want expectedFrame, xdp bool) error {
	if err := f.load(leg, frameLen, want, xdp); err != nil {
		return err
	}
	p := f.programs[len(f.programs)-1]
	if xdp {
		l, err := link.AttachXDP(link.XDPOptions{Program: p, Interface: ifindex, Flags: link.XDPDriverMode})
		if err != nil {
			return fmt.Errorf("attach a sink's program: %w", err)
		}
		f.links = append(f.links, l)
		return nil
	}
	// This goes with the interface.
	if err := addClsact(h, ifindex); err != nil {
		return err
	}
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: ifindex, Parent: netlink.HANDLE_MIN_INGRESS, Priority: 1, Protocol: unix.ETH_P_ALL},
		Fd:          p.FD(), Name: "sink_tc", DirectAction: true,
	}
	if err := h.FilterAdd(filter); err != nil {
		return fmt.Errorf("attach a sink's program to tc: %w", err)
	}
	return nil
}

// addClsact makes an interface take filters for received frames.
func addClsact(h *netlink.Handle, ifindex int) error {
	qdisc := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: ifindex, Handle: netlink.MakeHandle(0xFFFF, 0), Parent: netlink.HANDLE_CLSACT,
	}}
	if err := h.QdiscAdd(qdisc); err != nil {
		return fmt.Errorf("add a clsact qdisc: %w", err)
	}
	return nil
}

// counts returns the counters of sink leg since it was made.
func (f *sinks) counts(leg int) (sum seenValue, err error) {
	var each []seenValue
	if err := f.seen.Lookup(uint32(leg), &each); err != nil {
		return sum, fmt.Errorf("read a sink's counters: %w", err)
	}
	for _, s := range each {
		sum.Good += s.Good
		sum.Again += s.Again
		sum.Wrong += s.Wrong
		sum.Acks += s.Acks
	}
	return sum, nil
}

// Close detaches all programs.
func (f *sinks) Close() error {
	var errs []error
	for _, l := range f.links {
		errs = append(errs, l.Close())
	}
	for _, p := range f.programs {
		errs = append(errs, p.Close())
	}
	return errors.Join(append(errs, f.seen.Close(), f.arrived.Close())...)
}
