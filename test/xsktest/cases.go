// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsktest

import (
	"bytes"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

func receives(p *portTest) {
	p.fill(8)
	for seed, payload := range []int{0, 1, 64, 1000, 1400} {
		want := p.frame(byte(seed), payload)
		p.Arrive(want)
		got, ds := p.receive(1)
		if !bytes.Equal(got, want) || ds[0].Options != 0 {
			p.Errorf("%d bytes of payload: %d bytes with options %#x, want %d bytes as sent", payload, len(got), ds[0].Options, len(want))
		}
	}
	p.free(p.o.Frames - 3)
	if n := p.Queue.Receive(p.rx); n != 0 {
		p.Errorf("%d more packets", n)
	}
}

func sends(p *portTest) {
	for seed, payload := range []int{0, 18, 64, 1000, 1400} {
		want := p.frame(byte(seed), payload)
		before, _ := p.Queue.Consumed()
		if n := p.Queue.Send(p.stage(want, 2048)); n != 1 {
			p.Fatalf("Send took %d", n)
		}
		if now, pending := p.Queue.Consumed(); now != before || pending != 1 {
			p.Errorf("before Kick %d descriptors are taken and %d pending, want none and 1", now-before, pending)
		}
		p.kick()
		if now, pending := p.Queue.Consumed(); now-before != 1 || pending != 0 {
			p.Errorf("after Kick %d descriptors are taken and %d pending, want 1 and none", now-before, pending)
		}
		if got := p.Left(); !bytes.Equal(got, want) {
			p.Errorf("%d bytes of payload: %d bytes left, want %d as staged", payload, len(got), len(want))
		}
		p.complete(1)
	}
	p.free(p.o.Frames)
	p.is("Kick with nothing to send", p.Queue.Kick(), nil)
}

func ringsAreFinite(p *portTest) {
	if fill, tx := p.Queue.FillRoom(), p.Queue.TxRoom(); fill != p.o.Ring || tx != p.o.Ring {
		p.Fatalf("room for %d frames to fill and %d to send, want %d each", fill, tx, p.o.Ring)
	}
	n := p.Pool.Take(p.addrs[:p.o.Ring+3])
	if got := p.Queue.Fill(p.addrs[:n]); got != p.o.Ring || p.Queue.FillRoom() != 0 {
		p.Errorf("Fill took %d of %d frames, and has room for %d", got, n, p.Queue.FillRoom())
	}
	p.Pool.Give(p.addrs[p.o.Ring:n])
	var ds []xsk.Desc
	for i := range p.o.Ring + 3 {
		ds = append(ds, p.stage(p.frame(byte(i), 10), 2048)...)
	}
	if got := p.Queue.Send(ds); got != p.o.Ring || p.Queue.TxRoom() != 0 {
		p.Errorf("Send took %d of %d frames, and has room for %d", got, len(ds), p.Queue.TxRoom())
	}
	for _, d := range ds[p.o.Ring:] {
		p.Pool.GiveOne(d.Addr)
	}
	p.kick()
	p.complete(p.o.Ring)
	if n := p.Queue.TxRoom(); n != p.o.Ring {
		p.Errorf("room to send %d when all have left", n)
	}
	for i := range p.o.Ring {
		if got := p.Left(); !bytes.Equal(got, p.frame(byte(i), 10)) {
			p.Fatalf("frame %d is not the one that was staged as such", i)
		}
	}
	p.free(p.o.Frames - p.o.Ring)
}

func completionsTakeRoom(p *portTest) {
	for i := range p.o.Ring {
		p.Queue.Send(p.stage(p.frame(byte(i), 10), 2048))
		p.kick()
	}
	if n := p.Queue.TxRoom(); n != 0 {
		p.Errorf("room to send %d while none was taken back", n)
	}
	p.complete(p.o.Ring)
	if n := p.Queue.TxRoom(); n != p.o.Ring {
		p.Errorf("room to send %d when all were taken back", n)
	}
}

func noFrames(p *portTest) {
	p.fill(2)
	for i := range 5 {
		p.Arrive(p.frame(byte(i), 100))
	}
	for i := range 2 {
		if got, _ := p.receive(1); !bytes.Equal(got, p.frame(byte(i), 100)) {
			p.Errorf("frame %d is not the one that came as such", i)
		}
	}
	p.eventually("three frames are counted", func() bool {
		s, err := p.Queue.Stats()
		if err != nil {
			p.Fatal(err)
		}
		return s.RxFillEmpty == 3
	})
	p.fill(2)
	p.Arrive(p.frame(9, 100))
	if got, _ := p.receive(1); !bytes.Equal(got, p.frame(9, 100)) {
		p.Error("what came next is not received")
	}
}

func receivesChain(p *portTest) {
	p.fill(p.o.Ring)
	long, short := p.frame(1, 4096), p.frame(2, 10)
	for range 2 {
		p.Arrive(long)
		p.Arrive(short)
	}
	size := p.Umem.MaxReceive()
	for range 2 {
		got, ds := p.receive(3)
		if !bytes.Equal(got, long) || ds[0].Len != uint32(size) || ds[1].Len != uint32(size) ||
			ds[0].Options != xsk.PktContd || ds[1].Options != xsk.PktContd || ds[2].Options != 0 {
			p.Errorf("%d bytes in %+v, want %d, full buffers first", len(got), ds, len(long))
		}
		if got, _ := p.receive(1); !bytes.Equal(got, short) {
			p.Error("the short packet after it is not what came")
		}
	}
	// Descriptors for only a part of a packet get nothing of it.
	p.Arrive(short)
	p.Arrive(long)
	n := 0
	p.eventually("the short packet is received", func() bool {
		n = p.Queue.Receive(p.rx[:3])
		return n > 0
	})
	p.Pool.GiveOne(p.rx[0].Addr)
	if n != 1 || xsk.ChainLen(p.rx[:n]) != 1 {
		p.Errorf("%d descriptors, want the one of the short packet", n)
	}
	if got, _ := p.receive(3); !bytes.Equal(got, long) {
		p.Error("the long packet is not what came")
	}
	// A packet for which there would never be room is in pieces.
	p.Arrive(long)
	for i := range 3 {
		p.eventually("a piece is received", func() bool { return p.Queue.Receive(p.rx[:1]) == 1 })
		if p.rx[0].Options != xsk.Torn {
			p.Errorf("piece %d has options %#x", i, p.rx[0].Options)
		}
		p.Pool.GiveOne(p.rx[0].Addr)
	}
}

func sendsChain(p *portTest) {
	var all []xsk.Desc
	for i := range 6 { // 18 descriptors
		all = append(all, p.stage(p.frame(byte(i), 4096), 2000)...)
	}
	if n := p.Queue.Send(all); n != 15 || p.Queue.TxRoom() != 1 {
		p.Fatalf("Send took %d descriptors and leaves room for %d, want 5 whole packets and 1", n, p.Queue.TxRoom())
	}
	p.kick()
	p.complete(15)
	if n := p.Queue.Send(all[15:]); n != 3 {
		p.Fatalf("Send took %d descriptors of the last packet", n)
	}
	p.kick()
	p.complete(3)
	for i := range 6 {
		if got := p.Left(); !bytes.Equal(got, p.frame(byte(i), 4096)) {
			p.Errorf("packet %d: %d bytes left, not those that were staged", i, len(got))
		}
	}
	p.free(p.o.Frames)
}

func oneOwner(p *portTest) {
	p.fill(1)
	filled := p.addrs[0]
	d := p.stage(p.frame(1, 10), 2048)
	p.Queue.Send(d)
	other, _ := p.Pool.TakeOne()
	p.panics("a frame is filled twice", func() { p.Queue.Fill([]uint64{filled}) })
	p.panics("a frame is sent twice", func() { p.Queue.Send(d) })
	p.panics("a filled frame is sent", func() { p.Queue.Send([]xsk.Desc{{Addr: filled, Len: 60}}) })
	p.panics("a sent frame is freed", func() { p.Pool.GiveOne(d[0].Addr) })
	p.Pool.GiveOne(other)
	p.panics("a free frame is filled", func() { p.Queue.Fill([]uint64{other}) })
}

func refusesBadDescriptors(p *portTest) {
	a, _ := p.Pool.TakeOne()
	for what, d := range map[string]xsk.Desc{
		"no Ethernet header":  {Addr: a, Len: 13},
		"beyond the frame":    {Addr: a + 2000, Len: 60},
		"part of a packet":    {Addr: a, Len: 60, Options: xsk.PktContd},
		"an option not known": {Addr: a, Len: 60, Options: xsk.Torn},
	} {
		p.panics(what, func() { p.Queue.Send([]xsk.Desc{d}) })
	}
}

func refusesBadChains(p *portTest) {
	part := func(n uint32, options uint32) xsk.Desc {
		a, _ := p.Pool.TakeOne()
		return xsk.Desc{Addr: a, Len: n, Options: options}
	}
	var long []xsk.Desc
	for range xsk.MaxChain {
		long = append(long, part(60, xsk.PktContd))
	}
	for what, ds := range map[string][]xsk.Desc{
		"the end is missing":  {part(60, xsk.PktContd)},
		"an empty buffer":     {part(60, xsk.PktContd), part(0, 0)},
		"a short first":       {part(13, xsk.PktContd), part(60, 0)},
		"an option not known": {part(60, xsk.Torn)},
	} {
		p.panics(what, func() { p.Queue.Send(ds) })
	}
	if p.o.Ring > xsk.MaxChain {
		p.panics("too many buffers", func() { p.Queue.Send(append(long, part(60, 0))) })
	}
}

func waitsForLink(p *portTest) {
	p.fill(2)
	want := p.frame(1, 100)
	p.SetUp(false)
	p.Queue.Send(p.stage(want, 2048))
	p.is("Kick while the interface is down", p.Queue.Kick(), xsk.ErrDown)
	p.is("State while the interface is down", p.Queue.State(), xsk.ErrDown)
	if _, pending := p.Queue.Consumed(); pending != 1 {
		p.Errorf("%d frames pending, want 1", pending)
	}
	p.SetUp(true)
	p.is("State of an interface that is up again", p.Queue.State(), nil)
	p.kick()
	if !bytes.Equal(p.Left(), want) {
		p.Error("the frame that waited has not left")
	}
	p.complete(1)
	p.Arrive(want)
	if got, _ := p.receive(1); !bytes.Equal(got, want) {
		p.Error("nothing is received afterwards")
	}
}

func vanishes(p *portTest) {
	p.fill(8)
	p.Arrive(p.frame(1, 100))
	p.Arrive(p.frame(2, 100))
	p.eventually("both frames have arrived", func() bool { return p.Queue.Occupancy().RX == 2 })
	p.Vanish()
	p.Queue.Send(p.stage(p.frame(3, 100), 2048))
	p.is("Kick of an interface that has vanished", p.Queue.Kick(), xsk.ErrGone)
	p.is("State of an interface that has vanished", p.Queue.State(), xsk.ErrGone)
	if n := p.Queue.Reclaim(p.addrs); n != 0 {
		p.Errorf("%d frames come back before Close", n)
	}
	p.is("Close", p.Queue.Close(), nil)
	if o := p.Queue.Occupancy(); o != (xsk.Occupancy{}) {
		p.Errorf("%+v after Close", o)
	}
	for n := -1; n != 0; {
		n = p.Queue.Reclaim(p.addrs[:5])
		p.Pool.Give(p.addrs[:n])
	}
	p.free(p.o.Frames)
}

func waits(p *portTest) {
	p.fill(2)
	signals := 5 // a signal, as the Go runtime has them, ends a wait
	for range 2 {
		for start := time.Now(); ; start = time.Now() {
			woken, err := p.Poller.Wait(20 * time.Millisecond)
			if d := time.Since(start); woken || err != nil || d < 15*time.Millisecond && signals == 0 {
				p.Errorf("woken %v, %v after %v, want the time of 20 ms", woken, err, d)
			} else if d < 15*time.Millisecond {
				signals--
				continue
			}
			break
		}
	}
	go p.Poller.Wake()
	woken, err := p.Poller.Wait(5 * time.Second)
	for ; !woken && err == nil && signals > 0; signals-- {
		woken, err = p.Poller.Wait(5 * time.Second)
	}
	if !woken || err != nil {
		p.Errorf("woken %v, %v", woken, err)
	}
	p.Poller.Wake()
	p.Poller.Wake()
	if woken, err := p.Poller.Wait(0); !woken || err != nil {
		p.Errorf("woken %v, %v by what happened before", woken, err)
	}
	if woken, err := p.Poller.Wait(0); woken || err != nil {
		p.Errorf("woken %v, %v a second time", woken, err)
	}
	p.Arrive(p.frame(1, 100))
	start := time.Now()
	p.eventually("the frame is received", func() bool {
		if woken, err := p.Poller.Wait(5 * time.Second); woken || err != nil {
			p.Fatalf("woken %v, %v", woken, err)
		}
		return p.Queue.Receive(p.rx) == 1
	})
	if d := time.Since(start); d > 4*time.Second {
		p.Errorf("a frame ended the wait after %v", d)
	}
}

func occupancy(p *portTest) {
	if s := p.Queue.Sizes(); s != (xsk.Occupancy{RX: p.o.Ring, Fill: p.o.Ring, TX: p.o.Ring, Completion: p.o.Ring}) {
		p.Errorf("sizes %+v", s)
	}
	p.fill(5)
	p.Arrive(p.frame(1, 100))
	p.Queue.Send(p.stage(p.frame(2, 100), 2048))
	p.eventually("one of five frames has arrived", func() bool {
		return p.Queue.Occupancy() == xsk.Occupancy{RX: 1, Fill: 4, TX: 1}
	})
	p.kick()
	p.eventually("the frame is completed", func() bool {
		return p.Queue.Occupancy() == xsk.Occupancy{RX: 1, Fill: 4, Completion: 1}
	})
}
