// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// begin takes a free frame in which a packet for port pi is to be built. It
// returns false, with the reason counted, if there is no room. Only end, with
// nothing between, may follow.
func (w *worker) begin(pi int) (buf []byte, ok bool) {
	p := w.ports[pi]
	if p.down {
		w.count.drop[DropPortDown]++
		return nil, false
	}
	if !p.admitsReply() {
		w.refuse(p)
		return nil, false
	}
	if w.built, ok = w.pool.TakeOne(); !ok {
		w.count.drop[DropNoFrame]++
		return nil, false
	}
	return w.umem.Frame(w.built), true
}

// end stages the n bytes that were built since begin. A builder returns 0 if
// its arguments make no packet; then the frame goes back.
func (w *worker) end(pi, n int) {
	if n == 0 {
		w.pool.GiveOne(w.built)
		w.count.drop[DropNotGroup]++
		return
	}
	if n < minFrame {
		clear(w.umem.Frame(w.built)[n:minFrame])
		n = minFrame
	}
	w.ports[pi].stage(xsk.Desc{Addr: w.built, Len: uint32(n)})
}

// neighbour answers an ARP request or neighbour solicitation for a group
// address with the MAC of the port that it came in by. Hosts resolve GroupIP
// when they connect their QPs, which is before anybody registers the group: so
// every address of the group prefixes is answered for.
func (w *worker) neighbour(pi int) {
	f := &w.frame
	p := w.ports[pi]
	if f.Kind == rocev2.KindARP {
		var a rocev2.ARP
		if r := rocev2.DecodeARP(f, &a); r != rocev2.OK {
			w.count.decode[r]++
			return
		}
		if a.Op != rocev2.ARPRequest || !w.isGroup(a.TargetIP) {
			w.count.drop[DropNotGroup]++
			return
		}
		w.sight(pi, a.SenderIP)
		if buf, ok := w.begin(pi); ok {
			w.end(pi, rocev2.BuildARPReply(buf, f, &a, p.mac))
			w.count.neighbour++
		}
		return
	}
	var s rocev2.NeighborSolicitation
	if r := rocev2.DecodeNeighborSolicitation(f, &s); r != rocev2.OK {
		w.count.decode[r]++
		return
	}
	if !w.isGroup(s.Target) {
		w.count.drop[DropNotGroup]++
		return
	}
	w.sight(pi, f.Src())
	if buf, ok := w.begin(pi); ok {
		w.end(pi, rocev2.BuildNeighborAdvertisement(buf, f, &s, p.mac))
		w.count.neighbour++
	}
}

// echo answers an echo request to a group address, whether a group is registered
// there or not, so that a ping tells whether the switch is there.
func (w *worker) echo(pi int) {
	if !w.isGroup(w.frame.Dst()) {
		w.count.drop[DropNotGroup]++
		return
	}
	if buf, ok := w.begin(pi); ok {
		n, r := rocev2.BuildEchoReply(buf, &w.frame, w.ports[pi].mac)
		if r != rocev2.OK {
			w.pool.GiveOne(w.built)
			w.count.decode[r]++
			return
		}
		w.end(pi, n)
		w.count.neighbour++
	}
}

// isGroup reports whether a is in one of the configured group prefixes.
func (w *worker) isGroup(a netip.Addr) bool {
	for _, p := range w.prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
