// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/oob"
	"github.com/gleam-rdma/gleam/host/endpoint/verbs"
)

const (
	maxEntries = 4096    // the most entries that some replica has not applied
	postDepth  = 512     // WRITEs under way to a group
	maxWrite   = 1 << 20 // bytes of an entry; a longer write is several
	generation = 40      // bits of a sequence number below the gateway's generation
)

// GatewayConfig configures a gateway. The zero value of a field takes the default in brackets.
type GatewayConfig struct {
	Size     int64
	Replicas []string // host:port of each
	Create   bool     // the device is new: all replicas are empty
	Force    bool     // start with the replicas that answer, though others may be newer
	GroupIP  netip.Addr
	// Unicast sends every write to each replica by itself, for comparison. Group i has address GroupIP + i.
	Unicast   bool
	Quorum    int           // replicas that complete a write [all that live]
	PathMTU   int           // [endpoint.MasterConfig's]
	QPTimeout uint8         // [endpoint.QPConfig's]
	DeadAfter time.Duration // silence after which the switch removes a replica [endpoint.MasterConfig's]
	Device    endpoint.Device
	LocalIP   netip.Addr // the IP address of Device
	Host      endpoint.HostConfig
	Ring      int           // bytes for entries, the same at all replicas
	GiveUp    time.Duration // a request that waits for longer for a replica fails
	Log       func(string)
}

// entry is a write in the ring.
type entry struct {
	header
	at, size int64 // place in the ring, not taken modulo its length, and bytes
	done     chan struct{}
	finished bool
}

// Gateway is the device: what it writes goes to all replicas.
type Gateway struct {
	cfg  GatewayConfig
	id   *oob.Identity
	host *endpoint.Host
	ring endpoint.MR

	mu      sync.Mutex
	changed sync.Cond // a change of anything below
	ctx     context.Context
	device  string // its ID
	started bool   // the current replicas are known
	members []*member
	lanes   []*lane

	seq       uint64   // the number of the last entry
	completed uint64   // entries up to it are at all live replicas, or a quorum
	entries   []*entry // entries that are in the ring: those that some replica may not have applied
	waiting   []*entry // entries that are not finished
	head      int64    // the head of the ring
	copying   span     // the span that is being copied to a returning replica: no writes there
}

// Size returns the device's bytes.
func (g *Gateway) Size() int64 { return g.cfg.Size }

// Write returns when every live replica, or the quorum, has p in memory; with fua, on disk.
func (g *Gateway) Write(p []byte, off int64, fua bool) error {
	var es []*entry
	for first := true; first || len(p) > 0; first = false {
		n := min(len(p), maxWrite)
		e, err := g.submit(opWrite, off, int64(n), p[:n], fua && n == len(p))
		if err != nil {
			return err
		}
		es, p, off = append(es, e), p[n:], off+int64(n)
	}
	return g.await(es...)
}

// Trim makes the range a hole: it reads as zeroes, at all replicas.
func (g *Gateway) Trim(off, n int64, fua bool) error { return g.zero(opZero, off, n, fua) }

// WriteZeroes makes the range zero; with noHole it has storage.
func (g *Gateway) WriteZeroes(off, n int64, fua, noHole bool) error {
	if noHole {
		return g.zero(opAllocate, off, n, fua)
	}
	return g.zero(opZero, off, n, fua)
}

func (g *Gateway) zero(op byte, off, n int64, fua bool) error {
	e, err := g.submit(op, off, n, nil, fua)
	if err != nil {
		return err
	}
	return g.await(e)
}

// Flush returns when every current replica, or a quorum, has all completed writes on disk.
func (g *Gateway) Flush() error {
	e, err := g.submit(opFlush, 0, 0, nil, false)
	if err != nil {
		return err
	}
	return g.await(e)
}

var errGivenUp = errors.New("no current replica, or not enough of them, for too long")

// submit puts an entry into the ring, as soon as there is room, and has it sent.
func (g *Gateway) submit(op byte, off, n int64, data []byte, fua bool) (*entry, error) {
	deadline := time.Now().Add(g.cfg.GiveUp)
	e := &entry{header: header{off: off, n: n, op: op}, done: make(chan struct{})}
	if fua {
		e.flags = flagFUA
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		if op == opFlush {
			data, _ = json.Marshal(g.currentStores()) // strings
			e.n = int64(len(data))
		}
		e.size = (entryHead + int64(len(data)) + entryAlign - 1) / entryAlign * entryAlign
		if op == opFlush || !g.copying.overlaps(span{off, n}) {
			if at, ok := g.room(e.size); ok {
				e.at = at
				break
			}
		}
		if err := g.pause(deadline); err != nil {
			return nil, err
		}
	}
	g.seq++
	e.seq, g.head = g.seq, e.at+e.size
	b := g.ring.Bytes()[e.at%int64(g.cfg.Ring):][:e.size]
	e.put(b)
	copy(b[entryHead:], data)
	g.entries, g.waiting = append(g.entries, e), append(g.waiting, e)
	for _, m := range g.members {
		switch {
		case op != opFlush:
			m.dirty.mark(off, n)
		case m.flushing == nil && m.role == current:
			m.flushing, m.flushSeq, m.dirty = m.dirty, e.seq, newExtents(g.cfg.Size)
		}
	}
	for _, l := range g.lanes {
		l.pump()
	}
	return e, nil
}

// room returns where an entry of size bytes may be. The caller holds mu.
func (g *Gateway) room(size int64) (at int64, ok bool) {
	ring := int64(g.cfg.Ring)
	at, tail := g.head, g.head
	if at%ring+size > ring {
		at += ring - at%ring
	}
	if len(g.entries) > 0 {
		tail = g.entries[0].at
	}
	return at, g.started && at+size-tail <= ring && len(g.entries) < maxEntries
}

// pause waits for a change, or for the deadline. The caller holds mu.
func (g *Gateway) pause(deadline time.Time) error {
	switch {
	case g.ctx.Err() != nil:
		return context.Cause(g.ctx)
	case time.Now().After(deadline):
		return errGivenUp
	}
	g.changed.Wait() // the ticker wakes it too
	return nil
}

// await returns when the entries are complete as they promise.
func (g *Gateway) await(es ...*entry) error {
	giveUp := time.NewTimer(g.cfg.GiveUp)
	defer giveUp.Stop()
	for _, e := range es {
		select {
		case <-e.done:
		case <-giveUp.C:
			return errGivenUp
		case <-g.ctx.Done():
			return context.Cause(g.ctx)
		}
	}
	return nil
}

// settle finishes the entries that have become complete, and frees those of the ring that all receivers have
// applied. The caller holds mu.
func (g *Gateway) settle() {
	least, any := g.seq, false
	for _, l := range g.lanes {
		if l.session != nil && l.has(current) {
			least, any = min(least, l.completed), true
		}
	}
	if any {
		g.completed = max(g.completed, least)
	}
	rest := g.waiting[:0]
	for _, e := range g.waiting {
		if g.complete(e) {
			e.finished = true
			close(e.done)
		} else {
			rest = append(rest, e)
		}
	}
	clear(g.waiting[len(rest):])
	g.waiting = rest
	g.retire()
	g.changed.Broadcast()
}

// complete reports whether an entry has what it promises.
func (g *Gateway) complete(e *entry) bool {
	if e.seq > g.completed {
		return false
	}
	flush := e.op == opFlush || e.flags&flagFUA != 0
	live, have, syncing := 0, 0, false
	for _, m := range g.members {
		switch {
		case m.role == partial:
			syncing = true
		case m.role == current:
			live++
			if flush && m.flushed >= e.seq || !flush && m.applied >= e.seq {
				have++
			}
		}
	}
	switch {
	case g.cfg.Quorum > 0 && (flush || syncing): // the switch counts a replica that is not current, too
		return have >= g.cfg.Quorum
	case flush:
		return live > 0 && have == live
	}
	return live > 0
}

// retire frees the ring. The caller holds mu.
func (g *Gateway) retire() {
	least, any := g.completed, false
	for _, m := range g.members {
		if m.joined {
			least, any = min(least, m.applied), true
		}
	}
	for _, l := range g.lanes {
		if l.session != nil {
			least = min(least, l.completed)
		}
	}
	n := 0
	for any && n < len(g.entries) && g.entries[n].seq <= least {
		n++
	}
	clear(g.entries[:n])
	g.entries = g.entries[n:]
}

// retired reports whether an entry was in the ring, and is not any more. The caller holds mu.
func (g *Gateway) retired(seq uint64) bool {
	return seq <= g.seq && (len(g.entries) == 0 || g.entries[0].seq > seq)
}

// currentStores returns the stores of the current replicas. The caller holds mu.
func (g *Gateway) currentStores() []string {
	var s []string
	for _, m := range g.members {
		if m.role == current {
			s = append(s, m.store)
		}
	}
	return s
}

// commit has the current replicas note which they are.
func (g *Gateway) commit() {
	go func() {
		if err := g.Flush(); err != nil && g.ctx.Err() == nil {
			g.cfg.Log(fmt.Sprintf("the replicas could not note which are current: %v", err))
		}
	}()
}

// Read fills p from a current replica that has all completed writes.
func (g *Gateway) Read(p []byte, off int64) error {
	g.mu.Lock()
	seq := g.completed
	g.mu.Unlock()
	return g.read(p, off, seq)
}

// read fills p from a current replica that has applied the entries up to seq.
func (g *Gateway) read(p []byte, off int64, seq uint64) error {
	deadline := time.Now().Add(g.cfg.GiveUp)
	for {
		g.mu.Lock()
		var m *member
		for m = g.reader(); m == nil; m = g.reader() {
			if err := g.pause(deadline); err != nil {
				g.mu.Unlock()
				return err
			}
		}
		l := m.link
		l.calls++
		g.mu.Unlock()
		a, err := l.call(&frame{kind: frameRead, seq: seq, off: off, n: int64(len(p))})
		g.mu.Lock()
		l.calls--
		g.mu.Unlock()
		if err == nil && len(a.data) == len(p) {
			copy(p, a.data)
			return nil
		}
		if time.Now().After(deadline) {
			return errGivenUp
		}
	}
}

// reader returns the current replica with the fewest reads, or nil. The caller holds mu.
func (g *Gateway) reader() (best *member) {
	for _, m := range g.members {
		if m.role == current && m.link != nil && (best == nil || m.link.calls < best.link.calls) {
			best = m
		}
	}
	return best
}

// open makes the parts of a gateway that need the device.
func (g *Gateway) open() (closer func() error, err error) {
	if g.id, err = oob.NewIdentity(g.cfg.Host.Auth); err != nil {
		return nil, err
	}
	if g.host, err = endpoint.NewHost(g.cfg.LocalIP, g.cfg.Host); err != nil {
		return nil, err
	}
	buf, free, err := verbs.Alloc(g.cfg.Ring)
	if err != nil {
		return nil, errors.Join(err, g.host.Close())
	}
	if g.ring, err = g.cfg.Device.RegisterMemory(buf, 0, 0); err != nil {
		return nil, errors.Join(err, g.host.Close(), free())
	}
	return func() error { return errors.Join(g.host.Close(), g.cfg.Device.Close(), free()) }, nil
}
