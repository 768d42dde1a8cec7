// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// group is a group with its members, the source first.
type group struct {
	ip      netip.Addr
	members []envelope.MemberRecord // their queue pairs, which nobody has: the benchmark sends frames in their names
	next    uint32                  // packets sent so far
	acked   uint32                  // packets that all receivers have acknowledged
}

// maker makes groups. Package endpoint has a socket for the master of each group, of which an
// address has some 28,000; here all masters share one.
type maker struct {
	opts    *Options
	bed     *testbed.Testbed
	started time.Time
	members []*envelope.Member // the hosts' sides
	sockets []*net.UDPConn     // the sockets of these, and that of the masters
	reading sync.WaitGroup

	mu      sync.Mutex // guards the machines and the masters
	masters map[netip.Addr]*master
	stopped chan struct{}
}

// master is a registration under way.
type master struct {
	*envelope.Master
	ended chan error
}

// newMaker has every host of the star answer envelopes.
func newMaker(o *Options, bed *testbed.Testbed) (_ *maker, err error) {
	m := &maker{opts: o, bed: bed, started: time.Now(), masters: make(map[netip.Addr]*master), stopped: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	for i, h := range bed.Star.Hosts {
		// Groups on the hosts' own link would each take an entry of their neighbour tables,
		// of which the kernel has 1,024 for all namespaces together.
		if err := h.NS.AddRoute(lab.StarGroupsIPv6, lab.StarSwitchIPv6, h.Interface); err != nil {
			return nil, err
		}
		at := netip.AddrPortFrom(h.IPv6, envelope.DefaultPort)
		x, err := envelope.NewMember(envelope.MemberConfig{Local: at, Auth: bed.Key.Auth(), Seed: uint64(i)})
		if err != nil {
			return nil, err
		}
		m.members = append(m.members, x)
		if err := m.serve(h, at, x.Input); err != nil {
			return nil, err
		}
	}
	first := bed.Star.Hosts[0]
	if err := m.serve(first, netip.AddrPortFrom(first.IPv6, 0), m.masterInput); err != nil {
		return nil, err
	}
	m.reading.Go(m.repeat)
	return m, nil
}

// serve gives what comes to an address of a host to a machine.
func (m *maker) serve(h lab.Host, at netip.AddrPort, input func(time.Duration, netip.AddrPort, []byte, *envelope.Output)) error {
	conn, err := lab.In(h.NS, func() (*net.UDPConn, error) { return net.ListenUDP("udp", net.UDPAddrFromAddrPort(at)) })
	if err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	m.sockets = append(m.sockets, conn)
	m.reading.Go(func() {
		var out envelope.Output
		buf := make([]byte, envelope.MaxLen)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue // an ICMP error: the other end repeats its message
			}
			m.call(conn, &out, func(now time.Duration) { input(now, from, buf[:n], &out) })
		}
	})
	return nil
}

// call calls a machine, and sends what it says.
func (m *maker) call(conn *net.UDPConn, out *envelope.Output, fn func(now time.Duration)) {
	m.mu.Lock()
	fn(time.Since(m.started))
	m.mu.Unlock()
	for _, p := range out.Packets {
		_, _ = conn.WriteToUDPAddrPort(p.Data, p.Dst) // an error is a loss: the machines repeat their messages
	}
}

// masterInput gives a message to the master of its group.
func (m *maker) masterInput(now time.Duration, from netip.AddrPort, b []byte, out *envelope.Output) {
	*out = envelope.Output{}
	msg, _ := envelope.Parse(b)
	if x := m.masters[msg.Group]; x != nil {
		x.Input(now, from, b, out)
		m.take(x, out)
	}
}

// take ends a registration of which a master says that it has ended: the lease is longer than a run.
func (m *maker) take(x *master, out *envelope.Output) {
	for _, e := range out.Events {
		if e.Kind == envelope.Registered || e.Kind == envelope.RegistrationFailed {
			x.ended <- e.Err
			delete(m.masters, e.Group)
		}
	}
}

// repeat has the masters repeat what has no answer.
func (m *maker) repeat() {
	var out envelope.Output
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-m.stopped:
			tick.Stop()
			return
		case <-tick.C:
		}
		m.mu.Lock()
		all := slices.Collect(maps.Values(m.masters))
		m.mu.Unlock()
		for _, x := range all {
			m.call(m.sockets[len(m.sockets)-1], &out, func(now time.Duration) {
				if at, ok := x.NextDeadline(); ok && at <= now {
					x.Advance(now, &out)
					m.take(x, &out)
				} else {
					out = envelope.Output{}
				}
			})
		}
	}
}

func (m *maker) close() error {
	close(m.stopped)
	var errs []error
	for _, c := range m.sockets {
		errs = append(errs, c.Close())
	}
	m.reading.Wait()
	return errors.Join(errs...)
}

// groupIP is the address of group number i. Those of IPv6 are more.
func groupIP(i int) netip.Addr {
	b := lab.StarGroupsIPv6.Addr().As16()
	binary.BigEndian.PutUint32(b[12:], binary.BigEndian.Uint32(b[12:])+uint32(i+1))
	return netip.AddrFrom16(b)
}

// make makes all groups, some at once. done is called for each.
func (m *maker) make(ctx context.Context, groups int, done func()) ([]*group, error) {
	all := make([]*group, groups)
	var next atomic.Int64
	err := session.Each(min(m.opts.Parallel, len(all)), func(int) error {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(all) {
				return nil
			}
			var err error
			if all[i], err = m.join(ctx, i); err != nil {
				next.Store(int64(len(all))) // the others end
				return fmt.Errorf("group %d: %w", i, err)
			}
			done()
		}
	})
	return all, err
}

// lease is longer than a run.
const lease = time.Hour

// joinTimeout bounds the making of one group.
const joinTimeout = 30 * time.Second

// join has all hosts join group number i, and its master register it.
func (m *maker) join(ctx context.Context, i int) (*group, error) {
	g := &group{ip: groupIP(i)}
	for k, h := range m.bed.Star.Hosts {
		g.members = append(g.members, envelope.MemberRecord{IP: h.IPv6, QPN: rocev2.QPN(0x1000 + i*len(m.members) + k), SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN()})
	}
	conn := m.sockets[len(m.sockets)-1]
	reg := envelope.Registration{Group: g.ip, GroupParams: mcast.GroupParams{QPN: mcast.DefaultQPN, PathMTU: pathMTU, SenderTimeout: 14, SenderRetries: 7}, Lease: lease, Members: g.members}
	registrar, err := envelope.NewMaster(envelope.MasterConfig{Local: conn.LocalAddr().(*net.UDPAddr).AddrPort(), Auth: m.bed.Key.Auth(), Seed: uint64(i), Deadline: joinTimeout}, reg)
	if err != nil {
		return nil, err
	}
	x := &master{Master: registrar, ended: make(chan error, 1)}
	var out envelope.Output
	m.call(conn, &out, func(now time.Duration) {
		for k := range g.members {
			err = cmp.Or(err, m.members[k].Join(envelope.Membership{MemberRecord: g.members[k], Group: g.ip, VirtualQPN: reg.QPN, PathMTU: pathMTU}))
		}
		m.masters[g.ip] = x
		x.Start(now, &out)
	})
	if err != nil {
		return nil, err
	}
	select {
	case err = <-x.ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return g, err
}
