// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// table answers every registration with its verdict.
type table struct{ verdict envelope.Verdict }

func (t *table) Install(*envelope.Registration, envelope.KeyID) envelope.Verdict { return t.verdict }
func (t *table) Remove(netip.Addr, envelope.EndReason)                           {}
func (*table) HadSource(netip.Addr) bool                                         { return false }
func (*table) FromMember(_, _ netip.Addr, _ envelope.KeyID, _ bool) bool         { return true }

func (t *table) RemoveMember(netip.Addr, envelope.MemberKey, envelope.EndReason) {}

const (
	groupBase = 0x10_0000
	memSize   = 1 << 16
	oobPort   = 7001
)

var (
	accepted = envelope.Verdict{Kind: envelope.VerdictAccepted}
	rejected = envelope.Verdict{Kind: envelope.VerdictRejected, Problem: envelope.Problem{Reason: envelope.TableFull, Value: 5}}
)

var auth = envelope.Auth{Keys: envelope.Keys{1: []byte(strings.Repeat("k", envelope.MinKeyLen))}, Send: 1}

// world is a star whose switch has the group's address itself, so that its kernel answers
// ARP, and a registrar there. It has no data path.
type world struct {
	*lab.Star
	ctx       context.Context
	group     netip.Addr
	v6        bool
	registrar *endpoint.TestRegistrar
	devices   []*soft.Device
	hosts     []*endpoint.Host       // nil: every group has its own
	auths     map[int]*envelope.Auth // keys by host; hosts without an entry share one key
	deadline  time.Duration          // the deadline of the machines; 0: 2 s
}

func newWorld(t *testing.T, hosts int, v6 bool, verdict envelope.Verdict, key envelope.Auth) *world {
	t.Helper()
	w := &world{Star: labtest.Star(t, lab.StarConfig{Hosts: hosts}), v6: v6, group: netip.MustParseAddr("10.77.254.1")}
	prefix := lab.StarGroupsIPv4
	if v6 {
		w.group, prefix = netip.MustParseAddr("fd77::6c65:1"), lab.StarGroupsIPv6
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	w.ctx = ctx
	w.serve(t, w.group, prefix, verdict, key)
	for _, h := range w.Hosts {
		err := h.NS.Do(func() error {
			d, err := soft.Open(soft.Config{Interface: h.Interface, ResolveTimeout: 1500 * time.Millisecond})
			if err == nil {
				w.devices = append(w.devices, d)
				t.Cleanup(func() { d.Close() })
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// serve makes the switch serve one more group, the one of the next join.
func (w *world) serve(t *testing.T, group netip.Addr, prefix netip.Prefix, verdict envelope.Verdict, key envelope.Auth) {
	t.Helper()
	w.group = group
	if err := w.Switch.AddAddr(lab.StarBridge, netip.PrefixFrom(group, group.BitLen())); err != nil {
		t.Fatal(err)
	}
	reg, err := envelope.NewRegistrar(envelope.RegistrarConfig{
		Secret: [envelope.SecretLen]byte{42}, Auth: key, Prefixes: []netip.Prefix{prefix}, MaxPMTU: 1024, DefaultLease: time.Second,
	}, &table{verdict})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Switch.Do(func() (err error) {
		w.registrar, err = endpoint.ListenRegistrar(netip.AddrPortFrom(w.group, envelope.DefaultPort), reg)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r := w.registrar
	t.Cleanup(func() { r.Close() })
}

func (w *world) ip(i int) netip.Addr {
	if w.v6 {
		return w.Hosts[i].IPv6
	}
	return w.Hosts[i].IPv4
}

// local returns host i's Local. Every host's memory has another address.
func (w *world) local(i int) endpoint.Local {
	m, err := w.devices[i].RegisterMemory(make([]byte, memSize+i), uint64(i)<<32, endpoint.RemoteWrite)
	if err != nil {
		panic(err)
	}
	var shared *endpoint.Host
	if w.hosts != nil {
		shared = w.hosts[i]
	}
	return endpoint.Local{
		Host:   shared,
		Device: w.devices[i], QPConfig: endpoint.QPConfig{LocalIP: w.ip(i)}, Memory: m,
		HostConfig: endpoint.HostConfig{Auth: *cmp.Or(w.auths[i], &auth), Deadline: cmp.Or(w.deadline, 2*time.Second)}, App: json.RawMessage(fmt.Sprint(i)),
	}
}

type joined struct {
	i   int
	g   *endpoint.Group
	err error
}

// join runs all hosts' joins, the master's with cfg, and returns their groups
// and errors by host. Host 0 is the master.
func (w *world) join(t *testing.T, ctx context.Context, cfg endpoint.MasterConfig) ([]*endpoint.Group, []error) {
	t.Helper()
	results := make(chan joined)
	at := netip.AddrPortFrom(w.ip(0), oobPort).String()
	for i := range w.Hosts {
		go func() {
			r := joined{i: i}
			r.err = w.Hosts[i].NS.Do(func() (err error) {
				if i > 0 {
					r.g, err = endpoint.Member(ctx, endpoint.MemberConfig{Local: w.local(i), Master: at})
					return err
				}
				if cfg.Listener, err = net.Listen("tcp", at); err != nil {
					return err
				}
				defer cfg.Listener.Close()
				cfg.GroupIP, cfg.Members = w.group, len(w.Hosts)-1
				if cfg.Device == nil {
					cfg.Local = w.local(0)
				}
				r.g, err = endpoint.Master(ctx, cfg)
				return err
			})
			results <- r
		}()
	}
	groups, errs := make([]*endpoint.Group, len(w.Hosts)), make([]error, len(w.Hosts))
	for range w.Hosts {
		r := <-results
		groups[r.i], errs[r.i] = r.g, r.err
		if r.g != nil {
			t.Cleanup(func() { r.g.Close() })
		}
	}
	return groups, errs
}

func next(t *testing.T, ctx context.Context, g *endpoint.Group) endpoint.Event {
	t.Helper()
	select {
	case e := <-g.Events():
		return e
	case <-ctx.Done():
		t.Fatal("no event came")
		return endpoint.Event{}
	}
}

func TestJoin(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "ipv4", true: "ipv6"}[v6], func(t *testing.T) {
			w := newWorld(t, 3, v6, accepted, auth)
			groups, errs := w.join(t, w.ctx, endpoint.MasterConfig{WindowBase: groupBase, Policy: mcast.Evict, DeadAfter: 300 * time.Millisecond})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			reg, ok := w.registrar.Group(w.group)
			if !ok || len(reg.Members) != 3 || reg.Policy != mcast.Evict || reg.QPN != endpoint.DefaultVirtualQPN || reg.PathMTU != 1024 {
				t.Fatalf("registered: %v %v", ok, reg)
			}
			want := mcast.Window{Base: groupBase, Len: memSize, RKey: reg.Window.RKey}
			for i, g := range groups {
				q := g.QP().Info()
				at := reg.Find(envelope.MemberKey{IP: w.ip(i), QPN: q.QPN})
				if at < 0 || reg.Members[at].SQPSN != q.SQPSN || reg.Members[at].RQPSN != q.RQPSN || reg.Members[at].Window.Base != uint64(i)<<32 {
					t.Errorf("host %d has %+v, registered: %v", i, q, reg)
				}
				if g.Info().Window != want || g.Info().Members != 3 {
					t.Errorf("host %d: group %+v", i, g.Info())
				}
				if i > 0 && string(g.Info().App) != "0" {
					t.Errorf("host %d got the master's %q", i, g.Info().App)
				}
				if e := next(t, w.ctx, g); e.Kind != endpoint.Joined {
					t.Errorf("host %d: first event %+v", i, e)
				}
			}
			if p := groups[0].Peers(); len(p) != 2 || string(p[0].App) != fmt.Sprint(p[0].IP.AsSlice()[len(p[0].IP.AsSlice())-1]-1) {
				t.Errorf("peers %+v", p)
			}
			w.checkEvents(t, groups)
		})
	}
}

// checkEvents evicts host 2, lets host 1 leave, then the master deletes. The steps take
// longer than the lease of a second only on a slow machine; renewal keeps the group in
// either case.
func (w *world) checkEvents(t *testing.T, groups []*endpoint.Group) {
	t.Helper()
	w.registrar.Evict(w.group, envelope.MemberKey{IP: w.ip(2), QPN: groups[2].QP().Info().QPN})
	for _, i := range []int{0, 2} {
		if e := next(t, w.ctx, groups[i]); e.Kind != endpoint.Evicted || e.Member != w.ip(2) || e.PSN != 77 {
			t.Errorf("host %d: %+v after eviction", i, e)
		}
	}
	<-groups[2].Over()
	if err := groups[1].Leave(w.ctx); err != nil {
		t.Errorf("leave: %v", err)
	}
	if e := next(t, w.ctx, groups[1]); e.Kind != endpoint.Ended || e.Reason != envelope.Left {
		t.Errorf("host 1 after leaving: %+v", e)
	}
	if e := next(t, w.ctx, groups[0]); e.Kind != endpoint.MemberLeft || e.Member != w.ip(1) {
		t.Errorf("master after host 1 left: %+v", e)
	}
	for i := range groups {
		if err := groups[i].Close(); err != nil {
			t.Errorf("close of host %d: %v", i, err)
		}
	}
	if _, ok := w.registrar.Group(w.group); ok {
		t.Error("the switch still has the group")
	}
	qp := groups[1].QP()
	if _, err := qp.PostRecv(endpoint.RecvWR{}); !errors.Is(err, endpoint.ErrClosed) {
		t.Errorf("the group's own queue pair is open after Close: %v", err)
	}
}

func TestLeaseIsRenewedAndFailureReported(t *testing.T) {
	w := newWorld(t, 2, false, accepted, auth)
	groups, errs := w.join(t, w.ctx, endpoint.MasterConfig{Lease: time.Second})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	select { // two leases and more
	case <-groups[0].Over():
		t.Fatalf("the group ended: %+v", next(t, w.ctx, groups[0]))
	case <-time.After(2500 * time.Millisecond):
	}
	next(t, w.ctx, groups[0]) // joined
	w.registrar.Fail(w.group, envelope.MemberKey{IP: w.ip(1), QPN: groups[1].QP().Info().QPN})
	if e := next(t, w.ctx, groups[0]); e.Kind != endpoint.Failed {
		t.Errorf("master after the group's failure: %+v", e)
	}
}

// TestWaitEndsWithTheGroup makes the switch silent while a member is removed: the error
// says how the group ended.
func TestWaitEndsWithTheGroup(t *testing.T) {
	w := newWorld(t, 3, false, accepted, auth)
	groups, errs := w.join(t, w.ctx, endpoint.MasterConfig{Lease: time.Second})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	w.registrar.Close()
	err := groups[0].Remove(w.ctx, w.ip(1))
	if err == nil || !strings.Contains(err.Error(), "the group has ended: lease expired: renew group 10.77.254.1: no answer from the switch in 1s") {
		t.Errorf("the removal ended with %v", err)
	}
}

// TestDeleteUnanswered: the error of a deletion that the switch does not answer says once what
// was to be deleted.
func TestDeleteUnanswered(t *testing.T) {
	w := newWorld(t, 2, false, accepted, auth)
	groups, errs := w.join(t, w.ctx, endpoint.MasterConfig{})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	w.registrar.Close()
	ctx, cancel := context.WithTimeout(w.ctx, 300*time.Millisecond)
	defer cancel()
	err := groups[0].Leave(ctx)
	if err == nil || !strings.Contains(err.Error(), "no answer from the switch") || strings.Count(err.Error(), "delete group") != 1 {
		t.Error(err)
	}
}

// TestJoinMembersListen has the master connect to the members.
func TestJoinMembersListen(t *testing.T) {
	w := newWorld(t, 3, false, accepted, auth)
	results := make(chan error)
	var addrs []string
	for i := 1; i < 3; i++ {
		at := netip.AddrPortFrom(w.ip(i), oobPort).String()
		addrs = append(addrs, at)
		go func() {
			results <- w.Hosts[i].NS.Do(func() error {
				ln, err := net.Listen("tcp", at)
				if err != nil {
					return err
				}
				defer ln.Close()
				g, err := endpoint.Member(w.ctx, endpoint.MemberConfig{Local: w.local(i), Listener: ln})
				if err == nil {
					t.Cleanup(func() { g.Close() })
				}
				return err
			})
		}()
	}
	err := w.Hosts[0].NS.Do(func() error {
		g, err := endpoint.Master(w.ctx, endpoint.MasterConfig{Local: w.local(0), Addrs: addrs, GroupIP: w.group})
		if err == nil {
			err = g.Close()
		}
		return err
	})
	if err := errors.Join(err, <-results, <-results); err != nil {
		t.Fatal(err)
	}
}
