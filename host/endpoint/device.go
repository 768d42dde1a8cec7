// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// ErrClosed is returned by methods of a device, queue pair, memory region or
// group after its Close.
var ErrClosed = errors.New("closed")

// ErrQueueFull is returned by PostSend and PostRecv if the queue already holds as many
// work requests as QPConfig allows: poll completions first. The verbs backend returns it
// for ENOMEM.
var ErrQueueFull = errors.New("work queue is full: poll for completions before posting more")

// Device is an RDMA device, or a software one, with one port. Its methods may
// be called from any goroutine.
type Device interface {
	// Addrs returns the device's addresses, of one family or both: those that have a
	// RoCEv2 GID.
	Addrs() []netip.Addr
	// MaxPathMTU returns the largest path MTU in bytes that fits the port's own MTU.
	MaxPathMTU() int
	// RegisterMemory makes buf available to queue pairs of this device, for remote peers
	// at virtual addresses iova..iova+len(buf)-1. buf must not be moved or freed before
	// Close of the region (ibv_reg_mr_iova).
	RegisterMemory(buf []byte, iova uint64, access Access) (MR, error)
	// CreateQP makes a reliable connected queue pair in state INIT.
	CreateQP(cfg QPConfig) (QP, error)
	// Close destroys the device's queue pairs and regions.
	Close() error
}

// Access has the rights to a memory region, beside local reading.
type Access uint8

// Bits of Access.
const (
	LocalWrite  Access = 1 << iota // receives may land in it
	RemoteWrite                    // RDMA WRITE of a peer may land in it; implies LocalWrite
)

// MR is a registered memory region.
type MR interface {
	Bytes() []byte // the registered buffer
	Addr() uint64  // its first virtual address, as peers name it (iova)
	Len() int      // bytes
	LKey() uint32
	RKey() uint32
	Close() error
}

// QPConfig describes a queue pair. The zero value of everything but LocalIP
// takes the default in brackets.
type QPConfig struct {
	LocalIP netip.Addr // one of Device.Addrs [the first]
	// SQPSN is the first PSN of the send queue (verbs sq_psn) and RQPSN the first that
	// the receive queue expects (rq_psn), unless Connect gives another. 0 is a PSN like
	// any other; RandomPSN draws one.
	SQPSN, RQPSN rocev2.PSN
	MaxSend      int           // send work requests that may be outstanding [128]
	MaxRecv      int           // receive work requests that may be outstanding [128]
	Timeout      uint8         // retransmission after 4.096 µs * 2^Timeout, 1..31 [14, 67 ms]
	RetryCount   uint8         // transport retries, 1..7; 7 is infinite in software [7]
	RNRRetry     uint8         // receiver-not-ready retries, 1..7; 7 is infinite [7]
	MinRNRTimer  time.Duration // time that a peer must wait after finding no receive posted [0.64 ms]
	TrafficClass uint8         // DSCP and ECN of sent packets [0]
	HopLimit     uint8         // [64]
}

// QPInfo is the connection state of a queue pair that its peers, or a group's master,
// need.
type QPInfo struct {
	IP    netip.Addr
	QPN   rocev2.QPN
	SQPSN rocev2.PSN
	RQPSN rocev2.PSN
}

// Remote is the peer of a queue pair: another queue pair, or a group.
type Remote struct {
	IP      netip.Addr
	QPN     rocev2.QPN
	PathMTU int // bytes: 256, 512, 1024, 2048 or 4096; the same at both ends, and in all of a group
	// RQPSN is the first PSN expected from the peer: its SQPSN. For a group,
	// where the switch translates, it is the queue pair's own QPInfo.RQPSN.
	RQPSN rocev2.PSN
}

// QP is a reliable connected queue pair with its own completion queue. Its
// methods may be called from any goroutine, Poll from one at a time.
type QP interface {
	Info() QPInfo
	// Connect resolves the peer's link address and takes the queue pair by RTR to RTS. It
	// fails if the address has no answer within a second.
	Connect(ctx context.Context, to Remote) error
	// PostSend posts requests in order. With an error it returns the number of requests
	// that were posted, all or some.
	PostSend(wrs ...SendWR) (int, error)
	// PostRecv posts buffers for SENDs, and for the immediate data of WRITEs, in order.
	// It is allowed before Connect.
	PostRecv(wrs ...RecvWR) (int, error)
	// Poll waits until there is at least one completion, and returns the number that it
	// has put into c or the reason why it stopped waiting. Completions still queued when
	// the queue pair is closed come before ErrClosed.
	Poll(ctx context.Context, c []Completion) (int, error)
	// Stats returns the queue pair's counters so far.
	Stats() QPStats
	Close() error
}

// QPStats count a queue pair's packets and events: all but Rate are counters that only
// grow. A backend leaves a counter that it does not have at zero.
type QPStats struct {
	TxPackets, RxPackets uint64 // packets of the queue pair, retransmissions included
	Retransmitted        uint64 // packets sent again
	Timeouts             uint64 // retransmissions after no answer
	NAKs                 uint64 // sequence errors reported by the peer
	RNRs                 uint64 // receiver-not-ready reports of the peer
	Duplicates           uint64 // request packets received again
	Accepted             uint64 // request packets received in order, each once
	CNPsSent             uint64 // congestion notifications to the peer
	CNPsReceived         uint64 // congestion notifications from the peer, or from a group's switch
	BECNReceived         uint64 // ACKs with BECN, which also notify of congestion
	CEReceived           uint64 // request packets marked by a switch: congestion experienced
	// Rate bounds the present sending rate of the queue pair, in bits/s of an Ethernet
	// link: the rate of congestion control, or a fixed bound. It can fall. 0: no bound,
	// or not known.
	Rate int64
}

// Segment is part of a registered region.
type Segment struct {
	MR     MR
	Offset int // bytes from the region's start
	Len    int // bytes
}

// WROp is the operation of a send work request.
type WROp uint8

// Operations that a group can carry.
const (
	Send WROp = iota + 1
	SendImm
	Write
	WriteImm
)

// String returns the name that the command line uses: send, send-imm, write,
// write-imm.
func (o WROp) String() string {
	switch o {
	case Send:
		return "send"
	case SendImm:
		return "send-imm"
	case Write:
		return "write"
	case WriteImm:
		return "write-imm"
	}
	return fmt.Sprintf("WROp(%d)", uint8(o))
}

// SendWR is a work request for the send queue. Every one is signaled: it has
// exactly one Completion.
type SendWR struct {
	ID         uint64
	Op         WROp
	Local      Segment // data to send; Len 0 needs no MR
	Imm        uint32  // SendImm, WriteImm
	RemoteAddr uint64  // Write, WriteImm: virtual address at the peer, or in the group's window
	RKey       uint32  // likewise
}

// RecvWR is a work request for the receive queue.
type RecvWR struct {
	ID    uint64
	Local Segment // Len 0 needs no MR: enough for WriteImm
}

// CompletionOp says which kind of work is complete (enum ibv_wc_opcode).
type CompletionOp uint8

// Kinds of completed work. They are known only if Status is Success.
const (
	SendDone    CompletionOp = iota + 1 // Send and SendImm: all peers have the message
	WriteDone                           // Write and WriteImm: all peers have the message
	Recv                                // a SEND has arrived
	RecvWithImm                         // a WRITE with immediate data has arrived; no bytes in the receive's own buffer
)

// Completion is a completed work request (struct ibv_wc).
type Completion struct {
	ID     uint64
	Op     CompletionOp
	Status Status
	Len    int // Recv, RecvWithImm: bytes of the message
	HasImm bool
	Imm    uint32
	QPN    rocev2.QPN // the QPN of the local queue pair
}

// Err returns nil if the work succeeded, else an error that explains the status.
func (c Completion) Err() error {
	if c.Status == Success {
		return nil
	}
	return &StatusError{Status: c.Status, ID: c.ID, QPN: c.QPN}
}
