// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/rocev2"
)

const (
	joinTimeout = 60 * time.Second
	// tailTimeout bounds the wait for messages in flight when a measurement's time is
	// over: recovery without repair, at high loss, takes its time.
	tailTimeout = 2 * time.Minute
	settleStep  = 2 * time.Millisecond
	settledFor  = 10 // steps without a frame: none is in flight any more
)

// sample is the result of one measurement.
type sample struct {
	goodput      float64 // bytes per second at a receiver that loses, on average
	messages     int     // messages of all streams
	packets      int     // packets that carry them, one passage each
	lost         uint64  // packets dropped on the way to receivers
	controlExtra int64   // bytes to the control receiver beyond one passage of each packet
	sender       endpoint.QPStats
	store        repairStore // the store of the group
	latencies    []time.Duration
}

// counters are the counters that grow during a measurement.
type counters struct {
	sender    endpoint.QPStats // all of a connection's sources together
	lost      uint64
	rxFrames  uint64 // frames of all receivers
	controlRx uint64 // bytes
}

func (s *endpoints) read(c *connection) (n counters) {
	for _, src := range c.sources {
		q := src.qp.Stats()
		n.sender.Retransmitted += q.Retransmitted
		n.sender.Timeouts += q.Timeouts
		n.sender.NAKs += q.NAKs
		n.sender.RNRs += q.RNRs
	}
	for _, h := range s.hosts[1:] {
		d := h.Device.Stats()
		n.lost += d.RxLoss
		n.rxFrames += d.RxFrames
		n.controlRx = d.RxBytes // the last host's stays
	}
	return n
}

// measure runs one measurement of a case. The seed determines the lost frames.
func (s *endpoints) measure(c lossCase, d time.Duration, seed uint64) (m sample, err error) {
	conn := s.lines[connectionKey{c.mode, c.repair}]
	if err = s.setLoss(c, seed); err != nil {
		return m, err
	}
	before := s.read(conn)
	store, err := s.watch(conn)
	if err != nil {
		return m, err
	}
	defer store.stop()
	ctx, cancel := context.WithTimeoutCause(s.ctx, d+tailTimeout, fmt.Errorf("not complete within %v", d+tailTimeout))
	defer cancel()
	outcomes, errs := make([]streamResult, len(conn.sources)), make([]error, len(conn.sources))
	var wg sync.WaitGroup
	for i, src := range conn.sources {
		wg.Go(func() { outcomes[i], errs[i] = src.run(ctx, d, s.maxMessages(), s.o.Depth) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return m, s.explain(conn, err)
	}
	for i, k := range conn.receivers {
		if err := k.arrived(ctx, conn.sources[min(i, len(conn.sources)-1)].seq); err != nil {
			return m, s.explain(conn, err)
		}
	}
	after, err := s.settle(ctx, conn)
	if err != nil {
		return m, err
	}
	m.fill(s, outcomes)
	m.lost = after.lost - before.lost
	m.sender = endpoint.QPStats{
		Retransmitted: after.sender.Retransmitted - before.sender.Retransmitted, Timeouts: after.sender.Timeouts - before.sender.Timeouts,
		NAKs: after.sender.NAKs - before.sender.NAKs, RNRs: after.sender.RNRs - before.sender.RNRs,
	}
	toWitness := outcomes[len(outcomes)-1].messages
	if m.store, err = store.end(); err != nil {
		return m, err
	}
	m.controlExtra = int64(after.controlRx-before.controlRx) - int64(toWitness)*s.wireBytes()
	return m, nil
}

// maxMessages is how many messages a source sends at most; 0: any number.
func (s *endpoints) maxMessages() int { return int(s.o.Size / s.o.MessageSize) }

// fill adds the sources' results.
func (m *sample) fill(s *endpoints, outcomes []streamResult) {
	perMessage := s.packets()
	lossy := outcomes
	if len(lossy) > 1 {
		lossy = outcomes[:len(outcomes)-1] // without the control receiver's
	}
	for i := range outcomes {
		m.messages += outcomes[i].messages
		m.packets += outcomes[i].messages * perMessage
	}
	for i := range lossy {
		m.goodput += lossy[i].goodput(int(s.o.MessageSize)) / float64(len(lossy))
		m.latencies = append(m.latencies, lossy[i].latencies...)
	}
}

// packets is the number of packets of a message.
func (s *endpoints) packets() int {
	return (int(s.o.MessageSize) + s.o.MTU - 1) / s.o.MTU
}

// frameOverhead is the bytes around the payload of a SEND over IPv4. Payloads here are
// multiples of 4: there is no padding.
const frameOverhead = rocev2.EthernetLen + rocev2.IPv4Len + rocev2.UDPLen + rocev2.BTHLen + rocev2.ICRCLen

// wireBytes is the length of a message on the wire, without FCS.
func (s *endpoints) wireBytes() int64 {
	return s.o.MessageSize + int64(s.packets())*frameOverhead
}

// setLoss sets the loss on the way to each receiver but the control receiver. Receivers lose
// independently of each other.
func (s *endpoints) setLoss(c lossCase, seed uint64) error {
	for i, h := range s.hosts[1 : len(s.hosts)-1] {
		m := soft.LossModel{Rate: c.loss, Burst: c.burst, Seed: seed + uint64(i)}
		if err := h.Device.SetInboundLoss(m); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until no more frames come to any receiver: duplicates that are
// still under way belong to this measurement. It returns the last counters.
func (s *endpoints) settle(ctx context.Context, conn *connection) (counters, error) {
	now := s.read(conn)
	for quiet := 0; quiet < settledFor; quiet++ {
		select {
		case <-ctx.Done():
			return now, fmt.Errorf("wait for the network to be idle: %w", context.Cause(ctx))
		case <-time.After(settleStep):
		}
		last := now.rxFrames
		if now = s.read(conn); now.rxFrames != last {
			quiet = -1
		}
	}
	return now, nil
}

// explain adds the state of the endpoints and of the switch to an error.
func (s *endpoints) explain(conn *connection, err error) error {
	if s.ctx.Err() != nil { // the sender's error follows from another one
		return context.Cause(s.ctx)
	}
	if conn.group == nil {
		return err
	}
	return testbed.Explain(s.testbed.Client, conn.group.Info().IP, err)
}
