// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/spsc"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
)

// A switch with several workers. Each of the following belongs to one worker, and only
// that worker uses it, as in a switch with one worker:
//
//   - A group, with its state, tables and retained frames. Its owner is chosen at
//     registration (groupOwners). A packet that another worker has received is passed
//     to the owner as descriptors, by a handoff ring.
//   - The receiving half of an AF_XDP socket. The sockets of all ports are spread over
//     the workers.
//   - The transmitting side of a port: its egress queue, its CE marker and its TX ring,
//     which takes one producer. Other workers send through remote TX rings (remoteTX).
//   - Free frames: each worker has a cache of them (xsk.Depot).

// workers is the set of all workers of a switch.
type workers struct {
	pausing sync.Mutex // the lock of pauseAll
	all     []*worker
	ports   []*port // each as seen by the worker that transmits for it
	owners  *groupOwners
	bell    chan struct{} // rings when a worker has changed groups
	depot   *xsk.Depot    // nil if there is one worker
}

// newPoller makes the poller of one worker's sockets.
type newPoller func([]xsk.BoundQueue) (xsk.Poller, error)

// socketPoller is the newPoller of a switch whose ports are open.
func socketPoller(queues []xsk.BoundQueue) (xsk.Poller, error) {
	var socks []*xsk.Socket
	for _, q := range queues {
		socks = append(socks, q.(*xsk.Socket))
	}
	return xsk.NewPoller(socks)
}

// newWorkers makes the workers that cfg asks for, and gives each its share of the
// ports' sockets.
func newWorkers(ports []*port, umem *xsk.Umem, cfg *config.Config, poller newPoller) (*workers, error) {
	n := len(cfg.Worker.CPUs)
	shared := newWorkerShared(ports, poller)
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
		from.pauses.seen, from.pauses.grown = make([]time.Duration, n), make([]time.Duration, n)
		from.handoff.out = make([]*spsc.Ring[xsk.Desc], n)
		for _, to := range c.all {
			if from == to {
				continue
			}
			r := spsc.New[xsk.Desc](cfg.Rings.RX)
			from.handoff.out[to.index] = r
			to.handoff.in = append(to.handoff.in, r)
		}
		for i, p := range from.ports {
			if p.remoteTX != nil {
				to := c.all[c.txWorker(i)]
				p.remoteTX.txWorker = to
				to.remote.rings = append(to.remote.rings, remoteTXConsumer{port: to.ports[i], ring: p.remoteTX})
			}
		}
	}
	return c, nil
}

// setPortDelays gives the ports' rates to all cores.
func (c *workers) setPortDelays() {
	for _, w := range c.all {
		for pi, p := range c.ports {
			w.setPortDelay(pi, p.queue.rate)
		}
	}
}

// workerShared is what all workers of a switch share.
type workerShared struct {
	sockets  int // sockets of all ports
	start    time.Time
	slowPath *slowPath
	bell     chan struct{} // the bell of changedGroups
	poller   newPoller
	aliases  groupAliases
}

func newWorkerShared(ports []*port, poller newPoller) *workerShared {
	c := &workerShared{start: time.Now(), slowPath: newSlowPath(len(ports)), bell: make(chan struct{}, 1), poller: poller}
	for _, p := range ports {
		c.sockets += len(p.sockets)
	}
	return c
}

// txWorker returns the worker that transmits for port pi.
func (c *workers) txWorker(pi int) int { return pi % len(c.all) }

// portViews returns each worker's view of the ports. The worker that transmits for a port
// gets the port itself, reduced to the sockets that this worker receives from; the other
// workers get remote views, whose frames go by a remote TX ring. Queue q of port p is
// received by worker p+q, so that the transmitting worker has queue 0, by which it
// transmits.
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

// close frees what newWorkers made, except for the sockets. The workers must have ended.
func (c *workers) close() error {
	var errs []error
	for _, w := range c.all {
		errs = append(errs, w.poller.Close())
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

// pauseAll runs f while all workers stand still between two batches, so that f may use
// the state of every worker. The workers themselves must not call it. It returns false,
// without running f, if a worker has ended.
func (c *workers) pauseAll(f func()) bool {
	c.pausing.Lock() // two concurrent calls would wait for each other's workers
	defer c.pausing.Unlock()
	arrived, goOn := make(chan struct{}), make(chan struct{})
	defer close(goOn)
	for _, w := range c.all {
		if !w.put(func() { arrived <- struct{}{}; <-goOn }) || !w.wait(arrived) {
			return false
		}
	}
	f()
	return true
}

// run starts the workers, calls ready when all are running, and returns when all have
// ended. If a worker cannot be pinned to its CPU, run returns that worker and the error.
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
