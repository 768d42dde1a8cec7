// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"errors"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/rocev2"
)

// State is the state of a QP. New returns a QP in RTS; the driver implements earlier
// states.
type State uint8

// States.
const (
	RTS   State = iota // ready to send and to receive
	Error              // failed: everything posted is flushed, every packet dropped
)

// String returns "RTS" or "ERR".
func (s State) String() string {
	if s == RTS {
		return "RTS"
	}
	return "ERR"
}

// Errors that callers of PostSend and PostRecv test for.
var (
	ErrQueueFull = errors.New("queue full")
	ErrState     = errors.New("QP is in the error state")
)

// Stats counts a QP's packets and events. All counters only grow.
type Stats struct {
	// Requester.
	PacketsSent   uint64 // request packets, retransmitted ones included
	Retransmitted uint64 // packets of these that had been sent before
	BytesSent     uint64 // payload bytes, retransmitted ones included
	Timeouts      uint64
	AcksReceived  uint64 // ACKs that acknowledged something new
	AcksStale     uint64 // acknowledgements, of any kind, below the oldest unacknowledged PSN
	AcksAhead     uint64 // acknowledgements of PSNs never sent; RXE believes them
	NaksReceived  uint64 // NAK 0x60 that could cause a restart
	NaksIgnored   uint64 // those of these that were ignored: a restart is under way, or the RNR timer runs
	RNRsReceived  uint64
	Restarts      uint64 // times that the requester restarted
	Completed     uint64 // WRs completed with success

	// Responder.
	PacketsReceived uint64 // requests accepted in order
	BytesReceived   uint64 // payload bytes of these
	Messages        uint64 // messages received completely
	Duplicates      uint64
	OutOfSequence   uint64 // requests above the expected PSN
	AcksSent        uint64
	NaksSent        uint64 // 0x60
	RNRsSent        uint64
	FatalNaksSent   uint64 // 0x61..0x63

	// Congestion. Without Config.Congestion only these counters change.
	CNPs       uint64 // received
	BECNs      uint64 // ACKs received with BECN
	CEReceived uint64 // requests received with CE
	CNPsSent   uint64

	// Dropped input.
	DroppedState  uint64 // packets in the error state
	DroppedQPN    uint64 // packets for another QP
	DroppedOpcode uint64 // unknown, or a response without a request
}

// QP is an RC queue pair. See the package comment for how to drive it.
type QP struct {
	cfg               Config                  `state:"constant"`
	state             State                   `state:"encoded"`
	stats             Stats                   `state:"ignored"`
	requester         requester               `state:"encoded"`
	responder         responder               `state:"encoded"`
	notificationPoint dcqcn.NotificationPoint `state:"encoded if x.cfg.paced()"` // the sender of CNPs, with cfg.Congestion
}

// New returns a QP in RTS, or every fault of cfg at once.
func New(cfg Config) (*QP, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	q := &QP{cfg: cfg}
	q.requester.init(&q.cfg)
	q.responder.init(&q.cfg)
	if err := q.initPacing(); err != nil {
		return nil, err
	}
	return q, nil
}

// Config returns the configuration with its defaults filled in.
func (q *QP) Config() Config { return q.cfg }

// State returns the state of q.
func (q *QP) State() State { return q.state }

// Stats returns a copy of the counters.
func (q *QP) Stats() Stats { return q.stats }

// ExpectedPSN returns the responder's expected PSN (ePSN).
func (q *QP) ExpectedPSN() rocev2.PSN { return q.responder.ePSN }

// PostSend queues a WR. It fails with ErrQueueFull, with ErrState, or if the WR
// itself is wrong.
func (q *QP) PostSend(wr WR) error {
	switch {
	case q.state != RTS:
		return fmt.Errorf("rc: post send %d: %w: connect a new QP", wr.ID, ErrState)
	case wr.Op >= numWROps:
		return fmt.Errorf("rc: post send %d: unknown operation %v: use a WR constant", wr.ID, wr.Op)
	case wr.Length < 0 || wr.Data != nil && wr.Length != 0:
		return fmt.Errorf("rc: post send %d: Length %d: set it to 0 or more, and only without Data", wr.ID, wr.Length)
	case uint64(wr.length()) > MaxMessage:
		return fmt.Errorf("rc: post send %d: message of %d bytes: split it, the limit is %d", wr.ID, wr.length(), uint64(MaxMessage))
	case q.requester.sendQueue.full():
		return fmt.Errorf("rc: post send %d: %w: %d WRs are posted, wait for completions", wr.ID, ErrQueueFull, q.requester.sendQueue.count)
	}
	q.requester.enqueue(wr)
	return nil
}

// PostRecv queues a receive. It fails with ErrQueueFull or ErrState.
func (q *QP) PostRecv(wr RecvWR) error {
	switch {
	case q.state != RTS:
		return fmt.Errorf("rc: post receive %d: %w: connect a new QP", wr.ID, ErrState)
	case q.responder.recvQueue.full():
		return fmt.Errorf("rc: post receive %d: %w: %d WRs are posted, wait for completions", wr.ID, ErrQueueFull, q.responder.recvQueue.count)
	}
	*q.responder.recvQueue.push() = wr
	return nil
}

// Input processes one received packet: the responder serves a request, the requester an
// ACKNOWLEDGE. p and its Payload are not retained.
func (q *QP) Input(now time.Duration, p *Packet, out *Output) {
	flags := p.Op.Flags()
	switch {
	case q.state != RTS:
		q.stats.DroppedState++
	case p.DestQP != q.cfg.LocalQPN:
		q.stats.DroppedQPN++
	case flags&rocev2.OpRequest != 0:
		if p.CE {
			q.handleCE(now, out)
		}
		q.handleRequest(now, p, flags, out)
	case p.Op == rocev2.Acknowledge:
		if p.BECN {
			q.stats.BECNs++
			q.handleCNP(now)
		}
		q.handleAck(now, p, out)
	case p.Op == rocev2.CNP:
		q.stats.CNPs++
		q.handleCNP(now)
	default:
		q.stats.DroppedOpcode++
	}
}

// NextDeadline returns the time at which Advance must be called next; false if no timer
// runs.
func (q *QP) NextDeadline() (time.Duration, bool) {
	if q.state != RTS {
		return 0, false
	}
	at, armed := q.requester.deadline()
	if t := q.responder.ackTimer; t.armed && (!armed || t.at < at) {
		return t.at, true
	}
	return at, armed
}

// Advance fires every deadline <= now.
func (q *QP) Advance(now time.Duration, out *Output) {
	if q.state == RTS {
		q.fireTimers(now, out)
	}
	if q.state == RTS && q.responder.ackTimer.due(now) {
		q.ack(q.responder.ePSN.Prev(), out)
	}
}

// Fail puts q into the error state and flushes both queues (verbs: modify to
// IBV_QPS_ERR). In the error state it does nothing.
func (q *QP) Fail(out *Output) {
	if q.state == Error {
		return
	}
	q.state = Error
	q.flush(out)
}

// flush completes all posted WRs, sends first, with WRFlushErr.
func (q *QP) flush(out *Output) {
	for q.requester.sendQueue.count > 0 {
		q.complete(WRFlushErr, out)
	}
	q.requester.stop()
	for q.responder.recvQueue.count > 0 {
		out.Completions = append(out.Completions, Completion{ID: q.responder.recvQueue.at(0).ID, Op: WCRecv, Status: WRFlushErr})
		q.responder.recvQueue.pop()
	}
	q.responder.stop()
}
