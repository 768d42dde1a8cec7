// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// moves is what the control loop reports of hosts that do not confirm where they are.
type moves struct {
	policy      config.MovePolicy
	unconfirmed *sampler[location.UnconfirmedMove] // unconfirmed moves by port
	unproven    *sampler[unprovenLocation]         // unproven locations by port
}

// unconfirmedLogInterval is the least time between two log lines about unconfirmed moves
// to one port.
const unconfirmedLogInterval = 10 * time.Second

// setupMoves has hosts asked where they are, by envelopes of r.
func (c *control) setupMoves(cfg *config.Config, r location.Registrar) {
	c.moves = moves{
		policy:      cfg.UnconfirmedMoves,
		unconfirmed: newSampler[location.UnconfirmedMove](len(c.ports), unconfirmedLogInterval), unproven: newSampler[unprovenLocation](len(c.ports), unconfirmedLogInterval),
	}
	c.dir.inquirer = location.NewInquirer(c.dir.hosts, cfg.UnconfirmedMoves, r, location.Actions{
		Now: c.now, Send: c.sendBy, Evict: c.evictMoved,
		Moved: func(group, member netip.Addr, text string) {
			c.journal.Add(api.Event{Kind: api.EventMoved, Group: group, Member: member, Reason: text})
		},
		Unconfirmed: func(x location.UnconfirmedMove) {
			if suppressed, report := c.moves.unconfirmed.add(c.now(), x.Origin.Port, x); report {
				c.logUnconfirmed(x, suppressed)
			}
		},
	})
}

func (c *control) logUnconfirmed(x location.UnconfirmedMove, suppressed uint64) {
	c.notify(true, "a member was seen elsewhere and has not confirmed that it moved: somebody uses its address, or it answers no envelopes",
		"member", x.IP, "port", c.ports[x.Origin.Port].Name, "mac", x.Origin.MAC, "vlan", x.Origin.VLAN, "location", x.Place, "answer", x.Answer,
		"policy", c.moves.policy, "remedy", "if it did move: gleam group move-member", "suppressed", suppressed)
}

// unprovenLocation describes a member that did not confirm its location at registration.
type unprovenLocation struct {
	group        netip.Addr
	member       envelope.MemberKey
	requestedAt  dataplane.Origin // where the request was sent
	answeredFrom string           // origin of an answer, "none" without one
}

// unprovenText tells the operator of a registration that was rejected because a member
// has not confirmed its location. It returns the text for the journal, "" if the
// registration was rejected for another reason.
func (c *control) unprovenText(e *envelope.Event) string {
	var problem *envelope.Problem
	if !errors.As(e.Err, &problem) || problem.Reason != envelope.LocationUnconfirmed {
		return ""
	}
	at, place, answer, ok := c.dir.inquirer.Unproven(e.Member.IP, e.By.Key)
	if !ok {
		return ""
	}
	x := unprovenLocation{e.Group, e.Member, at, answer}
	if suppressed, report := c.moves.unproven.add(c.now(), x.requestedAt.Port, x); report {
		c.logUnproven(x, suppressed)
	}
	return fmt.Sprintf("; inquiry at %s, answer: %s", place, answer)
}

func (c *control) logUnproven(x unprovenLocation, suppressed uint64) {
	c.notify(true, "a member has not confirmed that it is where the kernel has it, and its group's registration is rejected: somebody uses its address, or it answers no envelopes",
		"group", x.group, "member", x.member, "port", c.ports[x.requestedAt.Port].Name, "mac", x.requestedAt.MAC, "vlan", x.requestedAt.VLAN, "answer", x.answeredFrom,
		"remedy", "run a program of the group at the member before its master registers; ip neigh, bridge fdb show what the kernel has; networks where nobody forges frames: unconfirmed_moves: follow", "suppressed", suppressed)
}

// evictMoved removes h from the groups whose policy allows that.
func (c *control) evictMoved(h *location.Host) {
	var groups []*group
	for group := range h.Groups() {
		if g := c.dir.groups[group]; g.reg.Policy != mcast.Strict {
			groups = append(groups, g)
		}
	}
	for _, g := range groups {
		i, ok := g.hostSlot(h.IP())
		if !ok || g.slots[i].gone {
			continue
		}
		k := g.slots[i].record.Key()
		var psn rocev2.PSN
		var st dataplane.GroupState
		_ = g.handle.Read(&st) // an error: the switch has stopped
		if i < len(st.Status.Members) {
			psn = st.Status.Members[i].Acked
		}
		c.dir.RemoveMember(g.reg.Group, k, envelope.Evicted)
		c.registrar.MemberEvicted(c.now(), g.reg.Group, k, envelope.Elsewhere, psn, &c.out)
		c.notify(true, "member evicted", "group", g.reg.Group, "member", k, "cause", envelope.Cause(envelope.Elsewhere))
		c.sendOutput()
	}
}

// moveByOperator moves a member at the operator's request. Without a port and a MAC
// address, the member moves to where it was seen last.
func (c *control) moveByOperator(ip, member netip.Addr, m *api.MoveMember) error {
	g := c.dir.groups[ip]
	if g == nil {
		return unknownGroup(ip)
	}
	if _, in := g.hostSlot(member); !in {
		return &api.Error{Reason: api.ReasonUnknownMember, Message: fmt.Sprintf("%s is not a member of group %s: see `gleam group show %s`", member, ip, ip)}
	}
	return c.dir.inquirer.MoveByOperator(c.dir.hosts.Of(member), m)
}
