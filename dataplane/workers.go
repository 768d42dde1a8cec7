// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/spsc"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

// Several workers. What belongs to one of them belongs to it outright, as to the
// only one of a switch that has one:
//
//   - A group, with its state, tables and kept frames: chosen at registration
//     (owners). A packet that another worker has received is handed to the
//     group's as a descriptor (mail).
//   - The receiving half of each AF_XDP socket: those of all ports are spread
//     over the workers.
//   - A port's way out: its queue, its marker and its TX ring, which takes one
//     producer. The others hand that worker what they want sent (exit).
//   - Free frames: each has a cache of them (xsk.Depot).

// workers is all workers of a switch.
type workers struct {
	all    []*worker
	ports  []*port // each as the worker that transmits has it
	owners *groupOwners
	bell   chan struct{} // rings when a worker has news
	depot  *xsk.Depot    // nil if there is one worker
}

// newWorkers makes the workers that cfg asks for, and gives each its share of the
// ports' sockets.
func newWorkers(ports []*port, umem *xsk.Umem, cfg *config.Config) (*workers, error) {
	n := len(cfg.Worker.CPUs)
	shared := newWorkerShared(ports)
	c := &workers{ports: ports, owners: newGroupOwners(n), bell: shared.bell}
	if n == 1 {
		w, err := newWorker(ports, umem, xsk.NewPool(umem), cfg, shared)
		if err != nil {
			return nil, err
		}
		c.all = []*worker{w}
		c.setPortDelays()
		return c, nil
	}
	c.depot = xsk.NewDepot(umem, n)
	views := portViews(ports, n, remoteTXSize(cfg))
	for i := range n {
		w, err := newWorker(views[i], umem, c.depot.Pool(), cfg, shared)
		if err != nil {
			c.close()
			return nil, err
		}
		w.index, w.workers, w.cpu = i, c, cfg.Worker.CPUs[i]
		c.all = append(c.all, w)
	}
	c.setPortDelays()
	for _, from := range c.all {
		from.othersPaused = make([]time.Duration, n)
		from.handoffOut = make([]*spsc.Ring[xsk.Desc], n)
		for _, to := range c.all {
			if from == to {
				continue
			}
			r := spsc.New[xsk.Desc](cfg.Rings.RX)
			from.handoffOut[to.index] = r
			to.handoffIn = append(to.handoffIn, r)
		}
		for i, p := range from.ports {
			if p.remoteTX != nil {
				to := c.all[c.txWorker(i)]
				p.remoteTX.txWorker = to
				to.remoteIn = append(to.remoteIn, remoteTXConsumer{port: to.ports[i], ring: p.remoteTX})
			}
		}
	}
	return c, nil
}

// setPortDelays tells all cores of the ports' rates.
func (c *workers) setPortDelays() {
	for _, w := range c.all {
		for pi, p := range c.ports {
			w.setPortDelay(pi, p.queue.rate)
		}
	}
}

// workerShared is what all workers of a switch have together.
type workerShared struct {
	sockets  int // of all ports
	start    time.Time
	slowPath *slowPath
	bell     chan struct{} // see news
}

func newWorkerShared(ports []*port) *workerShared {
	c := &workerShared{start: time.Now(), slowPath: newSlowPath(len(ports)), bell: make(chan struct{}, 1)}
	for _, p := range ports {
		c.sockets += len(p.sockets)
	}
	return c
}

// txWorker returns the worker that transmits for port pi.
func (c *workers) txWorker(pi int) int { return pi % len(c.all) }

// portViews returns each worker's view of the ports: ports itself, in which each
// keeps the sockets that its sender receives from, and for the other workers ports
// that hand over what they send. Queue q of port p is received by worker p+q, so
// that the sender has the first one, by which it transmits.
func portViews(ports []*port, workers, size int) [][]*port {
	views := make([][]*port, workers)
	for pi, p := range ports {
		p.status = &portStatus{}
		for i := range workers {
			v := p
			if i != pi%workers {
				v = p.remoteView(size)
			}
			v.rxSockets = nil
			views[i] = append(views[i], v)
		}
		for q, s := range p.sockets {
			v := views[(pi+q)%workers][pi]
			v.rxSockets = append(v.rxSockets, s)
		}
	}
	return views
}

// close frees what newWorkers made, but for the sockets. The workers must have ended.
func (c *workers) close() error {
	var errs []error
	for _, w := range c.all {
		errs = append(errs, unix.Close(w.wakeFD))
	}
	return errors.Join(errs...)
}

// do runs f on every worker, one after the other, each between two batches. It
// returns false if a worker has ended.
func (c *workers) do(f func(*worker)) bool {
	for _, w := range c.all {
		if !w.do(func() { f(w) }) {
			return false
		}
	}
	return true
}

// pauseAll runs f while all workers stand still between two batches, so that f may
// touch what is any worker's. Only the control loop halts them: two at a time
// would wait for each other. It returns false, without f, if a worker has ended.
func (c *workers) pauseAll(f func()) bool {
	arrived, goOn := make(chan struct{}), make(chan struct{})
	defer close(goOn)
	for _, w := range c.all {
		select {
		case w.closures <- func() { arrived <- struct{}{}; <-goOn }:
		case <-w.ended:
			return false
		}
		w.wake()
		select {
		case <-arrived:
		case <-w.ended:
			return false
		}
	}
	f()
	return true
}

// run starts the workers and returns when all have ended; the error is of the
// one that cannot stay on its CPU. ready is called when all are at work.
func (c *workers) run(ready func()) (*worker, error) {
	for _, w := range c.all {
		go w.run()
	}
	var failed *worker
	var err error
	for _, w := range c.all {
		if e := <-w.affinity; e != nil && err == nil {
			failed, err = w, e
		}
	}
	if err == nil {
		ready()
	}
	for _, w := range c.all {
		w.do(func() { w.quit = true })
	}
	for _, w := range c.all {
		<-w.ended
	}
	return failed, err
}
