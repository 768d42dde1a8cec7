// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/rocev2"
)

// conn is a queue pair of a host: one end of a connection from one host to another, or a member of a
// group.
type conn struct {
	qp     *rc.QP
	id     uint64 // the ID of its timers: no other one at the host has it
	number uint32 // the index in the partition's conns
	label  uint32 // the number of a member's group at the host's switch
	host   topology.Node
	flow   workload.Flow // what its flows have in common, except for a member's Source
	alarm  alarm

	acked              bool // ACKs have come back
	lastAcked, nextPSN rocev2.PSN
	sinceAsk           int  // packets sent since one with AckReq
	since              Time // the time when it was put into the host's list, if it has not sent since

	next   *conn // the next one in the host's list of those that may have something to send
	queued bool  // true: it is in that list

	posted  []posted // flows that the queue pair has
	waiting []workload.Flow
	sent    int64 // packets of all flows posted
	written int64 // length of the WRITE that is received
}

// posted is a flow that the queue pair has.
type posted struct {
	flow  workload.Flow
	start Time
	last  rocev2.PSN
}

const (
	hostQPN  = rocev2.QPN(0x100)  // the QPN of every queue pair of a host
	groupQPN = rocev2.QPN(0x6c6d) // the QPN of every group
	fromHost = uint64(1) << 62    // id of a connection's receiving end
	memberID = uint64(1) << 63    // id of a group's member
)

// endsID identifies a connection.
func endsID(from, to topology.Node, channel uint16) uint64 {
	return uint64(from)<<32 | uint64(to)<<16 | uint64(channel)
}

// newConn makes a queue pair.
func (p *Partition) newConn(host topology.Node, id uint64, flow workload.Flow, dest rocev2.QPN, sq, rq rocev2.PSN) *conn {
	h := &p.s.cfg.Host
	depth := h.Depth
	if id&(memberID|fromHost) == fromHost {
		depth = 1 // it only receives
	}
	qp, err := rc.New(rc.Config{
		Personality: h.Personality, PMTU: p.s.cfg.PathMTU, LocalQPN: hostQPN, DestQPN: dest, SQPSN: sq, RQPSN: rq,
		Timeout: h.Timeout, RetryCnt: h.Retries, RNRRetry: rc.Infinite, MaxUnacked: h.Window, AckReqEvery: h.AckEvery,
		MinRNRTimer: uint8(rocev2.RNRCodeFor(h.RNRTimer)), Memory: p.memory, SendDepth: depth, RecvDepth: h.Receives, Congestion: h.Congestion, MaxRate: h.Rate, FrameOverhead: frameBytes - rocev2.BTHLen - rocev2.ICRCLen,
	})
	for n := 0; n < h.Receives && err == nil; n++ {
		err = qp.PostRecv(rc.RecvWR{Length: rc.MaxMessage})
	}
	if err != nil {
		panic(fmt.Sprintf("sim: a checked configuration makes no queue pair: %v", err))
	}
	c := &conn{qp: qp, id: id, number: uint32(len(p.conns)), host: host, flow: flow}
	p.conns = append(p.conns, c)
	return c
}

// firstPSN returns the first PSN of a connection.
func (s *Simulation) firstPSN(id uint64) rocev2.PSN {
	return rocev2.PSN(mix(s.cfg.Seed^id)) & rocev2.PSNMask
}

// end returns one end of a connection between two hosts; it makes it if that is wanted.
func (p *Partition) end(from, to topology.Node, channel uint16, receives, create bool) *conn {
	ends := endsID(from, to, channel)
	id := ends
	if receives {
		id |= fromHost
	}
	if n, ok := p.byEnds.get(id); ok {
		return p.conns[n]
	}
	if !create {
		return nil
	}
	host, sq, rq := from, p.s.firstPSN(ends), p.s.firstPSN(ends|fromHost)
	if receives {
		host, sq, rq = to, rq, sq
	}
	c := p.newConn(host, id, workload.Flow{Source: from, To: to, Group: workload.None, Channel: channel}, hostQPN, sq, rq)
	p.byEnds.put(id, c.number)
	return c
}

// member returns the queue pair of a group's member.
func (p *Partition) member(group int32, host topology.Node) *conn {
	n, ok := p.byEnds.get(memberOf(group, host))
	if !ok {
		return nil
	}
	return p.conns[n]
}

// memberOf identifies a member of a group.
func memberOf(group int32, host topology.Node) uint64 {
	return memberID | uint64(group)<<16 | uint64(host)
}

// startEmitted starts the flows that the program has emitted, or makes their timers.
func (p *Partition) startEmitted() {
	for i := range p.emitted {
		f := p.emitted[i]
		if f.After <= 0 {
			p.startFlow(f)
			continue
		}
		p.queue.push(&event{at: p.now + f.After, in: p.s.timerOf(int32(f.Source), flowTimer), key: f.Key, aux: p.flows.add(f), kind: flowTimer})
	}
	p.emitted = p.emitted[:0]
}

// startFlow gives a flow to its queue pair.
func (p *Partition) startFlow(f workload.Flow) {
	var c *conn
	if f.Group != workload.None {
		c = p.member(f.Group, f.Source)
	} else {
		c = p.end(f.Source, f.To, f.Channel, false, true)
	}
	if c == nil {
		p.result.Failed++ // the source is no member of the group
		return
	}
	if len(c.posted) == p.s.cfg.Host.Depth {
		c.waiting = append(c.waiting, f)
		return
	}
	p.post(c, f)
	p.mayTransmit(c)
}

// post gives a flow to a queue pair that has room.
func (p *Partition) post(c *conn, f workload.Flow) {
	wr := rc.WR{Length: int(f.Bytes), Signaled: true}
	if p.s.cfg.Host.Write {
		wr.Op, wr.RKey = rc.WRWrite, p.key
	}
	if err := c.qp.PostSend(wr); err != nil {
		p.result.Failed++ // the queue pair is in the error state, or the message is too long
		return
	}
	mtu := int64(p.s.cfg.PathMTU)
	c.sent += max((f.Bytes+mtu-1)/mtu, 1)
	first := c.qp.Config().SQPSN
	c.posted = append(c.posted, posted{f, p.now, (first + rocev2.PSN((c.sent-1)&int64(rocev2.PSNMask))) & rocev2.PSNMask})
}

// arrived gives a packet to a queue pair, and carries out what follows.
func (p *Partition) arrived(c *conn, e *event) {
	if e.flags&corrupt != 0 {
		p.result.Damaged++
		return
	}
	in := rc.Packet{Op: e.opcode(), DestQP: hostQPN, PSN: e.seq(), AckReq: e.flags&ackReq != 0, BECN: e.flags&becn != 0, CE: e.flags&ce != 0}
	if e.isFeedback() {
		in.Syndrome, in.MSN = e.syndrome(), e.msn()
		p.noteAck(c, e)
	} else {
		in.Length = int(e.aux)
	}
	if in.Op.Is(rocev2.OpRETH) {
		in.DMALen, in.RKey = e.dmaLen(), p.key
	}
	expected := c.qp.ExpectedPSN()
	c.qp.Input(p.clock(), &in, &p.qpOut)
	p.carryOutQP(c, e)
	if in.Op.Is(rocev2.OpWrite) && c.qp.ExpectedPSN() != expected {
		p.written(c, e)
	}
	if e.isFeedback() { // a request lets nothing be sent that could not be sent before
		p.mayTransmit(c)
	} else {
		p.setAlarm(c) // the ACK timer may have been armed
	}
}

// written is called when a packet of a WRITE was accepted. The receiving program sees its last byte.
func (p *Partition) written(c *conn, e *event) {
	op := e.opcode()
	if op.Is(rocev2.OpRETH) {
		c.written = int64(e.dmaLen())
	}
	if op.Is(rocev2.OpEnd) {
		p.arrivedWhole(c, e, c.written)
	}
}

// arrivedWhole is called when a message has come to a host.
func (p *Partition) arrivedWhole(c *conn, e *event, bytes int64) {
	f := c.flow
	f.Key, f.Source, f.Bytes = e.key, topology.Node(e.src), bytes
	p.delivered(f, c.host)
}

// postReceive posts a receive in the place of one that a message has taken.
func (p *Partition) postReceive(c *conn) {
	if err := c.qp.PostRecv(rc.RecvWR{Length: rc.MaxMessage}); err != nil {
		p.result.Failed++ // the queue pair is in the error state
	}
}

// carryOutQP sends a queue pair's responses, and tells the program what is complete. e is the
// packet that has led to it, or nil.
func (p *Partition) carryOutQP(c *conn, e *event) {
	if p.late && len(p.qpOut.Packets)+len(p.qpOut.Completions) > 0 {
		p.result.Displaced++
	}
	for i := range p.qpOut.Packets {
		p.respond(c, &p.qpOut.Packets[i])
	}
	for i := range p.qpOut.Completions {
		switch done := &p.qpOut.Completions[i]; {
		case done.Status != rc.Success:
			p.result.Failed++
		case done.Recv():
			if delay := p.s.cfg.Host.ReceiveDelay; delay > 0 {
				p.timer(int32(c.host), receiveTimer, p.now+delay, c.id, c.number)
			} else {
				p.postReceive(c)
			}
			p.arrivedWhole(c, e, int64(done.Bytes))
		default:
			x := c.posted[0]
			c.posted = append(c.posted[:0], c.posted[1:]...)
			p.completed(&x)
			if len(c.waiting) > 0 {
				p.post(c, c.waiting[0])
				c.waiting = c.waiting[1:]
			}
		}
	}
	p.qpOut.Reset()
}

// respond sends an ACK, a NAK or a CNP of a queue pair.
func (p *Partition) respond(c *conn, x *rc.Packet) {
	e := event{src: uint32(c.host)}
	e.setSeq(x.Op, x.PSN)
	e.setAck(x.Syndrome, x.MSN)
	if x.BECN {
		e.flags |= becn
	}
	if c.flow.Group != workload.None {
		e.kind, e.dst = toSwitch, c.label
	} else {
		e.kind, e.dst, e.channel = unicast, uint32(c.flow.Source), c.flow.Channel
	}
	p.send(p.s.hosts[c.host].port, &e)
}

// requestOf returns a request packet of a queue pair.
func (p *Partition) requestOf(c *conn, x *rc.Packet) event {
	e := event{src: uint32(c.host), aux: uint32(x.Length)}
	e.setSeq(x.Op, x.PSN)
	if x.AckReq {
		e.flags |= ackReq
	}
	if x.Op.Is(rocev2.OpEnd) {
		for i := len(c.posted) - 1; i >= 0; i-- { // usually the last packet of one of the newest
			if c.posted[i].last == x.PSN {
				e.key = c.posted[i].flow.Key
				break
			}
		}
	} else if x.Op.Is(rocev2.OpRETH) {
		e.key = uint64(x.DMALen)
	}
	if c.flow.Group != workload.None {
		e.kind, e.dst = toSwitch, c.label
	} else {
		e.kind, e.dst, e.channel = unicast, uint32(c.flow.To), c.flow.Channel
	}
	return e
}
