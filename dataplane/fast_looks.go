// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "time"

// Looks: the programs tell nobody that they have forwarded something, so the worker looks at each group that
// they have, at a time of its own: soon when something came at the last look, else as long after the last packet
// as that was ago. A core's deadline, a packet of the group and a question about it are reasons to look before.
// So what is done in a batch is for groups that move or wait, however many there are.

// Intervals of looks.
const (
	// fastReport is the least one, while the worker polls.
	fastReport = 100 * time.Microsecond
	// fastLook is that of looks at gates, and the least one while the worker sleeps.
	fastLook = time.Millisecond
	// fastLastLook is the largest one.
	fastLastLook = 8 * time.Millisecond
)

// fastLooks are groups by the time of the next look: a heap.
type fastLooks []*fastGroup

// first returns the time of the first look.
func (h fastLooks) first() (at time.Duration, ok bool) {
	if len(h) == 0 {
		return 0, false
	}
	return h[0].lookAt, true
}

// add adds f, whose lookAt is set.
func (h *fastLooks) add(f *fastGroup) {
	*h = append(*h, f)
	h.up(len(*h)-1, f)
}

// remove removes f.
func (h *fastLooks) remove(f *fastGroup) {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	if *h = (*h)[:len(*h)-1]; last != f {
		h.place(f.lookIndex, last)
	}
}

// move changes the time of f's look.
func (h *fastLooks) move(f *fastGroup, at time.Duration) {
	f.lookAt = at
	h.place(f.lookIndex, f)
}

// place puts f where it belongs, at i, which is free, above it or below it.
func (h *fastLooks) place(i int, f *fastGroup) {
	if i > 0 && f.lookAt < (*h)[(i-1)/2].lookAt {
		h.up(i, f)
		return
	}
	for {
		c := 2*i + 1
		if c+1 < len(*h) && (*h)[c+1].lookAt < (*h)[c].lookAt {
			c++
		}
		if c >= len(*h) || f.lookAt <= (*h)[c].lookAt {
			break
		}
		h.set(i, (*h)[c])
		i = c
	}
	h.set(i, f)
}

func (h *fastLooks) up(i int, f *fastGroup) {
	for ; i > 0 && f.lookAt < (*h)[(i-1)/2].lookAt; i = (i - 1) / 2 {
		h.set(i, (*h)[(i-1)/2])
	}
	h.set(i, f)
}

func (h *fastLooks) set(i int, f *fastGroup) { (*h)[i], f.lookIndex = f, i }

// lookDue looks at the groups whose time has come, each once.
func (w *worker) lookDue() {
	for now := w.now; ; {
		at, ok := w.fast.on.first()
		if !ok || at > now {
			return
		}
		f := w.fast.on[0]
		w.fast.on.move(f, now+fastReport) // if the look takes it back, it is removed
		w.lookAtFast(f)
	}
}

// lookAtFast looks at a group: it reports what has come, and looks at the gates until all have let that pass.
func (w *worker) lookAtFast(f *fastGroup) {
	if f.acks.counting || f.ring.State().Hi != f.reported {
		w.lookAtGroup(f)
	} else {
		f.lookedAt = w.now
	}
	idle := w.now - f.movedAt
	switch {
	case f.step != fastGranted:
		return
	case idle >= fastIdle:
		w.takeBack(f, whyIdle)
		return
	case f.ring.HasExcess():
		w.takeBack(f, whyShare)
		return
	}
	if w.now >= f.gatesAt && (!f.settled || f.gatesSeen != f.reported) {
		f.gatesAt, f.gatesSeen = w.now+fastLook, f.reported
		if f.settled = w.lookAtGates(f); f.step != fastGranted {
			return
		}
	}
	last := fastLastLook
	if !f.settled || f.gatesSeen != f.reported {
		last = fastLook
	}
	w.fast.on.move(f, w.now+min(max(idle, fastReport), last))
}

// touch has limit and ACK words of a group looked at when the batch has been sent.
func (w *worker) touch(f *fastGroup) {
	if !f.touched {
		f.touched = true
		w.fast.touched = append(w.fast.touched, f)
	}
}

// tendTouched passes on what has changed of the groups of which the core has heard in this batch.
func (w *worker) tendTouched() {
	for i := 0; i < len(w.fast.touched); i++ { // a report may touch others
		f := w.fast.touched[i]
		if f.touched = false; f.step != fastGranted {
			continue
		}
		w.moveLimit(f)
		w.judgeACKs(f)
	}
	w.fast.touched = w.fast.touched[:0]
}

// reportDue reports the groups that the core serves next, as their deadlines have come. A report takes time, in which
// those of others may come.
func (w *worker) reportDue() {
	if len(w.fast.on) == 0 {
		return
	}
	w.fast.passes++
	for reported := true; reported; {
		reported = false
		w.fast.due = w.core.Due(w.now, w.fast.due[:0])
		for _, id := range w.fast.due {
			if f := w.fast.granted(id); f != nil && f.reportedIn != w.fast.passes {
				f.reportedIn, reported = w.fast.passes, true
				w.reportGroup(f)
			}
		}
	}
}

// reportGranted reports all groups, for somebody who asks for counts.
func (w *worker) reportGranted() {
	for i := 0; i < len(w.fast.on); i++ {
		f := w.fast.on[i]
		if w.reportGroup(f); i < len(w.fast.on) && w.fast.on[i] != f {
			i-- // it was taken back
		}
	}
}
