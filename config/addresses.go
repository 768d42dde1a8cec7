// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net"
	"net/netip"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// reservedPrefixes are address ranges that no group can have.
var reservedPrefixes = []struct {
	prefix netip.Prefix
	reason string
}{
	{netip.MustParsePrefix("224.0.0.0/4"), multicastReason},
	{netip.MustParsePrefix("ff00::/8"), multicastReason},
	{netip.MustParsePrefix("127.0.0.0/8"), "hosts keep the loopback range to themselves"},
	{netip.MustParsePrefix("::1/128"), "hosts keep the loopback address to themselves"},
	{netip.MustParsePrefix("0.0.0.0/8"), "hosts drop packets from 0.0.0.0/8 as martians"},
	{netip.MustParsePrefix("::/128"), "hosts drop packets from the unspecified address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "hosts drop packets from the broadcast address as martians"},
}

const multicastReason = "multicast: members get packets from their GroupIP, and hosts drop packets from a multicast source address as martians; take a unicast prefix"

// groupPrefix reads a prefix of group addresses, which overlaps none of others.
func (d *decoder) groupPrefix(v value, others []netip.Prefix) (p netip.Prefix, ok bool) {
	if p, ok = d.prefix(v, false); !ok {
		return p, false
	}
	for _, no := range reservedPrefixes {
		if p.Overlaps(no.prefix) {
			d.failAt(v, "overlaps %s: %s", no.prefix, no.reason)
			return p, false
		}
	}
	for _, q := range others {
		if p.Overlaps(q) {
			d.failAt(v, "overlaps %s, which is there already", q)
			return p, false
		}
	}
	return p, true
}

// hostPrefix reads the address of a host, or a prefix.
func (d *decoder) hostPrefix(v value) (netip.Prefix, bool) { return d.prefix(v, true) }

// prefix reads a prefix, or if hosts is set an address too.
func (d *decoder) prefix(v value, hosts bool) (p netip.Prefix, ok bool) {
	s, ok := d.str(v)
	if !ok {
		return p, false
	}
	p, err := netip.ParsePrefix(s)
	if a, e := netip.ParseAddr(s); e == nil && hosts && a.Zone() == "" {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	switch {
	case err != nil && hosts:
		d.failAt(v, "not an address or prefix; want one such as 10.77.0.1 or fd77::/64")
	case err != nil && strings.Contains(s, "/"):
		d.failAt(v, "not a prefix; want one such as 10.77.254.0/24 or fd77::6c65:0/112")
	case err != nil:
		d.failAt(v, "not a prefix; want one with its length, such as 10.77.254.0/24")
	case p.Addr().Is4In6():
		d.failAt(v, "an IPv4 address in IPv6 form; write it as IPv4")
	case p != p.Masked():
		d.failAt(v, "has bits set beyond its length; did you mean %s?", p.Masked())
	default:
		return p, true
	}
	return p, false
}

func (d *decoder) mac(v value) (m MAC, ok bool) {
	s, ok := d.str(v)
	if !ok {
		return m, false
	}
	b, err := net.ParseMAC(s)
	if err != nil || len(b) != len(m) {
		d.failAt(v, "not a MAC address; want one such as 02:67:6c:01:00:01")
		return m, false
	}
	return MAC(b), true
}

// maxAllowed bounds the entries of a list: the tables of package bpf have that size.
const maxAllowed = 1024

// allowed reads a list of hosts that may send, each by read.
func allowed[T comparable](d *decoder, dst *[]T, tag reflect.StructTag, v value, want string, read func(value) (T, bool)) {
	n, ok := v.node.(*ast.SequenceNode)
	switch {
	case !ok:
		d.wrongKind(v, want)
	case len(n.Values) == 0:
		d.failAt(v, "an empty list would let nobody send; want %s", want)
	case len(n.Values) > maxAllowed:
		d.failAt(v, "%d entries; want at most %d", len(n.Values), maxAllowed)
	default:
		list(d, dst, tag, v, read)
	}
}
