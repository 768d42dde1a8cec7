// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Engine is the API server's backend.
var _ api.Backend = (*Engine)(nil)

// showBatch is the number of groups that are shown in one iteration of the control loop.
const showBatch = 16

// Groups implements api.Backend.
func (e *Engine) Groups(q *api.GroupQuery) ([]api.Group, error) {
	list := []api.Group{}
	if q == nil {
		q = &api.GroupQuery{}
	}
	var ips []netip.Addr
	ok := e.control.read(func() {
		for ip := range e.control.dir.groups {
			if q.After.Less(ip) {
				ips = append(ips, ip)
			}
		}
	})
	slices.SortFunc(ips, netip.Addr.Compare)
	for part := range slices.Chunk(ips, showBatch) {
		from := len(list)
		ok = ok && e.control.showGroups(&list, func() (groups []*group) {
			for _, ip := range part {
				groups = append(groups, e.control.dir.groups[ip])
			}
			return groups
		})
		chosen := slices.DeleteFunc(list[from:], func(g api.Group) bool { return !q.Selects(&g) })
		slices.SortFunc(chosen, func(a, b api.Group) int { return a.IP.Compare(b.IP) })
		if list = list[:from+len(chosen)]; q.Limit > 0 && len(list) >= q.Limit {
			list = list[:q.Limit]
			break
		}
	}
	if !ok {
		return nil, errStopped
	}
	return list, nil
}

// showGroups appends to list the API's view of those groups that are registered; the others are nil.
func (c *control) showGroups(list *[]api.Group, groups func() []*group) bool {
	registered := func() []*group { return slices.DeleteFunc(groups(), func(g *group) bool { return g == nil }) }
	return c.readGroups(registered, func(found []groupStatus) {
		for i := range found {
			*list = append(*list, c.describe(found[i].group, &found[i].now))
		}
	})
}

// Group implements api.Backend.
func (e *Engine) Group(ip netip.Addr) (*api.Group, error) {
	var found []api.Group
	var gone *api.Ended
	var waiting string
	if !e.control.showGroups(&found, func() []*group {
		waiting, _ = e.control.connections.manager.Status(ip)
		gone = e.control.endOf(ip)
		return []*group{e.control.dir.groups[ip]}
	}) {
		return nil, errStopped
	}
	if len(found) == 0 {
		err := unknownGroup(ip)
		if waiting != "" {
			err.Message = fmt.Sprintf("group %s is not registered yet: %s", ip, waiting)
		} else if gone != nil {
			err.Message += fmt.Sprintf("; the last one of this address ended at %s (%s): see `gleam group show %s --ended`",
				gone.Time.UTC().Format(time.RFC3339), gone.Reason, ip)
		}
		return nil, err
	}
	return &found[0], nil
}

func unknownGroup(ip netip.Addr) *api.Error {
	return &api.Error{Reason: api.ReasonUnknownGroup, Message: fmt.Sprintf("no group %s is registered: see `gleam group list`", ip)}
}

// Register implements api.Backend: it registers a group by hand, without a lease and
// without sending envelopes to the members. Like any registration it waits until the
// members are located, up to the configured locate_timeout.
func (e *Engine) Register(r *api.Register) error {
	params, err := r.Params()
	if err != nil {
		return err
	}
	reg := envelope.Registration{Group: r.Group, GroupParams: params, Window: window(r.Window), NoRepair: r.NoRepair}
	for i := range r.Members {
		reg.Members = append(reg.Members, record(&r.Members[i]))
	}
	if err := e.notConnected(r.Group); err != nil {
		return err
	}
	return e.durable(e.control.registerByOperator(reg, r.Replace))
}

// CreateGroup implements api.Backend.
func (e *Engine) CreateGroup(g *api.CreateGroup) (err error) {
	if !e.control.do(func() { err = e.control.createGroup(g) }) {
		return errStopped
	}
	return e.durable(err)
}

// notConnected returns an error if members connect to a group by RDMA-CM: they are its
// members, and nobody else.
func (e *Engine) notConnected(group netip.Addr) (err error) {
	if !e.control.do(func() {
		if of := e.control.connections.reserved[group]; of != nil {
			text, _ := e.control.connections.manager.Status(of.asked.Group)
			err = &api.Error{Reason: api.ReasonGroupExists, Message: fmt.Sprintf("group %s: %s; delete it first", of.asked.Group, text)}
		}
	}) {
		return errStopped
	}
	return err
}

func record(m *api.RegisterMember) envelope.MemberRecord {
	return envelope.MemberRecord{
		IP: m.IP, QPN: rocev2.QPN(m.QPN), SQPSN: rocev2.PSN(m.SQPSN), RQPSN: rocev2.PSN(m.RQPSN), Window: window(m.Window), ReceiveOnly: m.ReceiveOnly,
	}
}

// AddMember implements api.Backend: a member joins a group that was registered by hand at
// the next message boundary, or replaces the member with its address.
func (e *Engine) AddMember(ip netip.Addr, a *api.AddMember) error {
	if err := e.notConnected(ip); err != nil {
		return err
	}
	rec := record(&a.RegisterMember)
	return e.durable(e.control.changeMembers(ip, func(ms []envelope.MemberRecord) ([]envelope.MemberRecord, error) {
		at := slices.IndexFunc(ms, func(m envelope.MemberRecord) bool { return m.IP == rec.IP })
		switch {
		case at < 0:
			return append(ms, rec), nil
		case !a.Replace:
			return nil, &api.Error{Reason: envelope.OverlappingMembers.String(), Message: fmt.Sprintf("%s is a member of group %s already; if it has restarted its queue pair, replace it (--replace)", rec.IP, ip)}
		case ms[at] == rec:
			return nil, &api.Error{Reason: envelope.OverlappingMembers.String(), Message: fmt.Sprintf("%s is a member of group %s with the same QPN and PSNs; a restarted queue pair needs fresh PSNs", rec.IP, ip)}
		}
		ms[at] = rec
		return ms, nil
	}))
}

// RemoveMember implements api.Backend.
func (e *Engine) RemoveMember(ip, member netip.Addr) error {
	return e.durable(e.control.changeMembers(ip, func(ms []envelope.MemberRecord) ([]envelope.MemberRecord, error) {
		rest := slices.DeleteFunc(ms, func(m envelope.MemberRecord) bool { return m.IP == member })
		if len(rest) == len(ms) {
			return nil, &api.Error{Reason: api.ReasonUnknownMember, Message: fmt.Sprintf("%s is not a member of group %s: see `gleam group show %s`", member, ip, ip)}
		}
		if len(rest) < 2 {
			return nil, &api.Error{Reason: envelope.TooFewMembers.String(), Message: fmt.Sprintf("group %s would have too few members, as two are the least: `gleam group delete %s` ends it", ip, ip)}
		}
		return rest, nil
	}))
}

// MoveMember implements api.Backend.
func (e *Engine) MoveMember(group, member netip.Addr, m *api.MoveMember) (err error) {
	if !e.control.do(func() { err = e.control.moveByOperator(group, member, m) }) {
		return errStopped
	}
	return e.durable(err)
}

// Events implements api.Backend.
func (e *Engine) Events(ctx context.Context, after uint64) (*api.Events, error) {
	return e.control.journal.After(ctx, after), nil
}

func window(w *api.Window) mcast.Window {
	if w == nil {
		return mcast.Window{}
	}
	return mcast.Window{Base: w.VA, Len: w.Len, RKey: w.RKey}
}

// Delete implements api.Backend. Of a group that has ended it deletes the epochs, and says that
// there is no such group.
func (e *Engine) Delete(ip netip.Addr) error {
	var registered, connected, remembered bool
	if !e.control.do(func() {
		_, registered = e.control.registrar.Key(ip) // or is about to be
		connected = e.control.closeConnections(ip)
		remembered = e.control.deleteByOperator(ip)
	}) {
		return errStopped
	}
	switch {
	case registered || connected:
		return e.durable(nil)
	case remembered:
		unknown := unknownGroup(ip)
		unknown.Message += "; the epochs of the one that has ended are forgotten now"
		if err := e.durable(nil); err != nil {
			return err
		}
		return unknown
	}
	return unknownGroup(ip)
}

// Ports implements api.Backend.
func (e *Engine) Ports() ([]api.Port, error) {
	list := make([]api.Port, len(e.control.ports))
	if !e.control.read(func() {
		for i, p := range e.control.ports {
			a := &list[i]
			a.Up, a.Bridge = p.reportedUp, location.DescribeBridge(&p.bridgeState)
			a.Blocked = p.isBlocked()
			a.State, a.Reason, a.Reopened = p.life.phase.String(), p.life.reason, p.life.reopened
			if a.Downs = p.downs; a.Downs > 0 {
				a.LastDown = new(p.lastDown)
			}
			a.Allow.Addresses = p.allow.Addresses
			for _, m := range p.allow.MACs {
				a.Allow.MACs = append(a.Allow.MACs, m.String())
			}
		}
	}) {
		return nil, errStopped
	}
	if err := e.plane.DescribePorts(list); err != nil {
		return nil, err
	}
	e.countDevices(list)
	e.hearing.judge(list)
	e.guardLog.describe(list)
	return slices.DeleteFunc(list, func(a api.Port) bool { return a.State == portNone.String() }), nil
}

// SetPort implements api.Backend.
func (e *Engine) SetPort(name string, s *api.SetPort) error {
	i := -1
	if !e.control.do(func() {
		if i = slices.IndexFunc(e.control.ports, func(p *port) bool { return p.Name == name }); i >= 0 {
			e.control.ports[i].config.Rate = *s.Rate
		}
	}) {
		return errStopped
	}
	if i < 0 {
		return &api.Error{Reason: api.ReasonUnknownPort, Message: fmt.Sprintf("there is no port %s: see `gleam port list`", name)}
	}
	if err := e.plane.SetRate(i, int64(*s.Rate)); err != nil {
		return err
	}
	e.notify(false, "the rate of a port has been set", "port", name, "rate", *s.Rate)
	return nil
}

// Stats implements api.Backend.
func (e *Engine) Stats() (*api.Stats, error) {
	var now api.Stats // the totals of the control loop
	var own counters
	var load []int
	if !e.control.read(func() {
		now.Groups, now.Moves = len(e.control.dir.groups), e.control.dir.inquirer.Count()
		now.Control = e.control.stats()
		own = e.control.count
		load = e.control.plane.GroupsPerWorker()
		own.registration.AddTo(&now.Times.Registration)
		own.install.AddTo(&now.Times.Install)
		own.stored.AddTo(&now.Times.Stored)
	}) {
		return nil, errStopped
	}
	s, err := e.plane.Stats()
	if err != nil {
		return nil, err
	}
	s.Uptime, s.Frames = time.Since(e.started).Seconds(), e.cfg.UMEM.Frames
	s.Groups, s.Moves, s.Control = now.Groups, now.Moves, now.Control
	s.Times.Registration, s.Times.Install, s.Times.Stored = now.Times.Registration, now.Times.Install, now.Times.Stored
	s.Epoch, s.Events, s.Registrations = e.control.keeper.epochBase, e.control.journal.Totals(), own.registrations()
	for i := range s.Workers {
		s.Workers[i].Groups = load[s.Workers[i].Worker]
	}
	own.addTo(s.Normal, s.Drops)
	e.control.switches.AddDrops(s.Normal, s.Drops)
	return s, nil
}

// describe returns the API's view of g, whose state is now. It runs on the control loop.
func (c *control) describe(g *group, now *dataplane.GroupState) api.Group {
	st := &now.Status
	a := api.Group{
		Members: []api.Member{}, IP: g.reg.Group, QPN: api.QPN(g.reg.QPN), PMTU: g.reg.PathMTU, Epoch: g.reg.Epoch,
		Policy: policyName(g.reg), Origin: "api", State: "idle", Worker: g.handle.Worker(),
		DeadAfterMS: int(g.reg.Silence().Milliseconds()), LagPSNs: g.reg.LagPSNs, LagMS: int(g.reg.LagTime.Milliseconds()),
		Former: slices.Clone(g.former), MTUText: g.mtuText, IsolationText: g.isolationText,
		Counters: api.Counters{DataIn: st.Counters.DataIn, DataBytes: now.Bytes, Copies: st.Counters.Copies,
			Repeated: st.Counters.Repeated, GoodBytes: now.Bytes - min(now.Bytes, st.Counters.RepeatedBytes),
			FeedbackIn: st.Counters.FeedbackIn, FeedbackOut: st.Counters.FeedbackOut},
	}
	if b := c.plane.RepairSpec().Bytes; b > 0 && !g.reg.NoRepair {
		a.Repair = &api.Repair{
			Bytes: st.Retained, MaxRetainedBytes: st.RetainedMax, LimitBytes: b, NAKs: st.Counters.NAKsServed,
			Copies: st.Counters.Resent, Probes: st.Counters.Probes, NotRetained: st.Counters.NotRetained,
		}
	}
	if of := c.connections.reserved[g.reg.Group]; of != nil {
		a.Origin, a.Replies = "rdma-cm", of.replies
	}
	if ip := c.dir.addressOf(g.reg.Group); ip != g.reg.Group {
		a.Dialled = ip
	}
	if g.reg.Master.IsValid() {
		a.Origin, a.Master = "envelope", g.reg.Master.String()
		a.LeaseLeft = c.leaseLeft(g.reg.Group).Seconds()
		if key, ok := c.registrar.Key(g.reg.Group); ok {
			a.Key = uint16(key)
		}
	}
	if d := now.Stalled.Seconds(); d >= api.StallTime && !st.Failed {
		a.StallSeconds = d
	}
	if b := &now.Blamed; b.Count > 0 {
		if s := g.liveSlot(b.Members[0].Member); s != nil {
			a.SlowedBy, a.SlowCause = s.record.IP, b.Members[0].Cause.String()
		}
	}
	if m, ok := awaitedMember(now); ok {
		if s := g.liveSlot(m); s != nil {
			a.WaitsFor = s.record.IP
		}
	}
	if st.HasSource {
		a.State = "running"
		a.AckPSN, a.NextPSN = api.PSN(st.Acked), api.PSN(st.Nxt)
	}
	if st.Failed {
		a.State, a.Failure = "failed", g.applied().failure
	}
	for i := range st.Members {
		if i >= len(g.slots) || g.slots[i].gone {
			continue // it is, or will soon be, among the former members
		}
		m, r, at := &st.Members[i], g.slots[i].record, g.slots[i].at()
		am := api.Member{
			IP: r.IP, QPN: api.QPN(r.QPN), Role: "receiver", Live: m.Live, Window: r.Window.Len > 0,
			Pending: pendingName(m.Pending), AckPSN: api.PSN(m.Acked), Lag: int(m.Lag), VLAN: at.VLAN,
		}
		if pi := c.dir.portOf(&g.slots[i]); pi >= 0 {
			am.Port, am.MAC = c.ports[pi].Name, at.MAC.String()
			am.VLAN = cmp.Or(am.VLAN, c.ports[pi].VLAN)
		}
		c.switches.DescribeMember(&am, g.slots[i].behind)
		if m.Recovering && am.Pending == "" {
			am.Pending = "repair"
		}
		if r.ReceiveOnly {
			am.Role = "receive-only"
		}
		if m.Joining {
			am.Role = "joining"
		}
		if m.Source {
			am.Role = "source"
			a.Source = r.IP
		}
		am.Slow = now.Blamed.Cause(mcast.MemberID(i)).String()
		if i < len(now.Costs) && !m.Source {
			am.Cost = costOf(&now.Costs[i])
		}
		for n := range m.Mismatches {
			if x := &m.Mismatches[n]; x.Confirmed() {
				am.Diagnosis = joinTexts(am.Diagnosis, mismatchText(mcast.Number(n), x.Observed, x.Registered))
			}
		}
		if s := joinTexts(c.dir.hosts.UnknownPlace(g.reg.Group, r.IP), c.dir.inquirer.SeenElsewhere(r.IP)); s != "" {
			am.Diagnosis = joinTexts(am.Diagnosis, s)
		}
		if st.InConflict && st.Conflict == mcast.MemberID(i) {
			am.Diagnosis = joinTexts(am.Diagnosis, c.conflictText(g, st.Conflict))
		}
		if m.Unverified && am.Diagnosis == "" {
			am.Diagnosis = fmt.Sprintf("has not shown yet that it expects PSN 0x%06x: is its QPN the registered one, and the queue pair in RTR?", uint32(m.RegisteredPSN))
		}
		a.Members = append(a.Members, am)
	}
	a.Normal, a.Drops = make(map[string]uint64), make(map[string]uint64)
	dataplane.CoreReasons.AddTo(a.Normal, a.Drops, st.Counters.Drops[:])
	a.Tree = c.describeTree(g, st)
	a.FastPath = c.describeFastPath(&now.Fast)
	return a
}

// joinTexts joins two texts, each of which may be empty.
func joinTexts(s, more string) string {
	if s == "" || more == "" {
		return s + more
	}
	return s + "; " + more
}

// pendingName returns the API's name of a pending NAK.
func pendingName(s rocev2.Syndrome) string {
	switch s.Kind() {
	case rocev2.KindSequence:
		return "sequence"
	case rocev2.KindRNR:
		return "rnr"
	case rocev2.KindFatal:
		return fmt.Sprintf("fatal 0x%02x", uint8(s))
	}
	return ""
}

func policyName(r *envelope.Registration) string {
	switch r.Policy {
	case mcast.Evict:
		return api.PolicyEvict
	case mcast.Quorum:
		return fmt.Sprintf("%s:%d", api.PolicyQuorum, r.Quorum)
	}
	return api.PolicyStrict
}
