// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/host/endpoint/verbs"
	"github.com/gleam-rdma/gleam/rocev2"
)

const (
	windowBase = 0x5000_0000_0000
	memory     = 8 << 20 // bytes of each member's region
)

// groupSpec describes a group to make. hosts[0] is the source and the master.
type groupSpec struct {
	number  int // the number of the group: its address
	hosts   []*host
	v6      bool
	mtu     int
	first   *rocev2.PSN // the first PSN of the source's send queue; nil: any
	expect  *rocev2.PSN // the first PSN of every receiver's receive queue; nil: any
	timeout uint8       // 0: 18, 1.07 s, which emulation does not exceed
	retries uint8       // the retries of all but the source; 0: 7
	// Changes of the master's configuration; nil: none.
	master func(*endpoint.MasterConfig)
}

func (s *groupSpec) String() string {
	family := "IPv4"
	if s.v6 {
		family = "IPv6"
	}
	return fmt.Sprintf("%d receivers, %s, path MTU %d", len(s.hosts)-1, family, s.mtu)
}

// member is one member of a group.
type member struct {
	*host
	qp    endpoint.QP
	mr    endpoint.MR
	group *endpoint.Group
	free  func() error
}

// group is a registered group: members[from] is the source.
type group struct {
	spec    *groupSpec
	ip      netip.Addr
	rkey    uint32
	members []*member
	from    int
	batches int // batches so far: each has other bytes
}

func groupAddr(number int, v6 bool) netip.Addr {
	if v6 {
		return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 12: 0x6c, 13: 0x65, 15: byte(number)})
	}
	return netip.AddrFrom4([4]byte{10, 77, 254, byte(number)})
}

// newGroup makes the queue pairs and registers the group by envelopes.
func newGroup(ctx context.Context, spec *groupSpec) (*group, error) {
	g := &group{spec: spec, ip: groupAddr(spec.number, spec.v6)}
	for i, h := range spec.hosts {
		mb, err := spec.equip(i, h)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("host %d: %w", h.index, err), g.close())
		}
		g.members = append(g.members, mb)
	}
	if err := g.register(ctx); err != nil {
		return nil, errors.Join(err, g.close())
	}
	g.rkey = g.members[0].group.Info().Window.RKey
	return g, nil
}

// equip gives host h, member i, a region and a queue pair.
func (s *groupSpec) equip(i int, h *host) (*member, error) {
	mb := &member{host: h}
	buf, free, err := verbs.Alloc(memory)
	if err != nil {
		return nil, err
	}
	mb.free = free
	// Another address at each, that the switch has to put into the RETH.
	base := uint64(0x7000_0000_0000) + uint64(h.index)<<32
	if mb.mr, err = h.device.RegisterMemory(buf, base, endpoint.LocalWrite|endpoint.RemoteWrite); err != nil {
		return nil, errors.Join(err, mb.close())
	}
	cfg := endpoint.QPConfig{
		LocalIP: h.addr(s.v6), SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN(),
		Timeout: s.timeout, RetryCount: cmp.Or(s.retries, 7), RNRRetry: 7,
	}
	if s.timeout == 0 {
		cfg.Timeout = 18
	}
	if i == 0 {
		cfg.RetryCount = 7
	}
	if i == 0 && s.first != nil {
		cfg.SQPSN = *s.first
	}
	if i > 0 && s.expect != nil {
		cfg.RQPSN = *s.expect
	}
	if mb.qp, err = h.device.CreateQP(cfg); err != nil {
		return nil, errors.Join(err, mb.close())
	}
	return mb, nil
}

// register has all members join: the source as the master.
func (g *group) register(ctx context.Context) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer ln.Close()
	m := endpoint.MasterConfig{Listener: ln, OtherNetwork: true, GroupIP: g.ip, PathMTU: g.spec.mtu, WindowBase: windowBase, ReadyTimeout: linkWait}
	if g.spec.master != nil {
		g.spec.master(&m)
	}
	all := make([]session.Participant, len(g.members))
	for i, mb := range g.members {
		all[i] = session.Participant{Name: string(rune('A' + i)), Local: endpoint.Local{QP: mb.qp, Memory: mb.mr, Host: mb.confirm(g.spec.v6)}}
		all[i].Local.HostConfig.Auth = auth
		if i == 0 {
			all[i].Do = mb.ns.Do // the master speaks to the switch from where its interface is
		}
	}
	groups, err := session.Join(ctx, netip.AddrPort{}, m, all)
	for i := range groups {
		g.members[i].group = groups[i]
	}
	return err
}

// close ends the group. The master goes first: then it is over for all.
func (g *group) close() error {
	var errs []error
	for _, mb := range g.members {
		errs = append(errs, mb.close())
	}
	return errors.Join(errs...)
}

func (mb *member) close() error {
	var errs []error
	if mb.group != nil {
		errs = append(errs, mb.group.Close())
	}
	if mb.qp != nil {
		errs = append(errs, mb.qp.Close())
	}
	if mb.mr != nil {
		errs = append(errs, mb.mr.Close())
	}
	if len(errs) == 0 || errors.Join(errs...) == nil { // else the device may still use it
		errs = append(errs, mb.free())
	}
	return errors.Join(errs...)
}

func (g *group) source() *member { return g.members[g.from] }

// receivers are all members but the source.
func (g *group) receivers() []*member {
	return append(slices.Clone(g.members[:g.from]), g.members[g.from+1:]...)
}
