// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// captured returns the frames with MADs in a capture of Linux' CM over rxe.
func captured(t testing.TB, name string) (frames [][]byte) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for b = b[24:]; len(b) > 0; {
		n := binary.LittleEndian.Uint32(b[8:])
		var f rocev2.Frame
		if rocev2.Decode(b[16:16+n], &f) == rocev2.OK && f.Kind == rocev2.KindMAD {
			frames = append(frames, b[16:16+n])
		}
		b = b[16+n:]
	}
	return frames
}

// Every captured frame is built again, ICRC included, from what was read of it.
func TestCaptures(t *testing.T) {
	for name, kinds := range map[string][]Attribute{
		"cm-connect-ipv4.pcap": {ConnectRequest, ReadyToUse},
		"cm-connect-ipv6.pcap": {ConnectRequest, ConnectReject},
	} {
		frames := captured(t, name)
		if len(frames) != len(kinds) {
			t.Fatalf("%s: %d MADs, want %d", name, len(frames), len(kinds))
		}
		for i, b := range frames {
			var f rocev2.Frame
			rocev2.Decode(b, &f)
			if !f.VerifyMAD() {
				t.Errorf("%s: wrong ICRC", name)
			}
			var m Message
			if r := Decode(f.MAD(), &m); r != OK || m.Attribute != kinds[i] {
				t.Fatalf("%s: MAD %d: %v, %v", name, i, m.Attribute, r)
			}
			p := rocev2.Path{SrcMAC: f.Eth().Src(), DstMAC: f.Eth().Dst(), Src: f.Src(), Dst: f.Dst(), SrcPort: binary.BigEndian.Uint16(b[f.L4Offset():])}
			if h := f.IPv4(); h != nil {
				p.ID = h.ID()
			} else {
				p.FlowLabel = f.IPv6().FlowLabel()
			}
			psn := rocev2.PSN(uint24(b[f.L4Offset()+rocev2.UDPLen+9:]))
			got := make([]byte, 400)
			if got = got[:rocev2.BuildMAD(got, &p, psn, m.Append(nil))]; !bytes.Equal(got, b) {
				t.Errorf("%s: built again\n got %x\nwant %x", name, got, b)
			}
		}
	}
}

// The fields of a captured REQ and REJ.
func TestCapturedFields(t *testing.T) {
	var f rocev2.Frame
	var m Message
	rocev2.Decode(captured(t, "cm-connect-ipv4.pcap")[0], &f)
	Decode(f.MAD(), &m)
	a, g := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.100")
	want := Request{
		ServiceID: servicePrefix + 7471, GUID: 0xfffe000001, QPN: 0x11, ResponderResources: 1, InitiatorDepth: 1,
		RemoteTimeout: 20, FlowControl: true, PSN: 0x013121, LocalTimeout: 20, RetryCount: 6, PKey: 0xFFFF, MTU: 3, RNRRetry: 7, MaxRetries: 15,
		LocalGID: a, RemoteGID: g, FlowLabel: 0x5C5F2, HopLimit: 64, AckTimeout: 17, SrcPort: 45789, Src: a, Dst: g,
	}
	if m.Request != want {
		t.Errorf("REQ\n got %+v\nwant %+v", m.Request, want)
	}
	if port, ok := m.Request.Port(); !ok || port != 7471 {
		t.Errorf("port %d, %v", port, ok)
	}
	if len(m.Data) != 56 || !bytes.HasPrefix(m.Data, []byte("i am A\x00")) {
		t.Errorf("private data %q", m.Data)
	}
	rocev2.Decode(captured(t, "cm-connect-ipv6.pcap")[1], &f)
	Decode(f.MAD(), &m)
	if m.Reject.Of != RejectedOther || m.Reject.Reason != TimedOut || len(m.Reject.ARI) != 8 || m.RemoteID != 0 || len(m.Data) != 148 {
		t.Errorf("REJ %+v", m)
	}
}

// layouts are messages with the bytes that they have after the header of the MAD, zeros at
// the end left out: by IBTA's layouts, field by field, and not by our encoder.
var layouts = []struct {
	m    Message
	want []byte
}{
	{Message{Attribute: ConnectReply, LocalID: 0x01020304, RemoteID: 0x05060708, Data: []byte{0xDD}, Reply: Reply{
		QKey: 0x11121314, QPN: 0x212223, PSN: 0x313233, ResponderResources: 0x41, InitiatorDepth: 0x42, AckDelay: 18, Failover: 1, FlowControl: true,
		RNRRetry: 5, SRQ: true, GUID: 0x5152535455565758,
	}}, []byte{
		1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0, 0, 0, 0, 0, 0x31, 0x32, 0x33, 0, 0x41, 0x42,
		18<<3 | 1<<1 | 1, 5<<5 | 1<<4, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0xDD,
	}},
	{Message{Attribute: MsgReceived, LocalID: 1, RemoteID: 2, MRA: MRA{Of: RejectedREP, Timeout: 21}, Data: []byte{0xDD}}, []byte{0, 0, 0, 1, 0, 0, 0, 2, 1 << 6, 21 << 3, 0xDD}},
	{Message{Attribute: DisconnectRequest, LocalID: 1, RemoteID: 2, DREQ: DREQ{QPN: 0xABCDEF}, Data: []byte{0xDD}}, []byte{0, 0, 0, 1, 0, 0, 0, 2, 0xAB, 0xCD, 0xEF, 0, 0xDD}},
	{Message{Attribute: DisconnectReply, LocalID: 1, RemoteID: 2, Data: []byte{0xDD}}, []byte{0, 0, 0, 1, 0, 0, 0, 2, 0xDD}},
	{Message{Attribute: ConnectReject, LocalID: 1, RemoteID: 2, Reject: Reject{Of: RejectedREP, Reason: InvalidMTU, ARI: []byte{0x30}}}, []byte{0, 0, 0, 1, 0, 0, 0, 2, 1 << 6, 1 << 1, 0, 26, 0x30}},
}

func TestLayouts(t *testing.T) {
	for i := range layouts {
		x := &layouts[i]
		x.m.TID = 0x6162636465666768
		b := x.m.Append(nil)
		header := []byte{1, 7, 2, 3, 0, 0, 0, 0, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0, byte(x.m.Attribute), 0, 0, 0, 0, 0, 0}
		want := make([]byte, rocev2.MADLen)
		copy(want[copy(want, header):], x.want)
		if !bytes.Equal(b, want) {
			t.Errorf("%v\n got %x\nwant %x", x.m.Attribute, b, want)
		}
	}
}
