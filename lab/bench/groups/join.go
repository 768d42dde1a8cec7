// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/rocev2"
)

// idleQP is a queue pair that neither sends nor receives: frames in its name are sent by the
// benchmark itself. Other methods than these are not called.
type idleQP struct {
	endpoint.QP
	info endpoint.QPInfo
}

func (q *idleQP) Info() endpoint.QPInfo                          { return q.info }
func (q *idleQP) Connect(context.Context, endpoint.Remote) error { return nil }
func (q *idleQP) Close() error                                   { return nil }

// group is a group with its queue pairs, the source's first.
type group struct {
	ip     netip.Addr
	qps    []*idleQP
	joined []*endpoint.Group
	next   uint32 // packets sent so far
	acked  uint32 // packets that all receivers have acknowledged
}

// maker makes groups.
type maker struct {
	opts  *Options
	bed   *testbed.Testbed
	hosts []*endpoint.Host // the hosts that answer envelopes
}

// newMaker has every host of the star answer envelopes.
func newMaker(o *Options, bed *testbed.Testbed) (_ *maker, err error) {
	m := &maker{opts: o, bed: bed}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	for _, h := range bed.Star.Hosts {
		// Groups on the hosts' own link would each take an entry of their neighbour tables,
		// of which the kernel has 1,024 for all namespaces together.
		if err := h.NS.AddRoute(lab.StarGroupsIPv6, lab.StarSwitchIPv6, h.Interface); err != nil {
			return nil, err
		}
		x, err := lab.In(h.NS, func() (*endpoint.Host, error) { return endpoint.NewHost(h.IPv6, m.hostConfig()) })
		if err != nil {
			return nil, fmt.Errorf("host %s: %w", h.Name, err)
		}
		m.hosts = append(m.hosts, x)
	}
	return m, nil
}

func (m *maker) hostConfig() endpoint.HostConfig {
	return endpoint.HostConfig{Auth: m.bed.Key.Auth()}
}

func (m *maker) close() error {
	var errs []error
	for _, h := range m.hosts {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}

// groupIP is the address of group number i. Those of IPv6 are more.
func groupIP(i int) netip.Addr {
	b := lab.StarGroupsIPv6.Addr().As16()
	binary.BigEndian.PutUint32(b[12:], binary.BigEndian.Uint32(b[12:])+uint32(i+1))
	return netip.AddrFrom16(b)
}

// lease is longer than a run.
const lease = 10 * time.Minute

// make makes all groups, some at once: each of some makers has a listener at which it makes
// its groups one after the other, as an application does. done is called for each.
func (m *maker) make(ctx context.Context, groups int, done func()) ([]*group, error) {
	all := make([]*group, groups)
	var next atomic.Int64
	err := session.Each(min(m.opts.Parallel, len(all)), func(int) error {
		master := m.bed.Star.Hosts[0]
		ln, err := lab.In(master.NS, func() (net.Listener, error) {
			return net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(master.IPv6, 0)))
		})
		if err != nil {
			return fmt.Errorf("host %s: %w", master.Name, err)
		}
		defer ln.Close()
		for {
			i := int(next.Add(1)) - 1
			if i >= len(all) {
				return nil
			}
			if all[i], err = m.join(ctx, ln, i); err != nil {
				next.Store(int64(len(all))) // the others end
				return fmt.Errorf("group %d: %w", i, err)
			}
			done()
		}
	})
	return all, err
}

// joinTimeout bounds the making of one group.
const joinTimeout = 30 * time.Second

// join makes group number i of all hosts, whose exchange is at ln.
func (m *maker) join(ctx context.Context, ln net.Listener, i int) (*group, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	g := &group{ip: groupIP(i)}
	var all []session.Participant
	for k, h := range m.bed.Star.Hosts {
		q := &idleQP{info: endpoint.QPInfo{IP: h.IPv6, QPN: rocev2.QPN(0x1000 + i*len(m.hosts) + k), SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN()}}
		g.qps = append(g.qps, q)
		all = append(all, session.Participant{Name: h.Name, Do: h.NS.Do, Local: endpoint.Local{QP: q, Host: m.hosts[k], HostConfig: m.hostConfig()}})
	}
	var err error
	g.joined, err = session.Join(ctx, netip.AddrPort{}, endpoint.MasterConfig{Listener: ln, GroupIP: g.ip, PathMTU: pathMTU, Lease: lease}, all)
	return g, err
}
