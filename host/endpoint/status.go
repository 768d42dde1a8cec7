// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Status is the outcome of a work request, numbered as enum ibv_wc_status.
type Status uint8

// Statuses of reliable connected queue pairs.
const (
	Success          Status = 0
	LocalLengthErr   Status = 1  // receive buffer shorter than the message, or message longer than 2^31
	LocalQPOpErr     Status = 2  // malformed work request
	LocalProtErr     Status = 4  // segment outside of its region, or region without the access needed
	WRFlushErr       Status = 5  // the queue pair went into error before the work was done
	BadResponseErr   Status = 7  // a malformed answer
	LocalAccessErr   Status = 8  // an incoming request lacks the rights that it needs
	RemoteInvalidReq Status = 9  // NAK 0x61
	RemoteAccessErr  Status = 10 // NAK 0x62
	RemoteOpErr      Status = 11 // NAK 0x63
	RetryExceeded    Status = 12 // no answer, or no progress, after all retries
	RNRRetryExceeded Status = 13 // no receive posted at the peer, after all retries
	FatalErr         Status = 19 // the peer violated the protocol
	GeneralErr       Status = 21
)

// statusText gives the verbs name and the usual cause of each status.
var statusText = map[Status][2]string{
	Success:          {"success", ""},
	LocalLengthErr:   {"local length error", "a message is longer than the receive posted for it"},
	LocalQPOpErr:     {"local QP operation error", "the work request is malformed (soft-RoCE says so of a receive too short for the message)"},
	LocalProtErr:     {"local protection error", "the segment is outside of its memory region, or the region lacks the access"},
	WRFlushErr:       {"work request flushed", "the queue pair is in state ERR; the first failed completion says why"},
	BadResponseErr:   {"bad response", "the peer answered something that fits nothing that was sent"},
	LocalAccessErr:   {"local access error", "a peer asked for what the memory region does not allow"},
	RemoteInvalidReq: {"remote invalid request", "the peers have different path MTUs, a message is longer than a posted receive, or the operation is not for groups (READ, ATOMIC)"},
	RemoteAccessErr:  {"remote access error", "wrong R_Key or address, or a region without RemoteWrite"},
	RemoteOpErr:      {"remote operation error", "the switch took a receiver for dead (dead_after) or has too few left for the quorum, or a receiver failed by itself (soft-RoCE says so of a message longer than the receive posted for it): gleam events at the switch names it"},
	RetryExceeded:    {"transport retry counter exceeded", "a receiver, or the switch, has stopped answering (gleam group show names the member that the group's ACK waits for)"},
	RNRRetryExceeded: {"RNR retry counter exceeded", "a receiver has no receive posted"},
	FatalErr:         {"fatal error", "the peer broke the transport protocol"},
	GeneralErr:       {"general error", ""},
}

// String returns the status in the words of ibv_wc_status_str.
func (s Status) String() string {
	if t, ok := statusText[s]; ok {
		return t[0]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// StatusError is a failed work request as an error.
type StatusError struct {
	Status Status
	ID     uint64
	QPN    rocev2.QPN
}

// Error names the queue pair, the work request, the status and its usual cause.
func (e *StatusError) Error() string {
	s := fmt.Sprintf("QP 0x%x: work request %d: %s (status %d)", uint32(e.QPN), e.ID, e.Status, uint8(e.Status))
	if t := statusText[e.Status]; t[1] != "" {
		s += ": " + t[1]
	}
	return s
}
