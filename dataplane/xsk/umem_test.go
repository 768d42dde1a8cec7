// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func newTestUmem(t testing.TB, frames, size int) *Umem {
	t.Helper()
	u, err := NewUmem(frames, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	})
	return u
}

func TestNewUmemRefuses(t *testing.T) {
	for _, tc := range []struct {
		frames, size int
		want         string
	}{
		{16, 1024, "2048 or 4096"}, {16, 3000, "2048 or 4096"}, {16, 8192, "2048 or 4096"},
		{0, 2048, "UMEM of 0 frames"}, {-1, 2048, "UMEM of -1 frames"}, {1 << 30, 4096, "UMEM of 1073741824 frames"},
	} {
		if _, err := NewUmem(tc.frames, tc.size); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("NewUmem(%d, %d): %v, want %q", tc.frames, tc.size, err, tc.want)
		}
	}
}

// The memory may be in huge pages: it begins where one does. All of it is there.
func TestUmemIsAligned(t *testing.T) {
	for _, frames := range []int{1, 64, 3000} {
		u, err := NewUmem(frames, 4096)
		if err != nil {
			t.Fatal(err)
		}
		if at := addressOf(u.mem); at%hugePage != 0 {
			t.Errorf("%d frames begin at %#x", frames, at)
		}
		if len(u.mem) != frames*4096 || cap(u.mem) != len(u.mem) {
			t.Errorf("%d frames: %d bytes, of %d", frames, len(u.mem), cap(u.mem))
		}
		u.Frame(uint64(frames-1) * 4096)[4095] = 1
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestUmemAddresses(t *testing.T) {
	u := newTestUmem(t, 4, 2048)
	const addr = 2*2048 + 256
	if u.Base(addr) != 4096 || u.Room(addr) != 1792 || u.MaxReceive() != 1792 || u.FrameSize() != 2048 || u.Frames() != 4 {
		t.Errorf("base %d, room %d, longest %d, size %d, frames %d", u.Base(addr), u.Room(addr), u.MaxReceive(), u.FrameSize(), u.Frames())
	}
	d := u.Data(addr, 100)
	if len(d) != 100 || cap(d) != 1792 {
		t.Errorf("Data: len %d, cap %d; want 100 and 1792: the end of the frame", len(d), cap(d))
	}
	d[0] = 7
	f := u.Frame(addr)
	if len(f) != 2048 || cap(f) != 2048 || f[256] != 7 {
		t.Errorf("Frame: len %d, cap %d, byte 256 is %d", len(f), cap(f), f[256])
	}
}

// The pool never has a frame twice, and never loses one.
func TestPoolKeepsFrames(t *testing.T) {
	u := newTestUmem(t, 16, 2048)
	pool := NewPool(u)
	rapid.Check(t, func(t *rapid.T) {
		held := map[uint64]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				addrs := make([]uint64, rapid.IntRange(0, 20).Draw(t, "n"))
				n := pool.Take(addrs)
				if n != min(len(addrs), 16-len(held)) {
					t.Fatalf("took %d of %d while %d are held", n, len(addrs), len(held))
				}
				for _, a := range addrs[:n] {
					if held[a] || a%2048 != 0 {
						t.Fatalf("took %#x, which is held: %v", a, held[a])
					}
					held[a] = true
				}
			},
			"give": func(t *rapid.T) {
				for a := range held {
					pool.GiveOne(a + uint64(rapid.IntRange(0, 2047).Draw(t, "offset")))
					delete(held, a)
					break
				}
			},
			"": func(t *rapid.T) {
				if pool.Len()+len(held) != 16 {
					t.Fatalf("%d free and %d held of 16", pool.Len(), len(held))
				}
			},
		})
		for a := range held {
			pool.GiveOne(a)
		}
	})
}

func TestPoolIsLIFO(t *testing.T) {
	pool := NewPool(newTestUmem(t, 4, 2048))
	a, _ := pool.TakeOne()
	b, _ := pool.TakeOne()
	pool.GiveOne(a)
	pool.GiveOne(b)
	if got, ok := pool.TakeOne(); !ok || got != b {
		t.Errorf("took %#x, want the frame given last, %#x", got, b)
	}
}

// Misuse of a frame panics where it happens, with the frame and its owner.
func TestFrameMisusePanics(t *testing.T) {
	u := newTestUmem(t, 4, 2048)
	pool := NewPool(u)
	a, _ := pool.TakeOne()
	s := &Socket{umem: u, id: firstSocketID}
	ours, _ := ends[uint64](4, 0)
	s.fill = *ours
	comp, _ := ends[uint64](4, 0)
	s.completion = *comp
	tx, _ := ends[Desc](4, 0)
	s.tx = *tx
	if s.Fill([]uint64{a}) != 1 {
		t.Fatal("Fill took nothing")
	}
	free := pool.free[0]
	b, _ := pool.TakeOne()
	for name, tc := range map[string]struct {
		f    func()
		want string
	}{
		"give what the kernel has":   {func() { pool.GiveOne(a) }, "belongs to the kernel (socket 0), not to the worker"},
		"fill with it twice":         {func() { s.Fill([]uint64{a}) }, "belongs to the kernel"},
		"send what the kernel has":   {func() { s.Send([]Desc{{Addr: a, Len: 60}}) }, "belongs to the kernel"},
		"free what is free":          {func() { pool.GiveOne(free) }, "belongs to the pool, not to the worker"},
		"second pool of a used UMEM": {func() { NewPool(u) }, "not to the pool"},
		"send beyond the frame":      {func() { s.Send([]Desc{{Addr: b + 2000, Len: 60}}) }, "not within one frame"},
		"send no Ethernet header":    {func() { s.Send([]Desc{{Addr: b, Len: 13}}) }, "not within one frame"},
		"send part of a packet":      {func() { s.Send([]Desc{{Addr: b, Len: 60, Options: PktContd}}) }, "options 0x1"},
	} {
		func() {
			defer func() {
				if got, ok := recover().(string); !ok || !strings.Contains(got, tc.want) {
					t.Errorf("%s: panic %q, want %q", name, got, tc.want)
				}
			}()
			tc.f()
		}()
	}
}

// BenchmarkPool is the cost of taking 64 frames and giving them back.
func BenchmarkPool(b *testing.B) {
	pool := NewPool(newTestUmem(b, 1024, 2048))
	addrs := make([]uint64, 64)
	b.ReportAllocs()
	for b.Loop() {
		pool.Give(addrs[:pool.Take(addrs)])
	}
}
