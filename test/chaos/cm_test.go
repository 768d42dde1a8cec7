// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/cmhost"
)

const (
	packet = 1024 // bytes of a message to a group by RDMA-CM
	slots  = 8    // its receivers' buffers
)

// byCM is a group of one switch that its members join by RDMA-CM, again and again.
type byCM struct {
	*life
	at     *fabric.Switch
	agents map[*host]*cmhost.Agent
}

// newByCM returns nil where no switch has two hosts.
func newByCM(r *round, i int) *byCM {
	c := &byCM{life: newLife(r, i), agents: make(map[*host]*cmhost.Agent)}
	c.policy = mcast.Strict
	for _, s := range r.bed.Switches {
		var hosts []*host
		for _, h := range r.hosts {
			if h.Switch == s {
				hosts = append(hosts, h)
			}
		}
		if len(hosts) < 2 {
			continue
		}
		c.at = s
		for _, h := range hosts {
			c.agents[h] = cmhost.New(r.t, h.Host, h.IPv4, c.ip)
		}
		return c
	}
	return nil
}

func (c *byCM) run(ctx context.Context) {
	for n := 1; ctx.Err() == nil; n++ {
		c.name = fmt.Sprintf("group %s by CM, registration %d", c.ip, n)
		if err := c.session(ctx, 10+c.rng.IntN(500)); err != nil {
			c.r.note("%s ends: %v", c.name, err)
			c.r.count("CM groups that failed")
		}
		sleep(ctx, again)
	}
}

func (c *byCM) heals() {
	c.name = fmt.Sprintf("group %s by CM, after the last fault", c.ip)
	c.healsBy(func() bool {
		err := c.session(context.Background(), 20)
		c.r.note("%s: %v", c.name, err)
		return err == nil
	})
}

// session creates the group, has its members connect, sends messages, and deletes it.
func (c *byCM) session(ctx context.Context, messages int) (err error) {
	c.members, c.begun = nil, time.Now()
	for _, h := range c.r.hosts {
		if c.agents[h] != nil {
			c.members = append(c.members, &member{host: h})
		}
	}
	c.rng.Shuffle(len(c.members), func(i, j int) { c.members[i], c.members[j] = c.members[j], c.members[i] })
	c.register(c.members)
	defer c.register(nil)
	source := c.members[0]
	client := c.r.bed.Gleamds[c.at.Name].Client
	within, cancel := context.WithTimeout(context.Background(), joinTimeout)
	defer cancel()
	_ = client.Delete(within, c.ip) // an earlier one that could not be deleted
	if err := client.CreateGroup(within, &api.CreateGroup{
		Group: c.ip, Port: cmhost.Port, Expect: len(c.members), PMTU: packet, Policy: api.PolicyStrict, WaitMS: int(joinTimeout.Milliseconds()),
		From: []netip.Prefix{netip.PrefixFrom(source.IPv4, 16)},
	}); err != nil {
		return err
	}
	var q *cmhost.Requester
	qps := make([]endpoint.QP, len(c.members))
	defer func() {
		_ = session.Each(len(c.members), func(i int) error { c.agents[c.members[i].host].Disconnect(200 * time.Millisecond); return nil })
		if q != nil {
			q.Close()
		}
		for i, m := range c.members {
			if qps[i] != nil {
				_ = qps[i].Close()
			}
			if m.mr != nil {
				_ = m.mr.Close()
			}
		}
	}()
	for i, m := range c.members[1:] {
		if qps[i+1], err = c.receiver(m); err != nil {
			return err
		}
	}
	if err := session.Each(len(c.members), func(i int) (err error) {
		if i == 0 {
			q, err = c.agents[source.host].Dial(c.r.t, joinTimeout)
			return err
		}
		qp := qps[i].Info()
		reply, err := c.agents[c.members[i].host].Connect(qp.QPN, qp.RQPSN, joinTimeout)
		if err == nil {
			err = qps[i].Connect(context.Background(), endpoint.Remote{IP: c.ip, QPN: reply.QPN, PathMTU: packet, RQPSN: qp.RQPSN})
		}
		return err
	}); err != nil {
		return err
	}
	c.r.count("CM groups registered")
	for n := 0; n < messages && ctx.Err() == nil; n++ {
		if err := c.message(q, qps, n); err != nil {
			c.failed(fmt.Errorf("message %d: %w", n, err))
			return err
		}
	}
	return nil
}

// receiver gives a member a queue pair with buffers.
func (c *byCM) receiver(m *member) (endpoint.QP, error) {
	x, err := c.equip(m)
	if err != nil {
		return nil, err
	}
	qp, err := x.Device.CreateQP(x.QPConfig())
	for i := 0; i < slots && err == nil; i++ {
		_, err = qp.PostRecv(endpoint.RecvWR{Local: endpoint.Segment{MR: m.mr, Offset: i * packet, Len: packet}})
	}
	return qp, err
}

// message sends a message, and compares it at each receiver when it is complete.
func (c *byCM) message(q *cmhost.Requester, qps []endpoint.QP, n int) error {
	want := bytes.Repeat([]byte{byte(c.rng.Uint32()), byte(n), byte(n >> 8), byte(c.index)}, packet/4)
	if err := q.Post(want); err != nil {
		return err
	}
	source, stood := c.members[0], time.Now()
	for {
		wait, cancel := context.WithTimeout(context.Background(), time.Second)
		err := q.Wait(wait)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if c.stall(source, stood) >= stuckTime {
			if why := c.r.why(c.ip, stood.Add(-time.Second)); why != "" {
				return errors.New(why)
			}
			c.r.wrong("%s: source %s has had no completion for %v, and nothing says why", c.name, source.Name, stuckTime)
			return errors.New("it stands still")
		}
	}
	c.r.completed(1, c.stall(source, stood))
	for i, m := range c.members[1:] {
		at, wcs := n%slots*packet, make([]endpoint.Completion, 1)
		has := bytes.Equal(m.mr.Bytes()[at:at+packet], want)
		switch {
		case c.isKilled(m):
			continue
		case !has:
			c.r.wrong("%s: FALSE COMPLETION: message %d of %s is complete, and %s does not have it", c.name, n, source.Name, m.Name)
			return errors.New("a false completion")
		}
		wait, cancel := context.WithTimeout(context.Background(), time.Second)
		_, err := qps[i+1].Poll(wait, wcs)
		cancel()
		if err == nil {
			_, err = qps[i+1].PostRecv(endpoint.RecvWR{Local: endpoint.Segment{MR: m.mr, Offset: at, Len: packet}})
		}
		if err := errors.Join(err, wcs[0].Err()); err != nil && !c.isKilled(m) {
			return fmt.Errorf("receiver %s: %w", m.Name, err)
		}
	}
	return nil
}
