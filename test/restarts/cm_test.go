// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/cmhost"
)

// agents starts the agents of the three members.
func (s *scene) agents() {
	s.t.Helper()
	if s.cm != nil {
		return
	}
	s.cm = make(map[string]*cmhost.Agent)
	for _, name := range []string{"a", "b", "c"} {
		h := s.open(name, nil, 0) // the device has the port of RoCEv2
		s.cm[name] = cmhost.New(s.t, h.Host, h.ip, s.address())
	}
}

// scripted is a source by RDMA-CM.
type scripted struct{ *cmhost.Requester }

func (q scripted) depth() int { return 1 }

func (q scripted) post(_ *group, _ int, payload []byte) error { return q.Post(payload) }

func (q scripted) wait(ctx context.Context) (int, error) {
	if err := q.Wait(ctx); err != nil {
		return 0, err
	}
	return 1, nil
}

// byCM makes the members of a group that is created: a is a scripted source, b and c have queue pairs that take its SENDs.
func (s *scene) byCM() *group {
	s.t.Helper()
	g := s.newGroup(1)
	for _, name := range []string{"a", "b", "c"} {
		m, _ := g.equip(s.open(name, nil, 0))
		g.members = append(g.members, m)
	}
	return g
}

// receiver gives a member a queue pair with buffers.
func (g *group) receiver(m *member, first rocev2.PSN) error {
	c := queuePair(m.host)
	c.SQPSN = first
	qp, err := m.dev.CreateQP(c)
	for slot := 0; slot < slots && err == nil; slot++ {
		_, err = qp.PostRecv(endpoint.RecvWR{Local: endpoint.Segment{MR: m.mr, Offset: slot * pathMTU, Len: pathMTU}})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		m.recv, m.info = qp, qp.Info()
	}
	return err
}

func (g *group) connectReceiver(m *member, number rocev2.QPN) error {
	return m.recv.Connect(g.s.ctx, endpoint.Remote{IP: g.ip, QPN: number, PathMTU: pathMTU, RQPSN: m.info.RQPSN})
}

// dial has the program of a connect, as the source of the group.
func (g *group) dial() error {
	m := g.member("a")
	q, err := g.s.cm["a"].Dial(g.s.t, patience)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m.info = endpoint.QPInfo{IP: m.ip, QPN: q.Own, SQPSN: q.PSN, RQPSN: q.First}
	m.source, g.qpn = scripted{q}, q.Dest
	return nil
}

// all waits for what was begun for each member.
func all(fs ...func() error) error {
	errs := make([]error, len(fs))
	var w sync.WaitGroup
	for i, f := range fs {
		w.Go(func() { errs[i] = f() })
	}
	w.Wait()
	return errors.Join(errs...)
}

// byCMJoined creates a group to which all members connect.
func byCMJoined(s *scene) *group {
	s.t.Helper()
	s.agents()
	s.must(s.client().CreateGroup(s.ctx, &api.CreateGroup{
		Group: s.address(), Port: cmhost.Port, Expect: 3, PMTU: pathMTU, Policy: api.PolicyStrict, WaitMS: 60_000, From: []netip.Prefix{netip.PrefixFrom(s.hosts["a"].ip, s.address().BitLen()/2)},
	}))
	g := s.byCM()
	joins := []func() error{g.dial}
	for _, name := range []string{"b", "c"} {
		m := g.member(name)
		joins = append(joins, func() error {
			if err := g.receiver(m, 0); err != nil {
				return err
			}
			reply, err := s.cm[name].Connect(m.info.QPN, m.info.RQPSN, patience)
			return errors.Join(err, g.connectReceiver(m, reply.QPN))
		})
	}
	s.must(all(joins...))
	return g
}

// byCMDialled creates a group whose listeners are dialled, and has a dial.
func byCMDialled(s *scene) *group {
	s.t.Helper()
	s.agents()
	c := &api.CreateGroup{
		Group: s.address(), Port: cmhost.Port, Policy: api.PolicyStrict, WaitMS: 60_000, Sessions: 1, Replies: api.RepliesLeader, From: []netip.Prefix{netip.PrefixFrom(s.hosts["a"].ip, s.address().BitLen())},
	}
	for _, name := range []string{"b", "c"} {
		c.Listeners = append(c.Listeners, netip.AddrPortFrom(s.hosts[name].ip, 9))
	}
	s.must(s.client().CreateGroup(s.ctx, c))
	return dialled(s)
}

// dialled is one session.
func dialled(s *scene) *group {
	s.t.Helper()
	g := s.byCM()
	for _, name := range []string{"b", "c"} {
		m := g.member(name)
		s.cm[name].Listen(func(r *cm.Request) cm.Reply {
			err := g.receiver(m, r.PSN)
			if err == nil {
				err = g.connectReceiver(m, r.QPN)
			}
			if err != nil {
				s.t.Errorf("listener %s: %v", name, err)
			}
			return cm.Reply{QPN: m.info.QPN, PSN: m.info.RQPSN, GUID: cm.GUID(m.MAC[5]) + 1, FlowControl: true, RNRRetry: 7}
		})
	}
	s.must(g.dial())
	s.until("the listeners are connected", func() bool { return s.cm["b"].Is("connected") && s.cm["c"].Is("connected") })
	return g
}

// disconnects has c's program end: its kernel says so until it is answered.
func disconnects(s *scene) {
	s.t.Helper()
	s.group.out("c")
	s.told = s.cm["c"].Disconnect(time.Second)
}

// hasDisconnected has c's kernel say it again if nobody has answered, and then closes its queue pair.
func hasDisconnected(s *scene) {
	s.t.Helper()
	s.mend() // else nobody is told that a member has left
	if !s.told && !s.cm["c"].Disconnect(patience) {
		s.t.Errorf("nobody answers the DREQ of c")
	}
	s.check(s.group.member("c").recv.Close())
}

// dialsAgain waits until both sides know that the session has ended, and has a dial the next one.
func dialsAgain(s *scene) {
	s.t.Helper()
	s.mend() // else nobody is told of the end, and no members are taken
	s.quiet()
	for name, a := range s.cm {
		s.until(name+" is disconnected", func() bool { s.hosts[name].announce(a.Wire); return a.Is("left") })
	}
	s.group = dialled(s)
	s.attacked.Store(s.group)
}
