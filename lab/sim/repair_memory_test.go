// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/mcast"
)

// repairMemory is what one switch keeps for the repair of 64 active groups of three members, whose sources send
// a message each, at 1.5 Gbit/s, and ask for an ACK at every ackEvery-th packet. Links of hosts lose one packet in
// 1,000. peak is the sum of the most that each group has kept.
func repairMemory(t *testing.T, ackEvery int, switchEvery uint32) (peak int64, notRetained uint64, end Time) {
	const groups, packets = 64, 2048
	lossy := topology.LeafSpine(1, 1, 3*groups)
	lossy.HostLoss = 1e-3
	p := &script{}
	for g := range groups {
		p.groups = append(p.groups, []topology.Node{topology.Node(3 * g), topology.Node(3*g + 1), topology.Node(3*g + 2)})
		p.flows = append(p.flows, workload.Flow{Source: topology.Node(3 * g), Group: int32(g), Bytes: packets * 4096})
	}
	s := run(t, Config{
		Topology: build(t, lossy), Program: p, Host: Host{Personality: rc.Strict, AckEvery: ackEvery, Rate: 1_500_000_000},
		Repair: mcast.RepairSpec{Bytes: 16 << 20, Timeout: mcast.DefaultRepairTimeout, Tries: mcast.DefaultRepairTries}, RepairBytes: 8 << 20, SwitchAckEvery: switchEvery,
	})
	r := s.Result()
	if r.Completed != groups || r.Delivered != 2*groups || r.Failed != 0 {
		t.Fatalf("%+v: want %d messages at two receivers each", r, groups)
	}
	sw := s.switchAt(3 * groups)
	var st mcast.GroupStatus
	for id := range groups {
		if sw.core.Group(mcast.GroupID(id)).Snapshot(&st) {
			peak += st.RetainedMax
			notRetained += st.Counters.NotRetained
		}
	}
	return peak, notRetained, r.LastCompleted
}

// The frames that find no room in 8 MiB are those that wait for the source's AckReq: none with those of the
// switch, however seldom the source asks (R112).
func TestRepairMemory(t *testing.T) {
	for _, every := range []int{1, 256, 1024} {
		peak, without, end := repairMemory(t, every, 0)
		t.Logf("AckReq at each %4d packets by the source alone: %5.2f MiB at most, %5d frames without room, %5.2f ms", every, float64(peak)/(1<<20), without, end.Seconds()*1e3)
		if every > 1 && without == 0 {
			t.Errorf("AckReq at each %d packets: the memory suffices without the switch's: nothing is shown", every)
		}
		peak, without, end = repairMemory(t, every, mcast.DefaultAckEvery)
		t.Logf("AckReq at each %4d packets, and at the switch's: %5.2f MiB at most, %5d frames without room, %5.2f ms", every, float64(peak)/(1<<20), without, end.Seconds()*1e3)
		if without != 0 {
			t.Errorf("AckReq at each %d packets, and at the switch's: %d frames without room", every, without)
		}
	}
}
