// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hello

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The search below visits all states of a link between two switches: hellos are sent at any
// time, lost, delayed and delivered twice; hold times pass, carriers flap, switches start
// anew, and a third switch is seen by one of them. It looks for an end that has one session
// twice, and for a state from which the two do not agree on a session.

// searchTime stands still: the search lets hold times pass by itself.
const searchTime = time.Hour

// linkWorld is a state of the search.
type linkWorld struct {
	ends     [2]linkEnd
	restarts int
}

type linkEnd struct {
	*Link
	air   []airborne // hellos of this end that the other may still get, oldest first
	ended []ended    // sessions that this end has had
	now   ended      // the present one; the zero value: none
}

// airborne is a hello on its way.
type airborne struct {
	b []byte
	m Message
}

// ended is a session with the two challenges that it follows from.
type ended struct{ session, own, peers uint64 }

func (w *linkWorld) clone() *linkWorld {
	c := *w
	for i := range c.ends {
		e := &c.ends[i]
		l, random := *e.Link, *e.random
		l.random, l.peers = &random, make([]*peer, len(e.peers))
		for n, p := range e.peers {
			q := *p
			l.peers[n] = &q
		}
		e.Link, e.air, e.ended = &l, slices.Clone(e.air), slices.Clone(e.ended)
	}
	return &c
}

// searchStep is an action of the search; it returns false where it changes nothing.
type searchStep struct {
	name string
	do   func(w *linkWorld) bool
}

// third is a switch that one end sees, and the other does not.
var third = Speaker{77, 77}

// searchSteps are the steps of one end.
func searchSteps(i, inFlight, restarts int) []searchStep {
	var out Output
	end := func(w *linkWorld) *linkEnd { return &w.ends[i] }
	steps := []searchStep{
		{"sends", func(w *linkWorld) bool {
			e := end(w)
			e.next = searchTime
			e.Advance(searchTime, &out)
			m, _ := Open(out.Packets[0], testKeys())
			e.air = append(e.air, airborne{out.Packets[0], m})
			if len(e.air) > inFlight {
				e.air = e.air[1:] // lost
			}
			return true
		}},
		{"starts anew", func(w *linkWorld) bool {
			if w.restarts == restarts {
				return false
			}
			w.restarts++
			e := end(w)
			c := e.config
			c.Incarnation++
			c.Seed[30]++
			e.Link, _ = NewLink(searchTime, c)
			e.ended, e.now = nil, ended{}
			return true
		}},
		{"has its carrier flap", func(w *linkWorld) bool {
			e := end(w)
			e.SetLink(searchTime, false, &out)
			e.SetLink(searchTime, true, &out)
			return true
		}},
		{"sees a third switch", func(w *linkWorld) bool {
			e := end(w)
			if slices.ContainsFunc(e.peers, func(p *peer) bool { return p.Speaker == third }) || len(e.peers) == MaxNeighbours {
				return false
			}
			p := &peer{Neighbour: Neighbour{Speaker: third, Session: 77}, challenge: 77, echo: 77, proved: true, deadline: searchTime * 2}
			e.peers = append(e.peers, p)
			e.decide(searchTime, &out)
			return true
		}},
	}
	for n := range inFlight {
		steps = append(steps, searchStep{fmt.Sprintf("hears hello %d", n), func(w *linkWorld) bool {
			from := &w.ends[1-i]
			if n >= len(from.air) {
				return false
			}
			end(w).Input(searchTime, from.air[n].m.MAC, from.air[n].b, &out)
			return out.Drop == NoDrop
		}})
	}
	for n := range MaxNeighbours {
		steps = append(steps, searchStep{fmt.Sprintf("ceases to hear %d", n), func(w *linkWorld) bool {
			e := end(w)
			if n >= len(e.peers) {
				return false
			}
			e.peers[n].deadline, e.next = 0, 2*searchTime
			e.Advance(searchTime, &out)
			return true
		}})
	}
	return steps
}

// note follows the session of an end. It returns a text if that has had it before.
func (e *linkEnd) note() string {
	var is ended
	if n, up := e.Neighbour(); up {
		is.session = n.Session
		for _, p := range e.peers {
			if p.Speaker == n.Speaker {
				is.own, is.peers = p.challenge, p.echo
			}
		}
	}
	if n, up := e.Neighbour(); is == e.now || up && n.Speaker == third {
		return ""
	}
	if e.now.session != 0 {
		e.ended = append(e.ended, e.now)
	}
	e.now = is
	if is.session != 0 && slices.ContainsFunc(e.ended, func(o ended) bool { return o.session == is.session }) {
		return fmt.Sprintf("switch %v has session %x twice", e.config.ID, is.session)
	}
	return ""
}

// agree plays hellos that nobody loses, and reports what keeps the two from one session.
func (w *linkWorld) agree() string {
	var out Output
	for i := range w.ends {
		e := &w.ends[i]
		e.air = nil
		for _, p := range e.peers {
			if p.Speaker == third {
				p.deadline, e.next = 0, 2*searchTime
			}
		}
		e.Advance(searchTime, &out)
	}
	for range 4 {
		for i := range w.ends {
			e, o := &w.ends[i], &w.ends[1-i]
			e.next = searchTime
			e.Advance(searchTime, &out)
			o.Input(searchTime, e.config.MAC, out.Packets[0], &Output{})
		}
	}
	a, b := w.ends[0].Link, w.ends[1].Link
	x, _ := a.Neighbour()
	y, _ := b.Neighbour()
	if !up(a, b) || x.Session != y.Session || x.Session == 0 {
		return fmt.Sprintf("no agreement: %v with %x, %v with %x", a.state, x.Session, b.state, y.Session)
	}
	return ""
}

// key describes a state. Random numbers are named in the order in which they are found, and
// sequence numbers by their order, so that states of one behaviour have one key.
func (w *linkWorld) key() string {
	var s strings.Builder
	names := map[uint64]int{0: 0}
	name := func(x uint64) int {
		n, ok := names[x]
		if !ok {
			n = len(names)
			names[x] = n
		}
		return n
	}
	var seqs [2][]uint64 // sequence numbers by the end that has sent them
	seq := func(of Speaker, x uint64) (rank int) {
		if of.ID == third.ID {
			return 0
		}
		list := seqs[of.ID-1]
		rank, _ = slices.BinarySearch(list, x)
		return rank
	}
	for i := range w.ends {
		e := &w.ends[i]
		seqs[i] = append(seqs[i], e.seq)
		for _, h := range e.air {
			seqs[i] = append(seqs[i], h.m.Seq)
		}
		for _, p := range w.ends[1-i].peers {
			if p.ID != third.ID {
				seqs[i] = append(seqs[i], p.seq)
			}
		}
		slices.Sort(seqs[i])
		seqs[i] = slices.Compact(seqs[i])
	}
	for i := range w.ends {
		e := &w.ends[i]
		fmt.Fprint(&s, "|", name(e.config.Incarnation), seq(e.config.Speaker, e.seq), e.state, e.reason, name(e.best.Incarnation), name(e.best.Session))
		for _, p := range e.peers {
			fmt.Fprint(&s, "/", name(p.Incarnation), seq(p.Speaker, p.seq), name(p.challenge), name(p.echo), p.proved, p.oneWay, p.former, p.spent)
		}
		for _, h := range e.air {
			fmt.Fprint(&s, ">", name(h.m.Incarnation), seq(h.m.Speaker, h.m.Seq))
			for _, n := range h.m.Neighbour {
				fmt.Fprint(&s, ",", name(n.Incarnation), name(n.Challenge), name(n.Echo))
			}
		}
	}
	for i := range w.ends {
		e := &w.ends[i]
		// A session one of whose challenges is known nowhere does not come again.
		e.ended = slices.DeleteFunc(e.ended, func(o ended) bool {
			_, own := names[o.own]
			_, peers := names[o.peers]
			return !own || !peers
		})
		slices.SortFunc(e.ended, func(a, b ended) int {
			return cmp.Or(cmp.Compare(names[a.own], names[b.own]), cmp.Compare(names[a.peers], names[b.peers]))
		})
		for _, o := range e.ended {
			fmt.Fprint(&s, "-", names[o.own], names[o.peers])
		}
		fmt.Fprint(&s, ".")
	}
	fmt.Fprint(&s, w.restarts)
	return s.String()
}

// searchSessions visits all states, at most limit of them, and returns their number.
func searchSessions(t *testing.T, inFlight, restarts, limit int) (states int, all bool) {
	type node struct {
		w    *linkWorld
		from *node
		step string
	}
	explain := func(n *node, problem string) {
		var steps []string
		for ; n.from != nil; n = n.from {
			steps = append(steps, n.step)
		}
		slices.Reverse(steps)
		t.Fatalf("%s\n%s", problem, strings.Join(steps, "\n"))
	}
	first := &linkWorld{ends: [2]linkEnd{{Link: link(t, searchTime, config(1, 1))}, {Link: link(t, searchTime, config(2, 1))}}}
	seen := map[string]bool{first.key(): true}
	queue := []*node{{w: first}}
	steps := [2][]searchStep{searchSteps(0, inFlight, restarts), searchSteps(1, inFlight, restarts)}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if problem := n.w.clone().agree(); problem != "" {
			explain(n, problem)
		}
		for i := range steps {
			for _, s := range steps[i] {
				w := n.w.clone()
				if !s.do(w) {
					continue
				}
				next := &node{w, n, fmt.Sprintf("switch %d %s", i+1, s.name)}
				if problem := w.ends[i].note(); problem != "" {
					explain(next, problem)
				}
				k := w.key()
				if seen[k] {
					continue
				}
				if len(seen) == limit {
					return len(seen), false
				}
				seen[k] = true
				queue = append(queue, next)
			}
		}
		n.w = nil
	}
	return len(seen), true
}

// allSessions has TestSessions visit all states with one hello in flight in each direction.
var allSessions = flag.Bool("all-sessions", false, "visit all states of a link, some 310,000")

// TestSessions: no end has a session twice, and two that hear each other agree on one, in the
// states of a link that are reached first, or in all.
func TestSessions(t *testing.T) {
	for _, c := range []struct{ inFlight, restarts, states int }{{1, 0, 20_000}, {2, 1, 20_000}} {
		switch {
		case testing.Short():
			c.states /= 10
		case *allSessions && c.inFlight == 1:
			c.states = 1 << 30
		}
		start := time.Now()
		states, all := searchSessions(t, c.inFlight, c.restarts, c.states)
		if c.states == 1<<30 && !all {
			t.Error("the search has not ended")
		}
		t.Logf("%d hellos in flight, %d restarts: %d states, all of them: %v, %v", c.inFlight, c.restarts, states, all, time.Since(start).Round(time.Millisecond))
	}
}

// TestRenewed: an end whose neighbour has lost the adjacency is told so, and has another
// session.
func TestRenewed(t *testing.T) {
	a, b := link(t, 0, config(1, 1)), link(t, 0, config(2, 1))
	s := newSegment(t, a, b)
	s.run(time.Second)
	first, _ := a.Neighbour()
	var out Output
	b.SetLink(s.now, false, &out)
	b.SetLink(s.now, true, &out)
	s.events = nil
	s.run(time.Second)
	x, _ := a.Neighbour()
	y, _ := b.Neighbour()
	if !up(a, b) || x.Session == first.Session || x.Session != y.Session {
		t.Errorf("sessions %x, then %x and %x", first.Session, x.Session, y.Session)
	}
	if len(s.events) == 0 || s.events[0] != fmt.Sprintf("%v: Init %v %v", a.config.ID, OneWay, b.config.Speaker) {
		t.Errorf("events %q", s.events)
	}
}

// TestRenewedAtOnce: a neighbour that has lost the adjacency, and has proved itself again
// before this end has noticed, is told as down and up.
func TestRenewedAtOnce(t *testing.T) {
	r := newRig(t)
	r.prove(a)
	before, _ := r.l.Neighbour()
	r.seq++
	m := Message{
		KeyID: 1, MaxVersion: 3, Interval: DefaultInterval, Speaker: a, Address: address(1), Seq: r.seq,
		Neighbour: []Heard{{speaker(9, 1), 4711, r.challenge(a)}},
	}
	h, err := m.Append(nil, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	r.input(a, h)
	after, up := r.l.Neighbour()
	if e := r.out.Events; len(e) != 2 || e[0].State != Down || e[0].Reason != Renewed || e[0].Neighbour != before || e[1].State != Up || e[1].Neighbour != after {
		t.Errorf("events %+v", e)
	}
	if !up || after.Session == before.Session || after.Session == 0 {
		t.Errorf("sessions %x, then %x", before.Session, after.Session)
	}
}

// TestNewAddressOfThisEnd: neighbours learn it, and it is no restart.
func TestNewAddressOfThisEnd(t *testing.T) {
	a, b := link(t, 0, config(1, 1)), link(t, 0, config(2, 1))
	s := newSegment(t, a, b)
	s.run(time.Second)
	before, _ := b.Neighbour()
	address := a.config.Address
	address.MTU, address.MAC = 9000, rocev2.MAC{2, 9, 9, 9, 9, 9}
	if err := a.SetAddress(s.now, address); err != nil {
		t.Fatal(err)
	}
	s.run(time.Second)
	if after, up := b.Neighbour(); !up || after.Address != address || after.Session != before.Session {
		t.Errorf("%+v, before %+v", after, before)
	}
	address.MAC[0] |= 1
	if err := a.SetAddress(s.now, address); err == nil {
		t.Error("a group's MAC address is accepted")
	}
}
