// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/bits"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Trains. A train is one event for packets of a queue pair that follow each other at equal distances:
// all in the middle of a message, with consecutive PSNs. Its time is that of the first one. A switch
// serves all of them then, at most the length of the train too early; a host serves each at its own time,
// except that those that no answer is due to are served with the next one.
//
// So a train gives what its packets would have given, as long as nothing else comes to the same port or
// host in between, and all that the switch does is to make the same copies of each. Wherever that is
// not so, the train ends: its packets go on one by one, each at its time. What could have been different
// before that is counted, in Result.Displaced: a result with 0 is exact.

// maxTrain is the most packets of a train: AckReq has a bit of key for each.
const maxTrain = 32

// key of a train: bits of key.
const (
	trainCountBits = 6
	trainGapBits   = 26
	maxGap         = 1<<trainGapBits - 1
)

// setTrain makes a packet the first one of a train of n, gap apart. asks has a bit for each with AckReq.
func (e *event) setTrain(n int, gap Time, asks uint32) {
	e.flags = e.flags&^ackReq | inTrain
	e.key = uint64(n) | uint64(gap)<<trainCountBits | uint64(asks)<<(trainCountBits+trainGapBits)
}

func (e *event) train() (n int, gap Time, asks uint32) {
	return int(e.key & (1<<trainCountBits - 1)), Time(e.key >> trainCountBits & maxGap), uint32(e.key >> (trainCountBits + trainGapBits))
}

// packet returns packet k of a train.
func (e *event) packet(k int) event {
	_, _, asks := e.train()
	one := *e
	one.key, one.flags = 0, e.flags&^inTrain
	one.setSeq(e.opcode(), (e.seq()+rocev2.PSN(k))&rocev2.PSNMask)
	if asks>>k&1 != 0 {
		one.flags |= ackReq
	}
	return one
}

// part returns the n packets of a train from packet k on.
func (e *event) part(k, n int) event {
	_, gap, asks := e.train()
	rest := e.packet(k)
	if n > 1 {
		rest.setTrain(n, gap, asks>>k&(1<<n-1))
	}
	return rest
}

// trainsPossible reports whether a configuration has nothing that trains would have to be split for
// everywhere: what waits at a port must follow from the time when it is free, and queue pairs must
// send as fast as their port. What is observed is observed packet by packet.
func (c *Config) trainsPossible() bool {
	return c.Train > 1 && c.PFC.XOff == 0 && c.Host.Congestion == nil && c.Host.Rate == 0 && len(c.Topology.Failures) == 0 && len(c.Taps) == 0
}

// budget returns how many packets a queue pair may send at once: a train, if the host has no other one with
// something to send, if ACKs have come back, and if its window does not end within the train.
func (p *Partition) budget(h *host, c *conn) int {
	n := p.s.train
	if n <= 1 || h.first != nil || !c.acked {
		return 1
	}
	if ahead := int(c.nextPSN.Sub(c.lastAcked)); ahead+n+1 >= p.s.cfg.Host.Window {
		return 1
	}
	// A host serves what comes up to a packet that asks for an ACK at once: a train ends with one.
	if every := p.s.cfg.Host.AckEvery; every-c.sinceAsk < n {
		n -= (n + c.sinceAsk) % every
	}
	return n
}

// requests sends packets of a queue pair, those that may be one as a train.
func (p *Partition) requests(c *conn, all []rc.Packet) {
	o := &p.s.ports[p.s.hosts[c.host].port]
	for i := 0; i < len(all); {
		n := 1
		asks := uint32(0)
		if all[i].AckReq {
			asks = 1
		}
		for all[i].Op.Flags()&(rocev2.OpStart|rocev2.OpEnd) == 0 && i+n < len(all) && n < maxTrain && all[i+n].Op == all[i].Op && all[i+n].Length == all[i].Length {
			if all[i+n].AckReq {
				asks |= 1 << n
			}
			n++
		}
		p.ahead = max(o.freeAt-p.now, 0)
		e := p.requestOf(c, &all[i])
		if gap := o.timeOf(e.wireBytes()); gap > maxGap {
			n = 1
		} else if n > 1 {
			e.setTrain(n, gap, asks)
		}
		p.send(p.s.hosts[c.host].port, &e)
		i += n
	}
	p.ahead = 0
	c.nextPSN = all[len(all)-1].PSN.Next()
	for i := range all {
		if c.sinceAsk++; all[i].AckReq {
			c.sinceAsk = 0
		}
	}
}

// sendTrain is send for a train. It returns a bit for each packet that was dropped.
func (p *Partition) sendTrain(n uint32, e *event) (dropped uint32) {
	o := &p.s.ports[n]
	at := p.now + p.ahead
	count, gap, asks := e.train()
	p.mix(o, at)
	bytes := e.wireBytes()
	length, backlog := o.timeOf(bytes), o.backlog(at)
	longest := backlog + Time(count-1)*max(length-gap, 0)
	if longest+length > o.most || longest > o.ecnMin || o.damaged != 0 || max(gap, length) > maxGap || backlog > 0 && gap > length {
		ahead := p.ahead
		for k := range count {
			one := e.packet(k)
			p.ahead = ahead + Time(k)*gap
			if !p.send(n, &one) {
				dropped |= 1 << k
			}
		}
		p.ahead = ahead
		return dropped
	}
	o.trainUntil = at + Time(count-1)*gap
	o.stats.Longest = max(o.stats.Longest, longest)
	o.stats.Packets += uint64(count)
	o.stats.Bytes += uint64(count) * uint64(bytes)
	p.result.Hops += uint64(count)
	out := max(gap, length)
	start := max(at, o.freeAt)
	o.freeAt = start + Time(count-1)*out + length
	e.setTrain(count, out, asks)
	e.at, e.in = start+length+o.delay, o.peer
	if p.s.isHost(o.peer) {
		e.at += Time(lead(count, asks)) * out
	}
	p.transfer(o, e)
	return 0
}

// mix notes that packets may have come to a port between those of a train.
func (p *Partition) mix(o *port, at Time) {
	if at <= o.trainUntil {
		p.result.Displaced++
	}
}

// lead returns the first packet of a train to which an answer is due, or the last one: when its time
// comes a host serves it and those before it.
func lead(n int, asks uint32) int {
	if asks == 0 {
		return n - 1
	}
	return bits.TrailingZeros32(asks)
}

// trainArrived gives a train's packets up to the lead to a queue pair.
func (p *Partition) trainArrived(c *conn, e *event) {
	n, gap, asks := e.train()
	last := lead(n, asks)
	one := e.packet(0)
	for k := range last + 1 {
		if p.late = k < last; !p.late {
			one = e.packet(k)
		} else {
			one.setSeq(e.opcode(), (e.seq()+rocev2.PSN(k))&rocev2.PSNMask)
		}
		p.arrived(c, &one)
	}
	if rest := n - last - 1; rest > 0 {
		next := e.part(last+1, rest)
		next.at = p.now + gap
		if rest > 1 {
			_, _, asks := next.train()
			next.at += Time(lead(rest, asks)) * gap
		}
		p.queue.push(&next)
	}
}

// carriage is what a train's packets have in common at a switch.
type carriage struct {
	first  int // packet of the train
	n      int // packets since then
	copies []mcast.Copy
	frames [maxTrain]mcast.Handle
}

// trainToCore gives a train of a group to the switch at which it has arrived.
func (p *Partition) trainToCore(sw *groupSwitch, e *event) {
	n, gap, _ := e.train()
	t, out := &p.carriage, &p.coreOut
	t.n = 0
	for k := range n {
		one := e.packet(k)
		one.in = e.in
		frame, ok := p.input(sw, &one)
		switch {
		case ok && t.n > 0 && t.continues(out):
			t.frames[t.n] = frame
			t.n++
		case ok && t.begins(out, frame):
			p.depart(sw, e)
			t.first, t.n, t.frames[0] = k, 1, frame
			t.copies = append(t.copies[:0], out.Copies...)
		default:
			p.depart(sw, e)
			if k > 0 {
				p.result.Displaced++
			}
			p.ahead = Time(k) * gap
			p.carryOut(sw, &one, frame, ok)
			p.ahead = 0
			continue
		}
		for _, h := range out.Freed {
			p.frames.take(uint32(h))
		}
		if !out.Retained {
			p.frames.take(uint32(frame))
		}
	}
	p.depart(sw, e)
	p.setCoreAlarm(sw)
}

// plain reports whether all that a switch orders is copies of one packet.
func plain(out *mcast.Output) bool {
	return len(out.Feedback)+len(out.Reports)+len(out.Probes)+len(out.Events) == 0
}

// begins reports whether a packet's copies may be the first ones of trains.
func (t *carriage) begins(out *mcast.Output, frame mcast.Handle) bool {
	if !plain(out) {
		return false
	}
	for i := range out.Copies {
		if out.Copies[i].Frame != frame || out.Copies[i].Flags != 0 {
			return false
		}
	}
	return true
}

// continues reports whether a packet's copies go where those of the packet before it have gone.
func (t *carriage) continues(out *mcast.Output) bool {
	if len(out.Copies) != len(t.copies) || !plain(out) {
		return false
	}
	for i := range out.Copies {
		c, f := &out.Copies[i], &t.copies[i]
		if c.Leg != f.Leg || c.Flags != 0 || (f.PSN+rocev2.PSN(t.n))&rocev2.PSNMask != c.PSN {
			return false
		}
	}
	return true
}

// depart sends what packets of a train have in common.
func (p *Partition) depart(sw *groupSwitch, e *event) {
	t := &p.carriage
	if t.n == 0 {
		return
	}
	_, gap, _ := e.train()
	p.ahead = Time(t.first) * gap
	part := e.part(t.first, t.n)
	for i := range t.copies {
		c := &t.copies[i]
		l := &sw.groups[c.Group].legs[c.Leg]
		x := part
		x.dst, x.kind = l.label, toMember
		if l.forwarded {
			x.kind = toSwitch
		}
		x.setSeq(e.opcode(), c.PSN)
		if p.send(l.port, &x) {
			continue
		}
		p.result.Displaced++
		at := p.s.ports[l.port].room(p.now, x.wireBytes())
		for k := range t.n {
			if p.dropped>>k&1 != 0 {
				sw.core.Requeue(&mcast.Copy{Group: c.Group, Leg: c.Leg, Frame: t.frames[k], PSN: (c.PSN + rocev2.PSN(k)) & rocev2.PSNMask}, clockOf(at)+1)
			}
		}
	}
	t.n, p.ahead = 0, 0
}

// isHost reports whether a port is that of a host. Hosts' ports come first.
func (s *Simulation) isHost(port uint32) bool { return port < s.firstPort[s.cfg.Topology.Hosts] }

// noteAck notes what a source's train depends on.
func (p *Partition) noteAck(c *conn, e *event) {
	if p.s.train <= 1 {
		return
	}
	if e.opcode() != rocev2.Acknowledge || e.syndrome().Kind() != rocev2.KindACK {
		p.result.Displaced++ // the queue pair goes back, or waits, and packets of a train may have been sent too early
		return
	}
	c.acked, c.lastAcked = true, e.seq()
}
