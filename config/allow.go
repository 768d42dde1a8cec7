// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Allow lists the hosts that may send group packets and envelopes, and resolve group
// addresses, by a port. A nil list allows all.
type Allow struct {
	Addresses []netip.Prefix `yaml:"addresses"`
	MACs      []MAC          `yaml:"macs"`
}

// MAC is an Ethernet address.
type MAC [6]byte

// String returns m as in 02:67:6c:01:00:01.
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// Permits reports whether a host with this address and MAC address may send; a nil a
// permits all.
func (a *Allow) Permits(ip netip.Addr, mac MAC) bool {
	return a == nil || (a.MACs == nil || slices.Contains(a.MACs, mac)) &&
		(a.Addresses == nil || slices.ContainsFunc(a.Addresses, func(p netip.Prefix) bool { return p.Contains(ip) }))
}

// maxAllowed bounds the entries of a list: the tables of package bpf have that size.
const maxAllowed = 1024

// allow reads the lists of a port.
func (d *decoder) allow(a *Allow, v value) {
	d.mapping(v,
		field{"addresses", func(v value) {
			allowed(d, &a.Addresses, v, "all, or a list of addresses and prefixes such as [10.77.0.1, \"fd77::/64\"]", d.allowedPrefix)
		}},
		field{"macs", func(v value) {
			allowed(d, &a.MACs, v, "all, or a list of MAC addresses such as [\"02:67:6c:01:00:01\"]", d.allowedMAC)
		}})
}

// allowed reads all, or a list whose entries read reads.
func allowed[T comparable](d *decoder, dst *[]T, v value, want string, read func(value, string) (T, bool)) {
	if n, ok := v.node.(*ast.StringNode); ok && n.Value == "all" {
		*dst = nil
		return
	}
	n, ok := v.node.(*ast.SequenceNode)
	switch {
	case !ok:
		d.wrongKind(v, want)
		return
	case len(n.Values) == 0:
		d.failAt(v, "an empty list would let nobody send; want %s", want)
		return
	case len(n.Values) > maxAllowed:
		d.failAt(v, "%d entries; want at most %d", len(n.Values), maxAllowed)
		return
	}
	list := make([]T, 0, len(n.Values))
	d.list(v, func(v value) {
		s, ok := d.str(v)
		if !ok {
			return
		}
		x, ok := read(v, s)
		switch {
		case !ok:
		case slices.Contains(list, x):
			d.failAt(v, "is there already")
		default:
			list = append(list, x)
		}
	})
	*dst = list
}

func (d *decoder) allowedPrefix(v value, s string) (p netip.Prefix, ok bool) {
	var err error
	if strings.Contains(s, "/") {
		p, err = netip.ParsePrefix(s)
	} else {
		var a netip.Addr
		a, err = netip.ParseAddr(s)
		p = netip.PrefixFrom(a, a.BitLen())
	}
	switch {
	case err != nil || strings.Contains(s, "%"):
		d.failAt(v, "not an address or prefix; want one such as 10.77.0.1 or fd77::/64")
	case p.Addr().Is4In6():
		d.failAt(v, "an IPv4 address in IPv6 form; write it as IPv4")
	case p != p.Masked():
		d.failAt(v, "has bits set beyond its length; did you mean %s?", p.Masked())
	default:
		return p, true
	}
	return p, false
}

func (d *decoder) allowedMAC(v value, s string) (m MAC, ok bool) {
	b, err := net.ParseMAC(s)
	if err != nil || len(b) != len(m) {
		d.failAt(v, "not a MAC address; want one such as 02:67:6c:01:00:01")
		return m, false
	}
	return MAC(b), true
}
