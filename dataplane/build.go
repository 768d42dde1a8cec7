// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// beginFrame takes a free frame to build a packet for port pi in. It returns false, with
// the reason counted, if there is no room. After it returns true, the next call must be
// endFrame.
func (w *worker) beginFrame(pi int) (buf []byte, ok bool) {
	p := w.ports[pi]
	if p.down {
		w.count.drop[dropPortDown]++
		return nil, false
	}
	if !p.admitsReply() {
		w.countRefused(p)
		return nil, false
	}
	if w.buildAddr, ok = w.pool.TakeOne(); !ok {
		w.count.drop[dropNoFrame]++
		return nil, false
	}
	return w.umem.Frame(w.buildAddr), true
}

// endFrame stages the n bytes that were built since beginFrame. A builder returns 0 if
// its arguments make no packet; then the frame returns to the pool.
func (w *worker) endFrame(pi, n int) {
	if n == 0 {
		w.pool.GiveOne(w.buildAddr)
		w.count.drop[dropNotGroup]++
		return
	}
	if n < minFrame {
		clear(w.umem.Frame(w.buildAddr)[n:minFrame])
		n = minFrame
	}
	if w.tracing != nil {
		w.traceStaged(pi, w.umem.Data(w.buildAddr, uint32(n)), nil)
	}
	w.ports[pi].stage(xsk.Desc{Addr: w.buildAddr, Len: uint32(n)})
}

// serveNeighbour answers an ARP request or neighbour solicitation for a group address
// with the MAC address of the receiving port. Hosts resolve GroupIP when they connect
// their queue pairs, before the group is registered, so it answers for every address of
// the group prefixes.
func (w *worker) serveNeighbour(pi int) {
	f := &w.frame
	p := w.ports[pi]
	if f.Kind == rocev2.KindARP {
		var a rocev2.ARP
		if r := rocev2.DecodeARP(f, &a); r != rocev2.OK {
			w.count.decode[r]++
			return
		}
		if a.Op != rocev2.ARPRequest || !w.inGroupPrefixes(a.TargetIP) {
			w.count.drop[dropNotGroup]++
			return
		}
		w.reportSighting(pi, a.SenderIP)
		if buf, ok := w.beginFrame(pi); ok {
			w.endFrame(pi, rocev2.BuildARPReply(buf, f, &a, p.mac))
			w.count.neighbour++
		}
		return
	}
	var s rocev2.NeighborSolicitation
	if r := rocev2.DecodeNeighborSolicitation(f, &s); r != rocev2.OK {
		w.count.decode[r]++
		return
	}
	if !w.inGroupPrefixes(s.Target) {
		w.count.drop[dropNotGroup]++
		return
	}
	w.reportSighting(pi, f.Src())
	if buf, ok := w.beginFrame(pi); ok {
		w.endFrame(pi, rocev2.BuildNeighborAdvertisement(buf, f, &s, p.mac))
		w.count.neighbour++
	}
}

// serveEcho answers an echo request to a group address, whether a group is registered
// there or not, so that a ping shows whether the switch is reachable.
func (w *worker) serveEcho(pi int) {
	if !w.inGroupPrefixes(w.frame.Dst()) {
		w.count.drop[dropNotGroup]++
		return
	}
	if buf, ok := w.beginFrame(pi); ok {
		n, r := rocev2.BuildEchoReply(buf, &w.frame, w.ports[pi].mac)
		if r != rocev2.OK {
			w.pool.GiveOne(w.buildAddr)
			w.count.decode[r]++
			return
		}
		w.endFrame(pi, n)
		w.count.neighbour++
	}
}

// inGroupPrefixes reports whether a is in one of the configured group prefixes.
func (w *worker) inGroupPrefixes(a netip.Addr) bool {
	for _, p := range w.prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
