// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Relay is a datagram for a neighbour: an envelope that is about a group.
type Relay struct {
	To      mcast.Neighbor
	Group   netip.Addr
	Payload []byte
}

// The source addresses of datagrams between switches. The neighbour knows the sender by
// port and MAC address; its XDP program drops what has a group address as its source.
var (
	relaySource4 = netip.AddrFrom4([4]byte{192, 0, 0, 8}) // the IPv4 dummy address (RFC 7600)
	relaySource6 = netip.AddrFrom16([16]byte{0: 0xFE, 1: 0x80, 15: 1})
)

// SendRelays sends datagrams to neighbours, as far as these are up and their ports have
// room. Those that are not sent are counted.
func (p *Plane) SendRelays(list []Relay) {
	up := list[:0:0]
	for _, r := range list {
		if _, ok := p.neighbourPorts[r.To]; ok {
			up = append(up, r)
		}
	}
	if n := len(list) - len(up); n > 0 {
		w := p.workers.all[0]
		w.do(func() { w.count.drop[dropNeighbourDown] += uint64(n) })
	}
	p.transmit(len(up), func(i int) int { return p.neighbourPorts[up[i].To] }, func(w *worker, buf []byte, i int) int {
		w.count.envelopeOut++
		return w.buildRelay(buf, w.ports[p.neighbourPorts[up[i].To]], up[i].Group, up[i].Payload)
	})
}

// buildRelay writes a datagram for the neighbour at p and returns its length.
func (w *worker) buildRelay(buf []byte, p *port, group netip.Addr, payload []byte) int {
	path := rocev2.Path{
		SrcMAC: p.mac, DstMAC: p.neighbour.mac, Tagged: p.vlan != 0, TCI: p.vlan,
		Src: relaySource4, Dst: group, SrcPort: w.envelopePort,
	}
	if group.Is6() {
		path.Src = relaySource6
	}
	return rocev2.BuildUDP(buf, &path, w.envelopePort, payload)
}
