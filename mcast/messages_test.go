// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// endList is the obvious form of messages: the ends in order, in a slice.
type endList struct {
	done rocev2.MSN
	ends []messageEnd
}

func (l *endList) add(psn rocev2.PSN, count uint32) {
	switch n := len(l.ends); {
	case count == 0:
	case n < maxEnds:
		l.ends = append(l.ends, messageEnd{psn, count})
	default:
		l.ends[n-1] = messageEnd{psn, l.ends[n-1].count + count}
	}
}

func (l *endList) correct(psn rocev2.PSN, ends bool) {
	i := slices.IndexFunc(l.ends, func(e messageEnd) bool { return psn.LessEq(e.psn) })
	if i < 0 {
		i = len(l.ends)
	}
	found := i < len(l.ends) && l.ends[i].psn == psn
	switch {
	case found && !ends && l.ends[i].count == 1:
		l.ends = slices.Delete(l.ends, i, i+1)
	case !found && ends && len(l.ends) < maxEnds && (i == len(l.ends) || l.ends[i].count == 1):
		l.ends = slices.Insert(l.ends, i, messageEnd{psn, 1})
	}
}

func (l *endList) completedBy(psn rocev2.PSN) (rocev2.MSN, bool) {
	n := l.done
	for _, e := range l.ends {
		if psn.Less(e.psn) {
			return n, !slices.ContainsFunc(l.ends, func(o messageEnd) bool { return psn.Less(o.psn) && o.count > 1 })
		}
		n = n.Add(int32(e.count))
	}
	return n, true
}

func (l *endList) advance(psn rocev2.PSN) {
	l.done, _ = l.completedBy(psn)
	l.ends = slices.DeleteFunc(l.ends, func(e messageEnd) bool { return e.psn.LessEq(psn) })
}

// TestMessagesAreAList: the ring of message ends counts as the list does: few and many
// ends, ends that are counted together, corrections, and PSNs and MSNs that wrap.
func TestMessagesAreAList(t *testing.T) {
	for seed := range uint64(40) {
		rng := random(seed)
		m, l := messages{spare: new(pool[messageEnd])}, endList{}
		acked, nxt := rocev2.PSN(0xFFFFF0), rocev2.PSN(0xFFFFF1)
		begin := rocev2.MSN(0xFFFFFA)
		m.reset(begin)
		l.done = begin
		slots, rare := 0, 1+rng(12) // how rarely acked moves
		for step := range 600 {
			switch rng(5 + rare) {
			case 0:
				acked = acked.Add(int32(rng(int(nxt.Sub(acked)))))
				m.advance(acked)
				l.advance(acked)
			case 1:
				if nxt != acked.Next() {
					psn, ends := acked.Add(1+int32(rng(int(nxt.Sub(acked))-1))), rng(2) == 0
					m.correctEnd(psn, ends)
					l.correct(psn, ends)
				}
			case 2:
				if rng(8) == 0 {
					psn, count := nxt.Add(int32(rng(5))), uint32(rng(4))
					m.addEnds(psn, count)
					l.add(psn, count)
					nxt = psn.Next()
				}
			case 3:
				nxt = nxt.Add(int32(rng(3)))
			default:
				m.addEnd(nxt)
				l.add(nxt, 1)
				nxt = nxt.Next()
			}
			slots = max(slots, len(l.ends))
			if m.completed != l.done || int(m.count) != len(l.ends) {
				t.Fatalf("seed %d, step %d: %d messages and %d ends, want %d and %d", seed, step, m.completed, m.count, l.done, len(l.ends))
			}
			for i, e := range l.ends {
				if *m.at(uint16(i)) != e {
					t.Fatalf("seed %d, step %d: end %d is %+v, want %+v", seed, step, i, *m.at(uint16(i)), e)
				}
			}
			for psn := acked; psn.LessEq(nxt); psn = psn.Next() {
				n, exact := m.completedBy(psn)
				if want, sure := l.completedBy(psn); n != want || exact != sure {
					t.Fatalf("seed %d, step %d: %d messages end by %06x, exact: %v, want %d, %v", seed, step, n, uint32(psn), exact, want, sure)
				}
			}
		}
		want := minEnds
		for want < slots {
			want *= 2
		}
		if len(m.ends) != want {
			t.Errorf("seed %d: %d slots for %d ends", seed, len(m.ends), slots)
		}
		if m.reset(3); m.completed != 3 || m.count != 0 || m.first != 0 {
			t.Errorf("seed %d: after reset %d messages, %d ends", seed, m.completed, m.count)
		}
	}
}

// addEnds adds count messages that end at or before psn, the highest so far. They are counted
// together, as those that the list has no room for.
func (m *messages) addEnds(psn rocev2.PSN, count uint32) {
	if count == 0 {
		return
	}
	m.addEnd(psn)
	m.at(m.count - 1).count += count - 1
}

// skip makes the state of group 0 that of a switch which has forwarded everything up to hi-1, in that
// number of messages: for tests about more packets than a test can send.
func (s *Switch) skip(hi rocev2.PSN, messages uint32) {
	g := s.group(0)
	n := uint64(uint32(hi-g.fwd.nxt) & rocev2.PSNMask)
	g.setNxt(hi, g.fwd.limit)
	g.src.lastPSN, g.src.hasLastPSN, g.fwd.midMessage = hi.Prev(), true, false
	if g.repair.store != nil {
		g.repair.store.contiguousFrom = hi
	}
	g.agg.messages.addEnds(hi.Prev(), messages)
	g.counters.DataIn += n
	g.counters.Copies += n * uint64(g.recv.count)
}
