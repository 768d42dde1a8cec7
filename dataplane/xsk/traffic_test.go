// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/bpf"
)

// Frames of all lengths come in through the XDP program and go out again by the
// same port, byte for byte.
func TestReceiveAndTransmit(t *testing.T) {
	d := newDevice(t, 512, 64, 1)
	w, s := d.wires[0], d.socks[0]
	var sent, got [4096]byte
	for seed, payload := range []int{0, 1, 18, 64, 256, 1000, 1024, 1458} {
		frame := groupFrame(sent[:], uint64(seed), payload)
		w.send(frame)
		desc := d.receive(s)
		if len(desc) != 1 {
			t.Fatalf("payload %d: %d packets received, want 1", payload, len(desc))
		}
		if !bytes.Equal(d.umem.Data(desc[0].Addr, desc[0].Len), frame) {
			t.Fatalf("payload %d: received bytes differ from those sent", payload)
		}
		if n := s.Send(desc); n != 1 {
			t.Fatalf("Send took %d", n)
		}
		if err := s.Kick(); err != nil {
			t.Fatal(err)
		}
		if out := w.capture(got[:]); !bytes.Equal(out, frame) {
			t.Fatalf("payload %d: transmitted bytes differ: got %d bytes, want %d", payload, len(out), len(frame))
		}
		eventually(t, "the frame is completed", func() bool { return d.complete(s) == 1 })
		d.refill(s)
	}
	c, err := w.prog.Counters()
	if err != nil || c[bpf.XskRoCEv2] != 8 {
		t.Errorf("XDP counted %d group packets (%v), want 8", c[bpf.XskRoCEv2], err)
	}
}

// Tagged frames reach the socket with their tags, and leave with them; and a
// socket works the same where XDP runs in generic mode.
func TestTagsAndGenericMode(t *testing.T) {
	d := newDevice(t, 512, 64, 0)
	st := newSteering(t)
	for name, mode := range map[string]bpf.Mode{"n": bpf.Native, "g": bpf.Generic} {
		w := newWireIn(t, st, "p"+name, "h"+name, mode)
		s := d.open(w, 64)
		d.socks = append(d.socks, s)
		var buf, got [2048]byte
		plain := groupFrame(buf[:], 1, 200)
		for tags := range 3 {
			frame := bytes.Clone(plain[:12])
			for id := range tags {
				frame = append(frame, 0x81, 0x00, 0x20, byte(10+id))
			}
			frame = append(frame, plain[12:]...)
			w.send(frame)
			desc := d.receive(s)
			if !bytes.Equal(d.umem.Data(desc[0].Addr, desc[0].Len), frame) {
				t.Errorf("%s, %d tags: received bytes differ", mode, tags)
			}
			if s.Send(desc) != 1 || s.Kick() != nil {
				t.Errorf("%s, %d tags: cannot send", mode, tags)
			}
			if out := w.capture(got[:]); !bytes.Equal(out, frame) {
				t.Errorf("%s, %d tags: transmitted bytes differ: %d, want %d", mode, tags, len(out), len(frame))
			}
		}
	}
}

// A frame received on each port leaves by every other one, as a copy in a frame
// of its own and, for the last port, in the very frame it arrived in.
func TestSharedUmemReplicates(t *testing.T) {
	const ports = 4
	d := newDevice(t, 1024, 64, ports)
	var sent, got [4096]byte
	for in := range ports {
		frame := groupFrame(sent[:], uint64(in), 1024)
		d.wires[in].send(frame)
		desc := d.receive(d.socks[in])[0]
		for i := 1; i < ports; i++ {
			out := (in + i) % ports
			dd := desc
			if i < ports-1 {
				addr, ok := d.pool.TakeOne()
				if !ok {
					t.Fatal("pool is empty")
				}
				copy(d.umem.Data(addr, desc.Len), d.umem.Data(desc.Addr, desc.Len))
				dd.Addr = addr
			}
			if d.socks[out].Send([]Desc{dd}) != 1 {
				t.Fatal("Send took nothing")
			}
			if err := d.socks[out].Kick(); err != nil {
				t.Fatal(err)
			}
			if b := d.wires[out].capture(got[:]); !bytes.Equal(b, frame) {
				t.Fatalf("port %d to %d: bytes differ (%d, want %d)", in, out, len(b), len(frame))
			}
			eventually(t, "the frame is completed", func() bool { return d.complete(d.socks[out]) == 1 })
		}
	}
}

// More than 100,000 frames go through small rings, which so wrap many times, and
// come out complete, in order and unharmed; no frame of the Umem is lost.
func TestRingsWrap(t *testing.T) {
	const total, ringSize, window = 100_000 + 32, 64, 32
	d := newDevice(t, 512, ringSize, 2)
	in, out := d.wires[0], d.wires[1]
	var sent, got [2048]byte
	for next := uint64(0); next < total; {
		for i := range uint64(window) {
			in.send(groupFrame(sent[:], next+i, 64))
		}
		for done := 0; done < window; {
			desc := d.receive(d.socks[0])
			if n := d.socks[1].Send(desc); n != len(desc) {
				t.Fatalf("Send took %d of %d", n, len(desc))
			}
			if err := d.socks[1].Kick(); err != nil {
				t.Fatal(err)
			}
			done += len(desc)
			d.refill(d.socks[0])
		}
		for range window {
			want := groupFrame(sent[:], next, 64)
			if b := out.capture(got[:]); !bytes.Equal(b, want) {
				t.Fatalf("frame %d of %d differs or is missing (%d bytes)", next, total, len(b))
			}
			next++
		}
		for d.complete(d.socks[1]) > 0 {
		}
	}
	eventually(t, "all frames are completed", func() bool {
		d.complete(d.socks[1])
		return d.socks[1].inFlight == 0
	})
	d.refill(d.socks[0])
	if n := d.pool.Len() + 2*ringSize; n != d.umem.Frames() {
		t.Errorf("%d frames are in the pool or the fill rings, want all %d", n, d.umem.Frames())
	}
	st, err := d.socks[1].Stats()
	if err != nil || st.TxInvalid != 0 || st.Kicks == 0 {
		t.Errorf("statistics %+v, %v", st, err)
	}
}

// One Kick empties the TX ring: by one system call, where the kernel lets its budget
// be more than 32 packets. And a full completion ring limits TxRoom rather than losing frames.
func TestKickDrains(t *testing.T) {
	d := newDevice(t, 1024, 256, 1)
	w, s := d.wires[0], d.socks[0]
	var buf [4096]byte
	var desc []Desc
	for i := range 256 {
		addr, _ := d.pool.TakeOne()
		n := copy(d.umem.Frame(addr), groupFrame(buf[:], uint64(i), 512))
		desc = append(desc, Desc{Addr: addr, Len: uint32(n)})
	}
	if n := s.Send(desc); n != 256 {
		t.Fatalf("Send took %d, want 256", n)
	}
	if err := s.Kick(); err != nil || s.TxPending() != 0 {
		t.Fatalf("after Kick %d packets are pending, %v", s.TxPending(), err)
	}
	calls := uint64(1)
	if unix.SetsockoptInt(s.fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, txBudget) != nil {
		calls = 256 / 32 // Linux before 6.17
	}
	if s.kicks != calls {
		t.Errorf("256 packets took %d system calls, want %d", s.kicks, calls)
	}
	eventually(t, "the completion ring is full", func() bool { return s.completion.available(256) == 256 })
	if n := s.TxRoom(); n != 0 {
		t.Errorf("TxRoom is %d while 256 frames wait for Complete, want 0", n)
	}
	addr, _ := d.pool.TakeOne()
	if n := s.Send([]Desc{{Addr: addr, Len: 60}}); n != 0 {
		t.Errorf("Send took %d without room in the completion ring", n)
	}
	d.pool.GiveOne(addr)
	if n := d.complete(s); n != 256 || s.TxRoom() != 256 {
		t.Errorf("%d frames completed, TxRoom %d; want 256 and 256", n, s.TxRoom())
	}
	var got [4096]byte
	for i := range 256 {
		if !bytes.Equal(w.capture(got[:]), groupFrame(buf[:], uint64(i), 512)) {
			t.Fatalf("packet %d differs or is missing", i)
		}
	}
}

// The data path allocates nothing, in either direction.
func TestHotPathAllocatesNothing(t *testing.T) {
	d := newDevice(t, 512, 64, 1)
	w, s := d.wires[0], d.socks[0]
	frame := groupFrame(make([]byte, 1024), 1, 256)
	poller := newPoller(t, []*Socket{s})
	moved := 0
	allocs := testing.AllocsPerRun(500, func() {
		w.send(frame)
		if _, err := poller.Wait(0); err != nil {
			t.Fatal(err)
		}
		n := s.Receive(d.rx)
		moved += s.Send(d.rx[:n])
		if err := s.Kick(); err != nil || s.TxPending() != 0 {
			t.Fatal(err, s.TxPending())
		}
		d.complete(s)
		d.refill(s)
		_ = s.TxRoom()
	})
	if allocs != 0 {
		t.Errorf("%v allocations per packet, want 0", allocs)
	}
	if moved < 400 {
		t.Errorf("only %d packets of 501 were moved: this test saw too little", moved)
	}
}
