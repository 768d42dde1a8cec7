// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"bytes"
	"errors"
	"reflect"
	"regexp"
	"testing"
	"time"
	"unsafe"

	"github.com/gleam-rdma/gleam/rocev2"
)

const stateNow = time.Hour

// fullState returns a switch in which every part of the state is set.
func fullState(t *testing.T) *Switch {
	t.Helper()
	s := New(Limits{})
	spec := goodSpec()
	spec.ID, spec.Legs, spec.Members = 0, spec.Legs[:2], spec.Members[:2]
	spec.Legs = append(spec.Legs, LegSpec{})
	spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf("C"), QPN: 0x11}, Leg: 2})
	spec.Policy, spec.Quorum, spec.DeadAfter, spec.LagPSNs, spec.LagTime = Quorum, 1, time.Second, 5, time.Second
	spec.PSNProbe = time.Millisecond
	spec.Repair = RepairSpec{Bytes: 8192, Timeout: time.Millisecond, Tries: 3}
	spec.FastPath = FastPathSpec{Slots: 4, Drain: time.Millisecond, Backoff: time.Millisecond}
	var out Output
	if err := s.Apply(stateNow, PutGroup{spec}, &out); err != nil {
		t.Fatal(err)
	}
	s.timers.reset()
	s.timers.arm(0, stateNow+1)
	s.groups[0].src.quarantinedUntil, s.groups[0].extra = stateNow+3, &extra{history: []memberHistory{{quarantinedUntil: stateNow + 4, refusalReported: true}, {}, {}}, offload: s.groups[0].extra.offload}
	s.groups[0].repair.path = draining
	s.groups[0].extra.offload.drainUntil, s.groups[0].extra.offload.grantFrom = stateNow+5, stateNow+6
	g := s.groups[0]
	g.activate(stateNow)
	g.src.member, g.src.leg, g.src.addr = 0, 0, g.members[0].ip
	g.newHistory(0).waits, g.newHistory(1).waits = stateNow-8, stateNow-9
	g.turn = turn{next: 1, requestedAt: stateNow - 5, contendedSince: stateNow - 8, endingSince: stateNow - 5, drainedSince: stateNow - 4, misses: 2, time: g.turn.time, sourceTimeout: g.turn.sourceTimeout}
	g.src.lastPSNAt, g.turn.silentSince = stateNow-50*time.Microsecond, stateNow-3
	g.agg.acked, g.fwd.nxt, g.src.lastPSN, g.src.hasLastPSN, g.agg.request = 4, 9, 7, true, request{5, sevRNR, true}
	g.agg.numAtAcked, g.agg.allowedBehind, g.recv.count, g.recv.joinedInFlight, g.agg.numPending = 1, 1, 2, 1, 1
	g.lag.floor, g.recv.inFlightUntil = 4, 8
	g.refusal = refusal{8, 0x61, BadLength}
	g.fwd.writeMessage = writeMessage{true, 7, 2000}
	g.gates = failed | quarantined | ending | refused | blocked | holding | awaitsFile | resumes | messageRefused
	g.failure.psn, g.failure.syndrome = 5, 0x62
	g.cnp.leg, g.cnp.legAt, g.cnp.passedAt, g.cnp.passed = 1, stateNow-3, stateNow-2, true
	g.due = deadlines{stateNow + 3, stateNow + 4, stateNow + 7}
	for i := range g.acks {
		g.acks[i] = ackState{acked: 4, delta: 2, flags: isReceiver | isConnected | recovering, pending: sevRNR, pendingSyndrome: 0x21}
		l := &g.activity[i]
		l.cnpWeight, l.cnpWeightAt, l.lastHeard, l.livenessPSN, l.livenessSince, l.lagPSN, l.lagSince = 300, stateNow-5, stateNow-6, 6, stateNow-7, 4, stateNow-8
		l.repeatedSinceNAK, l.repeatFirst, l.repeatLast = true, 5, 6
		l.recovery = recovery{drainUntil: stateNow + 7,
			state: probing, cursor: 6, firstUnsent: 7, ackReqPSN: 6, probeEvery: 16, untilProbe: 3, tries: 2, burst: 4, burstEnd: 6, lossAt: stateNow - 3, rttFrom: stateNow - 3, resumeAt: stateNow + 4, rnrWaited: 9, expectedACK: 8, expectedSince: stateNow - 3, rtt: 11, rttVar: 12,
		}
	}
	for i := range g.legs {
		g.numbering.checks[i] = verification{pending: true, acceptedNothing: true, messagesBefore: 7, isRXE: true, probesSent: 3, emptyAnswers: 2, wrongAnswer: true, answeredPSN: 5, probesSinceAnswer: 1,
			returning: true, answeredOnce: true, probedAgain: true, restored: true, positioned: true}
		g.activity[i].probedFrom = stateNow + 7
	}
	s.departures.count, s.departures.overflowUntil = 1, stateNow+8
	for i := range 2 {
		s.departures.ring[i] = departure{rocev2.AddrKey{Hi: 1, Lo: 2}, rocev2.AddrKey{Hi: 3, Lo: 4}, 5, stateNow + 9, 0}
	}
	g.numbering = numbering{checks: g.numbering.checks, interval: g.numbering.interval, numPending: 2, backoff: 3, rounds: 2, nextLeg: 1, gap: true, gapFrom: 4, gapNext: 6, deferredUntil: stateNow + 2}
	g.fwd.limit, g.storage, g.policy.stored = 12, storage{reported: 4, number: 3}, true
	g.extra.resume = resume{source: 1, unknownEnd: true, unconfirmed: true, goneBack: 2, lowest: 7, seen: true, last: 9}
	g.repair.numRecovering, g.repair.ackReqPSN, g.rtt.pending, g.rtt.psn, g.rtt.sentAt = 2, 8, true, 8, stateNow-4
	g.repair.store.first = 5
	g.repair.store.reach(4)
	*g.repair.store.at(8) = retained{va: 1 << 40, frame: 3, bytes: 100, passedAt: 10, rewrite: rewriteByWindow, ackReq: true}
	g.repair.store.first, g.repair.store.contiguousFrom, g.repair.store.bytes, s.repair.used = 5, 8, 100, 100
	g.repair.store.held = held{packets: []Packet{{Op: rocev2.SendOnly, PSN: 7, Port: 1, Payload: 2, VA: 3, RKey: 4, DMALen: 5, Frame: 6, RetainBytes: 100}}, bytes: 100, since: stateNow - 3}
	s.repair.used = 200
	g.fwd.targets = newTargets(len(g.legs))
	g.fwd.targets.acked[0] = target{1 << 40, 7, true}
	g.fwd.targets.insert(6).legs[0] = target{1 << 41, 8, true}
	g.agg.messages.completed = 3
	g.agg.messages.addEnd(6)
	g.agg.messages.addEnd(8)
	return s
}

// kindOf returns the kind in the tag of a field (package internal/statecode).
func kindOf(f reflect.StructField) string { return kind.FindString(f.Tag.Get("state")) }

var kind = regexp.MustCompile(`^[a-z]*`)

// visit calls f for every number and flag of the state below v, with a name to print. What
// follows from others is left out.
func visit(v reflect.Value, path string, f func(name string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			visit(v.Elem(), path, f)
		}
	case reflect.Slice, reflect.Array:
		if v.Len() > 0 {
			visit(v.Index(0), path, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch x := v.Type().Field(i); kindOf(x) {
			case "constant", "ignored", "derived":
			default:
				visit(v.Field(i), path+"."+x.Name, f)
			}
		}
	default:
		f(path, v)
	}
}

// TestStateHasEveryField changes each encoded field by itself: the encoding has to
// change, and SetState has to restore the change.
func TestStateHasEveryField(t *testing.T) {
	plain := fullState(t).AppendState(nil, stateNow)
	count := 0
	visit(reflect.ValueOf(fullState(t)), "Switch", func(name string, _ reflect.Value) {
		count++
		s := fullState(t)
		visit(reflect.ValueOf(s), "Switch", func(n string, v reflect.Value) {
			if n == name {
				change1(v)
			}
		})
		enc := s.AppendState(nil, stateNow)
		if bytes.Equal(enc, plain) {
			t.Errorf("%s is not in the encoding", name)
			return
		}
		back := fullState(t)
		if rest, err := back.SetState(enc, stateNow); err != nil || len(rest) > 0 {
			t.Errorf("%s: SetState: %d bytes left, %v", name, len(rest), err)
		} else if again := back.AppendState(nil, stateNow); !bytes.Equal(again, enc) {
			t.Errorf("%s: does not survive SetState:\n%x\n%x", name, enc, again)
		}
	})
	if count < 150 {
		t.Errorf("only %d fields were changed", count)
	}
}

// TestStateHasEveryGate changes each gate by itself, and each deadline.
func TestStateHasEveryGate(t *testing.T) {
	plain := fullState(t).AppendState(nil, stateNow)
	for gate := failed; gate <= unstored; gate <<= 1 {
		s := fullState(t)
		s.groups[0].gates ^= gate
		enc, back := s.AppendState(nil, stateNow), fullState(t)
		if bytes.Equal(enc, plain) {
			t.Errorf("gate %#x is not in the encoding", gate)
		} else if _, err := back.SetState(enc, stateNow); err != nil || !bytes.Equal(back.AppendState(nil, stateNow), enc) {
			t.Errorf("gate %#x does not survive SetState: %v", gate, err)
		} else if back.groups[0].is(gate) != s.groups[0].is(gate) {
			t.Errorf("gate %#x is not restored", gate)
		}
	}
	for k := range numDeadlines {
		s := fullState(t)
		s.groups[0].due[k]++
		enc, back := s.AppendState(nil, stateNow), fullState(t)
		if _, err := back.SetState(enc, stateNow); err != nil || bytes.Equal(enc, plain) || back.groups[0].due != s.groups[0].due {
			t.Errorf("deadline %d does not survive: %v, %v", k, back.groups[0].due, err)
		}
	}
}

// change1 changes an unexported number or bool. Of ackState.flags it changes a bit that
// does not affect the meaning of other fields.
func change1(v reflect.Value) {
	v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8:
		v.SetUint(v.Uint() ^ 1)
	default:
		v.SetUint(v.Uint() + 1)
	}
}

// TestStateMovesInTime: a state that is set at a later time behaves the same, later by the
// same difference.
func TestStateMovesInTime(t *testing.T) {
	s, later := fullState(t), fullState(t)
	enc := s.AppendState(nil, stateNow)
	if _, err := later.SetState(enc, stateNow+time.Minute); err != nil {
		t.Fatal(err)
	}
	if got := later.AppendState(nil, stateNow+time.Minute); !bytes.Equal(got, enc) {
		t.Errorf("got  %x\nwant %x", got, enc)
	}
	at, ok := later.NextDeadline()
	if !ok || at != stateNow+time.Minute+1 {
		t.Errorf("next deadline %v, %v", at, ok)
	}
}

func TestSetStateRefusesOtherBytes(t *testing.T) {
	enc := fullState(t).AppendState(nil, stateNow)
	for n := range enc {
		if _, err := fullState(t).SetState(enc[:n], stateNow); !errors.Is(err, errForeignState) {
			t.Fatalf("%d of %d bytes: %v", n, len(enc), err)
		}
	}
	if rest, err := fullState(t).SetState(append(enc, 1, 2), stateNow); err != nil || len(rest) != 2 {
		t.Errorf("%d bytes left, %v", len(rest), err)
	}
}
