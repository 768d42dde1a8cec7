// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsktest

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Port is a queue with the other end of its wire, for Conform.
type Port struct {
	Umem   *xsk.Umem
	Pool   *xsk.Pool // the pool of all frames but those in Queue
	Queue  xsk.BoundQueue
	Poller xsk.Poller         // the poller of Queue
	Arrive func(frame []byte) // the other end sends a frame
	Left   func() []byte      // the next frame that the other end got; nil: there is none
	SetUp  func(up bool)
	Vanish func() // the interface is deleted
}

// Options of a Port, whose frames and rings Conform can fill.
type Options struct {
	Frames, FrameSize int
	Ring              int // entries of each ring
	MTU               int
	MultiBuffer       bool
}

// The addresses of Conform's frames, which are RoCEv2. The wire may drop all others.
var (
	conformGroup = netip.MustParseAddr("10.77.0.1")
	conformHost  = netip.MustParseAddr("10.1.0.1")
)

// Conform tests that the queues that open makes behave as a worker needs it. Each case
// has a Port of its own.
func Conform(t *testing.T, open func(t *testing.T, o Options) *Port) {
	for _, c := range conformCases {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Frames: 128, FrameSize: 2048, Ring: 16, MTU: 1500}
			if c.multiBuffer {
				o.MTU, o.MultiBuffer = 9000, true
			}
			p := &portTest{T: t, Port: open(t, o), o: o}
			p.addrs, p.rx = make([]uint64, o.Frames), make([]xsk.Desc, o.Frames)
			c.run(p)
		})
	}
}

var conformCases = []struct {
	name        string
	multiBuffer bool
	run         func(*portTest)
}{
	{"a received frame has the bytes that came", false, receives},
	{"a sent frame has the bytes that were staged, and comes back", false, sends},
	{"rings take what they have room for", false, ringsAreFinite},
	{"frames that are not completed take room", false, completionsTakeRoom},
	{"without frames to receive into, frames are lost and counted", false, noFrames},
	{"a long packet is received whole", true, receivesChain},
	{"a long packet is sent whole, or not at all", true, sendsChain},
	{"a frame has one owner", false, oneOwner},
	{"what is no packet is not sent", false, refusesBadDescriptors},
	{"what is no packet in several buffers is not sent", true, refusesBadChains},
	{"frames wait while the interface is down", false, waitsForLink},
	{"frames come back when the interface has vanished", false, vanishes},
	{"a wait ends with a frame, a wake, or the time", false, waits},
	{"the rings' occupancy", false, occupancy},
}

type portTest struct {
	*testing.T
	*Port
	o     Options
	addrs []uint64
	rx    []xsk.Desc
}

// frame is a frame to a group with a payload that is a function of seed.
func (p *portTest) frame(seed byte, payload int) []byte {
	path := rocev2.Path{Src: conformHost, Dst: conformGroup, SrcMAC: rocev2.MAC{2, 1}, DstMAC: rocev2.MAC{2, 2}, SrcPort: 0xC000}
	k := rocev2.Packet{Op: rocev2.SendOnly, DestQP: 0x4711, PSN: rocev2.PSN(seed)}
	buf := make([]byte, payload+200)
	return buf[:rocev2.BuildPacket(buf, &path, &k, bytes.Repeat([]byte{seed}, payload))]
}

// fill gives the queue n frames to receive into.
func (p *portTest) fill(n int) {
	p.Helper()
	if got := p.Pool.Take(p.addrs[:n]); got != n {
		p.Fatalf("%d free frames, want %d", got, n)
	}
	if got := p.Queue.Fill(p.addrs[:n]); got != n {
		p.Fatalf("Fill took %d of %d frames", got, n)
	}
}

// stage puts a frame into buffers of the UMEM, each with at most size bytes.
func (p *portTest) stage(frame []byte, size int) (ds []xsk.Desc) {
	p.Helper()
	for len(frame) > 0 {
		a, ok := p.Pool.TakeOne()
		if !ok {
			p.Fatal("no free frame")
		}
		n := copy(p.Umem.Frame(a)[:size], frame)
		frame = frame[n:]
		ds = append(ds, xsk.Desc{Addr: a, Len: uint32(n), Options: xsk.PktContd})
	}
	ds[len(ds)-1].Options = 0
	return ds
}

// packet returns the bytes of a packet.
func (p *portTest) packet(ds []xsk.Desc) (b []byte) {
	for _, d := range ds {
		b = append(b, p.Umem.Data(d.Addr, d.Len)...)
	}
	return b
}

// receive returns the next n descriptors that are received, and frees their frames.
func (p *portTest) receive(n int) (packet []byte, ds []xsk.Desc) {
	p.Helper()
	p.eventually("the packet is received", func() bool {
		got := p.Queue.Receive(p.rx[:n])
		ds = append(ds, p.rx[:got]...)
		return len(ds) >= n
	})
	packet = p.packet(ds)
	for _, d := range ds {
		p.Pool.GiveOne(d.Addr)
	}
	return packet, ds
}

// kick has all staged descriptors sent.
func (p *portTest) kick() {
	p.Helper()
	p.eventually("all descriptors are taken", func() bool {
		if err := p.Queue.Kick(); err != nil {
			p.Fatal(err)
		}
		_, pending := p.Queue.Consumed()
		return pending == 0
	})
}

// complete waits until n frames have come back, and frees them.
func (p *portTest) complete(n int) {
	p.Helper()
	done := 0
	p.eventually("the frames are completed", func() bool {
		k := p.Queue.Complete(p.addrs)
		p.Pool.Give(p.addrs[:k])
		done += k
		return done >= n
	})
	if done != n {
		p.Errorf("%d frames are completed, want %d", done, n)
	}
}

func (p *portTest) eventually(what string, f func() bool) {
	p.Helper()
	for deadline := time.Now().Add(5 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatalf("not in 5 s: %s", what)
		}
	}
}

// panics fails unless f panics.
func (p *portTest) panics(what string, f func()) {
	p.Helper()
	defer func() {
		if recover() == nil {
			p.Errorf("%s: no panic", what)
		}
	}()
	f()
}

// free fails unless n frames are free.
func (p *portTest) free(n int) {
	p.Helper()
	if got := p.Pool.Len(); got != n {
		p.Errorf("%d frames are free, want %d", got, n)
	}
}

// is reports an error other than want.
func (p *portTest) is(what string, err, want error) {
	p.Helper()
	if !errors.Is(err, want) {
		p.Errorf("%s: %v, want %v", what, err, want)
	}
}
