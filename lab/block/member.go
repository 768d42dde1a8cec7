// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// role is what a replica's bytes are worth.
type role uint8

const (
	absent  role = iota // the replica lacks writes
	partial             // the replica gets all new writes, and is being given those that it lacks
	current             // the replica has all
)

const (
	pingEvery  = 500 * time.Millisecond
	stallAfter = 2 * time.Second // the time without an answer, or with entries not applied, after which a replica is dropped
)

// member is a replica as the gateway sees it. The gateway's mu guards it.
type member struct {
	g    *Gateway
	addr string
	ip   netip.Addr // the IP address of its queue pair: that of addr
	lane *lane

	link      *link // nil while there is no connection
	hello     *hello
	store     string // the ID of its store
	boot      string // the boot ID of its host
	confirmed uint64 // its disk has all up to it
	role      role
	// survivor is the last of the replicas that were current: when it returns with all it had, it is current.
	survivor bool

	joinID   uint64 // the ID of the request to join
	joined   bool   // true: it is in the lane's group, or about to be
	heard    bool   // true: it gets the group's messages; known under a quorum
	reported bool   // the first of its entries is known
	applied  uint64 // up to it; while joined
	flushed  uint64
	behind   time.Time // the time since which it has not applied an entry that it has; zero: it has none
	behindAt uint64    // what it had applied then

	dirty    extents // written since it last flushed, or while it was away
	flushing extents // written before flushSeq, and not known to be flushed; may be nil
	flushSeq uint64
	todo     extents       // partial: to be copied
	removing chan struct{} // closed when the switch has removed it; may be nil
}

// link is a connection to a replica.
type link struct {
	*wire
	calls int // reads under way; the gateway's mu guards it

	mu      sync.Mutex
	next    uint64
	pending map[uint64]chan *frame
	pong    time.Time
	gone    chan struct{}
}

var errGone = errors.New("the connection to the replica is gone")

// call sends a frame and waits for its answer.
func (l *link) call(f *frame) (*frame, error) {
	answer := make(chan *frame, 1)
	l.mu.Lock()
	l.next++
	f.id = l.next
	l.pending[f.id] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.pending, f.id)
		l.mu.Unlock()
	}()
	if err := l.send(f); err != nil {
		return nil, err
	}
	select {
	case a := <-answer:
		return a, nil
	case <-l.gone:
		return nil, errGone
	}
}

func (l *link) answered(f *frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.pending[f.id]; c != nil {
		c <- f
		delete(l.pending, f.id)
	}
}

func (l *link) ponged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pong = time.Now()
}

func (l *link) silentFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.pong)
}

// run keeps a connection to the replica.
func (m *member) run(ctx context.Context) {
	var said string
	for ctx.Err() == nil {
		err := m.serve(ctx)
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			m.g.cfg.Log(fmt.Sprintf("replica %s: %v", m.addr, err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// serve connects to the replica and follows its reports until the connection ends.
func (m *member) serve(ctx context.Context) error {
	g := m.g
	dialing, cancel := context.WithTimeout(ctx, time.Second)
	c, err := g.id.Dial(dialing, m.addr, controlUse)
	cancel()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	defer c.Close()
	l := &link{wire: newWire(c), pending: make(map[uint64]chan *frame), pong: time.Now(), gone: make(chan struct{})}
	_ = c.SetReadDeadline(time.Now().Add(silence))
	g.mu.Lock()
	h := hello{Size: g.cfg.Size, Ring: g.cfg.Ring, Label: Label{Device: g.device}}
	g.mu.Unlock()
	if err := l.sendHello(&h); err != nil {
		return err
	}
	theirs, err := l.receiveHello()
	if err != nil {
		return err
	}
	if theirs.Size != g.cfg.Size || theirs.Ring != g.cfg.Ring {
		return fmt.Errorf("it has a device of %d bytes and a ring of %d, the gateway %d and %d", theirs.Size, theirs.Ring, g.cfg.Size, g.cfg.Ring)
	}
	g.mu.Lock()
	m.link, m.hello = l, theirs
	err = g.admit(m)
	if err == nil {
		g.changed.Broadcast()
	} else {
		m.link, m.hello = nil, nil
	}
	g.mu.Unlock()
	if err != nil {
		l.refuse(err)
		return err
	}
	err = m.follow(l)
	close(l.gone)
	g.mu.Lock()
	g.drop(m, l, err)
	g.mu.Unlock()
	return err
}

// follow takes the replica's frames.
func (m *member) follow(l *link) error {
	for {
		_ = l.c.SetReadDeadline(time.Now().Add(silence))
		f, err := l.receive()
		if err != nil {
			return err
		}
		l.ponged()
		switch f.kind {
		case framePing:
		case frameAnswer:
			l.answered(f)
		case frameHeard:
			m.g.mu.Lock()
			m.heard = m.heard || f.id == m.joinID
			m.g.changed.Broadcast()
			m.g.mu.Unlock()
		case frameReport:
			m.g.mu.Lock()
			m.report(f.id, f.seq, uint64(f.off))
			m.g.mu.Unlock()
		default:
			return fmt.Errorf("frame of kind %d", f.kind)
		}
	}
}

// report notes what the replica has applied and flushed. The caller holds mu.
func (m *member) report(join, applied, flushed uint64) {
	if !m.joined || join != m.joinID || applied > m.g.seq || m.reported && applied < m.applied {
		return // of an earlier group
	}
	m.flushed = max(m.flushed, flushed)
	m.confirmed = max(m.confirmed, m.flushed)
	if m.flushing != nil && m.flushed >= m.flushSeq {
		m.flushing = nil
	}
	if applied > m.applied || !m.reported {
		m.applied = applied
	}
	if !m.reported {
		m.reported = true
		if m.role == partial {
			// It has all from here on. What was posted before, and some more, is copied.
			m.todo, m.dirty = m.dirty, newExtents(m.g.cfg.Size)
			go m.g.resync(m, m.link)
		}
	}
	m.g.settle()
}

// drop ends what the gateway has of a replica whose connection l is gone. The caller holds mu.
func (g *Gateway) drop(m *member, l *link, why error) {
	if m.link != l || l == nil {
		return
	}
	_ = l.c.Close()
	m.link, m.hello = nil, nil
	was := m.role
	m.role, m.reported = absent, false
	m.dirty.add(m.todo)
	m.dirty.add(m.flushing)
	m.todo, m.flushing = nil, nil
	if was == current {
		others := len(g.currentStores())
		m.survivor = others == 0
		g.cfg.Log(fmt.Sprintf("replica %s is gone (%v); %d current replicas go on", m.addr, why, others))
		if others > 0 {
			g.commit()
		}
	}
	m.lane.leave(m)
	g.settle()
}

// stuck reports whether the replica has had entries for too long without applying one. The caller holds mu.
func (m *member) stuck(now time.Time) bool {
	if !m.joined || !m.reported || m.applied >= m.lane.completed {
		m.behind = time.Time{}
		return false
	}
	if m.behind.IsZero() || m.behindAt != m.applied {
		m.behind, m.behindAt = now, m.applied
	}
	return now.Sub(m.behind) > stallAfter
}

// watch drops replicas that are silent, and wakes whoever waits for a deadline.
func (g *Gateway) watch(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for pinged := time.Now(); ; {
		select {
		case <-ctx.Done():
			g.mu.Lock()
			g.changed.Broadcast()
			g.mu.Unlock()
			return
		case now := <-tick.C:
			ping := now.Sub(pinged) >= pingEvery
			if ping {
				pinged = now
			}
			g.mu.Lock()
			for _, m := range g.members {
				l := m.link
				if l == nil {
					continue
				}
				if l.silentFor() > stallAfter {
					g.drop(m, l, fmt.Errorf("no answer for %v", stallAfter))
				} else if m.stuck(now) {
					g.drop(m, l, fmt.Errorf("entries are not applied for %v", stallAfter))
				} else if ping {
					go func() { _ = l.send(&frame{kind: framePing}) }()
				}
				if m.joined && !m.reported && m.lane.session != nil && m.lane.completed >= g.seq {
					g.commit() // the first entry that it gets: none is under way
				}
			}
			g.changed.Broadcast()
			g.mu.Unlock()
		}
	}
}

// resync copies to m what it lacks, until it is current or l is gone. No write to a range begins while the range
// is copied, and both m and the replica that it is copied from have applied all earlier ones: so a copy never
// replaces a newer write. It does not wait until those are complete, which may need m to be current.
func (g *Gateway) resync(m *member, l *link) {
	g.mu.Lock()
	defer g.mu.Unlock()
	start, copied := time.Now(), int64(0)
	for m.link == l && m.role == partial {
		if g.copying.n > 0 {
			g.changed.Wait()
			continue
		}
		off, n := m.todo.take(4, g.cfg.Size)
		if n == 0 {
			m.role = current
			g.cfg.Log(fmt.Sprintf("replica %s is current again: %d bytes copied in %v", m.addr, copied, time.Since(start).Round(time.Millisecond)))
			g.commit()
			break
		}
		m.dirty.mark(off, n) // until it has flushed them
		g.copying = span{off, n}
		seq := g.seq
		g.mu.Unlock()
		err := g.copy(l, off, n, seq)
		g.mu.Lock()
		g.copying = span{}
		g.changed.Broadcast()
		if err != nil {
			m.dirty.mark(off, n)
			g.drop(m, l, fmt.Errorf("copy of %d bytes at %d: %w", n, off, err))
		}
		copied += n
	}
}

// copy copies a range, with the entries up to seq, to the replica of l.
func (g *Gateway) copy(l *link, off, n int64, seq uint64) error {
	b := make([]byte, n)
	if err := g.read(b, off, seq); err != nil {
		return err
	}
	f := &frame{kind: frameCopy, off: off, n: n, seq: seq, data: b}
	if allZero(b) {
		f.kind, f.data = frameZero, nil
	}
	_, err := l.call(f)
	return err
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// hostOf is the address in a host:port.
func hostOf(addr string) (netip.Addr, error) {
	h, _, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.Addr{}, err
	}
	ip, err := netip.ParseAddr(h)
	if err != nil {
		return ip, fmt.Errorf("replica %s: name it by its address: %w", addr, err)
	}
	return ip, nil
}
