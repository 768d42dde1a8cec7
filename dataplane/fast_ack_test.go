// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// ackCase is a group whose ACKs the programs count, with a receiver at each port but the source's, and another one at
// the last port.
type ackCase struct {
	*fastCase
	x     *fastNet
	w     *worker
	g     *fastpath.Group
	first rocev2.PSN
	acked []rocev2.PSN
	sent  rocev2.PSN
	ends  []uint32 // messages that have ended, up to each packet from first on
	msn   uint32   // messages before first
	mig   bool     // MigReq of the source
}

func newACKCase(t *testing.T, r *rand.Rand, x *fastNet, w *worker, v6 bool) *ackCase {
	c := &ackCase{fastCase: drawFastCase(r, w, x, 0, v6, false), x: x, w: w, msn: r.Uint32() & rocev2.PSNMask, mig: r.IntN(2) == 0}
	c.spec.Window, c.spec.PMTU, c.first = fastpath.Window{}, 1024, c.next
	sourceQPN := rocev2.QPN(1 + r.Uint32N(1<<24-1))
	c.table.legs = []leg{{kind: mcast.Connected, port: 0, mac: c.spec.Source.MAC, ip: rocev2.KeyOf(c.spec.Source.IP), qpn: sourceQPN}}
	c.table.source.migReq = c.mig
	for i := range len(x.Ports) {
		p := min(i+1, len(x.Ports)-1)
		l := fastpath.LegSpec{Port: p, Ifindex: x.ifindex[p], PortMAC: w.ports[p].mac, MAC: c.mac(), IP: c.addr(2), QPN: rocev2.QPN(100 + i), PSNDelta: rocev2.PSN(r.Uint32() & rocev2.PSNMask), Gate: fastpath.Gate{Next: c.next}}
		for l.IP == c.spec.Source.IP || slices.ContainsFunc(c.spec.Legs, func(o fastpath.LegSpec) bool { return o.IP == l.IP }) {
			l.IP = c.addr(2)
		}
		c.spec.Legs = append(c.spec.Legs, l)
		c.acked = append(c.acked, c.first.Prev())
	}
	c.spec.ACK = fastpath.ACKSpec{PortMAC: w.ports[0].mac, QPN: sourceQPN, SourcePort: sourcePort(sourceQPN)}
	c.sent = c.first.Prev()
	c.g = x.put(t, &c.spec, c.next, false)
	c.g.OpenACKs(c.acked, c.sent, c.first, rocev2.MSN(c.msn), 16)
	return c
}

// data has the programs forward the source's next packet.
func (c *ackCase) data(t *testing.T) {
	var b [2048]byte
	op := []rocev2.Opcode{rocev2.SendOnly, rocev2.SendFirst, rocev2.SendLast, rocev2.SendOnlyImm}[c.r.IntN(4)]
	n := 1024
	if op != rocev2.SendFirst {
		n = 1 + c.r.IntN(1024)
	}
	path := rocev2.Path{Src: c.spec.Source.IP, Dst: c.spec.IP, SrcMAC: c.spec.Source.MAC, DstMAC: rocev2.MAC{2, 1}}
	k := rocev2.Packet{Op: op, DestQP: c.spec.QPN, PSN: c.next, MigReq: c.mig}
	c.x.taps[0].Send(b[:rocev2.BuildPacket(b[:], &path, &k, make([]byte, n))])
	for i := range c.spec.Legs {
		c.x.taps[c.spec.Legs[i].Port].Next()
	}
	loadFromRing(t, c.g, c.next, b[:])
	ended := uint32(0)
	if len(c.ends) > 0 {
		ended = c.ends[len(c.ends)-1]
	}
	if op.Is(rocev2.OpEnd) {
		ended++
	}
	c.ends, c.next = append(c.ends, ended), c.next.Next()
}

// frame is an ACK of a leg.
func (c *ackCase) frame(b []byte, leg int, psn rocev2.PSN, change func(*rocev2.Path, *rocev2.Packet)) []byte {
	l := &c.spec.Legs[leg]
	path := rocev2.Path{
		Src: l.IP, Dst: c.spec.IP, SrcMAC: l.MAC, DstMAC: rocev2.MAC{2, 2}, SrcPort: uint16(c.r.Uint32()), TOS: byte(c.r.Uint32()), TTL: byte(c.r.Uint32()),
		ID: uint16(c.r.Uint32()), FlowLabel: c.r.Uint32() & 0xFFFFF,
	}
	k := rocev2.Packet{
		Op: rocev2.Acknowledge, DestQP: c.spec.QPN, PSN: psn.Add(int32(l.PSNDelta)) & rocev2.PSNMask, MigReq: c.r.IntN(2) == 0,
		Syndrome: rocev2.Syndrome(c.r.IntN(0x20)), MSN: rocev2.MSN(1 + c.r.Uint32N(1<<23)),
	}
	if change != nil {
		change(&path, &k)
	}
	return b[:rocev2.BuildPacket(b, &path, &k, nil)]
}

// worker is the group's ACK as the worker makes it.
func (c *ackCase) worker(t *testing.T, cause []byte, psn rocev2.PSN) []byte {
	w := c.w
	addr, _ := w.pool.TakeOne()
	addr += 256
	if r := rocev2.Decode(w.umem.Data(addr, uint32(copy(w.umem.Data(addr, uint32(len(cause))), cause))), &w.frame); r != rocev2.OK {
		t.Fatalf("decode: %v", r)
	}
	w.groups[0] = c.table
	fb := mcast.Feedback{Op: rocev2.Acknowledge, PSN: psn, Syndrome: rocev2.SyndromeACK, MSN: rocev2.MSN(c.msn+c.ends[psn.Sub(c.first)]) & rocev2.PSNMask}
	w.batchNumber++ // or it would replace the ACK before
	w.stageFeedback(&fb, &w.frame)
	w.pool.GiveOne(addr)
	p := w.ports[0]
	d := p.staged[0]
	out := bytes.Clone(w.umem.Data(d.Addr, d.Len))
	w.pool.GiveOne(d.Addr)
	p.staged, w.groups[0].lastACK = p.staged[:0], lastACK{}
	return out
}

// lowest is what all legs have acknowledged.
func (c *ackCase) lowest() rocev2.PSN {
	low := c.acked[0]
	for _, a := range c.acked {
		low = rocev2.MinPSN(low, a)
	}
	return low
}

// The ACKs of the programs are the worker's, byte for byte, and come exactly when what all receivers have has
// moved, for random groups and receivers: IPv4 and IPv6, two receivers behind a port, PSNs and MSNs that wrap.
func TestFastACKsAreTheWorkers(t *testing.T) {
	x := newFastNet(t, 4)
	w := bareWorker(t, len(x.Ports))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	acks, taken := 0, 0
	for round := range 30 {
		c := newACKCase(t, r, x, w, round%2 == 1)
		counts := make([]uint32, len(c.acked))
		for i := range counts {
			word, _ := c.g.Acked(i)
			counts[i] = word.Count
		}
		steps := 40
		if round%4 < 2 { // the source goes round the ring
			steps = 200
			c.g.OpenLimit(c.first.Add(1 << 20))
		}
		for range steps {
			if r.IntN(3) == 0 && c.next.Sub(c.lowest()) < 40 {
				c.data(t)
			}
			leg := r.IntN(len(c.acked))
			n := c.next.Sub(c.acked[leg]) - 1
			if n <= 0 {
				continue
			}
			psn := c.acked[leg].Add(1 + r.Int32N(n))
			var b [256]byte
			frame := c.frame(b[:], leg, psn, nil)
			x.taps[c.spec.Legs[leg].Port].Send(frame)
			c.acked[leg] = psn
			counts[leg] = (counts[leg] + 1) & 0x1FFFFFF
			taken++
			if low := c.lowest(); c.sent.Less(low) {
				got, want := x.taps[0].Next(), c.worker(t, frame, low)
				if !bytes.Equal(got, want) {
					t.Fatalf("round %d: the ACK of %06x is not the worker's\n got %x\nwant %x", round, low, got, want)
				}
				c.sent = low
				acks++
			}
			for end := time.Now().Add(10 * time.Second); ; {
				word, at := c.g.Acked(leg)
				if word == (fastpath.ACKWord{PSN: psn, Count: counts[leg]}) && at != 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("round %d: the word of leg %d is %+v (at %v), want %06x", round, leg, word, at, psn)
				}
			}
			if is := c.g.SentACK(); is.PSN != c.sent {
				t.Fatalf("round %d: the word of the ACK to the source is at %06x, want %06x", round, is.PSN, c.sent)
			}
		}
		if err := c.g.Delete(); err != nil {
			t.Fatal(err)
		}
	}
	for _, tap := range x.taps {
		tap.Idle()
	}
	t.Logf("%d ACKs of receivers, %d to the source", taken, acks)
}

// What is not the usual ACK of a receiver is left to the worker, and raises no word.
func TestFastACKsLeft(t *testing.T) {
	x := newFastNet(t, 4)
	w := bareWorker(t, len(x.Ports))
	r := rand.New(rand.NewPCG(1, 4))
	for _, v6 := range []bool{false, true} {
		for name, change := range map[string]func(*rocev2.Path, *rocev2.Packet){
			"a sequence NAK":          func(_ *rocev2.Path, k *rocev2.Packet) { k.Syndrome = rocev2.SyndromeNAKSequence },
			"an RNR NAK":              func(_ *rocev2.Path, k *rocev2.Packet) { k.Syndrome = 0x21 },
			"a reserved syndrome":     func(_ *rocev2.Path, k *rocev2.Packet) { k.Syndrome = 0x9F },
			"BECN":                    func(_ *rocev2.Path, k *rocev2.Packet) { k.BECN = true },
			"another QPN":             func(_ *rocev2.Path, k *rocev2.Packet) { k.DestQP++ },
			"another address":         func(p *rocev2.Path, _ *rocev2.Packet) { p.Src = p.Dst },
			"another MAC address":     func(p *rocev2.Path, _ *rocev2.Packet) { p.SrcMAC[5]++ },
			"a VLAN tag":              func(p *rocev2.Path, _ *rocev2.Packet) { p.Tagged = true },
			"another P_Key":           func(_ *rocev2.Path, k *rocev2.Packet) { k.PKey = 5 },
			"nothing new":             func(_ *rocev2.Path, k *rocev2.Packet) { k.PSN = k.PSN.Add(-2) & rocev2.PSNMask },
			"what was not sent":       func(_ *rocev2.Path, k *rocev2.Packet) { k.PSN = k.PSN.Next() },
			"half of all PSNs ahead":  func(_ *rocev2.Path, k *rocev2.Packet) { k.PSN = k.PSN.Add(1<<22) & rocev2.PSNMask },
			"AckReq":                  func(_ *rocev2.Path, k *rocev2.Packet) { k.AckReq = true },
			"no ACK, but a CNP":       func(_ *rocev2.Path, k *rocev2.Packet) { k.Op = rocev2.AtomicAck },
			"damage":                  nil,
			"words that are closed":   nil,
			"a group that is revoked": nil,
		} {
			c := newACKCase(t, r, x, w, v6)
			c.data(t)
			c.data(t)
			var b [256]byte
			frame := c.frame(b[:], 0, c.next.Prev(), change)
			switch {
			case len(frame) == 0:
				frame = c.frame(b[:], 0, c.next.Prev(), nil)
				frame[len(frame)-1]++
			case name == "damage":
				frame[len(frame)-5]++ // the MSN
			case name == "words that are closed":
				c.g.CloseACKs()
			case name == "a group that is revoked":
				c.g.Revoke()
			}
			before, _ := c.g.Acked(0)
			left, err := c.g.Counters()
			if err != nil {
				t.Fatal(err)
			}
			x.taps[1].Send(frame)
			for end := time.Now().Add(5 * time.Second); name != "a VLAN tag" || !v6; {
				if n, _ := c.g.Counters(); n[fastpath.NotSource] != left[fastpath.NotSource] || time.Now().After(end) {
					break
				}
			}
			if is, _ := c.g.Acked(0); is != before {
				t.Errorf("%s: the word is %+v, was %+v", name, is, before)
			}
			if n, _ := c.g.Counters(); n[fastpath.NotSource] != left[fastpath.NotSource]+1 {
				t.Errorf("%s: %d packets are left, want one more than %d", name, n[fastpath.NotSource], left[fastpath.NotSource])
			}
			if err := c.g.Delete(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
