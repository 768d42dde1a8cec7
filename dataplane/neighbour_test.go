// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// forge puts a packet for the group onto the link at port of x: with this source MAC
// address, in the name of h.
func (n *treeNet) forge(x *treeNode, port int, mac rocev2.MAC, h *treeHost, k rocev2.Packet) {
	k.DestQP = treeQPN
	path := rocev2.Path{Src: h.ip, Dst: n.group, SrcMAC: mac, DstMAC: x.ports[port].mac, SrcPort: 0xC123}
	b := make([]byte, 512)
	n.carry(treeEnd{host: h}, treeEnd{node: x, port: port}, b[:rocev2.BuildPacket(b, &path, &k, nil)])
	x.runAll()
}

// runAll runs every worker until what one hands over to another has been sent.
func (x *treeNode) runAll() {
	for range 3 { // the receiving worker, the owner of the group, the sending worker
		for _, w := range x.all {
			w.runBatch()
		}
	}
}

// drops are the counters of all workers.
func (x *treeNode) drops() map[string]uint64 {
	sum := make(map[string]uint64)
	for _, w := range x.all {
		for reason, n := range w.count.drops() {
			sum[reason] += n
		}
	}
	return sum
}

func (x *treeNode) status() (st mcast.GroupStatus) {
	w := x.all[len(x.all)/2]
	w.core.Group(0).Snapshot(&st)
	return st
}

// sent takes the frames that have left x, and returns how many of them are of groups.
func (x *treeNode) sent() (count int) {
	for _, qs := range x.queues {
		for _, frame := range qs[0].Sent() {
			var f rocev2.Frame
			if rocev2.Decode(frame, &f) == rocev2.OK && f.Kind == rocev2.KindRoCE {
				count++
			}
		}
	}
	return count
}

// report lets the switches, and nobody else, exchange what they have to say for 10 ms.
func (n *treeNet) report() {
	for range 100 {
		time.Sleep(100 * time.Microsecond)
		for _, x := range n.nodes {
			x.runAll()
		}
		for _, x := range n.nodes {
			for i, qs := range x.queues {
				for _, frame := range qs[0].Sent() {
					if to := x.ends[i]; to.node != nil {
						n.carry(treeEnd{node: x, port: i}, to, frame)
					}
				}
			}
		}
	}
}

// A packet of a member behind another switch, and feedback of that switch, are believed
// from that switch alone: by its port, with its MAC address, while the adjacency is up.
// Everything else is dropped and counted, and changes nothing.
func TestNobodySpeaksForANeighbour(t *testing.T) {
	for _, workers := range []string{"", "worker: {cpu: [-1, -1, -1]}\n"} {
		synctest.Test(t, func(t *testing.T) {
			n := newTreeNet(t, treeConfig{pmtu: 1024, workers: workers})
			leaf, spine := n.nodes[0], n.nodes[1]
			local, remote := n.hosts[0], n.hosts[2]
			up := spine.ports[0].mac // the spine's, at the leaf
			message := func(src *treeHost) rocev2.Packet {
				return rocev2.Packet{Op: rocev2.SendOnly, PSN: src.spec.SQPSN, AckReq: true}
			}
			attack := func(what string, port int, mac rocev2.MAC, h *treeHost, k rocev2.Packet) {
				t.Helper()
				before, st := leaf.drops(), leaf.status()
				n.forge(leaf, port, mac, h, k)
				now := leaf.status()
				if sent := leaf.sent(); sent != 0 || now.Acked != st.Acked || now.HasSource != st.HasSource {
					t.Errorf("%s: %d frames leave; acked %06x, was %06x", what, sent, now.Acked, st.Acked)
				}
				after := leaf.drops()
				if after["source_guard"] != before["source_guard"]+1 {
					t.Errorf("%s: source_guard %d, was %d; all drops %v", what, after["source_guard"], before["source_guard"], after)
				}
			}
			attack("data of a remote member by a host's port", 1, n.hosts[1].mac, remote, message(remote))
			attack("data of a remote member by a host's port with the neighbour's MAC", 1, up, remote, message(remote))
			attack("data of a remote member by the neighbour's port from another MAC", 2, n.hosts[1].mac, remote, message(remote))
			attack("data of a remote member by the neighbour's port from no MAC", 2, rocev2.MAC{}, remote, message(remote))
			attack("data of a local member by the neighbour's port", 2, up, local, message(local))

			// The local member is the source now: its data goes to member 1 and to the spine.
			n.forge(leaf, 0, local.mac, local, message(local))
			n.report() // the token comes
			n.forge(leaf, 0, local.mac, local, message(local))
			if sent := leaf.sent(); sent != 2 || leaf.status().Acked == local.spec.SQPSN {
				t.Fatalf("%d copies leave, want 2; drops %v", sent, leaf.drops())
			}
			ack := rocev2.Packet{Op: rocev2.Acknowledge, PSN: local.spec.SQPSN, Syndrome: rocev2.SyndromeACK, MSN: 0x9e377a} // with the tag of member 1 in epoch 1
			attack("an ACK of the subtree by a host's port with the neighbour's MAC", 1, up, local, ack)
			attack("an ACK of the subtree by the neighbour's port from another MAC", 2, n.hosts[1].mac, local, ack)
			attack("an ACK of the subtree by the source itself, from the neighbour's MAC", 0, up, local, ack)
			attack("an ACK of a remote member by its own address", 1, n.hosts[1].mac, remote, ack)
			n.setNeighbours(false)
			attack("an ACK of a neighbour that is down", 2, up, local, ack)
			attack("data by a neighbour that is down", 2, up, remote, message(remote))
			n.setNeighbours(true)

			// Feedback for another member than the source does not count (R18), nor does that
			// of member 1 for the subtree.
			n.forge(leaf, 2, up, remote, ack)
			if d := leaf.drops()["feedback_stale"]; d != 1 {
				t.Errorf("feedback for a member that is not the source: counted %d times", d)
			}
			ack1 := ack
			ack1.PSN, ack1.MSN = n.hosts[1].spec.RQPSN, 1 // its first message: MSN has to count it (R52)
			n.forge(leaf, 1, n.hosts[1].mac, n.hosts[1], ack1)
			if sent := leaf.sent(); sent != 0 || leaf.status().Acked == local.spec.SQPSN {
				t.Errorf("acknowledged although the subtree has not")
			}
			late := ack
			late.MSN = 1 // as of epoch 0 (R87)
			n.forge(leaf, 2, up, local, late)
			if sent, d := leaf.sent(), leaf.drops()["other_registration"]; sent != 0 || d != 1 || leaf.status().Acked == local.spec.SQPSN {
				t.Errorf("feedback of another registration: %d frames leave, counted %d times", sent, d)
			}
			n.forge(leaf, 2, up, local, ack)
			if sent := leaf.sent(); sent != 1 || leaf.status().Acked != local.spec.SQPSN {
				t.Errorf("not acknowledged although all have: %d frames; drops %v", sent, leaf.drops())
			}
		})
	}
}

// While an adjacency is down, copies and feedback for the neighbour are dropped and
// counted; when it is up again, the transfer goes on. The neighbour may have another MAC
// address then.
func TestNeighbourGoesAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTreeNet(t, treeConfig{pmtu: 1024})
		leaf, spine := n.nodes[0], n.nodes[1]
		n.transfer(0, treeOps, []int{5000})
		sendTo := len(n.hosts[2].received)
		if err := n.hosts[0].qp.PostSend(rc.WR{Data: make([]byte, 3000), Signaled: true}); err != nil {
			t.Fatal(err)
		}
		n.setNeighbours(false)
		down := n.now() + 100e6
		n.runUntil("time", func() bool { return n.now() > down })
		if d := leaf.drops(); d["neighbour_down"]+d["no_token"] == 0 || len(n.hosts[2].received) != sendTo {
			t.Errorf("drops %v, %d messages at a member behind the neighbour, had %d", leaf.drops(), len(n.hosts[2].received), sendTo)
		}
		for _, w := range spine.all {
			w.ports[0].mac = rocev2.MAC{2, 0, 0, 9, 9, 9}
		}
		n.setNeighbours(true)
		had := len(n.hosts[0].done)
		n.runUntil("the message", func() bool { return len(n.hosts[0].done) > had })
		if len(n.hosts[2].received) != sendTo+1 {
			t.Error("complete, and a member behind the neighbour does not have it")
		}
		n.transfer(3, treeOps, []int{5000})
	})
}

// NAKs and CNPs of a neighbour stand for all behind it, and are not subject to the bound
// of a host's port; envelopes of a neighbour have slots of their own, and no bound by
// address.
func TestNeighbourIsNoHost(t *testing.T) {
	for _, workers := range []string{"", "worker: {cpu: [-1, -1, -1]}\n"} {
		synctest.Test(t, func(t *testing.T) {
			n := newTreeNet(t, treeConfig{pmtu: 1024, workers: workers + "limits: {naks_per_port: 1, envelopes_per_port: 1, envelopes_per_address: 1}\n"})
			leaf, spine := n.nodes[0], n.nodes[1]
			up, source := spine.ports[0].mac, n.hosts[0]
			for range 2 {
				n.forge(leaf, 0, source.mac, source, rocev2.Packet{Op: rocev2.SendOnly, PSN: source.spec.SQPSN})
				n.report()
			}
			nak := rocev2.Packet{Op: rocev2.Acknowledge, PSN: source.spec.SQPSN, Syndrome: rocev2.SyndromeNAKSequence}
			for range 50 {
				n.forge(leaf, 2, up, source, nak)
			}
			if d := leaf.drops()["rate_limit"]; d != 0 {
				t.Errorf("%d NAKs of a neighbour are over the limit of a port", d)
			}
			host := n.hosts[1]
			nak.PSN = host.spec.RQPSN
			for range 50 {
				n.forge(leaf, 1, host.mac, host, nak)
			}
			if d := leaf.drops()["rate_limit"]; d != 40 {
				t.Errorf("%d of 50 NAKs of a host are over the limit, want 40", d)
			}

			send := func(port int, mac rocev2.MAC, dst netip.Addr) {
				b := make([]byte, 512)
				path := rocev2.Path{Src: netip.MustParseAddr("169.254.0.1"), Dst: dst, SrcMAC: mac, DstMAC: leaf.ports[port].mac, SrcPort: 4797}
				n.carry(treeEnd{host: source}, treeEnd{node: leaf, port: port}, b[:rocev2.BuildUDP(b, &path, 4797, []byte("a relay"))])
				leaf.runAll()
			}
			path := leaf.all[0].slowPath
			for i := range relaySlots {
				send(2, up, netip.MustParseAddr(fmt.Sprintf("10.77.254.%d", i&1+1)))
			}
			if got := len(path.relays.queued); got != relaySlots/portShare || len(path.requests.queued) != 0 {
				t.Errorf("%d relays and %d requests are queued, want %d and 0", got, len(path.requests.queued), relaySlots/portShare)
			}
			if d := leaf.drops(); d["slow_path_full"] != relaySlots-relaySlots/portShare {
				t.Errorf("drops %v", d)
			}
			d := <-path.relays.queued
			if d.Neighbour != 12 || d.From.Port != 2 || string(d.Payload()) != "a relay" {
				t.Errorf("a relay of neighbour %d by port %d: %q", d.Neighbour, d.From.Port, d.Payload())
			}
			d.Release()
			send(1, up, n.group) // a host with the neighbour's MAC
			send(2, host.mac, n.group)
			for range 2 {
				d := <-path.requests.queued
				if d.Neighbour != 0 {
					t.Errorf("an envelope of MAC %v by port %d is taken for one of neighbour %d", d.From.MAC, d.From.Port, d.Neighbour)
				}
				d.Release()
			}
		})
	}
}

// Neighbours are replaced as a whole, at every worker, and a list that contradicts itself
// changes nothing.
func TestSetNeighbours(t *testing.T) {
	cfg := fakeConfig(t, 2, "worker: {cpu: [-1, -1]}\n", "")
	p, err := Unattached(cfg, 1500, func(bool, string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	known := func() (list map[int]neighbour) {
		for _, w := range p.workers.all {
			its := make(map[int]neighbour)
			for i, x := range w.ports {
				if x.neighbour != (neighbour{}) {
					its[i] = x.neighbour
				}
			}
			if list == nil {
				list = its
			} else if !maps.Equal(list, its) {
				t.Errorf("workers have %v and %v", list, its)
			}
		}
		return list
	}
	a, b := Neighbour{ID: 1, Port: 0, MAC: rocev2.MAC{2, 1}, Session: 7}, Neighbour{ID: 2, Port: 1, MAC: rocev2.MAC{2, 2}, Session: 8}
	if err := p.Run(func() {
		for _, c := range []struct {
			list []Neighbour
			err  string
			want map[int]neighbour
		}{
			{[]Neighbour{a}, "", map[int]neighbour{0: {1, a.MAC, 7}}},
			{[]Neighbour{a, b}, "", map[int]neighbour{0: {1, a.MAC, 7}, 1: {2, b.MAC, 8}}},
			{[]Neighbour{a, {ID: 3, Port: 0}}, "port p1 has neighbours 1 and 3: a link has one", map[int]neighbour{0: {1, a.MAC, 7}, 1: {2, b.MAC, 8}}},
			{[]Neighbour{a, {ID: 1, Port: 1}}, "neighbour 1 is at port p1 and at port p2", map[int]neighbour{0: {1, a.MAC, 7}, 1: {2, b.MAC, 8}}},
			{[]Neighbour{{ID: 4, Port: 2 + sparePorts}}, fmt.Sprintf("there is no port %[1]d, there are %[1]d", 2+sparePorts), map[int]neighbour{0: {1, a.MAC, 7}, 1: {2, b.MAC, 8}}},
			{[]Neighbour{{ID: 4, Port: -1}}, "there is no port -1", map[int]neighbour{0: {1, a.MAC, 7}, 1: {2, b.MAC, 8}}},
			{[]Neighbour{{Port: 1}}, "numbers begin with 1", map[int]neighbour{0: {1, a.MAC, 7}, 1: {2, b.MAC, 8}}},
			{[]Neighbour{b}, "", map[int]neighbour{1: {2, b.MAC, 8}}},
			{nil, "", nil},
		} {
			err := p.SetNeighbours(c.list)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v: %v, want %q", c.list, err, c.err)
			}
			p.workers.do(func(*worker) {})
			if got := known(); !maps.Equal(got, c.want) {
				t.Errorf("%v: workers have %v, want %v", c.list, got, c.want)
			}
			ports := make(map[mcast.Neighbor]int)
			for i, n := range c.want {
				ports[n.id] = i
			}
			if !maps.Equal(p.neighbourPorts, ports) {
				t.Errorf("%v: relays go to %v, want %v", c.list, p.neighbourPorts, ports)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := p.SetNeighbours(nil); err != ErrStopped {
		t.Errorf("after the end: %v", err)
	}
}

// Only a forwarded leg needs its neighbour to be up.
func TestLegIsUp(t *testing.T) {
	for _, c := range []struct {
		l    leg
		at   mcast.Neighbor
		want bool
	}{
		{leg{kind: mcast.Connected}, 0, true},
		{leg{kind: mcast.Connected}, 3, true},
		{leg{kind: mcast.Forwarded, neighbour: 3}, 0, false},
		{leg{kind: mcast.Forwarded, neighbour: 3}, 2, false},
		{leg{kind: mcast.Forwarded, neighbour: 3}, 3, true},
	} {
		p := new(port)
		p.neighbour.id = c.at
		if got := c.l.isUp(p); got != c.want {
			t.Errorf("leg of kind %d to neighbour %d at a port of neighbour %d is up: %v", c.l.kind, c.l.neighbour, c.at, got)
		}
	}
}

// A relay comes to the control plane of the neighbour, marked with the sender; one for a
// neighbour that is down is counted.
func TestRelaysReachTheNeighbour(t *testing.T) {
	n := newTreeNet(t, treeConfig{pmtu: 1024})
	leaf, spine := n.nodes[0], n.nodes[1]
	p := &Plane{workers: leaf.workers, ports: leaf.ports, neighbourPorts: map[mcast.Neighbor]int{12: 2}}
	list := []Relay{
		{To: 12, Group: n.group, Payload: []byte("one")},
		{To: 13, Group: n.group, Payload: []byte("nobody")},
		{To: 12, Group: netip.MustParseAddr("10.77.254.9"), Payload: make([]byte, 1400)},
		{To: 12, Group: netip.MustParseAddr("fd77::6c65:1"), Payload: []byte("three")},
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.SendRelays(list)
	}()
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		default:
			leaf.all[0].runBatch()
		}
	}
	leaf.runAll()
	for _, frame := range leaf.queues[2][0].Sent() {
		n.carry(treeEnd{node: leaf, port: 2}, treeEnd{node: spine, port: 0}, frame)
	}
	spine.runAll()
	for _, want := range []Relay{list[0], list[2], list[3]} {
		select {
		case d := <-spine.all[0].slowPath.relays.queued:
			if d.Neighbour != 10 || string(d.Payload()) != string(want.Payload) || d.Dst != netip.AddrPortFrom(want.Group, 4797) || d.Partial {
				t.Errorf("%d bytes of neighbour %d for %v, want %d of neighbour 10 for %v", len(d.Payload()), d.Neighbour, d.Dst, len(want.Payload), want.Group)
			}
			for _, prefix := range spine.all[0].prefixes {
				if prefix.Contains(d.Src.Addr()) {
					t.Errorf("the source %v is a group address: the XDP program of the neighbour drops it", d.Src)
				}
			}
			d.Release()
		default:
			t.Fatalf("no relay; drops %v", spine.drops())
		}
	}
	if d := leaf.drops(); d["neighbour_down"] != 1 {
		t.Errorf("drops %v", d)
	}
}
