// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Detail returns the body of m for people.
func (m *Message) Detail() string {
	var s []string
	add := func(format string, args ...any) { s = append(s, fmt.Sprintf(format, args...)) }
	switch r := &m.Request; m.Attribute {
	case ConnectRequest:
		if port, ok := r.Port(); ok {
			add("port %d", port)
		} else {
			add("service ID %#x", r.ServiceID)
		}
		add("GUID %016x, QPN %#x, PSN %#06x, path MTU %d", uint64(r.GUID), uint32(r.QPN), uint32(r.PSN), rocev2.PathMTUOfCode(uint32(r.MTU)))
		add("from %s to %s", r.Src, r.Dst)
		add("retries %d, RNR retries %d, ACK timeout %d", r.RetryCount, r.RNRRetry, r.AckTimeout)
	case ConnectReply:
		add("GUID %016x, QPN %#x, PSN %#06x", uint64(m.Reply.GUID), uint32(m.Reply.QPN), uint32(m.Reply.PSN))
	case ConnectReject:
		add("%s: %d, %s", m.Reject.Of, m.Reject.Reason, m.Reject.Reason)
		if len(m.Reject.ARI) > 0 {
			add("information %x", m.Reject.ARI)
		}
	case MsgReceived:
		add("%s: wait for %s", m.MRA.Of, m.MRA.Timeout.Duration())
	case DisconnectRequest:
		add("QPN %#x", uint32(m.DREQ.QPN))
	}
	if data := bytes.TrimRight(m.Data, "\x00"); len(data) > 0 {
		add("private data %q", data)
	}
	return strings.Join(s, ", ")
}

// String returns the name of the message that o stands for.
func (o Rejected) String() string {
	switch o {
	case RejectedREQ:
		return "REQ"
	case RejectedREP:
		return "REP"
	}
	return "another message"
}
