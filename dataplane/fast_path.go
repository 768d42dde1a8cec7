// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// The fast path (docs/AGGREGATION.md, R97, R98): the XDP programs replicate the packets of a
// group's source that come in order, and store them in the group's ring. The worker that owns
// the group drives them: it grants the group to them when the core says so and nothing of it
// is left here, reports to the core what they have forwarded before the core hears of anything
// else of the group (fast_report.go), opens and shuts the gates of its legs (fast_gates.go), and
// takes the group back when the core, or a change of tables and ports, demands it
// (fast_grant.go).

// Times of the fast path.
const (
	fastDrain   = 200 * time.Microsecond // mcast.FastPathSpec.Drain
	fastBackoff = 2 * time.Millisecond   // mcast.FastPathSpec.Backoff, if no test has another
	// fastIdle is the time without a packet after which a group is taken back: one on the
	// fast path is one that moves.
	fastIdle = time.Second
	// fastFullRetry is the time after which a group is tried again whose ring has fewer slots
	// than the core retains packets.
	fastFullRetry = 10 * time.Millisecond
	// fastRetry is the time after which a group is tried again that found no room.
	fastRetry = time.Second
)

// maxFastSlots is the largest ring: beyond it the processor's caches cost more than a
// packet's other work.
const maxFastSlots = 1 << 10

// spec returns the fast path of a group, or why it never takes it.
func (s *fastShared) spec(g *mcast.GroupSpec) (f mcast.FastPathSpec, why Why) {
	if g.TargetKey != 0 {
		return f, whyTargets
	}
	slots := min(maxFastSlots, s.maps.LargestRing())
	for int64(slots*fastpath.SlotBytes(g.IP, g.PathMTU)) > g.Repair.Bytes {
		if slots /= 2; slots < minFastSlots {
			return f, whyNoStore
		}
	}
	return mcast.FastPathSpec{Slots: slots, Drain: fastDrain, Backoff: s.backoff}, Why{}
}

const (
	minFastSlots = 1 << 4
	smallestSlot = 1 << 11 // bytes; see fastpath.SlotBytes
	largestSlot  = 17 << 8
)

// fastStep says how far a group is on the way to the fast path.
type fastStep uint8

const (
	fastUnset    fastStep = iota // what the maps have of the group, if anything, is not to be used
	fastChanging                 // the thread for changes is about to set them
	fastSet                      // they are as the group is now
	fastGranted                  // the programs forward
)

// fastGroup is a group that may be offloaded, at its worker.
type fastGroup struct {
	id    mcast.GroupID
	step  fastStep
	ring  *fastpath.Group    // its place in the maps; nil: it has none
	most  int                // the most slots that its ring may have
	spec  fastpath.GroupSpec // what the maps have
	legs  []int              // indices in spec.Legs, by LegID; -1: the leg is not there
	at    []mcast.LegID      // legs by index in spec.Legs
	gates []fastGate         // likewise

	source     mcast.MemberID // the source of spec
	neighbour  mcast.Neighbor // the neighbour that the source is behind
	sourcePort int

	asked     bool          // the core would offload the group
	ended     bool          // the group is removed
	judgedAt  uint64        // fastPath.changes when why was found
	why       Why           // the reason why it is not on the fast path
	retryAt   time.Duration // the time when the path is judged again
	reported  rocev2.PSN    // all before it is reported
	ends      uint32        // packets since the grant that ended a message, of those, modulo 2^24
	skipped   bool          // the last of those was told of together with others (R114)
	clock     time.Duration // the core's time of the last report
	movedAt   time.Duration // the time when the programs were last seen to have forwarded
	movedFrom time.Duration // the last packet that is reported did not come before
	lookedAt  time.Duration // the last report; packets that were not in it came later
	lookedHi  rocev2.PSN    // the first one of those
	payload   uint64        // fastpath.Group.Payload that is counted
	limit     rocev2.PSN    // the limit that the maps have
	lookAt    time.Duration // the next look
	lookIndex int           // the index in fastPath.on
	gatesAt   time.Duration // no look at the gates before
	gatesSeen rocev2.PSN    // reported at the last one
	settled   bool          // the gates have let everything pass that was forwarded before it
	touched   bool          // true: it is in fastPath.touched
	tryAt     time.Duration // the next attempt to grant
	damaged   Why           // why a packet was not reported

	awaitsPrograms bool // a program may hold a packet, and would send it through gates that are open again: it has to end before the maps are set

	full     bool          // the ring was full: a larger one is of use
	used     bool          // the core may retain packets of the ring
	resizeAt time.Duration // the ring does not grow before

	older, younger *fastGroup // neighbours in fastPath.idle; not in it: nil

	acks        fastACKs
	reportedIn  uint64 // fastPath.passes of the last one that has reported it
	reportedFor uint64 // fastPath.taken of the last report before a packet
	status      FastStatus
	leftBefore  fastpath.Counters // packets that programs left to the worker with earlier places
	copiesWas   uint64            // the copies that earlier gates have counted
	givenBack   uint64            // copies given back to the core, of those that the programs were to make
}

// fastPath is the fast path of a worker's groups. The zero value is none.
type fastPath struct {
	shared     *fastShared     // nil: off
	groups     []*fastGroup    // groups by GroupID; nil: not offered
	never      []Why           // the reasons why groups are not offered, by GroupID
	idle       fastIdleList    // groups that have a place in the maps, and are not granted
	on         fastLooks       // granted
	touched    []*fastGroup    // granted ones of which the core has heard in this batch
	due        []mcast.GroupID // scratch
	passes     uint64          // counts the calls of reportDue
	asked      []*fastGroup    // groups to be granted when the batch has been sent
	asking     []*fastGroup    // scratch
	opens      []fastOpen      // gates to be opened, when what was staged before has been sent
	jobs       []func()        // jobs for the thread, in order
	refused    []fastLeg       // legs of which the core was given a copy back in this call
	reclaiming bool            // the thread deletes places of idle groups
	reclaimAt  time.Duration   // the next time at which idle groups may have to give up their places
	slow       []netip.Addr    // groups that are kept off it
	changes    uint64          // counts the changes of tables and ports
	taken      uint64          // counts the batches that were taken from sockets and other workers
	table      mcast.OffloadTable
	legs       []mcast.LegACK // scratch
	acked      []rocev2.PSN   // likewise
	pkt        mcast.Packet
	frame      rocev2.Frame // the frame of the packet that is reported
	covered    mcast.Covered
	kept       [largestSlot]byte // the packet of a ring that is looked at
	repair     fastRepair
}

// fastShared is what the workers share.
type fastShared struct {
	maps    *fastpath.Maps
	thread  *portThread
	targets *fastTargets
	notify  Notify
	base    time.Duration // CLOCK_MONOTONIC when the workers' clock began

	backoff time.Duration // mcast.FastPathSpec.Backoff; see fastBackoff
}

// newFastShared starts the thread for changes of the maps.
func newFastShared(maps *fastpath.Maps, thread *portThread, targets *fastTargets, notify Notify, start time.Time) *fastShared {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail
	return &fastShared{maps: maps, thread: thread, targets: targets, notify: notify, backoff: fastBackoff, base: time.Duration(ts.Nano()) - time.Since(start)}
}

// enableFastPath makes w offer the fast path to the groups that are put from now on.
func (w *worker) enableFastPath(s *fastShared) {
	w.fast = fastPath{shared: s, groups: make([]*fastGroup, len(w.groups)), never: make([]Why, len(w.groups)), changes: 1}
}

// granted returns group id if it is on the fast path, or nil.
func (p *fastPath) granted(id mcast.GroupID) *fastGroup {
	if p.on == nil || int(id) >= len(p.groups) {
		return nil
	}
	if f := p.groups[id]; f != nil && f.step == fastGranted {
		return f
	}
	return nil
}

// of returns group id if it may be offloaded, or nil.
func (p *fastPath) of(id mcast.GroupID) *fastGroup {
	if int(id) >= len(p.groups) {
		return nil
	}
	return p.groups[id]
}

// offerFast offers the fast path to a group that is about to be put.
func (w *worker) offerFast(spec *mcast.GroupSpec, t *groupTable) {
	if w.fast.shared == nil {
		return
	}
	if t.ip != spec.IP { // the XDP programs find a group by its address
		w.fast.never[spec.ID] = Why{Word: fastAddress, detail: "another group has its address, " + t.ip.String()}
		return
	}
	spec.FastPath, w.fast.never[spec.ID] = w.fast.shared.spec(spec)
}

// beginFast begins the fast path of a group that has been put.
func (w *worker) beginFast(spec *mcast.GroupSpec) {
	switch old := w.fast.of(spec.ID); {
	case w.fast.shared == nil:
		return
	case old != nil && spec.FastPath.Slots != 0 && (old.ring == nil || old.most == spec.FastPath.Slots):
		old.unset()
		old.givenBack = -old.copies() // the core has none of the group before
		return
	case old != nil:
		w.endFast(spec.ID)
	}
	if spec.FastPath.Slots == 0 {
		return
	}
	w.fast.shared.maps.Offer(1)
	w.fast.groups[spec.ID] = &fastGroup{
		id: spec.ID, most: spec.FastPath.Slots, why: whyNoData,
		status: FastStatus{Path: PathSlow, Since: w.now, Why: whyNoData},
	}
}

// endFast ends the fast path of a group that is removed. It has been taken back.
func (w *worker) endFast(id mcast.GroupID) {
	f := w.fast.of(id)
	if f == nil {
		return
	}
	w.count.copies += f.copies()
	w.fast.groups[id], f.ended = nil, true
	w.fast.shared.maps.Offer(-1)
	if f.ring != nil && f.step != fastChanging {
		w.deleteFast(f)
	}
}

// deleteFast gives back the place of f in the maps.
func (w *worker) deleteFast(f *fastGroup) {
	ring := f.ring
	w.forgetRing(f)
	w.fast.jobs = append(w.fast.jobs, func() { w.deleteRings([]*fastpath.Group{ring}, []*fastGroup{f}) })
}

// unset notes that the maps have to be set anew before the group can be granted.
func (f *fastGroup) unset() {
	if f.step == fastSet {
		f.step = fastUnset
	}
	f.why, f.judgedAt = Why{}, 0
}

// disturbFast takes all groups back, since tables or ports are about to change by which
// they may be on the fast path.
func (w *worker) disturbFast() {
	w.fast.changes++
	for len(w.fast.on) > 0 {
		w.takeBack(w.fast.on[len(w.fast.on)-1], whyChange)
	}
}

// disturbFastGroup is disturbFast for a change of one group.
func (w *worker) disturbFastGroup(id mcast.GroupID) {
	if f := w.fast.of(id); f != nil {
		w.takeBack(f, whyChange)
		f.unset()
	}
}

// runFastJobs passes on what the thread for changes has to do, as far as it has room.
func (w *worker) runFastJobs() {
	for len(w.fast.jobs) > 0 && w.fast.shared.thread.try(w.fast.jobs[0]) {
		w.fast.jobs = slices.Delete(w.fast.jobs, 0, 1)
	}
}
