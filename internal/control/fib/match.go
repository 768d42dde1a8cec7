// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fib

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// matcher sends FIB matches to the kernel of one network namespace.
type matcher struct {
	sockets map[int]*nl.SocketHandle
}

// answerTimeout bounds the wait for an answer. The kernel answers within the system call
// that sends the request, so it expires only if an answer was lost.
var answerTimeout = unix.Timeval{Sec: 1}

func newMatcher(ns netns.NsHandle) (*matcher, error) {
	var s *nl.NetlinkSocket
	if err := inNamespace(ns, func() (err error) {
		s, err = nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_ROUTE)
		return err
	}); err != nil {
		return nil, fmt.Errorf("open netlink for routes: %w", err)
	}
	if err := errors.Join(s.SetSendTimeout(&answerTimeout), s.SetReceiveTimeout(&answerTimeout)); err != nil {
		s.Close()
		return nil, fmt.Errorf("open netlink for routes: %w", err)
	}
	return &matcher{map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: s}}}, nil
}

// inNamespace runs f in a network namespace. Only tests have threads in several: a thread
// that is there needs no right to enter it, which gleamd gives up.
func inNamespace(ns netns.NsHandle, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if here, err := netns.Get(); err == nil {
		defer here.Close()
		if !here.Equal(ns) {
			if err := netns.Set(ns); err != nil {
				return fmt.Errorf("enter the watched namespace: %w", err)
			}
			defer netns.Set(here)
		}
	}
	return f()
}

func (m *matcher) close() { m.sockets[unix.NETLINK_ROUTE].Close() }

// best returns the most specific route to a destination that the tables of some VRFs have; 0 stands
// for no VRF. Without any it is the route by no VRF.
func (m *matcher) best(a netip.Addr, vrfs []int) (best Route, err error) {
	if len(vrfs) == 0 {
		return m.match(a, 0)
	}
	for i, v := range vrfs {
		r, err := m.match(a, v)
		if err != nil {
			return Route{}, err
		}
		if i == 0 || r.Prefix.Bits() > best.Prefix.Bits() || best.Status != Usable && r.Status == Usable { // -1 without a route
			best = r
		}
	}
	return best, nil
}

// match returns what the FIB has for a destination, by the table of a VRF; 0: by none. An error
// says nothing about the destination.
func (m *matcher) match(a netip.Addr, vrf int) (Route, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETROUTE, 0)
	req.Sockets = m.sockets
	msg := &nl.RtMsg{}
	msg.Family, msg.Dst_len = unix.AF_INET6, 128
	if a.Is4() {
		msg.Family, msg.Dst_len = unix.AF_INET, 32
	}
	msg.Flags = unix.RTM_F_LOOKUP_TABLE | unix.RTM_F_FIB_MATCH
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.RTA_DST, a.AsSlice()))
	if vrf != 0 {
		req.AddData(nl.NewRtAttr(unix.RTA_OIF, nl.Uint32Attr(uint32(vrf))))
	}
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWROUTE)
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		if r, ok := failed(errno); ok {
			return r, nil
		}
	}
	switch {
	case err != nil:
		return Route{}, fmt.Errorf("match %s in the FIB: %w", a, err)
	case len(answers) != 1:
		return Route{}, fmt.Errorf("match %s in the FIB: %d answers", a, len(answers))
	}
	r, err := ParseRoute(answers[0])
	if err != nil {
		return Route{Status: Malformed}, nil
	}
	return r, nil
}
