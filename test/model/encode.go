// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Flags of a host in an encoded state.
const (
	hostStarted = 1 << iota
	hostDead
	hostEvicted
	hostExcluded
	hostMisnumbered
	hostCorrupted
	hostGen
)

// Flags of a packet in an encoded state.
const (
	pktFeedback = 1 << iota
	pktAckReq
	pktRETH
	pktSource // times the source's number
	pktGen    = pktSource * maxSources
	pktProbe  = pktGen * 2
	pktReport = pktProbe * 2
)

// encode appends the state of w, with times relative to w.now.
func (w *World) encode(b []byte) []byte {
	if w.cfg.Tree != Flat {
		w.renumberReports()
	}
	b = append(b, byte(w.left.Lose), byte(w.left.Duplicate), byte(w.left.Reorder), byte(w.left.Delay), byte(w.left.PortFull)|byte(w.left.Idle)<<4, flag(w.mortal, 1)|flag(w.outdated, 2)|flag(w.refused, 4)|flag(w.untold, 8), byte(w.left.Restart)<<4|byte(w.left.Store))
	if w.cfg.reshapes() {
		b = append(b, byte(w.left.Meet))
	}
	for i := range w.hosts {
		h := &w.hosts[i]
		b = append(b, flag(h.started, hostStarted)|flag(h.dead, hostDead)|flag(h.evicted, hostEvicted)|
			flag(h.excluded, hostExcluded)|flag(h.misnumbered, hostMisnumbered)|flag(h.corrupted, hostCorrupted)|h.gen*hostGen,
			h.progress[0].got, h.progress[1].got, h.done, h.withheld)
		if len(w.cfg.Changes) > 0 || w.cfg.Above > 0 {
			for s := range h.progress {
				b = append(b, h.progress[s].before, h.progress[s].first, h.progress[s].since)
			}
		}
		b = h.qp.AppendState(b, w.now)
	}
	for i := range w.switches {
		r := &w.switches[i]
		if len(w.cfg.Changes) > 0 {
			b = append(b, r.top[0], r.top[1])
		}
		if w.cfg.changing() {
			b = r.form.encode(b)
		}
		if w.cfg.Stored {
			b = r.storage.encode(b)
		}
		b = append(b, flag(r.failed, 1))
		b = r.dev.AppendState(b, w.now)
		b = append(b, byte(r.nakRank), byte(r.nakPSN), byte(r.nakPSN>>8), byte(r.nakPSN>>16))
		if w.cfg.Repair > 0 {
			b = r.encodeRepair(b, w.now)
		}
		if w.cfg.FastPath > 0 {
			b = r.fast.encode(b)
			if w.cfg.ACKs {
				b = r.fast.acks.encode(b, w.now)
			}
		}
	}
	for i := range w.links {
		q := w.links[i].q
		b = append(b, byte(len(q)))
		if w.cfg.reshapes() {
			b = append(b, w.links[i].session)
		}
		if w.cfg.PortFull > 0 {
			b = w.links[i].encodePortFull(b, w.now)
		}
		for k := range q {
			b = q[k].encode(b)
		}
	}
	return b
}

func flag(v bool, bits byte) byte {
	if v {
		return bits
	}
	return 0
}

func (p *packet) encode(b []byte) []byte {
	if p.report != nil {
		return encodeReport(append(b, pktReport), p.report)
	}
	f := flag(p.feedback, pktFeedback) | flag(p.ackReq, pktAckReq) | flag(p.reth, pktRETH) | p.source*pktSource | p.gen*pktGen | flag(p.probe, pktProbe)
	last := p.index
	if p.feedback {
		last = byte(p.syndrome)
	}
	b = append(b, f, last, byte(p.psn), byte(p.psn>>8), byte(p.psn>>16))
	b = binary.AppendUvarint(b, uint64(p.msn))
	if p.reth {
		b = append(b, byte(p.va), byte(p.va>>8), byte(p.va>>16), byte(p.va>>24), byte(p.va>>32),
			byte(p.rkey), byte(p.rkey>>8), byte(p.rkey>>16), byte(p.rkey>>24))
	}
	return b
}

func (p *packet) decode(b []byte) []byte {
	f := b[0]
	if f&pktReport != 0 {
		*p = packet{}
		p.report, b = decodeReport(b[1:])
		return b
	}
	*p = packet{
		feedback: f&pktFeedback != 0, ackReq: f&pktAckReq != 0, reth: f&pktRETH != 0, source: f / pktSource % maxSources,
		gen: f / pktGen % 2, probe: f&pktProbe != 0,
		psn: psnAt(b[2:]),
	}
	if p.feedback {
		p.syndrome = rocev2.Syndrome(b[1])
	} else {
		p.index = b[1]
	}
	msn, n := binary.Uvarint(b[5:])
	p.msn, b = rocev2.MSN(msn), b[5+n:]
	if p.reth {
		p.va = uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32
		p.rkey = uint32(b[5]) | uint32(b[6])<<8 | uint32(b[7])<<16 | uint32(b[8])<<24
		b = b[9:]
	}
	return b
}

func psnAt(b []byte) rocev2.PSN {
	return rocev2.PSN(b[0]) | rocev2.PSN(b[1])<<8 | rocev2.PSN(b[2])<<16
}

// decode sets w to a state that encode wrote. An encoding that cannot be read is a bug of
// this package.
func (w *World) decode(b []byte) {
	if err := w.load(b); err != nil {
		panic(fmt.Sprintf("model: %v", err))
	}
}

func (w *World) load(b []byte) (err error) {
	w.now, w.wrong = restoreTime, nil
	w.left = Bounds{Lose: int(b[0]), Duplicate: int(b[1]), Reorder: int(b[2]), Delay: int(b[3]), PortFull: int(b[4] & 15), Idle: int(b[4] >> 4), Restart: int(b[6] >> 4), Store: int(b[6] & 15)}
	w.mortal, w.outdated, w.refused, w.untold, b = b[5]&1 != 0, b[5]&2 != 0, b[5]&4 != 0, b[5]&8 != 0, b[7:]
	if w.cfg.reshapes() {
		w.left.Meet, b = int(b[0]), b[1:]
	}
	for i := range w.hosts {
		h := &w.hosts[i]
		h.started, h.dead, h.evicted = b[0]&hostStarted != 0, b[0]&hostDead != 0, b[0]&hostEvicted != 0
		h.excluded, h.misnumbered, h.corrupted = b[0]&hostExcluded != 0, b[0]&hostMisnumbered != 0, b[0]&hostCorrupted != 0
		h.gen = b[0] / hostGen
		h.qp = h.qps[h.gen]
		h.progress[0].got, h.progress[1].got, h.done, h.withheld = b[1], b[2], b[3], b[4]
		b = b[5:]
		if len(w.cfg.Changes) > 0 || w.cfg.Above > 0 {
			for s := range h.progress {
				h.progress[s].before, h.progress[s].first, h.progress[s].since = b[0], b[1], b[2]
				b = b[3:]
			}
		}
		if b, err = h.qp.SetState(b, w.now, h.posted); err != nil {
			return err
		}
		w.refill(i)
	}
	for i := range w.switches {
		r := &w.switches[i]
		if len(w.cfg.Changes) > 0 {
			r.top[0], r.top[1], b = b[0], b[1], b[2:]
		}
		if w.cfg.changing() {
			b = r.form.decode(b)
			if r.membership, err = w.formAt(i, r.form); err != nil {
				return err
			}
		}
		if w.cfg.Stored {
			b = r.storage.decode(b)
		}
		r.failed, b = b[0] != 0, b[1:]
		if b, err = r.dev.SetState(b, w.now); err != nil {
			return err
		}
		r.nakRank, r.nakPSN = int(b[0]), psnAt(b[1:])
		b = b[4:]
		if w.cfg.Repair > 0 {
			b = r.decodeRepair(b, w.now)
		}
		if w.cfg.FastPath > 0 {
			b = r.fast.decode(b)
			if w.cfg.ACKs {
				b = r.fast.acks.decode(b, w.now)
			}
		}
	}
	for i := range w.links {
		n := int(b[0])
		b = b[1:]
		if w.cfg.reshapes() {
			w.links[i].session, b = b[0], b[1:]
		}
		if w.cfg.PortFull > 0 {
			b = w.links[i].decodeJam(b, w.now)
		}
		q := w.links[i].q[:0]
		for range n {
			var p packet
			b = p.decode(b)
			q = append(q, p)
		}
		w.links[i].q = q
	}
	if len(b) > 0 {
		return errors.New("a stored state is longer than it should be")
	}
	return nil
}

// refill writes the received part of an unfinished SEND into the buffer of host i.
// checkAccepted has checked each of these bytes.
func (w *World) refill(i int) {
	h := &w.hosts[i]
	if w.cfg.Write {
		return
	}
	for s := range w.streams {
		st := &w.streams[s]
		n := int(h.progress[s].got)
		if n == 0 || st.frames[n-1].end {
			continue
		}
		m := st.frames[n-1].msg
		copy(h.bufs[w.receives(i)], st.wrs[m].Data[:(n-st.starts[m])*pmtu])
	}
}

// encodePortFull appends the remaining time of a full queue, and its remaining room.
func (l *link) encodePortFull(b []byte, now time.Duration) []byte {
	if l.full <= now {
		l.full, l.room = 0, 0
		return append(b, 0)
	}
	b = append(b, 1+l.room)
	return binary.AppendUvarint(b, uint64(l.full-now))
}

func (l *link) decodeJam(b []byte, now time.Duration) []byte {
	l.full, l.room = 0, 0
	if b[0] == 0 {
		return b[1:]
	}
	d, k := binary.Uvarint(b[1:])
	l.full, l.room = now+time.Duration(d), b[0]-1
	return b[1+k:]
}
