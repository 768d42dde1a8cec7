// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fib

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Of linux/rtnetlink.h.
const (
	rtaNexthopID = 30      // RTA_NH_ID
	nested       = 1 << 15 // NLA_F_NESTED
)

// attribute is one attribute of a netlink message.
type attribute struct {
	kind  uint16
	value []byte
}

// attributes returns the attributes in b.
func attributes(b []byte) ([]attribute, error) {
	var all []attribute
	for len(b) >= unix.SizeofRtAttr {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			return nil, fmt.Errorf("attribute of %d bytes in %d", n, len(b))
		}
		kind := binary.NativeEndian.Uint16(b[2:]) &^ nested
		all = append(all, attribute{kind, b[unix.SizeofRtAttr:n]})
		b = b[min(len(b), (n+unix.NLMSG_ALIGNTO-1)&^(unix.NLMSG_ALIGNTO-1)):]
	}
	return all, nil
}

// number returns an attribute's 32 bits.
func (a attribute) number() (uint32, error) {
	if len(a.value) != 4 {
		return 0, fmt.Errorf("attribute %d of %d bytes, want 4", a.kind, len(a.value))
	}
	return binary.NativeEndian.Uint32(a.value), nil
}

// address returns an attribute's address of the route's own family.
func (a attribute) address(family uint8) (netip.Addr, error) {
	ip, ok := netip.AddrFromSlice(a.value)
	if !ok || ip.Is4() != (family == unix.AF_INET) {
		return netip.Addr{}, fmt.Errorf("attribute %d: an address of %d bytes", a.kind, len(a.value))
	}
	return ip, nil
}

// via returns the address in an RTA_VIA, with its family before it.
func (a attribute) via() (netip.Addr, error) {
	if len(a.value) < 2 {
		return netip.Addr{}, fmt.Errorf("gateway in %d bytes", len(a.value))
	}
	family := binary.NativeEndian.Uint16(a.value)
	if family != unix.AF_INET && family != unix.AF_INET6 {
		return netip.Addr{}, fmt.Errorf("gateway of address family %d", family)
	}
	return attribute{a.kind, a.value[2:]}.address(uint8(family))
}

// hop is a next hop as the kernel describes it.
type hop struct {
	NextHop
	flags   uint32
	wrapped bool // lwtunnel encapsulation
}

// take reads an attribute that belongs to a next hop.
func (h *hop) take(a attribute, family uint8) (err error) {
	switch a.kind {
	case unix.RTA_GATEWAY:
		h.Gateway, err = a.address(family)
	case unix.RTA_VIA:
		h.Gateway, err = a.via()
	case unix.RTA_ENCAP, unix.RTA_ENCAP_TYPE, unix.RTA_NEWDST:
		h.wrapped = true
	}
	return err
}

// ParseRoute reads an RTM_NEWROUTE, the kernel's answer to a FIB match.
func ParseRoute(b []byte) (Route, error) {
	if len(b) < unix.SizeofRtMsg {
		return Route{}, fmt.Errorf("route in %d bytes", len(b))
	}
	family, bits, kind := b[0], b[1], b[7]
	any := netip.IPv4Unspecified()
	switch family {
	case unix.AF_INET:
	case unix.AF_INET6:
		any = netip.IPv6Unspecified()
	default:
		return Route{}, fmt.Errorf("route of address family %d", family)
	}
	attrs, err := attributes(b[unix.SizeofRtMsg:])
	if err != nil {
		return Route{}, fmt.Errorf("route: %w", err)
	}
	r := Route{}
	single := hop{flags: binary.NativeEndian.Uint32(b[8:])}
	single.Weight = 1
	var hops []hop
	for _, a := range attrs {
		switch a.kind {
		case unix.RTA_DST:
			any, err = a.address(family)
		case unix.RTA_OIF:
			var n uint32
			n, err = a.number()
			single.Link = int(int32(n))
		case rtaNexthopID:
			r.group, err = a.number()
		case unix.RTA_MULTIPATH:
			hops, err = multipath(a.value, family)
		default:
			err = single.take(a, family)
		}
		if err != nil {
			return Route{}, fmt.Errorf("route: %w", err)
		}
	}
	if r.Prefix, err = any.Prefix(int(bits)); err != nil {
		return Route{}, fmt.Errorf("route: %w", err)
	}
	if len(hops) == 0 && single.Link > 0 {
		hops = []hop{single}
	}
	r.decide(kind, hops)
	return r, nil
}

// multipath reads the next hops in an RTA_MULTIPATH.
func multipath(b []byte, family uint8) ([]hop, error) {
	var hops []hop
	for len(b) > 0 {
		if len(b) < unix.SizeofRtNexthop {
			return nil, fmt.Errorf("next hop in %d bytes", len(b))
		}
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtNexthop || n > len(b) {
			return nil, fmt.Errorf("next hop of %d bytes in %d", n, len(b))
		}
		h := hop{flags: uint32(b[2])}
		h.Weight, h.Link = int(b[3])+1, int(int32(binary.NativeEndian.Uint32(b[4:])))
		attrs, err := attributes(b[unix.SizeofRtNexthop:n])
		if err != nil {
			return nil, fmt.Errorf("next hop: %w", err)
		}
		for _, a := range attrs {
			if err := h.take(a, family); err != nil {
				return nil, fmt.Errorf("next hop: %w", err)
			}
		}
		hops = append(hops, h)
		b = b[min(len(b), (n+unix.NLMSG_ALIGNTO-1)&^(unix.NLMSG_ALIGNTO-1)):]
	}
	return hops, nil
}

// decide sets the status and the usable next hops of a route of that type.
func (r *Route) decide(kind uint8, hops []hop) {
	switch kind {
	case unix.RTN_UNICAST:
	case unix.RTN_LOCAL:
		r.Status = Local
		return
	case unix.RTN_BLACKHOLE:
		r.Status = Blackhole
		return
	case unix.RTN_UNREACHABLE:
		r.Status = Unreachable
		return
	case unix.RTN_PROHIBIT:
		r.Status = Prohibited
		return
	default:
		r.Status = NotUnicast
		return
	}
	r.Status = Down
	if len(hops) == 0 {
		r.Status = HopsWithheld
	}
	for _, h := range hops {
		if h.Link <= 0 {
			continue
		}
		r.links = append(r.links, h.Link)
		switch {
		case h.flags&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) != 0:
		case h.wrapped:
			if r.Status == Down {
				r.Status = Encapsulated
			}
		default:
			r.Status = Usable
			r.Hops = append(r.Hops, h.NextHop)
		}
	}
	r.arrange()
}

// failed returns the route that stands for a FIB match that the kernel answered with an
// error, and false if the error says nothing about the destination.
func failed(errno syscall.Errno) (Route, bool) {
	switch errno {
	case unix.ENETUNREACH, unix.ESRCH:
		return Route{Status: NoRoute}, true
	case unix.EHOSTUNREACH:
		return Route{Status: Unreachable}, true
	case unix.EACCES:
		return Route{Status: Prohibited}, true
	case unix.EINVAL: // what a blackhole route has IPv4 answer
		return Route{Status: Blackhole}, true
	}
	return Route{}, false
}
