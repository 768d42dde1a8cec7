// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/endpoint"
	"github.com/gleam-rdma/gleam/envelope"
)

func TestText(t *testing.T) {
	who := netip.MustParseAddr("10.0.0.3")
	for _, c := range []struct {
		e    endpoint.Event
		want string
	}{
		{endpoint.Event{Kind: endpoint.Joined}, "joined"},
		{endpoint.Event{Kind: endpoint.MemberLeft, Member: who, Reason: envelope.Left}, "member left (10.0.0.3): left"},
		{endpoint.Event{Kind: endpoint.MemberLeft, Member: who, Reason: envelope.Removed}, "member left (10.0.0.3): removed by the master"},
		{endpoint.Event{Kind: endpoint.Evicted, Member: who, Reason: envelope.Evicted, PSN: 0x4d}, "evicted (10.0.0.3): evicted; it had everything up to PSN 0x00004d"},
		{endpoint.Event{Kind: endpoint.Ended, Member: who, Reason: envelope.Expired}, "ended: lease expired"},
		{endpoint.Event{Kind: endpoint.Failed, Member: who, Reason: envelope.Failed, PSN: 5}, "failed (10.0.0.3): group failed, by a fatal NAK of this member for PSN 0x000005"},
		{endpoint.Event{Kind: endpoint.Failed, Err: errors.New("why")}, "failed: why"},
		{endpoint.Event{Kind: endpoint.Failed, Reason: envelope.SwitchLost, Err: &envelope.LostLink{At: 1, To: 2, Port: "eth3"}},
			"failed: a switch of the tree was lost: switch 0000000000000001 lost switch 0000000000000002 at port eth3"},
	} {
		if got := Text(c.e); got != c.want {
			t.Errorf("%+v: %q, want %q", c.e, got, c.want)
		}
	}
}
