// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// method is one method to replicate. Several rows may be measured on one method.
type method struct {
	name          string
	bridge        bool // the switch's ports are in a bridge
	user          bool // true: it runs in user space, on a CPU of its own
	xdp           bool // copies leave by XDP
	generatorOnly bool // no replication: measures the generator's own cost
	feedback      bool // takes the receivers' ACKs
	groups        int  // groups that the source sends to, in turn; 0: one

	destination func(*testbed) (rocev2.MAC, netip.Addr)  // where the source sends to
	expected    func(s *testbed, host int) expectedFrame // the frame that a receiver should get
	start       func(*testbed) error                     // makes the switch replicate until the testbed closes
	unservable  func(benchCase) string                   // the reason for which it cannot serve a case; "" if it can
}

// The methods, by name.
var (
	generatorMethod = &method{name: "generator", generatorOnly: true, destination: toPort, expected: (*testbed).expect, start: func(*testbed) error { return nil }}
	bareMethod      = &method{name: "bare", user: true, destination: toPort, expected: rewritten, start: openBare}
	gleamdMethod    = &method{name: "gleamd", user: true, feedback: true, destination: toPort, expected: rewritten, start: gleamdWith(1)}
	gleamd2Method   = &method{name: "gleamd-w2", user: true, feedback: true, destination: toPort, expected: rewritten, start: gleamdWith(2)}
	gleamd4Method   = &method{name: "gleamd-w4", user: true, feedback: true, destination: toPort, expected: rewritten, start: gleamdWith(4)}
	groups2Method   = &method{name: "gleamd-g2", user: true, feedback: true, groups: 2, destination: toPort, expected: rewritten, start: gleamdWith(1), unservable: liveFramesOnly}
	groups2w2Method = &method{name: "gleamd-g2-w2", user: true, feedback: true, groups: 2, destination: toPort, expected: rewritten, start: gleamdWith(2), unservable: liveFramesOnly}
	groups4w4Method = &method{name: "gleamd-g4-w4", user: true, feedback: true, groups: 4, destination: toPort, expected: rewritten, start: gleamdWith(4), unservable: liveFramesOnly}
	fastMethod      = &method{name: "gleamd-fast", user: true, xdp: true, feedback: true, destination: toPort, expected: rewritten, start: openFastGleamd}

	broadcastMethod = &method{name: "xdp-broadcast", xdp: true, destination: toPort, expected: rewrittenMAC, start: openBroadcast, unservable: singleBufferOnly}
	programMethod   = &method{name: "xdp-program", xdp: true, destination: toPort, expected: rewritten, start: openFastProgram(fastSlots), unservable: singleBufferOnly}
	noRepairMethod  = &method{name: "xdp-program-norepair", xdp: true, destination: toPort, expected: rewritten, start: openFastProgram(0), unservable: singleBufferOnly}
	bridgeMethod    = &method{name: "bridge", bridge: true, destination: toMulticast, expected: (*testbed).expect, start: openBridge}
	mirredMethod    = &method{name: "tc-mirred", destination: toPort, expected: (*testbed).expect, start: openMirred}
	cloneMethod     = &method{name: "tc-clone", destination: toPort, expected: rewritten, start: openClone}
	forwarderMethod = &method{name: "udp-forwarder", user: true, destination: toSwitch, expected: forwarded, start: openForwarder}
)

// toPort addresses the group by the port's MAC, as a host does that has resolved
// GroupIP.
func toPort(s *testbed) (rocev2.MAC, netip.Addr) {
	mac, _ := s.portMAC(0) // of an interface that was just made
	return mac, groupIP
}

func toSwitch(s *testbed) (rocev2.MAC, netip.Addr) {
	mac, _ := toPort(s)
	return mac, lab.StarSwitchIPv4
}

// toMulticast is an IPv4 multicast address with its MAC (RFC 1112 §6.4).
func toMulticast(*testbed) (rocev2.MAC, netip.Addr) {
	return rocev2.MAC{0x01, 0x00, 0x5E, 0x4D, 0x00, 0x01}, netip.AddrFrom4([4]byte{239, 77, 0, 1})
}

// rewritten is a packet for the receiver's own queue pair.
func rewritten(s *testbed, i int) expectedFrame {
	h := s.star.Hosts[i]
	return expectedFrame{mac: rocev2.MAC(h.MAC), dst: h.IPv4, qpn: memberQPN + rocev2.QPN(i)}
}

// rewrittenMAC is a packet of which only the MAC addresses were changed.
func rewrittenMAC(s *testbed, i int) expectedFrame {
	e := s.expect(i)
	e.mac = rocev2.MAC(s.star.Hosts[i].MAC)
	return e
}

// forwarded is a datagram that was sent on unchanged.
func forwarded(s *testbed, i int) expectedFrame {
	h := s.star.Hosts[i]
	return expectedFrame{mac: rocev2.MAC(h.MAC), dst: h.IPv4, qpn: virtualQPN}
}

func singleBufferOnly(c benchCase) string {
	if c.jumbo() {
		return "the kernel does not broadcast multi-buffer frames (dev_map_enqueue_clone)"
	}
	return ""
}

// enableNAPI makes a port receive by NAPI, without which frames that XDP sends to it
// from the other end, as the generator does, are dropped.
func (s *testbed) enableNAPI() error {
	return s.star.Switch.SetFeature(s.star.Ports[0], lab.GRO, true)
}

// openBridge enables NAPI alone: the lab's bridge floods.
func openBridge(s *testbed) error { return s.enableNAPI() }

func liveFramesOnly(c benchCase) string {
	if c.jumbo() {
		return "the generator of long frames sends to one group"
	}
	return ""
}

// openMirred has a filter at the first port send each packet out of all others.
func openMirred(s *testbed) error {
	if err := s.enableNAPI(); err != nil {
		return err
	}
	h := s.star.Switch.Handle()
	in, err := ifindex(s.star.Switch, s.star.Ports[0])
	if err != nil {
		return err
	}
	if err := addClsact(h, in); err != nil {
		return err
	}
	filter := &netlink.U32{FilterAttrs: netlink.FilterAttrs{
		LinkIndex: in, Parent: netlink.HANDLE_MIN_INGRESS, Priority: 1, Protocol: unix.ETH_P_IP,
	}}
	for i := 1; i <= s.benchCase.legs; i++ {
		out, err := ifindex(s.star.Switch, s.star.Ports[i])
		if err != nil {
			return err
		}
		a := netlink.NewMirredAction(out)
		if i < s.benchCase.legs {
			a.MirredAction, a.Action = netlink.TCA_EGRESS_MIRROR, netlink.TC_ACT_PIPE
		}
		filter.Actions = append(filter.Actions, a)
	}
	if err := h.FilterAdd(filter); err != nil {
		return fmt.Errorf("add a u32 filter with mirred actions: %w", err)
	}
	return nil
}

// openBroadcast replicates inside XDP: the least work on a packet there that still
// reaches its receivers.
func openBroadcast(s *testbed) error {
	spec, err := loadReplicate()
	if err != nil {
		return err
	}
	// A broadcast walks every entry, empty ones too.
	spec.Maps["ports"].MaxEntries = uint32(s.benchCase.legs)
	var o struct {
		Broadcast *ebpf.Program `ebpf:"broadcast"`
		Ports     *ebpf.Map     `ebpf:"ports"`
	}
	if err := spec.LoadAndAssign(&o, nil); err != nil {
		return fmt.Errorf("load the broadcast program: %w", err)
	}
	s.onClose(func() error { return closeAll(o.Broadcast, o.Ports) })
	for i := 1; i <= s.benchCase.legs; i++ {
		if err := s.addEgress(o.Ports, i); err != nil {
			return err
		}
	}
	in, err := ifindex(s.star.Switch, s.star.Ports[0])
	if err != nil {
		return err
	}
	return s.attachXDP(in, o.Broadcast)
}

// attachXDP attaches a program to a port of the switch.
func (s *testbed) attachXDP(index int, p *ebpf.Program) error {
	l, err := lab.In(s.star.Switch, func() (link.Link, error) {
		return link.AttachXDP(link.XDPOptions{Program: p, Interface: index, Flags: link.XDPDriverMode})
	})
	if err != nil {
		return fmt.Errorf("attach the program of %s: %w", s.method.name, err)
	}
	s.onClose(l.Close)
	return nil
}

// addEgress adds the port to host i to a broadcast, with its program.
func (s *testbed) addEgress(ports *ebpf.Map, i int) error {
	spec, err := loadReplicate()
	if err != nil {
		return err
	}
	src, err := s.portMAC(i)
	if err != nil {
		return err
	}
	err = errors.Join(
		spec.Variables["egress_dst"].Set(macWord(rocev2.MAC(s.star.Hosts[i].MAC))),
		spec.Variables["egress_src"].Set(macWord(src)))
	if err != nil {
		return err
	}
	var o struct {
		Egress *ebpf.Program `ebpf:"egress"`
	}
	if err := spec.LoadAndAssign(&o, nil); err != nil {
		return fmt.Errorf("load the egress program: %w", err)
	}
	defer o.Egress.Close() // the map holds it
	out, err := ifindex(s.star.Switch, s.star.Ports[i])
	if err != nil {
		return err
	}
	value := struct{ Ifindex, FD uint32 }{uint32(out), uint32(o.Egress.FD())}
	if err := s.star.Switch.Do(func() error { return ports.Put(uint32(i-1), &value) }); err != nil {
		return fmt.Errorf("add port %s to the broadcast: %w", s.star.Ports[i], err)
	}
	return nil
}

// macWord is a MAC address in the lower six bytes of a word, as in memory.
func macWord(m rocev2.MAC) (w uint64) {
	for i, b := range m {
		w |= uint64(b) << (8 * i)
	}
	return w
}
