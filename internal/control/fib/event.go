// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fib

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Event is a notification of the kernel, as far as it tells what to match again. One of
// the fields is set.
type Event struct {
	Prefix netip.Prefix // the route to it has changed
	Link   int          // an interface has changed
	Group  uint32       // a nexthop object, or a group of them, has changed
	All    bool         // anything may have changed
}

// ParseEvent reads a message of that type. The result is false if it is no notification
// of a change, or unreadable: the periodic matches do not depend on notifications.
func ParseEvent(kind uint16, b []byte) (Event, bool) {
	switch kind {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		if len(b) < unix.SizeofIfInfomsg {
			return Event{}, false
		}
		index := int(int32(binary.NativeEndian.Uint32(b[4:])))
		return Event{Link: index}, index > 0
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		if len(b) < unix.SizeofRtMsg || binary.NativeEndian.Uint32(b[8:])&unix.RTM_F_CLONED != 0 {
			return Event{}, false
		}
		return routeEvent(b)
	case unix.RTM_NEWNEXTHOP, unix.RTM_DELNEXTHOP:
		if len(b) < unix.SizeofNhmsg {
			return Event{}, false
		}
		attrs, err := attributes(b[unix.SizeofNhmsg:])
		if err != nil {
			return Event{}, false
		}
		for _, a := range attrs {
			if a.kind == unix.NHA_ID {
				id, err := a.number()
				return Event{Group: id}, err == nil && id != 0
			}
		}
	case unix.RTM_NEWRULE, unix.RTM_DELRULE:
		return Event{All: true}, true
	}
	return Event{}, false
}

// routeEvent reads the destination of a route.
func routeEvent(b []byte) (Event, bool) {
	family := b[0]
	dst := netip.IPv4Unspecified()
	switch family {
	case unix.AF_INET:
	case unix.AF_INET6:
		dst = netip.IPv6Unspecified()
	default:
		return Event{}, false
	}
	attrs, err := attributes(b[unix.SizeofRtMsg:])
	if err != nil {
		return Event{}, false
	}
	for _, a := range attrs {
		if a.kind == unix.RTA_DST {
			if dst, err = a.address(family); err != nil {
				return Event{}, false
			}
		}
	}
	p, err := dst.Prefix(int(b[1]))
	return Event{Prefix: p}, err == nil
}
