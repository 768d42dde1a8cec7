// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package rc is a reliable-connected (RC) queue pair in software: a requester
// and a responder that exchange packets as values. It opens no socket,
// reads no clock and starts no goroutine; a driver (package endpoint, the
// simulator, a test) moves the packets and the time.
//
// Real responders and requesters differ where the standard leaves room, and a
// switch that stands between them must survive all of them, so a QP has a
// Personality: RXE behaves as Linux soft-RoCE (drivers/infiniband/sw/rxe,
// 6.12), Strict as the careful implementations (drivers/infiniband/hw/qib). The
// others are Strict with what is documented of RNICs: allTraits in
// personality.go has all differences, RC.md §11 their sources.
//
// # The driver's contract
//
//  1. One goroutine at a time calls a QP. Time never runs backwards.
//  2. Input, Transmit and Advance append to an Output. The driver sends
//     Output.Packets in order, then hands out Output.Completions in order, then
//     calls Output.Reset; it may do so once for a batch of calls. Packets come
//     first because a completion gives the memory behind their payloads back.
//  3. A request packet's Payload aliases the WR's Data (zero copy). Data must
//     not change until the WR completes; a RecvWR's Buf and a registered
//     memory region must not be read before the completion that covers them.
//  4. After PostSend, Input and Advance the driver calls Transmit until it
//     returns less than its budget; in between it may serve its receive side.
//  5. The driver calls Advance when NextDeadline has come.
//  6. Packets given to Input have a verified ICRC and come from the peer's
//     address: both are properties of bytes, which this package never sees. A
//     packet for another QP number is dropped and counted here.
//  7. A paced QP (Config.Congestion, Config.MaxRate) may have packets that have
//     to wait. NextDeadline includes the end of that wait; Advance does not send
//     them, the Transmit that follows does.
//  8. A simulator may leave the bytes away: messages, receives and payloads have
//     a Length instead. Nothing is copied then; everything else is the same.
//
// # Congestion control
//
// With Config.Congestion a QP does both halves of DCQCN (package dcqcn). The
// rate holds for request packets, first and repeated; responses and CNPs are
// never delayed. By default it is off: no packet is paced and CE has no answer,
// as in rxe, which implements neither.
//
// # What is modelled
//
// Requester: SEND, SEND with immediate, SEND with invalidate, RDMA WRITE and
// RDMA WRITE with immediate; a send window of unacknowledged PSNs, go-back-N,
// restart in mid-message without RETH, timeout, RNR wait, retry counters,
// early repetitions of adaptive retransmission, repetition of one packet,
// implied acknowledgement, ordered completions, error and flush.
//
// Responder: the same operations, R_Key and length checks, NAK once, RNR,
// acknowledged duplicates, coalesced ACKs, packets kept behind a gap. READ, ATOMIC, FLUSH and ATOMIC WRITE are answered
// with NAK 0x61 (invalid request), as a QP with max_dest_rd_atomic 0 does: they
// cannot be multicast.
//
// Not modelled: end-to-end credits in the requester (it treats every ACK as
// 0x1F, unlimited), path migration, SQ drain, shared receive queues.
//
// # Where RNICs differ from Strict
//
//   - Adaptive retransmission repeats early, after 12 to 71 ms, with doubling
//     waits that progress shortens; the regular interval is at least 537 ms. All
//     early repetitions together cost one retry.
//   - Selective repeat answers NAK 0x60 with the one packet, and goes on where it
//     was. A timeout goes back as far as any other. The packet that is repeated
//     alone has AckReq: a choice of the model.
//   - A receiver with out-of-order placement keeps 256 packets behind a gap, and
//     reports the next gap when the first is filled. Packets are held, not placed,
//     since only the first of a WRITE has its address.
//   - The ACK inside a message waits 8 us for more packets: P6 gives no time.
//
// # Where RXE differs from Strict
//
//   - RXE answers every duplicate SEND or WRITE with an ACK of the last PSN it
//     accepted, with or without AckReq; Strict only a duplicate with AckReq.
//   - A duplicate that reaches RXE before it has accepted anything is acked
//     with PSN 0xFFFFFF, whatever its RQ_PSN: resp.ack_psn starts at 0.
//   - RXE sends RNR NAK and, for the next packet of the send window, NAK 0x60 too;
//     Strict is silent after the RNR NAK until the refused packet comes again.
//   - An RXE requester ignores a second NAK 0x60 until an ACK has arrived
//     (started_retry), counts every NAK as a retry, and treats retry_cnt 7 as
//     infinite. Strict restarts at every NAK 0x60 inside its send window and counts
//     timeouts only.
//   - On RNR NAK, RXE keeps sending as far as its send window allows and after the timer
//     resends from its oldest unacknowledged PSN; Strict stops at once, accepts
//     the implied ACK, and resends from the refused PSN.
//   - RXE does not check an acknowledgement against what it has sent. An ACK
//     above it completes every fully sent message, although perhaps no receiver
//     has it, and inside a partly sent message it corrupts the oldest
//     unacknowledged PSN: the rest of the message is then sent, but no longer
//     guarded by the timer. Strict ignores it. The model does as rxe does; a
//     switch has to drop such feedback.
//   - A reserved syndrome puts an RXE requester into error; Strict ignores it.
//   - A SEND that does not fit the receive: the receive completes with
//     REM_INV_REQ_ERR on RXE, LOC_LEN_ERR on Strict; both answer NAK 0x61.
//   - A SEND with invalidate of an unknown R_Key: RXE acknowledges it and goes
//     into error (its error class J); Strict completes it.
//
// Deliberately not as in the models: an ACK for a PSN that was sent, arriving
// after a rewind, counts at once in both personalities (rxe works off its
// rewind and the acknowledgements in one task, where the case hardly arises);
// the retransmission timer rests during an RNR wait; the send window is MaxUnacked
// packets (rxe's test lets one more out); and a Strict requester that waits for
// the RNR timer does not let a NAK 0x60 for the same PSN end the wait (qib
// does, and an rxe responder sends both).
package rc
