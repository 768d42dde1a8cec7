// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A retained packet comes back with the same buffers and bytes, in any order and any number
// of times, also where another packet was retained in the same frames. The buffers of a
// released packet, and no others, are in the pool.
func TestRetention(t *testing.T) {
	u, err := xsk.NewUmem(64, 2048)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	pool := xsk.NewPool(u)
	path := rocev2.Path{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.9.9.9"), SrcPort: 0xC123}
	rapid.Check(t, func(t *rapid.T) {
		r := newRetention(u)
		type packet struct {
			handle mcast.Handle
			ds     []xsk.Desc
			bytes  []byte
		}
		var held []packet
		longest, psn := 1, rocev2.PSN(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch {
			case pool.Len() >= 3 && rapid.Bool().Draw(t, "retain"):
				buf := make([]byte, 6000)
				psn++
				n := rocev2.BuildPacket(buf, &path, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: 1, PSN: psn}, make([]byte, rapid.SampledFrom([]int{0, 1000, 2048, 4096}).Draw(t, "payload")))
				p := packet{bytes: buf[:n]}
				for rest := p.bytes; len(rest) > 0; {
					a, _ := pool.TakeOne()
					k := copy(u.Data(a+256, uint32(u.MaxReceive())), rest)
					rest = rest[k:]
					p.ds = append(p.ds, xsk.Desc{Addr: a + 256, Len: uint32(k), Options: xsk.PktContd})
				}
				p.ds[len(p.ds)-1].Options = 0
				p.handle = r.handleOf(p.ds[0].Addr)
				r.forgetDecoded()
				r.retain(p.ds)
				longest = max(longest, len(p.ds))
				held = append(held, p)
			case len(held) > 0 && rapid.Bool().Draw(t, "release"):
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				before := pool.Len()
				r.release([]mcast.Handle{held[i].handle}, pool)
				if n := pool.Len() - before; n != len(held[i].ds) {
					t.Fatalf("%d frames of %d are free", n, len(held[i].ds))
				}
				held = slices.Delete(held, i, i+1)
			case len(held) > 0:
				p := &held[rapid.IntRange(0, len(held)-1).Draw(t, "which")]
				for range 2 {
					ds := r.get(p.handle)
					var got []byte
					for _, d := range ds {
						got = append(got, u.Data(d.Addr, d.Len)...)
					}
					if !slices.Equal(ds, p.ds) || !bytes.Equal(got, p.bytes) {
						t.Fatalf("%d bytes in %v, want %d in %v", len(got), ds, len(p.bytes), p.ds)
					}
					var f rocev2.Frame
					if rocev2.Decode(p.bytes, &f); f.BTH().PSN() != r.frame.BTH().PSN() || r.frame.Len() != f.Len() {
						t.Fatalf("decoded PSN %d with %d bytes, want %d with %d", r.frame.BTH().PSN(), r.frame.Len(), f.BTH().PSN(), f.Len())
					}
				}
			}
			if r.maxBuffers != longest {
				t.Fatalf("the longest packet has %d buffers, said %d", longest, r.maxBuffers)
			}
		}
		for _, p := range held {
			r.release([]mcast.Handle{p.handle}, pool)
		}
		if pool.Len() != 64 {
			t.Fatalf("%d of 64 frames are free in the end", pool.Len())
		}
	})
}
