// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// Communicator is a set of hosts that work together, by rank.
type Communicator struct {
	Ranks []topology.Node
	Root  int // the rank that has the data
}

// step is a part of what a rank does: it sends, then waits. Ranks of steps and schedules
// count from the root.
type step struct {
	to         int // None, toGroup or a rank
	off, bytes int64
	from       int  // None, or the rank whose next message is waited for
	sent       bool // wait until all own messages are completed
}

// toGroup is the receiver of a message to all other ranks.
const toGroup = -2

// receive is the step that only waits for a message.
func receive(from int) step { return step{to: None, from: from} }

// send is the step that sends, and does not wait.
func send(to int, off, bytes int64) step { return step{to: to, off: off, bytes: bytes, from: None} }

// schedule is what all ranks do. step returns step k of a rank, and false behind the last
// one. It reads nothing that changes.
type schedule interface {
	step(rank, k int) (step, bool)
}

// Script is the program of ranks that go through the steps of a schedule. A host is in at most
// one communicator.
type Script struct {
	communicators []Communicator
	lanes         [][]schedule // the lanes of each communicator; lanes run beside each other
	groups        [][]topology.Node
	overhead      topology.Time
	rendezvous    bool         // no group has a part in it
	host          []seat       // seats by host
	ranks         [][]progress // progress by communicator, by lane * ranks + rank
	flows         int64
}

// seat is the place of a host.
type seat struct{ communicator, rank int32 }

// progress is the state of a rank in a lane.
type progress struct {
	k         int32 // the step
	begun     bool  // its message is posted
	posted    int32
	completed int32
	inbox     []arrival // messages that no step has waited for

	asked   int32     // readies that it has sent
	readies []arrival // those for messages that it has not come to
	held    []held    // messages whose receivers are not ready
}

// held is a message with its number.
type held struct {
	step
	seq int
}

type arrival struct{ rank, messages int32 }

// newScript makes a program of communicators with the lanes that schedules returns for a
// number of ranks. Each message costs its sender the overhead before it leaves. With a rendezvous each message
// to a rank waits until the rank is ready: it has come to the step that receives it.
func newScript(cs []Communicator, overhead topology.Time, rendezvous bool, schedules func(ranks int) []schedule) (*Script, error) {
	s := &Script{communicators: cs, overhead: overhead, rendezvous: rendezvous}
	if overhead < 0 {
		return nil, fmt.Errorf("workload: overhead of %d ps; want 0 or more", overhead)
	}
	type made struct {
		lanes []schedule
		flows int64
		group bool
	}
	byRanks := make(map[int]made)
	for i, c := range cs {
		n := len(c.Ranks)
		if n < 2 || n > maxRanks || c.Root < 0 || c.Root >= n {
			return nil, fmt.Errorf("workload: communicator %d has %d ranks, root %d; want 2 to %d ranks, and one of them as root", i, n, c.Root, maxRanks)
		}
		for rank, h := range c.Ranks {
			if h < 0 || h >= topology.MaxHosts {
				return nil, fmt.Errorf("workload: host %d; want 0 to %d", h, topology.MaxHosts-1)
			}
			for int(h) >= len(s.host) {
				s.host = append(s.host, seat{None, None})
			}
			if at := s.host[h]; at.rank != None {
				return nil, fmt.Errorf("workload: host %d is rank %d of communicator %d and rank %d of communicator %d; want one", h, at.rank, at.communicator, rank, i)
			}
			s.host[h] = seat{int32(i), int32((rank - c.Root + n) % n)}
		}
		m, ok := byRanks[n]
		if !ok {
			m.lanes = schedules(n)
			for _, l := range m.lanes {
				flows, group, err := messages(l, n)
				if err != nil {
					return nil, err
				}
				m.flows, m.group = m.flows+flows, m.group || group
			}
			if m.group {
				s.rendezvous = false
			} else if rendezvous {
				m.flows *= 2
			}
			byRanks[n] = m
		}
		if m.group {
			s.groups = append(s.groups, append(append([]topology.Node(nil), c.Ranks[c.Root:]...), c.Ranks[:c.Root]...))
		}
		s.lanes = append(s.lanes, m.lanes)
		s.flows += m.flows
		s.ranks = append(s.ranks, make([]progress, n*len(m.lanes)))
		if jobs := (i + 1) * len(m.lanes); jobs > maxJobs {
			return nil, fmt.Errorf("workload: %d communicators with %d lanes; want at most %d in all", len(cs), len(m.lanes), maxJobs)
		}
	}
	return s, nil
}

// messages counts the messages of a schedule.
func messages(l schedule, ranks int) (n int64, group bool, err error) {
	for r := range ranks {
		own := 0
		for k := 0; ; k++ {
			st, ok := l.step(r, k)
			if !ok {
				break
			}
			if st.to != None {
				own++
				group = group || st.to == toGroup
			}
		}
		if own > readySeq {
			return 0, false, fmt.Errorf("workload: a rank sends %d messages; want at most %d: make the chunks larger", own, readySeq)
		}
		n += int64(own)
	}
	return n, group, nil
}

// Groups implements Program.
func (s *Script) Groups() [][]topology.Node { return s.groups }

// Flows implements Program.
func (s *Script) Flows() int64 { return s.flows }

// Start implements Program.
func (s *Script) Start(emit func(Flow)) {
	for c := range s.communicators {
		for lane := range s.lanes[c] {
			for r := range s.communicators[c].Ranks {
				s.advance(c, lane, r, emit)
			}
		}
	}
}

// Delivered implements Program.
func (s *Script) Delivered(f Flow, at topology.Node, emit func(Flow)) {
	c, lane, from := s.split(f)
	rank := int(s.host[at].rank)
	p := &s.ranks[c][lane*len(s.communicators[c].Ranks)+rank]
	if isReady(f) {
		if i := slices.IndexFunc(p.held, func(h held) bool { return h.to == from }); i >= 0 {
			s.emit(c, lane, rank, p.held[i].seq, p.held[i].step, emit)
			p.held = slices.Delete(p.held, i, i+1)
		} else {
			arrived(&p.readies, int32(from))
		}
		return
	}
	arrived(&p.inbox, int32(from))
	s.advance(c, lane, rank, emit)
}

// Completed implements Program.
func (s *Script) Completed(f Flow, emit func(Flow)) {
	if isReady(f) {
		return
	}
	c, lane, rank := s.split(f)
	s.ranks[c][lane*len(s.communicators[c].Ranks)+rank].completed++
	s.advance(c, lane, rank, emit)
}

// split returns the communicator, the lane and the source's rank of a flow.
func (s *Script) split(f Flow) (c, lane, rank int) {
	job, rank, _ := splitKey(f.Key)
	c = int(s.host[f.Source].communicator)
	return c, job - c*len(s.lanes[c]), rank
}

// advance goes on with the steps of a rank until it waits, or has finished.
func (s *Script) advance(c, lane, rank int, emit func(Flow)) {
	p := &s.ranks[c][lane*len(s.communicators[c].Ranks)+rank]
	for {
		st, ok := s.lanes[c][lane].step(rank, int(p.k))
		if !ok {
			return
		}
		if !p.begun {
			p.begun = true
			if s.rendezvous && st.from != None {
				s.ready(c, lane, rank, st.from, emit)
			}
			if st.to != None {
				if s.rendezvous && !take(&p.readies, int32(st.to)) {
					p.held = append(p.held, held{st, int(p.posted)})
				} else {
					s.emit(c, lane, rank, int(p.posted), st, emit)
				}
				p.posted++
			}
		}
		if st.sent && p.completed < p.posted || st.from != None && !take(&p.inbox, int32(st.from)) {
			return
		}
		p.k, p.begun = p.k+1, false
	}
}

// readySeq is the first sequence number of readies.
const readySeq = maxSeq / 2

// readyChannel is the first channel of readies. They do not wait behind messages.
const readyChannel = 1 << 15

// ready tells another rank that this one has come to the step that receives its next message.
func (s *Script) ready(c, lane, rank, from int, emit func(Flow)) {
	com, p := &s.communicators[c], &s.ranks[c][lane*len(s.communicators[c].Ranks)+rank]
	emit(Flow{
		Key:    makeKey(c*len(s.lanes[c])+lane, rank, readySeq+int(p.asked)),
		Source: com.at(rank), To: com.at(from), Group: None, Channel: readyChannel + uint16(lane),
	})
	p.asked++
}

// isReady reports whether a flow is that of ready.
func isReady(f Flow) bool { return f.Channel >= readyChannel }

func (s *Script) emit(c, lane, rank, seq int, st step, emit func(Flow)) {
	com := &s.communicators[c]
	f := Flow{
		Key:    makeKey(c*len(s.lanes[c])+lane, rank, seq),
		Source: com.at(rank), To: None, Group: None, Channel: uint16(lane), Bytes: st.bytes, After: s.overhead,
	}
	if st.to == toGroup {
		f.Group = int32(c)
	} else {
		f.To = com.at(st.to)
	}
	emit(f)
}

// at returns the host of a rank that counts from the root.
func (c *Communicator) at(rank int) topology.Node { return c.Ranks[(rank+c.Root)%len(c.Ranks)] }

// arrived notes a message of a rank.
func arrived(all *[]arrival, rank int32) {
	for i := range *all {
		if (*all)[i].rank == rank {
			(*all)[i].messages++
			return
		}
	}
	*all = append(*all, arrival{rank, 1})
}

// take removes a message of a rank; false if there is none.
func take(all *[]arrival, rank int32) bool {
	for i := range *all {
		if (*all)[i].rank == rank && (*all)[i].messages > 0 {
			(*all)[i].messages--
			return true
		}
	}
	return false
}

// Waiting says what a host waits for; "" if it has finished, or has no part in the program.
func (s *Script) Waiting(host topology.Node) string {
	if int(host) >= len(s.host) || s.host[host].rank == None {
		return ""
	}
	at := s.host[host]
	c := int(at.communicator)
	com := &s.communicators[c]
	for lane, l := range s.lanes[c] {
		p := &s.ranks[c][lane*len(com.Ranks)+int(at.rank)]
		st, ok := l.step(int(at.rank), int(p.k))
		switch {
		case len(p.held) > 0:
			return fmt.Sprintf("rank %d of communicator %d: step %d, host %d to be ready for a message", at.rank, c, p.k, com.at(p.held[0].to))
		case !ok:
		case st.sent && p.completed < p.posted:
			return fmt.Sprintf("rank %d of communicator %d: step %d, completion of %d of its %d messages", at.rank, c, p.k, p.posted-p.completed, p.posted)
		case st.from != None:
			return fmt.Sprintf("rank %d of communicator %d: step %d, a message from host %d", at.rank, c, p.k, com.at(st.from))
		}
	}
	return ""
}

// Communicators returns those of the program.
func (s *Script) Communicators() []Communicator { return s.communicators }
