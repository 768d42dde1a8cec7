// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/rocev2"
)

var creationKey = []byte("thirty-two bytes of a secret key")

// keyed is the configuration of key 7 with rights.
func keyed(rights string) string {
	return fmt.Sprintf("envelope: {keys: [{id: 7, secret: \"hex:%x\"%s}]}\n", creationKey, rights)
}

// creatingREQ returns a REQ of host i that makes group n for a number of members, with a nonce.
func creatingREQ(i, n int, qpn rocev2.QPN, members uint16, nonce uint64) *cm.Message {
	ip, group := fakeHost(i), fakeGroup(n)
	be := binary.BigEndian
	b := append([]byte("GLCM"), 2, 4, 0, 7)
	b = be.AppendUint64(b, nonce)
	b = append(b, make([]byte, 20)...)
	b = append(be.AppendUint16(b, members), 0, 0)
	h := hmac.New(sha256.New, creationKey)
	h.Write([]byte("gleam: member by RDMA-CM\x00"))
	g16, m16 := group.As16(), ip.As16()
	h.Write(g16[:])
	h.Write(m16[:])
	h.Write(be.AppendUint32(be.AppendUint16(nil, 7471), uint32(qpn)))
	h.Write(b)
	return &cm.Message{Attribute: cm.ConnectRequest, TID: 1, LocalID: cm.CommID(uint64(qpn) ^ nonce), Data: h.Sum(b)[:56], Request: cm.Request{
		ServiceID: 0x01060000 + 7471, GUID: cm.GUID(i), QPN: qpn, PSN: 0x777, MTU: 3, LocalGID: ip, RemoteGID: group, Src: ip, Dst: group,
	}}
}

// connectKeyed delivers a REQ of host i that makes group n: without a nonce, and with the one that the
// switch answers. It returns the second REQ.
func (f *fakeSwitch) connectKeyed(i, n int, qpn rocev2.QPN, members uint16) *cm.Message {
	f.t.Helper()
	first := creatingREQ(i, n, qpn, members, 0)
	f.deliver(i, n, first)
	var nonce uint64
	f.eventually("the switch answers by a nonce", func() bool {
		for _, m := range f.sent(cm.ConnectReject) {
			if m.RemoteID == first.LocalID && len(m.Data) > 11 && m.Data[1] == byte(cm.Unproven) {
				nonce = binary.BigEndian.Uint64(m.Data[3:])
			}
		}
		return nonce != 0
	})
	m := creatingREQ(i, n, qpn, members, nonce)
	f.deliver(i, n, m)
	return m
}

// refusals are the texts of the REJs that have left the switch since the last message to it.
func (f *fakeSwitch) refusals() (texts string) {
	for _, m := range f.sent(cm.ConnectReject) {
		if len(m.Data) > 3 {
			texts += string(m.Data[3:])
		}
	}
	return texts
}

// The first member's REQ makes a group, within the rights of its key. It survives a restart, and
// ends with its connections.
func TestGroupByTheFirstREQ(t *testing.T) {
	dir := t.TempDir()
	start := func() *fakeSwitch { return newFakeSwitchWith(t, 3, 1, "state: "+dir+"\n"+keyed("")) }
	f := start()
	first := f.connectKeyed(0, 0, 0x100, 3)
	waits := func() bool {
		_, err := f.Group(fakeGroup(0))
		return err != nil && strings.Contains(err.Error(), "1 of 3 have")
	}
	f.eventually("a member waits", waits)
	f.eventually("the group is in the file", func() bool { return !f.waits() })
	f.end()
	f = start()
	f.deliver(0, 0, first) // its kernel repeats the REQ
	f.connectKeyed(1, 0, 0x101, 3)
	f.connectKeyed(2, 0, 0x102, 3)
	f.eventually("the group is registered", func() bool { return len(f.members(0)) == 3 })
	f.end()
	f = start()
	f.eventually("the group is registered still", func() bool { return len(f.members(0)) == 3 })
	var kept []cm.Kept
	var qpn rocev2.QPN
	f.control.do(func() {
		all := f.control.connections.manager.Connections(map[netip.Addr]bool{fakeGroup(0): true})
		reg, _, _ := f.control.registrar.Group(fakeGroup(0))
		kept, qpn = all[fakeGroup(0)], reg.QPN
	})
	for i, k := range kept { // in the order of their IDs, not of their hosts
		for host := range 3 {
			if k.Record.IP == fakeHost(host) {
				f.deliver(host, 0, &cm.Message{Attribute: cm.DisconnectRequest, TID: uint64(i), LocalID: k.Peer, RemoteID: k.ID, DREQ: cm.DREQ{QPN: qpn}})
			}
		}
	}
	f.eventually("the group has ended", func() bool {
		_, err := f.Group(fakeGroup(0))
		return err != nil && !strings.Contains(err.Error(), "have")
	})
	f.control.do(func() {
		if n := len(f.control.connections.byREQ); n != 0 {
			t.Errorf("%d keys have groups by REQs", n)
		}
	})
	f.end()
}

// A key's rights bound the groups that REQs make under it.
func TestRightsOfAKeyWhoseREQMakesAGroup(t *testing.T) {
	for rights, want := range map[string]string{
		", roles: [member]":                 "role",
		", prefixes: [10.77.254.128/25]":    "prefix",
		", max_groups: 1":                   "quota",
		", max_groups: 2, max_members: 5":   "quota",
		", max_groups: 2, max_members: 6":   "",
		", prefixes: [10.77.254.0/25]":      "",
		", roles: [master], max_members: 6": "",
	} {
		f := newFakeSwitchWith(t, 2, 1, keyed(rights))
		for n := range 2 {
			f.connectKeyed(0, n, rocev2.QPN(0x100+n), 3)
		}
		if want == "" {
			f.eventually(rights+": both groups are made", func() bool {
				_, err := f.Group(fakeGroup(1))
				return err != nil && strings.Contains(err.Error(), "1 of 3 have")
			})
			continue
		}
		f.eventually(rights+": refused", func() bool { return strings.Contains(f.refusals(), want) })
	}
}

// Of a REQ under a key that is not there, or of a group that is registered otherwise, nothing is made.
func TestREQMakesNoOtherGroup(t *testing.T) {
	f := newFakeSwitchWith(t, 3, 1, keyed(""))
	f.register(0, 2, 0x300, api.PolicyStrict)
	f.connectKeyed(2, 0, 0x100, 3)
	f.eventually("refused", func() bool { return strings.Contains(f.refusals(), "is registered") })
	if n := len(f.members(0)); n != 2 {
		t.Errorf("%d members", n)
	}
}
