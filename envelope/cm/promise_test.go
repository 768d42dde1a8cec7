// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"net/netip"
	"testing"
)

// What promises waits for the state file, and a DREQ however long that takes: a host that has not asked
// does not ask again.
func TestPromises(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.1")
	for a, want := range map[Attribute][2]bool{
		ConnectRequest: {true, false}, ConnectReply: {true, false}, ReadyToUse: {true, false}, DisconnectRequest: {true, true}, DisconnectReply: {true, false},
		MsgReceived: {false, false}, ConnectReject: {false, false},
	} {
		m := NewManager(Config{})
		m.out = &Output{}
		m.sendTo(ip, ip, &Message{Attribute: a, Request: Request{Src: ip, Dst: ip, LocalGID: ip, RemoteGID: ip}})
		if p := m.out.Packets[0]; p.Promises != want[0] || p.Lasts != want[1] {
			t.Errorf("attribute %#x: promises %v, lasts %v", a, p.Promises, p.Lasts)
		}
	}
}
