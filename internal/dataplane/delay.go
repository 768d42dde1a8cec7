// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"math/bits"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/mcast"
	"github.com/gleam-rdma/gleam/internal/rocev2"
)

// A worker looks at each group with outstanding packets every lookInterval, and notes which member
// its ACK waits for. So it finds groups that stall, and members that slow their groups down: the
// ACK waits for such a member alone, nearly always. A group without outstanding packets costs
// nothing, and one that has some costs a look, whatever the number of its packets.

const (
	lookInterval = 200 * time.Millisecond
	lookBatch    = 16 // groups that are looked at between two batches of packets
	// Of the last looksKept looks at a group, slowFrom at least have to find the ACK to wait for
	// one member alone, for the member to be slow, and slowUntil at most for that to end.
	looksKept = api.SlowTime * int(time.Second/lookInterval)
	slowFrom  = looksKept * 9 / 10
	slowUntil = looksKept / 2
)

// DelayKind says what delays a group.
type DelayKind uint8

const (
	NoDelay DelayKind = iota
	Slow              // the ACK waits for Member alone, nearly always
	Stalled           // the ACK has stood still for api.StallTime or longer, though packets are outstanding
)

// Delay is what delays a group.
type Delay struct {
	Kind   DelayKind
	Member mcast.MemberID
	Legs   int           // if Kind is Stalled: the number of legs that the ACK waits for, that of Member among them
	PSN    rocev2.PSN    // if Kind is Stalled: the first one that is not acknowledged
	Since  time.Duration // when the stall began, or the member was found to be slow; by the workers' clock
}

// delayed is the state of a group's delay.
type delayed struct {
	Delay
	suspect mcast.MemberID // for whom the ACK waits alone most
	alone   uint32         // by look, the last one in bit 0: the ACK waited for suspect alone
	queued  bool           // a look is due
}

// awaited is what a group's ACK waits for.
type awaited struct {
	mcast.Awaited
	Member mcast.MemberID // the first one that it waits for; of use to look only if Alone, or during a stall
}

// awaitedMember returns for whom the ACK has waited at the last looks.
func (d *delayed) awaitedMember() mcast.MemberID {
	if d.Kind == Stalled {
		return d.Member
	}
	return d.suspect
}

// look notes what a look at time now has found. stalled is for how long the ACK has stood still.
// It is the transition function. It reports whether Kind or Member has changed.
func (d *delayed) look(now, stalled time.Duration, a awaited) (changed bool) {
	was := d.Delay
	if stalled >= api.StallTime*time.Second {
		d.alone = 0 // a stall says nothing about speed
		if a.Legs == 0 {
			return false // it is not known whom the ACK waits for
		}
		d.Delay = Delay{Kind: Stalled, Member: a.Member, Legs: a.Legs, PSN: a.PSN, Since: now - stalled}
		return was.Kind != Stalled || was.Member != a.Member
	}
	d.note(a)
	n := bits.OnesCount32(d.alone)
	switch {
	case d.Kind == Stalled, d.Kind == Slow && (n <= slowUntil || d.suspect != d.Member):
		d.Delay = Delay{}
	case d.Kind == NoDelay && n >= slowFrom:
		d.Delay = Delay{Kind: Slow, Member: d.suspect, Since: now}
	}
	return d.Kind != was.Kind
}

// note adds a look to the last ones.
func (d *delayed) note(a awaited) {
	d.alone = d.alone << 1 & (1<<looksKept - 1)
	switch {
	case a.Alone && d.alone == 0:
		d.suspect, d.alone = a.Member, 1
	case a.Alone && a.Member == d.suspect:
		d.alone |= 1
	case a.Alone && bits.OnesCount32(d.alone) <= slowUntil && bits.TrailingZeros32(d.alone) > looksKept/4:
		d.suspect, d.alone = a.Member, 1 // it was another one for some time
	}
}

// quiet reports whether further looks are of no use as long as nothing is outstanding.
func (d *delayed) quiet() bool { return d.Kind == NoDelay && d.alone == 0 }

// delays are those of a worker's groups.
type delays struct {
	groups  []delayed // by GroupID
	queue   []nextLook
	head    int
	count   int
	changed changedGroups // whose Delay has changed
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
	*d = delayed{queued: d.queued}
}

// stop ends all looks, and has no more due: each group is as if one was due already.
func (x *delays) stop() {
	x.head, x.count = 0, 0
	for i := range x.groups {
		if x.groups[i].Kind != NoDelay {
			x.changed.add(mcast.GroupID(i))
		}
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
	for range lookBatch {
		if at, ok := x.next(); !ok || at > w.now {
			return
		}
		id := x.queue[x.head].id
		x.head, x.count = (x.head+1)%len(x.queue), x.count-1
		d, m := &x.groups[id], &w.meters.groups[id]
		d.queued = false
		if g := &w.groups[id]; g.ip.IsValid() {
			if int(d.suspect) >= len(g.members) || g.members[d.suspect].gone {
				d.alone = 0
			}
			w.lookAt(id, d, m.stalledFor(w.now))
		}
		if m.outstanding || !d.quiet() {
			x.watch(w.now, id)
		}
	}
}

// lookAt looks at group id, whose ACK has stood still for the time stalled. The group's members are
// asked only if look needs one, and other ones than before only if the former one has acknowledged.
func (w *worker) lookAt(id mcast.GroupID, d *delayed, stalled time.Duration) {
	a := awaited{Awaited: w.core.Awaited(id)}
	if a.Alone || stalled >= api.StallTime*time.Second && a.Legs > 0 {
		var ok bool
		if a.Member, ok = w.core.AwaitedMember(id, d.awaitedMember()); !ok {
			a = awaited{}
		}
	}
	if d.look(w.now, stalled, a) {
		w.delays.changed.add(id)
	}
}

// GroupDelay is what delays a group now.
type GroupDelay struct {
	Group mcast.GroupID
	Delay
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
			to[n] = GroupDelay{id, w.delays.groups[id].Delay}
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
