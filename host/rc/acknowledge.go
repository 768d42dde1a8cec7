// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// handleAck serves an ACKNOWLEDGE packet: ACK, RNR NAK or NAK.
func (q *QP) handleAck(now time.Duration, p *Packet, out *Output) {
	if q.requester.traits.completer == rxeCompleter {
		q.rxeHandleAck(now, p, out)
	} else {
		q.strictHandleAck(now, p, out)
	}
	if q.state == RTS {
		q.requester.skipAcked()
	}
}

// strictHandleAck follows qib_rc.c:rc_rcv_resp and do_rc_ack.
func (q *QP) strictHandleAck(now time.Duration, p *Packet, out *Output) {
	r, e := &q.requester, q.requester.seq(p.PSN)
	kind := p.Syndrome.Kind()
	switch {
	case kind == rocev2.KindReserved:
		return
	case e >= r.sent:
		q.stats.AcksAhead++
		return
	case e < r.una: // "ghost" ACK: would refresh credits, which are not modelled
		q.stats.AcksStale++
		return
	case kind == rocev2.KindSequence && e == r.una && r.rnrTimer.armed:
		// An rxe responder follows its RNR NAK with this NAK. qib would restart at once
		// and be refused again, as fast as the link allows. The receiver has asked for a
		// pause, and gets it.
		q.stats.NaksReceived++
		q.stats.NaksIgnored++
		return
	}
	r.stop()
	if kind == rocev2.KindACK {
		q.stats.AcksReceived++
		q.completeBelow(e+1, out)
		r.refillRetries()
		r.skipAcked()
		r.rearm(now)
		return
	}
	// Every negative acknowledgement of e implies that e-1 has arrived.
	q.completeBelow(e, out)
	r.skipAcked()
	switch kind {
	case rocev2.KindSequence:
		q.stats.NaksReceived++
		if r.retryCount() == 0 {
			q.fail(RetryExcErr, out)
			return
		}
		r.refillRetries()
		if r.traits.repeatsOne {
			q.stats.Restarts++
			r.repeatOne()
			return
		}
		q.rewind()
	case rocev2.KindRNR:
		q.receiverNotReady(now, p.Syndrome, out)
		if q.state == RTS {
			q.rewind()
		}
	case rocev2.KindFatal:
		q.fail(fatalStatus(p.Syndrome), out)
	}
}

// completeBelow completes the messages that end below to, all of them sent, and raises
// una to to.
func (q *QP) completeBelow(to int64, out *Output) {
	for q.requester.sendQueue.count > 0 && q.requester.sendQueue.at(0).last < to {
		q.complete(Success, out)
	}
	q.requester.una = max(q.requester.una, to)
}

// rxeHandleAck follows rxe_comp.c:rxe_completer. It does not check that the PSN was sent:
// that is rxe's defect, reproduced here.
func (q *QP) rxeHandleAck(now time.Duration, p *Packet, out *Output) {
	r, e := &q.requester, q.requester.seq(p.PSN)
	kind := p.Syndrome.Kind()
	if e >= r.sent {
		q.stats.AcksAhead++
	}
	if q.rxeCheckPSN(e, out) {
		q.rxeCheckAck(now, e, kind, p.Syndrome, out)
	}
	if q.state == RTS {
		r.skipAcked()
		r.rearm(now) // COMPST_EXIT does so after every response
	}
}

// rxeCheckPSN is rxe_comp.c:get_wqe and check_psn: it completes the messages
// that end below PSN e if they are sent whole, and reports whether e then
// means the oldest message.
func (q *QP) rxeCheckPSN(e int64, out *Output) bool {
	r := &q.requester
	for r.sendQueue.count > 0 {
		w := r.sendQueue.at(0)
		switch {
		case r.sent <= w.first: // not started
			return false
		case e > w.last && r.sent > w.last:
			r.una = max(r.una, w.last+1)
			r.refillRetries()
			q.complete(Success, out)
			continue
		case e > w.last: // ahead of a message sent in part: ignored
			return false
		case e >= r.una:
			return true
		}
		q.stats.AcksStale++
		if e == w.last {
			// Reached only after una was raised beyond what was sent: this is the late,
			// true acknowledgement of the message, whatever its kind.
			r.nxt = max(r.nxt, e+1)
			r.sent = max(r.sent, r.nxt)
			q.complete(Success, out)
		}
		return false
	}
	if e < r.una {
		q.stats.AcksStale++
	}
	return false
}

// rxeCheckAck is rxe_comp.c:check_ack for the oldest message, una <= e <= last.
func (q *QP) rxeCheckAck(now time.Duration, e int64, kind rocev2.AckKind, s rocev2.Syndrome, out *Output) {
	r := &q.requester
	switch {
	case kind == rocev2.KindACK:
		q.stats.AcksReceived++
		r.refillRetries()
		r.una = e + 1
		if w := r.sendQueue.at(0); e == w.last && r.sent > e {
			q.complete(Success, out)
		}
	case kind == rocev2.KindSequence:
		q.stats.NaksReceived++
		r.una = max(r.una, e)
		r.skipAcked()
		q.rxeRetry(false, out)
	case kind == rocev2.KindRNR:
		// una stays: what the NAK implies is sent again (RC.md §3.7)
		q.receiverNotReady(now, s, out)
	case kind == rocev2.KindFatal:
		q.fail(fatalStatus(s), out)
	case s >= 0x60 && s < 0x80: // a NAK code that rxe does not know
		q.fail(RemOpErr, out)
	default:
		q.fail(FatalErr, out)
	}
}

// rxeRetry is rxe_comp.c:COMPST_ERROR_RETRY.
func (q *QP) rxeRetry(timeout bool, out *Output) {
	r := &q.requester
	if r.startedRetry && !timeout {
		q.stats.NaksIgnored++
		return
	}
	if r.retries == 0 {
		q.fail(RetryExcErr, out)
		return
	}
	if r.retries != Infinite {
		r.retries--
	}
	if r.nxt > r.una {
		r.startedRetry = true
		if !r.rnrTimer.armed { // else the RNR timer goes back when it fires
			q.rewind()
		}
	}
}

// receiverNotReady starts the wait that an RNR NAK demands.
func (q *QP) receiverNotReady(now time.Duration, s rocev2.Syndrome, out *Output) {
	r := &q.requester
	q.stats.RNRsReceived++
	if r.rnrRetries == 0 {
		q.fail(RNRRetryExcErr, out)
		return
	}
	if r.cfg.RNRRetry != Infinite {
		r.rnrRetries--
	}
	r.rnrTimer.arm(now + time.Duration(r.traits.rnrWait)*s.RNRCode().Duration())
}

// rewind goes back to the oldest unacknowledged packet. Transmit starts the
// timer when it has sent it.
func (q *QP) rewind() {
	r := &q.requester
	if r.nxt > r.una {
		r.seek(r.una)
		q.stats.Restarts++
	}
	r.timer.stop()
}

// fireTimers fires the timers that are due.
func (q *QP) fireTimers(now time.Duration, out *Output) {
	r := &q.requester
	if r.rnrTimer.due(now) {
		r.rnrTimer.stop()
		q.rewind()
	}
	if !r.timer.due(now) {
		return
	}
	r.timer.stop() // armed only while something is unacknowledged: see rearm
	q.stats.Timeouts++
	early, free := r.repeatsEarly()
	switch {
	case r.traits.completer == rxeCompleter:
		q.rxeRetry(true, out)
	case early && free:
		q.rewind()
	case r.retries == 0:
		q.fail(RetryExcErr, out)
	default:
		r.retries--
		q.rewind()
	}
}

// complete ends the oldest WR with status s. An error always makes an entry
// (IBA 10.7.3.1).
func (q *QP) complete(s Status, out *Output) {
	r := &q.requester
	wr := &r.sendQueue.at(0).wr
	if s == Success {
		q.stats.Completed++
	}
	if wr.Signaled || s != Success {
		op := WCSend
		if wr.Op == WRWrite || wr.Op == WRWriteImm {
			op = WCRDMAWrite
		}
		out.Completions = append(out.Completions, Completion{ID: wr.ID, Op: op, Status: s, Bytes: wr.length()})
	}
	r.sendQueue.pop()
	r.curWQE = max(r.curWQE-1, 0)
}

// fail ends the oldest WR with s and takes the QP into the error state.
func (q *QP) fail(s Status, out *Output) {
	if q.requester.sendQueue.count > 0 {
		q.complete(s, out)
	}
	q.Fail(out)
}

// fatalStatus returns the completion status of NAK 0x61, 0x62 or 0x63.
func fatalStatus(s rocev2.Syndrome) Status {
	switch s {
	case rocev2.SyndromeNAKInvalid:
		return RemInvReqErr
	case rocev2.SyndromeNAKAccess:
		return RemAccessErr
	}
	return RemOpErr
}
