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

// directory is the control plane's table of groups: what was registered, under
// which GroupID the worker has it, and where its members are. It is the
// envelope.Table of the registrar and belongs to the control loop.
type directory struct {
	crew   *crew
	w      *worker // the first: for what all have in common
	groups map[netip.Addr]*group
	byID   []*group        // by mcast.GroupID; nil if free
	ids    []mcast.GroupID // free ones, the next at the end
	count  uint64          // of registrations: the generation of the last one
	size   int
	notify Notify
	// tell passes on what a group had decided when a member of it went, ends what a
	// registration had come to when it ended.
	tell  func(*group, *decision)
	ends  func(*group, *lastState, envelope.Why)
	moved func(*group, *host) // h has a place, which may be a new one, and is a member's
	last  lastState           // scratch
	hosts *hosts
	// from is where the envelope came from that is being taken in, home the place that
	// AtPlace has compared it with.
	from   spot
	home   locate.Location
	proofs *proofs
	// asking are registrations that wait for answers, by group; ready those that have
	// them all.
	asking map[netip.Addr]*asking
	ready  []netip.Addr
	swept  time.Duration
	stale  []*group // whose workers have not heard yet where members are
	// follows: the kernel's word counts for where members are. suspect is told what
	// it says otherwise.
	follows bool
	suspect func(*host, locate.Location)

	sourceTimeout time.Duration // mcast.GroupSpec.SourceTimeout, unless a source itself takes longer to give up
}

// locator is what the control loop wants of locate.Locator. Its questions may take long.
type locator interface {
	Locate(ip netip.Addr) (locate.Location, error)
	Up(ifindex int) (up bool, mtu int)
	Close()
}

// group is one registered group. What the registration says of its members is in
// slots.
type group struct {
	id         mcast.GroupID
	generation uint64  // of the registration that the core has
	w          *worker // it belongs to this one
	reg        envelope.Registration
	slots      []slot             // by MemberID
	hosts      map[netip.Addr]int // of its members, each with the index of its slot
	known      known
	quiet      bool   // its source was reported within turnGap
	held       turn   // the last source since
	stale      bool   // among directory.stale
	separated  string // why members may not send; "" if all may
	narrow     string // why its longest copies do not fit a port; "" if they do
	since      time.Time
	former     []api.FormerMember // the last ones that have gone
	rules      []portRule         // that bring its packets to its worker's queues
}

// slot is the member that the core knows under a MemberID. One that has gone
// keeps its slot until another member takes it over.
type slot struct {
	rec   envelope.MemberRecord
	place locate.Location
	gone  bool
	wrong [mcast.NumNumbers]bool // numbers of its packets that the operator was told of
}

// maxFormer bounds the members that are remembered after they have gone.
const maxFormer = 64

// now is the time of the workers' clock.
func (d *directory) now() time.Duration { return time.Since(d.w.start) }

// find returns the MemberID of k, or -1 if it is not in the group (any more).
func (g *group) find(k envelope.MemberKey) int {
	return slices.IndexFunc(g.slots, func(s slot) bool { return !s.gone && s.rec.Key() == k })
}

func newDirectory(c *crew, size int, notify Notify) *directory {
	d := &directory{
		crew: c, w: c.workers[0], groups: make(map[netip.Addr]*group), byID: make([]*group, size), size: size, notify: notify,
		tell: func(*group, *decision) {}, ends: func(*group, *lastState, envelope.Why) {},
		moved: func(*group, *host) {}, hosts: newHosts(), asking: make(map[netip.Addr]*asking), suspect: func(*host, locate.Location) {},
		proofs: newProofs(),
	}
	for id := size - 1; id >= 0; id-- {
		d.ids = append(d.ids, mcast.GroupID(id))
	}
	return d
}

// Install makes the switch serve r, replacing an older registration of the same
// GroupIP, or changes the members of the one that r updates. It implements
// envelope.Table.
func (d *directory) Install(r *envelope.Registration, key envelope.KeyID) envelope.Verdict {
	if r.Base != 0 {
		return d.update(r, key)
	}
	places, verdict := d.locateAll(r, r, key)
	if verdict.Kind != envelope.VerdictAccepted {
		return verdict
	}
	if limit := d.largestPMTU(places, r.Group.Is4()); r.PMTU > limit {
		return rejected(envelope.Problem{Reason: envelope.PathMTUMismatch, Value: uint64(limit)})
	}
	g := d.groups[r.Group]
	if g == nil {
		if len(d.ids) == 0 {
			return rejected(envelope.Problem{Reason: envelope.TableFull, Value: uint64(d.size)})
		}
		g = &group{id: d.ids[len(d.ids)-1], w: d.crew.workers[d.crew.owners.choose(r.Group)]}
	}
	slots := make([]slot, len(r.Members))
	for i := range slots {
		slots[i] = slot{rec: r.Members[i], place: places[i]}
	}
	table := d.tableOf(r, slots)
	var limit int
	buffers := d.w.buffersOf(r)
	if g.w.do(func() { limit = g.w.capacity(table.need(len(g.w.ports)), buffers) }) && len(table.legs) > limit {
		return rejected(envelope.Problem{Reason: envelope.TooManyMembers, Value: uint64(limit)})
	}
	spec := specOf(g.id, r, &table, g.w, d.sourceTimeout)
	d.count++
	spec.Generation = d.count
	var err error
	if !g.w.do(func() {
		d.last.take(g.w, g.id) // of the registration that is replaced
		err = g.w.put(spec, table)
	}) {
		err = errStopped
	}
	if err != nil {
		return d.refused(r, err)
	}
	if d.groups[r.Group] != nil {
		d.ends(g, &d.last, envelope.Replaced)
	} else {
		d.ids = d.ids[:len(d.ids)-1]
		d.groups[r.Group], d.byID[g.id] = g, g
		d.crew.owners.put(r.Group, g.w.index) // now that it is there
		d.steer(r.Group, g)
	}
	g.slots, g.since, g.former = slots, time.Now(), nil
	g.generation, g.known, g.narrow = spec.Generation, known{}, ""
	d.hosts.follow(g, slots)
	g.setRegistration(r)
	return envelope.Verdict{Kind: envelope.VerdictAccepted}
}

func (g *group) setRegistration(r *envelope.Registration) {
	g.reg = *r
	g.reg.Members = nil
}

// refused is the answer when the core does not take what passed all checks.
func (d *directory) refused(r *envelope.Registration, err error) envelope.Verdict {
	d.notify(true, "the core refused a group", "group", r.Group, "error", err)
	return rejected(envelope.Problem{Reason: envelope.Malformed})
}

func rejected(p envelope.Problem) envelope.Verdict {
	return envelope.Verdict{Kind: envelope.VerdictRejected, Problem: p}
}

// Remove ends a group. It implements envelope.Table.
func (d *directory) Remove(ip netip.Addr, why envelope.Why) {
	g := d.groups[ip]
	if g == nil {
		return
	}
	delete(d.groups, ip)
	d.hosts.follow(g, nil)
	d.byID[g.id] = nil
	d.ids = append(d.ids, g.id)
	d.unsteer(g)
	d.crew.owners.remove(ip)
	if g.w.do(func() {
		d.last.take(g.w, g.id)
		g.w.remove(g.id)
	}) {
		d.ends(g, &d.last, why)
	}
}

// RemoveMember cuts one member off. It implements envelope.Table.
func (d *directory) RemoveMember(ip netip.Addr, m envelope.MemberKey, _ envelope.Why) {
	g := d.groups[ip]
	if g == nil {
		return
	}
	if i := g.find(m); i >= 0 {
		if g.w.do(func() {
			g.w.sw.Outcomes(g.id, &d.last.outcomes)
			g.w.removeMember(g.id, mcast.MemberID(i))
		}) {
			d.memberGoes(g, i)
		}
		g.leaves(i)
		d.hosts.follow(g, g.slots)
	}
}

// Carried reports whether a group has had a source since it was installed as a
// whole. It implements envelope.Table.
func (d *directory) Carried(ip netip.Addr) (carried bool) {
	if g := d.groups[ip]; g != nil {
		g.w.do(func() {
			g.w.sw.Outcomes(g.id, &d.last.outcomes)
			carried = d.last.outcomes.Turns > 0
		})
	}
	return carried
}

// largestPMTU returns the largest path MTU that the ports to all places carry. What
// is longer than a frame of the UMEM they take in several (port.multi).
func (d *directory) largestPMTU(places []locate.Location, v4 bool) int {
	mtu := math.MaxInt
	for _, at := range places {
		if pi := d.w.portOf(at.Ifindex); pi >= 0 {
			mtu = min(mtu, d.w.ports[pi].mtu)
		}
	}
	return pathMTUWithin(mtu, v4)
}

// specOf makes the core's view of a registration whose members are all new.
func specOf(id mcast.GroupID, r *envelope.Registration, t *groupTable, w *worker, sourceTimeout time.Duration) mcast.GroupSpec {
	spec := mcast.GroupSpec{
		ID: id, IP: r.Group, QPN: r.QPN, PMTU: r.PMTU, Window: r.Window, TargetKey: r.TargetKey,
		Policy: r.Policy, Quorum: r.Quorum, DeadAfter: r.DeadAfter, DeadMost: r.DeadMost(), LagPSNs: r.LagPSNs, LagTime: r.LagTime,
		SourceTimeout: max(sourceTimeout, r.SenderGivesUp()),
	}
	spec.PSNProbe = w.psnProbe
	if !r.NoRepair {
		spec.Repair = w.repair
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

// tableOf makes the worker's tables of a registration: a leg for each member,
// under the same number.
func (d *directory) tableOf(r *envelope.Registration, slots []slot) groupTable {
	t := groupTable{ip: r.Group, qpn: r.QPN, buffers: d.w.buffersOf(r), longest: longestPacket(r)}
	for i := range slots {
		m := &slots[i].rec
		l := d.legTo(m, slots[i].place)
		l.gone = slots[i].gone
		t.legs = append(t.legs, l)
		t.members = append(t.members, member{ip: m.IP, qpn: m.QPN, leg: mcast.LegID(i)})
	}
	t.count()
	return t
}

// legTo returns the leg to member m at place at; its port is -1 if the place is
// the zero Location.
func (d *directory) legTo(m *envelope.MemberRecord, at locate.Location) leg {
	l := leg{kind: mcast.Connected, port: d.w.portOf(at.Ifindex), ip: m.IP, qpn: m.QPN, vlan: at.VLAN}
	if l.port >= 0 {
		copy(l.mac[:], at.MAC)
		if l.vlan == 0 {
			l.vlan = d.w.ports[l.port].vlan
		}
	}
	return l
}

func samePlace(a, b locate.Location) bool {
	return a.Ifindex == b.Ifindex && a.VLAN == b.VLAN && slices.Equal(a.MAC, b.MAC)
}

func (d *directory) placeString(at locate.Location) string {
	pi := d.w.portOf(at.Ifindex)
	if pi < 0 {
		return "unknown"
	}
	return d.w.ports[pi].name + " " + at.MAC.String()
}

// longestPacket returns the length of a group's longest packets on an Ethernet link,
// without FCS.
func longestPacket(r *envelope.Registration) int {
	return rocev2.EthernetLen + rocev2.VLANLen + headroom(r.Group.Is4()) + r.PMTU
}

// buffersOf returns in how many buffers the longest packets of a group come.
func (w *worker) buffersOf(r *envelope.Registration) int {
	return (longestPacket(r) + w.umem.MaxReceive() - 1) / w.umem.MaxReceive()
}

// The following run on the worker.

// capacity returns how many members a group may have whose members are behind
// these ports: for more there could never be frames for one packet, and the
// group would starve. Half of the frames may be with the kernel to receive into.
// Where a port's TX ring is the limit, so many members may be behind it. A packet
// has so many buffers.
func (w *worker) capacity(need []portNeed, buffers int) int {
	frames := w.umem.Frames() / 2
	if w.crew != nil {
		frames -= w.umem.Frames() / 8 // others' pools
	}
	limit := packets(frames, buffers) - spareFeedback
	for _, n := range need {
		if ring := packets(cap(w.ports[n.port].tx), buffers) - spareFeedback; n.packets > ring {
			limit = min(limit, ring)
		}
	}
	return limit
}

// put makes the core serve a group and takes over its tables.
func (w *worker) put(spec mcast.GroupSpec, t groupTable) error {
	if err := w.sw.Apply(w.clock(), mcast.PutGroup{Spec: spec}, &w.out); err != nil {
		return err
	}
	w.setTable(spec.ID, t)
	w.applied()
	return nil
}

func (w *worker) remove(id mcast.GroupID) {
	if err := w.sw.Apply(w.clock(), mcast.DeleteGroup{Group: id}, &w.out); err == nil {
		w.applied()
		w.groups[id] = groupTable{}
	}
}

func (w *worker) removeMember(id mcast.GroupID, m mcast.MemberID) {
	if err := w.sw.Apply(w.clock(), mcast.RemoveMember{Group: id, Member: m}, &w.out); err == nil {
		w.applied()
		w.groups[id].leave(m)
	}
}

// clock returns the time since start; it also becomes w.now, so that the core
// never sees time go back.
func (w *worker) clock() time.Duration {
	w.now = time.Since(w.start)
	return w.now
}

// portOf returns the index of the port with this interface, or -1. The
// identity of ports does not change, so anybody may ask.
func (w *worker) portOf(ifindex int) int {
	return slices.IndexFunc(w.ports, func(p *port) bool { return p.ifindex == ifindex })
}
