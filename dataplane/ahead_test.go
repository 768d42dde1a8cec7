// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// flood is host 1, which sends faster than worker 0 transmits: port 1 and the group are
// worker 1's, which has many batches for each one of worker 0. Ports 0 and 2 are worker 0's
// to transmit for, port 3 is worker 1's. A packet that finds no place is sent again.
type flood struct {
	*pair
	psn   rocev2.PSN // the next that arrives
	acked rocev2.PSN // the next that the receivers acknowledge
}

const aheadBatches = 20 // batches of worker 1 for one of worker 0

func newFlood(t *testing.T) *flood {
	f := &flood{pair: newPair(t, 4, "")}
	f.spec, _ = f.group0()
	f.repair(t, 0)
	return f
}

// batch has worker 1 run one batch with as much to receive as fits, and these hosts
// acknowledge.
func (f *flood) batch(hosts ...int) {
	for f.psn < f.acked+1000 && f.fake.queues[1][0].Arrive(f.build(1, &rocev2.Packet{Op: rocev2.SendOnly, PSN: f.psn, AckReq: true}, nil)) {
		f.psn = f.psn.Next()
	}
	owner := f.crew.all[1]
	before := owner.count.dataIn
	owner.runBatch()
	if n := owner.count.dataIn - before; n > 0 {
		f.acked = f.acked.Add(int32(n))
		for _, i := range hosts {
			f.say(i, f.acked.Prev(), rocev2.SyndromeACK)
		}
	}
}

// sent returns how many packets have left by each port.
func (f *flood) sent() (n [4]uint64) {
	for i := range n {
		n[i] = f.crew.ports[i].ring.packets
	}
	return n
}

// A worker does not serve what another worker is too slow to transmit: no copy is put off,
// or lost, for the members behind that worker's ports alone. The system calls of the slow
// worker are for many packets each.
func TestWorkerWaitsForTheOneThatTransmits(t *testing.T) {
	f := newFlood(t)
	owner, slow := f.crew.all[1], f.crew.all[0]
	const rounds = 100
	for range rounds {
		for range aheadBatches {
			f.batch(0, 2, 3)
		}
		slow.runBatch()
	}
	packets := owner.count.dataIn
	sent := f.sent()
	for _, i := range []int{0, 2, 3} {
		if p := owner.ports[i]; p.deferred+p.refusedFrames != 0 || sent[i] < packets-uint64(owner.ports[0].remoteTX.ring.Size()) {
			t.Errorf("port %d: of %d packets %d have left, %d were put off, %d refused", i, packets, sent[i], p.deferred, p.refusedFrames)
		}
	}
	if n := packets / rounds; n < uint64(owner.ports[0].aheadFrom()) {
		t.Errorf("%d packets for each batch of the slow worker, want %d at least", n, owner.ports[0].aheadFrom())
	}
	if st, _ := f.fake.queues[2][0].Stats(); st.Kicks == 0 || packets/st.Kicks < uint64(owner.ports[0].aheadFrom()) {
		t.Errorf("%d system calls for %d packets", st.Kicks, packets)
	}
}

// A group with many members behind a port gets shorter batches, not copies that are put off.
func TestBatchesFitTheRemoteRing(t *testing.T) {
	f := newFlood(t)
	owner, slow := f.crew.all[1], f.crew.all[0]
	far := owner.ports[0]
	for _, copies := range []int{40, 100, 250} { // a batch may stage 128
		owner.setTable(0, owner.groups[0])
		far.maxPacketCopies, far.maxPacketFrames = copies, copies+maxFeedback
		owner.refreshTXLimits()
		if n := len(owner.rx) * copies; n > far.stageLimit && len(owner.rx) > 1 || n > max(far.stageLimit, copies) {
			t.Errorf("%d packets with %d copies each for a ring with room for %d", len(owner.rx), copies, far.stageLimit)
		}
		for f.batch(0, 2, 3); !owner.isAhead(); f.batch(0, 2, 3) {
			owner.refreshTXLimits()
			if far.stageLimit < copies {
				t.Fatalf("room for %d frames, and a packet has %d copies", far.stageLimit, copies)
			}
		}
		for slow.drainRemote() > 0 {
			slow.flush()
		}
	}
}

// A port that does not transmit keeps nobody waiting, not even the worker that has its
// frames.
func TestNobodyWaitsForAStuckPort(t *testing.T) {
	f := newFlood(t)
	slow := f.crew.all[0]
	f.fake.queues[2][0].Stop(stuckAfter)
	for range 100 {
		for range aheadBatches {
			f.batch(0, 3)
		}
		slow.runBatch()
	}
	if n := f.sent(); n[0] < 5000 || n[3] < 5000 || n[2] > 1000 {
		t.Errorf("%v packets have left by the ports, want 5000 at least by 0 and 3, few by 2", n)
	}
}

// A worker that is ahead runs closures, transmits for the others, and goes on as soon as they
// have caught up. The time counts as a pause: receivers whose ACKs nobody reads are not
// silent.
func TestAheadIsAPause(t *testing.T) {
	f := newFlood(t)
	owner, slow := f.crew.all[1], f.crew.all[0]
	for range aheadBatches {
		f.batch(0, 2, 3)
	}
	due, paused, served := owner.pauses.runBy, owner.pauses.total, owner.count.dataIn
	if !owner.ahead {
		t.Fatal("a full ring keeps nobody waiting")
	}
	time.Sleep(2 * pauseThreshold)
	ran := false
	owner.closures <- func() { ran = true }
	stageOne(slow, 3)
	slow.flush()
	before := f.sent()[3]
	f.batch(0, 2, 3)
	if !ran || f.sent()[3] != before+1 || owner.count.dataIn != served {
		t.Errorf("a closure ran: %v; %d frames left for the other worker; %d packets served", ran, f.sent()[3]-before, owner.count.dataIn-served)
	}
	if owner.pauses.runBy != due || owner.pauses.total != paused {
		t.Errorf("the worker was due by %v, now by %v; pauses %v, were %v", due, owner.pauses.runBy, owner.pauses.total, paused)
	}
	slow.runBatch()
	f.batch(0, 2, 3)
	if owner.ahead || owner.count.dataIn == served || owner.pauses.total == paused {
		t.Errorf("still ahead %v, %d packets served, pauses %v, were %v", owner.ahead, owner.count.dataIn-served, owner.pauses.total, paused)
	}
}
