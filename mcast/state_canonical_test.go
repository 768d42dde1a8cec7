// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/internal/statecode"
	"github.com/gleam-rdma/gleam/rocev2"
)

// encodingWith returns the encoding of fullState after a change.
func encodingWith(t *testing.T, change func(s *Switch, g *group)) []byte {
	s := fullState(t)
	change(s, s.groups[0])
	return s.AppendState(nil, stateNow)
}

// TestStateForgetsOldTimes: a time is encoded only as long as it makes a difference. From
// the given age on its encoding does not change any more; before, each age has its own.
func TestStateForgetsOldTimes(t *testing.T) {
	leg := func(g *group) *legActivity { return &g.activity[1] }
	for _, c := range []struct {
		name  string
		limit time.Duration
		set   func(g *group, at time.Duration)
	}{
		{"source's last packet", MaxInOrderGap + 1, func(g *group, at time.Duration) { g.src.lastPSNAt = at }},
		{"source's silence", DefaultSourceTimeout, func(g *group, at time.Duration) { g.turn.silentSince = at }},
		{"contention", DefaultTurnTime << 2, func(g *group, at time.Duration) { g.turn.contendedSince = at }},
		{"turn's end", turnReserved, func(g *group, at time.Duration) { g.turn.endingSince = at }},
		{"drained", turnReserved, func(g *group, at time.Duration) { g.turn.drainedSince = at }},
		{"request", turnReserved, func(g *group, at time.Duration) { g.turn.requestedAt = at }},
		{"liveness", time.Second, func(g *group, at time.Duration) { leg(g).livenessSince = at }},
		{"feedback", time.Second, func(g *group, at time.Duration) { leg(g).lastHeard = at }},
		{"liveness, up to a maximum", 3 * time.Second, func(g *group, at time.Duration) { g.live.deadAfterMax, leg(g).livenessSince = 3*time.Second, at }},
		{"feedback, up to a maximum", 3 * time.Second, func(g *group, at time.Duration) { g.live.deadAfterMax, leg(g).lastHeard = 3*time.Second, at }},
		{"liveness, of all", 3 * time.Second, func(g *group, at time.Duration) { g.live.allDeadMS, leg(g).livenessSince = 3000, at }},
		{"liveness, behind two levels of switches", 4 * time.Second, func(g *group, at time.Duration) {
			g.extra.forwards, g.extra.levels = []LegID{1}, []uint8{2}
			leg(g).livenessSince = at
		}},
		{"liveness, with a queue", 5 * time.Second, func(g *group, at time.Duration) {
			g.sw.SetPortDelay(0, 2*time.Second)
			leg(g).livenessSince = at
		}},
		{"lag", time.Second, func(g *group, at time.Duration) { leg(g).lagSince = at }},
		{"probe", time.Second, func(g *group, at time.Duration) { leg(g).probedFrom = at }},
		{"expected ACK", 4 * time.Millisecond, func(g *group, at time.Duration) { leg(g).recovery.unanswered, leg(g).recovery.expectedSince = true, at }},
		{"source's quarantine", 0, func(g *group, at time.Duration) { g.src.quarantinedUntil = at }},
		{"member's quarantine", 0, func(g *group, at time.Duration) { g.newHistory(1).quarantinedUntil = at }},
		{"departures", 0, func(g *group, at time.Duration) { g.sw.departures.overflowUntil = at }},
		{"a departure", 0, func(g *group, at time.Duration) { g.sw.departures.at(0).until = at }},
	} {
		of := func(age time.Duration) []byte {
			return encodingWith(t, func(_ *Switch, g *group) { c.set(g, stateNow-age) })
		}
		at := of(c.limit)
		if !bytes.Equal(at, of(c.limit+1)) || !bytes.Equal(at, of(c.limit+time.Minute)) {
			t.Errorf("%s: ages from %v on have several encodings", c.name, c.limit)
		}
		if bytes.Equal(at, of(c.limit-1)) || bytes.Equal(of(c.limit-1), of(c.limit-2)) {
			t.Errorf("%s: ages below %v have one encoding", c.name, c.limit)
		}
	}
}

// TestStateLeavesOut: what has no influence is not encoded.
func TestStateLeavesOut(t *testing.T) {
	for name, change := range map[string][2]func(s *Switch, g *group){
		"departures of groups that verify nothing": {
			func(s *Switch, g *group) { g.numbering.interval = 0 },
			func(s *Switch, g *group) { g.numbering.interval, s.departures.count = 0, 2 },
		},
		"a round trip over a pause": {
			func(s *Switch, g *group) { g.rtt.pending = false },
			func(s *Switch, g *group) { g.rtt.pauses++ },
		},
		"the wait of the next member": {
			func(s *Switch, g *group) { g.newHistory(1).waits = stateNow - 7 },
			func(s *Switch, g *group) { g.newHistory(1).waits = stateNow - 9 },
		},
		"since when a leg owes nothing": {
			func(s *Switch, g *group) { g.activity[1].recovery.expectedACK = g.acks[1].acked },
			func(s *Switch, g *group) {
				m := &g.activity[1].recovery
				m.expectedACK, m.expectedSince = g.acks[1].acked.Prev(), stateNow-1
			},
		},
		"when a leg that waits for ever was asked": {
			func(s *Switch, g *group) { g.live.deadAfter, g.activity[1].recovery.escalated = 0, true },
			func(s *Switch, g *group) {
				m := &g.activity[1].recovery
				g.live.deadAfter, m.escalated, m.expectedSince = 0, true, stateNow-1
			},
		},
		"times of a leg that does not receive": {
			func(s *Switch, g *group) { g.acks[1].flags = isConnected },
			func(s *Switch, g *group) {
				g.acks[1].flags, g.activity[1].lagPSN, g.activity[1].livenessPSN = isConnected, 1, 2
			},
		},
		"times of a leg that is not watched": {
			func(s *Switch, g *group) { g.due.stop(livenessCheck) },
			func(s *Switch, g *group) {
				g.due.stop(livenessCheck)
				g.activity[1].lagPSN, g.activity[1].livenessPSN = 1, 2
			},
		},
	} {
		if !bytes.Equal(encodingWith(t, change[0]), encodingWith(t, change[1])) {
			t.Errorf("%s is encoded", name)
		}
	}
}

// TestStateKeeps: parts that most groups do not have are encoded if there is any of them.
func TestStateKeeps(t *testing.T) {
	plain := encodingWith(t, func(s *Switch, g *group) { g.cnp, g.refusal = cnpFilter{leg: none}, refusal{} })
	for name, change := range map[string]func(g *group){
		"leg of signals":     func(g *group) { g.cnp, g.refusal = cnpFilter{leg: 0}, refusal{} },
		"signal that passed": func(g *group) { g.cnp, g.refusal = cnpFilter{leg: none, passed: true}, refusal{} },
		"refusal":            func(g *group) { g.cnp, g.refusal = cnpFilter{leg: none}, refusal{psn: 1} },
	} {
		enc := encodingWith(t, func(_ *Switch, g *group) { change(g) })
		back := fullState(t)
		if rest, err := back.SetState(enc, stateNow); err != nil || len(rest) > 0 {
			t.Errorf("%s: %d bytes left, %v", name, len(rest), err)
		}
		if again := back.AppendState(nil, stateNow); bytes.Equal(enc, plain) || !bytes.Equal(again, enc) {
			t.Errorf("%s is lost", name)
		}
	}
}

// TestStateOfAnIdleGroup: a group that has given back the memory for its data has the same
// state as before.
func TestStateOfAnIdleGroup(t *testing.T) {
	for _, repair := range []int64{0, 64 << 10} {
		s := manyGroups(t, 2, 3, repair)
		var out Output
		serveOne(t, s, &out, time.Second, 0, 0)
		now := time.Second + 2*idleAfter
		advance(s, &out, now)
		g := s.groups[0]
		if !g.idle(now) {
			t.Fatalf("repair of %d bytes: the group is not idle", repair)
		}
		before := s.AppendState(nil, now)
		g.deactivate()
		if after := s.AppendState(nil, now); !bytes.Equal(before, after) {
			t.Errorf("repair of %d bytes: before %x, after %x", repair, before, after)
		}
	}
}

// TestSetStateTakesNoNonsense: a changed byte of an encoding causes no panic, neither when
// it is read nor when the state that it means is encoded again.
func TestSetStateTakesNoNonsense(t *testing.T) {
	enc := fullState(t).AppendState(nil, stateNow)
	s := fullState(t)
	for i := range enc {
		for _, v := range []byte{0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 127, 128, 129, 200, 254, 255, enc[i] + 1, enc[i] - 1} {
			bad := bytes.Clone(enc)
			bad[i] = v
			if _, err := s.SetState(bad, stateNow); err == nil {
				s.AppendState(nil, stateNow)
			} else {
				s = fullState(t)
			}
		}
	}
}

// TestStateBounds: numbers of entries up to their bounds are read, and greater ones are
// refused.
func TestStateBounds(t *testing.T) {
	s := fullState(t)
	s.groups[0].fwd.nxt = 9
	read := func(f func(c *stateCode), b ...byte) bool {
		c := stateCode{Code: statecode.Code{Bytes: append(b, make([]byte, 1<<16)...), Now: stateNow, Reading: true}, sw: s, g: s.groups[0]}
		f(&c)
		return !c.Malformed
	}
	frames := s.groups[0].repair.store.size()
	for name, c := range map[string]struct {
		most int
		read func(c *stateCode)
	}{
		"ends of messages": {maxEnds, func(c *stateCode) { c.messageRing(&messages{spare: &s.pools.ends}) }},
		"target messages":  {maxTargetMessages, func(c *stateCode) { c.targetRing(newTargets(2)) }},
		"frames":           {frames, func(c *stateCode) { c.frames(c.g.repair.store) }},
		"held packets":     {frames, func(c *stateCode) { c.heldPackets(&c.g.repair.store.held) }},
	} {
		for n := c.most; n <= c.most+1; n++ {
			if ok := read(c.read, binary.AppendUvarint(nil, uint64(n))...); ok != (n <= c.most) {
				t.Errorf("%d %s: read %v", n, name, ok)
			}
		}
	}
	for n := maxDepartures; n <= maxDepartures+1; n++ {
		var d departures
		b := bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0}, n) // there is one, four words, a port, never
		if ok := read(func(c *stateCode) { c.departureRing(&d) }, b...); ok != (n <= maxDepartures) || ok && d.count != uint32(n) {
			t.Errorf("%d departures: read %v, %d", n, ok, d.count)
		}
	}
}

// TestSetStateRefusesIndexes: an index of a member, or a state, that there is not is refused.
func TestSetStateRefusesIndexes(t *testing.T) {
	for name, change := range map[string]func(g *group){
		"source":               func(g *group) { g.src.member = 3 },
		"no source":            func(g *group) { g.src.member = none - 1 },
		"next":                 func(g *group) { g.turn.next = 3 },
		"no next":              func(g *group) { g.turn.next = none - 1 },
		"source that resumes":  func(g *group) { g.extra.resume.source = 3 },
		"recovery":             func(g *group) { g.activity[1].recovery.state = numRecoveryStates },
		"leg in sync":          func(g *group) { g.activity[1].recovery.state = inSync },
		"leg that recovers":    func(g *group) { g.acks[1].flags &^= recovering },
		"path":                 func(g *group) { g.repair.path = numOffloadStates },
		"packets of no source": func(g *group) { g.src.member = none },
	} {
		if _, err := fullState(t).SetState(encodingWith(t, func(_ *Switch, g *group) { change(g) }), stateNow); !errors.Is(err, errForeignState) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStateAtItsBounds: a state with as many parts as there may be survives.
func TestStateAtItsBounds(t *testing.T) {
	s := fullState(t)
	g := s.groups[0]
	for psn := g.fwd.nxt; g.agg.messages.count < maxEnds; psn = psn.Next() {
		g.agg.messages.addEnd(psn)
	}
	for psn := rocev2.PSN(100); g.fwd.targets.count < maxTargetMessages; psn = psn.Next() {
		g.fwd.targets.insert(psn).legs[1] = target{uint64(psn), 5, true}
	}
	for i := range uint64(maxDepartures + 1) {
		s.departures.add(stateNow, &s.ports, rocev2.AddrKey{Lo: 1}, rocev2.AddrKey{Lo: i}, Port(i))
	}
	enc := s.AppendState(nil, stateNow)
	back := fullState(t)
	if rest, err := back.SetState(enc, stateNow); err != nil || len(rest) > 0 {
		t.Fatalf("%d bytes left, %v", len(rest), err)
	}
	if !bytes.Equal(back.AppendState(nil, stateNow), enc) {
		t.Error("the state does not survive")
	}
	if m := &back.groups[0].agg.messages; m.count != maxEnds || *m.at(maxEnds - 1) != *g.agg.messages.at(maxEnds - 1) {
		t.Errorf("%d ends of messages", m.count)
	}
	if d := &back.departures; d.count != maxDepartures || *d.at(maxDepartures - 1) != *s.departures.at(maxDepartures - 1) {
		t.Errorf("%d departures", d.count)
	}
}
