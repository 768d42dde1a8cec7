// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fib

import (
	"encoding/binary"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// attr is an attribute with its padding.
func attr(kind uint16, value ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, -len(b)&3)...)
}

func u32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

// message is an RTM_NEWROUTE of that family, prefix length, type and flags.
func message(family, bits, kind byte, flags uint32, attrs ...[]byte) []byte {
	return slices.Concat(append([][]byte{{family, bits, 0, 0, 254, 0, 0, kind}, u32(flags)}, attrs...)...)
}

// nexthop is a member of an RTA_MULTIPATH.
func nexthop(link uint32, flags, weight byte, attrs ...[]byte) []byte {
	a := slices.Concat(attrs...)
	b := binary.NativeEndian.AppendUint16(nil, uint16(8+len(a)))
	return slices.Concat(b, []byte{flags, weight - 1}, u32(link), a)
}

var (
	dst4 = attr(unix.RTA_DST, 10, 1, 0, 0)
	gw4  = attr(unix.RTA_GATEWAY, 10, 0, 0, 1)
	dst6 = attr(unix.RTA_DST, 0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	ll   = []byte{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}
	via6 = attr(unix.RTA_VIA, append(binary.NativeEndian.AppendUint16(nil, unix.AF_INET6), ll...)...)
	oif3 = attr(unix.RTA_OIF, u32(3)...)
)

func TestParseRoute(t *testing.T) {
	multi := func(hops ...[]byte) []byte { return attr(unix.RTA_MULTIPATH|nested, slices.Concat(hops...)...) }
	for _, tt := range []struct {
		name string
		msg  []byte
		want string
		deps []int // links that the route depends on
	}{
		{"gateway", message(unix.AF_INET, 24, unix.RTN_UNICAST, 0, dst4, gw4, oif3), "10.1.0.0/24 by 10.0.0.1 link 3 weight 1", []int{3}},
		{"on the link", message(unix.AF_INET6, 64, unix.RTN_UNICAST, 0, dst6, oif3), "fd00:1::/64 by link 3 weight 1", []int{3}},
		{"default", message(unix.AF_INET, 0, unix.RTN_UNICAST, 0, gw4, oif3), "0.0.0.0/0 by 10.0.0.1 link 3 weight 1", []int{3}},
		{"default of IPv6", message(unix.AF_INET6, 0, unix.RTN_UNICAST, 0, oif3), "::/0 by link 3 weight 1", []int{3}},
		{"gateway of the other family", message(unix.AF_INET, 16, unix.RTN_UNICAST, 0, dst4, via6, oif3), "10.1.0.0/16 by fe80::2 link 3 weight 1", []int{3}},
		{"paths, sorted", message(unix.AF_INET, 16, unix.RTN_UNICAST, 0, dst4, multi(nexthop(5, 0, 2, gw4), nexthop(4, 0, 255, via6))),
			"10.1.0.0/16 by fe80::2 link 4 weight 255, 10.0.0.1 link 5 weight 2", []int{4, 5}},
		{"the same path twice", message(unix.AF_INET, 16, unix.RTN_UNICAST, 0, dst4, multi(nexthop(5, 0, 2, gw4), nexthop(6, 0, 1), nexthop(5, 0, 3, gw4))),
			"10.1.0.0/16 by 10.0.0.1 link 5 weight 5, link 6 weight 1", []int{5, 6}},
		{"two gateways on a link", message(unix.AF_INET, 16, unix.RTN_UNICAST, 0, dst4, multi(nexthop(5, 0, 1, gw4), nexthop(5, 0, 1, via6))),
			"10.1.0.0/16 by 10.0.0.1 link 5 weight 1, fe80::2 link 5 weight 1", []int{5}},
		{"a single path with a weight", message(unix.AF_INET, 16, unix.RTN_UNICAST, 0, dst4, multi(nexthop(5, 0, 7, gw4))),
			"10.1.0.0/16 by 10.0.0.1 link 5 weight 1", []int{5}},
		{"a dead path", message(unix.AF_INET, 16, unix.RTN_UNICAST, 0, dst4, multi(nexthop(5, unix.RTNH_F_DEAD, 1, gw4), nexthop(4, 0, 1, gw4))),
			"10.1.0.0/16 by 10.0.0.1 link 4 weight 1", []int{4, 5}},
		{"all paths down", message(unix.AF_INET, 16, unix.RTN_UNICAST, 0, dst4, multi(nexthop(5, unix.RTNH_F_LINKDOWN, 1), nexthop(4, unix.RTNH_F_DEAD, 1))),
			"has a route whose links are all down", []int{4, 5}},
		{"single one down", message(unix.AF_INET, 16, unix.RTN_UNICAST, unix.RTNH_F_LINKDOWN, dst4, gw4, oif3), "has a route whose links are all down", []int{3}},
		{"MPLS", message(unix.AF_INET, 16, unix.RTN_UNICAST, 0, dst4, gw4, oif3, attr(unix.RTA_ENCAP_TYPE, 1, 0)),
			"has a route that wraps packets, which group traffic cannot follow", []int{3}},
		{"MPLS on one path", message(unix.AF_INET, 16, unix.RTN_UNICAST, 0, dst4, multi(nexthop(5, 0, 1, attr(unix.RTA_ENCAP|nested)), nexthop(4, 0, 1, gw4))),
			"10.1.0.0/16 by 10.0.0.1 link 4 weight 1", []int{4, 5}},
		{"hops withheld", message(unix.AF_INET, 16, unix.RTN_UNICAST, 0, dst4, attr(rtaNexthopID, u32(7)...)),
			"has a route with a nexthop object, which the kernel does not show: set the sysctl net.ipv4.nexthop_compat_mode to 1", nil},
		{"blackhole", message(unix.AF_INET6, 64, unix.RTN_BLACKHOLE, 0, dst6, oif3), "has a blackhole route", nil},
		{"local", message(unix.AF_INET, 32, unix.RTN_LOCAL, 0, dst4, oif3), "is an address of this switch itself", nil},
		{"broadcast", message(unix.AF_INET, 32, unix.RTN_BROADCAST, 0, dst4, oif3), "has no unicast route", nil},
		{"unreachable", message(unix.AF_INET6, 64, unix.RTN_UNREACHABLE, 0, dst6, oif3), "has a route of type unreachable", nil},
		{"prohibit", message(unix.AF_INET6, 64, unix.RTN_PROHIBIT, 0, dst6, oif3), "has a route of type prohibit", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ParseRoute(tt.msg)
			if err != nil || r.String() != tt.want {
				t.Errorf("%v, %v\nwant %s", r, err, tt.want)
			}
			if !slices.Equal(r.links, tt.deps) {
				t.Errorf("depends on links %v, want %v", r.links, tt.deps)
			}
			if !r.Prefix.IsValid() {
				t.Error("no prefix")
			}
		})
	}
	if r, _ := ParseRoute(message(unix.AF_INET, 16, unix.RTN_UNICAST, 0, dst4, oif3, attr(rtaNexthopID, u32(7)...))); r.group != 7 || r.Status != Usable {
		t.Errorf("nexthop object %d, %v", r.group, r)
	}
}

func TestParseRouteErrors(t *testing.T) {
	good := message(unix.AF_INET, 24, unix.RTN_UNICAST, 0, dst4, gw4, oif3)
	for _, tt := range []struct {
		name string
		msg  []byte
		want string
	}{
		{"empty", nil, "route in 0 bytes"},
		{"short", good[:11], "route in 11 bytes"},
		{"family", message(unix.AF_BRIDGE, 0, unix.RTN_UNICAST, 0), "address family 7"},
		{"cut attribute", good[:len(good)-1], "attribute of 8 bytes in 7"},
		{"attribute without its header", append(good[:12:12], 3, 0, 1, 0), "attribute of 3 bytes"},
		{"prefix of another family", message(unix.AF_INET, 24, unix.RTN_UNICAST, 0, dst6), "an address of 16 bytes"},
		{"prefix too long", message(unix.AF_INET, 33, unix.RTN_UNICAST, 0, dst4, oif3), "prefix length"},
		{"link in two bytes", message(unix.AF_INET, 24, unix.RTN_UNICAST, 0, dst4, attr(unix.RTA_OIF, 1, 0)), "of 2 bytes, want 4"},
		{"gateway of a family", message(unix.AF_INET, 24, unix.RTN_UNICAST, 0, attr(unix.RTA_VIA, 99, 0, 1, 2, 3, 4)), "gateway of address family 99"},
		{"gateway in a byte", message(unix.AF_INET, 24, unix.RTN_UNICAST, 0, attr(unix.RTA_VIA, 2)), "gateway in 1 bytes"},
		{"cut path", message(unix.AF_INET, 24, unix.RTN_UNICAST, 0, attr(unix.RTA_MULTIPATH, nexthop(1, 0, 1)[:7]...)), "next hop in 7 bytes"},
		{"long path", message(unix.AF_INET, 24, unix.RTN_UNICAST, 0, attr(unix.RTA_MULTIPATH, 9, 0, 0, 0, 1, 0, 0, 0)), "next hop of 9 bytes in 8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := ParseRoute(tt.msg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestParseEvent(t *testing.T) {
	link := slices.Concat([]byte{0, 0, 1, 0}, u32(7), u32(0), u32(0))
	object := slices.Concat([]byte{2, 0, 0, 0}, u32(0), attr(unix.NHA_ID, u32(9)...))
	network, _ := addr("10.1.0.0").Prefix(24)
	all6, _ := addr("::").Prefix(0)
	for _, tt := range []struct {
		name string
		kind uint16
		msg  []byte
		want Event
		ok   bool
	}{
		{"link", unix.RTM_NEWLINK, link, Event{Link: 7}, true},
		{"link gone", unix.RTM_DELLINK, link, Event{Link: 7}, true},
		{"link cut", unix.RTM_NEWLINK, link[:15], Event{}, false},
		{"route", unix.RTM_NEWROUTE, message(unix.AF_INET, 24, 1, 0, dst4, gw4), Event{Prefix: network}, true},
		{"route gone", unix.RTM_DELROUTE, message(unix.AF_INET6, 0, 1, 0), Event{Prefix: all6}, true},
		{"cloned route", unix.RTM_NEWROUTE, message(unix.AF_INET, 24, 1, unix.RTM_F_CLONED, dst4), Event{}, false},
		{"route of MPLS", unix.RTM_NEWROUTE, message(28, 20, 1, 0), Event{}, false},
		{"route cut", unix.RTM_NEWROUTE, message(unix.AF_INET, 24, 1, 0)[:11], Event{}, false},
		{"route with a bad length", unix.RTM_NEWROUTE, message(unix.AF_INET, 33, 1, 0, dst4), Event{}, false},
		{"nexthop object", unix.RTM_NEWNEXTHOP, object, Event{Group: 9}, true},
		{"nexthop object gone", unix.RTM_DELNEXTHOP, object, Event{Group: 9}, true},
		{"nexthop without ID", unix.RTM_DELNEXTHOP, object[:8], Event{}, false},
		{"rule", unix.RTM_NEWRULE, nil, Event{All: true}, true},
		{"another", unix.RTM_NEWADDR, link, Event{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if e, ok := ParseEvent(tt.kind, tt.msg); ok != tt.ok || ok && e != tt.want {
				t.Errorf("%+v, %t, want %+v, %t", e, ok, tt.want, tt.ok)
			}
		})
	}
}

// TestErrorsOfAMatch: which errors say something about the destination.
func TestErrorsOfAMatch(t *testing.T) {
	for errno, want := range map[syscall.Errno]Status{
		unix.ENETUNREACH: NoRoute, unix.ESRCH: NoRoute, unix.EHOSTUNREACH: Unreachable, unix.EACCES: Prohibited, unix.EINVAL: Blackhole,
	} {
		if r, ok := failed(errno); !ok || r.Status != want {
			t.Errorf("%v: %v, %t", errno, r, ok)
		}
	}
	for _, errno := range []syscall.Errno{unix.ENOBUFS, unix.EINTR, unix.EPERM, unix.ENOMEM} {
		if r, ok := failed(errno); ok {
			t.Errorf("%v says %v", errno, r)
		}
	}
	for s := range statusCount {
		if s.String() == "" {
			t.Errorf("status %d has no text", s)
		}
	}
}

// FuzzParse: what is accepted is sorted, has no next hop twice, and is usable only with next
// hops.
func FuzzParse(f *testing.F) {
	f.Add(uint16(unix.RTM_NEWROUTE), message(unix.AF_INET, 24, unix.RTN_UNICAST, 0, dst4, gw4, oif3))
	f.Add(uint16(unix.RTM_NEWROUTE), message(unix.AF_INET, 16, unix.RTN_UNICAST, 0, dst4, attr(unix.RTA_MULTIPATH, slices.Concat(nexthop(5, 0, 2, gw4), nexthop(4, 0, 1, via6))...)))
	f.Add(uint16(unix.RTM_NEWNEXTHOP), slices.Concat([]byte{2, 0, 0, 0}, u32(0), attr(unix.NHA_ID, u32(9)...)))
	f.Fuzz(func(t *testing.T, kind uint16, msg []byte) {
		ParseEvent(kind, msg)
		r, err := ParseRoute(msg)
		if err != nil {
			return
		}
		if (r.Status == Usable) != (len(r.Hops) > 0) || !r.Prefix.IsValid() {
			t.Fatalf("%v", r)
		}
		for i, h := range r.Hops {
			if h.Link <= 0 || h.Weight < 1 || !slices.Contains(r.links, h.Link) {
				t.Fatalf("hop %v of %v, links %v", h, r, r.links)
			}
			if i > 0 && (r.Hops[i-1].Link > h.Link || r.Hops[i-1].Link == h.Link && r.Hops[i-1].Gateway.Compare(h.Gateway) >= 0) {
				t.Fatalf("not sorted: %v", r)
			}
		}
	})
}
