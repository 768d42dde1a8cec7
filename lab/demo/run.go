// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

const (
	groupBase   = uint64(0x5000_0000_0000) // the base of the group's WRITE window
	outBase     = uint64(0x1000_0000_0000) // the base of a host's data to send; no peer addresses it
	joinTimeout = 30 * time.Second
	deadAfter   = 100 * time.Millisecond // a silent member is dead, where one is killed
	retries     = 7                      // the retries of a queue pair
	keptLease   = 10 * time.Minute       // the lease of the group in a lab that is kept, where no master renews it
)

// run is one demo under way.
type run struct {
	opts    *Options
	testbed *testbed.Testbed // nil in a fabric
	client  *api.Client      // the client of the gleamd to which the source is connected
	said    func() string    // what gleamd has written
	key     testbed.Key      // the key of envelopes
	data    *payload
	plan    testbed.Messages
	hosts   []*host // hosts[0] sends
	log     *progress
	group   netip.Addr

	disturb *disturbances // the disturbances of the group's transfer; nil: none
}

// host is a host of the lab with its device and memory.
type host struct {
	*testbed.Host
	out   endpoint.MR // data to send; nil for a host that only receives
	mr    endpoint.MR // received data; nil for a host that only sends
	mem   []byte      // the bytes of mr
	maps  [][]byte    // the maps to be unmapped
	group *endpoint.Group
}

// Run does the whole demo. say gets its progress. An error means that it could not be
// done; whether the receivers have the right bytes is in the result.
func Run(ctx context.Context, o Options, say *progress) (_ *Result, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := lab.Supported(); err != nil {
		return nil, fmt.Errorf("the demo makes network namespaces: %w", err)
	}
	r, err := newRun(&o, say)
	if err != nil {
		return nil, err // before any output about a lab
	}
	defer func() { err = errors.Join(err, r.data.close()) }()
	if o.Topology != "" {
		return r.inFabric(ctx)
	}
	r.group = netip.MustParseAddr("10.77.254.1")
	if o.IPv6 {
		r.group = netip.MustParseAddr("fd77::6c65:1")
	}
	say.printf("making %s", r.describe())
	if r.testbed, err = build(ctx, &o); err != nil {
		return nil, err
	}
	r.client, r.key, r.said = r.testbed.Client, r.testbed.Key, r.testbed.Gleamd.Output
	defer func() {
		if err != nil {
			r.testbed.Keep = false
		}
		err = errors.Join(err, r.testbed.Close())
	}()
	defer r.closeHosts()
	if err := r.open(r.testbed.Star.Hosts, o.Loss); err != nil {
		return nil, err
	}
	if o.Web != "" {
		return nil, r.showPage(ctx)
	}
	return r.transfers(ctx)
}

// newRun loads the payload.
func newRun(o *Options, say *progress) (*run, error) {
	r := &run{opts: o, log: say}
	op, err := o.op()
	if err != nil {
		return nil, err
	}
	if r.data, err = load(o); err != nil {
		return nil, err
	}
	r.plan = testbed.Messages{Op: op, Len: int64(len(r.data.bytes)), Message: o.MessageSize}
	return r, nil
}

// open opens the hosts, of which the first is the source. Each loses that part of packets.
func (r *run) open(hosts []lab.Host, loss float64) error {
	for i, h := range hosts {
		x, err := r.openHost(i, h, loss)
		if err != nil {
			return err
		}
		r.hosts = append(r.hosts, x)
	}
	return nil
}

func (r *run) closeHosts() {
	for _, h := range r.hosts {
		h.close()
	}
}

func (r *run) describe() string {
	return fmt.Sprintf("a lab: a switch and %d hosts in namespaces, one sends %s to %d", r.opts.Members,
		map[bool]string{true: r.opts.File, false: sizeString(r.opts.Size)}[r.opts.File != ""], r.opts.Members-1)
}

// openHost makes host i's device, and the memory it sends from or receives into.
func (r *run) openHost(i int, at lab.Host, loss float64) (*host, error) {
	c := testbed.Endpoints{
		Key: r.key, IPv6: r.opts.IPv6, Device: soft.Config{Loss: loss, Seed: r.opts.Seed + uint64(i)},
		QP: endpoint.QPConfig{MaxSend: depth, MaxRecv: 2 * depth, Timeout: 14, RetryCount: retries, RNRRetry: 7},
	}
	if r.opts.Web != "" {
		c.QP.Timeout = pageTimeout
		if i == 0 {
			c.Device.Rate = pageRate
		}
	}
	x, err := testbed.Open(at, c)
	if err != nil {
		return nil, err
	}
	h := &host{Host: x}
	err = r.outgoing(h, i)
	if err == nil && (i > 0 || r.opts.Rotate > 0) {
		err = r.incoming(h, i)
	}
	if err != nil {
		h.close()
		return nil, fmt.Errorf("host %s: %w", h.Name, err)
	}
	return h, nil
}

// incoming makes the region into which host i receives.
func (r *run) incoming(h *host, i int) (err error) {
	if h.mem, err = anonymous(r.plan.Len); err != nil {
		return err
	}
	h.maps = append(h.maps, h.mem)
	// Every host has it at another virtual address: the switch translates.
	err = h.Register(h.mem, uint64(i+1)<<40)
	if h.mr = h.Memory; r.plan.Op == endpoint.Send {
		h.Memory = nil // a SEND goes into receives: the region is no window
	}
	return err
}

func (h *host) close() {
	_ = h.Host.Close()
	for _, m := range h.maps {
		_ = unix.Munmap(m)
	}
}

// transfers registers the group, sends by it, then by unicasts.
func (r *run) transfers(ctx context.Context) (*Result, error) {
	start := time.Now()
	if err := r.join(ctx); err != nil {
		return nil, fmt.Errorf("%w\nwhat gleamd said:\n%s", err, r.said())
	}
	r.log.printf("group %s registered: %d members confirmed in %.2f s", r.group, len(r.hosts), time.Since(start).Seconds())
	res := r.result()
	transfer := r.sendByGroup
	switch {
	case r.opts.Rotate > 0:
		transfer = r.sendByTurns
	case r.opts.KillMember != "":
		transfer = r.sendByGroupWithout
	}
	if err := transfer(ctx, res); err != nil {
		return nil, err
	}
	if g, err := r.client.Group(ctx, r.group); err == nil { // a failed group is gone
		res.Repair = g.Repair
	}
	if r.opts.Targets {
		if err := r.sendWithTargets(ctx, res); err != nil {
			return nil, err
		}
	}
	if !r.opts.Keep {
		for _, h := range r.hosts {
			if err := h.group.Close(); err != nil && res.Killed == nil {
				return nil, fmt.Errorf("host %s leaves the group: %w", h.Name, err)
			}
		}
	}
	res.OK = true
	if r.opts.Rotate == 0 && r.opts.KillMember == "" {
		if err := r.sendByUnicast(ctx, r.hosts[1:], res); err != nil {
			return nil, err
		}
		res.OK = res.Unicast.OK
	}
	if res.TargetMessages != nil {
		res.OK = res.OK && res.TargetMessages.OK
	}
	for _, v := range res.Receivers {
		res.OK = res.OK && v.OK
	}
	if r.opts.Keep {
		res.Kept = r.testbed.Star.Lab.Name()
	}
	return res, nil
}

// result returns what is known before the transfer.
func (r *run) result() *Result {
	return &Result{
		PayloadBytes: r.plan.Len, SHA256: r.data.sum, Op: r.opts.Op, MessageSize: r.opts.MessageSize, PathMTU: r.opts.MTU,
		Members: len(r.hosts), Loss: r.opts.Loss, Group: r.group.String(), FastPath: r.opts.FastPath,
	}
}

// join makes the group: host 1 is the master, and collects the others' states.
func (r *run) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	all := make([]*testbed.Host, len(r.hosts))
	for i, h := range r.hosts {
		all[i] = h.Host
	}
	groups, err := testbed.Join(ctx, r.masterConfig(), all)
	for i, g := range groups {
		r.hosts[i].group = g
	}
	return err
}

func (r *run) masterConfig() endpoint.MasterConfig {
	c := endpoint.MasterConfig{
		GroupIP: r.group, PathMTU: r.opts.MTU, WindowBase: groupBase, Targets: r.opts.Targets, NoRepair: !r.opts.Repair,
	}
	c.Policy, c.Quorum, _ = r.opts.policy() // checked before
	if r.opts.KillMember != "" {
		c.DeadAfter = deadAfter
	}
	if r.opts.Web != "" {
		c.DeadAfter, c.SenderTimeout, c.SenderRetries = pageDeadAfter, pageTimeout, retries
	}
	if r.opts.Keep {
		c.Lease = keptLease
	}
	return c
}

// sendByGroup sends the payload once, to the group, and fills in the measurements.
func (r *run) sendByGroup(ctx context.Context, res *Result) error {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	before, err := r.readCounts(ctx)
	if err != nil {
		return err
	}
	boxes, err := r.inboxes(r.hosts[1:])
	if err != nil {
		return err
	}
	bar := r.log.begin("group", r.plan.Len)
	m, err := r.measure(ctx, r.hosts[0], boxes, func() error {
		return r.send(ctx, r.hosts[0], func(n int) { bar.add(n); r.disturb.completed() })
	})
	bar.end()
	if err := errors.Join(err, r.disturb.end()); err != nil {
		return r.explain(err)
	}
	after, err := r.readCounts(ctx)
	if err != nil {
		return err
	}
	res.Seconds, res.SenderLinkBytes, res.Messages = m.seconds, m.linkBytes, r.plan.Count()
	res.SenderRetransmitted = r.hosts[0].group.QP().Stats().Retransmitted
	res.Switch = difference(before, after)
	for i, h := range r.hosts[1:] {
		res.Receivers = append(res.Receivers, r.receiver(h, boxes[i], m.seconds, r.data.bytes, r.data.sum))
	}
	return nil
}

// sendByUnicast sends the payload to each of the receivers by a queue pair of its own.
func (r *run) sendByUnicast(ctx context.Context, receivers []*host, res *Result) error {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	n := len(receivers)
	boxes := make([]*receiveQueue, n)
	out := make([]endpoint.QP, n)
	for i, h := range receivers {
		a, b, err := testbed.Connect(ctx, r.hosts[0].Host, h.Host, r.opts.MTU)
		if err != nil {
			return err
		}
		defer a.Close()
		defer b.Close()
		out[i] = a
		if boxes[i], err = r.inbox(h, b); err != nil {
			return err
		}
	}
	bar := r.log.begin(plural(n, "unicast"), r.plan.Len*int64(n))
	m, err := r.measure(ctx, r.hosts[0], boxes, func() error {
		return session.Each(n, func(i int) error {
			to := receivers[i].mr
			return r.plan.Send(ctx, out[i], r.hosts[0].out, to.Addr(), to.RKey(), depth, bar.add)
		})
	})
	bar.end()
	if err != nil {
		return fmt.Errorf("unicasts: %w", err)
	}
	res.UnicastSenderLinkBytes = m.linkBytes
	res.Unicast = Unicast{OK: true, Seconds: m.seconds}
	for _, h := range receivers {
		res.Unicast.OK = res.Unicast.OK && digest(h.mem) == r.data.sum
	}
	return nil
}

// explain adds the switch's state to an error of the group's transfer.
func (r *run) explain(err error) error {
	return fmt.Errorf("group transfer: %w", testbed.Explain(r.client, r.group, err))
}
