// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// postAll posts WRITEs of 64 KiB for all of the sender's memory to the group, and returns
// their number.
func (r *rig) postAll(group *endpoint.Group) (n int) {
	r.t.Helper()
	h, window := r.hosts[0], group.Info().Window
	const message = 64 << 10
	for off := 0; off < h.mr.Len(); off += message {
		if _, err := h.qp.PostSend(endpoint.SendWR{
			ID: uint64(n), Op: endpoint.Write, Local: endpoint.Segment{MR: h.mr, Offset: off, Len: message},
			RemoteAddr: window.Base + uint64(off), RKey: window.RKey,
		}); err != nil {
			r.t.Fatal(err)
		}
		n++
	}
	return n
}

// silence runs a transfer of 8 MiB to three receivers and closes C's device in
// its midst. It returns the completions in order, and the longest time that the
// sender waited for one.
func silence(r *rig, groups []*endpoint.Group) (statuses []endpoint.Status, stall time.Duration) {
	r.t.Helper()
	h, n := r.hosts[0], r.postAll(groups[0])
	var wc [1]endpoint.Completion
	for last := time.Now(); len(statuses) < n; {
		k, err := h.qp.Poll(r.ctx, wc[:])
		if err != nil {
			g, _ := r.engine.Group(r.group)
			r.t.Fatalf("%d of %d completions: %v\ngroup %+v", len(statuses), n, err, g)
		}
		for _, c := range wc[:k] {
			if c.ID != uint64(len(statuses)) {
				r.t.Fatalf("completion of %d, want %d", c.ID, len(statuses))
			}
			statuses = append(statuses, c.Status)
		}
		now := time.Now()
		if len(statuses) > 1 {
			stall = max(stall, now.Sub(last))
		}
		last = now
		if len(statuses) == n/4 {
			r.hosts[2].dev.Close()
		}
	}
	return statuses, stall
}

// silentAfter is longer than a receiver's program waits for a CPU on a busy machine: with
// 150 ms live receivers were taken for dead.
const silentAfter = 1500 * time.Millisecond

// senderTimeout is 537 ms: seven of them last longer than silentAfter.
const senderTimeout = 17

// silent is the reason that is given for a member that the switch took for dead.
const silent = "silent for dead_after: the switch took it for dead"

// A receiver falls silent in the midst of a transfer: its device is closed, its
// host still answers envelopes.
func TestSilentMember(t *testing.T) {
	for name, policy := range map[string]func(*endpoint.MasterConfig){
		"evict":    func(c *endpoint.MasterConfig) { c.Policy = mcast.Evict },
		"quorum:2": func(c *endpoint.MasterConfig) { c.Policy, c.Quorum = mcast.Quorum, 2 },
		"strict":   func(c *endpoint.MasterConfig) { c.Policy = mcast.Strict },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 4}, memory: 8 << 20, qp: func(_ int, c *endpoint.QPConfig) {
				c.Timeout = senderTimeout
			}})
			groups := r.joinByMaster(func(c *endpoint.MasterConfig) {
				c.DeadAfter, c.SenderTimeout, c.SenderRetries = silentAfter, senderTimeout, 7
				policy(c)
			})
			want := bytes.Clone(r.fill(0))
			dead, machine := r.hosts[2].ip, labtest.Watch()
			statuses, stall := silence(r, groups)
			t.Logf("the sender waited for at most %v", stall)
			kind, reason := api.EventEvicted, silent
			if name == "strict" {
				kind, reason = api.EventFailed, silent+"; the source got a fatal NAK 0x63, remote operational error (completion status 11)"
				strictFails(r, groups, statuses, want)
			} else {
				if i := slices.IndexFunc(statuses, func(s endpoint.Status) bool { return s != endpoint.Success }); i >= 0 {
					t.Fatalf("message %d: %v", i, statuses[i])
				}
				for _, i := range []int{1, 3} { // under the quorum no less: they are the two
					if !bytes.Equal(r.hosts[i].mr.Bytes(), want) {
						t.Errorf("%s does not have the bytes", r.hosts[i].Name)
					}
				}
				if stall > 4*silentAfter { // twice that on an idle box
					machine.Timing(t, "the sender waited for %v", stall)
				}
				e := awaitEvent(t, groups[0], endpoint.Evicted)
				if e.Member != dead || e.Cause() != silent || e.Reason != envelope.Evicted {
					t.Errorf("the master heard %+v", e)
				}
				if e := awaitEvent(t, groups[2], endpoint.Evicted); e.Cause() != silent {
					t.Errorf("the member heard %+v", e)
				}
				g, err := r.engine.Group(r.group)
				if err != nil || len(g.Members) != 3 || len(g.Former) != 1 || g.Former[0].IP != dead || g.Former[0].Reason != "evicted: "+silent || g.Former[0].PSN == nil {
					t.Errorf("the group shows %+v, %v", g, err)
				}
			}
			until(t, "the event "+kind, func() bool {
				es, err := r.engine.Events(canceled(), 0)
				return err == nil && slices.ContainsFunc(es.Events, func(e api.Event) bool {
					return e.Kind == kind && e.Member == dead && e.Group == r.group && e.PSN != nil && strings.HasPrefix(e.Reason, reason)
				})
			})
		})
	}
}

// strictFails checks that the sender got its error, at the right message.
func strictFails(r *rig, groups []*endpoint.Group, statuses []endpoint.Status, want []byte) {
	r.t.Helper()
	const message = 64 << 10
	bad := slices.IndexFunc(statuses, func(s endpoint.Status) bool { return s != endpoint.Success })
	if bad < 0 || statuses[bad] != endpoint.RemoteOpErr {
		r.t.Fatalf("statuses %v: want a remote operation error", statuses)
	}
	for _, s := range statuses[bad+1:] {
		if s != endpoint.WRFlushErr {
			r.t.Errorf("after the error: %v", s)
		}
	}
	for _, h := range r.hosts[1:] { // also the dead one has the completed messages
		if !bytes.Equal(h.mr.Bytes()[:bad*message], want[:bad*message]) {
			r.t.Errorf("%s lacks messages that were completed", h.Name)
		}
	}
	if e := awaitEvent(r.t, groups[0], endpoint.Failed); e.Member != r.hosts[2].ip || e.Code != mcast.Silent {
		r.t.Errorf("the master heard %+v", e)
	}
}

// canceled is a context for a call that does not wait.
func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// awaitEvent returns the next event of a kind, and passes over others.
func awaitEvent(t testing.TB, g *endpoint.Group, kind endpoint.EventKind) endpoint.Event {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case e := <-g.Events():
			if e.Kind == kind {
				return e
			}
		case <-late:
			t.Fatalf("no event %v", kind)
		}
	}
}

// latecomer is a member that joins, with its queue pair and memory.
type latecomer struct {
	h    *rigHost
	host *endpoint.Host
	g    *endpoint.Group
}

// late lets a host join through the master's group, by add or update.
func (r *rig) late(master *endpoint.Group, l *latecomer, replace bool) error {
	r.t.Helper()
	var ln net.Listener
	at := netip.AddrPortFrom(r.hosts[0].ip, 7002).String()
	if err := r.hosts[0].NS.Do(func() (err error) { ln, err = net.Listen("tcp", at); return err }); err != nil {
		r.t.Fatal(err)
	}
	defer ln.Close()
	joined := make(chan error, 1)
	go func() {
		joined <- l.h.NS.Do(func() (err error) {
			if l.host == nil {
				if l.host, err = endpoint.NewHost(l.h.ip, endpoint.HostConfig{Auth: testAuth()}); err != nil {
					return err
				}
			}
			l.g, err = endpoint.Member(r.ctx, endpoint.MemberConfig{
				Local: endpoint.Local{QP: l.h.qp, Memory: l.h.mr, Host: l.host}, Master: at,
			})
			return err
		})
	}()
	var err error
	if replace {
		err = master.UpdateFrom(r.ctx, ln)
	} else {
		err = master.AddFrom(r.ctx, ln)
	}
	return errors.Join(err, <-joined)
}

// fresh gives a host another queue pair with other PSNs.
func (r *rig) fresh(h *rigHost) {
	r.t.Helper()
	var err error
	if h.qp, err = h.dev.CreateQP(endpoint.QPConfig{LocalIP: h.ip, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN()}); err != nil {
		r.t.Fatal(err)
	}
}

// While messages flow, E joins, C restarts its queue pair, D leaves, D comes back, and
// B is removed by the master: each of them gets every message from the one after its
// joining on, and the others are not affected.
func TestMembersComeAndGo(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 5}})
	e := r.hosts[4]
	r.hosts = r.hosts[:4]
	groups := r.joinByMaster(func(c *endpoint.MasterConfig) { c.Policy, c.DeadAfter = mcast.Evict, 400*time.Millisecond })
	s := r.stream()
	defer s.others.Wait()
	var vs []*receiver
	for _, h := range r.hosts[1:] {
		vs = append(vs, s.receive(h.Name, h.qp, h.mr))
	}
	b, c, d := vs[0], vs[1], vs[2]
	s.reaches(b)

	ve := s.receive(e.Name, e.qp, e.mr)
	le := &latecomer{h: e}
	if err := r.late(groups[0], le, false); err != nil {
		t.Fatal(err)
	}
	defer le.host.Close()
	s.reaches(ve)
	if ve.first.Load() == 0 {
		t.Error("E got messages from before it joined")
	}
	if ev := awaitEvent(t, groups[0], endpoint.MemberJoined); ev.Member != e.ip {
		t.Errorf("the master heard %+v", ev)
	}

	// C's queue pair dies and another one replaces it. The Host of its host goes with
	// the process; here, with the group that made it.
	h := *r.hosts[2]
	h.qp.Close()
	<-c.ended
	r.fresh(&h)
	vc := s.receive(h.Name, h.qp, h.mr)
	old := groups[2]
	lc := &latecomer{h: &h}
	if err := old.Leave(r.ctx); err != nil { // frees its slot at the host
		t.Fatal(err)
	}
	old.Close()
	if err := r.late(groups[0], lc, true); err != nil {
		t.Fatal(err)
	}
	defer lc.host.Close()
	s.reaches(vc)

	// Again, but without leaving: Update replaces the old one.
	again := h
	h.qp.Close()
	<-vc.ended
	lc.host.Close()
	r.fresh(&again)
	lc = &latecomer{h: &again}
	if err := r.late(groups[0], lc, false); err == nil || !strings.Contains(err.Error(), "Update is for one that has restarted") {
		t.Errorf("Add of a member's address: %v", err)
	}
	again.qp.Close()
	r.fresh(&again)
	vc = s.receive(again.Name, again.qp, again.mr)
	if err := r.late(groups[0], lc, true); err != nil {
		t.Fatal(err)
	}
	defer lc.host.Close()
	s.reaches(vc)

	if err := groups[3].Leave(r.ctx); err != nil { // D
		t.Fatal(err)
	}
	if ev := awaitEvent(t, groups[0], endpoint.MemberLeft); ev.Member == netip.Addr(r.hosts[3].ip) && ev.Reason != envelope.Left {
		t.Errorf("the master heard %+v", ev)
	}
	if err := groups[0].Remove(r.ctx, r.hosts[1].ip); err != nil { // B
		t.Fatal(err)
	}
	if err := groups[0].Remove(r.ctx, r.hosts[1].ip); err == nil {
		t.Error("removed twice")
	}
	s.reaches(vc)
	atB, atD := b.next.Load(), d.next.Load()
	s.reaches(ve)
	if b.next.Load() != atB || d.next.Load() != atD {
		t.Error("messages reach members that are out of the group")
	}
	s.stop(vc, ve)
	if g, err := r.engine.Group(r.group); err != nil || len(g.Members) != 3 || g.Counters.DataIn == 0 {
		t.Errorf("the group shows %+v, %v", g, err)
	}
	if n := len(groups[0].Peers()); n != 2 {
		t.Errorf("the master has %d peers", n)
	}
	for _, h := range []*rigHost{e, &again} {
		h.qp.Close()
	}
	for _, h := range r.hosts[1:] {
		h.qp.Close()
	}
}

// C is evicted, and comes back with another queue pair at the same host.
func TestEvictedAndBack(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}})
	groups := r.joinByMaster(func(c *endpoint.MasterConfig) { c.Policy, c.DeadAfter = mcast.Evict, 150*time.Millisecond })
	s := r.stream()
	defer s.others.Wait()
	b := s.receive("B", r.hosts[1].qp, r.hosts[1].mr)
	c := s.receive("C", r.hosts[2].qp, r.hosts[2].mr)
	s.reaches(c)
	r.hosts[2].qp.Close()
	<-c.ended
	if ev := awaitEvent(t, groups[0], endpoint.Evicted); ev.Member != r.hosts[2].ip || ev.Cause() != silent {
		t.Errorf("the master heard %+v", ev)
	}
	awaitEvent(t, groups[2], endpoint.Evicted)
	groups[2].Close()
	s.reaches(b)
	h := *r.hosts[2]
	r.fresh(&h)
	v := s.receive("C", h.qp, h.mr)
	l := &latecomer{h: &h}
	if err := r.late(groups[0], l, false); err != nil {
		t.Fatal(err)
	}
	defer l.host.Close()
	s.reaches(v)
	s.stop(b, v)
	h.qp.Close()
	r.hosts[1].qp.Close()
}

// A group that was registered by hand, changed by hand.
func TestMembersByHand(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 4}, policy: "quorum:1"})
	all := r.hosts
	d := all[3]
	r.hosts = all[:3]
	r.join()
	s := r.stream()
	defer s.others.Wait()
	b := s.receive("B", all[1].qp, all[1].mr)
	c := s.receive("C", all[2].qp, all[2].mr)
	s.reaches(b)

	vd := s.receive("D", d.qp, d.mr)
	if err := d.qp.Connect(r.ctx, endpoint.Remote{IP: r.group, QPN: virtualQPN, PathMTU: r.c.pathMTU, RQPSN: d.qp.Info().RQPSN}); err != nil {
		t.Fatal(err)
	}
	r.hosts = all
	add := &api.AddMember{RegisterMember: r.registration().Members[3]}
	if err := r.engine.AddMember(r.group, add); err != nil {
		t.Fatal(err)
	}
	s.reaches(vd)
	if err := r.engine.AddMember(r.group, add); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("added twice: %v", err)
	}
	if err := r.engine.RemoveMember(r.group, all[2].ip); err != nil {
		t.Fatal(err)
	}
	if err := r.engine.RemoveMember(r.group, all[2].ip); err == nil {
		t.Error("removed twice")
	}
	s.reaches(vd)
	last := c.next.Load()
	s.reaches(b)
	if c.next.Load() != last {
		t.Error("messages reach a member that is out of the group")
	}
	s.stop(b, vd)
	if g, err := r.engine.Group(r.group); err != nil || g.Policy != "quorum:1" || len(g.Former) != 1 {
		t.Errorf("the group shows %+v, %v", g, err)
	}
	for _, h := range all[1:] {
		h.qp.Close()
	}
}
