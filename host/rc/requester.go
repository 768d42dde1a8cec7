// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"time"

	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/rocev2"
)

// sendWQE is a posted WR and the packets it takes.
type sendWQE struct {
	wr          WR    `state:"own(request)"`
	first, last int64 `state:"encoded"` // sequence numbers of its first and last packet
}

// requester is the sending half of a QP. It counts packets from 0 without
// wrapping; a sequence number s is on the wire as PSN SQPSN+s mod 2^24.
//
// una <= nxt <= sent <= nextPost, except for an RXE QP that was acknowledged beyond what
// it had sent, where una > nxt can hold.
type requester struct {
	cfg       *Config       `state:"constant"`
	traits    *traits       `state:"constant"`
	sendQueue ring[sendWQE] `state:"own(sends)"`
	curWQE    int           `state:"encoded"` // index in sendQueue of the WQE that nxt belongs to; sendQueue.count if none

	una      int64 `state:"encoded"` // oldest unacknowledged (rxe comp.psn, qib s_last_psn+1)
	nxt      int64 `state:"encoded"` // sent next (rxe req.psn, qib s_psn)
	sent     int64 `state:"encoded"` // one above the highest ever sent (qib s_next_psn)
	nextPost int64 `state:"encoded"` // first of the next WR to be posted

	sinceAckReq  int   `state:"encoded"` // packets since the last AckReq
	retries      uint8 `state:"encoded"` // left
	rnrRetries   uint8 `state:"encoded"` // left
	startedRetry bool  `state:"encoded"` // RXE: restarted, and no ACK since

	adaptive adaptive `state:"encoded if x.traits.adaptive else adaptive{}"`
	resume   int64    `state:"encoded if x.traits.repeatsOne"` // sent next after nxt, which one NAK has asked for; 0: nxt+1

	timer    timer `state:"encoded"` // retransmission
	rnrTimer timer `state:"encoded"` // armed: an RNR wait is under way

	// With cfg.paced only.
	pacer         dcqcn.ReactionPoint `state:"encoded if x.cfg.paced()"`
	pacerTimer    timer               `state:"encoded if x.cfg.paced() else timer{}"` // armed: the pacer held the last Transmit back, until then
	sinceAckReqAt time.Duration       `state:"time if x.cfg.paced()"`                 // time at which the first of sinceAckReq packets was sent
}

// timer is one deadline.
type timer struct {
	at    time.Duration `state:"time if x.armed"`
	armed bool          `state:"encoded"`
}

func (t *timer) arm(at time.Duration) { t.at, t.armed = at, true }
func (t *timer) stop()                { t.armed = false }
func (t *timer) due(now time.Duration) bool {
	return t.armed && t.at <= now
}

func (r *requester) init(cfg *Config) {
	r.cfg, r.traits = cfg, cfg.Personality.traits()
	r.sendQueue = newRing[sendWQE](cfg.SendDepth)
	r.refillRetries()
	if r.traits.adaptive {
		r.adaptive.init(cfg)
	}
}

// psn returns the PSN of sequence number s.
func (r *requester) psn(s int64) rocev2.PSN {
	return rocev2.PSN((uint64(r.cfg.SQPSN) + uint64(s)) & rocev2.PSNMask)
}

// seq returns the sequence number with PSN p that is nearest to una.
func (r *requester) seq(p rocev2.PSN) int64 {
	return r.una + int64((p & rocev2.PSNMask).Sub(r.psn(r.una)))
}

// refillRetries refills the retry counters (rxe_comp.c:reset_retry_counters).
func (r *requester) refillRetries() {
	r.retries, r.rnrRetries, r.startedRetry = r.retryCount(), r.cfg.RNRRetry, false
	if r.traits.adaptive {
		r.adaptive.answered(r.cfg)
	}
}

func (r *requester) stop() {
	r.timer.stop()
	r.rnrTimer.stop()
	r.pacerTimer.stop()
}

func (r *requester) deadline() (at time.Duration, armed bool) {
	for _, t := range [...]timer{r.timer, r.rnrTimer, r.pacerTimer} {
		if t.armed && (!armed || t.at < at) {
			at, armed = t.at, true
		}
	}
	return at, armed
}

func (r *requester) enqueue(wr WR) {
	packets := int64(1) // a message of length 0 takes one packet too
	if n := wr.length(); n > 0 {
		packets = int64((n + r.cfg.PMTU - 1) / r.cfg.PMTU)
	}
	w := r.sendQueue.push()
	w.wr, w.first, w.last = wr, r.nextPost, r.nextPost+packets-1
	r.nextPost += packets
}

// rearm restarts the retransmission timer if anything is unacknowledged. The
// RNR timer replaces it, since it ends in a retransmission anyway.
func (r *requester) rearm(now time.Duration) {
	if r.cfg.Timeout > 0 && r.nxt > r.una && !r.rnrTimer.armed {
		r.timer.arm(now + r.retryInterval())
	} else {
		r.timer.stop()
	}
}

// skipAcked moves nxt up to una after una has moved and WQEs may have completed:
// acknowledged packets need not be sent again (qib_rc.c:do_rc_ack).
func (r *requester) skipAcked() {
	if to := min(r.una, r.sent); r.nxt < to {
		r.seek(max(to, r.resume))
	}
}

// seek makes s the next packet to send: una, or a later one. una belongs to the oldest WQE,
// or, only if an RXE QP was acknowledged beyond what it had sent, to the one after it:
// una can then pass the end of a WQE not yet completed.
func (r *requester) seek(s int64) {
	r.nxt, r.curWQE, r.resume = s, 0, 0
	for r.curWQE < r.sendQueue.count && s > r.sendQueue.at(r.curWQE).last {
		r.curWQE++
	}
}

// repeatOne makes una, which is missing, the next packet to send, and goes on behind it
// where it was.
func (r *requester) repeatOne() {
	on := max(r.nxt, r.resume)
	if on <= r.una {
		return
	}
	r.seek(r.una)
	r.resume = on
}

// canSend reports whether the send window is open for a packet.
func (r *requester) canSend() bool {
	if r.curWQE >= r.sendQueue.count || r.nxt-r.una >= int64(r.cfg.MaxUnacked) {
		return false
	}
	// rxe lets the RNR timer delay the restart only, not packets that were never sent
	// (rxe_req.c:wait_for_rnr_timer).
	return !r.rnrTimer.armed || r.traits.sendsInRNRWait
}

// Transmit appends up to budget request packets, new or repeated, as far as the send window
// and the pacer allow, and returns their number. A number below budget means that nothing
// more can be sent now.
func (q *QP) Transmit(now time.Duration, out *Output, budget int) int {
	if q.state != RTS {
		return 0
	}
	r, n := &q.requester, 0
	r.pacerTimer.stop()
	for n < budget && r.canSend() && r.pace(now) {
		out.Packets = append(out.Packets, Packet{})
		q.emit(now, &out.Packets[len(out.Packets)-1])
		n++
	}
	if n > 0 && !r.timer.armed {
		r.rearm(now)
	}
	return n
}

// Opcodes by operation and position in the message.
const (
	placeFirst = iota
	placeMiddle
	placeLast
	placeOnly
)

var sendOpcodes = [numWROps][4]rocev2.Opcode{
	WRSend:     {rocev2.SendFirst, rocev2.SendMiddle, rocev2.SendLast, rocev2.SendOnly},
	WRSendImm:  {rocev2.SendFirst, rocev2.SendMiddle, rocev2.SendLastImm, rocev2.SendOnlyImm},
	WRSendInv:  {rocev2.SendFirst, rocev2.SendMiddle, rocev2.SendLastInv, rocev2.SendOnlyInv},
	WRWrite:    {rocev2.WriteFirst, rocev2.WriteMiddle, rocev2.WriteLast, rocev2.WriteOnly},
	WRWriteImm: {rocev2.WriteFirst, rocev2.WriteMiddle, rocev2.WriteLastImm, rocev2.WriteOnlyImm},
}

// emit fills in the packet nxt and advances nxt. All fields follow from the position of
// nxt in its message, so that a restart in mid-message (MIDDLE or LAST, no RETH: RC.md
// §3.9) needs no code of its own.
func (q *QP) emit(now time.Duration, p *Packet) {
	r := &q.requester
	w := r.sendQueue.at(r.curWQE)
	index, last := r.nxt-w.first, r.nxt == w.last
	place := placeMiddle
	switch {
	case index == 0 && last:
		place = placeOnly
	case index == 0:
		place = placeFirst
	case last:
		place = placeLast
	}
	off := int(index) * r.cfg.PMTU
	p.Op = sendOpcodes[w.wr.Op][place]
	p.DestQP = r.cfg.DestQPN
	p.PSN = r.psn(r.nxt)
	length := w.wr.length()
	end := min(off+r.cfg.PMTU, length)
	if w.wr.Data != nil {
		p.Payload = w.wr.Data[off:end]
	} else {
		p.Length = end - off
	}
	flags := p.Op.Flags()
	if flags&rocev2.OpRETH != 0 {
		p.VA, p.RKey, p.DMALen = w.wr.VA, w.wr.RKey, uint32(length)
	}
	if flags&rocev2.OpImm != 0 {
		p.Imm = w.wr.Imm
	}
	if flags&rocev2.OpIETH != 0 {
		p.InvKey = w.wr.RKey
	}
	p.Solicited = last && w.wr.Solicited && flags&(rocev2.OpSend|rocev2.OpImm) != 0
	r.chargePacer(now, p)
	p.AckReq = r.wantsAckReq(now, index, last)

	q.stats.PacketsSent++
	q.stats.BytesSent += uint64(end - off)
	if r.nxt < r.sent {
		q.stats.Retransmitted++
	}
	r.nxt++
	r.sent = max(r.sent, r.nxt)
	if last {
		r.curWQE++
	}
	if r.resume > 0 {
		r.seek(r.resume)
	}
}

// wantsAckReq decides on AckReq for the packet nxt, the index-th of its message.
func (r *requester) wantsAckReq(now time.Duration, index int64, last bool) bool {
	r.sinceAckReq++
	ask := last || r.resume > 0 // one that is repeated alone tells how far the peer has come
	if r.traits.asksByCount {
		// rxe_req.c:init_req_packet counts across restarts.
		ask = ask || r.sinceAckReq >= r.cfg.AckReqEvery
	} else {
		// qib_rc.c:qib_make_rc_req goes by the position in the message. The packet that
		// closes the send window has AckReq too, or else nothing would open it.
		ask = ask || index > 0 && index%int64(r.cfg.AckReqEvery) == 0 ||
			r.nxt-r.una == int64(r.cfg.MaxUnacked)-1
	}
	ask = r.paceNeedsAckReq(now) || ask
	if ask {
		r.sinceAckReq = 0
	}
	return ask
}
