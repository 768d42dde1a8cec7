// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package iface

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Redirects asks the kernel which interfaces take frames that XDP redirects to them. A veth
// does while its far end has GRO or an XDP program, most NICs while they have an XDP
// program themselves. The kernel leaves others out of a broadcast without a word.
type Redirects struct {
	family uint16
	socket *nl.NetlinkSocket
	buf    [4096]byte
}

// What of the kernel's interface is used (linux/netdev.h).
const (
	netdevFamily      = "netdev"
	netdevGet         = 1
	netdevIfindex     = 1
	netdevXDPFeatures = 3

	xdpBasic     = 1 << 0
	xdpNDOXmit   = 1 << 2
	xdpZeroCopy  = 1 << 3
	xdpRxBuffers = 1 << 5
)

// OpenRedirects opens a socket in the calling thread's network namespace. The error of a
// kernel before Linux 6.3, which does not know, wraps unix.ENOENT.
func OpenRedirects() (*Redirects, error) {
	family, err := genlFamily(netdevFamily)
	if err != nil {
		return nil, fmt.Errorf("ask the kernel for the XDP features of interfaces (Linux 6.3): %w", err)
	}
	s, err := nl.Subscribe(unix.NETLINK_GENERIC)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	return &Redirects{family: family, socket: s}, nil
}

// Close closes the socket.
func (r *Redirects) Close() error { r.socket.Close(); return nil }

// XDPFeatures is what the driver of an interface has for XDP.
type XDPFeatures uint64

// Native reports whether programs run in the driver.
func (x XDPFeatures) Native() bool { return x&xdpBasic != 0 }

// Taken reports whether the interface takes redirected frames now.
func (x XDPFeatures) Taken() bool { return x&xdpNDOXmit != 0 }

// ZeroCopy reports whether AF_XDP works without copies.
func (x XDPFeatures) ZeroCopy() bool { return x&xdpZeroCopy != 0 }

// MultiBuffer reports whether programs take packets in several buffers.
func (x XDPFeatures) MultiBuffer() bool { return x&xdpRxBuffers != 0 }

// Taken reports whether the interface takes redirected frames now.
func (r *Redirects) Taken(ifindex int) (bool, error) {
	x, err := r.Features(ifindex)
	return x.Taken(), err
}

// Features returns what the driver of an interface has.
func (r *Redirects) Features(ifindex int) (XDPFeatures, error) {
	fail := func(err error) (XDPFeatures, error) {
		return 0, fmt.Errorf("ask the kernel for the XDP features of interface %d: %w", ifindex, err)
	}
	m := make([]byte, 0, 28)
	m = binary.NativeEndian.AppendUint32(m, uint32(cap(m)))
	m = binary.NativeEndian.AppendUint16(m, r.family)
	m = binary.NativeEndian.AppendUint16(m, unix.NLM_F_REQUEST)
	m = binary.NativeEndian.AppendUint32(m, uint32(ifindex)) // sequence number: that of the answer
	m = binary.NativeEndian.AppendUint32(m, 0)               // port ID
	m = append(m, netdevGet, 1, 0, 0)
	m = binary.NativeEndian.AppendUint16(m, 8)
	m = binary.NativeEndian.AppendUint16(m, netdevIfindex)
	m = binary.NativeEndian.AppendUint32(m, uint32(ifindex))
	fd := r.socket.GetFd()
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fail(err)
	}
	for { // the answer is there when Sendto returns
		n, _, err := unix.Recvfrom(fd, r.buf[:], unix.MSG_DONTWAIT)
		if err != nil {
			return fail(err)
		}
		answer := r.buf[:n]
		if n < unix.SizeofNlMsghdr || binary.NativeEndian.Uint32(answer[8:]) != uint32(ifindex) {
			continue // one that was not read before
		}
		features, err := xdpFeatures(answer)
		if err != nil {
			return fail(err)
		}
		return XDPFeatures(features), nil
	}
}

// errShort means an answer that says nothing of features.
var errShort = errors.New("the answer has no XDP features")

// xdpFeatures reads the answer to netdevGet.
func xdpFeatures(b []byte) (uint64, error) {
	const header = unix.SizeofNlMsghdr + nl.SizeofGenlmsg
	if len(b) < header {
		return 0, errShort
	}
	if binary.NativeEndian.Uint16(b[4:]) == unix.NLMSG_ERROR {
		return 0, unix.Errno(-int32(binary.NativeEndian.Uint32(b[unix.SizeofNlMsghdr:])))
	}
	attrs, err := nl.ParseRouteAttr(b[header:min(len(b), int(max(header, binary.NativeEndian.Uint32(b))))])
	if err != nil {
		return 0, err
	}
	for _, a := range attrs {
		if a.Attr.Type == netdevXDPFeatures && len(a.Value) == 8 {
			return binary.NativeEndian.Uint64(a.Value), nil
		}
	}
	return 0, errShort
}

// FeaturesOf returns what the driver of an interface has, by a socket of its own in the calling thread's network namespace.
func FeaturesOf(ifindex int) (XDPFeatures, error) {
	r, err := OpenRedirects()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return r.Features(ifindex)
}
