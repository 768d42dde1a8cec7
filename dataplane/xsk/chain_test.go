// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// deliver makes the kernel put descriptors into the RX ring as far as there is
// room and frames to receive into. Each is good for one buffer; more says which
// of them go on. It returns how many it put there.
func (l *loop) deliver(more []bool) int {
	n := min(len(more), l.krx.room(len(more)), l.kfill.available(len(more)))
	for i := range n {
		d := Desc{Addr: l.kfill.get(i) + headroom, Len: 1000}
		if more[i] {
			d.Options = PktContd
		}
		l.krx.put(i, d)
	}
	l.kfill.release(n)
	l.krx.publish(n)
	return n
}

func newChainLoop(t testing.TB, frames, size int) (*loop, *Pool) {
	t.Helper()
	u := newTestUmem(t, frames, 2048)
	l := newLoop(u, size)
	l.sg = true
	return l, NewPool(u)
}

// Whatever packets come, in whatever parts they show in the ring, and however
// much room the caller has: Receive hands over whole packets, in order, or marks
// every buffer of one that it cannot hand over whole.
func TestReceiveIsWholePackets(t *testing.T) {
	for _, size := range []int{64, 8} { // the latter is shorter than a chain may be
		t.Run(fmt.Sprint(size), func(t *testing.T) { receiveIsWholePackets(t, size) })
	}
}

func receiveIsWholePackets(t *testing.T, size int) {
	l, pool := newChainLoop(t, 256, size)
	rapid.Check(t, func(t *rapid.T) {
		var coming []bool // buffers that have not arrived; true if the packet goes on
		var lengths []int // the lengths of packets not received to their end, in buffers
		taken := 0        // buffers of the first of them that came as Torn
		t.Repeat(map[string]func(*rapid.T){
			"packet": func(t *rapid.T) {
				n := rapid.OneOf(rapid.IntRange(1, 7), rapid.IntRange(1, 70)).Draw(t, "buffers")
				lengths = append(lengths, n)
				coming = append(append(coming, slices.Repeat([]bool{true}, n-1)...), false)
			},
			"arrive": func(t *rapid.T) {
				addrs := make([]uint64, l.FillRoom())
				n := pool.Take(addrs)
				pool.Give(addrs[l.Fill(addrs[:n]):n])
				n = l.deliver(coming[:min(len(coming), rapid.IntRange(0, 64).Draw(t, "n"))])
				coming = coming[n:]
			},
			"receive": func(t *rapid.T) {
				room := rapid.OneOf(rapid.Just(64), rapid.IntRange(1, 40)).Draw(t, "room")
				d := make([]Desc, room)
				d = d[:l.Receive(d)]
				for rest := d; len(rest) > 0; {
					n := ChainLen(rest)
					for _, p := range rest[:n] {
						pool.GiveOne(p.Addr)
					}
					switch {
					case rest[0].Options == Torn:
						if taken == 0 && lengths[0] <= min(room, size, MaxChain) {
							t.Fatalf("a packet of %d buffers was torn where there is room for %d", lengths[0], min(room, size))
						}
						taken++
						if taken == lengths[0] {
							lengths, taken = lengths[1:], 0
						}
					case taken > 0 || n != lengths[0] || n > MaxChain:
						t.Fatalf("a packet of %d buffers, want one of %d of which %d are torn", n, lengths[0], taken)
					default:
						lengths = lengths[1:]
					}
					rest = rest[n:]
				}
				// Nothing that could have been handed over is left.
				if len(d) == 0 && len(lengths) > 0 && lengths[0]-taken <= l.rx.available(size) {
					t.Fatal("a whole packet was not received")
				}
			},
		})
		for len(coming) > 0 || len(lengths) > 0 { // for the next run
			addrs := make([]uint64, l.FillRoom())
			n := pool.Take(addrs)
			pool.Give(addrs[l.Fill(addrs[:n]):n])
			coming = coming[l.deliver(coming):]
			d := make([]Desc, 64)
			for _, p := range d[:l.Receive(d)] {
				pool.GiveOne(p.Addr)
				if p.Options == Torn {
					if taken++; taken == lengths[0] {
						lengths, taken = lengths[1:], 0
					}
				} else if p.Options == 0 {
					lengths = lengths[1:]
				}
			}
		}
	})
}

// Send stages whole packets or none, up to the room in the TX and completion
// rings, counted in descriptors.
func TestSendIsWholePackets(t *testing.T) {
	l, pool := newChainLoop(t, 256, 64)
	rapid.Check(t, func(t *rapid.T) {
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				var d []Desc
				var ends []int
				for range rapid.IntRange(0, 8).Draw(t, "packets") {
					n := rapid.IntRange(1, MaxChain).Draw(t, "buffers")
					for i := range n {
						addr, ok := pool.TakeOne()
						if !ok {
							t.Skip("no frame")
						}
						d = append(d, Desc{Addr: addr, Len: 14, Options: PktContd})
						if i > 0 {
							d[len(d)-1].Len = 1
						}
					}
					d[len(d)-1].Options = 0
					ends = append(ends, len(d))
				}
				room, before := l.TxRoom(), l.inFlight
				n := l.Send(d)
				want := 0
				for _, e := range ends {
					if e <= room {
						want = e
					}
				}
				if n != want || l.inFlight != before+n || l.TxRoom() != room-n {
					t.Fatalf("sent %d of %d with room for %d, want %d; in flight %d, room %d", n, len(d), room, want, l.inFlight, l.TxRoom())
				}
				for _, p := range d[n:] {
					pool.GiveOne(p.Addr)
				}
			},
			"transmit": func(t *rapid.T) { l.transmit() },
			"complete": func(t *rapid.T) {
				addrs := make([]uint64, rapid.IntRange(0, 64).Draw(t, "n"))
				pool.Give(addrs[:l.Complete(addrs)])
			},
		})
		l.transmit()
		addrs := make([]uint64, 64)
		pool.Give(addrs[:l.Complete(addrs)])
		if pool.Len() != 256 || l.TxRoom() != 64 {
			t.Fatalf("%d frames in the pool, room for %d; want 256 and 64", pool.Len(), l.TxRoom())
		}
	})
}

// A chain that the kernel would swallow is a bug, and panics.
func TestFaultyChainPanics(t *testing.T) {
	l, pool := newChainLoop(t, 64, 64)
	chain := func(n int) []Desc {
		d := make([]Desc, n)
		for i := range d {
			addr, _ := pool.TakeOne()
			d[i] = Desc{Addr: addr, Len: 100, Options: PktContd}
		}
		d[n-1].Options = 0
		return d
	}
	for name, tc := range map[string]struct {
		spoil func([]Desc) []Desc
		want  string
	}{
		"no end":               {func(d []Desc) []Desc { d[2].Options = PktContd; return d }, "in the middle of a packet"},
		"empty buffer":         {func(d []Desc) []Desc { d[1].Len = 0; return d }, "packet of 0 bytes"},
		"short first":          {func(d []Desc) []Desc { d[0].Len = 13; return d }, "packet of 13 bytes"},
		"beyond the frame":     {func(d []Desc) []Desc { d[2].Addr += 2000; return d }, "not within one frame"},
		"another option":       {func(d []Desc) []Desc { d[0].Options |= 2; return d }, "options 0x3"},
		"torn":                 {func(d []Desc) []Desc { d[2].Options = Torn; return d }, "options 0x80000000"},
		"too many":             {func(d []Desc) []Desc { d[2].Options = PktContd; return append(d, chain(MaxChain-2)...) }, "not a packet"},
		"a frame of the other": {func(d []Desc) []Desc { l.umem.owner[d[1].Addr>>l.umem.shift] = 7; return d }, "belongs to the kernel"},
	} {
		d := tc.spoil(chain(3))
		func() {
			defer func() {
				if got, ok := recover().(string); !ok || !strings.Contains(got, tc.want) {
					t.Errorf("%s: panic %q, want %q", name, got, tc.want)
				}
			}()
			l.Send(d)
		}()
		for i := range l.umem.owner { // whoever had it
			l.umem.owner[i] = ownedByPool
		}
		pool = NewPool(l.umem)
	}
}

// BenchmarkChains is one batch of 32 packets in two buffers each through all four
// rings, the kernel's side of them included.
func BenchmarkChains(b *testing.B) {
	l, pool := newChainLoop(b, 1024, 256)
	addrs, rx := make([]uint64, 64), make([]Desc, 64)
	b.ReportAllocs()
	for b.Loop() {
		l.Fill(addrs[:pool.Take(addrs)])
		l.arrive(32, 2)
		if n := l.Receive(rx); n != 64 || l.Send(rx[:n]) != 64 {
			b.Fatal("not all were moved")
		}
		l.transmit()
		pool.Give(addrs[:l.Complete(addrs)])
	}
}
