// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

const memoryBase = uint64(1) << 40

// endpoints are a set of devices with all the connections that are measured. The
// rate of its links is fixed.
type endpoints struct {
	o       *Options
	testbed *testbed.Testbed
	hosts   []*host // [0] sends, the last is the control receiver
	lines   map[connectionKey]*connection

	ctx    context.Context // ends with the first thing that goes wrong
	cancel context.CancelCauseFunc
	drains sync.WaitGroup
	closes []func() error // the functions that close, in reverse order
}

// connectionKey chooses a connection.
type connectionKey struct {
	mode   string
	repair bool
}

// connection carries streams from the sender to all receivers: one by a group,
// or one to each.
type connection struct {
	sources   []*source
	receivers []*receiver // one for each host but the first
	group     *endpoint.Group
}

// host is a host of the lab.
type host struct {
	*testbed.Host
	unicast *testbed.Host // hosts[0]: another device, whose queue pairs share the link's rate
	mr      endpoint.MR
}

// open makes devices and connections on a stage. rate is of the sender's link,
// in bits/s of whole frames; 0: unbounded.
func open(ctx context.Context, o *Options, st *testbed.Testbed, rate int64) (_ *endpoints, err error) {
	s := &endpoints{o: o, testbed: st, lines: make(map[connectionKey]*connection)}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	for i := range st.Star.Hosts {
		if err := s.openHost(i, rate); err != nil {
			return nil, err
		}
	}
	for i, repair := range o.Repair {
		if err := s.joinGroup(i, repair); err != nil {
			return nil, fmt.Errorf("%w\nwhat gleamd said:\n%s", err, st.Gleamd.Output())
		}
	}
	if o.hasUnicast(s.receivers()) {
		if err := s.connectPairs(); err != nil {
			return nil, err
		}
	}
	return s, s.start()
}

// receivers is how many lose packets.
func (s *endpoints) receivers() int { return len(s.hosts) - 2 }

func (s *endpoints) onClose(f func() error) { s.closes = append(s.closes, f) }

// openHost makes host i's device and memory.
func (s *endpoints) openHost(i int, rate int64) (err error) {
	at, slots := s.testbed.Star.Hosts[i], recvDepth
	c := testbed.Endpoints{
		Key: s.testbed.Key, Answer: true,
		QP: endpoint.QPConfig{MaxSend: maxDepth, MaxRecv: recvDepth, Timeout: s.o.Timeout, RetryCount: 7, RNRRetry: 7}, // retries without end
	}
	if i == 0 {
		c.Device.Rate, slots = rate, maxDepth
	}
	h := &host{}
	if h.Host, err = testbed.Open(at, c); err != nil {
		return err
	}
	s.hosts = append(s.hosts, h)
	s.onClose(h.Close)
	memory := make([]byte, slots*int(s.o.MessageSize))
	if h.mr, err = h.Device.RegisterMemory(memory, memoryBase, endpoint.LocalWrite); err != nil || i > 0 {
		return err
	}
	_, _ = testbed.Random(s.o.Seed).Read(memory)
	if n := len(s.testbed.Star.Hosts) - 1; s.o.hasUnicast(n - 1) { // the control receiver has one too
		c.Device.Rate, c.Answer = rate/int64(n), false // each queue pair's
		if h.unicast, err = testbed.Open(at, c); err == nil {
			s.onClose(h.unicast.Close)
		}
	}
	return err
}

// joinGroup makes a group of all hosts, the i-th. Host 0 is the master, and
// collects the others' states.
func (s *endpoints) joinGroup(i int, repair bool) error {
	ctx, cancel := context.WithTimeout(s.ctx, joinTimeout)
	defer cancel()
	all := make([]*testbed.Host, len(s.hosts))
	for k, h := range s.hosts {
		all[k] = h.Host
	}
	groups, err := testbed.Join(ctx, endpoint.MasterConfig{PathMTU: s.o.MTU, NoRepair: !repair, GroupIP: netip.AddrFrom4([4]byte{10, 77, 254, byte(i + 1)})}, all)
	s.onClose(func() error { return session.Leave(groups) })
	if err != nil {
		return err
	}
	c := &connection{group: groups[0], sources: []*source{newSource(groups[0].QP(), s.hosts[0].mr, int(s.o.MessageSize))}}
	for k, h := range s.hosts[1:] {
		c.receivers = append(c.receivers, s.sink(h, groups[k+1].QP(), c.sources[0]))
	}
	s.lines[connectionKey{Group, repair}] = c
	return nil
}

func (s *endpoints) sink(h *host, qp endpoint.QP, from *source) *receiver {
	return &receiver{name: h.Name, qp: qp, mr: h.mr, size: int(s.o.MessageSize), sources: from}
}

// connectPairs makes a pair of queue pairs for each receiver, as any RC
// application does.
func (s *endpoints) connectPairs() error {
	first := s.hosts[0]
	c := &connection{}
	for _, h := range s.hosts[1:] {
		memory := make([]byte, maxDepth*int(s.o.MessageSize)) // of its own: each stream counts for itself
		_, _ = testbed.Random(s.o.Seed).Read(memory)
		mr, err := first.unicast.Device.RegisterMemory(memory, memoryBase, 0)
		if err != nil {
			return err
		}
		a, b, err := testbed.Connect(s.ctx, first.unicast, h.Host, s.o.MTU)
		if err != nil {
			return err
		}
		src := newSource(a, mr, int(s.o.MessageSize))
		c.sources = append(c.sources, src)
		c.receivers = append(c.receivers, s.sink(h, b, src))
	}
	s.lines[connectionKey{Unicast, false}] = c
	return nil
}

// start lets the receivers take messages. The first that finds a wrong one ends all.
func (s *endpoints) start() error {
	for _, c := range s.lines {
		for _, k := range c.receivers {
			if err := k.prime(); err != nil {
				return err
			}
			s.drains.Go(func() {
				if err := k.drain(s.ctx); err != nil {
					s.cancel(err)
				}
			})
		}
	}
	return nil
}

// close ends all that open made.
func (s *endpoints) close() error {
	s.cancel(errors.New("the endpoints are closed"))
	s.drains.Wait()
	var errs []error
	for i := len(s.closes) - 1; i >= 0; i-- {
		errs = append(errs, s.closes[i]())
	}
	return errors.Join(errs...)
}
