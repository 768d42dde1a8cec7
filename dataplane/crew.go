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

// crew is all workers of a switch.
type crew struct {
	workers []*worker
	ports   []*port // each as the worker that transmits has it
	owners  *owners
	bell    chan struct{} // rings when a worker has news
	depot   *xsk.Depot    // nil if there is one worker
}

// newCrew makes the workers that cfg asks for, and gives each its share of the
// ports' sockets.
func newCrew(ports []*port, umem *xsk.Umem, cfg *config.Config) (*crew, error) {
	n := len(cfg.Worker.CPUs)
	shared := newCommon(ports)
	c := &crew{ports: ports, owners: newOwners(n), bell: shared.bell}
	if n == 1 {
		w, err := newWorker(ports, umem, xsk.NewPool(umem), cfg, shared)
		if err != nil {
			return nil, err
		}
		c.workers = []*worker{w}
		c.sayDelays()
		return c, nil
	}
	c.depot = xsk.NewDepot(umem, n)
	views := divide(ports, n, exitSize(cfg))
	for i := range n {
		w, err := newWorker(views[i], umem, c.depot.Pool(), cfg, shared)
		if err != nil {
			c.close()
			return nil, err
		}
		w.index, w.crew, w.cpu = i, c, cfg.Worker.CPUs[i]
		c.workers = append(c.workers, w)
	}
	c.sayDelays()
	for _, from := range c.workers {
		from.pauses = make([]time.Duration, n)
		from.post = make([]*spsc.Ring[xsk.Desc], n)
		for _, to := range c.workers {
			if from == to {
				continue
			}
			r := spsc.New[xsk.Desc](cfg.Rings.RX)
			from.post[to.index] = r
			to.mail = append(to.mail, r)
		}
		for i, p := range from.ports {
			if p.exit != nil {
				to := c.workers[c.sender(i)]
				p.exit.to = to
				to.entrances = append(to.entrances, entrance{port: to.ports[i], exit: p.exit})
			}
		}
	}
	return c, nil
}

// sayDelays tells all cores of the ports' rates.
func (c *crew) sayDelays() {
	for _, w := range c.workers {
		for pi, p := range c.ports {
			w.sayDelay(pi, p.queue.rate)
		}
	}
}

// common is what all workers of a switch have together.
type common struct {
	sockets int // of all ports
	start   time.Time
	slow    *slowPath
	bell    chan struct{} // see news
}

func newCommon(ports []*port) *common {
	c := &common{start: time.Now(), slow: newSlowPath(len(ports)), bell: make(chan struct{}, 1)}
	for _, p := range ports {
		c.sockets += len(p.all)
	}
	return c
}

// sender returns the worker that transmits for port pi.
func (c *crew) sender(pi int) int { return pi % len(c.workers) }

// divide returns each worker's view of the ports: ports itself, in which each
// keeps the sockets that its sender receives from, and for the other workers ports
// that hand over what they send. Queue q of port p is received by worker p+q, so
// that the sender has the first one, by which it transmits.
func divide(ports []*port, workers, size int) [][]*port {
	views := make([][]*port, workers)
	for pi, p := range ports {
		p.board = &board{}
		for i := range workers {
			v := p
			if i != pi%workers {
				v = p.remote(size)
			}
			v.socks = nil
			views[i] = append(views[i], v)
		}
		for q, s := range p.all {
			v := views[(pi+q)%workers][pi]
			v.socks = append(v.socks, s)
		}
	}
	return views
}

// close frees what newCrew made, but for the sockets. The workers must have ended.
func (c *crew) close() error {
	var errs []error
	for _, w := range c.workers {
		errs = append(errs, unix.Close(w.wakeFD))
	}
	return errors.Join(errs...)
}

// do runs f on every worker, one after the other, each between two batches. It
// returns false if a worker has ended.
func (c *crew) do(f func(*worker)) bool {
	for _, w := range c.workers {
		if !w.do(func() { f(w) }) {
			return false
		}
	}
	return true
}

// halt runs f while all workers stand still between two batches, so that f may
// touch what is any worker's. Only the control loop halts them: two at a time
// would wait for each other. It returns false, without f, if a worker has ended.
func (c *crew) halt(f func()) bool {
	arrived, goOn := make(chan struct{}), make(chan struct{})
	defer close(goOn)
	for _, w := range c.workers {
		select {
		case w.cmds <- func() { arrived <- struct{}{}; <-goOn }:
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
func (c *crew) run(ready func()) (*worker, error) {
	for _, w := range c.workers {
		go w.run()
	}
	var failed *worker
	var err error
	for _, w := range c.workers {
		if e := <-w.affinity; e != nil && err == nil {
			failed, err = w, e
		}
	}
	if err == nil {
		ready()
	}
	for _, w := range c.workers {
		w.do(func() { w.quit = true })
	}
	for _, w := range c.workers {
		<-w.ended
	}
	return failed, err
}
