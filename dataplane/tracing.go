// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"cmp"
	"net/netip"

	"github.com/gleam-rdma/gleam/dataplane/trace"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// tracing records a worker's packets as they come, and as they are staged. While no trace runs,
// worker.tracing is nil, and a packet costs a comparison of that pointer at each place where it
// would be recorded.
//
// Why a packet is not served is read off the counters: one of them has grown since the packet
// came. So what counts drops does not know of traces.
type tracing struct {
	*trace.Recorder
	seen    counters     // the counters as far as they are accounted for, while a packet that may be recorded is served
	passing bool         // a copy is being made of a group that is not recorded
	copying bool         // a copy is being made, and not staged yet
	copyOf  trace.Record // what is known of it
	rest    [][]byte     // scratch: the buffers of a packet behind the first
	acks    tracedACK
}

// tracedACK is the record of an ACK that a later one of the same batch may replace.
type tracedACK struct {
	record *trace.Record // nil: it was not recorded
	epoch  uint64        // the epoch of the Recorder
}

func newTracing(r *trace.Recorder) *tracing {
	return &tracing{Recorder: r, rest: make([][]byte, 0, xsk.MaxChain)}
}

// traceReceived begins the record of a packet that port pi has received.
func (w *worker) traceReceived(pi int, ds []xsk.Desc) {
	t := w.tracing
	w.accountParent()
	var first []byte
	t.rest = t.rest[:0]
	for i := range ds {
		d := &ds[i]
		if int(d.Len) > w.umem.Room(d.Addr) {
			continue // decode drops the packet
		}
		if b := w.umem.Data(d.Addr, d.Len); first == nil {
			first = b
		} else if len(t.rest) < cap(t.rest) {
			t.rest = append(t.rest, b)
		}
	}
	x := t.Receive(pi, first, t.rest)
	if x == nil {
		return
	}
	x.At, t.seen = w.elapsed(), w.count
	if x.IsRoCE {
		w.traceProgress(x)
	}
}

// traceProgress notes where the PSN of a received packet lies in what the core has of its group.
func (w *worker) traceProgress(x *trace.Record) {
	id, ok := w.core.Lookup(w.aliases.of(x.Dst, x.DestQP))
	if !ok {
		return
	}
	w.reportBefore(id)
	if !x.Op.Is(rocev2.OpRequest) {
		if psn, ok := w.core.Group(id).SourcePSN(x.Src, x.PSN); ok && x.Op == rocev2.Acknowledge {
			w.tracing.Translate(psn)
		}
		return
	}
	acked, nxt, isSource := w.core.Group(id).Progress(x.Src)
	switch {
	case !isSource:
		x.Place = trace.OtherSource
	case x.PSN == nxt:
		x.Place = trace.Next
	case nxt.Less(x.PSN):
		x.Place = trace.Ahead
	case x.PSN.LessEq(acked):
		x.Place = trace.Acked
	default:
		x.Place = trace.Again
	}
}

// accountParent notes the drop of the packet that is being served, if another one is about to be
// within it.
func (w *worker) accountParent() {
	if x := w.tracing.Current(); x != nil {
		w.tracing.account(&w.count, &x.Drop)
	}
}

// traceServed ends the record of the packet that was received last.
func (w *worker) traceServed() {
	if w.tracing == nil {
		return
	}
	t := w.tracing
	w.accountParent()
	t.Served()
	if t.Current() != nil { // what was counted is not that packet's
		t.seen = w.count
	}
}

// account sets reason to the name of a counter that has grown, unless it is set already.
func (t *tracing) account(now *counters, reason *string) {
	if name := grown(&t.seen, now); name != "" && *reason == "" {
		*reason = name
	}
	t.seen = *now
}

// grown returns the name of a reason that was counted between two states of the counters; "" if
// there is none.
func grown(was, now *counters) string {
	if was.drop == now.drop && was.core == now.core && was.decode == now.decode {
		return ""
	}
	return cmp.Or(workerReasons.grown(was.drop[:], now.drop[:]), CoreReasons.grown(was.core[:], now.core[:]), decodeReasons.grown(was.decode[:], now.decode[:]))
}

// traceRetained notes that the packet which is being served is in the repair store.
func (w *worker) traceRetained() {
	if w.tracing != nil {
		if x := w.tracing.Current(); x != nil {
			x.Flags |= trace.Retained
		}
	}
}

// traceRefused records a packet that was not handed to its owner.
func (w *worker) traceRefused(pi int, ds []xsk.Desc, why dropReason) {
	if w.tracing == nil {
		return
	}
	w.traceReceived(pi, ds)
	if x := w.tracing.Current(); x != nil {
		x.Drop = why.String()
	}
	w.traceServed()
}

// traceReplies notes what was counted since accountParent: it concerns answers to the packet that
// is being served, not the packet.
func (w *worker) traceReplies() {
	x, reply := w.tracing.Current(), ""
	if x == nil {
		return
	}
	if w.tracing.account(&w.count, &reply); reply != "" {
		x.Reply = reply
	}
}

// copyTraced is copy while a trace runs.
func (w *worker) copyTraced(kind trace.Kind, c *mcast.Copy, f *rocev2.Frame, ds []xsk.Desc, last bool) (own bool) {
	t := w.tracing
	g := &w.groups[c.Group]
	l := &g.legs[c.Leg]
	if t.Current() != nil {
		w.accountParent()
	} else if !t.Concerns(g.ip) {
		t.passing = true
		own = w.copy(c, f, ds, last)
		t.passing = false
		return own
	} else {
		t.seen = w.count
	}
	t.copying, t.copyOf = true, trace.Record{At: w.elapsed(), Kind: kind, WasPSN: f.BTH().PSN(), WasQP: f.BTH().DestQP(), Member: l.addr()}
	x := &t.copyOf
	if f.Op.Is(rocev2.OpRETH) {
		x.WasVA = f.RETH().VA()
	}
	if l.kind == mcast.Connected {
		x.Flags |= trace.Translated
	}
	if c.Flags&mcast.SetRETH != 0 {
		x.Flags |= trace.NewAddress
		x.VA = c.VA
	}
	if c.Flags&mcast.SetAckReq != 0 {
		x.Flags |= trace.AsksACK
	}
	if c.Flags&mcast.EmptyWrite != 0 {
		x.Flags |= trace.Emptied
	}
	if own = w.copy(c, f, ds, last); !t.copying {
		t.seen = w.count
		return own
	}
	t.copying, x.Kind = false, trace.NotSent
	if t.account(&w.count, &x.Drop); x.Drop == "" { // the core has taken it back
		x.Drop = dropQueueFull.String()
		x.Flags |= trace.Deferred
	}
	t.Send(x, l.port, f.Bytes(), f.Rest())
	return own
}

// traceStaged records a frame that port pi has been given, whose first buffer is first: the copy
// that is being made, or a packet of the switch's own.
func (w *worker) traceStaged(pi int, first []byte, rest [][]byte) {
	t := w.tracing
	if t.passing {
		return
	}
	if t.copying {
		t.copying = false
		t.Send(&t.copyOf, pi, first, rest)
		return
	}
	t.acks.epoch = t.Epoch()
	t.acks.record = t.Send(&trace.Record{At: w.elapsed(), Kind: trace.Built}, pi, first, rest)
}

// traceReplaced records the ACK b, which has taken the place of another one of this batch.
func (w *worker) traceReplaced(before *tracedACK, pi int, b []byte) {
	t := w.tracing
	if before.record != nil && before.epoch == t.Epoch() {
		before.record.Flags |= trace.Replaced
	}
	w.traceStaged(pi, b, nil)
	*before = t.acks
}

// reportTraced is reportPacket while a trace runs.
func (w *worker) reportTraced(f *fastGroup, psn rocev2.PSN, paused, last bool) {
	t := w.tracing
	w.accountParent()
	frame, _, _ := f.ring.View(psn) // nothing if it is not stored yet: then it is recorded without its bytes
	if x := t.Receive(f.sourcePort, frame, nil); x != nil {
		x.At, x.Place, x.Flags, t.seen = w.elapsed(), trace.Next, trace.ByXDP, w.count
	}
	w.reportPacket(f, psn, paused, last)
	w.traceServed()
}

// InGroupPrefixes reports whether an address is in a group prefix. Any goroutine may call it.
func (p *Plane) InGroupPrefixes(ip netip.Addr) (in bool) {
	w := p.workers.all[0]
	w.do(func() { in = w.inGroupPrefixes(ip) })
	return in
}

// Trace is a trace that runs.
type Trace struct {
	plane     *Plane
	recorders []*trace.Recorder
}

// StartTrace has all workers record what f lets pass, in place of the last trace. The groups slow
// leave the fast path until the trace stops.
func (p *Plane) StartTrace(f *trace.Filter, slow []netip.Addr) (*Trace, error) {
	t := &Trace{plane: p}
	for range p.workers.all {
		t.recorders = append(t.recorders, trace.NewRecorder(f))
	}
	if !p.workers.do(func(w *worker) {
		w.keepSlow(slow)
		w.tracing = newTracing(t.recorders[w.index])
	}) {
		return nil, ErrStopped
	}
	return t, nil
}

// Stop ends the recording. What was recorded before can be read afterwards.
func (t *Trace) Stop() {
	t.plane.workers.do(func(w *worker) {
		w.tracing = nil
		w.keepSlow(nil)
		t.recorders[w.index].Publish()
	})
}

// Read passes the records that are there to do, up to n of each worker, and returns how many
// there were. do must not keep them.
func (t *Trace) Read(n int, do func(*trace.Record)) (total int) {
	for _, r := range t.recorders {
		total += r.Read(n, do)
	}
	return total
}

// Unrecorded returns how many packets would have been recorded and were not, for lack of room
// and beyond the rate.
func (t *Trace) Unrecorded() (lost, over uint64) {
	for _, r := range t.recorders {
		l, o := r.Unrecorded()
		lost, over = lost+l, over+o
	}
	return lost, over
}

// keepSlow keeps groups off the fast path, and lets all others take it.
func (w *worker) keepSlow(groups []netip.Addr) {
	if w.fast.shared == nil || len(groups)+len(w.fast.slow) == 0 {
		return
	}
	w.fast.slow = groups
	w.disturbFast()
}
