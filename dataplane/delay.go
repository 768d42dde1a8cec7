// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane/blame"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A worker looks at each group with outstanding packets every lookInterval. So it finds groups that
// stall, with the member that the ACK waits for, and members that cost their groups time (blame.go).
// A group without outstanding packets costs nothing, and one that has some costs a look, whatever
// the number of its packets.

const (
	lookInterval = 200 * time.Millisecond
	lookBatch    = 16   // groups that are looked at between two batches of packets
	readBatch    = 1024 // members that are read between two batches, and those of one group more
)

// DelayKind says what delays a group.
type DelayKind uint8

const (
	NoDelay DelayKind = iota
	Stalled           // the ACK has stood still for api.StallTime or longer, though packets are outstanding
)

// Delay is what delays a group.
type Delay struct {
	Kind   DelayKind
	Member mcast.MemberID
	Legs   int           // the number of legs that the ACK waits for, that of Member among them
	PSN    rocev2.PSN    // the first one that is not acknowledged
	Since  time.Duration // the time when the stall began, by the workers' clock
}

// delayed is the state of a group's delay.
type delayed struct {
	Delay
	history *history // what was read of the members lately; nil: nothing
	queued  bool     // a look is due
}

// blamed returns who costs the group time.
func (d *delayed) blamed() Blamed {
	if d.history == nil {
		return Blamed{}
	}
	return d.history.Blamed
}

// awaited is what a group's ACK waits for.
type awaited struct {
	mcast.Awaited
	Member mcast.MemberID // the first one that it waits for, during a stall
}

// look notes what a look at time now has found. stalled is for how long the ACK has stood still.
// It is the transition function. It reports whether Kind or Member has changed.
func (d *delayed) look(now, stalled time.Duration, a awaited) (changed bool) {
	was := d.Delay
	switch {
	case stalled < api.StallTime*time.Second:
		d.Delay = Delay{}
		return was.Kind != NoDelay
	case a.Legs == 0:
		return false // it is not known whom the ACK waits for
	}
	d.Delay = Delay{Kind: Stalled, Member: a.Member, Legs: a.Legs, PSN: a.PSN, Since: now - stalled}
	return was.Kind != Stalled || was.Member != a.Member
}

// quiet reports whether further looks are of no use as long as nothing is outstanding.
func (d *delayed) quiet() bool { return d.Kind == NoDelay && d.history == nil }

// delays are those of a worker's groups.
type delays struct {
	groups  []delayed // groups by GroupID
	queue   []nextLook
	head    int
	count   int
	changed changedGroups // the groups whose Delay or Blamed has changed
	spare   []*history
	costs   []mcast.Cost // the costs of the members that are read
	blame   blame.Judge
	read    int // members that were read since the last batch
}

// nextLook is when a group is looked at. All intervals are equal, so that they are due in the order of
// the queue.
type nextLook struct {
	id mcast.GroupID
	at time.Duration
}

func newDelays(groups int, bell chan struct{}) delays {
	return delays{groups: make([]delayed, groups), queue: make([]nextLook, groups), changed: newChangedGroups(groups, bell)}
}

// watch has a group looked at, unless that is due already.
func (x *delays) watch(now time.Duration, id mcast.GroupID) {
	if d := &x.groups[id]; !d.queued {
		d.queued = true
		x.queue[(x.head+x.count)%len(x.queue)] = nextLook{id, now + lookInterval}
		x.count++
	}
}

// next returns when a look is due.
func (x *delays) next() (at time.Duration, ok bool) {
	if x.count == 0 {
		return 0, false
	}
	return x.queue[x.head].at, true
}

// forget drops what is known of a group that has ended, or is another one now.
func (x *delays) forget(id mcast.GroupID) {
	d := &x.groups[id]
	x.endHistory(d)
	*d = delayed{queued: d.queued}
}

// stop ends all looks, and has no more due: each group is as if one was due already.
func (x *delays) stop() {
	x.head, x.count = 0, 0
	for i := range x.groups {
		if !x.groups[i].quiet() {
			x.changed.add(mcast.GroupID(i))
		}
		x.endHistory(&x.groups[i])
		x.groups[i] = delayed{queued: true}
	}
}

// goOn takes stop back.
func (x *delays) goOn() {
	for i := range x.groups {
		x.groups[i].queued = false
	}
}

// lookAtDelays looks at the groups that are due.
func (w *worker) lookAtDelays() {
	x := &w.delays
	x.read = 0
	for range lookBatch {
		if at, ok := x.next(); !ok || at > w.now || x.read >= readBatch {
			return
		}
		id := x.queue[x.head].id
		x.head, x.count = (x.head+1)%len(x.queue), x.count-1
		d, m := &x.groups[id], &w.meters.groups[id]
		d.queued = false
		if w.groups[id].ip.IsValid() {
			w.lookAt(id, d, m.stalledFor(w.now))
		}
		if m.outstanding || !d.quiet() {
			x.watch(w.now, id)
		}
	}
}

// lookAt looks at group id, whose ACK has stood still for the time stalled. During a stall a member
// is asked for, and another one than before only if the former one has acknowledged.
func (w *worker) lookAt(id mcast.GroupID, d *delayed, stalled time.Duration) {
	a := awaited{}
	if stalled >= api.StallTime*time.Second {
		if a.Awaited = w.core.Group(id).Awaited(); a.Legs > 0 {
			var ok bool
			if a.Member, ok = w.core.Group(id).AwaitedMember(d.Member); !ok {
				a = awaited{}
			}
		}
	}
	changed := d.look(w.now, stalled, a)
	if w.judge(id, d) || changed {
		w.delays.changed.add(id)
	}
}

// GroupDelay is what delays a group now.
type GroupDelay struct {
	Group mcast.GroupID
	Delay
	Blamed
}

// HasDelays reports whether a worker has groups whose delays have not been read since they
// changed. Any goroutine may call it.
func (p *Plane) HasDelays(worker int) bool { return p.workers.all[worker].delays.changed.any.Load() }

// Delays reads what delays the groups of a worker where that has changed, into to, and returns
// their number. Changed rings when there are some.
func (p *Plane) Delays(worker int, to []GroupDelay) (n int, err error) {
	w := p.workers.all[worker]
	if !w.do(func() {
		for n < len(to) {
			id, ok := w.delays.changed.next()
			if !ok {
				return
			}
			to[n] = GroupDelay{id, w.delays.groups[id].Delay, w.delays.groups[id].blamed()}
			n++
		}
	}) {
		return 0, ErrStopped
	}
	return n, nil
}

// SetLooks has the workers look for what delays groups, as they do from the start, or has them stop
// that, for measurements of what looks cost.
func (p *Plane) SetLooks(on bool) error {
	if !p.workers.do(func(w *worker) {
		if w.delays.stop(); on {
			w.delays.goOn()
		}
	}) {
		return ErrStopped
	}
	return nil
}
