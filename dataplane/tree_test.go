// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/rocev2"
)

// treeMessage is a message of a source.
type treeMessage struct {
	op   rc.WROp
	data []byte
	at   uint64 // offset in the window, of a WRITE
}

// transfer has host src send one message of each operation and length, and checks, at each
// completion, that all other hosts have the bytes.
func (n *treeNet) transfer(src int, ops []rc.WROp, lengths []int) {
	n.t.Helper()
	h := n.hosts[src]
	random := rand.New(rand.NewPCG(uint64(src), 9))
	var list []treeMessage
	at := uint64(random.IntN(1000))
	for _, length := range lengths {
		for _, op := range ops {
			m := treeMessage{op: op, data: make([]byte, length), at: at}
			for i := range m.data {
				m.data[i] = byte(random.Uint32())
			}
			at += uint64(length)
			list = append(list, m)
		}
	}
	had := make([]int, len(n.hosts))
	for i, r := range n.hosts {
		had[i] = len(r.received)
	}
	done := len(h.done)
	posted, checked := 0, 0
	n.runUntil(fmt.Sprintf("transfer of host %d", src), func() bool {
		for posted < len(list) && posted-checked < 8 {
			m := &list[posted]
			wr := rc.WR{ID: uint64(posted), Op: m.op, Data: m.data, VA: n.window.Base + m.at, RKey: n.window.RKey, Imm: uint32(posted), Signaled: true}
			if err := h.qp.PostSend(wr); err != nil {
				n.t.Fatal(err)
			}
			posted++
		}
		for ; checked < len(h.done)-done; checked++ {
			for i, r := range n.hosts {
				if i != src {
					n.checkMessage(r, &had[i], &list[checked], checked)
				}
			}
		}
		return checked == len(list)
	})
}

// checkMessage fails the test unless r has message m, number k, of which the source has the
// completion. had counts the messages that consumed a receive.
func (n *treeNet) checkMessage(r *treeHost, had *int, m *treeMessage, k int) {
	n.t.Helper()
	if m.op == rc.WRWrite || m.op == rc.WRWriteImm {
		if !bytes.Equal(r.mem[m.at:][:len(m.data)], m.data) {
			n.t.Fatalf("message %d, %v of %d bytes, is complete, and host %v does not have it", k, m.op, len(m.data), r.ip)
		}
	}
	if m.op == rc.WRWrite {
		return
	}
	if *had >= len(r.received) {
		n.t.Fatalf("message %d, %v of %d bytes, is complete, and host %v has %d messages", k, m.op, len(m.data), r.ip, *had)
	}
	if m.op != rc.WRWriteImm && !bytes.Equal(r.received[*had], m.data) {
		n.t.Fatalf("message %d, %v of %d bytes, is complete, and host %v has other bytes", k, m.op, len(m.data), r.ip)
	}
	*had++
}

// inVirtualTime returns test, run in a bubble of synctest.
func inVirtualTime(test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

var treeOps = []rc.WROp{rc.WRSend, rc.WRSendImm, rc.WRWrite, rc.WRWriteImm}

// Transfers of all operations go through a tree of three switches, from a member at either
// leaf and at the spine, with and without losses on every link: each completion means that
// all others have the bytes. Without losses, every link carries each data packet once.
func TestTransfersThroughATree(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  treeConfig
	}{
		{"one worker", treeConfig{pmtu: 1024}},
		{"three workers", treeConfig{pmtu: 1024, workers: "worker: {cpu: [-1, -1, -1]}\n"}},
		{"several buffers", treeConfig{pmtu: 4096}},
		{"loss", treeConfig{pmtu: 1024, loss: 0.02, seed: 1}},
		{"loss, strict", treeConfig{pmtu: 1024, loss: 0.02, seed: 2, personality: rc.Strict}},
		{"loss, RNICs", treeConfig{pmtu: 1024, loss: 0.02, seed: 6, receive: 1 << 16, hosts: []rc.Personality{rc.ConnectX, rc.ConnectXRepeat, rc.Mthca, rc.IRDMA, rc.EachPacket}}},
		{"loss, three workers", treeConfig{pmtu: 1024, loss: 0.02, seed: 3, workers: "worker: {cpu: [-1, -1, -1]}\n"}},
		{"loss, three workers, several buffers", treeConfig{pmtu: 4096, loss: 0.02, seed: 4, workers: "worker: {cpu: [-1, -1, -1]}\n"}},
		{"loss, no repair", treeConfig{pmtu: 1024, loss: 0.02, seed: 5, workers: "repair: {total: 0}\n"}},
	} {
		t.Run(c.name, inVirtualTime(func(t *testing.T) {
			n := newTreeNet(t, c.cfg)
			tagged, reports := 0, 0
			n.onFrame = func(from, to treeEnd, frame []byte) {
				if from.node == nil || to.node == nil {
					return
				}
				var f rocev2.Frame
				r := rocev2.Decode(frame, &f)
				if f.Kind == rocev2.KindUDP && f.Dst() == n.group {
					reports++
				} else if r != rocev2.OK || !f.VerifyICRC() || f.Dst() != n.group || f.BTH().DestQP() != treeQPN {
					t.Fatalf("%v to %v: %v, for %v", &from, &to, r, f.Dst())
				}
				if f.Eth().Src() != from.node.ports[from.port].mac || f.Eth().Dst() != to.node.ports[to.port].mac {
					t.Fatalf("%v to %v: from MAC %v to %v", &from, &to, f.Eth().Src(), f.Eth().Dst())
				}
				_, tci := f.VLAN()
				if want := from.node.ports[from.port].vlan; tci&vidMask != want {
					t.Fatalf("%v to %v: VLAN %d, want %d", &from, &to, tci&vidMask, want)
				} else if want != 0 {
					tagged++
				}
			}
			for _, src := range []int{0, 3, 4, 1} {
				n.transfer(src, treeOps, []int{0, 1, 777, c.cfg.pmtu, 3*c.cfg.pmtu + 5, 40 * c.cfg.pmtu})
			}
			if tagged == 0 {
				t.Error("no frame was tagged")
			}
			if reports == 0 {
				t.Error("the switches sent no reports")
			}
			n.transfer(2, []rc.WROp{rc.WRSendInv}, []int{5 * c.cfg.pmtu})
			t.Logf("%v of virtual time", n.now())
			for k, times := range n.seen {
				if c.cfg.loss == 0 && times != 1 && !strings.HasPrefix(k, "10.") { // a host repeats what has come before its turn
					t.Errorf("%s: %d times", k, times)
				}
			}
			for _, x := range n.nodes {
				for _, w := range x.all {
					for reason, count := range w.count.drops() {
						if c.cfg.loss == 0 && reason != "no_token" || !strings.Contains("no_token no_source feedback_stale duplicate_data feedback_ahead psn_out_of_range not_source", reason) {
							t.Errorf("%s: %d dropped for %s", x.name, count, reason)
						}
					}
				}
			}
		}))
	}
}

// A link between switches has the same egress queue as one to a host: with a rate, copies
// wait in it and in the repair store, are marked CE, and all of them arrive.
func TestQueueTowardANeighbour(t *testing.T) {
	for _, workers := range []string{"", "worker: {cpu: [-1, -1, -1]}\n"} {
		synctest.Test(t, func(t *testing.T) {
			n := newTreeNet(t, treeConfig{pmtu: 1024, workers: workers})
			leaf := n.nodes[0]
			for _, w := range leaf.all {
				p := w.ports[2]
				p.ecn = newMarker(config.ECN{KMin: 2000, KMax: 8000, PMax: 1}, 1)
				if p.remoteTX == nil {
					p.queue.setRate(20_000_000)
					p.queue.maxBytes = 16 << 10
				}
			}
			marked := 0
			n.onFrame = func(from, to treeEnd, frame []byte) {
				var f rocev2.Frame
				if from.node == leaf && from.port == 2 && rocev2.Decode(frame, &f) == rocev2.OK && f.ECN() == rocev2.CE {
					marked++
				}
			}
			begin := n.now()
			n.transfer(0, []rc.WROp{rc.WRWrite, rc.WRSend}, []int{100_000})
			if took := n.now() - begin; took < 75*time.Millisecond {
				t.Errorf("200,000 bytes took %v by a link of 20 Mbit/s", took)
			}
			if marked == 0 || n.hosts[3].qp.Stats().CEReceived == 0 {
				t.Errorf("%d frames were marked, and a member behind two switches has got %d of them", marked, n.hosts[3].qp.Stats().CEReceived)
			}
			for i, w := range leaf.all {
				if p := w.ports[2]; p.remoteTX == nil && p.maxDepth > 17<<10 {
					t.Errorf("worker %d: %d bytes were queued", i, w.ports[2].maxDepth)
				}
			}
		})
	}
}

// A leg to a switch is needed until the last member behind it has gone.
func TestLegOfSeveralMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTreeNet(t, treeConfig{pmtu: 1024})
		w := n.nodes[0].all[0]
		want := func(what string, copies int) {
			t.Helper()
			if got := w.groups[0].maxCopies; got != copies {
				t.Errorf("%s: frames for %d copies, want %d", what, got, copies)
			}
		}
		want("all", 3)
		w.removeMember(0, 2)
		want("one of three behind a switch has gone", 3)
		w.groups[0].markGone(2)
		w.groups[0].markGone(2)
		want("and once more", 3)
		w.removeMember(0, 3)
		w.removeMember(0, 4)
		want("all behind it have gone", 2)
	})
}
