// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"
)

// A simulation of sources that never pause, in virtual time: how long the source takes
// to change, and what part of the time that costs. A message between switches takes the
// delay of a link, and so does a packet between any two neighbours.

type event struct {
	at time.Duration
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

type simulation struct {
	now    time.Duration
	todo   events
	above  []int
	leaves []int // switches of the members, from 1
	m      []*Machine
	delay  time.Duration
	wait   time.Duration // time between two requests of a member
	turn   time.Duration // time after which the source stops if others wait
	loss   float64       // the part of the messages between switches that is lost
	random *rand.Rand

	since          []time.Duration // times from which on members wait
	wanted         bool
	busy           time.Duration // time in which somebody sent
	begun, ended   time.Duration // times of the present turn
	rested         time.Duration
	turns          int
	travel, change time.Duration // sums
	longest        time.Duration
	messages       int
}

func (s *simulation) after(d time.Duration, do func()) { heap.Push(&s.todo, event{s.now + d, do}) }

// tree makes a tree with a number of leaves at the given depth below the root, each
// behind a path of its own but for the root.
func newSimulation(depth, leaves int, delay, wait time.Duration) *simulation {
	s := &simulation{above: []int{-1}, leaves: []int{0}, delay: delay, wait: wait, turn: 20 * time.Millisecond, random: rand.New(rand.NewPCG(1, uint64(leaves)))}
	for range leaves {
		at := 0
		for range depth {
			s.above = append(s.above, at)
			at = len(s.above) - 1
		}
		s.leaves = append(s.leaves, at)
	}
	s.since = make([]time.Duration, len(s.leaves))
	for i := range s.above {
		var children []Leg
		for c, a := range s.above {
			if a == i {
				children = append(children, Leg(c))
			}
		}
		s.m = append(s.m, New(Config{Root: i == 0, Children: children, Retry: max(DefaultRetry, 4*delay), Switch: simulated{s, i}}))
	}
	for c, a := range s.above {
		if c > 0 {
			s.call(a, func(m *Machine, out *Output) { m.Up(s.now, Leg(c), 1, out) })
			s.call(c, func(m *Machine, out *Output) { m.Up(s.now, Parent, 1, out) })
		}
	}
	return s
}

type simulated struct {
	s  *simulation
	at int
}

func (p simulated) Unfinished() (Member, bool) { return NoMember, false }
func (p simulated) Locate(k Member) Leg {
	if p.s.leaves[k] == p.at {
		return Here
	}
	return Parent
}

// call calls a machine, delivers its messages and does what it orders.
func (s *simulation) call(at int, do func(*Machine, *Output)) {
	var out Output
	do(s.m[at], &out)
	for _, o := range out.Messages {
		to, leg := s.above[at], Leg(at)
		if o.Leg != Parent {
			to, leg = int(o.Leg), Parent
		}
		s.messages++
		if s.random.Float64() >= s.loss {
			s.after(s.delay, func() {
				s.call(to, func(m *Machine, out *Output) { m.Receive(s.now, leg, &o.Message, out) })
			})
		}
	}
	for _, a := range out.Actions {
		switch a.Kind {
		case Serve:
			s.serve(a.Member)
		case Wanted:
			s.wanted = true
			s.end(at)
		}
	}
	if due, ok := s.m[at].NextDeadline(); ok {
		heap.Push(&s.todo, event{due, func() {
			if again, ok := s.m[at].NextDeadline(); ok && again <= s.now {
				s.call(at, func(m *Machine, out *Output) { m.Advance(s.now, out) })
			}
		}})
	}
}

// serve lets the member begin when it repeats its request: at any time within its wait.
func (s *simulation) serve(k Member) {
	if s.turns > 0 {
		s.travel += s.now - s.rested
	}
	next := s.now + time.Duration(s.random.Int64N(int64(s.wait)))
	s.wanted = false
	at := s.leaves[k]
	s.after(next-s.now, func() {
		s.begun = s.now
		if s.turns > 0 {
			s.change += s.now - s.ended
		}
		s.longest = max(s.longest, s.now-s.since[k])
		s.wanted = s.wanted || s.m[at].wanted
		s.end(at)
	})
}

// end ends the turn after its time, if others wait, and asks for the next one.
func (s *simulation) end(at int) {
	k := s.m[at].Serving()
	if !s.wanted || s.begun <= s.ended && s.turns > 0 {
		return
	}
	s.wanted = false
	s.after(max(0, s.begun+s.turn-s.now), func() {
		s.busy += s.now - s.begun
		s.ended = s.now
		depth := time.Duration(0)
		for up := at; up > 0; up = s.above[up] {
			depth++
		}
		// The last packet and its acknowledgement: to the root, to a leaf, to a host.
		s.after(2*(2*depth+1)*s.delay, func() {
			s.turns++
			s.rested = s.now
			s.since[k] = s.now
			s.call(at, func(m *Machine, out *Output) { m.Rested(s.now, out) })
			s.call(at, func(m *Machine, out *Output) { m.Request(s.now, k, out) })
		})
	})
}

func (s *simulation) run(until time.Duration) {
	for k := 1; k < len(s.leaves); k++ {
		first := time.Duration(s.random.Int64N(int64(10 * time.Millisecond)))
		s.since[k] = first
		s.after(first, func() {
			s.call(s.leaves[k], func(m *Machine, out *Output) { m.Request(s.now, Member(k), out) })
		})
	}
	for len(s.todo) > 0 && s.todo[0].at < until {
		e := heap.Pop(&s.todo).(event)
		s.now = e.at
		e.do()
	}
}

// TestSimulation prints the numbers of docs/TREES.md, and holds that the token needs one
// delay for each edge, and no turn is lost.
func TestSimulation(t *testing.T) {
	for _, depth := range []int{1, 2} {
		for _, delay := range []time.Duration{5 * time.Microsecond, 100 * time.Microsecond} {
			for _, wait := range []time.Duration{5120 * time.Microsecond, 1280 * time.Microsecond} {
				for _, sources := range []int{2, 8} {
					s := newSimulation(depth, sources, delay, wait)
					const until = 60 * time.Second
					s.run(until)
					n := time.Duration(s.turns)
					lost := 1 - float64(s.busy)/float64(s.ended)
					t.Logf("%d levels, %v, requests every %v, %d sources: token %v, change of the source %v, lost %.1f %%, longest wait %v, %.1f messages a turn",
						depth+1, delay, wait, sources, s.travel/(n-1), (s.change / (n - 1)).Round(10*time.Microsecond), 100*lost, s.longest.Round(time.Millisecond), float64(s.messages)/float64(s.turns))
					if want, is := 2*time.Duration(depth)*delay, s.travel/(n-1); is < want || is > want+want/100 {
						t.Errorf("the token takes %v, not %v", is, want)
					}
					if least := int(until / (s.turn + wait + 12*time.Duration(depth)*delay)); s.turns < least {
						t.Errorf("%d turns in %v, not %d", s.turns, until, least)
					}
					if most := time.Duration(sources) * (s.turn + wait + 12*time.Duration(depth)*delay); s.longest > most {
						t.Errorf("a member waited for %v, more than %v", s.longest, most)
					}
				}
			}
		}
	}
}

// TestSimulationWithLoss holds that lost messages delay the token, and stop nothing.
func TestSimulationWithLoss(t *testing.T) {
	s := newSimulation(2, 8, 5*time.Microsecond, 5120*time.Microsecond)
	s.loss = 0.3
	s.run(60 * time.Second)
	t.Logf("%d turns, token %v, longest wait %v, %.1f messages a turn", s.turns, s.travel/time.Duration(s.turns-1), s.longest, float64(s.messages)/float64(s.turns))
	if s.turns < 1800 {
		t.Errorf("%d turns in a minute", s.turns)
	}
}
