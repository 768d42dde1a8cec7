// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// naiveLeg is a leg of naiveGroup, in plain numbers: PSNs count from 0, times are ages.
type naiveLeg struct {
	receives, joined, recovering  bool
	acked, owes, lags             int // owes: livenessPSN, lags: lagPSN
	pending                       bool
	owesFor, heardFor, lagsFor    time.Duration
	verified, source              bool
	members                       int
	joining                       bool
	rtt, rttVar                   time.Duration
	livenessTimeout, queueingTime time.Duration
}

// naiveGroup is a random state of a group about thresholds, and the group in that state.
type naiveGroup struct {
	g                       *group
	legs                    []naiveLeg
	acked, minReceivers     int
	dead, deadMost, lagTime time.Duration
}

const naiveBase = rocev2.PSN(0xFFFFFC) // PSN 0 of a naiveGroup: about to wrap

func newNaiveGroup(t *testing.T, rng func(int) int) *naiveGroup {
	t.Helper()
	s := New(Limits{})
	spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 256, Policy: Evict}, PSNProbe: time.Millisecond}
	for i := range 5 {
		spec.Legs = append(spec.Legs, LegSpec{Port: Port(i)})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf(nameOf(MemberID(i))), QPN: 0x100}, Leg: LegID(i)})
	}
	var out Output
	if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
		t.Fatal(err)
	}
	g := s.groups[0]
	g.activate(0)
	ms := func(least, n int) time.Duration { return time.Duration(least+rng(n)) * time.Millisecond }
	n := &naiveGroup{g: g, acked: rng(4), minReceivers: rng(5), dead: ms(0, 4), deadMost: ms(0, 7), lagTime: ms(0, 4)}
	g.live.deadAfter, g.live.deadAfterMax, g.lag.time, g.policy.minReceivers = n.dead, n.deadMost, n.lagTime, int32(n.minReceivers)
	g.agg.acked = naiveBase.Add(int32(n.acked))
	g.src.leg = int32(rng(6)) - 1
	g.recv, g.numbering.numPending = receivers{}, 0
	for i := range 5 {
		x := naiveLeg{
			receives: rng(3) > 0, recovering: rng(4) == 0, acked: rng(4), owes: rng(4), lags: rng(4), pending: rng(2) == 0,
			owesFor: ms(0, 6), heardFor: ms(0, 6), lagsFor: ms(0, 6), verified: rng(2) == 0, source: int32(i) == g.src.leg,
			members: rng(2), joining: rng(2) == 0, queueingTime: ms(0, 3),
		}
		x.joined = x.receives && rng(4) == 0
		x.rtt, x.rttVar = time.Duration(rng(3))*250*time.Microsecond, time.Duration(rng(3))*125*time.Microsecond
		s.SetPortDelay(Port(i), x.queueingTime)
		b, l, a := &g.acks[i], &g.legs[i], &g.activity[i]
		b.acked, b.flags, b.pending = naiveBase.Add(int32(x.acked)), isConnected, sevNone
		for flag, on := range map[uint8]bool{isReceiver: x.receives, joinedInFlight: x.joined, recovering: x.recovering} {
			if on {
				b.flags |= flag
			}
		}
		if x.pending {
			b.pending = sevRNR
		}
		if x.receives {
			g.recv.count++
		}
		if x.joined {
			g.recv.joinedInFlight++
		}
		l.members, l.joining = uint16(x.members), x.joining
		a.livenessPSN, a.lagPSN = naiveBase.Add(int32(x.owes)), naiveBase.Add(int32(x.lags))
		a.livenessSince, a.lastHeard, a.lagSince = stateNow-x.owesFor, stateNow-x.heardFor, stateNow-x.lagsFor
		a.recovery.rtt, a.recovery.rttVar = x.rtt, x.rttVar
		if g.numbering.checks[i].pending = !x.verified; !x.verified {
			g.numbering.numPending++
		}
		x.livenessTimeout = n.timeout(&x)
		n.legs = append(n.legs, x)
	}
	return n
}

// timeout is DeadAfter or, with a maximum above it, eight times the round trip up to that
// maximum, and the time in the queue of the port, twice while the leg is recovering.
func (n *naiveGroup) timeout(x *naiveLeg) time.Duration {
	d := n.dead
	if n.deadMost > n.dead {
		switch r := 8*x.rtt + 32*x.rttVar; {
		case r == 0, r > n.deadMost:
			d = n.deadMost
		case r > d:
			d = r
		}
	}
	if x.recovering {
		d += x.queueingTime
	}
	return d + x.queueingTime
}

func (n *naiveGroup) count(f func(i int, x *naiveLeg) bool) (sum int) {
	for i := range n.legs {
		if f(i, &n.legs[i]) {
			sum++
		}
	}
	return sum
}

// TestLivenessThresholds: the questions about receivers that are silent, lag or are
// unverified are answered as by the text of R23, R37, R38, R52, R59 and R110, about all
// thresholds.
func TestLivenessThresholds(t *testing.T) {
	rng := random(3)
	for range 4000 {
		n := newNaiveGroup(t, rng)
		g := n.g
		best := rng(5)
		for i := range n.legs {
			x := &n.legs[i]
			ahead := n.count(func(_ int, y *naiveLeg) bool { return y.receives && y.acked > x.acked }) > 0
			counts := n.count(func(j int, y *naiveLeg) bool { return j != i && y.receives && !y.joined })
			if !x.receives { // it is not verified: all others count
				counts = n.count(func(j int, y *naiveLeg) bool { return j != i && !y.source && y.members > 0 })
			}
			silentFor := min(x.owesFor, x.heardFor)
			lags := n.lagTime > 0 && x.acked < x.lags && x.lagsFor >= n.lagTime
			for _, c := range []struct {
				what      string
				got, want bool
			}{
				{"timeout", g.livenessTimeout(i) == x.livenessTimeout, true},
				{"silent", g.isSilent(i, stateNow), n.dead > 0 && x.acked < x.owes && silentFor >= x.livenessTimeout},
				{"shows life", g.showsLife(i, stateNow), n.dead == 0 || x.acked >= x.owes || silentFor < x.livenessTimeout/2},
				{"unserved", g.isUnserved(i, stateNow), n.dead > 0 && x.pending && x.acked < n.acked && x.acked < x.owes && x.owesFor >= x.livenessTimeout},
				{"behind", g.isBehind(i), ahead},
				{"may be evicted", g.canEvict(i), counts >= n.minReceivers},
				{"lags", g.exceedsLagTime(i, stateNow, naiveBase.Add(int32(best))), lags},
			} {
				if c.got != c.want {
					t.Fatalf("leg %d %s: %v, want %v; group %+v", i, c.what, c.got, c.want, *n)
				}
			}
			if a := &g.activity[i]; n.lagTime > 0 && x.acked >= x.lags && (a.lagPSN != naiveBase.Add(int32(best)) || a.lagSince != stateNow) {
				t.Fatalf("leg %d does not begin to lag anew: %+v", i, *a)
			}
		}
		sent, served, of := rng(2) == 0, rng(2) == 0, rng(5)
		g.agg.request = request{served: served, psn: naiveBase.Add(int32(of))}
		if sent {
			g.agg.request.severity = sevSequence
		}
		if got, want := g.agg.request.awaits(g.agg.acked.Next()), sent && !served && of == n.acked+1; got != want {
			t.Fatalf("the source owes a packet: %v, want %v; NAK %v of %d, acked %d", got, want, sent, of, n.acked)
		}
		waits := func(x *naiveLeg) bool { return !x.source && x.members > 0 }
		verified := n.count(func(_ int, x *naiveLeg) bool { return waits(x) && x.verified })
		if got := g.anyVerified(); got != (verified > 0) {
			t.Fatalf("verified: %v of %d", got, verified)
		}
		joiners := n.count(func(_ int, x *naiveLeg) bool { return waits(x) && !x.verified && x.joining })
		unverified := n.count(func(_ int, x *naiveLeg) bool { return !x.verified })
		for q := range 6 {
			g.policy.quorum = int32(q)
			want := unverified == 0 || q == 0 && joiners == 0 || q > 0 && verified >= q
			if got := g.mayBeginMessage(); got != want {
				t.Fatalf("quorum of %d: a message may begin: %v, want %v; group %+v", q, got, want, *n)
			}
		}
	}
}

// TestR38_LaggardsExactly: a receiver that is lag behind another one stays; one that is
// further behind goes, if enough remain. The floor is then the lowest that remains.
func TestR38_LaggardsExactly(t *testing.T) {
	rng := random(5)
	for range 2000 {
		n := newNaiveGroup(t, rng)
		g := n.g
		lag, best := rng(4), rng(5)
		for i := range n.legs {
			if n.legs[i].recovering || n.legs[i].joined {
				n.legs[i].recovering, n.legs[i].joined = false, false
				g.acks[i].flags &^= recovering | joinedInFlight
			}
			best = max(best, n.legs[i].acked)
			g.legs[i].member = MemberID(i)
		}
		g.recv.joinedInFlight, g.lag.psns = 0, int32(lag)
		left := n.count(func(_ int, x *naiveLeg) bool { return x.receives })
		floor := best
		var gone []int
		for i := range n.legs {
			switch x := &n.legs[i]; {
			case !x.receives:
			case best-x.acked > lag && left-1 >= n.minReceivers:
				left--
				gone = append(gone, i)
			default:
				floor = min(floor, x.acked)
			}
		}
		var out Output
		g.evictLaggards(naiveBase.Add(int32(best)), &out)
		if g.lag.floor != naiveBase.Add(int32(floor)) {
			t.Fatalf("floor %06x, want %06x", uint32(g.lag.floor), uint32(naiveBase.Add(int32(floor))))
		}
		if len(out.Events) != len(gone) {
			t.Fatalf("%d are evicted, want %v", len(out.Events), gone)
		}
		for k, i := range gone {
			if e := out.Events[k]; int(e.Member) != i || e.Cause != Lagging {
				t.Fatalf("evicted %+v, want %v", out.Events, gone)
			}
		}
	}
}
