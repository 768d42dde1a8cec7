// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/oob"
	"github.com/gleam-rdma/gleam/host/endpoint/verbs"
)

const (
	controlUse  = "gleam-block/1" // the use of connections between gateway and replica
	joinTimeout = 15 * time.Second
	reportEvery = 10 * time.Millisecond
	recvDepth   = maxEntries + 64 // more than entries are under way: a WRITE with immediate finds a receive
)

// ReplicaConfig configures a replica.
type ReplicaConfig struct {
	Listen    netip.AddrPort  // the address for the gateway
	Device    endpoint.Device // the device with the address of Listen, unless it is any address
	LocalIP   netip.Addr      // the IP address of Device [its first]
	QPTimeout uint8           // [endpoint.QPConfig's]
	Host      endpoint.HostConfig
	Store     *Store
	Ring      int           // bytes for entries, the same at the gateway
	Slow      time.Duration // the wait before each entry is applied, to try a slow disk
	Log       func(string)
}

// Replica applies the entries that a gateway WRITEs to the group, in order, and serves reads.
type Replica struct {
	cfg   ReplicaConfig
	id    *oob.Identity
	host  *endpoint.Host
	ring  endpoint.MR
	boot  string
	ln    net.Listener
	store *Store

	mu      sync.Mutex
	changed sync.Cond // a change of anything below
	applied uint64    // the last entry
	live    bool      // the store is the result of the entries up to applied, and of nothing else
	fresh   bool      // the next entry is the first, whatever its number
	serving bool      // the gateway's connection is there
	flushTo uint64    // entries up to it are to be flushed
	joinID  uint64    // the ID of the gateway's last request to join
	flushed uint64
	members []string // the members of the last flush entry
}

// Serve serves one gateway after the other until ctx ends. Sockets are opened in the network namespace of the
// calling thread.
func Serve(ctx context.Context, cfg ReplicaConfig) (err error) {
	r := &Replica{cfg: cfg, store: cfg.Store}
	r.changed.L = &r.mu
	l := r.store.Label()
	r.applied, r.flushed, r.live = l.Seq, l.Seq, l.Clean
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	r.boot = strings.TrimSpace(string(boot))
	if r.id, err = oob.NewIdentity(cfg.Host.Auth); err != nil {
		return err
	}
	r.id.Log = cfg.Log
	if r.ln, err = net.Listen("tcp", cfg.Listen.String()); err != nil {
		return fmt.Errorf("%w: is this replica running already?", err)
	}
	defer r.ln.Close()
	if r.host, err = endpoint.NewHost(cfg.LocalIP, cfg.Host); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.host.Close()) }()
	buf, free, err := verbs.Alloc(cfg.Ring)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cfg.Device.Close(), free()) }()
	if r.ring, err = cfg.Device.RegisterMemory(buf, 0, endpoint.LocalWrite|endpoint.RemoteWrite); err != nil {
		return err
	}
	cfg.Log(fmt.Sprintf("waiting for the gateway at %s, store %s", r.ln.Addr(), l.Store))
	for ctx.Err() == nil {
		c, err := r.id.Accept(ctx, r.ln, controlUse)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			cfg.Log(fmt.Sprintf("connection refused: %v", err))
			continue
		}
		if err := r.serve(ctx, newWire(c)); err != nil && ctx.Err() == nil {
			cfg.Log(fmt.Sprintf("gateway %s: %v", c.RemoteAddr(), err))
		}
	}
	if l := r.store.Label(); !l.Consistent || !r.live {
		return nil
	}
	return r.store.Relabel(func(l *Label) { l.Seq, l.Clean = r.applied, true })
}

// serve serves one gateway until its connection ends.
func (r *Replica) serve(ctx context.Context, w *wire) error {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	m := &membership{Replica: r, w: w, ctx: ctx}
	defer func() {
		cancel()
		_ = w.c.Close()
		r.mu.Lock()
		r.serving = false
		r.changed.Broadcast()
		r.mu.Unlock()
		work.Wait()
		m.leave()
	}()
	context.AfterFunc(ctx, func() { _ = w.c.Close() })
	if err := r.greet(w); err != nil {
		w.refuse(err)
		return err
	}
	r.mu.Lock()
	r.serving = true
	r.mu.Unlock()
	work.Go(func() { r.report(ctx, w) })
	work.Go(func() { r.flusher(ctx, w) })
	for {
		_ = w.c.SetReadDeadline(time.Now().Add(silence))
		f, err := w.receive()
		if err != nil {
			return err
		}
		switch f.kind {
		case framePing:
			err = w.send(f)
		case frameJoin:
			err = m.join(f)
		case frameRead, frameCopy, frameZero:
			work.Go(func() {
				if err := r.access(ctx, w, f); err != nil {
					r.cfg.Log(fmt.Sprintf("%d bytes at %d: %v", f.n, f.off, err))
					cancel()
				}
			})
		default:
			err = fmt.Errorf("frame of kind %d", f.kind)
		}
		if err != nil {
			return err
		}
	}
}

// greet checks that the gateway has this replica's device.
func (r *Replica) greet(w *wire) error {
	_ = w.c.SetDeadline(time.Now().Add(silence))
	defer w.c.SetDeadline(time.Time{})
	g, err := w.receiveHello()
	if err != nil {
		return err
	}
	r.mu.Lock()
	h := hello{Size: r.store.size, Ring: r.cfg.Ring, Boot: r.boot, File: r.store.file, Live: r.live, Applied: r.applied, Label: r.store.Label()}
	r.mu.Unlock()
	if err := w.sendHello(&h); err != nil {
		return err
	}
	switch {
	case g.Size != h.Size:
		return fmt.Errorf("the gateway's device has %d bytes, this replica %d", g.Size, h.Size)
	case g.Ring != h.Ring:
		return fmt.Errorf("the gateway's ring has %d bytes, this replica's %d", g.Ring, h.Ring)
	case g.Device != "" && h.Device != "" && g.Device != h.Device:
		return fmt.Errorf("the gateway has device %s, this replica holds %s", g.Device, h.Device)
	}
	return nil
}

// access answers a read, or puts a copy of older bytes where the replica was absent.
func (r *Replica) access(ctx context.Context, w *wire, f *frame) error {
	if !r.store.Inside(f.off, f.n) || f.n > maxFrame && f.kind != frameZero || f.kind == frameCopy && int64(len(f.data)) != f.n {
		return errors.New("no range of the device")
	}
	r.mu.Lock()
	for r.applied < f.seq && ctx.Err() == nil && r.serving {
		r.changed.Wait()
	}
	r.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	a := &frame{kind: frameAnswer, id: f.id}
	if f.kind != frameRead && r.store.Label().Consistent {
		return errors.New("a copy of older bytes for a replica that is current")
	}
	var err error
	switch f.kind {
	case frameRead:
		a.data = make([]byte, f.n)
		err = r.store.Read(a.data, f.off)
	case frameCopy:
		err = r.store.Write(f.data, f.off)
	case frameZero:
		err = r.store.Zero(f.off, f.n, false)
	}
	if err != nil {
		return err
	}
	_ = w.send(a) // the end of the connection is noticed by its reader
	return nil
}

// report tells the gateway how far the replica is.
func (r *Replica) report(ctx context.Context, w *wire) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	var applied, flushed uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		f := &frame{kind: frameReport, id: r.joinID, seq: r.applied, off: int64(r.flushed)}
		ready := !r.fresh && r.serving
		r.mu.Unlock()
		if ready && (f.seq != applied || r.flushed != flushed) {
			applied, flushed = f.seq, uint64(f.off)
			if w.send(f) != nil {
				return
			}
		}
	}
}

// flusher flushes the store when an entry asks for it; entries go on being applied meanwhile.
func (r *Replica) flusher(ctx context.Context, w *wire) {
	for {
		r.mu.Lock()
		for r.flushTo <= r.flushed && r.serving && ctx.Err() == nil {
			r.changed.Wait()
		}
		seq, members, live := r.applied, r.members, r.live
		r.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		err := r.store.Relabel(func(l *Label) {
			l.Seq = seq
			if members != nil {
				l.Members = members
				l.Consistent = slices.Contains(members, l.Store)
			}
			live = l.Consistent
		})
		if err != nil {
			r.cfg.Log(err.Error())
			_ = w.c.Close()
			return
		}
		r.mu.Lock()
		r.flushed, r.live = seq, live
		f := &frame{kind: frameReport, id: r.joinID, seq: r.applied, off: int64(seq)}
		r.mu.Unlock()
		_ = w.send(f)
	}
}

// apply applies the entry at a place of the ring. The caller holds no lock; there is one caller.
func (r *Replica) apply(at int64) error {
	ring := r.ring.Bytes()
	if at < 0 || at+entryHead > int64(len(ring)) {
		return fmt.Errorf("an entry at %d of a ring of %d bytes", at, len(ring))
	}
	var h, again header
	h.get(ring[at:])
	n := h.payload()
	if n < 0 || n > int64(len(ring)) || at+entryHead+n > int64(len(ring)) || h.op != opFlush && !r.store.Inside(h.off, h.n) {
		return fmt.Errorf("entry %d: %d bytes for %d do not fit", h.seq, h.n, h.off)
	}
	r.mu.Lock()
	last, fresh := r.applied, r.fresh
	r.mu.Unlock()
	switch {
	case !fresh && h.seq <= last:
		return nil // sent again to a new group
	case !fresh && h.seq != last+1:
		return fmt.Errorf("entry %d came behind %d", h.seq, last)
	}
	if r.cfg.Slow > 0 {
		time.Sleep(r.cfg.Slow)
	}
	b := ring[at+entryHead:][:n]
	var members []string
	var err error
	switch h.op {
	case opWrite:
		err = r.store.Write(b, h.off)
	case opZero, opAllocate:
		err = r.store.Zero(h.off, h.n, h.op == opAllocate)
	case opFlush:
		err = json.Unmarshal(b, &members)
	default:
		err = fmt.Errorf("operation %d", h.op)
	}
	if err != nil {
		return fmt.Errorf("entry %d: %w", h.seq, err)
	}
	again.get(ring[at:])
	r.mu.Lock()
	defer r.mu.Unlock()
	if again != h {
		r.live = false
		return fmt.Errorf("entry %d was overwritten while it was applied", h.seq)
	}
	r.applied, r.fresh = h.seq, false
	if members != nil {
		r.members = members
	}
	if h.op == opFlush || h.flags&flagFUA != 0 {
		r.flushTo = h.seq
	}
	r.changed.Broadcast()
	return nil
}
