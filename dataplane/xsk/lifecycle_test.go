// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A queue can be bound again at once after Close, any number of times, and works.
func TestRebindAfterClose(t *testing.T) {
	d := newDevice(t, 512, 64, 1)
	w := d.wires[0]
	var sent [2048]byte
	for i := range 10 {
		s := d.socks[0]
		frame := groupFrame(sent[:], uint64(i), 100)
		w.send(frame)
		desc := d.receive(s)
		if !bytes.Equal(d.umem.Data(desc[0].Addr, desc[0].Len), frame) {
			t.Fatalf("round %d: bytes differ", i)
		}
		d.pool.GiveOne(desc[0].Addr)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for n := -1; n != 0; {
			n = s.Reclaim(d.addrs[:10])
			d.pool.Give(d.addrs[:n])
		}
		if n := d.pool.Len(); n != d.umem.Frames() {
			t.Fatalf("round %d: %d of %d frames came back", i, n, d.umem.Frames())
		}
		d.socks[0] = d.open(w, 64)
	}
}

func TestQueueIsBusy(t *testing.T) {
	d := newDevice(t, 512, 64, 1)
	other, err := NewUmem(64, 2048)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for name, u := range map[string]*Umem{"same UMEM": d.umem, "another UMEM": other} {
		_, err := Open(u, d.wires[0].config(64))
		if !errors.Is(err, ErrBusy) || !errors.Is(err, unix.EBUSY) {
			t.Errorf("%s: second socket on p0 queue 0: %v, want ErrBusy", name, err)
			continue
		}
		if s := err.Error(); !strings.Contains(s, "p0 queue 0") || !strings.Contains(s, "is another gleamd running there?") {
			t.Errorf("%s: error names neither queue nor remedy: %s", name, s)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	d := newDevice(t, 64, 16, 1)
	good := d.wires[0].config(16)
	for _, tc := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"no such interface", func(c *Config) { c.Ifindex = 9999 }, "no such interface"},
		{"no such queue", func(c *Config) { c.Queue = 7 }, "have a queue 7?"},
		{"ring size", func(c *Config) { c.TxSize = 100 }, "TX ring of 100 entries"},
		{"zero-copy on veth", func(c *Config) { c.Ifindex, c.ZeroCopy = 1, ZeroCopy }, "no zero-copy mode"},
		{"negative queue", func(c *Config) { c.Queue = -1 }, "queue -1"},
	} {
		c := good
		tc.change(&c)
		s, err := Open(d.umem, c)
		if err == nil {
			s.Close()
			t.Errorf("%s: no error", tc.name)
		} else if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %q does not say %q", tc.name, err, tc.want)
		}
	}
}

// A port goes down and up again, and frames flow again.
func TestInterfaceDownAndUp(t *testing.T) {
	d := newDevice(t, 512, 64, 1)
	w, s := d.wires[0], d.socks[0]
	link, err := netlink.LinkByName(w.port)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetDown(link); err != nil {
		t.Fatal(err)
	}
	addr, _ := d.pool.TakeOne()
	var sent, got [2048]byte
	frame := groupFrame(sent[:], 1, 100)
	copy(d.umem.Frame(addr), frame)
	s.Send([]Desc{{Addr: addr, Len: uint32(len(frame))}})
	if err := s.Kick(); !errors.Is(err, ErrDown) {
		t.Fatalf("Kick on a port that is down: %v, want ErrDown", err)
	}
	if err := s.State(); !errors.Is(err, ErrDown) {
		t.Errorf("state of a port that is down: %v, want ErrDown", err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		t.Fatal(err)
	}
	if err := s.State(); err != nil {
		t.Errorf("state of a port that is up again: %v", err)
	}
	if err := s.Kick(); err != nil {
		t.Fatalf("Kick after the port came up: %v", err)
	}
	if !bytes.Equal(w.capture(got[:]), frame) {
		t.Error("the frame that waited for the port was not sent")
	}
	w.waitUp()
	w.send(frame)
	if desc := d.receive(s); !bytes.Equal(d.umem.Data(desc[0].Addr, desc[0].Len), frame) {
		t.Error("received bytes differ after the port came up")
	}
}

// The interface of the socket that registered the UMEM is deleted while frames
// are everywhere: nothing panics, the state is clear, the frames can be had
// back, the other port works on, and a new port can join the UMEM.
func TestInterfaceVanishes(t *testing.T) {
	d := newDevice(t, 512, 64, 2)
	var sent, got [2048]byte
	frame := groupFrame(sent[:], 1, 100)
	d.wires[0].send(frame)
	d.wires[0].send(frame)
	s := d.socks[0]
	eventually(t, "both frames are in the RX ring", func() bool { return s.rx.available(2) == 2 })
	link, err := netlink.LinkByName("p0")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkDel(link); err != nil {
		t.Fatal(err)
	}
	addr, _ := d.pool.TakeOne()
	copy(d.umem.Frame(addr), frame)
	s.Send([]Desc{{Addr: addr, Len: uint32(len(frame))}})
	if err := s.Kick(); !errors.Is(err, ErrGone) {
		t.Errorf("Kick on a port that is gone: %v, want ErrGone", err)
	}
	if err := d.socks[1].State(); err != nil {
		t.Errorf("state of the other port: %v", err)
	}
	if s.Receive(d.rx[:1]) != 1 { // the ring is still there; the other frame stays in it
		t.Fatal("nothing left in the RX ring")
	}
	d.pool.GiveOne(d.rx[0].Addr)
	d.refill(s)
	poller := newPoller(t, d.socks)
	start := time.Now()
	for range 3 {
		if _, err := poller.Wait(20 * time.Millisecond); err != nil {
			t.Errorf("Wait: %v", err)
		}
	}
	if took := time.Since(start); took < 40*time.Millisecond {
		t.Errorf("three waits of 20 ms took %v: the vanished port keeps the poller awake", took)
	}
	if _, err := s.Stats(); err != nil {
		t.Log(err)
	}

	st := newSteering(t)
	d.wires = append(d.wires, newWire(t, st, "p2", "h2"))
	d.socks = append(d.socks, d.open(d.wires[2], 64)) // joins while the owner of the UMEM is gone, but not closed
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	d.socks = d.socks[1:]
	for n := -1; n != 0; {
		n = s.Reclaim(d.addrs)
		d.pool.Give(d.addrs[:n])
	}
	if n := d.pool.Len() + 2*64; n != d.umem.Frames() {
		t.Errorf("%d frames are in the pool or the fill rings, want all %d", n, d.umem.Frames())
	}
	d.wires[1].send(frame)
	desc := d.receive(d.socks[0])
	if d.socks[1].Send(desc) != len(desc) || d.socks[1].Kick() != nil {
		t.Error("cannot send on the new port")
	}
	if !bytes.Equal(d.wires[2].capture(got[:]), frame) {
		t.Error("from the old port to the new one: bytes differ")
	}
}

// A port that only receives finds out by State that it is gone.
func TestStateOfVanishedInterface(t *testing.T) {
	d := newDevice(t, 64, 16, 1)
	if err := d.socks[0].State(); err != nil {
		t.Errorf("state of a port that is up: %v", err)
	}
	link, err := netlink.LinkByName("p0")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkDel(link); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.socks[0].State(); !errors.Is(err, ErrGone) {
			t.Errorf("state of a port that is gone: %v, want ErrGone", err)
		}
	}
	if _, err := Open(d.umem, d.wires[0].config(16)); !errors.Is(err, unix.ENODEV) {
		t.Errorf("open on a port that is gone: %v, want ENODEV", err)
	}
}

// Every refusal of the kernel comes with what to do about it, and as its cause.
func TestErrorsNameTheRemedy(t *testing.T) {
	for errno, want := range map[unix.Errno]string{
		unix.EPERM:        "CAP_NET_RAW",
		unix.EACCES:       "CAP_NET_RAW",
		unix.EAFNOSUPPORT: "CONFIG_XDP_SOCKETS",
		unix.ENOBUFS:      "RLIMIT_MEMLOCK",
		unix.ENOMEM:       "RLIMIT_MEMLOCK",
		unix.ENODEV:       "no such interface",
		unix.EOPNOTSUPP:   "copy mode",
		unix.EBUSY:        "another gleamd",
		unix.EINVAL:       "ethtool -l p3",
		unix.EFAULT:       "bad address",
	} {
		err := explain(step("bind it", errno), Config{Ifname: "p3", Queue: 1})
		if !errors.Is(err, errno) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q does not say %q, or lost the cause", unix.ErrnoName(errno), err, want)
		}
	}
}

func TestUmemInUseIsNotFreed(t *testing.T) {
	d := newDevice(t, 64, 16, 1)
	if err := d.umem.Close(); err == nil || !strings.Contains(err.Error(), "p0 queue 0") {
		t.Errorf("Close of a UMEM in use: %v, want an error that names p0 queue 0", err)
	}
}

func TestPollerIsWoken(t *testing.T) {
	d := newDevice(t, 64, 16, 1)
	p := newPoller(t, d.socks)
	if woken, err := p.Wait(0); woken || err != nil {
		t.Errorf("woken %v, %v before anything happened", woken, err)
	}
	go p.Wake()
	if woken, err := p.Wait(-1); !woken || err != nil {
		t.Errorf("woken %v, %v", woken, err)
	}
}
