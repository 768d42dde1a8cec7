// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"math/bits"
)

// queue holds the events of a partition and returns them in order: a calendar queue. Events
// of the near future are in buckets, each for a span of time; the events of one bucket are
// sorted when its time comes. Those beyond the buckets wait in a heap.
type queue struct {
	n     int   // events
	shift uint  // a bucket is 2^shift ps wide
	day   int64 // number of the bucket that is served: its events are in today
	today []event
	order []place // the events of today that are still to come, from next on
	next  int
	spare []place // the memory of the other half of a sort

	buckets [numBuckets]int32 // the newest chunk of each; -1: none
	full    [numBuckets / 64]uint64
	chunks  []chunk
	free    int32   // first of the unused chunks; -1: none
	later   []event // a heap of the events beyond the buckets

	pushes, late int // counts since the width was chosen: events, and those that went into the heap
	served, days int // counts since then: events, and buckets that were not empty
}

// place is where an event of today is.
type place struct {
	at Time
	in uint32
	i  uint32 // the index in today
}

// chunk is a part of a bucket.
type chunk struct {
	events [chunkEvents]event
	n      int32
	next   int32 // the older chunk
}

const (
	numBuckets  = 1 << 13
	chunkEvents = 6
	firstShift  = 15 // 33 ns: the buckets span 268 us
	minShift    = 8
	maxShift    = 30
	reviewEvery = 1 << 15 // events between two choices of the width
	fewPlaces   = 32      // events that are sorted by insertion alone
	crowded     = 48      // events of a bucket that make a smaller width worth while
)

// newQueue returns a queue for events from a time on.
func newQueue(from Time) *queue {
	q := &queue{shift: firstShift, day: int64(from)>>firstShift - 1, free: -1}
	for i := range q.buckets {
		q.buckets[i] = -1
	}
	return q
}

// push adds an event, which is not earlier than the last one that pop has returned.
func (q *queue) push(e *event) {
	q.n++
	q.pushes++
	q.put(e)
}

func (q *queue) put(e *event) {
	day := int64(e.at) >> q.shift
	switch ahead := day - q.day; {
	case ahead <= 0:
		q.insertToday(e)
	case ahead < numBuckets:
		q.insert(int(day&(numBuckets-1)), e)
	default:
		q.late++
		q.pushLater(e)
	}
}

// insert adds an event to a bucket.
func (q *queue) insert(b int, e *event) {
	c := q.buckets[b]
	if c < 0 || q.chunks[c].n == chunkEvents {
		fresh := q.free
		if fresh < 0 {
			fresh = int32(len(q.chunks))
			q.chunks = append(q.chunks, chunk{})
		} else {
			q.free = q.chunks[fresh].next
		}
		if c < 0 {
			q.full[b/64] |= 1 << (b % 64)
		}
		q.chunks[fresh].n, q.chunks[fresh].next = 0, c
		q.buckets[b] = fresh
		c = fresh
	}
	k := &q.chunks[c]
	k.events[k.n] = *e
	k.n++
}

// insertToday adds an event to those that are being served.
func (q *queue) insertToday(e *event) {
	p := place{e.at, e.in, uint32(len(q.today))}
	q.today = append(q.today, *e)
	q.order = append(q.order, p)
	i := len(q.order) - 1
	for i > q.next && q.before(&p, &q.order[i-1]) {
		q.order[i] = q.order[i-1]
		i--
	}
	q.order[i] = p
}

func (q *queue) before(a, b *place) bool { return q.compare(*a, *b) < 0 }

func (q *queue) compare(a, b place) int {
	switch {
	case a.at != b.at:
		return cmp.Compare(a.at, b.at)
	case a.in != b.in:
		return cmp.Compare(a.in, b.in)
	}
	return cmp.Compare(q.today[a.i].key, q.today[b.i].key)
}

// peek returns the time of the first event; false if there is none.
func (q *queue) peek() (at Time, ok bool) {
	if q.next < len(q.order) {
		return q.order[q.next].at, true
	}
	day, ok := q.nextFull()
	if !ok {
		return 0, false
	}
	if len(q.later) > 0 && int64(q.later[0].at)>>q.shift == day {
		at, ok = q.later[0].at, false
	}
	for c := q.buckets[day&(numBuckets-1)]; c >= 0; c = q.chunks[c].next {
		k := &q.chunks[c]
		for i := range k.n {
			if t := k.events[i].at; ok || t < at {
				at, ok = t, false
			}
		}
	}
	return at, true
}

// pop removes the first event, if it is before until.
func (q *queue) pop(until Time, e *event) bool {
	if q.next == len(q.order) && !q.nextDay(until) {
		return false
	}
	p := &q.order[q.next]
	if p.at >= until {
		return false
	}
	*e = q.today[p.i]
	q.next++
	q.n--
	q.served++
	return true
}

// nextFull returns the number of the first bucket that is not empty, or would not be if the
// heap's events were in buckets. Nothing is left of today.
func (q *queue) nextFull() (day int64, ok bool) {
	day, ok = q.firstFull()
	if len(q.later) > 0 {
		if d := int64(q.later[0].at) >> q.shift; !ok || d < day {
			day, ok = d, true
		}
	}
	return day, ok
}

// nextDay goes on to the next bucket that is not empty, if it begins before until. What is
// pushed before the bucket that is served has to be sorted in one by one.
func (q *queue) nextDay(until Time) bool {
	q.today, q.order, q.next = q.today[:0], q.order[:0], 0
	if q.n == 0 {
		return false
	}
	if q.pushes >= max(reviewEvery, q.n/4) {
		q.review()
	}
	day, ok := q.nextFull()
	if !ok || Time(day<<q.shift) >= until {
		return false
	}
	q.day = day
	q.days++
	for len(q.later) > 0 && int64(q.later[0].at)>>q.shift-day < numBuckets {
		e := q.popLater()
		q.insert(int(int64(e.at)>>q.shift&(numBuckets-1)), &e)
	}
	b := int(day & (numBuckets - 1))
	for c := q.buckets[b]; c >= 0; {
		k := &q.chunks[c]
		for i := range k.n {
			q.order = append(q.order, place{k.events[i].at, k.events[i].in, uint32(len(q.today))})
			q.today = append(q.today, k.events[i])
		}
		next := k.next
		k.next = q.free
		q.free, c = c, next
	}
	q.buckets[b] = -1
	q.full[b/64] &^= 1 << (b % 64)
	q.sort()
	return true
}

// sort puts the events of today in order.
func (q *queue) sort() {
	if len(q.order) > fewPlaces {
		q.radixSort()
	}
	for i := 1; i < len(q.order); i++ {
		p, k := q.order[i], i
		for k > 0 && q.before(&p, &q.order[k-1]) {
			q.order[k] = q.order[k-1]
			k--
		}
		q.order[k] = p
	}
}

// radixSort puts the events of today in the order of time and port, byte by byte of those that differ.
func (q *queue) radixSort() {
	if cap(q.spare) < len(q.order) {
		q.spare = make([]place, cap(q.order))
	}
	from, to := q.order, q.spare[:len(q.order)]
	var ats Time
	var ins uint32
	for i := range from {
		ats |= from[i].at ^ from[0].at
		ins |= from[i].in ^ from[0].in
	}
	for shift := uint(0); ins>>shift != 0; shift += 8 {
		if uint8(ins>>shift) != 0 {
			radixPass(from, to, shift, false)
			from, to = to, from
		}
	}
	for shift := uint(0); ats>>shift != 0; shift += 8 {
		if uint8(ats>>shift) != 0 {
			radixPass(from, to, shift, true)
			from, to = to, from
		}
	}
	q.order, q.spare = from, to
}

// radixPass puts places in the order of one byte of their times or ports, and leaves those with the same
// one in their order.
func radixPass(from, to []place, shift uint, times bool) {
	var next [256]uint32
	for i := range from {
		next[from[i].digit(shift, times)]++
	}
	sum := uint32(0)
	for d, n := range next {
		next[d] = sum
		sum += n
	}
	for i := range from {
		d := from[i].digit(shift, times)
		to[next[d]] = from[i]
		next[d]++
	}
}

// digit returns a byte of the time or of the port.
func (p *place) digit(shift uint, time bool) uint8 {
	if time {
		return uint8(p.at >> shift)
	}
	return uint8(p.in >> shift)
}

// firstFull returns the number of the first bucket after day that is not empty.
func (q *queue) firstFull() (int64, bool) {
	first := int((q.day + 1) & (numBuckets - 1))
	for i := range len(q.full) + 1 {
		w := (first/64 + i) % len(q.full)
		word := q.full[w]
		switch i {
		case 0:
			word &= ^uint64(0) << (first % 64)
		case len(q.full):
			word &= 1<<(first%64) - 1
		}
		if word != 0 {
			b := w*64 + bits.TrailingZeros64(word)
			return q.day + 1 + int64((b-first)&(numBuckets-1)), true
		}
	}
	return 0, false
}

// review chooses another width if many events share a bucket, or many are beyond the buckets.
// Nothing is left of today.
func (q *queue) review() {
	shift := q.shift
	switch {
	case q.late > q.pushes/16 && shift < maxShift:
		shift++
	case q.late < q.pushes/64:
		for n := q.served; n > crowded*q.days && shift > minShift; n /= 2 {
			shift--
		}
	}
	q.pushes, q.late, q.served, q.days = 0, 0, 0, 0
	if shift == q.shift {
		return
	}
	all := make([]event, 0, q.n)
	for b := range q.buckets {
		for c := q.buckets[b]; c >= 0; {
			k := &q.chunks[c]
			all = append(all, k.events[:k.n]...)
			next := k.next
			k.next = q.free
			q.free, c = c, next
		}
		q.buckets[b] = -1
	}
	clear(q.full[:])
	all = append(all, q.later...)
	q.later = q.later[:0]
	first := all[0].at
	for i := range all {
		first = min(first, all[i].at)
	}
	q.shift, q.day = shift, int64(first)>>shift-1
	for i := range all {
		q.put(&all[i])
	}
	q.late = 0
}

// pushLater adds an event to the heap of those beyond the buckets, which is ordered by time
// alone.
func (q *queue) pushLater(e *event) {
	q.later = append(q.later, *e)
	h, i := q.later, len(q.later)-1
	for i > 0 {
		up := (i - 1) / 4
		if h[up].at <= e.at {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = *e
}

// popLater removes the first event of the heap.
func (q *queue) popLater() event {
	h := q.later
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	q.later = h
	if len(h) == 0 {
		return first
	}
	i := 0
	for {
		least := 4*i + 1
		if least >= len(h) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(h)); c++ {
			if h[c].at < h[least].at {
				least = c
			}
		}
		if h[least].at >= last.at {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = last
	return first
}
