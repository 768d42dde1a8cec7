// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A member's queue pair believes every packet from GroupIP: its peer is the switch.
// Packets that a stranger sends straight to a host, with all numbers right, must reach
// no host.
func TestForgedFromTheGroup(t *testing.T) {
	for name, attack := range map[string]struct {
		rate  int
		frame func(a *attacker) func(i int) []byte
	}{
		"guessed ACKs":             {50_000, guessedACKs},
		"a WRITE to a member":      {50_000, straightWrites},
		"fatal NAKs":               {50_000, straightNAKs},
		"CNPs at 1,000 per second": {1_000, straightCNPs},
	} {
		t.Run(name, func(t *testing.T) {
			inNetworks(t, 3, 1, func(t *testing.T, c rigConfig) {
				c.device = func(_ int, d *soft.Config) { d.Congestion = &dcqcn.Config{} }
				r := newRig(t, c)
				r.join()
				a := r.attacker(0)
				r.withstands(t, a, attack.rate, attack.frame(a))
				if n := a.xdp("drop_guard_" + map[bool]string{false: "ipv4", true: "ipv6"}[c.v6]); n == 0 {
					t.Errorf("the guard has counted nothing: %v", r.ports()[a.n].XDP)
				}
			})
		})
	}
}

// guessedACKs acknowledge, as the group, one packet after the other of the message
// that is under way.
func guessedACKs(a *attacker) func(i int) []byte { return a.guess(rocev2.SyndromeACK) }

// guess makes acknowledgements of the group for one packet after the other of the message
// that is under way.
func (a *attacker) guess(s rocev2.Syndrome) func(i int) []byte {
	sender := a.r.hosts[0]
	p := a.path(a.r.group, sender)
	return func(i int) []byte {
		psn, packets := a.r.underWay()
		return a.roce(p, rocev2.Packet{
			Op: rocev2.Acknowledge, DestQP: sender.qp.Info().QPN, PSN: psn.Add(int32(i % packets)), Syndrome: s,
		}, 0)
	}
}

// straightWrites are WRITEs of one packet, as the group, behind the window's first
// half, with the PSN that the receiver expects.
func straightWrites(a *attacker) func(i int) []byte {
	h := a.r.hosts[1]
	p, info := a.path(a.r.group, h), h.qp.Info()
	return func(i int) []byte {
		psn, packets := a.r.underWay()
		d := psn.Sub(a.r.hosts[0].qp.Info().SQPSN) + int32(i%packets)
		return a.roce(p, rocev2.Packet{
			Op: rocev2.WriteOnly, DestQP: info.QPN, PSN: info.RQPSN.Add(d),
			VA: h.mr.Addr() + uint64(h.mr.Len()/2), RKey: h.mr.RKey(), DMALen: 64,
		}, 64)
	}
}

// straightNAKs tell the sender, as the group, that a receiver had to refuse a packet.
func straightNAKs(a *attacker) func(i int) []byte { return a.guess(rocev2.SyndromeNAKAccess) }

// straightCNPs tell the sender, as the group, that there is congestion.
func straightCNPs(a *attacker) func(i int) []byte {
	sender := a.r.hosts[0]
	b := make([]byte, 256)
	p := a.path(a.r.group, sender)
	n := rocev2.BuildCNP(b, &p, sender.qp.Info().QPN)
	return func(int) []byte { return b[:n] }
}

// underWay is nextPSN of the watched transfer.
func (r *rig) underWay() (psn rocev2.PSN, packets int) {
	if r.watched == nil {
		return r.hosts[0].qp.Info().SQPSN, 1
	}
	return r.watched.nextPSN()
}
