// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/mcast"
)

// Path is the way that a group's data takes.
type Path uint8

// Paths.
const (
	PathNever Path = iota // the worker's: the group is not for the fast path
	PathSlow              // the worker's now
	PathFast              // the XDP programs'
)

// String returns never, slow or fast.
func (p Path) String() string { return [...]string{"never", "slow", "fast"}[p] }

// FastStatus is what the fast path has of a group.
type FastStatus struct {
	Path    Path
	Since   time.Duration // the time when the path began, by Plane.Now
	Why     Why           // the reason why the path is not fast
	Packets uint64        // packets of the source that the programs have forwarded
	Copies  uint64        // copies that the programs have made
	Grants  uint64
	Revokes uint64
	ACKs    string            // why the programs leave ACKs to the worker while the path is fast, in a word; "": they count them
	Taken   uint64            // ACKs of receivers that the programs have taken
	Sent    uint64            // ACKs to the source that they have sent
	Left    fastpath.Counters // packets that the programs have left to the worker
	Ring    int               // packets that its ring has room for; 0: it has none
}

// fastStatus returns the status of a group.
func (w *worker) fastStatus(id mcast.GroupID) FastStatus {
	f := w.fast.of(id)
	switch {
	case w.fast.shared == nil:
		return FastStatus{Path: PathNever, Why: Why{Word: fastOff}}
	case f == nil:
		return FastStatus{Path: PathNever, Why: w.fast.never[id]}
	}
	s := f.status
	s.Copies, s.ACKs, s.Taken, s.Sent = f.copies(), f.acks.why, f.acks.taken, f.acks.answered
	if s.Left = f.leftBefore; f.ring == nil || f.step == fastChanging {
		return s
	}
	s.Ring = f.ring.Slots()
	left, _ := f.ring.Counters() // an error: none are known
	for r, n := range left {
		s.Left[r] += n
	}
	return s
}

// copies returns how many copies the programs have made of f's packets.
func (f *fastGroup) copies() uint64 {
	if f.ring == nil || f.step == fastChanging {
		return f.copiesWas
	}
	return f.copiesWas + f.gateCopies()
}

// exactCopies returns how many copies of group id there are, of which the core counts n: for
// those of the programs it counts all that gates were to let pass.
func (w *worker) exactCopies(id mcast.GroupID, n uint64) uint64 {
	if f := w.fast.of(id); f != nil {
		n += f.copies() + f.givenBack - w.core.Group(id).OffloadCopies()
	}
	return n
}

// fastCopies returns how many copies the programs have made for the groups of w.
func (w *worker) fastCopies() (n uint64) {
	for _, f := range w.fast.groups {
		if f != nil {
			n += f.copies()
		}
	}
	return n
}

// gateCopies returns how many copies the gates of f have let pass.
func (f *fastGroup) gateCopies() (n uint64) {
	for k := range f.spec.Legs {
		n += f.ring.Gate(k).Copies
	}
	return n
}

// describeFast adds to each port whether the fast path uses it, and what became of its copies.
func (p *Plane) describeFast(list []api.Port) error {
	if p.fast.maps == nil {
		return nil
	}
	if !p.workers.do(func(w *worker) {
		for i, x := range w.ports {
			if x.remoteTX != nil {
				continue
			}
			f := &api.PortFastPath{Used: true}
			if word, reason := x.whyNotFast(); word != OnFastPath {
				f.Used, f.Reason = false, "it "+reason
			}
			list[i].FastPath = f
		}
	}) {
		return ErrStopped
	}
	for i := range p.ports {
		f := list[i].FastPath
		t := p.fast.maps.Transmitted(i)
		f.Sent, f.Lost = t.Sent, t.Lost
		if reason := p.fast.targets.why(i); reason != "" && f.Used {
			f.Used, f.Reason = false, reason
		}
	}
	return nil
}
