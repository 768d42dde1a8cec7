// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/bpf"
)

// addJumbo adds a port of the given MTU with a multi-buffer socket.
func (d *device) addJumbo(st *bpf.Steering, mode bpf.Mode, mtu, ringSize int) {
	d.t.Helper()
	n := string(rune('0' + len(d.wires)))
	w := newWireMTU(d.t, st, "p"+n, "h"+n, mode, mtu)
	cfg := w.config(ringSize)
	cfg.MultiBuffer = true
	s := d.openAs(w, cfg)
	if !s.MultiBuffer() {
		d.t.Error("the socket does not say that it is a multi-buffer one")
	}
	d.wires, d.socks = append(d.wires, w), append(d.socks, s)
}

func newJumboDevice(t *testing.T, frameSize, ports, mtu int) *device {
	t.Helper()
	d := newEmptyDevice(t, 512, frameSize, 64)
	st := newSteering(t)
	for range ports {
		d.addJumbo(st, bpf.Native, mtu, 64)
	}
	return d
}

// lengths are the lengths of a packet's buffers.
func lengths(d []Desc) (n []uint32) {
	for _, p := range d {
		n = append(n, p.Len)
	}
	return n
}

// bytesOf returns the bytes of a packet.
func (d *device) bytesOf(packet []Desc) (b []byte) {
	for _, p := range packet {
		b = append(b, d.umem.Data(p.Addr, p.Len)...)
	}
	return b
}

// transmit sends packets on s and waits until all their buffers are completed.
func (d *device) transmit(s *Socket, packets []Desc) {
	d.t.Helper()
	if n := s.Send(packets); n != len(packets) {
		d.t.Fatalf("Send took %d of %d descriptors", n, len(packets))
	}
	if err := s.Kick(); err != nil || s.TxPending() != 0 {
		d.t.Fatalf("Kick: %v, %d descriptors pending", err, s.TxPending())
	}
	done := 0
	eventually(d.t, "every buffer is completed", func() bool {
		done += d.complete(s)
		return done == len(packets)
	})
}

// all fails unless every frame is in the pool or in a fill ring.
func (d *device) all() {
	d.t.Helper()
	n := d.pool.Len()
	for _, s := range d.socks {
		d.refill(s)
		n = d.pool.Len()
	}
	for _, s := range d.socks {
		n += len(s.fill.entries) - s.FillRoom()
	}
	if n != d.umem.Frames() {
		d.t.Errorf("%d frames are in the pool or the fill rings, want all %d", n, d.umem.Frames())
	}
}

// Frames that are longer than a buffer come as chains, cut where the kernel cuts
// them, and go on through another port bit for bit; short ones come in one
// buffer as ever.
func TestJumboFrames(t *testing.T) {
	for size, tests := range map[int][]struct {
		frame int
		want  []uint32
	}{
		2048: {
			{60, []uint32{60}}, {1792, []uint32{1792}}, {1793, []uint32{1792, 1}}, {3585, []uint32{1792, 1792, 1}},
			{4154, []uint32{1792, 1792, 570}}, {8958, []uint32{1792, 1792, 1792, 1792, 1790}}, {9014, []uint32{1792, 1792, 1792, 1792, 1792, 54}},
		},
		4096: {
			{60, []uint32{60}}, {3840, []uint32{3840}}, {3841, []uint32{3840, 1}}, {3842, []uint32{3840, 2}},
			{4154, []uint32{3840, 314}}, {8958, []uint32{3840, 3840, 1278}}, {9014, []uint32{3840, 3840, 1334}},
		},
	} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			d := newJumboDevice(t, size, 2, 9000)
			var sent, got [16384]byte
			for i, tc := range tests {
				frame := groupFrame(sent[:], uint64(i), tc.frame-42)
				d.wires[0].send(frame)
				packet := d.receive(d.socks[0])
				if n := ChainLen(packet); n != len(packet) || !slices.Equal(lengths(packet), tc.want) {
					t.Fatalf("%d bytes: came as %v, want %v", tc.frame, lengths(packet), tc.want)
				}
				if !bytes.Equal(d.bytesOf(packet), frame) {
					t.Fatalf("%d bytes: received bytes differ", tc.frame)
				}
				d.transmit(d.socks[1], packet)
				if b := d.wires[1].capture(got[:]); !bytes.Equal(b, frame) {
					t.Fatalf("%d bytes: sent bytes differ: %d arrived", tc.frame, len(b))
				}
				d.refill(d.socks[0])
			}
			d.all()
		})
	}
}

// A burst of chains and short frames, in batches that end in the middle of
// packets, goes through a ring and its budget of 32 buffers a call without loss
// and in order, and also in copies that are cut elsewhere.
func TestJumboBurst(t *testing.T) {
	for _, size := range []int{2048, 4096} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			d := newJumboDevice(t, size, 2, 4200)
			d.rx = d.rx[:20] // neither 2 nor 3 buffers divide it with single ones between
			var sent, got [8192]byte
			const packets = 12
			frameOf := func(i int) []byte {
				if i%4 == 3 {
					return groupFrame(sent[:], uint64(i), 64)
				}
				return groupFrame(sent[:], uint64(i), 4112)
			}
			for round := range 5 {
				for i := range packets {
					d.wires[0].send(frameOf(round*packets + i))
				}
				var batch []Desc
				for n := 0; n < packets; {
					in := d.receive(d.socks[0])
					for rest := in; len(rest) > 0; n++ {
						rest = rest[ChainLen(rest):]
					}
					batch = append(batch, in...)
				}
				d.transmit(d.socks[1], d.recut(batch, round%2 == 1))
				for i := range packets {
					frame := frameOf(round*packets + i)
					if b := d.wires[1].capture(got[:]); !bytes.Equal(b, frame) {
						t.Fatalf("round %d, packet %d: bytes differ: %d arrived, want %d", round, i, len(b), len(frame))
					}
				}
				d.refill(d.socks[0])
			}
			d.all()
		})
	}
}

// recut returns packets themselves, or copies of them that use the frames from
// their first byte to their last.
func (d *device) recut(packets []Desc, anew bool) (out []Desc) {
	if !anew {
		return packets
	}
	for rest := packets; len(rest) > 0; {
		n := ChainLen(rest)
		b := d.bytesOf(rest[:n])
		for len(b) > 0 {
			addr, ok := d.pool.TakeOne()
			if !ok {
				d.t.Fatal("pool is empty")
			}
			k := copy(d.umem.Frame(addr), b)
			b = b[k:]
			out = append(out, Desc{Addr: addr, Len: uint32(k), Options: PktContd})
		}
		out[len(out)-1].Options = 0
		rest = rest[n:]
	}
	for _, p := range packets {
		d.pool.GiveOne(p.Addr)
	}
	return out
}

// The longest chain that Send takes is one that the kernel sends and completes:
// MaxChain buffers, which are two bytes long here but for the first.
func TestLongestChain(t *testing.T) {
	d := newJumboDevice(t, 2048, 1, 9000)
	var sent, got [2048]byte
	frame := groupFrame(sent[:], 1, 30+2*(MaxChain-1))
	var chain []Desc
	for b := frame; len(b) > 0; {
		n := 2
		if len(chain) == 0 {
			n = len(frame) - 2*(MaxChain-1)
		}
		addr, _ := d.pool.TakeOne()
		copy(d.umem.Frame(addr), b[:n])
		chain = append(chain, Desc{Addr: addr, Len: uint32(n), Options: PktContd})
		b = b[n:]
	}
	chain[len(chain)-1].Options = 0
	if len(chain) != MaxChain {
		t.Fatalf("%d buffers", len(chain))
	}
	d.transmit(d.socks[0], chain)
	if b := d.wires[0].capture(got[:]); !bytes.Equal(b, frame) {
		t.Fatalf("sent bytes differ: %d arrived, want %d", len(b), len(frame))
	}
	d.all()
}

// Frames also come as chains where XDP runs in generic mode.
func TestJumboInGenericMode(t *testing.T) {
	d := newEmptyDevice(t, 512, 2048, 64)
	st := newSteering(t)
	for range 2 {
		d.addJumbo(st, bpf.Generic, 9000, 64)
	}
	var sent, got [16384]byte
	for i, n := range []int{60, 4154, 8958} {
		frame := groupFrame(sent[:], uint64(i), n-42)
		d.wires[0].send(frame)
		packet := d.receive(d.socks[0])
		if ChainLen(packet) != len(packet) || !bytes.Equal(d.bytesOf(packet), frame) {
			t.Fatalf("%d bytes came as %v, or they differ", n, lengths(packet))
		}
		d.transmit(d.socks[1], packet)
		if b := d.wires[1].capture(got[:]); !bytes.Equal(b, frame) {
			t.Fatalf("%d bytes: sent bytes differ: %d arrived", n, len(b))
		}
	}
}

// Ports of both kinds share one Umem, in whichever order they are opened: chains
// arrive at one and what fits a buffer passes between them. At the port that is
// not for chains long frames are dropped, and counted.
func TestMixedPortsShareUmem(t *testing.T) {
	for name, jumboFirst := range map[string]bool{"single, jumbo": false, "jumbo, single": true} {
		t.Run(name, func(t *testing.T) {
			d := newEmptyDevice(t, 512, 2048, 64)
			st := newSteering(t)
			jumbo, single := 1, 0
			if jumboFirst {
				jumbo, single = 0, 1
			}
			for i := range 4 { // the later two join the registrations of the first two
				if i%2 == jumbo {
					d.addJumbo(st, bpf.Native, 9000, 64)
					continue
				}
				n := string(rune('0' + i))
				w := newWireMTU(t, st, "p"+n, "h"+n, bpf.Native, 9000)
				d.wires, d.socks = append(d.wires, w), append(d.socks, d.open(w, 64))
			}
			var sent, got [16384]byte
			for _, from := range []int{jumbo, jumbo + 2} {
				frame := groupFrame(sent[:], uint64(from), 4112)
				d.wires[from].send(frame)
				packet := d.receive(d.socks[from])
				if len(packet) != 3 || !bytes.Equal(d.bytesOf(packet), frame) {
					t.Fatalf("came as %v, or bytes differ", lengths(packet))
				}
				d.transmit(d.socks[jumbo], packet)
				if b := d.wires[jumbo].capture(got[:]); !bytes.Equal(b, frame) {
					t.Fatal("sent bytes differ")
				}
			}
			for _, from := range []int{single, single + 2} {
				d.wires[from].send(groupFrame(sent[:], 1, 4112))
				frame := groupFrame(sent[:], uint64(from), 1000)
				d.wires[from].send(frame)
				packet := d.receive(d.socks[from])
				if len(packet) != 1 || !bytes.Equal(d.bytesOf(packet), frame) {
					t.Fatalf("came as %v, or bytes differ", lengths(packet))
				}
				if st, err := d.socks[from].Stats(); err != nil || st.RxDropped != 1 {
					t.Errorf("statistics %+v, %v; want 1 dropped", st, err)
				}
				d.transmit(d.socks[jumbo], packet)
				if b := d.wires[jumbo].capture(got[:]); !bytes.Equal(b, frame) {
					t.Fatal("sent bytes differ")
				}
			}
			d.all()
		})
	}
}

// With too few frames to receive into, a long frame is dropped whole: no part of
// it is received, and the frames stay for the next one.
func TestJumboNeedsAllItsFrames(t *testing.T) {
	d := newEmptyDevice(t, 4, 2048, 64)
	d.addJumbo(newSteering(t), bpf.Native, 9000, 64)
	w, s := d.wires[0], d.socks[0]
	var sent [16384]byte
	w.send(groupFrame(sent[:], 1, 8916)) // 5 buffers, there are 4
	frame := groupFrame(sent[:], 2, 4112)
	w.send(frame)
	if packet := d.receive(s); len(packet) != 3 || !bytes.Equal(d.bytesOf(packet), frame) {
		t.Errorf("came as %v, or bytes differ", lengths(packet))
	}
	if st, err := s.Stats(); err != nil || st.RxDropped != 1 {
		t.Errorf("statistics %+v, %v; want 1 dropped", st, err)
	}
}

// What the kernel has of a chain when the socket is closed can be had back.
func TestReclaimChains(t *testing.T) {
	d := newJumboDevice(t, 2048, 1, 9000)
	s := d.socks[0]
	var sent [16384]byte
	for i := range 3 {
		d.wires[0].send(groupFrame(sent[:], uint64(i), 4112))
	}
	eventually(t, "all are in the RX ring", func() bool { return s.rx.available(9) == 9 })
	packet := d.rx[:s.Receive(d.rx[:4])] // one of three buffers; the second does not fit
	if len(packet) != 3 || s.Send(packet) != 3 {
		t.Fatalf("received %v", lengths(packet))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	d.socks = nil
	for n := -1; n != 0; {
		n = s.Reclaim(d.addrs[:7])
		d.pool.Give(d.addrs[:n])
	}
	if n := d.pool.Len(); n != d.umem.Frames() {
		t.Errorf("%d of %d frames came back", n, d.umem.Frames())
	}
}

// The data path allocates nothing with chains either.
func TestJumboAllocatesNothing(t *testing.T) {
	d := newJumboDevice(t, 2048, 1, 9000)
	w, s := d.wires[0], d.socks[0]
	frame := groupFrame(make([]byte, 8192), 1, 4112)
	moved := 0
	allocs := testing.AllocsPerRun(300, func() {
		w.send(frame)
		n := s.Receive(d.rx)
		if n > 0 {
			moved += s.Send(d.rx[:n]) / ChainLen(d.rx[:n])
		}
		if err := s.Kick(); err != nil || s.TxPending() != 0 {
			t.Fatal(err, s.TxPending())
		}
		d.complete(s)
		d.refill(s)
	})
	if allocs != 0 {
		t.Errorf("%v allocations per packet, want 0", allocs)
	}
	if moved < 200 {
		t.Errorf("only %d packets of 301 were moved: this test saw too little", moved)
	}
}

// A port without the mode is refused with what to do.
func TestMultiBufferErrors(t *testing.T) {
	d := newJumboDevice(t, 2048, 1, 9000)
	cfg := d.wires[0].config(16)
	cfg.MultiBuffer, cfg.Queue = true, 7
	_, err := Open(d.umem, cfg)
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("queue 7? `ethtool -l p0` shows how many there are; and frames in several buffers need Linux 6.6")) {
		t.Errorf("queue 7: %v", err)
	}
	if err := explain(unix.EOPNOTSUPP, cfg); !bytes.Contains([]byte(err.Error()), []byte("several buffers")) {
		t.Error(err)
	}
}
