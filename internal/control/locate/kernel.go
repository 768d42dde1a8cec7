// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The kernel's tables are read by single entries. A stranger can fill the forwarding
// database with a hundred thousand entries and more, and a dump of all takes the kernel
// seconds; a get of one entry is one lookup in a hash table.

// kernel reads single entries.
type kernel struct {
	sockets map[int]*nl.SocketHandle
}

// answerTimeout bounds the wait for an answer on a socket. The kernel answers within the
// system call that sends the request, so the timeout expires only if an answer was lost.
var answerTimeout = unix.Timeval{Sec: 1}

func openKernel() (*kernel, error) {
	s, err := nl.GetNetlinkSocketAt(-1, -1, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.SetSendTimeout(&answerTimeout), s.SetReceiveTimeout(&answerTimeout)); err != nil {
		s.Close()
		return nil, err
	}
	return &kernel{map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: s}}}, nil
}

func (k *kernel) close() {
	for _, s := range k.sockets {
		s.Close()
	}
}

// errNoEntry means that there is no such entry.
var errNoEntry = errors.New("no such entry")

// get returns the one neighbour or forwarding database entry that msg and attrs name.
func (k *kernel) get(msg *netlink.Ndmsg, attrs ...*nl.RtAttr) (*netlink.Neigh, error) {
	answer, err := k.request(msg, attrs...)
	if err != nil {
		return nil, err
	}
	return netlink.NeighDeserialize(answer)
}

// request is get without decoding the answer.
func (k *kernel) request(msg *netlink.Ndmsg, attrs ...*nl.RtAttr) ([]byte, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETNEIGH, 0)
	req.Sockets = k.sockets
	req.AddData(msg)
	for _, a := range attrs {
		req.AddData(a)
	}
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGH)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, errNoEntry
	case errors.Is(err, unix.EOPNOTSUPP):
		return nil, fmt.Errorf("this kernel does not answer for single entries (%w): Linux 5.0 or later is needed", err)
	case err != nil:
		return nil, err
	case len(answers) != 1:
		return nil, fmt.Errorf("%d answers to a lookup of one entry", len(answers))
	}
	return answers[0], nil
}

// neighbour returns the entry of ip on an interface.
func (k *kernel) neighbour(ifindex int, ip net.IP) (*netlink.Neigh, error) {
	b := ip.To4()
	if b == nil {
		b = ip.To16()
	}
	return k.get(&netlink.Ndmsg{Family: uint8(family(ip)), Index: uint32(ifindex)}, nl.NewRtAttr(netlink.NDA_DST, b))
}

// learnt returns a bridge's forwarding database entry of mac in a VLAN; vid is 0 for a
// bridge that does not filter VLANs.
func (k *kernel) learnt(bridge int, mac net.HardwareAddr, vid uint16) (*netlink.Neigh, error) {
	attrs := []*nl.RtAttr{nl.NewRtAttr(netlink.NDA_LLADDR, mac), nl.NewRtAttr(netlink.NDA_MASTER, nl.Uint32Attr(uint32(bridge)))}
	if vid != 0 {
		attrs = append(attrs, nl.NewRtAttr(netlink.NDA_VLAN, nl.Uint16Attr(vid)))
	}
	return k.get(&netlink.Ndmsg{Family: unix.AF_BRIDGE}, attrs...)
}

// Constants of linux/if_bridge.h.
const (
	vlanEntry         = 1 // BRIDGE_VLANDB_ENTRY
	vlanEntryInfo     = 1 // BRIDGE_VLANDB_ENTRY_INFO
	vlanEntryRange    = 2 // BRIDGE_VLANDB_ENTRY_RANGE
	vlanEntryState    = 3 // BRIDGE_VLANDB_ENTRY_STATE
	vlanFlagPVID      = 1 << 1
	vlanFlagUntagged  = 1 << 2
	nestedAttributes  = 1 << 15 // NLA_F_NESTED
	vlanMessageHeader = 8       // struct br_vlan_msg
)

// vlans are the VLANs of a bridge, or of one of its ports.
type vlans struct {
	pvid uint16 // VID of untagged frames that are received; 0: none
	of   []vlanRange
}

type vlanRange struct {
	first, last uint16
	untagged    bool // its frames leave untagged
}

// find returns whether vid is in v, and whether its frames leave untagged.
func (v *vlans) find(vid uint16) (member, untagged bool) {
	for _, r := range v.of {
		if r.first <= vid && vid <= r.last {
			return true, r.untagged
		}
	}
	return false, false
}

// vlansOf returns the VLANs of a bridge itself, or of a port of one.
func (k *kernel) vlansOf(ifindex int) (*vlans, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETVLAN, unix.NLM_F_DUMP) // dumps one interface
	req.Sockets = k.sockets
	msg := make([]byte, vlanMessageHeader)
	msg[0] = unix.AF_BRIDGE
	binary.NativeEndian.PutUint32(msg[4:], uint32(ifindex))
	req.AddRawData(msg)
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWVLAN)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil, fmt.Errorf("this kernel does not answer for a bridge's VLANs (%w): Linux 5.6 or later is needed where a bridge filters VLANs", err)
	}
	if err != nil {
		return nil, err
	}
	v := &vlans{}
	for _, a := range answers {
		if err := v.parse(a); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// attributes parses attributes. nl.ParseRouteAttr panics if the last one is not followed
// by its padding.
func attributes(b []byte) ([]syscall.NetlinkRouteAttr, error) {
	return nl.ParseRouteAttr(append(slices.Clip(b), make([]byte, -len(b)&(unix.NLMSG_ALIGNTO-1))...))
}

// parse adds the entries of one message.
func (v *vlans) parse(msg []byte) error {
	if len(msg) < vlanMessageHeader {
		return fmt.Errorf("VLANs in %d bytes", len(msg))
	}
	entries, err := attributes(msg[vlanMessageHeader:])
	if err != nil {
		return fmt.Errorf("read VLANs: %w", err)
	}
	for _, e := range entries {
		if e.Attr.Type&^nestedAttributes != vlanEntry {
			continue
		}
		attrs, err := attributes(e.Value)
		if err != nil {
			return fmt.Errorf("read a VLAN: %w", err)
		}
		var r vlanRange
		forwards := true // unless the VLAN's own spanning tree blocks it
		for _, a := range attrs {
			switch {
			case a.Attr.Type == vlanEntryState && len(a.Value) >= 1:
				forwards = a.Value[0] == bridgeForwarding
			case a.Attr.Type == vlanEntryInfo && len(a.Value) >= 4:
				flags := binary.NativeEndian.Uint16(a.Value)
				r.first = binary.NativeEndian.Uint16(a.Value[2:])
				r.last, r.untagged = max(r.last, r.first), flags&vlanFlagUntagged != 0
				if flags&vlanFlagPVID != 0 {
					v.pvid = r.first
				}
			case a.Attr.Type == vlanEntryRange && len(a.Value) >= 2:
				r.last = binary.NativeEndian.Uint16(a.Value)
			}
		}
		if r.first != 0 && forwards {
			v.of = append(v.of, r)
		}
	}
	return nil
}
