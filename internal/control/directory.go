// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
	"github.com/gleam-rdma/gleam/internal/control/tree"
	"github.com/gleam-rdma/gleam/mcast"
)

// directory is the control plane's table of groups: the registration of each, its GroupID
// at the worker, and the locations of its members. It is the envelope.Table of the
// registrar and belongs to the control loop.
type directory struct {
	plane       *dataplane.Plane
	ports       []*port
	groups      map[netip.Addr]*group
	byID        []*group        // groups by mcast.GroupID; nil if free
	freeIDs     []mcast.GroupID // free ones; the next one to be used is the last
	generations uint64          // the generation of the last registration
	traffic     portTraffic
	maxGroups   int
	notify      Notify
	noWays      *sampler[noWay]
	// connections has the groups that members connect to; nil: there are none.
	connections *connections
	// onOutcome reports the group's outcomes when a member has gone, onEnd the final
	// state of a registration that has ended.
	onOutcome func(*group, *newOutcome)
	onEnd     func(*group, *dataplane.GroupState, envelope.EndReason)
	onMoved   func(g *group, host netip.Addr) // called when a member has another location
	// onNewTable is called when the worker has the new locations of members, once for all of
	// them.
	onNewTable func(*group)
	// onInstalled is called with the time that Install has taken, where it has made or replaced a group.
	onInstalled func(time.Duration)
	scratch     dataplane.GroupState // reused
	hosts       *location.Hosts
	switches    *tree.Switches
	// cameFrom is the origin of the envelope that is being served, memberAt the location
	// that FromMember has compared it with.
	cameFrom dataplane.Origin
	memberAt locate.Location
	inquirer *location.Inquirer // asks hosts where they are
	// pending are registrations that wait for answers, by group; ready are the groups
	// whose registrations have all answers.
	pending     map[netip.Addr]*pendingRegistration
	expiries    []pendingExpiry // the ends of pending, the next one first
	ready       []netip.Addr
	staleTables []*group                               // groups whose workers do not have the members' present locations, or the neighbours' sessions, yet
	staleWays   []*group                               // groups with members below to whom the ways have changed
	over        map[mcast.Neighbor]map[*group]struct{} // the groups with a leg to a neighbour
	checked     map[netip.Addr]checkedRegistration     // checked registrations by group

	// storageFails reports whether the state file cannot be written: members that it lacks are not taken.
	storageFails func() bool
	defaults     groupDefaults
}

// groupDefaults are the parameters of groups that the configuration sets.
type groupDefaults struct {
	sourceTimeout time.Duration // mcast.GroupSpec.SourceTimeout, unless a source's declared timeout is longer
	psnProbe      time.Duration
	stored        bool             // groups are kept over a restart
	fastPath      bool             // groups may take the fast path
	fastRequired  bool             // no group is served that could never take it
	repair        mcast.RepairSpec // the repair of the groups with local repair
}

// group is one registered group. The records of its members are in slots.
type group struct {
	id            mcast.GroupID
	key           envelope.KeyID // the key that the group is registered under; 0: by hand
	tableStale    bool           // the group is in directory.staleTables
	waysStale     bool           // the group is in directory.staleWays
	generation    uint64         // the generation of the registration that the core has
	handle        dataplane.Group
	reg           *envelope.Registration  // the registrar's
	slots         []slot                  // slots by MemberID
	legs          []mcast.Neighbor        // legs by LegID: the neighbour, or NoNeighbour of a leg to a member here; nil: all members are here, with legs of their numbers
	remote        map[netip.Addr]struct{} // hosts of the others; nil: there are none
	routed        map[netip.Addr]struct{} // those of remote that are below in the tree
	outcomes      *appliedOutcomes        // nil: none were applied
	isolationText string                  // why members may not send; "" if all may
	mtuText       string                  // why its longest copies do not fit a port; "" if they do
	kept          keptGroup
	neighbours    []mcast.Neighbor // the neighbours that it has legs to
	registeredAt  time.Time
	former        []api.FormerMember // members that have gone, the last maxFormerMembers
}

// slot is the member that the core knows under a MemberID. A member that has gone keeps
// its slot until another member takes it over.
type slot struct {
	record           *envelope.MemberRecord // the registrar's
	location         *locate.Location       // the member's location, if it is here and known; slots share it
	number           uint32                 // the member's number in the group
	behind           mcast.Neighbor         // the switch that it is behind; NoNeighbour: it is here
	leg              mcast.LegID
	gone             bool
	joined           bool                   // the host has the group (setMembers)
	mismatchReported [mcast.NumNumbers]bool // numbers that its packets contradict and that the operator was told of
}

// at returns the member's location; none if it is not known, or the member is not here.
func (s *slot) at() locate.Location {
	if s.location == nil {
		return locate.Location{}
	}
	return *s.location
}

// maxFormerMembers bounds the number of former members that a group remembers.
const maxFormerMembers = 64

// now returns the time by the workers' clock.
func (d *directory) now() time.Duration { return d.plane.Now() }

// slotOf returns the MemberID of k, or -1 if k is not, or no longer, in the group.
func (g *group) slotOf(k envelope.MemberKey) int {
	return slices.IndexFunc(g.slots, func(s slot) bool { return !s.gone && s.record.Key() == k })
}

func newDirectory(plane *dataplane.Plane, ports []*port, cfg *config.Config, notify Notify) *directory {
	size := cfg.Limits.Groups
	d := &directory{
		plane: plane, ports: ports, groups: make(map[netip.Addr]*group), byID: make([]*group, size), maxGroups: size, notify: notify, noWays: newSampler[noWay](1, refusalInterval),
		onOutcome: func(*group, *newOutcome) {}, onEnd: func(*group, *dataplane.GroupState, envelope.EndReason) {},
		onMoved: func(*group, netip.Addr) {}, onNewTable: func(*group) {}, onInstalled: func(time.Duration) {}, hosts: location.NewHosts(hostPorts{plane, ports}, notify), pending: make(map[netip.Addr]*pendingRegistration), storageFails: func() bool { return false },
		over: make(map[mcast.Neighbor]map[*group]struct{}), checked: make(map[netip.Addr]checkedRegistration),
		defaults: groupDefaults{sourceTimeout: cfg.Limits.SourceTimeout, psnProbe: cfg.PSNProbe, repair: plane.RepairSpec(),
			fastPath: cfg.FastPath != config.FastPathOff, fastRequired: cfg.FastPath == config.FastPathRequire},
	}
	d.hosts.FollowKernel(cfg.UnconfirmedMoves == config.MoveFollow)
	d.hosts.OnMoved, d.hosts.OnLocated, d.hosts.OnWays = d.memberMoved, d.memberLocated, d.waysChanged
	for id := size - 1; id >= 0; id-- {
		d.freeIDs = append(d.freeIDs, mcast.GroupID(id))
	}
	return d
}

// Install makes the switch serve r, replacing an older registration of the same GroupIP,
// or, if r has a Base, updates the members of that registration. It implements
// envelope.Table.
func (d *directory) Install(r *envelope.Registration, key envelope.KeyID) envelope.Verdict {
	begin := d.now()
	places, ok := d.takeChecked(r)
	if verdict := accepted; !ok {
		if places, verdict = d.check(r, key); verdict.Kind != envelope.VerdictAccepted {
			return verdict
		}
	}
	if r.Base != 0 {
		return d.update(r, places)
	}
	g := d.groups[r.Group]
	if g == nil {
		id := d.freeIDs[len(d.freeIDs)-1]
		g = &group{id: id, handle: *d.plane.NewGroup(id, r.Group)}
	}
	slots, legs := newSlots(r, places)
	table := d.makeTable(r, slots, legs)
	spec := d.makeSpec(g.id, r, &table)
	spec.Tree.Running = r.Tree != nil && r.Tree.Elsewhere
	d.generations++
	spec.Generation = d.generations
	if err := g.handle.Install(spec, &table, &d.scratch); err != nil { // scratch: of the registration that is replaced
		return d.workerRefused(r, err)
	}
	if d.groups[r.Group] != nil {
		if g.key != key {
			d.setMembers(g, g.slots, nil) // their places are those of the other key
		}
		d.onEnd(g, &d.scratch, envelope.Replaced)
	} else {
		d.freeIDs = d.freeIDs[:len(d.freeIDs)-1]
		d.groups[r.Group], d.byID[g.id] = g, g
	}
	was := g.slots
	g.key, g.slots, g.legs, g.registeredAt, g.former = key, slots, legs, time.Now(), nil
	g.generation, g.mtuText, g.kept = spec.Generation, "", keptGroup{}
	if x := g.outcomes; x != nil {
		*x = appliedOutcomes{quiet: x.quiet, held: x.held}
	}
	d.setSlots(g, was, r)
	d.onInstalled(d.now() - begin)
	return accepted
}

// setSlots makes r, whose members g.slots has, the registration of g. Its slots were was before.
func (d *directory) setSlots(g *group, was []slot, r *envelope.Registration) {
	g.reg = r
	for _, h := range d.setMembers(g, was, g.slots) {
		d.hosts.Follow(h, g.key)
	}
	g.setRemote()
	d.setNeighbours(g, g.slots)
	d.followWays(g, g.slots)
}

// check is the part of Install that changes nothing: it returns the locations of the
// members that are here, or why the group cannot be installed (yet).
func (d *directory) check(r *envelope.Registration, key envelope.KeyID) ([]locate.Location, envelope.Verdict) {
	if d.defaults.psnProbe != 0 && d.storageFails() && d.adds(r) {
		return nil, rejected(envelope.Problem{Reason: envelope.NotStored})
	}
	if front, _ := d.connections.frontOf(r.Group); front.IsValid() && r.Master.IsValid() {
		return nil, rejected(envelope.Problem{Reason: envelope.NotAllowed}) // its members are those that connect
	}
	fresh, verdict := d.newHere(r)
	var places []locate.Location
	if verdict.Kind == envelope.VerdictAccepted {
		places, verdict = d.locateMembers(fresh, r, key)
	}
	if verdict.Kind == envelope.VerdictAccepted {
		verdict = d.checkLinks(r)
	}
	if verdict.Kind != envelope.VerdictAccepted {
		return nil, verdict
	}
	if limit := pathMTUWithin(d.linkMTU(r, d.lowestMTU(places)), r.Group.Is4()); r.PathMTU > limit {
		return nil, rejected(envelope.Problem{Reason: envelope.PathMTUMismatch, Value: uint64(limit)})
	}
	if p := d.neverFast(r, fresh, places); p != nil {
		return nil, rejected(*p)
	}
	if d.groups[r.Group] == nil && len(d.freeIDs) == 0 {
		return nil, rejected(envelope.Problem{Reason: envelope.TableFull, Value: uint64(d.maxGroups)})
	}
	return places, verdict
}

// workerRefused returns the verdict for a group that passed all checks but that its worker, or the core there, refused.
func (d *directory) workerRefused(r *envelope.Registration, err error) envelope.Verdict {
	if few, ok := errors.AsType[*dataplane.CapacityError](err); ok {
		return rejected(envelope.Problem{Reason: envelope.TooManyMembers, Value: uint64(few.Limit)})
	}
	d.notify(true, "the core refused a group", "group", r.Group, "error", err)
	return rejected(envelope.Problem{Reason: envelope.Malformed})
}

var accepted = envelope.Verdict{Kind: envelope.VerdictAccepted}

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
	d.setMembers(g, g.slots, nil)
	d.setNeighbours(g, nil)
	d.setRouted(g, nil)
	d.byID[g.id] = nil
	d.freeIDs = append(d.freeIDs, g.id)
	if g.handle.Remove(&d.scratch) == nil {
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
		if g.handle.RemoveMember(mcast.MemberID(i), &d.scratch.Outcomes) == nil {
			d.reportLastOutcome(g, i)
		}
		g.markGone(i)
		delete(g.remote, m.IP)
		d.followWays(g, g.slots)
		d.slotGone(g, i)
	}
}

// HadSource reports whether a group has had a source since it was last installed, updates
// aside. It implements envelope.Table.
func (d *directory) HadSource(ip netip.Addr) (carried bool) {
	if g := d.groups[ip]; g != nil {
		carried = g.handle.Outcomes(&d.scratch.Outcomes) == nil && d.scratch.Outcomes.Turns > 0
	}
	return carried
}

// lowestMTU returns the lowest MTU of the ports at the given locations. A packet that is
// longer than a frame of the UMEM takes several (port.multiBuffer).
func (d *directory) lowestMTU(places []locate.Location) int {
	mtu := math.MaxInt
	for _, at := range places {
		if pi := d.plane.PortIndex(at.Ifindex); pi >= 0 {
			mtu = min(mtu, d.ports[pi].mtu)
		}
	}
	return mtu
}

// makeSpec makes the core's spec of a registration whose members are all new.
func (d *directory) makeSpec(id mcast.GroupID, r *envelope.Registration, t *dataplane.Table) mcast.GroupSpec {
	spec := mcast.GroupSpec{
		ID: id, IP: r.Group, GroupParams: r.GroupParams, DeadAfterMax: r.DeadAfterMax(), AllDeadAfter: r.SilenceOfAll(),
		SourceTimeout: max(d.defaults.sourceTimeout, r.SenderTimeoutTotal()), Window: r.Window, TargetKey: r.TargetKey,
	}
	spec.DeadAfter = r.Silence()
	spec.PSNProbe, spec.AckEvery = d.defaults.psnProbe, mcast.DefaultAckEvery
	spec.Stored = d.stores(r)
	spec.Tree = treeSpec(r)
	if !r.NoRepair {
		spec.Repair = d.defaults.repair
	}
	spec.Legs, spec.Members = d.legSpecs(r, t), make([]mcast.MemberSpec, 0, len(r.Members))
	for i := range r.Members {
		at := mcast.LegID(i)
		if t.Legs != nil {
			at = t.Destinations[i].Leg
		}
		spec.Members = append(spec.Members, mcast.MemberSpec{MemberRecord: r.Members[i], Number: r.Number(i), Leg: at})
		if r.Members[i].Reply == mcast.NoReply {
			spec.RepliesTo = mcast.MemberID(i)
		}
	}
	return spec
}

// stores reports whether the positions of r are stored: a member is here, whose position no other
// switch can tell, and the group is to survive a restart.
func (d *directory) stores(r *envelope.Registration) bool {
	return !d.isSession(r.Group) && d.defaults.stored && d.defaults.psnProbe > 0 && (r.Tree == nil || slices.Contains(r.Tree.Legs, envelope.NoNeighbour))
}

// makeTable makes the worker's table of a registration: a destination for each member,
// with the member's MemberID.
func (d *directory) makeTable(r *envelope.Registration, slots []slot, legs []mcast.Neighbor) dataplane.Table {
	t := dataplane.Table{IP: d.addressOf(r.Group), QPN: r.QPN, PMTU: r.PathMTU, Legs: d.legsOf(legs), Layout: layoutOf(r), Destinations: make([]dataplane.Destination, 0, len(slots))}
	for i := range slots {
		m := slots[i].record
		t.Destinations = append(t.Destinations, dataplane.Destination{
			Origin: d.hosts.Origin(slots[i].at()), IP: m.IP, QPN: m.QPN, Leg: slots[i].leg, Gone: slots[i].gone,
		})
	}
	return t
}

// addressOf returns the address by which hosts know a group.
func (d *directory) addressOf(group netip.Addr) netip.Addr {
	if front, dials := d.connections.frontOf(group); dials {
		return front
	}
	return group
}

// isSession reports whether a group is that of a dialler: its connections end with this
// process, and the group does.
func (d *directory) isSession(group netip.Addr) bool {
	_, dials := d.connections.frontOf(group)
	return dials
}
