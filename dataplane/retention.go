// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// retention is the packets that the core retains for local repair. They stay in the frames
// in which they were received, out of the pool, from retain until release. The core names
// a packet by the handle of its first frame.
type retention struct {
	umem       *xsk.Umem
	descs      []xsk.Desc     // descriptors by handle
	nextBuffer []mcast.Handle // the next buffer of a packet in several, by handle
	maxBuffers int            // buffers of the longest packet that was ever retained; at least 1

	// The packet that was decoded last, of which several copies are made in a row.
	frame     rocev2.Frame
	handle    mcast.Handle
	isDecoded bool
	chain     rocev2.Chain           // the chain of frame
	packet    [xsk.MaxChain]xsk.Desc // scratch
}

func newRetention(umem *xsk.Umem) retention {
	return retention{
		umem: umem, descs: make([]xsk.Desc, umem.Frames()), nextBuffer: make([]mcast.Handle, umem.Frames()), maxBuffers: 1,
		chain: make(rocev2.Chain, 0, xsk.MaxChain),
	}
}

// handleOf returns the core's name for the frame at addr.
func (r *retention) handleOf(addr uint64) mcast.Handle {
	return mcast.Handle(addr / uint64(r.umem.FrameSize()))
}

// retain records the buffers of a packet that the core retains.
func (r *retention) retain(ds []xsk.Desc) {
	h := r.handleOf(ds[0].Addr)
	r.descs[h] = ds[0]
	if len(ds) == 1 {
		return
	}
	for _, d := range ds[1:] {
		next := r.handleOf(d.Addr)
		r.nextBuffer[h], r.descs[next] = next, d
		h = next
	}
	r.maxBuffers = max(r.maxBuffers, len(ds))
}

// release returns the frames of packets that the core has freed to pool.
func (r *retention) release(freed []mcast.Handle, pool *xsk.Pool) {
	for _, h := range freed {
		if h&ringHandle != 0 {
			continue // the limit frees slots
		}
		d := r.descs[h]
		pool.GiveOne(d.Addr)
		for !isLast(d) {
			h = r.nextBuffer[h]
			d = r.descs[h]
			pool.GiveOne(d.Addr)
		}
	}
}

// get returns the buffers of a retained packet, and decodes it into frame unless that
// holds it already. The buffers are valid until the next call.
func (r *retention) get(h mcast.Handle) []xsk.Desc {
	decode := h != r.handle || !r.isDecoded
	if isLast(r.descs[h]) {
		d := &r.descs[h]
		if decode && rocev2.Decode(r.umem.Data(d.Addr, d.Len), &r.frame) != rocev2.OK {
			panic("dataplane: a retained frame has changed")
		}
		r.handle, r.isDecoded = h, true
		return r.descs[h : h+1]
	}
	k := 0
	for at := h; ; at = r.nextBuffer[at] {
		r.packet[k] = r.descs[at]
		k++
		if isLast(r.descs[at]) {
			break
		}
	}
	if decode {
		r.chain = r.chain[:0]
		for _, d := range r.packet[:k] {
			r.chain = append(r.chain, r.umem.Data(d.Addr, d.Len))
		}
		if rocev2.DecodeChain(&r.chain, &r.frame) != rocev2.OK {
			panic("dataplane: a retained packet has changed")
		}
		r.handle, r.isDecoded = h, true
	}
	return r.packet[:k]
}

// forgetDecoded is called before the core is: it may free a packet, and retain another one
// in the same frame.
func (r *retention) forgetDecoded() { r.isDecoded = false }
