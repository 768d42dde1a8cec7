// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"context"
	"math/rand/v2"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
	"github.com/gleam-rdma/gleam/test/stranger"
)

// host is a host whose programs can be killed.
type host struct {
	*fabric.Host
	open *testbed.Host // nil while they are; has the round's lock
}

// endpoints is what the programs of a host have open.
func (r *round) endpoints(seed uint64) testbed.Endpoints {
	return testbed.Endpoints{Key: r.bed.Key, Device: soft.Config{Seed: seed}, Answer: true}
}

// ofHosts returns one of the faults that hosts, the stranger and the disk can have; none if it wants a group and there is none.
func (r *round) ofHosts(rng *rand.Rand) fault {
	away, kind, seed := between(rng, leastAway, mostAway), []int{0, 0, 1, 2, 3, 4}[rng.IntN(6)], rng.Uint64()
	nothing := func(context.Context) error { return nil }
	switch kind {
	case 0, 1:
		h := r.victim(rng, kind == 1)
		if h == nil {
			return fault{}
		}
		return fault{
			kind: []string{"member killed", "master killed"}[kind], of: "at " + h.Name, away: away, harmless: true,
			cause: func(context.Context) error { return r.kill(h) }, mend: func(context.Context) error { return r.revive(h, seed) },
		}
	case 2:
		return fault{
			kind: "full disk", of: "of all state files", away: away, harmless: true,
			cause: func(context.Context) error { return labtest.FillDisk(r.disk) }, mend: func(context.Context) error { return labtest.FreeDisk(r.disk) },
		}
	case 3:
		return fault{kind: "flood", of: "from " + r.stranger.Name, away: away, harmless: true, cause: nothing, mend: nothing, hold: func(ctx context.Context) { r.flood(ctx, rng) }}
	default:
		return fault{kind: "poison", of: "from " + r.stranger.Name, away: away, harmless: true, cause: nothing, hold: r.poison, mend: func(context.Context) error {
			for _, h := range r.hosts { // hosts that are in no group are not protected from each other
				w := stranger.New(r.t, h.Host)
				w.Claim(h.IPv4, h.IPv6)
				w.Close()
			}
			return nil
		}}
	}
}

// victim chooses a member of a registered group, or a master; nil: there is none.
func (r *round) victim(rng *rand.Rand, master bool) *host {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lives[rng.IntN(len(r.lives))]
	n := len(l.registered)
	i := 1 + rng.IntN(max(1, n-1))
	if master {
		i = 0
	}
	if i >= n || l.registered[i].open == nil {
		return nil
	}
	return l.registered[i].host
}

// kill ends the programs of a host, without a word to anybody.
func (r *round) kill(h *host) error {
	r.mu.Lock()
	x := h.open
	h.open = nil
	for _, l := range r.lives {
		for _, m := range l.registered {
			if m.host == h {
				m.killed, l.killed = true, time.Now()
			}
		}
	}
	r.mu.Unlock()
	return x.Close()
}

// revive starts them again. They know of no group.
func (r *round) revive(h *host, seed uint64) error {
	x, err := testbed.Open(h.Host.Host, r.endpoints(seed))
	if err != nil {
		return err
	}
	r.t.Cleanup(func() { _ = x.Close() })
	r.mu.Lock()
	defer r.mu.Unlock()
	h.open = x
	return nil
}

// flood has the stranger send frames that cost a switch work or an answer.
func (r *round) flood(ctx context.Context, rng *rand.Rand) {
	w, from := stranger.New(r.t, r.stranger), r.stranger.IPv4
	defer w.Close()
	path := rocev2.Path{SrcMAC: w.Own, DstMAC: w.Gateway, Src: from, Dst: r.lives[rng.IntN(len(r.lives))].ip, SrcPort: 0xC123}
	var ack, arp, data [2048]byte
	frames := [][]byte{
		ack[:rocev2.BuildAck(ack[:], &path, 0x4711, rocev2.PSN(rng.Uint32())&rocev2.PSNMask, rocev2.SyndromeNAKSequence, 0, false)],
		arp[:rocev2.BuildARP(arp[:], &path, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: w.Own, SenderIP: from, TargetIP: path.Dst})],
		data[:rocev2.BuildPacket(data[:], &path, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: 0x4711, AckReq: true}, bytes.Repeat([]byte{0xEE}, 1024))],
	}
	for sleep(ctx, time.Millisecond) { // the machine is shared
		for range 10 {
			for _, b := range frames {
				w.Send(b)
			}
		}
	}
}

// poison has the stranger claim to be each member, and acknowledge the newest packet, and what is sent next, in its name.
func (r *round) poison(ctx context.Context) {
	w, client := stranger.New(r.t, r.stranger), r.bed.Gleamds[r.stranger.Switch.Name].Client
	defer w.Close()
	for sleep(ctx, 10*time.Millisecond) {
		for _, l := range r.lives {
			r.mu.Lock()
			members := l.registered
			r.mu.Unlock()
			g, err := client.Group(ctx, l.ip)
			if err != nil {
				continue // this switch does not have it
			}
			var psns []rocev2.PSN
			for i := range int32(32) {
				psns = append(psns, rocev2.PSN(g.NextPSN).Add(8*i-1))
			}
			for _, m := range members {
				w.Pose(m.Host, m.IPv4, l.ip, rocev2.QPN(g.QPN), psns...)
			}
		}
	}
}
