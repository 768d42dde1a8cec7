// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// TestWrites: WRITEs come whole and once, with losses too, and the first packet of each is 16 bytes longer.
func TestWrites(t *testing.T) {
	const bytes = 50*4096 + 5
	for name, loss := range map[string]float64{"without loss": 0, "with losses": 5e-3} {
		t.Run(name, func(t *testing.T) {
			shape := topology.LeafSpine(2, 2, 4)
			shape.HostLoss = loss
			fabric := build(t, shape)
			for _, personality := range []rc.Personality{rc.Strict, rc.RXE} {
				p := &receipts{*broadcast(bytes, 0, 1, 5), make([]int64, 8)}
				p.flows = append(p.flows, workload.Flow{Source: 2, To: 6, Group: workload.None, Bytes: bytes}, workload.Flow{Source: 0, To: workload.None, Bytes: 3}, workload.Flow{Source: 2, To: 6, Group: workload.None})
				c := Config{Topology: fabric, Program: p, Host: Host{Personality: personality, Timeout: time.Millisecond, Write: true}, Repair: mcast.RepairSpec{Bytes: 16 << 20, Timeout: 100 * time.Microsecond, Tries: 4}}
				s := run(t, c)
				if r := s.Result(); r.Completed != 4 || r.Delivered != 6 || r.Failed != 0 || p.bytes[1] != bytes+3 || p.bytes[5] != bytes+3 || p.bytes[6] != bytes {
					t.Errorf("%v: %+v, bytes by host %v: want 4 flows", personality, r, p.bytes)
				}
				want := uint64(51*frameBytes + rocev2.RETHLen + 50*4096 + 8 + frameBytes + rocev2.RETHLen)
				if got := s.PortStats(2)[0].Bytes; loss == 0 && got != want {
					t.Errorf("%v: host 2 has sent %d bytes; want %d", personality, got, want)
				}
			}
		})
	}
}

// TestReceives: a host that posts receives too late answers with RNR NAKs. Each message then takes the time
// from one receive to the next, or that of the RNR timer.
func TestReceives(t *testing.T) {
	fabric := build(t, topology.LeafSpine(2, 1, 4))
	const bytes, messages = 4 * 4096, 20
	timer := Time(rocev2.RNRCodeFor(100*time.Microsecond).Duration()) * topology.Nanosecond
	for _, group := range []bool{false, true} {
		program := func() *script {
			p := &script{}
			f := workload.Flow{Source: 0, To: 5, Group: workload.None, Bytes: bytes}
			if group {
				p.groups, f.To, f.Group = [][]topology.Node{{0, 5, 6}}, workload.None, 0
			}
			for range messages {
				p.flows = append(p.flows, f)
			}
			return p
		}
		host := Host{Personality: rc.Strict, RNRTimer: 100 * time.Microsecond}
		at := func(h Host) Time {
			r := run(t, Config{Topology: fabric, Program: program(), Host: h}).Result()
			if want := int64(messages); r.Completed != want || r.Failed != 0 {
				t.Fatalf("group %v: %+v: want %d flows", group, r, messages)
			}
			return r.LastDelivered
		}
		whole := at(host)
		host.ReceiveDelay = 50 * topology.Microsecond
		if late := at(host); late < (messages-1)*timer || late > (messages-1)*(timer+20*topology.Microsecond)+whole {
			t.Errorf("group %v: with one receive, posted again after 50 us: %d ps; want about %d times the RNR timer, %d ps", group, late, messages-1, timer)
		}
		host.Receives = messages
		if early := at(host); early != whole {
			t.Errorf("group %v: with as many receives as messages: %d ps; want %d", group, early, whole)
		}
	}
}

// TestLostAcknowledgements: ACKs and NAKs are lost as data is, and what is corrupted is counted apart from
// what is lost.
func TestLostAcknowledgements(t *testing.T) {
	shape := topology.LeafSpine(2, 1, 2)
	fabric := build(t, shape)
	const bytes = 400 * 4096
	program := &script{flows: []workload.Flow{{Source: 0, To: 3, Group: workload.None, Bytes: bytes}}}
	c := Config{Topology: fabric, Program: program, Host: Host{Personality: rc.Strict, AckEvery: 1, Timeout: time.Millisecond}}
	clean := run(t, c).Result()
	back := fabric.Ports(3)[0].Link
	fabric.Links[back].Loss = 0.2 // of data, too
	s := run(t, c)
	if r, ack := s.Result(), s.PortStats(3)[0]; r.Completed != 1 || r.Failed != 0 || ack.Lost < 20 || ack.Corrupted != 0 || r.Damaged != 0 || r.LastCompleted <= clean.LastCompleted {
		t.Errorf("%+v, the receiver's port %+v: want lost ACKs", r, ack)
	}
	fabric.Links[back].Loss, fabric.Links[back].Corruption = 0, 0.2
	s = run(t, c)
	if r, ack := s.Result(), s.PortStats(3)[0]; r.Completed != 1 || r.Failed != 0 || ack.Lost != 0 || ack.Corrupted < 20 || r.Damaged < ack.Corrupted {
		t.Errorf("%+v, the receiver's port %+v: want corrupted ACKs", r, ack)
	}
}
