// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"sync"
	"testing"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// One host floods the switch with frames that cost it work or an answer: NAKs of its
// own group, neighbour requests, envelopes. Frames beyond its port's limits are
// counted, and a transfer completes meanwhile.
func TestFlood(t *testing.T) {
	r := newRig(t, rigConfig{
		star:   lab.StarConfig{Hosts: 3},
		config: "limits: {naks_per_port: 2000, envelopes_per_port: 200, neighbours_per_port: 200}\n",
	})
	r.join()
	r.fill(0)
	r.write(0, 20_000)
	psn := r.quiet()
	f := newForger(r)
	host, port := rocev2.MAC(r.hosts[1].MAC), newTap(t, r.star.Hosts[1])
	arp := make([]byte, 64)
	rocev2.BuildARP(arp, &rocev2.Path{SrcMAC: host, DstMAC: rocev2.BroadcastMAC}, &rocev2.ARP{
		Op: rocev2.ARPRequest, SenderMAC: host, SenderIP: r.hosts[1].ip, TargetIP: otherGroup,
	})
	for name, frame := range map[string][]byte{
		"sequence NAKs": f.ack(1, psn.Add(-5), rocev2.SyndromeNAKSequence),
		"ARP requests":  arp,
		"envelopes":     f.envelope(1, make([]byte, 1000)),
	} {
		t.Run(name, func(t *testing.T) {
			before := r.drops()["rate_limit"]
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						port.send(frame)
					}
				}
			})
			r.fill(0)
			r.write(0, 20_000)
			until(t, "rate_limit", func() bool { return r.drops()["rate_limit"] > before })
			close(stop)
			wg.Wait()
			r.same(0)
		})
	}
}
