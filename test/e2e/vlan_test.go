// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

const (
	testVID = 100
	testPCP = 3
	testTCI = testPCP<<13 | testVID
)

// seen counts the RoCEv2 packets for a group at one host by their tags.
type seen struct {
	data, feedback map[int]int // packets by TCI; -1 untagged
}

// count counts the tap's frames until no more come.
func (s *seen) count(p *tap, r *rig) {
	s.data, s.feedback = make(map[int]int), make(map[int]int)
	for c := p.next(); c != nil; c = p.next() {
		if c.Kind != rocev2.KindRoCE || c.Src() != r.group {
			continue
		}
		tag := -1
		if n, tci := c.VLAN(); n > 0 {
			tag = int(tci)
		}
		switch {
		case isProbe(c):
		case c.Op.Is(rocev2.OpRequest):
			s.data[tag]++
		default:
			s.feedback[tag]++
		}
	}
}

// only reports whether every packet carries tag.
func only(m map[int]int, tag int) bool { return len(m) == 1 && m[tag] > 0 }

// Hosts tag their group frames, and the ports' configuration names the VLAN:
// copies and feedback arrive with its VID, and with the priority that the
// packet had which brought them about.
func TestTaggedFrames(t *testing.T) {
	for name, c := range map[string]struct {
		vlan         int // the VLAN of the ports
		hosts        *soft.VLAN
		copies, acks int // the tags they arrive with
	}{
		"tagged":                  {vlan: testVID, hosts: &soft.VLAN{ID: testVID, PCP: testPCP}, copies: testTCI, acks: testTCI},
		"tagged hosts, no VLAN":   {hosts: &soft.VLAN{ID: testVID, PCP: testPCP}, copies: -1, acks: -1},
		"priority tags":           {vlan: testVID, hosts: &soft.VLAN{PCP: testPCP}, copies: testTCI, acks: testTCI},
		"untagged hosts, a VLAN":  {vlan: testVID, copies: testVID, acks: testVID},
		"untagged hosts, no VLAN": {copies: -1, acks: -1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigConfig{
				star:   lab.StarConfig{Hosts: 3},
				vlan:   c.vlan,
				device: func(_ int, d *soft.Config) { d.VLAN = c.hosts },
			})
			r.join()
			taps := []*tap{newTap(t, r.star.Hosts[0]), newTap(t, r.star.Hosts[1]), newTap(t, r.star.Hosts[2])}
			r.fill(0)
			r.write(0, 100_000)
			r.same(0)
			for i, p := range taps {
				var s seen
				s.count(p, r)
				switch {
				case i == 0 && (!only(s.feedback, c.acks) || len(s.data) > 0):
					t.Errorf("at the sender: data %v, feedback %v by tag, want feedback with %d", s.data, s.feedback, c.acks)
				case i > 0 && (!only(s.data, c.copies) || len(s.feedback) > 0):
					t.Errorf("at receiver %d: data %v, feedback %v by tag, want data with %d", i, s.data, s.feedback, c.copies)
				}
			}
		})
	}
}

// ARP replies and neighbour advertisements are tagged as the request was.
func TestNeighbourAnswersKeepTheTag(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 1}})
	p := newTap(t, r.star.Hosts[0])
	h := r.star.Hosts[0]
	for _, tagged := range []bool{false, true} {
		path := rocev2.Path{SrcMAC: rocev2.MAC(h.MAC), DstMAC: rocev2.BroadcastMAC, Tagged: tagged}
		if tagged {
			path.TCI = testTCI
		}
		same := func(c *captured) bool {
			is, tci := c.VLAN()
			return (is == 1) == tagged && tci == path.TCI
		}
		b := make([]byte, 128)
		n := rocev2.BuildARP(b, &path, &rocev2.ARP{
			Op: rocev2.ARPRequest, SenderMAC: rocev2.MAC(h.MAC), SenderIP: h.IPv4, TargetIP: r.group,
		})
		p.send(b[:n])
		p.expect("ARP reply", func(c *captured) bool {
			var a rocev2.ARP
			return c.Kind == rocev2.KindARP && rocev2.DecodeARP(&c.Frame, &a) == rocev2.OK &&
				a.Op == rocev2.ARPReply && a.SenderIP == r.group && same(c)
		})
		path.Src = h.IPv6
		n = rocev2.BuildNeighborSolicitation(b, &path, group6)
		p.send(b[:n])
		p.expect("neighbour advertisement", func(c *captured) bool {
			return c.Kind == rocev2.KindICMPv6 && c.Src() == group6 && c.Dst() == h.IPv6 && same(c)
		})
	}
}
