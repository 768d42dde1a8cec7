// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

var (
	group = netip.MustParseAddr("10.77.254.1")
	other = netip.MustParseAddr("10.77.254.2")
	a     = netip.MustParseAddr("10.77.0.1")
	b     = netip.MustParseAddr("10.77.0.2")
	c     = netip.MustParseAddr("10.77.0.3")
)

// frame returns a packet with 64 bytes of payload, or none if it is an ACK.
func frame(src, dst netip.Addr, op rocev2.Opcode, psn rocev2.PSN) []byte {
	buf := make([]byte, 512)
	var payload []byte
	if op != rocev2.Acknowledge {
		payload = bytes.Repeat([]byte{0xAA}, 64)
	}
	p := rocev2.Packet{Op: op, PSN: psn, DestQP: 0x4711, Syndrome: rocev2.SyndromeACK}
	return buf[:rocev2.BuildPacket(buf, &rocev2.Path{Src: src, Dst: dst, SrcPort: 0xC000}, &p, payload)]
}

// packet has r record a packet from src to the group by port 0 with a copy to each of to, by
// ports 1 and up, whose PSNs are 0x1000 higher.
func packet(r *Recorder, src netip.Addr, op rocev2.Opcode, psn rocev2.PSN, to ...netip.Addr) {
	r.Receive(0, frame(src, group, op, psn), nil)
	for i, m := range to {
		r.Send(&Record{Kind: Copied, WasPSN: psn, Member: m}, i+1, frame(group, m, op, psn+0x1000), nil)
	}
	r.Served()
}

// read returns the records that r has published, with their data.
func read(r *Recorder) (list []Record) {
	r.Publish()
	for r.Read(100, func(x *Record) { y := *x; y.Data = bytes.Clone(x.Data); list = append(list, y) }) > 0 {
	}
	return list
}

// path says where each record was made, in order.
func path(list []Record) (s string) {
	for i := range list {
		switch x := &list[i]; x.Kind {
		case Received:
			s += "in "
		case Copied:
			s += x.Dst.String()[8:] + " "
		case Resent:
			s += "repair "
		case NotSent:
			s += "not "
		case Built:
			s += "own "
		}
	}
	return s
}

// A packet is recorded before what it causes, if it fits the filter or one of these does.
func TestFilter(t *testing.T) {
	for _, x := range []struct {
		name string
		f    Filter
		want string // the records expected of data of A with PSN 16, its copies to B and C, an ACK of B and one for A, and a repair for B
	}{
		{"everything", Filter{}, "in 2 3 in own repair "},
		{"the group", Filter{Groups: []netip.Addr{group}}, "in 2 3 in own repair "},
		{"another group", Filter{Groups: []netip.Addr{other}}, ""},
		{"the source", Filter{Members: []netip.Addr{a}}, "in 2 3 in own "},
		{"a receiver", Filter{Members: []netip.Addr{b}}, "in 2 in own repair "},
		{"the other receiver", Filter{Members: []netip.Addr{c}}, "in 3 "},
		{"its port", Filter{Ports: []int{2}}, "in 3 "},
		{"the source's port", Filter{Ports: []int{0}}, "in 2 3 in own "},
		{"data", Filter{Ops: []rocev2.Opcode{rocev2.WriteOnly}}, "in 2 3 repair "},
		{"ACKs", Filter{Ops: []rocev2.Opcode{rocev2.Acknowledge}}, "in own "},
		{"the PSN", Filter{PSNs: &PSNRange{16, 16}}, "in 2 3 in own repair "},
		{"a receiver's PSN", Filter{PSNs: &PSNRange{0x1010, 0x1010}}, "in 2 3 in own repair "},
		{"PSNs around 0", Filter{PSNs: &PSNRange{0xFFFFF0, 0xF}}, ""},
		{"PSNs over the end", Filter{PSNs: &PSNRange{0xFFFFF0, 0x10}}, "in 2 3 in own repair "},
		{"data of the other receiver", Filter{Members: []netip.Addr{c}, Ops: []rocev2.Opcode{rocev2.WriteOnly}}, "in 3 "},
		{"drops", Filter{Drops: true}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := NewRecorder(&x.f)
			packet(r, a, rocev2.WriteOnly, 16, b, c)
			if r.Receive(1, frame(b, group, rocev2.Acknowledge, 0x1010), nil) != nil {
				r.Translate(16)
			}
			r.Send(&Record{Kind: Built}, 0, frame(group, a, rocev2.Acknowledge, 16), nil)
			r.Served()
			r.Send(&Record{Kind: Resent, WasPSN: 16, Member: b}, 1, frame(group, b, rocev2.WriteOnly, 0x1010), nil)
			list := read(r)
			if got := path(list); got != x.want {
				t.Errorf("%q, want %q", got, x.want)
			}
			for i := range list {
				if n := len(list[i].Data); n >= list[i].Length && list[i].Op != rocev2.Acknowledge || n < rocev2.EthernetLen+rocev2.IPv4Len+rocev2.UDPLen+rocev2.BTHLen {
					t.Errorf("%d of %d bytes are recorded, want the headers", n, list[i].Length)
				}
				if bytes.Contains(list[i].Data, []byte{0xAA, 0xAA, 0xAA}) {
					t.Error("payload is recorded")
				}
			}
		})
	}
}

// What becomes known while a packet is served is in its record, although copies come behind it.
func TestFacts(t *testing.T) {
	r := NewRecorder(&Filter{})
	x := r.Receive(0, frame(a, group, rocev2.WriteOnly, 1), nil)
	r.Send(&Record{Kind: Copied, WasPSN: 1}, 1, frame(group, b, rocev2.WriteOnly, 1), nil)
	r.Send(&Record{Kind: NotSent, WasPSN: 1, Drop: "port_down"}, 1, frame(a, group, rocev2.WriteOnly, 1), nil)
	x.Place, x.Flags, x.Drop = Ahead, Retained, "why"
	r.Served()
	list := read(r)
	if path(list) != "in 2 not " {
		t.Fatal(path(list))
	}
	if x := &list[0]; x.Place != Ahead || x.Flags != Retained || x.Drop != "why" || x.Copies != 1 {
		t.Errorf("%+v", x)
	}
	// Of drops, what is served well is not recorded, but for what had a copy dropped.
	r = NewRecorder(&Filter{Drops: true})
	for _, drop := range []string{"", "port_down"} {
		r.Receive(0, frame(a, group, rocev2.WriteOnly, 2), nil)
		r.Send(&Record{Kind: Copied, WasPSN: 2}, 1, frame(group, b, rocev2.WriteOnly, 2), nil)
		if drop != "" {
			r.Send(&Record{Kind: NotSent, WasPSN: 2, Drop: drop}, 2, frame(a, group, rocev2.WriteOnly, 2), nil)
		}
		r.Served()
	}
	if s := path(read(r)); s != "in not " {
		t.Errorf("%q", s)
	}
}

// Packets that are served within another one, as those of the fast path, come before it; what
// follows belongs to the outer one.
func TestNested(t *testing.T) {
	r := NewRecorder(&Filter{Members: []netip.Addr{b}})
	r.Receive(0, frame(a, group, rocev2.WriteOnly, 5), nil)
	packet(r, a, rocev2.WriteOnly, 4, b)
	r.Send(&Record{Kind: Copied, WasPSN: 5}, 1, frame(group, b, rocev2.WriteOnly, 5), nil)
	r.Served()
	list := read(r)
	if path(list) != "in 2 in 2 " || list[0].PSN != 4 || list[2].PSN != 5 || list[2].Copies != 1 {
		t.Errorf("%q: %+v", path(list), list)
	}
	for range maxDepth + 2 { // deeper than there are buffers
		r.Receive(0, frame(a, group, rocev2.WriteOnly, 6), nil)
	}
	for range maxDepth + 2 {
		r.Served()
	}
	packet(r, a, rocev2.WriteOnly, 7, b)
	if s := path(read(r)); s != "in 2 " {
		t.Errorf("%q", s)
	}
}

// A full ring loses packets, counts them, and the first record after it says so.
func TestFull(t *testing.T) {
	r := NewRecorder(&Filter{Snap: 8192})
	n := r.ring.Size()
	for range n + 10 {
		packet(r, a, rocev2.WriteOnly, 1)
	}
	if lost, over := r.Unrecorded(); lost != 10 || over != 0 {
		t.Errorf("%d lost, %d over the rate; want 10 and 0", lost, over)
	}
	if list := read(r); len(list) != n {
		t.Errorf("%d records of %d", len(list), n)
	}
	packet(r, a, rocev2.WriteOnly, 2)
	if list := read(r); len(list) != 1 || list[0].LostBefore != 10 || list[0].PSN != 2 {
		t.Errorf("%+v", list)
	}
}

// The rate bounds the packets that come; what they cause comes with them, or not.
func TestRate(t *testing.T) {
	r := NewRecorder(&Filter{Rate: 20}) // two at once
	for range 5 {
		packet(r, a, rocev2.WriteOnly, 1, b, c)
	}
	if s := path(read(r)); s != "in 2 3 in 2 3 " {
		t.Errorf("%q", s)
	}
	if lost, over := r.Unrecorded(); lost != 0 || over != 3 {
		t.Errorf("%d lost, %d over the rate; want 0 and 3", lost, over)
	}
	r.Receive(0, frame(a, group, rocev2.WriteOnly, 1), nil).At = 50 * time.Millisecond
	r.Served()
	if list := read(r); len(list) != 1 || list[0].LostBefore != 3 {
		t.Errorf("%+v", list)
	}
}

// Nothing is allocated while packets are recorded.
func TestNoAllocation(t *testing.T) {
	r := NewRecorder(&Filter{Groups: []netip.Addr{group}, Members: []netip.Addr{b}})
	in, out := frame(a, group, rocev2.WriteOnly, 1), frame(group, b, rocev2.WriteOnly, 1)
	if n := testing.AllocsPerRun(100, func() {
		r.Receive(0, in, nil)
		r.Send(&Record{Kind: Copied, WasPSN: 1}, 1, out, nil)
		r.Served()
		r.Publish()
		r.Read(10, func(*Record) {})
	}); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
}

// A packet in several buffers is recorded as far as the snap length goes.
func TestSeveralBuffers(t *testing.T) {
	whole := frame(a, group, rocev2.WriteOnly, 1)
	r := NewRecorder(&Filter{Snap: 100})
	r.Receive(0, whole[:70], [][]byte{whole[70:90], whole[90:]})
	r.Served()
	if list := read(r); len(list) != 1 || !bytes.Equal(list[0].Data, whole[:100]) || list[0].Length != len(whole) {
		t.Errorf("%+v", list)
	}
}

func FuzzPeek(f *testing.F) {
	for _, op := range []rocev2.Opcode{rocev2.WriteOnly, rocev2.Acknowledge, rocev2.SendOnlyInv, 0xFF} {
		f.Add(frame(a, group, op, 1))
	}
	f.Fuzz(func(t *testing.T, x []byte) {
		h := Peek(x, 4797)
		if h.Len > len(x) {
			t.Fatalf("headers of %d bytes in a frame of %d", h.Len, len(x))
		}
		var d rocev2.Frame
		if rocev2.Decode(x, &d) == rocev2.OK && d.Kind == rocev2.KindRoCE {
			if !h.IsRoCE || h.Op != d.Op || h.PSN != d.BTH().PSN() || h.DestQP != d.BTH().DestQP() || h.Src != d.Src() || h.Dst != d.Dst() {
				t.Fatalf("%+v of a packet %v %v", h, d.Op, d.BTH())
			}
			if want := d.Len() - d.PayloadLen() - rocev2.ICRCLen; d.Len() == len(x) && h.Len > want+3 { // pad
				t.Fatalf("%d bytes of headers, want %d", h.Len, want)
			}
		}
		r := NewRecorder(&Filter{})
		r.Receive(0, x, nil)
		r.Served()
		read(r)
	})
}
