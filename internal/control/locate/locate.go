// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package locate finds the location of a member: the port of this switch that it is
// behind, its MAC address and its VLAN. It reads the kernel's tables: the routing table
// gives interface and next hop, the neighbour table the next hop's MAC address, and, if
// the interface is a bridge, its forwarding database the port. Nothing is learnt from
// data packets.
package locate

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/dataplane/iface"
)

// ErrPending means that the kernel does not know the address yet and has been asked to
// resolve it: try again after some tens of milliseconds.
var ErrPending = errors.New("neighbour is being resolved")

// Locator locates members in the network namespace in which it was opened. It may be used
// by one goroutine at a time.
type Locator struct {
	handle   *netlink.Handle
	channels *iface.Channels
	kernel   *kernel
	ports    map[int]bool
	tables   tables
}

// New opens a Locator for the calling thread's network namespace. ports are the interface
// indexes of the switch's ports, where members can be.
func New(ports []int) (*Locator, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink for member location: %w", err)
	}
	k, err := openKernel()
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("open netlink for member location: %w", err)
	}
	c, err := iface.OpenChannels()
	if err != nil {
		h.Close()
		k.close()
		return nil, err
	}
	l := &Locator{handle: h, channels: c, kernel: k, ports: make(map[int]bool, len(ports))}
	if err := l.SetPorts(ports); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Close releases the sockets.
func (l *Locator) Close() {
	l.handle.Close()
	l.channels.Close()
	l.kernel.close()
}

// Link is the state of a port's interface.
type Link struct {
	Up     bool // true: it is enabled and has a carrier
	MTU    int  // 0: it does not exist
	MAC    MAC
	Queues int // number of receive queues in use; 0: not known
	Named  int // index of the interface that has the port's name, if the port's own does not exist; 0: none
}

// Link returns the state of the interface ifindex, a port of the given name.
func (l *Locator) Link(ifindex int, name string) (s Link) {
	if link, err := l.handle.LinkByIndex(ifindex); err == nil {
		a := link.Attrs()
		s.Up, s.MTU = iface.Running(a), a.MTU
		if n, err := l.channels.RxQueues(link); err == nil {
			s.Queues = n
		}
		copy(s.MAC[:], a.HardwareAddr)
	} else if link, err := l.handle.LinkByName(name); err == nil {
		s.Named = link.Attrs().Index
	}
	return s
}

// SetPorts replaces the interface indexes of the switch's ports, and finds their VRFs. With an
// error the VRFs are those that were found before.
func (l *Locator) SetPorts(ports []int) error {
	clear(l.ports)
	for _, p := range ports {
		l.ports[p] = true
	}
	links, err := iface.ReadLinksBy(l.handle)
	if err != nil {
		return fmt.Errorf("find the VRFs of the ports: %w", err)
	}
	l.tables = tablesOf(links, l.ports)
	return nil
}

// Locate returns the location of the member with address ip. It does not wait: if the
// kernel must resolve ip first, Locate starts that and returns an error that wraps
// ErrPending. Every other error is final until routes change.
func (l *Locator) Locate(ip netip.Addr) (Location, error) {
	ifindex, hop, err := l.route(ip)
	if err != nil {
		return Location{}, err
	}
	return l.LocateHop(ifindex, hop)
}

// route returns the interface and the next hop of the route to ip.
func (l *Locator) route(ip netip.Addr) (ifindex int, hop netip.Addr, err error) {
	vrf, err := l.vrfOf(ip)
	if err != nil {
		return 0, hop, err
	}
	routes, err := l.handle.RouteGetWithOptions(net.IP(ip.AsSlice()), &netlink.RouteGetOptions{OifIndex: vrf})
	if err == nil && len(routes) == 0 {
		err = unix.ENETUNREACH
	}
	if err != nil {
		return 0, hop, fmt.Errorf("no route to %s (%w): give this switch an address or a route towards its members", ip, err)
	}
	r := routes[0]
	if r.Type == unix.RTN_LOCAL {
		return 0, hop, fmt.Errorf("%s is an address of this switch itself", ip)
	}
	if gw, ok := netip.AddrFromSlice(r.Gw); ok {
		return r.LinkIndex, gw.Unmap(), nil
	}
	return r.LinkIndex, ip, nil
}

// LocateHop returns the location of a neighbour on an interface, such as a gateway of a
// route, as Locate does.
func (l *Locator) LocateHop(ifindex int, neighbour netip.Addr) (Location, error) {
	way := Location{Links: []int{ifindex}, Hop: neighbour}
	hop := net.IP(neighbour.AsSlice())
	link, err := l.handle.LinkByIndex(ifindex)
	if err != nil {
		return Location{}, fmt.Errorf("interface %d on the way to %s: %w", ifindex, neighbour, err)
	}
	if way.MAC, err = l.neighbour(link, hop); err != nil {
		return way, err
	}
	return l.port(link, way, l.learnt)
}

// usable are the states of neighbour entries whose MAC address may be used.
const usable = netlink.NUD_PERMANENT | netlink.NUD_NOARP | netlink.NUD_REACHABLE |
	netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE

// neighbour returns the MAC address of hop on link, from the kernel's neighbour table.
func (l *Locator) neighbour(link netlink.Link, hop net.IP) (net.HardwareAddr, error) {
	n, err := l.kernel.neighbour(link.Attrs().Index, hop)
	switch {
	case errors.Is(err, errNoEntry):
	case err != nil:
		return nil, fmt.Errorf("ask for the neighbour %s on %s: %w", hop, link.Attrs().Name, err)
	case n.State&usable != 0 && len(n.HardwareAddr) == 6:
		return n.HardwareAddr, nil
	}
	return nil, l.solicit(link, hop, 0, nil)
}

// Invalidate has the kernel give up the MAC address that it has for ip, so that the next Locate has
// it ask all hosts of the link: the host that it would ask alone may have another one now. An entry
// that was set for good stays, and so does that of a gateway.
func (l *Locator) Invalidate(ip netip.Addr) error {
	ifindex, hop, err := l.route(ip)
	if err != nil || hop != ip {
		return err
	}
	n, err := l.kernel.neighbour(ifindex, net.IP(ip.AsSlice()))
	const lasting = netlink.NUD_PERMANENT | netlink.NUD_NOARP
	switch {
	case errors.Is(err, errNoEntry):
		return nil
	case err != nil:
		return fmt.Errorf("ask for the neighbour %s: %w", ip, err)
	case n.State&lasting != 0 || n.State&usable == 0:
		return nil
	}
	err = l.handle.NeighSet(&netlink.Neigh{LinkIndex: ifindex, Family: family(net.IP(ip.AsSlice())), IP: net.IP(ip.AsSlice()), State: netlink.NUD_FAILED})
	if err != nil {
		return fmt.Errorf("have %s resolved anew: %w", ip, err)
	}
	return nil
}

// solicit makes the kernel send an ARP request or a neighbour solicitation for hop. It
// always returns an error: ErrPending, or the reason why that failed.
func (l *Locator) solicit(link netlink.Link, hop net.IP, state int, mac net.HardwareAddr) error {
	n := &netlink.Neigh{LinkIndex: link.Attrs().Index, Family: family(hop), IP: hop, State: state, HardwareAddr: mac}
	if state == 0 {
		n.Flags = netlink.NTF_USE
	}
	if err := l.handle.NeighSet(n); errors.Is(err, unix.ENOBUFS) {
		return fmt.Errorf("%s on %s: the kernel's neighbour table is full (gc_thresh3): %w", hop, link.Attrs().Name, ErrPending)
	} else if err != nil {
		return fmt.Errorf("resolve %s on %s: %w", hop, link.Attrs().Name, err)
	}
	return fmt.Errorf("%s on %s: %w", hop, link.Attrs().Name, ErrPending)
}

// port goes from the interface that the route names down to the port. below returns the port of
// a bridge on the way that the host is behind; its Port is 0 if that is being resolved.
func (l *Locator) port(link netlink.Link, way Location, below func(*netlink.Bridge, *Location) (Learnt, uint16, error)) (Location, error) {
	loc := way
	loc.Ifindex = link.Attrs().Index
	for depth := 0; !l.ports[loc.Ifindex]; depth++ {
		if depth == 4 {
			return Location{}, fmt.Errorf("%s is behind too many stacked interfaces, last %s", way.Hop, link.Attrs().Name)
		}
		if depth > 0 {
			next, err := l.handle.LinkByIndex(loc.Ifindex)
			if err != nil {
				return Location{}, fmt.Errorf("interface %d on the way to %s: %w", loc.Ifindex, way.Hop, err)
			}
			link = next
		}
		switch v := link.(type) {
		case *netlink.Vlan:
			loc.VLAN, loc.Ifindex = uint16(v.VlanId), v.ParentIndex
		case *netlink.Bridge:
			at, vlan, err := below(v, &loc)
			if err != nil {
				return Location{}, err
			}
			if at.Port == 0 { // aged out: the host answers a unicast probe, and the bridge learns its port
				return way, l.solicit(link, way.Hop.AsSlice(), netlink.NUD_PROBE, way.MAC)
			}
			loc.Ifindex, loc.VLAN, loc.Learnt = at.Port, vlan, at
		default:
			return Location{}, fmt.Errorf("%s is reached through %s, which is no port of this switch, nor a bridge of ports: give the interface or bridge that it is behind an address in its network", way.Hop, link.Attrs().Name)
		}
		loc.Links = append(loc.Links, loc.Ifindex)
	}
	return loc, nil
}

// learnt returns the bridge's entry of the MAC address of at, whose Port is 0 if there is none,
// and the VID that frames to it carry at that port.
func (l *Locator) learnt(br *netlink.Bridge, at *Location) (Learnt, uint16, error) {
	in, err := l.vidIn(br, at.VLAN)
	if err != nil {
		return Learnt{}, 0, err
	}
	e, err := l.kernel.learnt(br.Index, at.MAC, in)
	switch {
	case errors.Is(err, errNoEntry):
		return Learnt{}, 0, nil
	case err != nil:
		return Learnt{}, 0, fmt.Errorf("ask for %s in the forwarding database of %s: %w", at.MAC, br.Name, err)
	case e.State&netlink.NUD_PERMANENT != 0, // an address of this switch
		e.FlagsExt&extLocked != 0: // a host that a locked port does not let send (yet)
		return Learnt{}, 0, nil
	}
	return l.behind(br, e.LinkIndex, in, at)
}

// vidIn returns the VID that a bridge's entries have for frames that at the bridge carry vid: that
// of the interface on top of the bridge, 0 for the bridge itself. A bridge that filters VLANs has an
// entry for each of them; it is 0 for a bridge that does not, which leaves tags unchanged.
func (l *Locator) vidIn(br *netlink.Bridge, vid uint16) (uint16, error) {
	switch {
	case !filters(br):
		return 0, nil
	case vid != 0:
		return vid, nil
	}
	own, err := l.kernel.vlansOf(br.Index)
	if err != nil {
		return 0, fmt.Errorf("ask for the VLANs of %s: %w", br.Name, err)
	}
	if own.pvid == 0 {
		return 0, fmt.Errorf("%s filters VLANs, and has no PVID itself: give it one, or the address of its network to a VLAN interface on top", br.Name)
	}
	return own.pvid, nil
}

func filters(br *netlink.Bridge) bool { return br.VlanFiltering != nil && *br.VlanFiltering }

// behind returns the entry of a bridge that has the host of at behind a port, and the VID that
// frames to the host carry there. in is that of vidIn.
func (l *Locator) behind(br *netlink.Bridge, port int, in uint16, at *Location) (Learnt, uint16, error) {
	if !filters(br) {
		return Learnt{Bridge: br.Index, Port: port}, at.VLAN, nil
	}
	there, err := l.kernel.vlansOf(port)
	if err != nil {
		return Learnt{}, 0, fmt.Errorf("ask for the VLANs of interface %d: %w", port, err)
	}
	switch member, untagged := there.find(in); {
	case !member:
		return Learnt{}, 0, fmt.Errorf("%s has %s at interface %d, which is not in VLAN %d", br.Name, at.MAC, port, in)
	case untagged:
		return Learnt{Bridge: br.Index, Port: port, VID: in}, 0, nil
	}
	return Learnt{Bridge: br.Index, Port: port, VID: in}, in, nil
}

func family(ip net.IP) int {
	if ip.To4() != nil {
		return unix.AF_INET
	}
	return unix.AF_INET6
}
