// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// members is where the faults of joins, quorums and evictions are tried: A sends,
// B and C are members, D joins at some moment. All number from 0.
func members(adapt func(*Config)) func() *Config {
	return func() *Config {
		c := &Config{
			Name: "member-faults", Receivers: 3, Outside: 1, SendWindow: 3, Messages: []int{1, 1},
			Hosts: []Host{{Personality: rc.RXE}}, Changes: []Change{{Join: []Join{{Host: 3}}}},
		}
		if adapt != nil {
			adapt(c)
		}
		return c
	}
}

// fixed is members without a change: B, C and D are members from the start.
func fixed(adapt func(*Config)) func() *Config {
	return members(func(c *Config) {
		c.Outside, c.Changes = 0, nil
		adapt(c)
	})
}

func quorumOf(n int) func() *Config {
	return fixed(func(c *Config) { c.Policy, c.Quorum, c.Lose = mcast.Quorum, n, 1 })
}

// oldNumbers is A with receivers B and C, of which C leaves and is added again as
// it was registered at first, after it has had one packet.
func oldNumbers() *Config {
	return &Config{
		Name: "old-numbers", Receivers: 2, SendWindow: 3, Messages: []int{1, 1, 1}, Hosts: []Host{{Personality: rc.RXE}}, Changes: outdated, Probe: true,
	}
}

// forge has the switch take an ACK of host i, in its own numbering, and adds what
// comes of it.
func (b *broken) forge(i int, psn rocev2.PSN, out *mcast.Output) {
	var more mcast.Output
	b.Switch.Input(b.now, &mcast.Packet{
		Group: groupIP, DestQP: groupQPN, Src: hostIP(i), Op: rocev2.Acknowledge, PSN: psn, Syndrome: rocev2.SyndromeACK, Verified: true,
	}, &more)
	out.Copies = append(out.Copies, more.Copies...)
	out.Feedback = append(out.Feedback, more.Feedback...)
	out.Events = append(out.Events, more.Events...)
	out.Freed = append(out.Freed, more.Freed...)
}

// isData says whether p is data.
func isData(p *mcast.Packet) bool { return p.Op != rocev2.Acknowledge }

// memberFaults are as faults, of switches whose members change, that remove members,
// acknowledge for a quorum, or put copies off.
var memberFaults = []struct {
	name      string
	cfg       func() *Config
	invariant string
	endToEnd  string
	fault     broken
}{
	{"a joiner counts before its first message is there", members(nil), "I1: the leg of D", "FALSE COMPLETION",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			for _, c := range out.Copies {
				if c.Leg == 3 {
					b.forge(3, c.PSN, out)
				}
			}
		}}},
	{"a joiner is not sent its first message", members(nil), "I1: the leg of D", "FALSE COMPLETION",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if n := len(out.Copies); n > 0 && out.Copies[n-1].Leg == 3 {
				psn := out.Copies[n-1].PSN
				out.Copies = out.Copies[:n-1]
				b.forge(3, psn, out)
			}
		}}},
	{"a joiner is sent the message that it joins in", members(func(c *Config) { c.Messages = []int{3} }), "is numbered", "WR_FLUSH_ERR|accepts packet|error state",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if len(b.st.Members) > 3 && b.st.Members[3].Joining && len(out.Copies) > 0 {
				out.Copies = append(out.Copies, mcast.Copy{Leg: 3, Frame: p.Frame, PSN: 0})
			}
		}}},
	{"a member is removed in the place of another one", fixed(func(c *Config) { c.Policy, c.ShortBuffer = mcast.Evict, 1 }), "I5: a NAK of the leg of D", "B is evicted for syndrome 0x63, and has not failed",
		broken{before: func(_ *broken, p *mcast.Packet) bool {
			if isFeedback(p, rocev2.KindFatal) {
				p.Src = hostIP(1)
			}
			return true
		}}},
	{"a fatal NAK that has to wait is forgotten", fixed(func(c *Config) { c.ShortBuffer, c.WithDeadAfter = 2, false }), "I5", "LIVELOCK|RETRY_EXC_ERR",
		broken{before: func(b *broken, p *mcast.Packet) bool {
			if isFeedback(p, rocev2.KindFatal) && b.st.Acked.Next() != p.PSN {
				p.Syndrome, p.PSN = rocev2.SyndromeACK, p.PSN.Prev()
			}
			return true
		}}},
	{"a fatal NAK is taken for a loss", fixed(func(c *Config) { c.ShortBuffer = 2 }), "I5", "LIVELOCK|RETRY_EXC_ERR",
		broken{before: func(_ *broken, p *mcast.Packet) bool {
			if isFeedback(p, rocev2.KindFatal) {
				p.Syndrome = rocev2.SyndromeNAKSequence
			}
			return true
		}}},
	{"a fatal NAK of one that can be spared fails the group", fixed(func(c *Config) { c.Policy, c.ShortBuffer = mcast.Evict, 1 }), "which no leg asks for", "others could go on|error state|completion",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			for i := range out.Events {
				if e := &out.Events[i]; e.Kind == mcast.MemberEvicted {
					e.Kind = mcast.GroupFailed
					b.answer(out, e.Syndrome, e.PSN.Next())
				}
			}
		}}},
	{"a receiver of which nothing was heard is one of the quorum", quorumOf(2), "I1: the leg of D", "FALSE COMPLETION",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if isData(p) && len(out.Copies) == 3 {
				b.forge(3, p.PSN, out)
			}
		}}},
	{"one of a quorum of two is enough", quorumOf(2), "1 receivers of 2 have it|0 receivers of 2 have it", "FALSE COMPLETION",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if isFeedback(p, rocev2.KindACK) && out.Drop == mcast.None && len(out.Feedback) == 0 {
				b.answer(out, rocev2.SyndromeACK, p.PSN)
			}
		}}},
	{"while one joins, a quorum of two is one", members(func(c *Config) { c.Policy, c.Quorum = mcast.Quorum, 2 }), "I1: the leg of C", "FALSE COMPLETION",
		broken{after: func(b *broken, p *mcast.Packet, out *mcast.Output) {
			if isFeedback(p, rocev2.KindACK) && p.Src == hostIP(1) && len(b.st.Members) > 3 && b.st.Members[3].Joining {
				b.forge(2, p.PSN, out)
			}
		}}},
	{"a living member is silent for too short a time", fixed(func(c *Config) { c.Policy, c.WithDeadAfter, c.Lose, c.HostsMayDie = mcast.Evict, true, 1, false }), "lives", "lives",
		broken{adapt: func(g *mcast.GroupSpec) { g.DeadAfter = time.Millisecond }}},
	{"dead members are waited for", fixed(func(c *Config) { c.Policy, c.WithDeadAfter, c.HostsMayDie = mcast.Evict, true, true }), "LIVELOCK", "LIVELOCK",
		broken{adapt: func(g *mcast.GroupSpec) { g.DeadAfter = 0 }}},
	{"numbers are believed", oldNumbers, "I1: the leg of C", "FALSE COMPLETION",
		broken{adapt: func(g *mcast.GroupSpec) { g.PSNProbe = 0 }}},
	{"an ACK of what was not forwarded counts", oldNumbers, "I1: the leg of C", "FALSE COMPLETION",
		broken{adapt: func(g *mcast.GroupSpec) { g.PSNProbe = 0 }, before: func(b *broken, p *mcast.Packet) bool {
			if isFeedback(p, rocev2.KindACK) && p.Src == hostIP(2) && b.st.HasSource && b.st.Nxt.LessEq(p.PSN+1) {
				p.PSN = b.st.Nxt.Prev() - 1 // C is one packet behind what it was registered for
			}
			return true
		}}},
	{"who has left is forgotten at once", func() *Config {
		return &Config{Name: "late-answer", Receivers: 2, SendWindow: 3, Messages: []int{1, 1, 1}, Hosts: mixed, Changes: hastens, Probe: true}
	}, "I1: the leg of C", "FALSE COMPLETION", broken{early: 20 * time.Millisecond}},
	{"a copy that was put off is forgotten", func() *Config {
		c := repairing()
		c.Lose, c.PortFull, c.Messages = 0, 1, []int{3}
		return c
	}, "nothing is due when there is room|which was not sent packet", "",
		broken{unsent: func(*broken, *mcast.Copy, time.Duration) bool { return true }}},
	{"a copy that was put off is sent at once", func() *Config {
		c := repairing()
		c.Lose, c.PortFull, c.Messages = 0, 1, []int{3}
		return c
	}, "LIVELOCK", "LIVELOCK",
		broken{unsent: func(b *broken, c *mcast.Copy, _ time.Duration) bool { return b.Switch.Requeue(c, b.now) }}},
}

// TestMemberFaultsAreFound is TestFaultsAreFound for switches whose members change
// or fail.
func TestMemberFaultsAreFound(t *testing.T) {
	for _, f := range memberFaults {
		findBoth(t, f.name, f.cfg, f.invariant, f.endToEnd, &f.fault)
	}
}
