// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/rocev2"
)

// wire sends any frame from a host, and sees what the host receives.
type wire struct {
	fd  int
	buf [4096]byte
}

func newWire(t *testing.T, h *fabric.Host) *wire {
	t.Helper()
	w := &wire{}
	var err error
	w.fd, err = h.NS.PacketSocket(h.Interface, lab.AllFrames, func(fd int) error {
		return errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20_000}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(w.fd) })
	return w
}

// send sends a frame. One that the kernel has no room for, or a link that is down, is lost.
func (w *wire) send(b []byte) { _, _ = unix.Write(w.fd, b) }

// next returns the next frame; false if none came within 20 ms.
func (w *wire) next(f *rocev2.Frame) bool {
	n, err := unix.Read(w.fd, w.buf[:])
	if err != nil {
		return false
	}
	rocev2.Decode(w.buf[:n], f)
	return true
}

// stranger is a host at a port of its own, in no group and without a key. From the moment at which it is started it claims,
// again and again, to be each member: by ARP, ND and its frames' source addresses, and acknowledges what the source has sent
// in each member's name.
type stranger struct {
	*host
	w      *wire
	rounds atomic.Int64
}

// hostile starts the strangers. They attack the group that s.attacked names.
func (s *scene) hostile(names ...string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, name := range names {
		x := &stranger{host: s.hosts[name], w: newWire(s.t, s.hosts[name].Host)}
		s.strangers = append(s.strangers, x)
		all.Go(func() {
			for ctx.Err() == nil {
				if g := s.attacked.Load(); g != nil {
					x.attack(g)
				}
				x.rounds.Add(1)
				select {
				case <-ctx.Done():
				case <-time.After(10 * time.Millisecond): // the machine is shared
				}
			}
		})
	}
	s.t.Cleanup(func() { cancel(); all.Wait() })
}

// attack sends a round of frames in the name of each member that is one.
func (x *stranger) attack(g *group) {
	g.mu.Lock()
	var members []*member
	for _, m := range g.members {
		if m.live {
			members = append(members, m)
		}
	}
	number := g.qpn
	g.mu.Unlock()
	var b [256]byte
	own := rocev2.MAC(x.MAC)
	for _, m := range members {
		if m.Switch == x.Switch {
			x.claim(x.w, m.IPv4, m.IPv6)
			learn := make([]byte, 60) // for the bridge's forwarding database
			copy(learn, x.gateway[:])
			copy(learn[6:], m.MAC)
			learn[12], learn[13] = 0x88, 0xB5 // for local experiments
			x.w.send(learn)
		}
		psn := (m.info.RQPSN + rocev2.PSN(m.due.Load()) - 1) & rocev2.PSNMask
		for _, src := range []rocev2.MAC{own, rocev2.MAC(m.MAC)} {
			p := rocev2.Path{SrcMAC: src, DstMAC: x.gateway, Src: m.ip, Dst: g.ip, SrcPort: 0xC123}
			x.w.send(b[:rocev2.BuildAck(b[:], &p, number, psn, rocev2.SyndromeACK, 0, false)])
		}
	}
}

// claim has a host say that addresses are its own: by gratuitous ARP and advertisements, and by requests of its gateway, which
// make entries.
func (h *host) claim(w *wire, ipv4, ipv6 netip.Addr) {
	var b [128]byte
	own := rocev2.MAC(h.MAC)
	path := rocev2.Path{SrcMAC: own, DstMAC: h.gateway, Src: ipv6}
	for _, target := range []netip.Addr{ipv4, gatewayOf(ipv4)} {
		w.send(b[:rocev2.BuildARP(b[:], &path, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: own, SenderIP: ipv4, TargetIP: target})])
	}
	toSwitch := func(n int) { // alone: hosts still find each other
		copy(b[:], h.gateway[:])
		w.send(b[:n])
	}
	toSwitch(rocev2.BuildUnsolicitedAdvertisement(b[:], &path, ipv6))
	toSwitch(rocev2.BuildNeighborSolicitation(b[:], &path, gatewayOf(ipv6)))
}

// announce has a host say where it is, as hosts do that have sent nothing for a while: to its gateway, and to the group.
func (h *host) announce(w *wire) {
	h.claim(w, h.IPv4, h.IPv6)
	var b [128]byte
	path := rocev2.Path{SrcMAC: rocev2.MAC(h.MAC), DstMAC: rocev2.BroadcastMAC, Src: h.IPv6}
	if group := h.s.address(); group.Is4() {
		w.send(b[:rocev2.BuildARP(b[:], &path, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: path.SrcMAC, SenderIP: h.IPv4, TargetIP: group})])
	} else {
		w.send(b[:rocev2.BuildNeighborSolicitation(b[:], &path, group)])
	}
}

// gatewayOf is the address of the bridge of a host's switch.
func gatewayOf(ip netip.Addr) netip.Addr {
	b := ip.AsSlice()
	b[len(b)-1] = 254
	a, _ := netip.AddrFromSlice(b)
	return a
}

// deaf has a host receive nothing, until the function that it returns is called: the strangers alone answer in its name.
func (s *scene) deaf(h *host) (hear func()) {
	s.t.Helper()
	var l link.Link
	s.must(h.NS.Do(func() error {
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Apache-2.0", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1 /* XDP_DROP */), asm.Return()}})
		if err != nil {
			return err
		}
		defer p.Close()
		i, err := netlink.LinkByName(fabric.HostInterface)
		if err == nil {
			l, err = link.AttachXDP(link.XDPOptions{Program: p, Interface: i.Attrs().Index})
		}
		return err
	}))
	return func() { s.t.Helper(); s.must(l.Close()) }
}

// silenced sends a message while a member hears nothing. The message is not complete before the member has it, whatever the
// strangers acknowledge in its name meanwhile, and then it is.
func (g *group) silenced(when, from, name string) {
	s := g.s
	s.t.Helper()
	hear := s.deaf(s.hosts[name])
	g.mu.Lock()
	before := g.posted
	g.mu.Unlock()
	done, ended := g.done.Load(), make(chan error, 1)
	go func() { ended <- g.transfer(from, func(n int) bool { return n > 0 }) }()
	s.until("a message is sent", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.posted > before
	})
	s.strangersTry(when, 12, func() bool { return g.done.Load() != done })
	if g.done.Load() != done {
		s.t.Errorf("FALSE COMPLETION: %s, a message is complete while %s hears nothing\n%s", when, name, s.describe())
	}
	hear()
	if err := <-ended; err != nil {
		s.t.Fatalf("%s, after %s has heard nothing for a while, the group cannot be used: %v\n%s", when, name, err, s.describe())
	}
}

// quiet ends the attack, and has the members say where they are: hosts that are in no group are not protected from each other.
func (s *scene) quiet() {
	s.t.Helper()
	s.attacked.Store(nil)
	s.strangersTry("for the end of the attack", 2, func() bool { return false })
	for _, m := range s.group.members {
		if m.dev != nil {
			m.announce(newWire(s.t, m.Host))
		}
	}
}

// strangersTry waits for rounds of all strangers, or until enough.
func (s *scene) strangersTry(when string, rounds int64, enough func() bool) {
	s.t.Helper()
	begin := make([]int64, len(s.strangers))
	for i, x := range s.strangers {
		begin[i] = x.rounds.Load()
	}
	s.until(fmt.Sprintf("%s, %d rounds of the strangers", when, rounds), func() bool {
		for i, x := range s.strangers {
			if x.rounds.Load() < begin[i]+rounds {
				return enough()
			}
		}
		return true
	})
}
