// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"github.com/gleam-rdma/gleam/config/linkrate"
)

// Port is an interface that the switch serves.
type Port struct {
	Name string `yaml:"name" kind:"interface" unique:"port" required:"p1"`
	// RX queues to bind: all, or a list such as [0, 1]. Group traffic that comes
	// in on a queue left out is not served. A reload opens the port again: its group
	// data stops for some milliseconds, and is repaired.
	Queues []int `yaml:"queues" range:"0 4095" unique:"queue" default:"all" reload:"applied"`
	// 802.1Q VLAN identifier of the tag that group frames leave this port with,
	// 1 to 4094; 0 sends them untagged. A VLAN interface on the way to a member
	// tags them as well. Tagged frames are accepted in any case.
	VLAN int `yaml:"vlan" range:"0 4094" default:"0"`
	// The rate at which group frames leave, as if the port were a link that fast:
	// header, FCS, preamble and gap are counted. bit, kbit, mbit or gbit, such as
	// 100mbit; none: as fast as the interface takes them. `gleam port set` changes
	// it. Other traffic of the interface is not counted.
	Rate linkrate.Rate `yaml:"rate" default:"none"`
	// What may wait to leave, in bytes, 4096 to 1 GiB. A copy that finds no room
	// is dropped, for its receivers only. Besides, all ports together hold no more
	// than a quarter of umem.frames, in equal shares.
	Queue int `yaml:"queue" range:"4096 1073741824" default:"262144"`
	// Copies get Congestion Experienced, if the sender's packets allow it (ECT), by
	// the bytes waiting: none up to kmin, a share that rises to pmax at kmax, all
	// above kmax. off: never. Defaults: an eighth and half of queue. Other thresholds
	// keep the groups of the port off the fast path, whose copies are not marked.
	ECN ECN `yaml:"ecn"`
	// Who may send group packets and envelopes, and ask for group addresses, by this
	// port: all, or lists of addresses and prefixes, and of MAC addresses, in quotes
	// if there are colons in them: ["10.77.0.1", "fd77::/64"]. Others'
	// frames are dropped (drop_allow_address, drop_allow_mac), and others are no
	// members there. Hosts ask from their IPv6 link-local addresses as well, which
	// need not be listed. A neighbour switch need not be listed either: its frames
	// pass while hellos prove it.
	Allow Allow `yaml:"allow"`
	// Where in the receive path the XDP program runs at this port: auto, native or generic;
	// default: as xdp.mode says for all. Bonds and other interfaces that the kernel makes run
	// it in generic mode alone, which auto does there (docs/PORTS.md). A reload opens the port
	// again, as for queues.
	XDP PortXDP `yaml:"xdp"`
}

// DefaultPort returns a port with the defaults of all keys but its name.
func DefaultPort() (p Port) {
	setDefaults(reflect.ValueOf(&p).Elem())
	return p
}

// PortXDP configures the XDP program of a port.
type PortXDP struct {
	Mode XDPMode `yaml:"mode" choice:"default, auto, native, generic" default:"default"`
}

// ECN has the queue depths from which on a port marks Congestion Experienced. The zero
// value is off.
type ECN struct {
	KMin int     `yaml:"kmin" range:"0 1073741824" default:"32768"`
	KMax int     `yaml:"kmax" range:"1 1073741824" default:"131072"`
	PMax float64 `yaml:"pmax" default:"0.2"`
}

// defaultECN returns the thresholds of a queue of that many bytes: some frames are
// marked from an eighth on, and all above half, well before frames are dropped.
func defaultECN(queue int) ECN {
	return ECN{KMin: queue / 8, KMax: queue / 2, PMax: 0.2}
}

// HasOwnECN reports whether the port marks by other thresholds than those that follow from its
// queue.
func (p *Port) HasOwnECN() bool { return p.ECN != ECN{} && p.ECN != defaultECN(p.Queue) }

func (p *Port) check(d *decoder, v value, seen map[string]value) {
	p.ECN = defaultECN(p.Queue)
	if at, ok := seen["ecn"]; ok {
		d.ecn(&p.ECN, p.Queue, at)
	}
	if _, ok := seen["name"]; !ok {
		d.fail(v.line, v.key, "", "has no name; want the interface's")
	}
}

// ecn reads off, or thresholds for a queue of that many bytes into e, which holds the
// defaults.
func (d *decoder) ecn(e *ECN, queue int, v value) {
	switch n := v.node.(type) {
	case nil, *ast.NullNode:
		return
	case *ast.BoolNode:
		if !n.Value {
			*e = ECN{}
			return
		}
	case *ast.StringNode:
		if n.Value == "off" {
			*e = ECN{}
			return
		}
	case *ast.MappingNode, *ast.MappingValueNode:
		d.thresholds(e, queue, v)
		return
	}
	d.wrongKind(v, "off, or a mapping of kmin, kmax and pmax")
}

func (d *decoder) thresholds(e *ECN, queue int, v value) {
	before := len(d.errs)
	seen := d.section(reflect.ValueOf(e).Elem(), v)
	if len(d.errs) > before {
		return
	}
	kmax, kmin := v, v
	if s, ok := seen["kmax"]; ok {
		kmax = s
	}
	if s, ok := seen["kmin"]; ok {
		kmin = s
	}
	switch {
	case e.KMax >= queue:
		d.fail(kmax.line, join(v.key, "kmax"), strconv.Itoa(e.KMax), "is not below queue, "+strconv.Itoa(queue)+": frames would be dropped before all are marked")
	case e.KMin > e.KMax:
		d.fail(kmin.line, join(v.key, "kmin"), strconv.Itoa(e.KMin), "is above kmax, "+strconv.Itoa(e.KMax))
	}
}

// Allow lists the hosts that may send group packets and envelopes, and resolve group
// addresses, by a port. A nil list allows all.
type Allow struct {
	Addresses []netip.Prefix `yaml:"addresses" kind:"allowed" default:"all"`
	MACs      []MAC          `yaml:"macs" default:"all"`
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
