// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/rc"
)

// statuses translates the machine's statuses into those of verbs.
var statuses = map[rc.Status]endpoint.Status{
	rc.Success: endpoint.Success, rc.LocLenErr: endpoint.LocalLengthErr, rc.LocQPOpErr: endpoint.LocalQPOpErr,
	rc.WRFlushErr: endpoint.WRFlushErr, rc.RemInvReqErr: endpoint.RemoteInvalidReq,
	rc.RemAccessErr: endpoint.RemoteAccessErr, rc.RemOpErr: endpoint.RemoteOpErr,
	rc.RetryExcErr: endpoint.RetryExceeded, rc.RNRRetryExcErr: endpoint.RNRRetryExceeded, rc.FatalErr: endpoint.FatalErr,
}

var ops = map[rc.WCOp]endpoint.CompletionOp{
	rc.WCSend: endpoint.SendDone, rc.WCRDMAWrite: endpoint.WriteDone,
	rc.WCRecv: endpoint.Recv, rc.WCRecvRDMAWithImm: endpoint.RecvWithImm,
}

// deliver passes completions to Poll. Only the loop calls it.
func (q *qp) deliver(cs []rc.Completion) {
	q.mu.Lock()
	q.append(cs...)
	q.mu.Unlock()
	q.signal()
}

// append adds completions to those that Poll returns. The caller holds q.mu.
func (q *qp) append(cs ...rc.Completion) {
	if q.polled > 0 && q.polled == len(q.done) {
		q.done, q.polled = q.done[:0], 0
	}
	for i := range cs {
		c := &cs[i]
		status, ok := statuses[c.Status]
		if !ok {
			status = endpoint.GeneralErr
		}
		q.done = append(q.done, endpoint.Completion{
			ID: c.ID, Op: ops[c.Op], Status: status, Len: c.Bytes, HasImm: c.HasImm, Imm: c.Imm, QPN: q.info.QPN,
		})
	}
}

// signal wakes a Poll.
func (q *qp) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take moves completions into c, and reports whether the queue pair is closed.
func (q *qp) take(c []endpoint.Completion) (n int, isClosed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = copy(c, q.done[q.polled:])
	q.polled += n
	if q.polled == len(q.done) {
		q.done, q.polled = q.done[:0], 0
	} else if q.polled > len(q.done)/2 { // bounds the growth of done under a slow consumer
		q.done, q.polled = slices.Delete(q.done, 0, q.polled), 0
	}
	for i := range n {
		if c[i].Op == endpoint.Recv || c[i].Op == endpoint.RecvWithImm {
			q.recvs--
		} else {
			q.sends--
		}
	}
	return n, q.state == closed
}

// Poll waits for completions.
func (q *qp) Poll(ctx context.Context, c []endpoint.Completion) (int, error) {
	if len(c) == 0 {
		return 0, errors.New("poll: no room for completions")
	}
	for {
		n, isClosed := q.take(c)
		if n > 0 {
			if n == len(c) {
				q.signal() // more completions may be left
			}
			return n, nil
		}
		if isClosed {
			return 0, fmt.Errorf("poll QP 0x%x: %w", uint32(q.info.QPN), endpoint.ErrClosed)
		}
		select {
		case <-q.ready:
		case <-ctx.Done():
			return 0, fmt.Errorf("poll QP 0x%x: %w", uint32(q.info.QPN), context.Cause(ctx))
		}
	}
}

// Stats returns the queue pair's counters so far.
func (q *qp) Stats() endpoint.QPStats {
	var s endpoint.QPStats
	read := func() {
		if q.rc == nil {
			return
		}
		c := q.rc.Stats()
		s = endpoint.QPStats{
			TxPackets: q.txPackets, RxPackets: q.rxPackets, Retransmitted: c.Retransmitted, Timeouts: c.Timeouts,
			NAKs: c.NaksReceived, RNRs: c.RNRsReceived, Duplicates: c.Duplicates, Accepted: c.PacketsReceived,
			CNPsSent: c.CNPsSent, CNPsReceived: c.CNPs, BECNReceived: c.BECNs, CEReceived: c.CEReceived,
		}
	}
	rate := func() {
		if q.rc != nil {
			s.Rate = q.rc.Rate(q.dev.now())
		}
	}
	if err := q.dev.do(func() { read(); rate() }); err != nil {
		<-q.dev.done
		read()
	}
	return s
}

// Close destroys the queue pair. Posted work is flushed: Poll still returns its
// completions.
func (q *qp) Close() error {
	if err := q.dev.do(func() { q.shut(&q.dev.loop) }); err != nil && !errors.Is(err, endpoint.ErrClosed) {
		return err
	}
	return nil // a closed device has closed its queue pairs
}

// shut flushes q and removes it from the loop, which calls it.
func (q *qp) shut(l *loop) {
	if q.rc != nil {
		q.fetch(l)
		q.rc.Fail(&l.out)
		l.drain(q)
		delete(l.byQPN, q.info.QPN)
		l.qps = slices.DeleteFunc(l.qps, func(o *qp) bool { return o == q })
	}
	// Poll returns ErrClosed once the state is closed and no completion is left: both
	// change under one lock.
	q.mu.Lock()
	for _, wr := range q.newRecvs {
		q.append(rc.Completion{ID: wr.ID, Op: rc.WCRecv, Status: rc.WRFlushErr})
	}
	for _, wr := range q.newSends { // posted since fetch
		q.append(rc.Completion{ID: wr.ID, Op: rc.WCSend, Status: rc.WRFlushErr})
	}
	q.newRecvs, q.newSends = nil, nil
	q.state = closed
	q.mu.Unlock()
	q.signal()
	l.device.mu.Lock()
	delete(l.device.qps, q.info.QPN)
	l.device.mu.Unlock()
}
