// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// BridgePort is the state of an interface at its bridge. The zero value is that of an
// interface without a bridge, or of no interface.
type BridgePort struct {
	Bridge   int  // interface index; 0: none
	Blocked  bool // no frames go in or out: spanning tree, or port disabled
	Locked   bool // only Stations may send
	Isolated bool // no frames to other isolated ports
	Filters  bool // the bridge filters VLANs; the fields below apply
	PVID     uint16
	TagType  uint16 // EtherType of the bridge's VLAN tags
	Own      VLANs  // VLANs of the port
	Local    VLANs  // VLANs of the bridge itself, in which the switch takes part
}

// VLANs is a set of VIDs, one bit each, the lowest VID first.
type VLANs [512]byte

func (v *VLANs) add(r vlanRange) {
	for vid := r.first; vid <= min(r.last, 4094); vid++ {
		v[vid>>3] |= 1 << (vid & 7)
	}
}

// Station is a host that a bridge knows at a port. VID is 0 if the bridge does not
// filter VLANs.
type Station struct {
	MAC MAC
	VID uint16
}

// Bridges reads the state of interfaces at their bridges. It may be used by one goroutine
// at a time.
type Bridges struct{ kernel *kernel }

// OpenBridges opens netlink in the calling thread's network namespace.
func OpenBridges() (*Bridges, error) {
	k, err := openKernel()
	if err != nil {
		return nil, fmt.Errorf("open netlink for bridges: %w", err)
	}
	return &Bridges{k}, nil
}

// Close releases the socket.
func (b *Bridges) Close() { b.kernel.close() }

// Constants of linux/if_link.h and linux/if_bridge.h.
const (
	bridgeForwarding = 3 // BR_STATE_FORWARDING
	extLocked        = 2 // NTF_EXT_LOCKED
)

// Port returns the state of an interface at its bridge.
func (b *Bridges) Port(ifindex int) (p BridgePort, err error) {
	link, err := b.link(ifindex)
	if err != nil {
		return p, fmt.Errorf("ask for interface %d: %w", ifindex, err)
	}
	slave := attribute(link, unix.IFLA_LINKINFO, nl.IFLA_INFO_SLAVE_DATA)
	master := attribute(link, unix.IFLA_MASTER)
	if string(zeroEnded(attribute(link, unix.IFLA_LINKINFO, nl.IFLA_INFO_SLAVE_KIND))) != "bridge" || len(master) < 4 {
		return BridgePort{}, nil
	}
	p.Bridge = int(binary.NativeEndian.Uint32(master))
	p.Blocked = firstAttribute(attribute(slave, nl.IFLA_BRPORT_STATE)) != bridgeForwarding
	p.Locked = firstAttribute(attribute(slave, nl.IFLA_BRPORT_LOCKED)) != 0
	p.Isolated = firstAttribute(attribute(slave, nl.IFLA_BRPORT_ISOLATED)) != 0
	if link, err = b.link(p.Bridge); err != nil {
		return BridgePort{}, fmt.Errorf("ask for the bridge of interface %d: %w", ifindex, err)
	}
	data := attribute(link, unix.IFLA_LINKINFO, nl.IFLA_INFO_DATA)
	if p.Filters = firstAttribute(attribute(data, nl.IFLA_BR_VLAN_FILTERING)) != 0; !p.Filters {
		return p, nil
	}
	p.TagType = unix.ETH_P_8021Q
	if t := attribute(data, nl.IFLA_BR_VLAN_PROTOCOL); len(t) >= 2 {
		p.TagType = binary.BigEndian.Uint16(t)
	}
	for _, x := range []struct {
		index int
		set   *VLANs
	}{{ifindex, &p.Own}, {p.Bridge, &p.Local}} {
		v, err := b.kernel.vlansOf(x.index)
		if err != nil {
			return BridgePort{}, fmt.Errorf("ask for the VLANs of interface %d: %w", x.index, err)
		}
		for _, r := range v.of {
			x.set.add(r)
		}
		if x.index == ifindex {
			p.PVID = v.pvid
		}
	}
	return p, nil
}

// Stations returns the hosts that the bridge has in its forwarding database at a port,
// without those that may not send yet (MAC authentication bypass). The kernel scans the
// whole database for it.
func (b *Bridges) Stations(ifindex int, p *BridgePort) (list []Station, err error) {
	req := b.request(unix.RTM_GETNEIGH, unix.NLM_F_DUMP, ifindex)
	req.AddData(nl.NewRtAttr(unix.IFLA_MASTER, nl.Uint32Attr(uint32(p.Bridge))))
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGH)
	if err != nil {
		return nil, fmt.Errorf("ask for the hosts at interface %d: %w", ifindex, err)
	}
	for _, a := range answers {
		n, err := netlink.NeighDeserialize(a)
		if err != nil {
			return nil, fmt.Errorf("read a host at interface %d: %w", ifindex, err)
		}
		if n.LinkIndex != ifindex || len(n.HardwareAddr) != 6 || n.State&netlink.NUD_PERMANENT != 0 || n.FlagsExt&extLocked != 0 {
			continue
		}
		s := Station{MAC: MAC(n.HardwareAddr)}
		if p.Filters {
			s.VID = uint16(n.Vlan)
		}
		list = append(list, s)
	}
	return list, nil
}

func (b *Bridges) request(kind, flags, ifindex int) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(kind, flags)
	req.Sockets = b.kernel.sockets
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	if kind == unix.RTM_GETNEIGH {
		msg.Family = unix.AF_BRIDGE
	}
	msg.Index = int32(ifindex)
	req.AddData(msg)
	return req
}

// link returns the attributes of an interface.
func (b *Bridges) link(ifindex int) ([]byte, error) {
	answers, err := b.request(unix.RTM_GETLINK, 0, ifindex).Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return nil, err
	}
	if len(answers) != 1 || len(answers[0]) < unix.SizeofIfInfomsg {
		return nil, fmt.Errorf("%d answers to a lookup of one interface", len(answers))
	}
	return answers[0][unix.SizeofIfInfomsg:], nil
}

// attribute returns the value at the end of a path of nested attributes; nil if there is
// none.
func attribute(b []byte, path ...uint16) []byte {
	for _, want := range path {
		attrs, err := nl.ParseRouteAttr(b)
		if err != nil {
			return nil
		}
		b = nil
		for _, a := range attrs {
			if a.Attr.Type&^nestedAttributes == want {
				b = a.Value
			}
		}
	}
	return b
}

func firstAttribute(b []byte) byte {
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

func zeroEnded(b []byte) []byte {
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}
