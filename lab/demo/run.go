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
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

const (
	exchangePort = 4798                     // TCP, at which the master collects the members' connection states
	groupBase    = uint64(0x5000_0000_0000) // of the group's WRITE window
	outBase      = uint64(0x1000_0000_0000) // of a host's data to send; no peer addresses it
	joinTimeout  = 30 * time.Second
	deadAfter    = 100 * time.Millisecond // a silent member is dead, where one is killed
	retries      = 7                      // of a queue pair
	keptLease    = 10 * time.Minute       // of the group in a lab that is kept, where no master renews it
)

// run is one demo under way.
type run struct {
	opts    *Options
	testbed *testbed.Testbed // nil in a fabric
	client  *api.Client      // of the gleamd to which the source is connected
	said    func() string    // what gleamd has written
	key     []byte           // of envelopes
	data    *payload
	plan    transferPlan
	hosts   []*host // hosts[0] sends
	log     *progress
	group   netip.Addr

	disturb *disturbances // of the group's transfer; nil: none
}

// host is a host of the lab with its device and memory.
type host struct {
	lab.Host
	ip    netip.Addr
	dev   *soft.Device
	out   endpoint.MR // data to send; nil for a host that only receives
	mr    endpoint.MR // received data; nil for a host that only sends
	mem   []byte      // the bytes of mr
	maps  [][]byte    // to be unmapped
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
	r.client, r.key, r.said = r.testbed.Client, r.testbed.Key, r.testbed.Daemon.Output
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
	r.plan = transferPlan{op: op, total: int64(len(r.data.bytes)), message: o.MessageSize}
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
	h := &host{Host: at}
	h.ip = h.IPv4
	if r.opts.IPv6 {
		h.ip = h.IPv6
	}
	cfg := soft.Config{Interface: h.Interface, Loss: loss, Seed: r.opts.Seed + uint64(i)}
	if r.opts.Web != "" && i == 0 {
		cfg.Rate = pageRate
	}
	if err := h.NS.Do(func() (err error) { h.dev, err = soft.Open(cfg); return err }); err != nil {
		return nil, fmt.Errorf("host %s: %w", h.Name, err)
	}
	err := r.outgoing(h, i)
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
	if h.mem, err = anonymous(r.plan.total); err != nil {
		return err
	}
	h.maps = append(h.maps, h.mem)
	// Every host has it at another virtual address: the switch translates.
	h.mr, err = h.dev.RegisterMemory(h.mem, uint64(i+1)<<40, endpoint.LocalWrite|endpoint.RemoteWrite)
	return err
}

func (h *host) close() {
	h.dev.Close()
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
		PayloadBytes: r.plan.total, SHA256: r.data.sum, Op: r.opts.Op, MessageSize: r.opts.MessageSize, PathMTU: r.opts.MTU,
		Members: len(r.hosts), Loss: r.opts.Loss, Group: r.group.String(), FastPath: r.opts.FastPath,
	}
}

// join makes the group: host 1 is the master, and collects the others' states.
func (r *run) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	all := make([]session.Participant, len(r.hosts))
	for i, h := range r.hosts {
		all[i] = session.Participant{Name: h.Name, Local: r.local(h), Do: h.NS.Do}
	}
	groups, err := session.Join(ctx, netip.AddrPortFrom(r.hosts[0].ip, exchangePort), r.masterConfig(), all)
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

func (r *run) local(h *host) endpoint.Local {
	l := endpoint.Local{
		Device:     h.dev,
		QPConfig:   r.qpConfig(h),
		HostConfig: endpoint.HostConfig{Auth: envelope.Auth{Keys: envelope.Keys{testbed.KeyID: r.key}, Send: testbed.KeyID}},
	}
	if h.mr != nil && r.plan.op != endpoint.Send {
		l.Memory = h.mr
	}
	return l
}

func (r *run) qpConfig(h *host) endpoint.QPConfig {
	c := endpoint.QPConfig{
		LocalIP: h.ip, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN(),
		MaxSend: depth, MaxRecv: 2 * depth, Timeout: 14, RetryCount: retries, RNRRetry: 7,
	}
	if r.opts.Web != "" {
		c.Timeout = pageTimeout
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
	boxes := make([]*receiveQueue, len(r.hosts))
	for i, h := range r.hosts[1:] {
		boxes[i+1] = &receiveQueue{plan: &r.plan, qp: h.group.QP(), mr: h.mr}
	}
	window := r.hosts[0].group.Info().Window
	sender := r.hosts[0].group.QP()
	bar := r.log.begin("group", r.plan.total)
	m, err := r.measure(ctx, r.hosts[0], boxes[1:], func() error {
		return r.plan.send(ctx, sender, r.hosts[0].out, window.Base, window.RKey, func(n int) { bar.add(n); r.disturb.completed() })
	})
	bar.end()
	if err := errors.Join(err, r.disturb.end()); err != nil {
		return r.explain(err)
	}
	after, err := r.readCounts(ctx)
	if err != nil {
		return err
	}
	res.Seconds, res.SenderLinkBytes, res.Messages = m.seconds, m.linkBytes, r.plan.messages()
	res.SenderRetransmitted = sender.Stats().Retransmitted
	res.Switch = difference(before, after)
	for i, h := range r.hosts[1:] {
		res.Receivers = append(res.Receivers, r.receiver(h, boxes[i+1], m.seconds, r.data.bytes, r.data.sum))
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
		if err := unix.Madvise(h.mem, unix.MADV_DONTNEED); err != nil { // zeroes it
			return err
		}
		a, b, err := r.pair(ctx, r.hosts[0], h)
		if err != nil {
			return err
		}
		defer a.Close()
		defer b.Close()
		out[i], boxes[i] = a, &receiveQueue{plan: &r.plan, qp: b, mr: h.mr}
	}
	bar := r.log.begin(plural(n, "unicast"), r.plan.total*int64(n))
	m, err := r.measure(ctx, r.hosts[0], boxes, func() error {
		return session.Each(n, func(i int) error {
			to := receivers[i].mr
			return r.plan.send(ctx, out[i], r.hosts[0].out, to.Addr(), to.RKey(), bar.add)
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

// pair connects a queue pair of a to one of b, as any RC application does.
func (r *run) pair(ctx context.Context, a, b *host) (qa, qb endpoint.QP, err error) {
	if qa, err = a.dev.CreateQP(r.qpConfig(a)); err != nil {
		return nil, nil, err
	}
	if qb, err = b.dev.CreateQP(r.qpConfig(b)); err != nil {
		return nil, nil, err
	}
	return qa, qb, session.Pair(ctx, qa, qb, r.opts.MTU)
}

// explain adds the switch's state to an error of the group's transfer.
func (r *run) explain(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if g, gerr := r.client.Group(ctx, r.group); gerr == nil && g.WaitsFor.IsValid() {
		err = fmt.Errorf("%w\nthe group's ACK waits for %s (state %s, acknowledged up to 0x%06x, next 0x%06x)", err, g.WaitsFor, g.State, g.AckPSN, g.NextPSN)
	}
	return fmt.Errorf("group transfer: %w", err)
}
