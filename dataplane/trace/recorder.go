// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/spsc"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Recorder records the packets of one worker. Receive, Send, Served and what they return are the
// worker's; Read and Unrecorded belong to one other goroutine. Only NewRecorder allocates.
//
// A packet that comes is recorded if it fits the filter, or if one that it causes does: so a
// copy has the packet beside it that it was made of. What a packet that fits causes is recorded
// as well, if it has one of the groups and opcodes. Until it is served, a packet is in one of the
// Recorder's own buffers.
type Recorder struct {
	filter compiled
	ring   *spsc.Ring[Record]
	budget budget
	stack  [maxDepth]incoming // packets that are being served, the last one within the others
	depth  int
	epoch  uint64 // counts Publish
	missed uint64 // packets missed since the last record
	lost   atomic.Uint64
	over   atomic.Uint64
}

// maxDepth is how many packets can be served one within another: those that the XDP programs
// have forwarded are reported while another packet is served.
const maxDepth = 3

// incoming is a packet that is being served.
type incoming struct {
	Record
	unrelated bool    // true: the packet is of no group that is recorded, and causes nothing that is
	over      bool    // true: it found no room, or was beyond the rate: what it causes is not recorded either
	fits      bool    // the filter, by itself
	entry     *Record // its entry in the ring; nil: not yet
}

// Sizes of the ring.
const (
	maxRingBytes = 8 << 20
	maxEntries   = 1 << 14
	minEntries   = 1 << 10
)

// NewRecorder returns a recorder of what f lets pass.
func NewRecorder(f *Filter) *Recorder {
	snap := bufferOf(f)
	n := maxEntries
	for n > minEntries && n*snap > maxRingBytes {
		n /= 2
	}
	r := &Recorder{filter: compile(f), ring: spsc.New[Record](n), budget: budget{rate: f.Rate}}
	buffers := make([]byte, (n+maxDepth)*snap)
	take := func() (b []byte) { b, buffers = buffers[:0:snap], buffers[snap:]; return b }
	for range n {
		r.ring.Next().Data = take()
		r.ring.Commit()
	}
	r.ring.Publish()
	r.ring.Release(r.ring.Len(n))
	for i := range r.stack {
		r.stack[i].Data = take()
	}
	return r
}

// bufferOf returns the bytes of each entry's buffer.
func bufferOf(f *Filter) int {
	if f.Snap == 0 {
		return maxHeaders
	}
	return f.Snap
}

// maxHeaders is more than the headers of any packet: Ethernet, two VLAN tags, IPv6 or IPv4 with
// options, UDP, BTH and its extensions, or the header of an envelope.
const maxHeaders = 160

// Receive begins the record of a packet that came by a port, and returns it for the facts that
// become known while it is served, At among them; nil if it is of no group that is recorded. first
// is the beginning of the frame, rest are its other buffers. Served must follow in any case.
func (r *Recorder) Receive(port int, first []byte, rest [][]byte) *Record {
	p := &r.stack[min(r.depth, maxDepth-1)]
	r.depth++
	h := Peek(first, r.filter.EnvelopePort)
	// Feedback and data have different opcodes, so that these do not count; group addresses do.
	if p.unrelated = r.depth > maxDepth || !r.Concerns(h.Src) && !r.Concerns(h.Dst); p.unrelated {
		return nil
	}
	buf := p.Data
	*p = incoming{Record: Record{Port: port, Header: h}}
	p.Data = buf
	p.fill(first, rest, r.filter.Snap)
	p.fits = r.filter.ofGroup(&p.Header) && r.filter.itself(&p.Header, port, p.PSN)
	return &p.Record
}

// Concerns reports whether packets of the group with an address may be recorded, or cause some that
// are.
func (r *Recorder) Concerns(group netip.Addr) bool {
	return len(r.filter.Groups) == 0 || slices.Contains(r.filter.Groups, group)
}

// fill copies the beginning of a frame.
func (x *Record) fill(first []byte, rest [][]byte, snap int) {
	x.Length = len(first)
	for _, b := range rest {
		x.Length += len(b)
	}
	n := min(snap, cap(x.Data))
	if snap == 0 {
		n = min(x.Header.Len, cap(x.Data))
	}
	x.Data = append(x.Data[:0], first[:min(n, len(first))]...)
	for _, b := range rest {
		x.Data = append(x.Data, b[:min(n-len(x.Data), len(b))]...)
	}
}

// Served ends the record of the packet that was received last.
func (r *Recorder) Served() {
	r.depth--
	if r.depth >= maxDepth {
		return
	}
	p := &r.stack[r.depth]
	switch {
	case p.unrelated || p.over:
		return
	case p.fits && (!r.filter.Drops || p.Drop != "" || p.Reply != ""):
		r.enter(p)
	}
	if p.entry != nil { // what has become known since
		p.entry.copyFacts(&p.Record)
	}
	if r.depth == 0 && r.ring.Unpublished() > r.ring.Size()/2 {
		r.Publish()
	}
}

func (x *Record) copyFacts(of *Record) {
	x.Place, x.Flags, x.Copies, x.Resent, x.Feedback, x.Drop, x.Reply = of.Place, of.Flags, of.Copies, of.Resent, of.Feedback, of.Drop, of.Reply
}

// enter gives p an entry in the ring, if it has none.
func (r *Recorder) enter(p *incoming) {
	if p.entry != nil || p.over {
		return
	}
	if p.entry = r.entry(p.At, true); p.entry == nil {
		p.over = true
		return
	}
	buf, missed := p.entry.Data, p.entry.LostBefore
	*p.entry = p.Record
	p.entry.Data, p.entry.LostBefore = append(buf[:0], p.Data...), missed
}

// entry takes the next entry of the ring; nil if there is none, or begins says that the packet
// begins something, and that would be beyond the rate.
func (r *Recorder) entry(at time.Duration, begins bool) *Record {
	if begins && !r.budget.take(at) {
		r.missed++
		r.over.Add(1)
		return nil
	}
	x := r.ring.Next()
	if x == nil {
		r.missed++
		r.lost.Add(1)
		return nil
	}
	buf := x.Data
	*x = Record{LostBefore: r.missed}
	x.Data, r.missed = buf, 0
	r.ring.Commit()
	return x
}

// Current returns the packet that is being served, or nil if there is none, or none that is
// recorded.
func (r *Recorder) Current() *Record {
	if r.depth == 0 || r.depth > maxDepth || r.stack[r.depth-1].unrelated {
		return nil
	}
	return &r.stack[r.depth-1].Record
}

// Send records a packet that leaves by a port, or would have. x has what is known of it: Kind,
// Flags, At and the fields of copies; Drop if it was not sent. Send returns its entry, which may
// be changed until the next Publish, or nil if it is not recorded.
func (r *Recorder) Send(x *Record, port int, first []byte, rest [][]byte) *Record {
	x.Header, x.Port = Peek(first, r.filter.EnvelopePort), port
	var cause *incoming
	if r.depth > 0 && r.depth <= maxDepth && !r.stack[r.depth-1].unrelated {
		cause = &r.stack[r.depth-1]
		cause.count(x.Kind)
	}
	f := &r.filter
	was := x.PSNOf()
	switch {
	case cause != nil && cause.over, f.Drops && x.Drop == "", !f.ofGroup(&x.Header):
		return nil
	case !f.itself(&x.Header, port, was) && !(cause != nil && cause.fits && x.Kind != Resent):
		return nil
	}
	if cause != nil {
		if r.enter(cause); cause.over {
			return nil
		}
	}
	e := r.entry(x.At, cause == nil)
	if e == nil {
		return nil
	}
	buf, missed := e.Data, e.LostBefore
	*e = *x
	e.Data, e.LostBefore = buf, missed
	e.fill(first, rest, f.Snap)
	return e
}

// count counts what x has caused.
func (x *Record) count(k Kind) {
	switch k {
	case Copied:
		x.Copies++
	case Resent:
		x.Resent++
	case Built:
		x.Feedback++
	}
}

// Translate sets the PSN that the packet which is being served has in the source's numbering.
func (r *Recorder) Translate(psn rocev2.PSN) {
	p := &r.stack[r.depth-1]
	p.WasPSN = psn
	p.fits = r.filter.ofGroup(&p.Header) && r.filter.itself(&p.Header, p.Port, psn)
}

// Publish lets the reader see what was recorded.
func (r *Recorder) Publish() {
	r.epoch++
	r.ring.Publish()
}

// Epoch counts the calls of Publish: an entry may be changed while it is the same.
func (r *Recorder) Epoch() uint64 { return r.epoch }

// Read passes up to n records to do, which must not keep them, and returns how many there were.
func (r *Recorder) Read(n int, do func(*Record)) int {
	n = min(n, r.ring.Len(n))
	for i := range n {
		do(r.ring.Ref(i))
	}
	r.ring.Release(n)
	return n
}

// Unrecorded returns how many packets would have been recorded, and were not: for lack of room
// in the ring, and beyond the rate.
func (r *Recorder) Unrecorded() (lost, over uint64) { return r.lost.Load(), r.over.Load() }

// budget is a token bucket of a tenth of a second.
type budget struct {
	rate   int // per second; 0: no bound
	tokens float64
	at     time.Duration
	began  bool
}

func (b *budget) take(now time.Duration) bool {
	if b.rate == 0 {
		return true
	}
	burst := max(1, float64(b.rate)/10)
	if !b.began {
		b.began, b.tokens, b.at = true, burst, now
	}
	b.tokens = min(burst, b.tokens+float64(b.rate)*(now-b.at).Seconds())
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// PSNOf returns the PSN of a packet in the numbering of the source, as far as it is known.
func (x *Record) PSNOf() rocev2.PSN {
	if x.Kind == Received || x.Kind == Built {
		return x.PSN
	}
	return x.WasPSN
}
