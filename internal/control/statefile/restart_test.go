// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
	"github.com/gleam-rdma/gleam/mcast"
)

// These tests are why the file keeps turns, and what the core has to do with them. A group is
// served by one switch and then, at any moment of a transfer, by another one.

const (
	messages  = 40
	histories = 60
)

// result counts the histories that ended in one way.
type result struct{ done, failed, lies int }

// transfers runs histories in which host 0 sends, after host 1 has sent if both, and the switch
// restarts meanwhile. restart makes the new switch's group; turn is that at the beginning.
func transfers(t *testing.T, probe time.Duration, both bool, restart func(f *fabric, turn *statefile.Turn)) (r result) {
	for _, personality := range []rc.Personality{rc.Strict, rc.RXE} {
		for seed := range uint64(histories) {
			f := newFabric(t, personality, probe, seed)
			f.run(f.now+time.Second, 1000)
			if both {
				f.post(1, 4)
				f.run(f.now+time.Second, 10000)
				if f.hosts[1].completed != 4 {
					t.Fatal("the first transfer is not complete")
				}
			}
			turn := f.turn(0)
			before := f.received()
			f.post(0, messages)
			f.run(f.now+time.Second, f.random.IntN(500))
			f.arrive()
			restart(f, turn)
			f.run(f.now+20*time.Second, 100000)
			switch h := f.hosts[0]; {
			case f.falseCompletion(before):
				r.lies++
			case h.failed:
				r.failed++
			case h.completed == messages:
				r.done++
			default:
				t.Fatalf("%v, seed %d: stuck after %d messages", personality, seed, h.completed)
			}
		}
	}
	t.Logf("%d histories, two members have sent: %v: %+v", 2*histories, both, r)
	return r
}

// turn returns the positions of all members, in a moment in which all of them have everything.
func (f *fabric) turn(source int) *statefile.Turn {
	turn := &statefile.Turn{Source: f.hosts[source].ip}
	for _, h := range f.hosts {
		turn.Positions = append(turn.Positions, statefile.Position{Member: h.ip, Send: h.send, Receive: h.qp.ExpectedPSN()})
	}
	return turn
}

// at returns the specification of the group with the members at the positions of turn.
func (f *fabric) at(turn *statefile.Turn) mcast.GroupSpec {
	spec := f.spec
	spec.Members, spec.PSNProbe = slices.Clone(spec.Members), 0
	for i := range spec.Members {
		spec.Members[i].SQPSN, spec.Members[i].RQPSN = turn.Positions[i].Send, turn.Positions[i].Receive
	}
	return spec
}

// A group that is put again with its registered numbers acknowledges what receivers do not
// have, as soon as two members have sent: the difference between two members' PSNs is another one.
func TestRegisteredNumbersDoNotDo(t *testing.T) {
	r := transfers(t, 0, true, func(f *fabric, _ *statefile.Turn) { f.start(f.spec) })
	if r.lies == 0 {
		t.Errorf("%+v: no false completion; then turns need not be kept", r)
	}
}

// With keepalive probes (R52) nothing false is acknowledged: a receiver expects another PSN
// than the registered one, and the group fails (R55).
func TestProbesFindOldNumbers(t *testing.T) {
	for _, both := range []bool{false, true} {
		r := transfers(t, probeTimeout, both, func(f *fabric, _ *statefile.Turn) { f.start(f.spec) })
		if r.lies > 0 || r.failed < histories {
			t.Errorf("both %v: %+v", both, r)
		}
	}
}

// The turn alone does not do either: receivers acknowledge more than the new switch has
// forwarded, which it takes for another numbering (R54).
func TestTurnAloneDoesNotDo(t *testing.T) {
	for _, both := range []bool{false, true} {
		r := transfers(t, 0, both, func(f *fabric, turn *statefile.Turn) { f.start(f.at(turn)) })
		if r.lies > 0 || r.failed == 0 {
			t.Errorf("both %v: %+v; then nxt need not be learnt", both, r)
		}
	}
}

// With the turn in the group's specification the core learns each receiver's position before
// anything else (R83), and every transfer ends well.
func TestTurnAndPositionsDo(t *testing.T) {
	for _, both := range []bool{false, true} {
		stored := false
		r := transfers(t, probeTimeout, both, func(f *fabric, turn *statefile.Turn) {
			if !stored {
				turn, stored = throughFile(t, f, turn), true
			}
			spec := f.spec
			spec.Resume = &mcast.Positions{HasSource: true}
			for _, p := range turn.Positions {
				spec.Resume.Members = append(spec.Resume.Members, mcast.Position{Known: true, Send: p.Send, Receive: p.Receive})
			}
			f.start(spec)
		})
		if r.done != 2*histories {
			t.Errorf("both %v: %+v", both, r)
		}
	}
}

// throughFile stores turn, and reads it again.
func throughFile(t *testing.T, f *fabric, turn *statefile.Turn) *statefile.Turn {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file, _, err := statefile.Open(dir+"/state", statefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := &statefile.Group{Registration: envelope.Registration{Group: groupIP, Epoch: 1, GroupParams: mcast.GroupParams{QPN: virtualQPN, PathMTU: pmtu}}, Joined: []uint64{1, 1, 1}, Turn: turn}
	for _, m := range f.spec.Members {
		g.Registration.Members = append(g.Registration.Members, envelope.MemberRecord{IP: m.IP, QPN: m.QPN, SQPSN: m.SQPSN, RQPSN: m.RQPSN})
	}
	var c statefile.Change
	c.PutGroup(g)
	file.Append(&c)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	file, found, err := statefile.Open(dir+"/state", statefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	return found.State.Groups[groupIP].Turn
}

// A turn that is older than the source's present one shows by the position of the source
// itself: while it sends it receives nothing.
func TestOldTurnShows(t *testing.T) {
	for _, between := range [][]int{{}, {0}, {1}, {2, 1}, {0, 2, 0}} {
		f := newFabric(t, rc.RXE, probeTimeout, 1)
		f.run(f.now+time.Second, 1000)
		f.post(0, 1)
		f.run(f.now+time.Second, 10000)
		turn := f.turn(0)
		for _, source := range between {
			f.post(source, 2)
			f.run(f.now+time.Second, 10000)
		}
		f.post(0, messages)
		f.run(f.now+time.Second, 200)
		old := slices.ContainsFunc(between, func(i int) bool { return i != 0 })
		if got := f.hosts[0].qp.ExpectedPSN() != turn.Positions[0].Receive; got != old {
			t.Errorf("sources in between %v: old %v", between, got)
		}
	}
}
