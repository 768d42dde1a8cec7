// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"
)

func TestR96_HeldForTheFile(t *testing.T)       { runTranscript(t) }
func TestR96_HeldForVerification(t *testing.T)  { runTranscript(t) }
func TestR96_DroppedBehindTheRest(t *testing.T) { runTranscript(t) }
func TestR96_FreedWithTheGroup(t *testing.T)    { runTranscript(t) }
func TestR96_AsFarAsMemoryLasts(t *testing.T)   { runTranscript(t) }

// TestR96_OncePerLink: members of a tree, whose queue pairs take nothing at first, become
// sources in turn. Between switches each packet passes each link of the tree once, and no
// link toward the source.
func TestR96_OncePerLink(t *testing.T) {
	oncePerLink(t, func(n *treeNet, h *treeHost) { h.post(30) })
}

// TestR102_OncePerLink: the same, where each source sends bit by bit, so that a part of its first
// messages is behind those that wait for the file.
func TestR102_OncePerLink(t *testing.T) {
	oncePerLink(t, func(n *treeNet, h *treeHost) {
		for i := range 15 {
			n.after(time.Duration(50*i)*time.Microsecond, func() { h.post(2) })
		}
	})
}

// oncePerLink has each host send 30 packets.
func oncePerLink(t *testing.T, send func(n *treeNet, h *treeHost)) {
	for seed := range uint64(20) {
		rng := random(seed*7919 + 3)
		n := newTreeNet(t, rng, 2+rng(5), 3+rng(5))
		for !n.fits(n.parent) {
			n = newTreeNet(t, rng, 2+rng(5), 3+rng(5))
		}
		n.probe, n.stored, n.patience, n.carried = true, rng(4) > 0, time.Second, map[[4]int]int{}
		n.repair = RepairSpec{Bytes: 64 * minFrameBytes, Timeout: 100 * time.Millisecond, Tries: 4}
		for _, h := range n.hosts {
			h.deafTo = time.Duration(rng(4000)) * time.Microsecond
		}
		n.start()
		for i, h := range n.hosts {
			n.after(time.Duration(3+2*i)*time.Millisecond, func() { send(n, h) })
		}
		if !n.run(4*time.Second, func() bool { return n.pending == 0 && n.now > 100*time.Millisecond }) {
			t.Fatalf("seed %d: %v: %d packets are not complete", seed, n.now, n.pending)
		}
		for from := range n.parent {
			for to := range n.parent {
				for _, h := range n.hosts {
					want := 0
					if from != to && (n.parent[from] == to || n.parent[to] == from) && h.at != to && toward(n.parent, to, h.at) == from && n.memberBehind(from, to, h) {
						want = 1
					}
					for i := range 30 {
						if got := n.carried[[4]int{from, to, h.id, i}]; got != want {
							t.Fatalf("seed %d: switch %d sends packet %d of host %d to switch %d %d times, not %d", seed, from, i, h.id, to, got, want)
						}
					}
				}
			}
		}
	}
}

// memberBehind reports whether a host other than h is at switch to, or behind it as seen from
// switch from.
func (n *treeNet) memberBehind(from, to int, h *treeHost) bool {
	for _, r := range n.hosts {
		if r != h && (r.at == to || r.at != from && toward(n.parent, from, r.at) == to) {
			return true
		}
	}
	return false
}
