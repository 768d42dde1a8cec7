// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Packets that are longer than a frame of the UMEM (xsk.ChainLen) have one descriptor for
// each of their buffers. They are served without being merged: a copy has its bytes in as
// many buffers, cut at the same offsets of the IP packet, and the last copy can use the
// received buffers themselves.

// chains is the worker's scratch for packets in several buffers.
type chains struct {
	received  rocev2.Chain           // the chain of scratch.frame
	copyOut   rocev2.Chain           // the chain of the copy that is being made
	copyDescs [xsk.MaxChain]xsk.Desc // the descriptors of the copy
}

func newChains() chains {
	return chains{received: make(rocev2.Chain, 0, xsk.MaxChain), copyOut: make(rocev2.Chain, 0, xsk.MaxChain)}
}

// decode decodes a received packet into w.frame. It returns the packet's descriptors,
// without the bytes beyond the end that the IP header gives. If it returns none, it has
// counted and freed the packet.
func (w *worker) decode(ds []xsk.Desc) []xsk.Desc {
	if len(ds) > 1 {
		return w.decodeChain(ds)
	}
	d := &ds[0]
	if d.Options != 0 || int(d.Len) > w.umem.Room(d.Addr) {
		w.count.drop[dropTooLong]++
		w.pool.GiveOne(d.Addr)
		return nil
	}
	if r := rocev2.Decode(w.umem.Data(d.Addr, d.Len), &w.frame); r != rocev2.OK {
		w.count.decode[r]++
		w.pool.GiveOne(d.Addr)
		return nil
	}
	return ds
}

// decodeChain is decode for a packet in several buffers.
func (w *worker) decodeChain(ds []xsk.Desc) []xsk.Desc {
	w.chains.received = w.chains.received[:0]
	for i := range ds[:min(len(ds), xsk.MaxChain)] {
		if d := &ds[i]; int(d.Len) <= w.umem.Room(d.Addr) {
			w.chains.received = append(w.chains.received, w.umem.Data(d.Addr, d.Len))
		}
	}
	if len(w.chains.received) < len(ds) {
		w.count.drop[dropTooLong]++
		w.freeFrames(ds)
		return nil
	}
	if r := rocev2.DecodeChain(&w.chains.received, &w.frame); r != rocev2.OK {
		w.count.decode[r]++
		w.freeFrames(ds)
		return nil
	}
	k := len(w.chains.received)
	if k > 1 && w.frame.Len()-w.frame.L3Offset() < minFrame-rocev2.EthernetLen {
		// Padding it would need room behind its last buffer.
		w.count.drop[dropTooLong]++
		w.freeFrames(ds)
		return nil
	}
	w.freeFrames(ds[k:])
	ds = ds[:k]
	for i := range ds {
		ds[i].Len = uint32(len(w.chains.received[i]))
	}
	ds[k-1].Options = 0
	return ds
}

// serveChains serves a batch from a port whose packets may be in several buffers, and
// returns the number of packets.
func (w *worker) serveChains(pi int, ds []xsk.Desc) (packets int) {
	for ; len(ds) > 0; packets++ {
		k := xsk.ChainLen(ds)
		w.servePacket(pi, ds[:k]...)
		ds = ds[k:]
	}
	return packets
}

// copyRest completes a copy of f, which ds describes, beyond its first buffer. The first
// buffer is complete: it has the bytes head and is sent from addr. The other buffers are
// those of ds if own is set, else new ones; the caller has checked that there are enough.
// copyRest writes the ICRC and stages the copy.
func (w *worker) copyRest(pi int, f *rocev2.Frame, ds []xsk.Desc, own bool, addr uint64, head []byte, icrc uint32) {
	c := &w.chains
	c.copyOut = append(c.copyOut[:0], head)
	c.copyDescs[0] = xsk.Desc{Addr: addr, Len: uint32(len(head)), Options: xsk.PktContd}
	for i, b := range f.Rest() {
		d := xsk.Desc{Addr: ds[i+1].Addr, Len: uint32(len(b)), Options: xsk.PktContd}
		if !own {
			d.Addr, _ = w.pool.TakeOne()
			copy(w.umem.Frame(d.Addr), b)
		}
		c.copyDescs[i+1] = d
		c.copyOut = append(c.copyOut, w.umem.Data(d.Addr, d.Len))
	}
	c.copyOut.SetICRC(icrc)
	made := c.copyDescs[:len(c.copyOut)]
	made[len(made)-1].Options = 0
	if w.tracing != nil {
		w.traceStaged(pi, c.copyOut[0], c.copyOut[1:])
	}
	w.ports[pi].stagePacket(made)
}
