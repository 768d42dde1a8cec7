// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Datagrams and announcements leave by the worker that transmits for their port, all of one
// call between two of its batches: the caller waits once for each worker.

// UDP is a datagram for a host at a location. One to the port of RoCEv2 is a management
// datagram, whose payload is the MAD alone.
type UDP struct {
	To       Origin
	Src, Dst netip.AddrPort
	Payload  []byte
}

// SendUDP sends datagrams, as far as their ports have room. Those that are not sent are
// counted.
func (p *Plane) SendUDP(list []UDP) {
	p.transmit(len(list), func(i int) int { return list[i].To.Port }, func(w *worker, buf []byte, i int) int {
		d := &list[i]
		path := rocev2.Path{
			SrcMAC: w.ports[d.To.Port].mac, DstMAC: d.To.MAC, Tagged: d.To.VLAN != 0, TCI: d.To.VLAN,
			Src: d.Src.Addr(), Dst: d.Dst.Addr(), SrcPort: d.Src.Port(),
		}
		if d.Dst.Port() == rocev2.UDPPort {
			return rocev2.BuildMAD(buf, &path, 0, d.Payload) // UD does not look at the PSN
		}
		w.count.envelopeOut++
		return rocev2.BuildUDP(buf, &path, d.Dst.Port(), d.Payload)
	})
}

// Announcement is a group address at a port, in a VLAN.
type Announcement struct {
	Port  int
	VLAN  uint16
	Group netip.Addr
}

// Announce sends announcements.
func (p *Plane) Announce(list []Announcement) {
	p.transmit(len(list), func(i int) int { return list[i].Port }, func(w *worker, buf []byte, i int) int {
		w.count.neighbour++
		return buildAnnouncement(buf, &list[i], w.ports[list[i].Port].mac)
	})
}

// transmit sends n packets. Packet i leaves by port port(i); build writes it and returns
// its length.
func (p *Plane) transmit(n int, port func(i int) int, build func(w *worker, buf []byte, i int) int) {
	for k, w := range p.workers.all {
		var its []int
		for i := range n {
			if p.workers.txWorker(port(i)) == k {
				its = append(its, i)
			}
		}
		if len(its) == 0 {
			continue
		}
		w.do(func() {
			for _, i := range its {
				if buf, ok := w.beginFrame(port(i)); ok {
					w.endFrame(port(i), build(w, buf, i))
				}
			}
		})
	}
}

func buildAnnouncement(b []byte, x *Announcement, mac rocev2.MAC) int {
	p := rocev2.Path{SrcMAC: mac, DstMAC: rocev2.BroadcastMAC, Tagged: x.VLAN != 0, TCI: x.VLAN}
	if x.Group.Is6() {
		return rocev2.BuildUnsolicitedAdvertisement(b, &p, x.Group)
	}
	return rocev2.BuildARP(b, &p, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: mac, SenderIP: x.Group, TargetIP: x.Group})
}
