// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"fmt"
	"net/netip"

	"github.com/gleam-rdma/gleam/endpoint"
	"github.com/gleam-rdma/gleam/envelope"
)

// Concerned returns the member that an event is about, the zero Addr if it is
// about the whole group.
func Concerned(e endpoint.Event) netip.Addr {
	switch e.Kind {
	case endpoint.MemberLeft, endpoint.Evicted, endpoint.Failed:
		return e.Member
	}
	return netip.Addr{}
}

// Text says what happened in words.
func Text(e endpoint.Event) string {
	text := e.Kind.String()
	if m := Concerned(e); m.IsValid() {
		text += " (" + m.String() + ")"
	}
	if e.Reason != envelope.NotEnded {
		text += ": " + e.Reason.String()
	}
	switch {
	case e.Kind == endpoint.Failed && e.Member.IsValid():
		text += fmt.Sprintf(", by a fatal NAK of this member for PSN 0x%06x", uint32(e.PSN))
	case e.Kind == endpoint.Evicted:
		text += fmt.Sprintf("; it had everything up to PSN 0x%06x", uint32(e.PSN))
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}
