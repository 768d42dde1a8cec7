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

// ErrQueueFull is returned by PostSend and PostRecv if the queue already holds
// as many work requests as QPConfig allows: take completions first. The verbs
// backend returns it for ENOMEM.
var ErrQueueFull = errors.New("work queue is full: poll for completions before posting more")

// Device is an RDMA device, or a software one, with one port. Its methods may
// be called from any goroutine.
type Device interface {
	// Addrs returns the addresses the device answers to, one family or both:
	// those that have a RoCEv2 GID.
	Addrs() []netip.Addr
	// MaxPathMTU returns the largest path MTU in bytes that the port's own MTU
	// has room for.
	MaxPathMTU() int
	// RegisterMemory makes buf available to queue pairs of this device, for
	// remote peers at virtual addresses iova..iova+len(buf)-1. buf must stay
	// as it is until Close of the region (ibv_reg_mr_iova).
	RegisterMemory(buf []byte, iova uint64, access Access) (MR, error)
	// CreateQP makes a reliable connected queue pair in state INIT.
	CreateQP(cfg QPConfig) (QP, error)
	// Close destroys the device's queue pairs and regions.
	Close() error
}

// Access says what may be done to a memory region, beside reading it locally.
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
	// SQPSN is the first PSN the send queue will use (verbs sq_psn) and RQPSN
	// the first it expects to receive (rq_psn), unless Connect says otherwise.
	// 0 is a PSN like any other; RandomPSN makes one up.
	SQPSN, RQPSN rocev2.PSN
	MaxSend      int           // send work requests that may be outstanding [128]
	MaxRecv      int           // receive work requests, likewise [128]
	Timeout      uint8         // retransmission after 4.096 µs * 2^Timeout, 1..31 [14, 67 ms]
	RetryCount   uint8         // transport retries, 1..7; 7 is for ever in software [7]
	RNRRetry     uint8         // receiver-not-ready retries, 1..7; 7 is for ever [7]
	MinRNRTimer  time.Duration // how long a peer is to wait that found no receive posted [0.64 ms]
	TrafficClass uint8         // DSCP and ECN of sent packets [0]
	HopLimit     uint8         // [64]
}

// QPInfo is the connection state of a queue pair, as its peers, or a group's
// master, have to know it.
type QPInfo struct {
	IP    netip.Addr
	QPN   rocev2.QPN
	SQPSN rocev2.PSN
	RQPSN rocev2.PSN
}

// Remote is what a queue pair connects to: another queue pair, or a group.
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
	// Connect resolves the peer's link address and takes the queue pair by RTR
	// to RTS. It fails if nobody answers for the address within a second.
	Connect(ctx context.Context, to Remote) error
	// PostSend hands over requests in order. If it fails it says how many it
	// took, all or some.
	PostSend(wrs ...SendWR) (int, error)
	// PostRecv hands over buffers for SENDs, and for the immediate data of
	// WRITEs, in order. It is allowed before Connect.
	PostRecv(wrs ...RecvWR) (int, error)
	// Poll waits until there is at least one completion and returns how many it
	// has put into c, or why it stopped waiting. Completions still queued when
	// the queue pair is closed come before ErrClosed.
	Poll(ctx context.Context, c []Completion) (int, error)
	// Stats returns the queue pair's counters so far.
	Stats() QPStats
	Close() error
}

// QPStats tell what a queue pair did: all but Rate are counters that only grow. A
// backend that cannot tell leaves zero.
type QPStats struct {
	TxPackets, RxPackets uint64 // packets of the queue pair, retransmissions included
	Retransmitted        uint64 // packets sent again
	Timeouts             uint64 // retransmissions for want of any answer
	NAKs                 uint64 // sequence errors reported by the peer
	RNRs                 uint64 // receiver-not-ready reports of the peer
	Duplicates           uint64 // request packets received again
	CNPsSent             uint64 // congestion notifications to the peer
	CNPsReceived         uint64 // congestion notifications of the peer, or of a group's switch
	BECNReceived         uint64 // ACKs with BECN, which mean the same
	CEReceived           uint64 // request packets that a switch had marked: congestion experienced
	// Rate is what the queue pair sends at present at most, in bits/s of an
	// Ethernet link: what congestion control has come to, or a fixed bound. It can
	// fall. 0: nothing bounds it, or nobody can tell.
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
	Local      Segment // what to send; Len 0 needs no MR
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
	SendDone    CompletionOp = iota + 1 // Send and SendImm: all peers have it
	WriteDone                           // Write and WriteImm: likewise
	Recv                                // a SEND landed
	RecvWithImm                         // a WRITE with immediate data landed; no bytes in the receive's own buffer
)

// Completion is a completed work request (struct ibv_wc).
type Completion struct {
	ID     uint64
	Op     CompletionOp
	Status Status
	Len    int // Recv, RecvWithImm: bytes of the message
	HasImm bool
	Imm    uint32
	QPN    rocev2.QPN // of the local queue pair
}

// Err returns nil if the work succeeded, else an error that says what the
// status means.
func (c Completion) Err() error {
	if c.Status == Success {
		return nil
	}
	return &StatusError{Status: c.Status, ID: c.ID, QPN: c.QPN}
}
