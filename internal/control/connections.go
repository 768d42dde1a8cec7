// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// connections are those of members by RDMA-CM (docs/CM.md). A group that members connect to
// is a registration by hand, whose records the manager states.
type connections struct {
	manager *cm.Manager
	out     cm.Output
	groups  map[netip.Addr]*created // groups by the address that programs connect to
	// reserved has the group of each address that connections are registered under.
	reserved map[netip.Addr]*created
	// outcomes are what the registrar has reported of them since they were served.
	outcomes []registrationOutcome
	changed  []netip.Addr
	vacant   []netip.Addr // groups made by REQs that have no connection left
	refused  *sampler[cm.Event]
	states   *sampler[cm.Event] // changes of connections, by a part of the member's address
	strays   *sampler[strayMAD] // MADs from elsewhere, by port
	heldMADs heldMADs
	ending   netip.Addr // a group whose registration the manager itself ends
	unkept   unkept
	byREQ    map[uint16]usageByREQ // the use of keys by REQs
}

// created is a group that members connect to: the only owner of its addresses. Whatever
// there is of it begins by openGroup, or by restoreCreation, and ends by closeConnections:
// its connections, the registrations of its addresses, the addresses, and its entry in the
// state file.
type created struct {
	asked   *api.CreateGroup
	reg     envelope.Registration // the registration without members
	replies string
	dials   bool
	keys    []netip.Addr // the addresses that connections are registered under
	byREQ   bool         // a member's REQ has made it
	closing bool         // closeConnections ends it
}

// registrationOutcome is what the registrar has reported of a group that members connect to.
type registrationOutcome struct {
	kind   outcomeKind
	group  netip.Addr
	member envelope.MemberKey // memberGone
	err    error              // registrationAnswered: nil, or why it was rejected
}

type outcomeKind uint8

const (
	registrationAnswered outcomeKind = iota
	memberGone
	groupGone
)

func newConnections(secret [envelope.SecretLen]byte, keys envelope.Keys, ports int) connections {
	seed := sha256.Sum256(append([]byte("gleam: connections\x00"), secret[:]...))
	states := newSampler[cm.Event](stateKinds, refusalInterval)
	states.burst = stateBurst
	return connections{
		states: states, manager: cm.NewManager(cm.Config{Seed: seed, Keys: connectionKeys(keys)}),
		groups: make(map[netip.Addr]*created), byREQ: make(map[uint16]usageByREQ), reserved: make(map[netip.Addr]*created), refused: newSampler[cm.Event](1, refusalInterval),
		strays: newSampler[strayMAD](ports, unconfirmedLogInterval),
	}
}

func connectionKeys(keys envelope.Keys) map[uint16][]byte {
	all := make(map[uint16][]byte, len(keys))
	for id, k := range keys {
		all[uint16(id)] = k
	}
	return all
}

func (x *connections) setKeys(keys envelope.Keys) { x.manager.SetKeys(connectionKeys(keys)) }

// note remembers an outcome until serveConnections, since it may come in the middle of
// another one of the registrar.
func (x *connections) note(o registrationOutcome) {
	if g := x.reserved[o.group]; g != nil && !g.closing && (o.kind != groupGone || x.ending != o.group) {
		x.outcomes = append(x.outcomes, o)
	}
}

// creationOf returns what an operator has asked for as the manager and this package have it.
func creationOf(g *api.CreateGroup) (l cm.Listen, made *created, err error) {
	params, err := g.Params()
	if err != nil {
		return l, made, err
	}
	made = &created{asked: g, replies: g.Replies, dials: len(g.Listeners) > 0, keys: sessionKeys(g), reg: envelope.Registration{Group: g.Group, Window: window(g.Window), NoRepair: g.NoRepair}}
	made.reg.GroupParams = params
	return cm.Listen{Group: g.Group, Port: g.Port, Expect: g.Expect, QPN: params.QPN, MTU: g.PMTU, Wait: time.Duration(g.WaitMS) * time.Millisecond, Key: g.Key, From: g.From,
		Listeners: g.Listeners, Replies: repliesByName[g.Replies], Sessions: g.Sessions, Strip: g.Strip}, made, nil
}

// mayCreate says why a group cannot have its addresses, of which one may be registered.
func (c *control) mayCreate(made *created, registered netip.Addr) error {
	for _, ip := range made.keys {
		if _, live := c.registrar.Key(ip); live && ip != registered {
			return &api.Error{Reason: api.ReasonGroupExists, Message: "group " + ip.String() + " is registered: delete it first, or take another address"}
		}
		if other := c.connections.reserved[ip]; other != nil && other.asked.Group == made.asked.Group {
			return &api.Error{Reason: api.ReasonGroupExists, Message: fmt.Sprintf("group %s is there already, for members to connect to: see `gleam group show %s`, and delete it first, or take another address", ip, ip)}
		} else if other != nil {
			return &api.Error{Reason: api.ReasonGroupExists, Message: fmt.Sprintf("%s is an address of group %s, which members connect to: delete that first, or take another address", ip, other.asked.Group)}
		}
		if !c.registrar.Serves(ip) {
			return &api.Error{Reason: envelope.NotGroupPrefix.String(), Message: ip.String() + " is in no group prefix of this switch"}
		}
	}
	return nil
}

// add adds a group that members connect to.
func (x *connections) add(made *created) {
	x.groups[made.asked.Group] = made
	x.count(made, 1)
	for _, key := range made.keys {
		x.reserved[key] = made
	}
}

// frontOf returns the address by which hosts connect to the group that is registered under key, the zero
// Addr if they do not; dials says that it is that of a dialler, whose connections end with this process.
func (x *connections) frontOf(key netip.Addr) (front netip.Addr, dials bool) {
	if x == nil || x.reserved[key] == nil {
		return netip.Addr{}, false
	}
	g := x.reserved[key]
	return g.asked.Group, g.dials
}

// createGroup lets members connect to a group.
func (c *control) createGroup(g *api.CreateGroup) error {
	if err := c.openGroup(g, false); err != nil {
		return err
	}
	if len(g.Listeners) > 0 {
		c.notify(false, "listeners are dialled by RDMA-CM when a program connects", "group", g.Group, "port", g.Port, "listeners", g.Listeners, "replies", g.Replies, "sessions", g.Sessions)
	} else {
		c.notify(false, "members may connect by RDMA-CM", "group", g.Group, "port", g.Port, "expected", g.Expect)
	}
	return nil
}

// openGroup lets members connect to a group. byREQ: a member's REQ makes it, and it ends with its last
// connection.
func (c *control) openGroup(g *api.CreateGroup, byREQ bool) error {
	if c.storageFails() {
		return &api.Error{Reason: envelope.NotStored.String(), Message: "group " + g.Group.String() + ": " + envelope.NotStored.String()}
	}
	l, made, err := creationOf(g)
	if err == nil {
		err = c.mayCreate(made, netip.Addr{})
	}
	if err != nil {
		return err
	}
	l.Temporary, made.byREQ = byREQ, byREQ
	x := &c.connections
	if err := x.manager.Open(l); err != nil {
		return &api.Error{Reason: api.ReasonGroupExists, Message: err.Error()}
	}
	x.add(made)
	c.keepCreation(g.Group)
	return nil
}

// repliesByName are the policies of replies as the API has them.
var repliesByName = map[string]cm.Replies{api.RepliesRefuse: cm.Refuse, api.RepliesSource: cm.Source, api.RepliesLeader: cm.Leader}

// sessionKeys returns the addresses that the connections to a group are registered under.
func sessionKeys(g *api.CreateGroup) (keys []netip.Addr) {
	ip := g.Group
	for range max(1, g.Sessions) {
		keys = append(keys, ip)
		ip = ip.Next()
	}
	return keys
}

// closeConnections ends a group that members connect to, with all that there is of it: the
// address is free when it returns. It returns false if there is no such group.
func (c *control) closeConnections(ip netip.Addr) bool {
	x := &c.connections
	g := x.groups[ip]
	if g == nil {
		return false
	}
	g.closing = true
	x.manager.Close(c.now(), ip, &x.out)
	c.sendConnections()
	for _, key := range g.keys {
		if _, registered := c.registrar.Key(key); registered { // or is about to be
			c.deleteByOperator(key)
		}
	}
	for _, key := range g.keys {
		delete(x.reserved, key)
	}
	x.count(g, -1)
	delete(x.groups, ip)
	c.keepCreation(ip)
	c.serveConnections()
	return true
}

// inputMAD passes a management datagram, which has come from where its host is, to the manager.
func (c *control) inputMAD(d *mad) {
	x := &c.connections
	x.manager.Input(c.now(), d.host, d.group, d.bytes, &x.out)
	if x.out.Creation != nil {
		c.createByREQ(d.host, d.group, d.bytes)
	}
	c.departures.asker = requester{from: d.from}
	c.sendConnections()
	c.departures.asker = nobody
	if x.out.Left != nil {
		c.leaveByQPN(d.group, d.host, x.out.Left.QPN)
	}
}

// sendConnections executes the manager's output: log and journal first, as for envelopes.
func (c *control) sendConnections() {
	x := &c.connections
	if d := x.out.Drop; d != cm.OK {
		c.count.cm[d]++
	}
	for i := range x.out.Events {
		e := &x.out.Events[i]
		c.reportConnection(e)
		if e.Refused {
			continue // nothing has changed
		}
		c.followConnections(e.Member)
		c.keepCreation(e.Group)
	}
	for i := range x.out.Packets {
		p := &x.out.Packets[i]
		if p.Unanswered {
			c.followConnections(p.To)
			c.dir.inquirer.Unanswered(p.To)
		}
		c.send(&envelope.Packet{Src: netip.AddrPortFrom(p.From, connectionSrcPort), Dst: netip.AddrPortFrom(p.To, rocev2.UDPPort), Data: p.MAD, Promises: p.Promises, Lasts: p.Lasts})
	}
	x.changed = append(x.changed, x.out.Changed...)
	x.vacant = append(x.vacant, x.out.Vacant...)
}

// connectionSrcPort is the UDP source port of management datagrams.
const connectionSrcPort = 0xC000

func (c *control) reportConnection(e *cm.Event) {
	if e.Left {
		c.journal.Add(api.Event{Kind: api.EventLeft, Group: e.Group, Member: e.Member, QPN: api.QPN(e.QPN), Reason: c.connections.leftText(e)})
	}
	if e.Refusal.Reason == 0 {
		ip := e.Member.As16()
		if suppressed, report := c.connections.states.add(c.now(), int(ip[15])%stateKinds, *e); report {
			c.logState(*e, suppressed)
		}
		return
	}
	if suppressed, report := c.connections.refused.add(c.now(), 0, *e); report {
		c.logRefused(*e, suppressed)
	}
}

// Bounds of the lines about connections: a host that may connect can do so without end.
const (
	stateKinds = 64 // parts of addresses
	stateBurst = 32 // lines of each in refusalInterval
)

func (c *control) logState(e cm.Event, suppressed uint64) {
	fields := []any{"group", e.Group, "member", e.Member, "qpn", uint32(e.QPN), "state", e.State}
	if suppressed > 0 {
		fields = append(fields, "suppressed", suppressed)
	}
	c.notify(false, "a member's connection has changed its state", fields...)
}

// leftText says what a member's DREQ means to its group. A kernel sends one for a program that is killed, too, so that
// a strict group goes on without a member that has not said that it is done.
func (x *connections) leftText(e *cm.Event) string {
	const text = "disconnected (DREQ): its program has disconnected, has ended or was killed"
	g := x.groups[e.Group]
	isListener := g != nil && slices.ContainsFunc(g.asked.Listeners, func(a netip.AddrPort) bool { return a.Addr() == e.Member })
	switch {
	case g == nil:
		return text
	case g.dials && !isListener:
		return text + "; the session of this dialler ends"
	case g.reg.Policy == mcast.Strict:
		return text + "; the strict group goes on without it, and its sender is not told"
	}
	return text + "; the group goes on without it"
}

// logRefused reports a connection that was refused, or ended by the switch, to log and
// journal.
func (c *control) logRefused(e cm.Event, suppressed uint64) {
	reason := e.Refusal.Reason.String()
	if e.Refusal.Text != "" {
		reason += ": " + e.Refusal.Text
	}
	reason += c.atText(e.Member)
	c.notify(true, "the switch has refused or ended a member's connection", "group", e.Group, "member", e.Member, "qpn", uint32(e.QPN), "reason", reason, "suppressed", suppressed)
	c.journal.Add(api.Event{Kind: api.EventRejected, Group: e.Group, Member: e.Member, QPN: api.QPN(e.QPN), Reason: "RDMA-CM: " + reason})
}

// serveConnections lets the manager's timers expire, tells it what the registrar has
// reported, and registers the groups that have changed.
func (c *control) serveConnections() {
	x := &c.connections
	c.serveHeldMADs()
	if at, ok := x.manager.NextDeadline(); ok && at <= c.now() {
		x.manager.Advance(c.now(), &x.out)
		c.sendConnections()
	}
	for len(x.outcomes)+len(x.changed) > 0 {
		outcomes, changed := x.outcomes, x.changed
		x.outcomes, x.changed = nil, nil
		for _, o := range outcomes {
			switch o.kind {
			case registrationAnswered:
				x.manager.Registered(c.now(), o.group, o.err, &x.out)
			case memberGone:
				x.manager.Gone(c.now(), o.group, o.member.IP, o.member.QPN, &x.out)
			case groupGone:
				x.manager.Ended(c.now(), o.group, &x.out)
			}
			c.sendConnections()
		}
		for _, ip := range changed {
			c.registerConnected(ip)
		}
	}
	c.closeVacant()
	c.keepConnections(c.now())
}

// registerConnected registers a group with the members that have connected, updates it, or
// ends it. The outcome comes by note.
func (c *control) registerConnected(ip netip.Addr) {
	x := &c.connections
	l, records, ok := x.manager.Wanted(ip)
	if !ok {
		return
	}
	if len(records) == 0 {
		x.ending = ip
		c.deleteByOperator(ip)
		x.ending = netip.Addr{}
		x.note(registrationOutcome{kind: registrationAnswered, group: ip})
		return
	}
	g := x.groups[l.Group]
	reg := g.reg
	reg.Group, reg.QPN, reg.PathMTU, reg.Members = ip, l.QPN, l.MTU, slices.Clone(records)
	if reg.Window == (mcast.Window{}) {
		for i := range reg.Members {
			reg.Members[i].Window = reg.Window // nothing can be written to it
		}
	}
	c.registerLocal(&reg)
}

// registerLocal registers a group by hand, or updates the one that is registered. A
// rejection at once is noted; any other outcome is an event.
func (c *control) registerLocal(reg *envelope.Registration) {
	if old, _, live := c.registrar.Group(reg.Group); live {
		reg.Base = old.Epoch
	}
	_, err := c.registrar.RegisterLocal(c.now(), *reg, &c.out)
	failed := slices.ContainsFunc(c.out.Events, func(e envelope.Event) bool { return e.Kind == envelope.RegistrationFailed })
	c.sendOutput()
	if err != nil && !failed {
		c.connections.note(registrationOutcome{kind: registrationAnswered, group: reg.Group, err: err})
	}
}

// leaveByQPN removes a member whose DREQ names the group's virtual queue pair: it has
// connected before gleamd was started.
func (c *control) leaveByQPN(group, member netip.Addr, qpn rocev2.QPN) {
	reg, _, live := c.registrar.Group(group)
	if !live || c.connections.reserved[group] != nil || reg.Master.IsValid() || reg.QPN != qpn {
		return
	}
	n := len(reg.Members)
	reg.Members = slices.DeleteFunc(slices.Clone(reg.Members), func(m envelope.MemberRecord) bool { return m.IP == member })
	switch len(reg.Members) {
	case n:
	case 0, 1:
		c.deleteByOperator(group)
	default:
		reg.Epoch = 0
		c.registerLocal(&reg)
	}
}
