// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/stranger"
)

// attacker is a host at a port of its own, in no group and without a key. From the moment at which it is started it claims,
// again and again, to be each member: by ARP, ND and its frames' source addresses, and acknowledges what the source has sent
// in each member's name.
type attacker struct {
	*stranger.Wire
	rounds atomic.Int64
}

// hostile starts the strangers. They attack the group that s.attacked names.
func (s *scene) hostile(names ...string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, name := range names {
		x := &attacker{Wire: stranger.New(s.t, s.hosts[name].Host)}
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
func (x *attacker) attack(g *group) {
	g.mu.Lock()
	var members []*member
	for _, m := range g.members {
		if m.live {
			members = append(members, m)
		}
	}
	number := g.qpn
	g.mu.Unlock()
	for _, m := range members {
		x.Pose(m.Host, m.ip, g.ip, number, (m.info.RQPSN+rocev2.PSN(m.due.Load())-1)&rocev2.PSNMask)
	}
}

// announce has a host say where it is, as hosts do that have sent nothing for a while: to its gateway, and to the group.
func (h *host) announce(w *stranger.Wire) {
	w.Claim(h.IPv4, h.IPv6)
	var b [128]byte
	path := rocev2.Path{SrcMAC: w.Own, DstMAC: rocev2.BroadcastMAC, Src: h.IPv6}
	if group := h.s.address(); group.Is4() {
		w.Send(b[:rocev2.BuildARP(b[:], &path, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: path.SrcMAC, SenderIP: h.IPv4, TargetIP: group})])
	} else {
		w.Send(b[:rocev2.BuildNeighborSolicitation(b[:], &path, group)])
	}
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
			m.announce(stranger.New(s.t, m.Host))
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
