// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// randomMessage returns a message all of whose fields are within their bounds.
func randomMessage(r *rand.Rand, kind Attribute) Message {
	flag := func() bool { return r.IntN(2) == 1 }
	data := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	addr := func(v6 bool) netip.Addr {
		if v6 {
			return netip.AddrFrom16([16]byte(append([]byte{0xFD}, data(15)...)))
		}
		return netip.AddrFrom4([4]byte(data(4)))
	}
	m := Message{Attribute: kind, TID: r.Uint64(), LocalID: CommID(r.Uint32()), Data: data(rocev2.MADLen - headerLen - dataAt[kind-firstAttribute])}
	if kind != ConnectRequest {
		m.RemoteID = CommID(r.Uint32())
	}
	switch kind {
	case ConnectRequest:
		v6 := flag()
		m.Request = Request{
			ServiceID: r.Uint64(), GUID: GUID(r.Uint64()), QKey: r.Uint32(), QPN: rocev2.QPN(2 + r.IntN(1<<24-2)),
			ResponderResources: uint8(r.Uint32()), InitiatorDepth: uint8(r.Uint32()), RemoteTimeout: Timeout(r.IntN(32)), Service: TransportService(r.IntN(4)), FlowControl: flag(),
			PSN: rocev2.PSN(r.IntN(1 << 24)), LocalTimeout: Timeout(r.IntN(32)), RetryCount: uint8(r.IntN(8)), PKey: uint16(r.Uint32()), MTU: uint8(1 + r.IntN(5)),
			RNRRetry: uint8(r.IntN(8)), MaxRetries: uint8(r.IntN(16)), SRQ: flag(), LocalGID: addr(v6), RemoteGID: addr(v6), FlowLabel: uint32(r.IntN(1 << 20)),
			TrafficClass: uint8(r.Uint32()), HopLimit: uint8(r.Uint32()), SubnetLocal: flag(), AckTimeout: Timeout(r.IntN(32)), SrcPort: uint16(r.Uint32()), Src: addr(v6), Dst: addr(v6),
		}
	case ConnectReply:
		m.Reply = Reply{
			QKey: r.Uint32(), QPN: rocev2.QPN(r.IntN(1 << 24)), PSN: rocev2.PSN(r.IntN(1 << 24)), ResponderResources: uint8(r.Uint32()), InitiatorDepth: uint8(r.Uint32()),
			AckDelay: Timeout(r.IntN(32)), Failover: uint8(r.IntN(4)), FlowControl: flag(), RNRRetry: uint8(r.IntN(8)), SRQ: flag(), GUID: GUID(r.Uint64()),
		}
	case ConnectReject:
		m.Reject = Reject{Of: Rejected(r.IntN(3)), Reason: RejectReason(r.Uint32()), ARI: data(r.IntN(ariMax + 1))}
	case MsgReceived:
		m.MRA = MRA{Of: Rejected(r.IntN(3)), Timeout: Timeout(r.IntN(32))}
	case DisconnectRequest:
		m.DREQ.QPN = rocev2.QPN(r.IntN(1 << 24))
	}
	return m
}

// What Append writes, Decode reads.
func TestMessagesAreReadAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 1))
	for range 500 {
		for kind := firstAttribute; kind <= lastAttribute; kind++ {
			m := randomMessage(r, kind)
			var got Message
			if d := Decode(m.Append([]byte("before"))[6:], &got); d != OK || !reflect.DeepEqual(got, m) {
				t.Fatalf("%v: %v\n got %+v\nwant %+v", kind, d, got, m)
			}
		}
	}
}

// No input panics, and what Decode accepts is a fixed point of Append and Decode.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(17, 2))
	for kind := firstAttribute; kind <= lastAttribute; kind++ {
		m := randomMessage(r, kind)
		f.Add(m.Append(nil))
	}
	for _, name := range []string{"cm-connect-ipv4.pcap", "cm-connect-ipv6.pcap"} {
		for _, b := range captured(f, name) {
			var fr rocev2.Frame
			rocev2.Decode(b, &fr)
			f.Add(fr.MAD())
		}
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, again Message
		if d := Decode(b, &m); d != OK {
			if !reflect.DeepEqual(m, Message{}) || d >= NumDecodeDrops {
				t.Fatalf("refused with %v, and there is %+v", d, m)
			}
			return
		}
		_ = m.Detail()
		written := m.Append(nil)
		if d := Decode(written, &again); d != OK || !reflect.DeepEqual(again, m) {
			t.Fatalf("%v\n got %+v\nwant %+v", d, again, m)
		}
		if second := again.Append(nil); !bytes.Equal(second, written) {
			t.Fatalf("written again\n got %x\nwant %x", second, written)
		}
	})
}

// Each reason has a MAD that is refused for it, one byte from one that is accepted.
func TestRefusals(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 3))
	request := func() []byte {
		m := randomMessage(r, ConnectRequest)
		m.Request.Src, m.Request.Dst = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
		m.Request.LocalGID, m.Request.RemoteGID = m.Request.Src, m.Request.Dst
		return m.Append(nil)
	}
	reject := func() []byte { m := randomMessage(r, ConnectReject); return m.Append(nil) }
	seen := map[Drop]bool{OK: true}
	for _, x := range []struct {
		of   func() []byte
		at   int
		to   byte
		want Drop
	}{
		{request, 0, 2, BadClass}, {request, 1, 4, BadClass}, {request, 2, 1, BadClass}, {request, 3, 0x83, BadMethod}, {request, 5, 1, BadMethod}, {request, 4, 1, BadMethod},
		{request, 17, 0x0F, UnknownAttribute}, {request, 17, 0x17, UnknownAttribute}, {request, 16, 1, UnknownAttribute},
		{request, headerLen + 140, 1, BadAddress}, {request, headerLen + 141, 0x50, BadAddress}, {request, headerLen + 141, 0x60, BadAddress},
		{request, headerLen + 144, 1, BadAddress}, {request, headerLen + 152, 1, BadAddress}, {request, headerLen + 167, 1, BadAddress},
		{request, headerLen + 56, 0xFD, BadAddress}, {request, headerLen + 72, 0xFD, BadAddress},
		{request, headerLen + 50, 0x07, BadField}, {request, headerLen + 50, 0x67, BadField},
		{reject, headerLen + 8, 3 << 6, BadField}, {reject, headerLen + 9, (ariMax + 1) << 1, BadField},
		{func() []byte { m := randomMessage(r, MsgReceived); return m.Append(nil) }, headerLen + 8, 3 << 6, BadField},
	} {
		b := x.of()
		var m Message
		if d := Decode(b, &m); d != OK {
			t.Fatalf("%v before the change", d)
		}
		b[x.at] = x.to
		if d := Decode(b, &m); d != x.want {
			t.Errorf("byte %d is %#x: %v, want %v", x.at, x.to, d, x.want)
		}
		seen[x.want] = true
	}
	b := request()
	for _, n := range []int{0, 23, 255} {
		var m Message
		if d := Decode(b[:n], &m); d != BadLength {
			t.Errorf("%d bytes: %v", n, d)
		}
		seen[BadLength] = true
	}
	binary.BigEndian.PutUint32(b[headerLen+32:], 1<<8)
	var m Message
	if d := Decode(b, &m); d != BadField {
		t.Errorf("QPN 1: %v", d)
	}
	for d := range NumDecodeDrops {
		if !seen[d] {
			t.Errorf("nothing is refused for %v", d)
		}
	}
}

// Each drop has a row, with a name of its own.
func TestDropsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for d := range NumDrops {
		if s := d.String(); s == "" || seen[s] || s == NumDrops.String() || d.Text() == "" {
			t.Errorf("drop %d is called %q: %q", d, s, d.Text())
		}
		seen[d.String()] = true
	}
}
