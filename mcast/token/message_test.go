// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"testing"
)

var example = Message{
	Group: netip.MustParseAddr("10.0.0.200"), Session: 0x0102030405060708, Seq: 9, Ack: 10, Poll: true,
	Report:   Report{Term: FirstTerm(7) + 1, Outdated: FirstTerm(7), Crossings: 0x1112131415161718, Member: 0x21222324, Joined: true, Requests: true},
	Position: Position{Source: 0x31323334, PSN: 0x414243, Next: 0x444546, Ends: true, Needed: 0x61626364, Layout: 0x51525354},
}

// The bytes of docs/TREES.md.
func TestMessageOnTheWire(t *testing.T) {
	b := example.AppendBinary([]byte{0xee})
	want := "ee" + "062b0000" + "00000000000000000000ffff0a0000c8" + "0102030405060708" + "0000000000000009" + "000000000000000a" +
		"0000000700000002" + "0000000700000001" + "1112131415161718" + "21222324" +
		"31323334" + "00414243" + "61626364" + "51525354" + "00444546" +
		"0000000000000000000000000000000000000000000000000000000000000000"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("encoded as\n%s, not\n%s", got, want)
	}
	if len(b) != 1+MessageLen {
		t.Errorf("%d bytes, not %d", len(b)-1, MessageLen)
	}
	msg, err := ParseMessage(b[1:])
	if err != nil || msg != example {
		t.Errorf("parsed as %+v, %v", msg, err)
	}
}

// Each flag is one bit, and read back as itself.
func TestMessageFlags(t *testing.T) {
	for i, set := range []func(*Message){
		func(m *Message) { m.Poll = true }, func(m *Message) { m.Joined = true },
		func(m *Message) { m.Suspended = true }, func(m *Message) { m.Requests = true },
		func(m *Message) { m.Doubtful = true },
	} {
		m := Message{Group: netip.MustParseAddr("2001:db8::1"), Session: 1, Seq: 1}
		set(&m)
		b := m.AppendBinary(nil)
		if b[1] != 1<<i {
			t.Errorf("flag %d is encoded as %#x", i, b[1])
		}
		if got, err := ParseMessage(b); err != nil || got != m {
			t.Errorf("%+v is parsed as %+v, %v", m, got, err)
		}
	}
}

// What is said and what is needed are read back.
func TestMessagePositions(t *testing.T) {
	for _, at := range []Position{{}, {Layout: 3}, {Source: 1}, {Source: 1, Ends: true}, {Source: 1, PSN: 7, Over: true}, {Needed: 1}, {Source: 1, PSN: 0xFFFFFF, Needed: 2, Layout: 1}, {Source: 1, Next: 0xFFFFFF}} {
		m := Message{Group: netip.MustParseAddr("2001:db8::1"), Session: 1, Seq: 1, Position: at}
		if got, err := ParseMessage(m.AppendBinary(nil)); err != nil || got != m {
			t.Errorf("%+v is parsed as %+v, %v", m, got, err)
		}
	}
}

func TestMessagesRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func([]byte) []byte
		want error
	}{
		{"short", func(b []byte) []byte { return b[1:] }, ErrLength},
		{"long", func(b []byte) []byte { return append(b, 0) }, ErrLength},
		{"empty", func([]byte) []byte { return nil }, ErrLength},
		{"version", func(b []byte) []byte { b[0] = 1; return b }, ErrVersion},
		{"flags", func(b []byte) []byte { b[1] = flagsEnd; return b }, ErrField},
		{"reserved", func(b []byte) []byte { b[2] = 1; return b }, ErrField},
		{"reserved, second", func(b []byte) []byte { b[3] = 1; return b }, ErrField},
		{"session", func(b []byte) []byte { clear(b[20:28]); return b }, ErrField},
		{"position", func(b []byte) []byte { b[76], b[79] = 1, 1; return b }, ErrField},
		{"position of no source", func(b []byte) []byte { clear(b[72:76]); return b }, ErrField},
		{"sequence number", func(b []byte) []byte { clear(b[28:36]); return b }, ErrField},
	} {
		if _, err := ParseMessage(c.edit(example.AppendBinary(nil))); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, not %v", c.name, err, c.want)
		}
	}
}

// FuzzParseMessage: what parses is written as the same bytes, but for the MAC.
func FuzzParseMessage(f *testing.F) {
	f.Add(example.AppendBinary(nil))
	f.Add((&Message{Group: netip.MustParseAddr("2001:db8::1"), Session: 1, Seq: 1, Report: Report{Suspended: true}}).AppendBinary(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		msg, err := ParseMessage(b)
		if err != nil {
			return
		}
		n := MessageLen - MACLen
		if again := msg.AppendBinary(nil); !bytes.Equal(again[:n], b[:n]) {
			t.Errorf("%x is written as %x", b[:n], again[:n])
		}
	})
}

// FuzzReceive: after any authentic messages of neighbours, a machine has not panicked, its
// answers parse, and it serves no member while the token is elsewhere.
func FuzzReceive(f *testing.F) {
	f.Add(example.AppendBinary(nil), uint8(0))
	f.Add(example.AppendBinary(nil), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, leg uint8) {
		w := newWorld(&chain, bounds{}, 1)
		for {
			all, fair := w.actions()
			if fair == 0 || all[0].kind >= want {
				break
			}
			w.do(all[0])
		}
		var out Output
		m := w.touch(1)
		m.SetEpoch(8)
		m.Request(0, 7, &out)
		for len(b) >= MessageLen {
			msg, err := ParseMessage(b[:MessageLen])
			b = b[MessageLen:]
			if err != nil {
				continue
			}
			e := m.edge(Leg(leg & 2))
			msg.Session, leg = e.session, leg>>1
			m.Receive(0, e.leg, &msg, &out)
			for _, o := range out.Messages {
				if _, err := ParseMessage(o.Message.AppendBinary(nil)); err != nil {
					t.Fatal(err)
				}
			}
			if m.serving != NoMember && !m.here() {
				t.Fatalf("serves %d, and the token is elsewhere", m.serving)
			}
		}
	})
}
