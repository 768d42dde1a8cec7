// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// A pin is an entry of the kernel's tables that no frame can change: a permanent
// neighbour entry, and a sticky static entry of a bridge's forwarding database. Both are
// marked, which distinguishes the pins of a killed gleamd from an operator's entries:
// neighbour entries have a protocol, and forwarding database entries are static, sticky
// and extern_learn at the same time.

// pinProtocol is the NDA_PROTOCOL of neighbour entries that are pins, 'G'. Its numbers
// are those of routing protocols (rtnetlink(7), /etc/iproute2/rt_protos).
const pinProtocol = 71

const pinFlags = netlink.NTF_STICKY | netlink.NTF_EXT_LEARNED

// isPin reports whether a forwarding database entry is a pin.
func isPin(e *netlink.Neigh) bool {
	return e.State&netlink.NUD_NOARP != 0 && e.Flags&pinFlags == pinFlags
}

// change sends a request to change a neighbour or forwarding database entry.
func (k *kernel) change(kind, flags int, msg *netlink.Ndmsg, attrs ...*nl.RtAttr) error {
	req := nl.NewNetlinkRequest(kind, flags|unix.NLM_F_ACK)
	req.Sockets = k.sockets
	req.AddData(msg)
	for _, a := range attrs {
		req.AddData(a)
	}
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	if kind == unix.RTM_DELNEIGH && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV)) {
		return nil // it has gone already
	}
	return err
}

const put = unix.NLM_F_CREATE | unix.NLM_F_REPLACE

// pinNeighbour makes the entry of ip at an interface permanent, with this MAC address. An
// operator's permanent entry stays unchanged.
func (k *kernel) pinNeighbour(link int, ip netip.Addr, mac net.HardwareAddr) error {
	e, ours, err := k.permanent(link, ip)
	switch {
	case err != nil:
		return err
	case e != nil && (!ours || string(e.HardwareAddr) == string(mac)):
		return nil
	}
	return k.change(unix.RTM_NEWNEIGH, put,
		&netlink.Ndmsg{Family: familyOf(ip), Index: uint32(link), State: netlink.NUD_PERMANENT},
		nl.NewRtAttr(netlink.NDA_DST, ip.AsSlice()), nl.NewRtAttr(netlink.NDA_LLADDR, mac), nl.NewRtAttr(netlink.NDA_PROTOCOL, []byte{pinProtocol}))
}

// unpinNeighbour removes the entry of ip, if the entry is a pin.
func (k *kernel) unpinNeighbour(link int, ip netip.Addr) error {
	e, ours, err := k.permanent(link, ip)
	if err != nil || e == nil || !ours {
		return err
	}
	return k.change(unix.RTM_DELNEIGH, 0, &netlink.Ndmsg{Family: familyOf(ip), Index: uint32(link)}, nl.NewRtAttr(netlink.NDA_DST, ip.AsSlice()))
}

// permanent returns the entry of ip if it is permanent, and whether the entry is a pin.
func (k *kernel) permanent(link int, ip netip.Addr) (e *netlink.Neigh, ours bool, err error) {
	msg, err := k.request(&netlink.Ndmsg{Family: familyOf(ip), Index: uint32(link)}, nl.NewRtAttr(netlink.NDA_DST, ip.AsSlice()))
	if errors.Is(err, errNoEntry) || errors.Is(err, unix.ENODEV) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if e, err = netlink.NeighDeserialize(msg); err != nil || e.State&netlink.NUD_PERMANENT == 0 {
		return nil, false, err
	}
	return e, protocolOf(msg) == pinProtocol, nil
}

// protocolOf returns the NDA_PROTOCOL of a neighbour message; 0 if it has none.
func protocolOf(msg []byte) byte {
	attrs, err := nl.ParseRouteAttr(msg[(&netlink.Ndmsg{}).Len():])
	if err != nil {
		return 0
	}
	for _, a := range attrs {
		if a.Attr.Type == netlink.NDA_PROTOCOL && len(a.Value) == 1 {
			return a.Value[0]
		}
	}
	return 0
}

// pinLearnt pins mac to a port of a bridge. An operator's static entry stays unchanged.
func (k *kernel) pinLearnt(l Learnt, mac net.HardwareAddr) error {
	e, err := k.learnt(l.Bridge, mac, l.VID)
	switch {
	case errors.Is(err, errNoEntry):
	case err != nil:
		return err
	case isPin(e) && e.LinkIndex == l.Port:
		return nil
	case !isPin(e) && e.State&(netlink.NUD_NOARP|netlink.NUD_PERMANENT) != 0:
		return nil
	}
	// One message cannot do both: with extern_learn the kernel ignores the other changes.
	// Between the two messages, the entry can move like a learnt one.
	for _, m := range []netlink.Ndmsg{
		{State: netlink.NUD_REACHABLE, Flags: netlink.NTF_MASTER | netlink.NTF_EXT_LEARNED},
		{State: netlink.NUD_NOARP, Flags: netlink.NTF_MASTER | netlink.NTF_STICKY},
	} {
		m.Family, m.Index = unix.AF_BRIDGE, uint32(l.Port)
		if err := k.change(unix.RTM_NEWNEIGH, put, &m, fdbKey(mac, l.VID)...); err != nil {
			return err
		}
	}
	return nil
}

// unpinLearnt removes the entry of mac at a bridge, at any port, if the entry is a pin.
func (k *kernel) unpinLearnt(bridge int, mac net.HardwareAddr, vid uint16) error {
	e, err := k.learnt(bridge, mac, vid)
	switch {
	case errors.Is(err, errNoEntry), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EINVAL): // the bridge itself may have gone
		return nil
	case err != nil:
		return err
	case !isPin(e):
		return nil
	}
	return k.forget(e.LinkIndex, mac, vid)
}

// forget removes a bridge port's entry of mac.
func (k *kernel) forget(port int, mac net.HardwareAddr, vid uint16) error {
	return k.change(unix.RTM_DELNEIGH, 0, &netlink.Ndmsg{Family: unix.AF_BRIDGE, Index: uint32(port), Flags: netlink.NTF_MASTER}, fdbKey(mac, vid)...)
}

func fdbKey(mac net.HardwareAddr, vid uint16) []*nl.RtAttr {
	attrs := []*nl.RtAttr{nl.NewRtAttr(netlink.NDA_LLADDR, mac)}
	if vid != 0 {
		attrs = append(attrs, nl.NewRtAttr(netlink.NDA_VLAN, nl.Uint16Attr(vid)))
	}
	return attrs
}

func familyOf(ip netip.Addr) uint8 {
	if ip.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// Release removes the pins at the named interfaces, or all pins if no name is given. It
// returns the number of pins removed. A pin that another gleamd has made for another port
// stays.
func Release(names ...string) (n int, err error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return 0, fmt.Errorf("open netlink: %w", err)
	}
	defer h.Close()
	k, err := openKernel()
	if err != nil {
		return 0, fmt.Errorf("open netlink: %w", err)
	}
	defer k.close()
	chosen := make(map[int]bool)
	for _, name := range names {
		link, err := h.LinkByName(name)
		if err != nil {
			return 0, fmt.Errorf("interface %s: %w", name, err)
		}
		chosen[link.Attrs().Index] = true
	}
	return k.release(h, chosen)
}

// release removes the pins at the chosen interfaces, or all if chosen is empty.
func (k *kernel) release(h *netlink.Handle, chosen map[int]bool) (n int, err error) {
	learnt, err := h.NeighList(0, unix.AF_BRIDGE)
	if err != nil {
		return 0, fmt.Errorf("read the forwarding databases: %w", err)
	}
	others := make(map[MAC]bool) // pinned at ports that are not chosen
	var errs []error
	for i := range learnt {
		e := &learnt[i]
		if !isPin(e) || len(e.HardwareAddr) != len(MAC{}) || e.MasterIndex == 0 {
			continue
		}
		if len(chosen) > 0 && !chosen[e.LinkIndex] {
			others[MAC(e.HardwareAddr)] = true
			continue
		}
		n++
		errs = append(errs, k.forget(e.LinkIndex, e.HardwareAddr, uint16(e.Vlan)))
	}
	above, err := upperInterfaces(h, chosen)
	if err != nil {
		return n, err
	}
	for _, f := range []uint8{unix.AF_INET, unix.AF_INET6} {
		more, err := k.releaseNeighbours(f, func(link int, mac net.HardwareAddr) bool {
			return len(chosen) == 0 || chosen[link] || above[link] && !(len(mac) == len(MAC{}) && others[MAC(mac)])
		})
		n += more
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return n, fmt.Errorf("remove pins: %w", err)
	}
	return n, nil
}

// upperInterfaces returns the interfaces on top of others: their bridges, and VLAN
// interfaces.
func upperInterfaces(h *netlink.Handle, of map[int]bool) (map[int]bool, error) {
	links, err := h.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	above := make(map[int]bool)
	for range 4 { // the depth that Locate follows
		for _, l := range links {
			a := l.Attrs()
			if of[a.Index] || above[a.Index] {
				above[a.MasterIndex] = true
			}
			if v, ok := l.(*netlink.Vlan); ok && (of[v.ParentIndex] || above[v.ParentIndex]) {
				above[v.Index] = true
			}
		}
	}
	delete(above, 0)
	return above, nil
}

// releaseNeighbours is release for the neighbour entries of a family that match.
func (k *kernel) releaseNeighbours(f uint8, match func(link int, mac net.HardwareAddr) bool) (n int, err error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETNEIGH, unix.NLM_F_DUMP)
	req.Sockets = k.sockets
	req.AddData(&netlink.Ndmsg{Family: f})
	msgs, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGH)
	if err != nil {
		return 0, fmt.Errorf("read the neighbours: %w", err)
	}
	var errs []error
	for _, m := range msgs {
		e, err := netlink.NeighDeserialize(m)
		if err != nil || e.State&netlink.NUD_PERMANENT == 0 || protocolOf(m) != pinProtocol {
			continue
		}
		ip, ok := netip.AddrFromSlice(e.IP)
		if !ok || !match(e.LinkIndex, e.HardwareAddr) {
			continue
		}
		n++
		errs = append(errs, k.unpinNeighbour(e.LinkIndex, ip.Unmap()))
	}
	return n, errors.Join(errs...)
}
