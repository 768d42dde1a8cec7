// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// meter is what a worker measures of a group beside the core's counters: the bytes of its data,
// for how long its packets wait for the group's ACK, and for how long that ACK stands still.
//
// One packet at a time is timed: the next one that is new after the ACK of the last timed one.
// That costs a comparison for all others.
type meter struct {
	dataBytes uint64

	sourceIP    netip.Addr     // the source's address; not valid: no source is known
	acked       rocev2.PSN     // the PSN of the last ACK; valid if hasAcked
	top         rocev2.PSN     // the newest packet
	timed       rocev2.PSN     // the packet that is timed, if timing
	source      mcast.MemberID // the source of what is measured
	hasAcked    bool
	timing      bool
	outstanding bool // packets above acked were forwarded
	timedFrom   time.Duration

	waitsFrom time.Duration // the time since which acked is where it is, with outstanding packets
	busyFrom  time.Duration // the time since which packets are outstanding
	busy      time.Duration // the time in which packets were outstanding, before that
}

// meters are those of a worker's groups, by GroupID, with what they have measured.
type meters struct {
	groups      []meter
	ack, stalls Durations
}

func newMeters(groups int) meters {
	return meters{groups: make([]meter, groups), ack: newDurations(ackBounds), stalls: newDurations(stallBounds)}
}

// setSource begins to measure another source of a group.
func (m *meter) setSource(s mcast.MemberID, ip netip.Addr) {
	*m = meter{dataBytes: m.dataBytes, busy: m.busy, source: s, sourceIP: ip}
}

// forwarded notes a packet of src that goes, or went, to the receivers at time now.
func (m *meter) forwarded(now time.Duration, src netip.Addr, psn rocev2.PSN) {
	if m.reached(now, src, psn) && !m.timing {
		m.timing, m.timed, m.timedFrom = true, psn, now
	}
}

// reached notes that the packets of src up to psn are outstanding, from now on if none were. It returns false if that is
// no news.
func (m *meter) reached(now time.Duration, src netip.Addr, psn rocev2.PSN) bool {
	if src != m.sourceIP || m.hasAcked && !m.acked.Less(psn) {
		return false
	}
	switch {
	case !m.outstanding:
		m.outstanding, m.waitsFrom, m.busyFrom = true, now, now
	case !m.top.Less(psn):
		return false // it was sent before
	}
	m.top = psn
	return true
}

// acknowledged notes the group's ACK of psn to member to, at time now.
func (x *meters) acknowledged(now time.Duration, id mcast.GroupID, to mcast.MemberID, psn rocev2.PSN) {
	m := &x.groups[id]
	if to != m.source || !m.sourceIP.IsValid() || m.hasAcked && !m.acked.Less(psn) {
		return
	}
	m.acked, m.hasAcked = psn, true
	if !m.outstanding {
		return
	}
	x.endStall(now, m)
	m.waitsFrom = now
	if m.timing && !psn.Less(m.timed) {
		m.timing = false
		x.ack.Add(max(0, now-m.timedFrom))
	}
	if m.outstanding = psn.Less(m.top); !m.outstanding {
		m.busy += now - m.busyFrom
	}
}

// busyFor returns for how long packets were outstanding by now.
func (m *meter) busyFor(now time.Duration) time.Duration {
	if !m.outstanding {
		return m.busy
	}
	return m.busy + max(0, now-m.busyFrom)
}

// endStall counts the time for which the group's ACK has stood still, if that was a stall.
func (x *meters) endStall(now time.Duration, m *meter) {
	if d := now - m.waitsFrom; m.outstanding && d >= api.StallTime*time.Second {
		x.stalls.Add(d)
	}
}

// ended notes that group id has failed or is removed: nothing is waited for any more.
func (x *meters) ended(now time.Duration, id mcast.GroupID) {
	m := &x.groups[id]
	x.endStall(now, m)
	m.busy = m.busyFor(now)
	m.setSource(0, netip.Addr{})
}

// stalledFor returns for how long the group's ACK has stood still by now, with packets
// outstanding.
func (m *meter) stalledFor(now time.Duration) time.Duration {
	if !m.outstanding {
		return 0
	}
	return max(0, now-m.waitsFrom)
}

// meterData notes a packet of group id that was given to the core, and goes to the receivers.
func (w *worker) meterData(now time.Duration, id mcast.GroupID, p *mcast.Packet) {
	w.meters.groups[id].dataBytes += uint64(p.Payload)
	w.count.dataBytes += uint64(p.Payload)
	w.meterForwarded(now, id, p)
}

// meterForwarded is meterData without the bytes.
func (w *worker) meterForwarded(now time.Duration, id mcast.GroupID, p *mcast.Packet) {
	m := &w.meters.groups[id]
	m.forwarded(now, p.Src, p.PSN&rocev2.PSNMask)
	if m.outstanding {
		w.delays.watch(now, id)
	}
}

// meterPayload counts the bytes that the programs have forwarded since it was called last.
func (w *worker) meterPayload(f *fastGroup) {
	if n := int64(f.ring.Payload() - f.payload); n > 0 {
		f.payload += uint64(n)
		w.meters.groups[f.id].dataBytes += uint64(n)
		w.count.dataBytes += uint64(n)
	}
}

// meterEvent notes an event of the core.
func (w *worker) meterEvent(e *mcast.Event) {
	switch e.Kind {
	case mcast.SourceChanged:
		w.meters.groups[e.Group].setSource(e.Member, w.groups[e.Group].member(e.Member).ip)
	case mcast.GroupFailed:
		w.meters.ended(w.now, e.Group)
	}
}
