// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// linkKey returns the index of the interface that a message with struct ifinfomsg is
// about.
func linkKey(b []byte) (ifindex int, ok bool) {
	if len(b) < unix.SizeofIfInfomsg {
		return 0, false
	}
	return int(int32(binary.NativeEndian.Uint32(b[4:]))), true
}

// destination returns the destination of the route in a message; for a default route the
// prefix of length 0 of its family.
func destination(m *syscall.NetlinkMessage) (netip.Prefix, bool) {
	if len(m.Data) < unix.SizeofRtMsg {
		return netip.Prefix{}, false
	}
	any := netip.IPv4Unspecified()
	switch m.Data[0] {
	case unix.AF_INET:
	case unix.AF_INET6:
		any = netip.IPv6Unspecified()
	default:
		return netip.Prefix{}, false // a multicast route
	}
	attrs, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return netip.Prefix{}, false
	}
	for _, a := range attrs {
		if a.Attr.Type == unix.RTA_DST {
			if ip, ok := netip.AddrFromSlice(a.Value); ok {
				return netip.PrefixFrom(ip, int(m.Data[1])), true
			}
		}
	}
	return netip.PrefixFrom(any, 0), true
}
