// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package replicate

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

// way is one way to replicate. Several rows may be measured on one way.
type way struct {
	name     string
	bridge   bool // the switch's ports are in a bridge
	user     bool // in user space, on a CPU of its own
	xdp      bool // copies leave by XDP
	sink     bool // nothing is replicated: what the generator itself costs
	feedback bool // takes the receivers' ACKs

	to    func(*stage) (rocev2.MAC, netip.Addr) // where the source sends to
	want  func(s *stage, host int) expect       // what a receiver is to get
	open  func(*stage) error                    // makes the switch replicate until the stage closes
	limit func(column) string                   // why it cannot serve a column; "" if it may
}

// The ways, by name.
var (
	baseWay = &way{name: "generator", sink: true, to: toPort, want: (*stage).expect, open: func(*stage) error { return nil }}
	bareWay = &way{name: "bare", user: true, to: toPort, want: rewritten, open: openBare}
	ownWay  = &way{name: "gleamd", user: true, feedback: true, to: toPort, want: rewritten, open: gleamdWith(1)}
	ownWay2 = &way{name: "gleamd-w2", user: true, feedback: true, to: toPort, want: rewritten, open: gleamdWith(2)}
	ownWay4 = &way{name: "gleamd-w4", user: true, feedback: true, to: toPort, want: rewritten, open: gleamdWith(4)}

	broadcastWay = &way{name: "xdp-broadcast", xdp: true, to: toPort, want: ownMAC, open: openBroadcast, limit: noFragments}
	bridgeWay    = &way{name: "bridge", bridge: true, to: toMulticast, want: (*stage).expect, open: openBridge}
	mirredWay    = &way{name: "tc-mirred", to: toPort, want: (*stage).expect, open: openMirred}
	relayWay     = &way{name: "udp-relay", user: true, to: toSwitch, want: relayed, open: openRelay}
)

// toPort addresses the group by the port's MAC, as a host does that has asked
// for GroupIP's.
func toPort(s *stage) (rocev2.MAC, netip.Addr) {
	mac, _ := s.portMAC(0) // of an interface that was just made
	return mac, groupIP
}

func toSwitch(s *stage) (rocev2.MAC, netip.Addr) {
	mac, _ := toPort(s)
	return mac, lab.StarSwitchIPv4
}

// toMulticast is an IPv4 multicast address with its MAC (RFC 1112 §6.4).
func toMulticast(*stage) (rocev2.MAC, netip.Addr) {
	return rocev2.MAC{0x01, 0x00, 0x5E, 0x4D, 0x00, 0x01}, netip.AddrFrom4([4]byte{239, 77, 0, 1})
}

// rewritten is a packet for the receiver's own queue pair.
func rewritten(s *stage, i int) expect {
	h := s.star.Hosts[i]
	return expect{mac: rocev2.MAC(h.MAC), dst: h.IPv4, qpn: memberQPN + rocev2.QPN(i)}
}

// ownMAC is a packet of which only the MAC addresses were changed.
func ownMAC(s *stage, i int) expect {
	e := s.expect(i)
	e.mac = rocev2.MAC(s.star.Hosts[i].MAC)
	return e
}

// relayed is a datagram that was sent on as it was.
func relayed(s *stage, i int) expect {
	h := s.star.Hosts[i]
	return expect{mac: rocev2.MAC(h.MAC), dst: h.IPv4, qpn: virtualQPN}
}

func noFragments(c column) string {
	if c.jumbo() {
		return "the kernel does not broadcast multi-buffer frames (dev_map_enqueue_clone)"
	}
	return ""
}

// pollRX makes a port receive by NAPI, without which what XDP sends to it from
// the other end, as the generator does, is dropped.
func (s *stage) pollRX() error {
	return s.star.Switch.SetFeature(s.star.Ports[0], lab.GRO, true)
}

// openBridge has nothing to do but that: the lab's bridge floods.
func openBridge(s *stage) error { return s.pollRX() }

// openMirred has a filter at the first port send each packet out of all others.
func openMirred(s *stage) error {
	if err := s.pollRX(); err != nil {
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
	for i := 1; i <= s.column.legs; i++ {
		out, err := ifindex(s.star.Switch, s.star.Ports[i])
		if err != nil {
			return err
		}
		a := netlink.NewMirredAction(out)
		if i < s.column.legs {
			a.MirredAction, a.Action = netlink.TCA_EGRESS_MIRROR, netlink.TC_ACT_PIPE
		}
		filter.Actions = append(filter.Actions, a)
	}
	if err := h.FilterAdd(filter); err != nil {
		return fmt.Errorf("add a u32 filter with mirred actions: %w", err)
	}
	return nil
}

// openBroadcast replicates inside XDP: the least that can be done to a packet
// there and still reach its receivers.
func openBroadcast(s *stage) error {
	spec, err := loadReplicate()
	if err != nil {
		return err
	}
	// A broadcast looks at every entry, empty ones too.
	spec.Maps[replicateMapPorts].MaxEntries = uint32(s.column.legs)
	var o struct {
		Broadcast *ebpf.Program `ebpf:"broadcast"`
		Ports     *ebpf.Map     `ebpf:"ports"`
	}
	if err := spec.LoadAndAssign(&o, nil); err != nil {
		return fmt.Errorf("load the broadcast program: %w", err)
	}
	s.onClose(func() error { return closeAll(o.Broadcast, o.Ports) })
	for i := 1; i <= s.column.legs; i++ {
		if err := s.addEgress(o.Ports, i); err != nil {
			return err
		}
	}
	in, err := ifindex(s.star.Switch, s.star.Ports[0])
	if err != nil {
		return err
	}
	var l link.Link
	err = s.star.Switch.Do(func() (err error) {
		l, err = link.AttachXDP(link.XDPOptions{Program: o.Broadcast, Interface: in, Flags: link.XDPDriverMode})
		return err
	})
	if err != nil {
		return fmt.Errorf("attach the broadcast program: %w", err)
	}
	s.onClose(l.Close)
	return nil
}

// addEgress adds the port to host i to a broadcast, with its program.
func (s *stage) addEgress(ports *ebpf.Map, i int) error {
	spec, err := loadReplicate()
	if err != nil {
		return err
	}
	src, err := s.portMAC(i)
	if err != nil {
		return err
	}
	err = errors.Join(
		spec.Variables[replicateVarEgressDst].Set(macWord(rocev2.MAC(s.star.Hosts[i].MAC))),
		spec.Variables[replicateVarEgressSrc].Set(macWord(src)))
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
