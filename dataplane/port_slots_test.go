// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/xsktest"
)

// freshPort makes a port p2 with a queue that the test plays, as openPort does.
func (s *fakeStar) freshPort(cfg *config.Config, ifindex int) (*port, *xsktest.Queue) {
	q := xsktest.New(s.umem, xsktest.Config{Ring: cfg.Rings.TX})
	p := &port{
		portIdentity: portIdentity{name: "p2", ifindex: ifindex, mac: rocev2.MAC{2, 0, 0, 0, 3, byte(ifindex)}},
		linkState:    linkState{mtu: 1500}, attachment: attachment{sockets: []xsk.BoundQueue{q}},
	}
	p.prepare(&cfg.Ports[1], cfg)
	return p, q
}

// A slot whose port has frames everywhere (staged, queued, in the rings between workers, at
// the kernel) is closed and opened ten times: no frame is lost, counters go on, and what is
// sent and received goes by the new queue.
func TestSlotIsOpenedAgain(t *testing.T) {
	for name, workers := range map[string]string{"one worker": "-1", "three workers": "[-1, -1, -1]"} {
		t.Run(name, func(t *testing.T) {
			cfg := fakeConfig(t, 2, "umem: {frames: 4096}\nworker: {cpu: "+workers+"}\n", "")
			s := newFakeStar(t, lab.StarConfig{Hosts: 2}, cfg)
			q := s.queues[1][0]
			const slot = 1
			free := s.free() + q.Occupancy().Fill
			for n := range 10 {
				q.Stop(1)
				for _, w := range s.all {
					stageOne(w, slot)
					w.flush()
					stageOne(w, slot)
				}
				tx := s.all[s.txWorker(slot)]
				tx.drainRemote()
				tx.flush()
				for _, w := range s.all { // what waits in the rings between workers
					if w != tx {
						w.flush()
						stageOne(w, slot)
					}
				}
				sent := tx.ports[slot].ring.packets
				if sent == 0 {
					t.Fatal("nothing was sent")
				}
				q.Vanish()
				a := s.closePort(slot)
				a.close()
				s.reclaim(slot, a.sockets)
				if got := s.free(); got != free {
					t.Fatalf("closed: %d frames are free, had %d", got, free)
				}
				var p *port
				p, q = s.freshPort(cfg, 10+n)
				s.install(slot, p)
				for _, w := range s.all {
					x := w.ports[slot]
					if x.ifindex != 10+n || x.mac != p.mac || x.vanished || x.down || x.ring.packets != sent && x.remoteTX == nil {
						t.Fatalf("worker %d has %+v, %+v", w.index, x.portIdentity, x.linkState)
					}
					if x.remoteTX != nil {
						if x.refreshTXLimit(w.now); x.remoteTX.handedBytes != x.remoteTX.takenBytes.Load() {
							t.Error("frames of before wait in a ring between workers")
						}
					}
				}
				if got := s.free() + q.Occupancy().Fill; got != free {
					t.Fatalf("opened: %d frames are free or to be received into, had %d", got, free)
				}
				// Whatever worker has the queue takes a frame from it.
				if !q.Arrive(make([]byte, 64)) {
					t.Fatal("there is no frame to receive into")
				}
				for _, w := range s.all {
					w.receive()
				}
				if got := q.Occupancy().RX; got != 0 {
					t.Fatal("no worker receives by the new queue")
				}
				for _, w := range s.all {
					w.drainHandoff()
					w.flush()
				}
				stageOne(tx, slot)
				tx.flush()
				if sent := q.Sent(); len(sent) != 1 {
					t.Fatalf("%d packets were sent by the new queue, want 1", len(sent))
				}
			}
		})
	}
}
