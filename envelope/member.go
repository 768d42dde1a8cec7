// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// MemberConfig configures a Member. Zero fields take the defaults.
type MemberConfig struct {
	// Local is the member's address: the IP of its queue pairs, and the port at which the
	// switch reaches it, which is the switch's own port.
	Local    netip.AddrPort
	Port     uint16 // the UDP port of the switch; default DefaultPort
	Auth     Auth
	Seed     uint64        // the seed of transaction numbers and jitter
	RetryMin time.Duration // the first wait for an answer to Leave; default 100 ms
	RetryMax time.Duration // default 2 s
	Deadline time.Duration // bounds a whole Leave; default 10 s
	AskEvery time.Duration // the time between two questions whether the switch still knows a group; 0: none
}

// Membership is the configuration of a member's queue pair in a group.
type Membership struct {
	MemberRecord // Join sets the IP: that of the Member
	Group        netip.Addr
	VirtualQPN   rocev2.QPN // the queue pair's destination QPN
	PathMTU      int        // bytes
}

// String describes m without its R_Key.
func (m Membership) String() string {
	return fmt.Sprintf("group %s virtual qpn 0x%x pmtu %d qpn 0x%x sq_psn 0x%x rq_psn 0x%x",
		m.Group, uint32(m.VirtualQPN), m.PathMTU, uint32(m.QPN), uint32(m.SQPSN), uint32(m.RQPSN))
}

// GoString is String: %#v must not print an R_Key either.
func (m Membership) GoString() string { return m.String() }

// Member is one host's side of the groups that it has joined. It confirms or refuses the
// switch's notifications to the masters, and learns when a group ends.
type Member struct {
	endpointLink
	cfg    MemberConfig
	random random
	lastTx uint32
	groups map[netip.Addr]*membership
	timers timers[*membership]

	hastenedUntil time.Duration // the time by which all groups ask, once one was unknown
}

type membership struct {
	Membership
	epoch             uint64 // newest that was confirmed; 0: none
	instance          uint64
	key               KeyID // the key of the registration that was confirmed
	ended             bool  // epoch has ended
	refused           uint64
	status            Status // the status of the latest refusal
	question          question
	notice            uint64 // serial of the newest Notice
	unauthenticAtJoin uint64 // value of numUnauthentic at the Join
	leaving           bool
	tx                uint32
	retry             backoff
	deadline          time.Duration
	timer             timer[*membership] // the earliest of its deadlines
}

// NewMember makes a member. Errors name the faults of the configuration.
func NewMember(cfg MemberConfig) (*Member, error) {
	defaultTo(&cfg.Port, DefaultPort)
	defaultTo(&cfg.RetryMin, 100*time.Millisecond)
	defaultTo(&cfg.RetryMax, 2*time.Second)
	defaultTo(&cfg.Deadline, 10*time.Second)
	err := cmp.Or(checkLocal(cfg.Local), cfg.Auth.check(), checkRetries(cfg.RetryMin, cfg.RetryMax, cfg.Deadline))
	if err != nil {
		return nil, fmt.Errorf("member: %w", err)
	}
	m := &Member{endpointLink: endpointLink{auth: cfg.Auth}, cfg: cfg, random: random(cfg.Seed), groups: map[netip.Addr]*membership{}}
	m.lastTx = uint32(m.random.next())
	return m, nil
}

// Join makes the member confirm notifications that agree with ms. It must be called
// before the master registers the group, or the first Notify is refused. A group takes
// one queue pair: a second Join of a group fails unless the first has ended; Forget
// allows to join anew.
func (m *Member) Join(ms Membership) error {
	if !unicast(ms.Group) || ms.Group.Is4() != m.cfg.Local.Addr().Is4() {
		return fmt.Errorf("join group %s: not a unicast address of the family of %s", ms.Group, m.cfg.Local.Addr())
	}
	if !ms.QPN.Valid() || !ms.VirtualQPN.Valid() || !rocev2.ValidPathMTU(ms.PathMTU) || ms.SQPSN > rocev2.PSNMask || ms.RQPSN > rocev2.PSNMask {
		return fmt.Errorf("join %v: QPNs must be in 0x10..0xfffffe, PSNs have 24 bits, and the path MTU is %s", ms, rocev2.PathMTUText)
	}
	old := m.groups[ms.Group]
	if old != nil && !old.ended {
		return fmt.Errorf("join group %s: joined already with qpn 0x%x", ms.Group, uint32(old.QPN))
	}
	ms.IP = m.cfg.Local.Addr()
	g := &membership{Membership: ms, unauthenticAtJoin: m.numUnauthentic()}
	g.timer.owner = g
	if old != nil {
		m.timers.stop(&old.timer)
		g.epoch, g.ended = old.epoch, true // an ended epoch stays ended
	}
	m.groups[ms.Group] = g
	return nil
}

// numUnauthentic returns the number of messages that were not authentic.
func (m *Member) numUnauthentic() uint64 {
	return m.drops[Unauthenticated] + m.drops[UnknownKey] + m.drops[BadMAC]
}

// Problem returns the reason, as far as this host knows one, why a joined group is not
// registered with this member in it: the member refused the switch's notification, or the
// switch's messages are not authentic. It returns nil if no reason is known.
func (m *Member) Problem(group netip.Addr) error {
	g := m.groups[group]
	switch {
	case g == nil || g.epoch != 0 && !g.ended:
		return nil
	case g.status != Confirmed:
		return fmt.Errorf("the switch has another registration of this member, which therefore %v", g.status)
	case m.numUnauthentic() > g.unauthenticAtJoin:
		return fmt.Errorf("%d messages were dropped because they are not authentic: check key id and key here, at the master and at the switch", m.numUnauthentic()-g.unauthenticAtJoin)
	}
	return nil
}

// Forget deletes all state of a group without a message to the switch.
func (m *Member) Forget(group netip.Addr) {
	if g := m.groups[group]; g != nil {
		m.timers.stop(&g.timer)
		delete(m.groups, group)
	}
}

// Leave asks the switch to remove this member. The outcome is an event, GroupGone with
// EndReason Left or LeaveFailed. If the switch has never sent a notification, the event
// comes at once.
func (m *Member) Leave(now time.Duration, group netip.Addr, out *Output) error {
	out.reset()
	g := m.groups[group]
	if g == nil {
		return fmt.Errorf("leave group %s: not joined", group)
	}
	if g.leaving {
		return nil
	}
	if g.epoch == 0 || g.ended {
		m.Forget(group)
		out.Events = append(out.Events, Event{Kind: GroupGone, Group: group, Epoch: g.epoch, Member: g.Key(), EndReason: Left})
		return nil
	}
	m.lastTx++
	g.leaving, g.tx, g.deadline = true, m.lastTx, now+m.cfg.Deadline
	g.retry.start(now, m.cfg.RetryMin, &m.random)
	m.sendLeave(g, out)
	m.schedule(g)
	return nil
}

func (m *Member) sendLeave(g *membership, out *Output) {
	m.toSwitch(g.key, g.Group, g.epoch, g.instance, g.tx, &Leave{Member: g.Key()}, out)
}

func (m *Member) toSwitch(key KeyID, group netip.Addr, epoch, instance uint64, tx uint32, body Body, out *Output) {
	m.sendUnder(key, m.cfg.Local, netip.AddrPortFrom(group, m.cfg.Port), &Message{Header: Header{
		Epoch: epoch, Instance: instance, Transaction: tx, Total: 1, Group: group, ReplyTo: m.cfg.Local,
	}, Body: body}, out)
}

// schedule sets the timer of g to the earliest of its deadlines.
func (m *Member) schedule(g *membership) {
	var d deadlines
	if g.leaving {
		d.add(g.retry.next)
		d.add(g.deadline)
	}
	if g.asks() {
		d.add(g.question.timer.next)
	}
	if d.ok {
		m.timers.set(&g.timer, d.at)
	} else {
		m.timers.stop(&g.timer)
	}
}

// NextDeadline returns the time at which Advance must be called next.
func (m *Member) NextDeadline() (time.Duration, bool) { return m.timers.next() }

// Advance fires every deadline <= now.
func (m *Member) Advance(now time.Duration, out *Output) {
	out.reset()
	due := m.timers.fired(now)
	slices.SortFunc(due, func(a, b *membership) int { return a.Group.Compare(b.Group) })
	for _, g := range due {
		switch {
		case g.asks() && now >= g.question.timer.next:
			m.ask(now, g, out)
		case !g.leaving:
		case now >= g.deadline:
			g.leaving, g.ended = false, true
			out.Events = append(out.Events, Event{Kind: LeaveFailed, Group: g.Group, Epoch: g.epoch, Member: g.Key(), Err: &Failure{
				Group: g.Group, Action: "leave", SwitchSilent: true, After: m.cfg.Deadline,
			}})
		case now >= g.retry.next:
			g.retry.retry(now, m.cfg.RetryMax, &m.random)
			m.sendLeave(g, out)
		}
		m.schedule(g)
	}
}
