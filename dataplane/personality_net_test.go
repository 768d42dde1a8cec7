// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// personalityNet is one switch with a host at each port, or a tree of three switches, with
// hosts whose queue pairs have personalities. What the group does is judged, not asserted: a
// cell of the matrix ends with a verdict.
type personalityNet struct {
	*treeNet
	config   treeConfig
	evicted  []mcast.Event // removals by host, as of the last look
	outcomes mcast.Outcomes
	file     stateFile
}

// stateFile is the memory of a switch across its restarts.
type stateFile struct {
	due, durable mcast.Positions
	number       uint32        // number of the positions that are durable, or are being written; 0: none
	at           time.Duration // the time at which they are durable; 0: they are
}

// Times of a switch that restarts.
const (
	fileWrite   = time.Millisecond // a write of the state file
	restartTime = 20 * time.Millisecond
)

// newPersonalityTree makes a tree of three switches; its hosts are those of c, five.
func newPersonalityTree(t *testing.T, c treeConfig) *personalityNet {
	n := newTreeNet(t, c)
	n.budget, n.mayOverflow = c.budget, true
	return &personalityNet{treeNet: n, config: c, evicted: make([]mcast.Event, len(n.hosts))}
}

// newPersonalityNet makes a network of one switch; its hosts are those of c.
func newPersonalityNet(t *testing.T, c treeConfig) *personalityNet {
	n := &treeNet{
		t: t, random: rand.New(rand.NewPCG(c.seed, 5)), start: time.Now(), group: netip.MustParseAddr("10.77.254.1"),
		window: mcast.Window{Base: 0x10000, Len: treeWindow, RKey: 0x1234567}, seen: make(map[string]int), budget: c.budget,
	}
	hosts := len(c.hosts)
	x := &treeNode{fakeStar: newFakeStar(t, lab.StarConfig{Hosts: hosts}, fakeConfig(t, hosts, "umem: {frames: 8192}\n"+c.workers, "")), name: "switch", ends: make([]treeEnd, hosts)}
	for _, w := range x.all {
		w.start = n.start
	}
	n.nodes = []*treeNode{x}
	for i := range hosts {
		n.addHost(treeEnd{node: x, port: i}, c)
	}
	n.put(x, c, nil)
	n.runUntil("probes", func() bool { return n.now() > 20*time.Millisecond && !n.step() })
	n.loss, n.mayOverflow = c.loss, true // answers to each packet of what is repeated exceed a ring
	return &personalityNet{treeNet: n, config: c, evicted: make([]mcast.Event, hosts)}
}

// store writes the positions that are due to the state file, and tells the group when they are
// durable.
func (n *personalityNet) store() {
	w, f := n.nodes[0].all[0], &n.file
	number, ok := w.core.Group(0).Positions(&f.due)
	switch {
	case !ok || number == 0:
	case number != f.number:
		f.number, f.at = number, n.now()+fileWrite
	case f.at != 0 && n.now() >= f.at:
		f.at, f.durable = 0, f.due
		f.durable.Members = slices.Clone(f.due.Members)
		w.core.PositionsStored(w.readClock(), 0, number, &f.durable, &w.out)
		w.sendApplied()
	}
}

// restart has the switch lose all frames for a while, and then all that it knows of the group
// but for what is in the state file.
func (n *personalityNet) restart() {
	n.outage = func(*treeHost, bool) bool { return true }
	for end := n.now() + restartTime; n.now() < end; {
		n.step()
	}
	n.outage, n.file.number = nil, 0
	n.put(n.nodes[0], n.config, &n.file.durable)
}

// look reads which members the switch has removed.
func (n *personalityNet) look() {
	n.nodes[0].all[0].core.Group(0).Outcomes(&n.outcomes)
	copy(n.evicted, n.outcomes.Evicted)
}

// live reports whether a host is neither dead nor removed.
func (n *personalityNet) live(i int) bool {
	return !n.hosts[i].dead && !n.hosts[i].mayFail && n.evicted[i].Kind == 0
}

// personalityMessage is a message and, by host, the number of the receive that it takes.
type personalityMessage struct {
	treeMessage
	recv []int
}

// has reports whether a host has all bytes of a message.
func (n *personalityNet) has(i int, m *personalityMessage) bool {
	h := n.hosts[i]
	if m.op == rc.WRWrite || m.op == rc.WRWriteImm {
		if !bytes.Equal(h.mem[m.at:][:len(m.data)], m.data) {
			return false
		}
	}
	if m.op == rc.WRWrite {
		return true
	}
	return m.recv[i] < len(h.received) && (m.op == rc.WRWriteImm || bytes.Equal(h.received[m.recv[i]], m.data))
}

// personalityLimit bounds the virtual time of one source's messages. A ConnectX gives up
// after 3.66 s without an answer.
const personalityLimit = 30 * time.Second

// send has a host send messages of these lengths, and reports how it went: each completion
// must mean that all live members have the bytes, or k of them under quorum:k; in the end
// all live members have all, else some are behind. at is called after each completion.
func (n *personalityNet) send(src, quorum int, lengths []int, at func(completed int)) string {
	h := n.hosts[src]
	random := rand.New(rand.NewPCG(uint64(src), 9))
	var list []personalityMessage
	had := make([]int, len(n.hosts))
	for i, r := range n.hosts {
		had[i] = len(r.received)
	}
	offset := uint64(random.IntN(1000))
	for k, length := range lengths {
		m := personalityMessage{treeMessage: treeMessage{op: treeOps[k%len(treeOps)], data: make([]byte, length), at: offset}, recv: slices.Clone(had)}
		for i := range m.data {
			m.data[i] = byte(random.Uint32())
		}
		if offset += uint64(length); m.op != rc.WRWrite {
			for i := range had {
				had[i]++
			}
		}
		list = append(list, m)
	}
	done, posted, checked := len(h.done), 0, 0
	end := n.now() + personalityLimit
	for n.now() < end {
		for posted < len(list) && posted-checked < 3 {
			m := &list[posted]
			wr := rc.WR{ID: uint64(posted), Op: m.op, Data: m.data, VA: n.window.Base + m.at, RKey: n.window.RKey, Imm: uint32(posted), Signaled: true}
			if err := h.qp.PostSend(wr); err != nil {
				return "failed: " + err.Error()
			}
			posted++
		}
		if !n.step() {
			n.jump()
		}
		if n.look(); n.config.stored {
			n.store()
		}
		for ; checked < len(h.done)-done; checked++ {
			have, want := 0, 0
			for i := range n.hosts {
				if i != src && n.live(i) {
					want++
					if n.has(i, &list[checked]) {
						have++
					}
				}
			}
			if quorum > 0 {
				want = min(quorum, want)
			}
			if have < want {
				return "false completion"
			}
			if at != nil {
				at(checked + 1)
			}
		}
		if checked == len(list) {
			if n.allHave(src, list) {
				return ""
			}
			end = min(end, n.now()+personalityLimit/10)
		}
	}
	if checked == len(list) {
		return "behind"
	}
	return "stalled"
}

// allHave reports whether all live receivers have all messages.
func (n *personalityNet) allHave(src int, list []personalityMessage) bool {
	for i := range n.hosts {
		if i == src || !n.live(i) {
			continue
		}
		for k := range list {
			if !n.has(i, &list[k]) {
				return false
			}
		}
	}
	return true
}

// refuseWrites has a host refuse the next WRITE with a fatal NAK.
func (n *personalityNet) refuseWrites(i int) {
	h := n.hosts[i]
	h.mayFail = true
	if err := h.qp.Config().Memory.Deregister(h.spec.Window.RKey); err != nil {
		n.t.Fatal(err)
	}
}

// wrongRemoval returns the cause of a wrong removal, "" if there is none: a member
// that is well was removed, or one that is not is still there.
func (n *personalityNet) wrongRemoval() string {
	n.look()
	for i, h := range n.hosts {
		gone, out := h.dead || h.mayFail, n.evicted[i].Kind != 0
		switch {
		case gone && !out:
			return "kept"
		case out && !gone && n.evicted[i].Cause == rocev2.Syndrome(2):
			return "stranded"
		case out && !gone:
			return "evicted"
		}
	}
	return ""
}
