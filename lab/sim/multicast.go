// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// groupSwitch is a switch that serves groups. Its core gets packets as gleamd's driver decodes
// them, and its output is carried out as the driver does it.
type groupSwitch struct {
	core   *mcast.Switch
	node   int32
	groups []groupTable // groups by mcast.GroupID
	alarm  alarm
}

// groupTable is what a driver knows of a group.
type groupTable struct {
	legs  []leg
	legOf []mcast.LegID   // legs by member
	hosts []topology.Node // hosts by member

	source topology.Node // the source of the last data; with Config.AllCNPs
}

// leg is the way out of a switch to a member or to the next switch of the tree.
type leg struct {
	port      uint32
	label     uint32 // number of the group at the next switch, or of the member's queue pair
	forwarded bool
}

// frame is what a switch retains of a packet.
type frame struct {
	key   uint64
	src   uint32
	psn   uint32
	aux   uint32
	flags eventFlags
}

// has reports whether the switch has the group with that number: not before its tree comes here, and
// not after the tree has gone elsewhere.
func (sw *groupSwitch) has(id uint32) bool { return sw.groups[id].hosts != nil }

// hostAddr and groupAddr return the addresses of hosts and groups.
func hostAddr(n topology.Node) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}

func groupAddr(n int32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(100 + n>>24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// toCore gives a packet of a group to the switch at which it has arrived.
func (p *Partition) toCore(e *event) {
	sw := p.s.switches[int(p.s.at[e.in].node)-p.s.cfg.Topology.Hosts]
	switch {
	case !sw.has(e.dst):
		p.result.NoRoute++
	case e.flags&inTrain != 0:
		p.trainToCore(sw, e)
	case e.flags&corrupt != 0 && e.isFeedback():
		p.result.Damaged++ // the driver checks feedback beforehand
	case p.s.cfg.AllCNPs && e.opcode() == rocev2.CNP:
		p.passCNP(&sw.groups[e.dst], e)
	default:
		if p.s.cfg.AllCNPs && !e.isFeedback() {
			sw.groups[e.dst].source = topology.Node(e.src)
		}
		frame, ok := p.input(sw, e)
		p.carryOut(sw, e, frame, ok)
	}
}

// passCNP passes a CNP on towards the source, without the core's filter.
func (p *Partition) passCNP(g *groupTable, e *event) {
	l := &g.legs[g.legOf[slices.Index(g.hosts, g.source)]]
	x := *e
	x.src, x.dst, x.kind = uint32(g.source), l.label, toMember
	if l.forwarded {
		x.kind = toSwitch
	}
	p.send(l.port, &x)
}

// input gives a packet to a core. ok is false if its ICRC had to be right, and is not.
func (p *Partition) input(sw *groupSwitch, e *event) (h mcast.Handle, ok bool) {
	s := p.s
	at := s.at[e.in]
	in := mcast.Packet{
		Src: hostAddr(topology.Node(e.src)), Port: mcast.Port(e.in - s.firstPort[at.node]), Neighbor: at.neighbor,
		Op: e.opcode(), PSN: e.seq(), DestQP: groupQPN, BECN: e.flags&becn != 0,
	}
	if e.isFeedback() {
		in.Syndrome, in.MSN, in.Verified = e.syndrome(), e.msn(), true
	} else {
		in.AckReq, in.Payload = e.flags&ackReq != 0, uint16(e.aux)
		if in.Op.Is(rocev2.OpRETH) {
			in.DMALen, in.RKey = e.dmaLen(), p.key
		}
		in.Frame = mcast.Handle(p.frames.add(frame{e.key, e.src, e.psn, e.aux, e.flags}))
		in.RetainBytes = uint32(frameBytes + e.aux)
	}
	out, now := &p.coreOut, p.clock()
	p.serving = sw
	sw.core.InputGroup(now, mcast.GroupID(e.dst), &in, out)
	if out.NeedVerify && e.flags&corrupt == 0 {
		in.Verified = true
		sw.core.InputGroup(now, mcast.GroupID(e.dst), &in, out)
	}
	if out.NeedVerify {
		p.result.Damaged++
		return in.Frame, false
	}
	return in.Frame, true
}

// carryOut does what a core orders because of a packet, and frees its frame unless that is retained.
func (p *Partition) carryOut(sw *groupSwitch, e *event, frame mcast.Handle, ok bool) {
	data := !e.isFeedback()
	if ok {
		if data {
			p.came.set(e.in)
			p.came.frame = frame
		}
		p.carryOutCore(sw)
	}
	if data && !p.coreOut.Retained {
		p.frames.take(uint32(frame))
	}
}

// carryOutCore does what a core orders.
func (p *Partition) carryOutCore(sw *groupSwitch) {
	out := &p.coreOut
	for i := range out.Copies {
		p.copy(sw, &out.Copies[i])
	}
	p.came.reset()
	p.refused = p.refused[:0]
	for i := range out.Probes {
		q := &out.Probes[i]
		l := &sw.groups[q.Group].legs[q.Leg]
		e := event{kind: toMember, dst: l.label, flags: ackReq}
		e.setSeq(rocev2.WriteOnly, q.PSN)
		p.send(l.port, &e)
	}
	for _, h := range out.Freed {
		p.frames.take(uint32(h))
	}
	for i := range out.Feedback {
		p.feedback(sw, &out.Feedback[i])
	}
	for i := range out.Reports {
		p.report(sw, &out.Reports[i])
	}
	for i := range out.Events {
		switch out.Events[i].Kind {
		case mcast.MemberEvicted, mcast.GroupFailed, mcast.SourceRefused:
			p.result.Failed++
		}
	}
	p.setCoreAlarm(sw)
}

// copy sends a copy, if there is room for it.
func (p *Partition) copy(sw *groupSwitch, c *mcast.Copy) {
	if len(p.refused) > 0 && slices.Contains(p.refused, c.Leg) {
		return
	}
	f, l := &p.frames.values[c.Frame], &sw.groups[c.Group].legs[c.Leg]
	e := event{key: f.key, src: f.src, dst: l.label, aux: f.aux, kind: toMember, flags: f.flags}
	e.setSeq(rocev2.Opcode(f.psn>>24), c.PSN)
	if l.forwarded {
		e.kind = toSwitch
	}
	if c.Flags&mcast.SetAckReq != 0 {
		e.flags |= ackReq
	}
	came := p.came
	if c.Frame != came.frame {
		p.came.reset() // what is sent again is in memory of its own
	}
	ok := p.send(l.port, &e)
	if c.Frame != came.frame {
		p.came = came
	}
	if ok {
		return
	}
	at := p.s.ports[l.port].room(p.now, e.wireBytes())
	if sw.core.Requeue(c, clockOf(at)+1) {
		p.refused = append(p.refused, c.Leg)
	}
}

// feedback sends feedback to a source.
func (p *Partition) feedback(sw *groupSwitch, f *mcast.Feedback) {
	g := &sw.groups[f.Group]
	l := &g.legs[g.legOf[f.To]]
	e := event{src: uint32(g.hosts[f.To]), dst: l.label, kind: toMember}
	if l.forwarded {
		e.kind = toSwitch
	}
	e.setSeq(f.Op, f.PSN)
	e.setAck(f.Syndrome, f.MSN)
	if f.BECN {
		e.flags |= becn
	}
	p.send(l.port, &e)
}

// report sends a token message to a neighbour.
func (p *Partition) report(sw *groupSwitch, r *mcast.Report) {
	port := p.s.firstPort[sw.node] + uint32(r.Neighbor) - 1
	for i := range sw.groups[r.Group].legs {
		l := &sw.groups[r.Group].legs[i]
		if l.port != port {
			continue
		}
		e := event{kind: report, dst: l.label, aux: p.reports.add(*r)}
		if !p.send(port, &e) {
			p.reports.take(e.aux)
		}
	}
}

// reportArrived gives a token message to a switch.
func (p *Partition) reportArrived(e *event) {
	s := p.s
	r := p.reports.take(e.aux)
	if e.flags&corrupt != 0 {
		p.result.Damaged++
		return
	}
	at := s.at[e.in]
	sw := s.switches[int(at.node)-s.cfg.Topology.Hosts]
	p.serving = sw
	sw.core.InputReport(p.clock(), mcast.GroupID(e.dst), at.neighbor, &r.Message, &p.coreOut)
	p.carryOutCore(sw)
}

// setCoreAlarm makes a timer for the deadline of a switch's core.
func (p *Partition) setCoreAlarm(sw *groupSwitch) {
	if at, ok := sw.core.NextDeadline(); ok {
		if at := max(timeOf(at), p.now); sw.alarm.set(at) {
			p.timer(sw.node, coreTimer, at, 0, 0)
		}
	}
}

// coreTimer is called when a deadline of a switch's core may have come.
func (p *Partition) coreTimer(in uint32) {
	sw := p.s.switches[int(p.s.nodeOfTimer(in))-p.s.cfg.Topology.Hosts]
	sw.alarm.rang(p.now)
	if at, ok := sw.core.NextDeadline(); ok && at <= p.clock() {
		p.serving = sw
		sw.core.Advance(p.clock(), &p.coreOut)
		if p.s.train > 1 && (len(p.coreOut.Copies) > 0 || !plain(&p.coreOut)) {
			p.result.Displaced++
		}
		p.carryOutCore(sw)
		return
	}
	p.setCoreAlarm(sw)
}

// portRoom implements mcast.Output.PortRoom for the switch that is served. What is sent again waits in
// the store rather than at the port: after another loss, all that waits at the port comes in vain.
func (p *Partition) portRoom(id mcast.GroupID, l mcast.LegID) (copies int, until time.Duration) {
	leg := &p.serving.groups[id].legs[l]
	o := &p.s.ports[leg.port]
	packet := o.timeOf(int64(frameBytes + p.s.cfg.PathMTU))
	backlog := o.backlog(p.now)
	most := Time(repairRoom)
	if n := p.s.cfg.RepairRoom; n > 0 {
		most = Time(n)
	} else if leg.forwarded {
		most = switchRepairRoom
	}
	most = min(o.most, most*packet)
	return int(max(most-backlog, 0) / packet), clockOf(p.now+backlog+packet-most) + 1
}

// repairRoom is the number of packets that may wait at a port when one is sent again.
const repairRoom = 4

// switchRepairRoom is the same at a port to another switch, which can use what comes behind a gap.
const switchRepairRoom = 32

// memberArrived serves a packet for a member of a group.
func (p *Partition) memberArrived(e *event) {
	if c := p.conns[e.dst]; e.flags&inTrain != 0 {
		p.trainArrived(c, e)
	} else {
		p.arrived(c, e)
	}
}
