// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane/locate"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// directory is the control plane's table of groups: the registration of each, its GroupID
// at the worker, and the locations of its members. It is the envelope.Table of the
// registrar and belongs to the control loop.
type directory struct {
	workers     *workers
	firstWorker *worker // worker 0: for what all workers have in common
	groups      map[netip.Addr]*group
	byID        []*group        // by mcast.GroupID; nil if free
	freeIDs     []mcast.GroupID // free ones; the next one to be used is the last
	generations uint64          // the generation of the last registration
	maxGroups   int
	notify      Notify
	// onOutcome reports the group's outcomes when a member has gone, onEnd the final
	// state of a registration that has ended.
	onOutcome func(*group, *newOutcome)
	onEnd     func(*group, *finalState, envelope.EndReason)
	onMoved   func(*group, *host) // called when h, the host of a member, has a location, which may be new
	scratch   finalState          // reused
	hosts     *hosts
	// cameFrom is the origin of the envelope that is being served, memberAt the location
	// that FromMember has compared it with.
	cameFrom origin
	memberAt locate.Location
	proofs   *locationProofs
	// pending are registrations that wait for answers, by group; ready are the groups
	// whose registrations have all answers.
	pending     map[netip.Addr]*pendingRegistration
	ready       []netip.Addr
	sweptAt     time.Duration
	staleTables []*group // groups whose workers do not have the members' present locations yet
	// kernelDecides: the kernel's tables decide where members are (unconfirmed_moves:
	// follow). onSuspect is called with a location by the kernel that differs from the
	// member's.
	kernelDecides bool
	onSuspect     func(*host, locate.Location)

	sourceTimeout time.Duration // mcast.GroupSpec.SourceTimeout, unless a source's declared timeout is longer
}

// locator is the part of locate.Locator that the control loop uses. Its calls may take
// long.
type locator interface {
	Locate(ip netip.Addr) (locate.Location, error)
	Up(ifindex int) (up bool, mtu int)
	Close()
}

// group is one registered group. The records of its members are in slots.
type group struct {
	id            mcast.GroupID
	generation    uint64  // of the registration that the core has
	worker        *worker // the owner
	reg           envelope.Registration
	slots         []slot             // by MemberID
	hosts         map[netip.Addr]int // hosts of the members, each with the index of its slot
	applied       appliedOutcomes
	quiet         bool   // a source was reported within turnGap
	held          turn   // the last source since then, not reported yet
	tableStale    bool   // the group is in directory.staleTables
	isolationText string // why members may not send; "" if all may
	mtuText       string // why its longest copies do not fit a port; "" if they do
	registeredAt  time.Time
	former        []api.FormerMember // members that have gone, the last maxFormerMembers
	nicRules      []nicRule          // steer its packets to its worker's queues
}

// slot is the member that the core knows under a MemberID. A member that has gone keeps
// its slot until another member takes it over.
type slot struct {
	record           envelope.MemberRecord
	location         locate.Location
	gone             bool
	mismatchReported [mcast.NumNumbers]bool // numbers that its packets contradict and that the operator was told of
}

// maxFormerMembers bounds the number of former members that a group remembers.
const maxFormerMembers = 64

// now returns the time by the workers' clock.
func (d *directory) now() time.Duration { return time.Since(d.firstWorker.start) }

// slotOf returns the MemberID of k, or -1 if k is not, or no longer, in the group.
func (g *group) slotOf(k envelope.MemberKey) int {
	return slices.IndexFunc(g.slots, func(s slot) bool { return !s.gone && s.record.Key() == k })
}

func newDirectory(c *workers, size int, notify Notify) *directory {
	d := &directory{
		workers: c, firstWorker: c.all[0], groups: make(map[netip.Addr]*group), byID: make([]*group, size), maxGroups: size, notify: notify,
		onOutcome: func(*group, *newOutcome) {}, onEnd: func(*group, *finalState, envelope.EndReason) {},
		onMoved: func(*group, *host) {}, hosts: newHosts(), pending: make(map[netip.Addr]*pendingRegistration), onSuspect: func(*host, locate.Location) {},
		proofs: newLocationProofs(),
	}
	for id := size - 1; id >= 0; id-- {
		d.freeIDs = append(d.freeIDs, mcast.GroupID(id))
	}
	return d
}

// Install makes the switch serve r, replacing an older registration of the same GroupIP,
// or, if r has a Base, updates the members of that registration. It implements
// envelope.Table.
func (d *directory) Install(r *envelope.Registration, key envelope.KeyID) envelope.Verdict {
	if r.Base != 0 {
		return d.update(r, key)
	}
	places, verdict := d.locateMembers(r, r, key)
	if verdict.Kind != envelope.VerdictAccepted {
		return verdict
	}
	if limit := d.largestPMTU(places, r.Group.Is4()); r.PMTU > limit {
		return rejected(envelope.Problem{Reason: envelope.PathMTUMismatch, Value: uint64(limit)})
	}
	g := d.groups[r.Group]
	if g == nil {
		if len(d.freeIDs) == 0 {
			return rejected(envelope.Problem{Reason: envelope.TableFull, Value: uint64(d.maxGroups)})
		}
		g = &group{id: d.freeIDs[len(d.freeIDs)-1], worker: d.workers.all[d.workers.owners.choose(r.Group)]}
	}
	slots := make([]slot, len(r.Members))
	for i := range slots {
		slots[i] = slot{record: r.Members[i], location: places[i]}
	}
	table := d.makeTable(r, slots)
	var limit int
	buffers := d.firstWorker.buffersOf(r)
	if g.worker.do(func() { limit = g.worker.capacity(table.portNeeds(len(g.worker.ports)), buffers) }) && len(table.legs) > limit {
		return rejected(envelope.Problem{Reason: envelope.TooManyMembers, Value: uint64(limit)})
	}
	spec := makeSpec(g.id, r, &table, g.worker, d.sourceTimeout)
	d.generations++
	spec.Generation = d.generations
	var err error
	if !g.worker.do(func() {
		d.scratch.read(g.worker, g.id) // of the registration that is replaced
		err = g.worker.putGroup(spec, table)
	}) {
		err = errStopped
	}
	if err != nil {
		return d.coreRefused(r, err)
	}
	if d.groups[r.Group] != nil {
		d.onEnd(g, &d.scratch, envelope.Replaced)
	} else {
		d.freeIDs = d.freeIDs[:len(d.freeIDs)-1]
		d.groups[r.Group], d.byID[g.id] = g, g
		d.workers.owners.put(r.Group, g.worker.index) // now that the core has the group
		d.addNICRules(r.Group, g)
	}
	g.slots, g.registeredAt, g.former = slots, time.Now(), nil
	g.generation, g.applied, g.mtuText = spec.Generation, appliedOutcomes{}, ""
	d.hosts.setMembers(g, slots)
	g.setRegistration(r)
	return envelope.Verdict{Kind: envelope.VerdictAccepted}
}

func (g *group) setRegistration(r *envelope.Registration) {
	g.reg = *r
	g.reg.Members = nil
}

// coreRefused returns the verdict for a group that passed all checks but that the core
// refused.
func (d *directory) coreRefused(r *envelope.Registration, err error) envelope.Verdict {
	d.notify(true, "the core refused a group", "group", r.Group, "error", err)
	return rejected(envelope.Problem{Reason: envelope.Malformed})
}

func rejected(p envelope.Problem) envelope.Verdict {
	return envelope.Verdict{Kind: envelope.VerdictRejected, Problem: p}
}

// Remove ends a group. It implements envelope.Table.
func (d *directory) Remove(ip netip.Addr, why envelope.EndReason) {
	g := d.groups[ip]
	if g == nil {
		return
	}
	delete(d.groups, ip)
	d.hosts.setMembers(g, nil)
	d.byID[g.id] = nil
	d.freeIDs = append(d.freeIDs, g.id)
	d.removeNICRules(g)
	d.workers.owners.remove(ip)
	if g.worker.do(func() {
		d.scratch.read(g.worker, g.id)
		g.worker.deleteGroup(g.id)
	}) {
		d.onEnd(g, &d.scratch, why)
	}
}

// RemoveMember removes one member of a group. It implements envelope.Table.
func (d *directory) RemoveMember(ip netip.Addr, m envelope.MemberKey, _ envelope.EndReason) {
	g := d.groups[ip]
	if g == nil {
		return
	}
	if i := g.slotOf(m); i >= 0 {
		if g.worker.do(func() {
			g.worker.core.Outcomes(g.id, &d.scratch.outcomes)
			g.worker.removeMember(g.id, mcast.MemberID(i))
		}) {
			d.reportLastOutcome(g, i)
		}
		g.markGone(i)
		d.hosts.setMembers(g, g.slots)
	}
}

// HadSource reports whether a group has had a source since it was last installed, updates
// aside. It implements envelope.Table.
func (d *directory) HadSource(ip netip.Addr) (carried bool) {
	if g := d.groups[ip]; g != nil {
		g.worker.do(func() {
			g.worker.core.Outcomes(g.id, &d.scratch.outcomes)
			carried = d.scratch.outcomes.Turns > 0
		})
	}
	return carried
}

// largestPMTU returns the largest path MTU that the ports at the given locations carry. A
// packet that is longer than a frame of the UMEM takes several (port.multiBuffer).
func (d *directory) largestPMTU(places []locate.Location, v4 bool) int {
	mtu := math.MaxInt
	for _, at := range places {
		if pi := d.firstWorker.portIndex(at.Ifindex); pi >= 0 {
			mtu = min(mtu, d.firstWorker.ports[pi].mtu)
		}
	}
	return pathMTUWithin(mtu, v4)
}

// makeSpec makes the core's spec of a registration whose members are all new.
func makeSpec(id mcast.GroupID, r *envelope.Registration, t *groupTable, w *worker, sourceTimeout time.Duration) mcast.GroupSpec {
	spec := mcast.GroupSpec{
		ID: id, IP: r.Group, QPN: r.QPN, PMTU: r.PMTU, Window: r.Window, TargetKey: r.TargetKey,
		Policy: r.Policy, Quorum: r.Quorum, DeadAfter: r.DeadAfter, DeadAfterMax: r.DeadAfterMax(), LagPSNs: r.LagPSNs, LagTime: r.LagTime,
		SourceTimeout: max(sourceTimeout, r.SenderTimeoutTotal()),
	}
	spec.PSNProbe = w.psnProbe
	if !r.NoRepair {
		spec.Repair = w.repairSpec
	}
	for i := range r.Members {
		spec.Legs = append(spec.Legs, legSpec(&t.legs[i]))
		spec.Members = append(spec.Members, memberSpec(&r.Members[i], mcast.LegID(i)))
	}
	return spec
}

func legSpec(l *leg) mcast.LegSpec {
	return mcast.LegSpec{Kind: mcast.Connected, Port: mcast.Port(max(0, l.port))}
}

func memberSpec(m *envelope.MemberRecord, l mcast.LegID) mcast.MemberSpec {
	return mcast.MemberSpec{IP: m.IP, QPN: m.QPN, SQPSN: m.SQPSN, RQPSN: m.RQPSN, Window: m.Window, Leg: l, ReceiveOnly: m.ReceiveOnly}
}

// makeTable makes the worker's tables of a registration: a leg for each member, with the
// member's number.
func (d *directory) makeTable(r *envelope.Registration, slots []slot) groupTable {
	t := groupTable{ip: r.Group, qpn: r.QPN, maxBuffers: d.firstWorker.buffersOf(r), maxFrameBytes: longestPacket(r)}
	for i := range slots {
		m := &slots[i].record
		l := d.makeLeg(m, slots[i].location)
		l.gone = slots[i].gone
		t.legs = append(t.legs, l)
		t.members = append(t.members, member{ip: m.IP, qpn: m.QPN, leg: mcast.LegID(i)})
	}
	t.countCopies()
	return t
}

// makeLeg returns the leg to member m at location at; its port is -1 if at is the zero
// Location.
func (d *directory) makeLeg(m *envelope.MemberRecord, at locate.Location) leg {
	l := leg{kind: mcast.Connected, port: d.firstWorker.portIndex(at.Ifindex), ip: m.IP, qpn: m.QPN, vlan: at.VLAN}
	if l.port >= 0 {
		copy(l.mac[:], at.MAC)
		if l.vlan == 0 {
			l.vlan = d.firstWorker.ports[l.port].vlan
		}
	}
	return l
}

func sameLocation(a, b locate.Location) bool {
	return a.Ifindex == b.Ifindex && a.VLAN == b.VLAN && slices.Equal(a.MAC, b.MAC)
}

func (d *directory) locationText(at locate.Location) string {
	pi := d.firstWorker.portIndex(at.Ifindex)
	if pi < 0 {
		return "unknown"
	}
	return d.firstWorker.ports[pi].name + " " + at.MAC.String()
}

// longestPacket returns the length of a group's longest packets on an Ethernet link,
// without FCS.
func longestPacket(r *envelope.Registration) int {
	return rocev2.EthernetLen + rocev2.VLANLen + maxHeaders(r.Group.Is4()) + r.PMTU
}

// buffersOf returns the number of buffers of a group's longest packets.
func (w *worker) buffersOf(r *envelope.Registration) int {
	return (longestPacket(r) + w.umem.MaxReceive() - 1) / w.umem.MaxReceive()
}

// The methods below run on the worker.

// capacity returns how many members a group may have, given the packets that each port
// needs (need) and the buffers of a packet. With more members there could never be frames
// for all copies of one packet, and the group would starve. Half of the frames may be in
// the fill rings. Where a port's TX ring is the limit, it bounds the members behind that
// port.
func (w *worker) capacity(need []portNeed, buffers int) int {
	frames := w.umem.Frames() / 2
	if w.workers != nil {
		frames -= w.umem.Frames() / 8 // in the pools of other workers
	}
	limit := wholePackets(frames, buffers) - maxFeedback
	for _, n := range need {
		if ring := wholePackets(cap(w.ports[n.port].tx), buffers) - maxFeedback; n.packets > ring {
			limit = min(limit, ring)
		}
	}
	return limit
}

// putGroup makes the core serve a group and installs its tables.
func (w *worker) putGroup(spec mcast.GroupSpec, t groupTable) error {
	if err := w.core.Apply(w.readClock(), mcast.PutGroup{Spec: spec}, &w.out); err != nil {
		return err
	}
	w.setTable(spec.ID, t)
	w.sendApplied()
	return nil
}

func (w *worker) deleteGroup(id mcast.GroupID) {
	if err := w.core.Apply(w.readClock(), mcast.DeleteGroup{Group: id}, &w.out); err == nil {
		w.sendApplied()
		w.groups[id] = groupTable{}
	}
}

func (w *worker) removeMember(id mcast.GroupID, m mcast.MemberID) {
	if err := w.core.Apply(w.readClock(), mcast.RemoveMember{Group: id, Member: m}, &w.out); err == nil {
		w.sendApplied()
		w.groups[id].markGone(m)
	}
}

// readClock returns the time since start and sets w.now to it, so that the core's time
// never goes back.
func (w *worker) readClock() time.Duration {
	w.now = time.Since(w.start)
	return w.now
}

// portIndex returns the index of the port with this interface, or -1. The identity of
// ports does not change, so any goroutine may call it.
func (w *worker) portIndex(ifindex int) int {
	return slices.IndexFunc(w.ports, func(p *port) bool { return p.ifindex == ifindex })
}
