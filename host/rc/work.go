// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import "fmt"

// WROp is the operation of a WR.
type WROp uint8

// Operations that the requester knows (ibv_wr_opcode).
const (
	WRSend     WROp = iota // IBV_WR_SEND
	WRSendImm              // IBV_WR_SEND_WITH_IMM
	WRSendInv              // IBV_WR_SEND_WITH_INV
	WRWrite                // IBV_WR_RDMA_WRITE
	WRWriteImm             // IBV_WR_RDMA_WRITE_WITH_IMM
	numWROps
)

var wrOpNames = [numWROps]string{"SEND", "SEND_WITH_IMM", "SEND_WITH_INV", "RDMA_WRITE", "RDMA_WRITE_WITH_IMM"}

// String returns the verbs name without its prefix.
func (o WROp) String() string { return verbsName("WROp", uint8(o), wrOpNames[:]) }

// WR is a send work request.
type WR struct {
	ID        uint64
	Op        WROp
	Data      []byte // bytes of the message, at most MaxMessage; nil is a message of Length
	Length    int    // length of a message of which no bytes are carried, without Data
	VA        uint64 // WRSend*: ignored
	RKey      uint32 // WRWrite*: of the destination; WRSendInv: the R_Key to invalidate
	Imm       uint32 // WRSendImm, WRWriteImm
	Signaled  bool   // success makes a completion entry too
	Solicited bool   // sets SE on the last packet of a SEND or WRITE with immediate
}

// length returns the length of the message.
func (w *WR) length() int {
	if w.Data != nil {
		return len(w.Data)
	}
	return w.Length
}

// RecvWR is a receive work request. Buf may be nil where only WRITEs with
// immediate are expected: those place no data in it.
type RecvWR struct {
	ID     uint64
	Buf    []byte
	Length int // length of the longest message, of which no bytes are carried, without Buf
}

// length returns the length of the longest message.
func (w *RecvWR) length() int {
	if w.Buf != nil {
		return len(w.Buf)
	}
	return w.Length
}

// Status is the status of a Completion.
type Status uint8

// Statuses, a subset of ibv_wc_status; their values here are not those of
// verbs.
const (
	Success        Status = iota
	LocLenErr             // the message was too long for the receive (Strict responder)
	LocQPOpErr            // this QP failed
	WRFlushErr            // the QP was in error before this WR could run
	RemInvReqErr          // NAK 0x61
	RemAccessErr          // NAK 0x62
	RemOpErr              // NAK 0x63
	RetryExcErr           // no answer after all transport retries
	RNRRetryExcErr        // receiver not ready after all RNR retries
	FatalErr              // the peer violated the protocol
	numStatuses
)

var statusNames = [numStatuses]string{
	"SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "WR_FLUSH_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR",
	"REM_OP_ERR", "RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR", "FATAL_ERR",
}

// String returns the verbs name without IBV_WC_.
func (s Status) String() string { return verbsName("Status", uint8(s), statusNames[:]) }

// WCOp is the kind of a completed operation (ibv_wc_opcode).
type WCOp uint8

// Completed operations.
const (
	WCSend            WCOp = iota // this QP's SEND
	WCRDMAWrite                   // this QP's RDMA WRITE
	WCRecv                        // a receive, filled by a SEND of the peer
	WCRecvRDMAWithImm             // a receive, consumed by an RDMA WRITE with immediate of the peer
	numWCOps
)

var wcOpNames = [numWCOps]string{"SEND", "RDMA_WRITE", "RECV", "RECV_RDMA_WITH_IMM"}

// String returns the verbs name without IBV_WC_.
func (o WCOp) String() string { return verbsName("WCOp", uint8(o), wcOpNames[:]) }

// Completion is a work completion. As in verbs, unless Status is Success only ID, Op's
// direction and Status are meaningful.
type Completion struct {
	ID        uint64
	Op        WCOp
	Status    Status
	Bytes     int    // length of the message
	Imm       uint32 // immediate data, if HasImm
	InvKey    uint32 // R_Key that the peer invalidated, if HasInv
	HasImm    bool
	HasInv    bool
	Solicited bool // receives: the peer asked for an event
}

// Recv reports whether c completes a RecvWR rather than a WR.
func (c *Completion) Recv() bool { return c.Op == WCRecv || c.Op == WCRecvRDMAWithImm }

// verbsName returns the name of value v of a type.
func verbsName(typ string, v uint8, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", typ, v)
}
