// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

// Ports come and go while the workers run. A port has a slot, whose index never changes:
// tables of groups, rings between workers and all that is counted by port have their sizes
// at start. A slot is open or closed; a closed one has no sockets, and drops what is sent
// there (port_down). The interface of an open slot vanishes, or its port is removed: the
// slot is closed. An interface of the same name comes, or a port is added: the slot is
// opened. Workers see one or the other: they stand still for the change, which makes no
// system call that waits.

// sparePorts is the number of slots for ports that are added without a restart. Arrays that
// workers and XDP program go by have that many more entries, for as long as the process lives.
const sparePorts = 16

// ErrNoSlot means that no slot is free.
var ErrNoSlot = fmt.Errorf("there is no room for another port without a restart: %d may be added", sparePorts)

// programs are the XDP programs of the slots. They belong to the port thread.
type programs struct {
	bySlot   []*bpf.PortProgram // nil: the slot has none yet
	spare    []*bpf.PortProgram
	spareErr error // the error of loadSpares
}

// loadSpares loads the programs of ports that may be added: for frames in several buffers
// if a port has such a program now. Both are loaded in any case, for ports whose MTU changes.
func (p *programs) loadSpares(s *bpf.Steering) error {
	frags := slices.ContainsFunc(p.bySlot, func(x *bpf.PortProgram) bool { return x != nil && x.Frags() })
	for range sparePorts {
		x, err := s.Spare(frags)
		if err != nil {
			return err
		}
		p.spare = append(p.spare, x)
	}
	s.LoadBoth()
	return nil
}

// of returns the program of a slot, which takes a spare one if it has none; nil if there is
// none left.
func (p *programs) of(pi int) *bpf.PortProgram {
	if p.bySlot[pi] == nil && len(p.spare) > 0 {
		p.bySlot[pi], p.spare = p.spare[0], p.spare[1:]
	}
	return p.bySlot[pi]
}

// free makes the program of a slot a spare one again.
func (p *programs) free(pi int) error {
	x := p.bySlot[pi]
	if x == nil {
		return nil
	}
	p.bySlot[pi] = nil
	if err := x.Reset(); err != nil {
		return errors.Join(err, x.Close())
	}
	p.spare = append(p.spare, x)
	return nil
}

// close unloads all programs.
func (p *programs) close() (err error) {
	for _, x := range append(p.bySlot, p.spare...) {
		if x != nil {
			err = errors.Join(err, x.Close())
		}
	}
	return err
}

// emptyPort is a slot without a port.
func emptyPort(cfg *config.Config) *port {
	p, defaults := &port{linkState: linkState{down: true, vanished: true}}, config.DefaultPort()
	p.prepare(&defaults, cfg)
	return p
}

// Opened is a port that was opened for a slot, until Install makes the workers use it.
type Opened struct {
	Err   error // why it could not be opened; then there is nothing to install
	slot  int
	port  *port
	plane *Plane
}

// OpenPort opens the interface that c names for slot pi, which is closed. It waits for the
// kernel; any goroutine but the control loop and the workers may call it.
func (p *Plane) OpenPort(pi int, c *config.Port) *Opened {
	o := &Opened{slot: pi, plane: p}
	if !p.thread.do(func() { o.port, o.Err = p.reopen(pi, c) }) {
		o.Err = ErrStopped
	}
	return o
}

// reopen runs on the port thread.
func (p *Plane) reopen(pi int, c *config.Port) (*port, error) {
	program := p.programs.of(pi)
	if program == nil {
		return nil, ErrNoSlot
	}
	links, err := iface.ReadLinks()
	if err != nil {
		return nil, err
	}
	f := foundPort{config: c}
	if f.Found, err = links.Find(c, p.cfg.XDPModeOf(c)); err != nil {
		return nil, err
	}
	x, err := openPort(&f, p.cfg, p.umem, func(ifindex, mtu int) (*bpf.PortProgram, error) {
		if err := program.SetPolicy(&bpf.Policy{Blocked: true}); err != nil {
			return nil, err
		}
		return program, program.AttachTo(ifindex, c.Name, bpfMode(f.Mode), mtu)
	})
	if err != nil {
		return nil, err
	}
	p.reportMode(x)
	p.openRules(x, p.cfg)
	p.opened = append(p.opened, x)
	return x, nil
}

// Discard closes a port that is not to be installed.
func (o *Opened) Discard() {
	if o.port == nil {
		return
	}
	x, p := o.port, o.plane
	p.thread.do(func() {
		p.opened = slices.DeleteFunc(p.opened, func(y *port) bool { return x == y })
		x.close()
	})
	o.port = nil
}

// Install makes the workers use a port that was opened for a slot. It belongs to the
// control loop.
func (p *Plane) Install(o *Opened) (Port, error) {
	x := o.port
	if !p.workers.pauseAll(func() {
		p.workers.install(o.slot, x)
		p.indexes[o.slot].Store(int64(x.ifindex))
		p.fast.targets.setPort(o.slot, &x.portIdentity)
	}) {
		return Port{}, ErrStopped
	}
	o.port = nil
	p.thread.put(func() {
		p.opened = slices.DeleteFunc(p.opened, func(y *port) bool { return x == y })
	})
	return describePort(p.ports[o.slot]), nil
}

// ClosePort closes slot pi, whose port is removed. Its XDP program is free for another port
// afterwards. It belongs to the control loop.
func (p *Plane) ClosePort(pi int) error {
	if err := p.detach(pi, true); err != nil {
		return err
	}
	if !p.workers.do(func(w *worker) { w.ports[pi].portIdentity = portIdentity{} }) {
		return ErrStopped
	}
	p.indexes[pi].Store(0)
	return nil
}

// Within runs f in the network namespace of the ports. It does not run if they are not attached.
// Any goroutine but the control loop and the workers may call it.
func (p *Plane) Within(f func() error) (err error) {
	if p.thread == nil {
		return nil
	}
	if !p.thread.do(func() { err = f() }) {
		return ErrStopped
	}
	return err
}

// Detach closes slot pi, whose interface is to be opened again. It belongs to the control
// loop.
func (p *Plane) Detach(pi int) error { return p.detach(pi, false) }

// detach takes slot pi from the workers at once, and closes its sockets afterwards on the
// port thread, since that waits for the kernel. It belongs to the control loop.
func (p *Plane) detach(pi int, forGood bool) error {
	c := p.workers
	var a attachment
	if !c.pauseAll(func() { a = c.closePort(pi) }) {
		return ErrStopped
	}
	p.fast.targets.setPort(pi, &portIdentity{})
	if p.thread == nil {
		return nil // not attached
	}
	p.thread.put(func() {
		a.close()
		c.pauseAll(func() { c.reclaim(pi, a.sockets) })
		if forGood {
			if err := p.programs.free(pi); err != nil {
				p.notify(true, "the XDP program of a removed port cannot be used again", "error", err)
			}
		}
	})
	return nil
}

// install makes the workers use fresh in slot pi. All workers stand still. Counters go on.
func (c *workers) install(pi int, fresh *port) {
	for _, w := range c.all {
		w.disturbFast()
		p := w.ports[pi]
		p.portIdentity, p.linkState, p.rxSockets = fresh.portIdentity, fresh.linkState, nil
		p.queue.maxBytes = fresh.queue.maxBytes
		if x := p.remoteTX; x != nil {
			x.handedBytes = x.takenBytes.Load() // closePort has freed the rest
			x.sentBytes.Store(x.handedBytes)
			x.lastTaken = x.handedBytes
			x.blocked.Store(0)
			continue
		}
		old := p.egress
		p.attachment, p.egress = fresh.attachment, fresh.egress
		p.ring.packets, p.maxPacketFrames, p.maxDepth = old.ring.packets, old.maxPacketFrames, old.maxDepth
		p.ceMarked, p.deferred, p.refusedFrames, p.fullAt = old.ceMarked, old.deferred, old.refusedFrames, old.fullAt
	}
	for q, s := range fresh.sockets {
		p := c.all[(pi+q)%len(c.all)].ports[pi] // as in portViews
		p.rxSockets = append(p.rxSockets, s)
	}
	c.shareSockets()
	for _, w := range c.all {
		for _, s := range w.ports[pi].rxSockets {
			w.refill(s)
		}
		w.setPortDelay(pi, c.ports[pi].queue.rate)
		w.batchNumber++
	}
}

// shareSockets gives the pollers the sockets that there are now, and each fill ring its
// share of the frames.
func (c *workers) shareSockets() {
	sockets := 0
	for _, w := range c.all {
		var queues []xsk.BoundQueue
		for _, p := range w.ports {
			queues = append(queues, p.rxSockets...)
		}
		sockets += len(queues)
		w.poller.SetQueues(queues)
	}
	for _, w := range c.all {
		w.fillReserve = fillReserve(w.umem, w.fill, sockets)
	}
}

// reclaim returns to the pool the frames that the kernel had for closed sockets of slot pi.
// All workers stand still.
func (c *workers) reclaim(pi int, sockets []xsk.BoundQueue) {
	w := c.all[c.txWorker(pi)]
	for _, s := range sockets {
		w.frameSupply.reclaim(s)
	}
}
