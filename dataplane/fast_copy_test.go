// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// fastCase is a group, as the fast path and as the worker have it.
type fastCase struct {
	r     *rand.Rand
	spec  fastpath.GroupSpec
	table groupTable
	next  rocev2.PSN
	v6    bool
	long  bool // packets may be in several buffers, and none are tagged
}

func (c *fastCase) addr(net byte) netip.Addr {
	if c.v6 {
		a := netip.MustParseAddr("fd77:1::").As16()
		a[3] = net
		for i := 8; i < 16; i++ {
			a[i] = byte(c.r.Uint32())
		}
		return netip.AddrFrom16(a)
	}
	return netip.AddrFrom4([4]byte{10, 77, 253 + net, byte(c.r.Uint32())})
}

func (c *fastCase) mac() (m rocev2.MAC) {
	for i := range m {
		m[i] = byte(c.r.Uint32())
	}
	m[0] = m[0]&^1 | 2
	return m
}

func (c *fastCase) vlan() uint16 {
	if c.long {
		return 0
	}
	return []uint16{0, 0, 1, 4094}[c.r.IntN(4)]
}

// drawFastCase draws a group with that many legs. w gets its neighbours.
func drawFastCase(r *rand.Rand, w *worker, x *fastNet, legs int, v6, long bool) *fastCase {
	c := &fastCase{r: r, v6: v6, long: long, next: rocev2.PSN(r.Uint32() & rocev2.PSNMask)}
	if r.IntN(2) == 0 {
		c.next = rocev2.PSNMask - 9 // the PSNs wrap
	}
	c.spec = fastpath.GroupSpec{
		IP: c.addr(1), QPN: rocev2.QPN(r.Uint32() & rocev2.PSNMask), PMTU: []int{256, 1024, 2048}[r.IntN(3)], Slots: 64,
		Source: fastpath.Source{IP: c.addr(2), MAC: c.mac(), Ifindex: x.ifindex[0]},
	}
	if long {
		c.spec.PMTU, c.spec.Clones = []int{256, 4096}[r.IntN(2)], true
	}
	if r.IntN(3) != 0 {
		c.spec.Window = fastpath.Window{Base: r.Uint64() >> 1, Len: 1 << 20, RKey: r.Uint32()}
	}
	c.table = groupTable{ip: c.spec.IP, qpn: c.spec.QPN}
	for i := range w.ports {
		w.ports[i].neighbour = neighbour{id: mcast.Neighbor(100 + i), mac: c.mac()}
	}
	for range legs {
		p := r.IntN(len(w.ports))
		if r.IntN(3) != 0 {
			p = 1 + r.IntN(len(w.ports)-1)
		}
		l := leg{kind: mcast.Connected, port: p, mac: c.mac(), vlan: c.vlan(), ip: rocev2.KeyOf(c.addr(2)), qpn: rocev2.QPN(r.Uint32() & rocev2.PSNMask)}
		s := fastpath.LegSpec{
			Port: p, Ifindex: x.ifindex[p], PortMAC: w.ports[p].mac, MAC: l.mac, VLAN: l.vlan, IP: l.addr(), QPN: l.qpn,
			PSNDelta: rocev2.PSN(r.Uint32() & rocev2.PSNMask), VADelta: r.Uint64(), RKey: r.Uint32(), Gate: fastpath.Gate{Next: c.next},
		}
		if r.IntN(4) == 0 {
			l = leg{kind: mcast.Forwarded, port: p, neighbour: w.ports[p].neighbour.id, vlan: l.vlan}
			s.MAC, s.IP, s.QPN, s.PSNDelta, s.VADelta, s.RKey = w.ports[p].neighbour.mac, netip.Addr{}, 0, 0, 0, 0
		}
		c.table.legs, c.spec.Legs = append(c.table.legs, l), append(c.spec.Legs, s)
	}
	return c
}

// packet builds the source's next packet, and returns whether its RETH is rewritten.
func (c *fastCase) packet(b []byte) (frame []byte, k rocev2.Packet, reth bool) {
	r := c.r
	path := rocev2.Path{
		Src: c.spec.Source.IP, Dst: c.spec.IP, SrcMAC: c.spec.Source.MAC, DstMAC: rocev2.MAC{2, 1}, SrcPort: uint16(r.Uint32()),
		TOS: byte(r.Uint32()), TTL: byte(r.Uint32()), ID: uint16(r.Uint32()), FlowLabel: r.Uint32() & 0xFFFFF, Tagged: r.IntN(2) == 0 && !c.long, TCI: uint16(r.Uint32()),
	}
	k = rocev2.Packet{
		Op: requests[r.IntN(12)], DestQP: c.spec.QPN, PSN: c.next, AckReq: r.IntN(2) == 0, SE: r.IntN(2) == 0, MigReq: r.IntN(2) == 0,
		BECN: r.IntN(2) == 0, PKey: uint16(r.Uint32()), VA: r.Uint64(), RKey: r.Uint32(), Imm: r.Uint32(),
	}
	c.next = c.next.Next()
	n := r.IntN(c.spec.PMTU + 1)
	f := k.Op.Flags()
	switch {
	case f&(rocev2.OpFirst|rocev2.OpMiddle) != 0:
		n = c.spec.PMTU
	case f&rocev2.OpLast != 0:
		n = max(n, 1)
	case r.IntN(4) == 0:
		n = r.IntN(5) // short ones are padded, some of them to nothing
	}
	k.DMALen = uint32(n)
	if f&rocev2.OpFirst != 0 {
		k.DMALen += 1 + r.Uint32()&0xFFFF
	}
	if win := c.spec.Window; win.Len != 0 && k.DMALen != 0 && f&rocev2.OpRETH != 0 {
		k.RKey, k.VA, reth = win.RKey, win.Base+r.Uint64N(win.Len-uint64(k.DMALen)+1), true
	}
	payload := make([]byte, n)
	for i := range payload {
		payload[i] = byte(r.Uint32())
	}
	frame = b[:rocev2.BuildPacket(b, &path, &k, payload)]
	if r.IntN(8) == 0 {
		frame[len(frame)-1-r.IntN(4)]++ // damaged: so are the copies
	}
	if len(frame) < minFrame && r.IntN(2) == 0 {
		frame = append(frame, make([]byte, minFrame-len(frame))...)
	}
	return frame, k, reth
}

// asks reports whether the switch sets AckReq in the copies of psn to members (R112).
func asks(psn rocev2.PSN) bool { return psn%mcast.DefaultAckEvery == mcast.DefaultAckEvery-1 }

// copies are what the worker makes of a frame, by port.
func (c *fastCase) copies(t *testing.T, w *worker, frame []byte, k *rocev2.Packet, reth bool) (byPort [][][]byte) {
	var ds []xsk.Desc
	for rest := frame; len(rest) > 0; rest = rest[min(len(rest), w.umem.MaxReceive()):] {
		addr, _ := w.pool.TakeOne()
		addr += 256
		n := min(len(rest), w.umem.MaxReceive())
		copy(w.umem.Data(addr, uint32(n)), rest)
		ds = append(ds, xsk.Desc{Addr: addr, Len: uint32(n), Options: xsk.PktContd})
	}
	ds[len(ds)-1].Options = 0
	if ds = w.decode(ds); ds == nil {
		t.Fatal("the worker does not take the frame")
	}
	w.groups[0] = c.table
	for i := range c.spec.Legs {
		l := &c.spec.Legs[i]
		cp := mcast.Copy{Leg: mcast.LegID(i), PSN: (k.PSN + l.PSNDelta) & rocev2.PSNMask}
		if reth && l.IP.IsValid() {
			cp.Flags, cp.VA, cp.RKey = mcast.SetRETH, k.VA+l.VADelta, l.RKey
		}
		if asks(k.PSN) && !k.AckReq && l.IP.IsValid() {
			cp.Flags |= mcast.SetAckReq
		}
		w.copy(&cp, &w.frame, ds, false)
	}
	w.freeFrames(ds)
	for _, p := range w.ports {
		var at [][]byte
		var part []byte
		for _, d := range p.staged {
			part = append(part, w.umem.Data(d.Addr, d.Len)...)
			if w.pool.GiveOne(d.Addr); d.Options&xsk.PktContd == 0 {
				at, part = append(at, part), nil
			}
		}
		p.staged = p.staged[:0]
		byPort = append(byPort, at)
	}
	return byPort
}

// The kernel's copies are the worker's, byte for byte, for random groups and packets: IPv4
// and IPv6, tagged and not, members and switches behind the legs, several legs behind a
// port, PSNs that wrap. What was forwarded is in the ring as it came.
func TestFastCopiesAreTheWorkers(t *testing.T) {
	t.Run("in one buffer", func(t *testing.T) { compareCopies(t, newFastNet(t, 4), false) })
	t.Run("in several", func(t *testing.T) { compareCopies(t, newFastNetOf(t, 4, 4500), true) })
}

func compareCopies(t *testing.T, x *fastNet, long bool) {
	if ok, err := x.programs[0].Clones(); long && !ok {
		t.Skipf("copies of frames in several buffers need Linux 6.6: %v", err)
	}
	w := bareWorker(t, len(x.Ports))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	copied := 0
	for round := range 60 {
		c := drawFastCase(r, w, x, 1+r.IntN(9), round%2 == 1, long)
		ends, open := uint32(0), true
		g := x.put(t, &c.spec, c.next, open)
		var buf, got [4500]byte
		for range 25 {
			frame, k, reth := c.packet(buf[:])
			want := c.copies(t, w, frame, &k, reth)
			x.taps[0].Send(frame)
			for p, tap := range x.taps {
				for range want[p] {
					out := tap.Next()
					i := indexOf(want[p], out)
					if i < 0 {
						t.Fatalf("round %d, %v, PSN %06x, port %d: the copy is none of the worker's\n got %x\nwant %x", round, k.Op, k.PSN, p, out, want[p])
					}
					want[p][i] = nil
					copied++
				}
			}
			if k.Op.Is(rocev2.OpEnd) {
				ends++
			}
			open = !k.Op.Is(rocev2.OpEnd)
			if s := g.State(); s != (fastpath.State{Hi: c.next, Ends: ends, Open: open, Fast: true}) {
				t.Fatalf("round %d: after %v, PSN %06x the group is at %+v; want hi %06x, %d messages, open %v", round, k.Op, k.PSN, s, c.next, ends, open)
			}
			stored, at := loadFromRing(t, g, k.PSN, got[:])
			if !bytes.Equal(stored, frame) || (k.AckReq || asks(k.PSN)) != (at != 0) {
				t.Fatalf("round %d: the ring has another packet (at %v)\n got %x\nwant %x", round, at, stored, frame)
			}
		}
		for i := range c.spec.Legs {
			if gate := g.Gate(i); gate != (fastpath.Gate{Next: c.next, Copies: 25}) {
				t.Fatalf("round %d: gate of leg %d: %+v; want next %06x and 25 copies", round, i, gate, c.next)
			}
		}
		if n, err := g.Counters(); err != nil || n != (fastpath.Counters{}) {
			t.Fatalf("round %d: left to user space: %v, %v", round, n, err)
		}
		if err := g.Delete(); err != nil {
			t.Fatal(err)
		}
	}
	for _, tap := range x.taps {
		tap.Idle()
	}
	t.Logf("%d copies", copied)
}

func indexOf(all [][]byte, b []byte) int {
	for i := range all {
		if bytes.Equal(all[i], b) {
			return i
		}
	}
	return -1
}
