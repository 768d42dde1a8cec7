// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/dataplane/trace"
	"github.com/gleam-rdma/gleam/rocev2"
)

var _ api.Tracer = (*Engine)(nil)

const (
	traceInterval = 10 * time.Millisecond // the time between two looks at what was recorded
	traceBatch    = 1024                  // records of each worker that are read at a time
)

// traceSlot has the trace that runs.
type traceSlot struct{ running atomic.Pointer[traceRun] }

// Trace implements api.Tracer.
func (e *Engine) Trace(t *api.Trace) (func(context.Context, func(*api.TraceLine, bool) error) error, error) {
	r := &traceRun{engine: e, bounds: t, stopped: make(chan struct{}), start: api.TraceStart{Time: time.Now(), Snap: t.Snap, Notes: []string{}}}
	if !e.tracing.running.CompareAndSwap(nil, r) {
		return nil, &api.Error{Reason: api.ReasonTraceRuns, Message: "another trace runs, and there is one at a time: the log says whose; `gleam trace --stop` ends it"}
	}
	if err := r.begin(t); err != nil {
		e.tracing.running.Store(nil)
		return nil, err
	}
	return r.run, nil
}

// StopTrace implements api.Tracer.
func (e *Engine) StopTrace() error {
	r := e.tracing.running.Load()
	if r == nil {
		return &api.Error{Reason: api.ReasonNoTrace, Message: "no trace runs"}
	}
	r.stopOnce.Do(func() { close(r.stopped) })
	return nil
}

// traceRun is a trace that runs.
type traceRun struct {
	engine  *Engine
	bounds  *api.Trace
	stopped chan struct{} // closed by StopTrace

	stopOnce sync.Once
	running  *dataplane.Trace
	start    api.TraceStart
	before   *api.Group // the traced group when the trace began; nil: none was registered
	base     time.Time  // the start of the workers' clock
	ports    []string   // ports by index; empty: no port
	lines    []api.TraceLine
	sent     uint64
	emit     func(*api.TraceLine, bool) error
}

// begin begins the trace.
func (r *traceRun) begin(t *api.Trace) (err error) {
	e := r.engine
	f := trace.Filter{
		Drops: t.Drops, Snap: t.Snap, Rate: cmp.Or(t.Rate, api.DefaultTraceRate), EnvelopePort: e.cfg.Envelope.UDPPort,
	}
	if !r.readPorts() {
		return errStopped
	}
	for _, name := range t.Ports {
		i := slices.Index(r.ports, name)
		if i < 0 || name == "" {
			return &api.Error{Reason: api.ReasonUnknownPort, Message: fmt.Sprintf("there is no port %s: see `gleam port list`", name)}
		}
		f.Ports = append(f.Ports, i)
	}
	for _, m := range t.Members {
		f.Members = append(f.Members, m.Unmap())
	}
	if t.PSNs != nil {
		f.PSNs = &trace.PSNRange{First: rocev2.PSN(t.PSNs.First), Last: rocev2.PSN(t.PSNs.Last)}
	}
	for _, name := range t.Opcodes {
		ops, _ := rocev2.ParseOpcodes(name)
		f.Ops = append(f.Ops, ops...)
	}
	if err := r.noteGroup(t, &f); err != nil {
		return err
	}
	var slow []netip.Addr
	if t.Slow {
		slow = f.Groups
	}
	r.before, _ = e.Group(t.Group.Unmap())
	r.base = time.Now().Add(-e.plane.Now())
	r.running, err = e.plane.StartTrace(&f, slow)
	return err
}

// readPorts reads the names of the ports. It returns false if the switch has stopped.
func (r *traceRun) readPorts() bool {
	return r.engine.control.read(func() {
		r.ports, r.start.Ports = nil, []string{}
		for _, p := range r.engine.control.ports {
			r.ports = append(r.ports, p.Name)
			if p.Name != "" {
				r.start.Ports = append(r.start.Ports, p.Name)
			}
		}
	})
}

// noteGroup sets the addresses of the group in f, and notes what keeps its packets from being
// seen.
func (r *traceRun) noteGroup(t *api.Trace, f *trace.Filter) (err error) {
	fast := false
	if !r.engine.control.read(func() {
		dir := r.engine.control.dir
		if fast = dir.defaults.fastPath; !t.Group.IsValid() {
			return
		}
		ip := t.Group.Unmap()
		if !r.engine.plane.InGroupPrefixes(ip) {
			err = &api.Error{Reason: api.ReasonBadRequest, Message: fmt.Sprintf("%s is in no group prefix of this switch: no packet for it comes to gleamd", ip)}
			return
		}
		f.Groups = []netip.Addr{ip}
		if other := dir.addressOf(ip); other.IsValid() && other != ip {
			f.Groups = append(f.Groups, other)
		}
		if g := dir.groups[ip]; g == nil {
			r.start.Notes = append(r.start.Notes, fmt.Sprintf("no group %s is registered now", ip))
		}
	}) {
		return errStopped
	}
	if err == nil && fast && !t.Slow {
		r.start.Notes = append(r.start.Notes, "the fast path is on: XDP's copies are not seen, and packets that XDP has forwarded are recorded when a worker hears of them; --slow takes the group off the fast path")
	}
	return err
}

// run passes the lines of the trace to emit until it ends.
func (r *traceRun) run(ctx context.Context, emit func(*api.TraceLine, bool) error) error {
	defer r.end()
	r.emit = emit
	if err := emit(&api.TraceLine{Start: &r.start}, false); err != nil {
		return err
	}
	var over <-chan time.Time
	if r.bounds.Seconds > 0 {
		timer := time.NewTimer(time.Duration(r.bounds.Seconds * float64(time.Second)))
		defer timer.Stop()
		over = timer.C
	}
	tick := time.NewTicker(traceInterval)
	defer tick.Stop()
	reason := ""
	for reason == "" {
		select {
		case <-tick.C:
		case <-over:
			reason = "time"
		case <-r.stopped:
			reason = "stopped"
		case <-ctx.Done():
			return ctx.Err() // nobody reads any more, or the switch stops
		}
		if reason != "" {
			r.running.Stop()
		}
		full, err := r.drain()
		if err != nil {
			return err
		}
		if full {
			reason = "count"
		}
	}
	r.end()
	lost, rate := r.running.Unrecorded()
	return emit(&api.TraceLine{End: &api.TraceEnd{Reason: reason, Packets: r.sent, Lost: lost, OverRate: rate, Costs: r.costs()}}, false)
}

// costs returns what the members of the traced group have cost it since the trace began. One that is not
// registered any more had its last costs when it ended.
func (r *traceRun) costs() []api.TraceCost {
	ip := r.bounds.Group.Unmap()
	list, _ := r.engine.EndedGroups()
	list = slices.DeleteFunc(list, func(g api.Group) bool { return g.IP != ip || g.Ended.Time.Before(r.start.Time) })
	if now, err := r.engine.Group(ip); err == nil {
		list = append(list, *now)
	}
	switch n := len(list); n {
	case 0:
		return nil
	case 1:
		return costsSince(r.before, &list[0])
	default: // it was registered anew, and its costs have begun with that
		return costsSince(nil, &list[n-1])
	}
}

// end ends the recording; another trace may begin.
func (r *traceRun) end() {
	r.running.Stop()
	r.engine.tracing.running.CompareAndSwap(r, nil)
}

// drain sends what was recorded so far, and reports whether the trace has the number of packets
// that it ends with. The records of several workers are put in order batch by batch.
func (r *traceRun) drain() (full bool, err error) {
	for n := traceBatch; n == traceBatch; {
		r.lines = r.lines[:0]
		n = r.running.Read(traceBatch, func(x *trace.Record) {
			if x.Port >= len(r.ports) || x.Port >= 0 && r.ports[x.Port] == "" {
				r.readPorts() // one was added
			}
			r.lines = append(r.lines, api.TraceLine{Packet: r.packet(x)})
		})
		slices.SortStableFunc(r.lines, func(a, b api.TraceLine) int { return a.Packet.Time.Compare(b.Packet.Time) })
		for i := range r.lines {
			last := r.bounds.Count > 0 && r.sent+1 >= uint64(r.bounds.Count)
			if err := r.emit(&r.lines[i], i+1 < len(r.lines) && !last); err != nil {
				return false, err
			}
			if r.sent++; last {
				return true, nil
			}
		}
	}
	return false, nil
}

// packet returns the API's form of a record.
func (r *traceRun) packet(x *trace.Record) *api.TracePacket {
	p := &api.TracePacket{
		Time: r.base.Add(x.At).Round(0), Direction: api.TraceOut, From: x.Src, To: x.Dst, Drop: x.Drop,
		Length: x.Length, Data: slices.Clone(x.Data), Lost: x.LostBefore,
	}
	if x.Port >= 0 && x.Port < len(r.ports) {
		p.Port = r.ports[x.Port]
	}
	if x.IsRoCE {
		psn, qpn := api.PSN(x.PSN), api.QPN(x.DestQP)
		p.Opcode, p.PSN, p.QPN = x.Op.Name(), &psn, &qpn
	}
	switch x.Kind {
	case trace.Received:
		p.Direction, p.Kind = api.TraceIn, api.TraceReceived
	case trace.Copied, trace.Resent, trace.NotSent:
		p.Kind = api.TraceCopy
		if x.Kind == trace.Resent {
			p.Kind = api.TraceRepair
		}
		psn, qpn := api.PSN(x.WasPSN), api.QPN(x.WasQP)
		p.PSNBefore, p.QPNBefore = &psn, &qpn
	case trace.Built:
		p.Kind = api.TraceOwn
	}
	if x.Kind == trace.NotSent || x.Flags&trace.Replaced != 0 {
		p.Direction = api.TraceNotSent
	}
	p.Text, p.Rules = traceText(x)
	return p
}
