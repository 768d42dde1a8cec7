// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"testing"
)

// A Renew is known by its first bytes, and nothing else is.
func TestIsRenewal(t *testing.T) {
	h := Header{Epoch: 1, Transaction: 1, Total: 1, Group: netip.MustParseAddr("10.0.0.1"), ReplyTo: netip.MustParseAddrPort("10.0.0.2:4797")}
	for body, want := range map[Body]bool{&Renew{}: true, &Delete{}: false, &Ack{}: false} {
		b, err := Append(nil, &Message{Header: h, Body: body}, nil, 0)
		if err != nil || IsRenewal(b) != want {
			t.Errorf("%T: %v, %v", body, IsRenewal(b), err)
		}
		if IsRenewal(b[:typeOffset]) {
			t.Errorf("%T: a truncated one is a renewal", body)
		}
	}
}
