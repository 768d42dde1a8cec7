// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/bedtest"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// fabricRig is a fabric with a switch in each of its switches, and hosts that answer envelopes.
// The switches are of this process, or gleamds.
type fabricRig struct {
	t       testing.TB
	ctx     context.Context
	fab     *fabric.Fabric
	top     *fabric.Topology
	engines map[string]*fabricEngine // the engines of this process
	gleamds map[string]*testbed.Gleamd
	key     []byte // the key of envelopes
	hosts   []*fabricHost
	v6      bool
}

// fabricEngine is the switch in one of the fabric's switches.
type fabricEngine struct {
	*control.Engine
	stop  func() // ends it before the test does
	notes notes
}

type fabricHost struct {
	*testbed.Host
	Switch *fabric.Switch
}

// fabricKeys are of envelopes, and of the switches.
var fabricKeys = [2][]byte{[]byte("the key of the envelopes, a test"), []byte("the key of the switches in tests")}

// fabricGroup is group number i, from 0.
func (r *fabricRig) fabricGroup(i int) netip.Addr {
	ip := fabric.GroupsIPv4.Addr()
	if r.v6 {
		ip = fabric.GroupsIPv6.Addr()
	}
	for range i + 1 {
		ip = ip.Next()
	}
	return ip
}

// patient is a configuration under which no receiver is probed because it waits for a core, so
// that every packet passes a link once.
const patient = "repair: {timeout: 1s}\n"

// newFabricRig makes the fabric, counted, and starts its switches with further lines of their
// configuration.
func newFabricRig(t testing.TB, c fabric.Config, more string, v6 bool) *fabricRig {
	t.Helper()
	labtest.Require(t)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	c.Count = true
	r := &fabricRig{t: t, ctx: ctx, top: c.Topology, fab: labtest.Fabric(t, c), engines: make(map[string]*fabricEngine), key: fabricKeys[0], v6: v6}
	for _, s := range r.fab.Switches {
		r.engines[s.Name] = r.startSwitch(s, more)
	}
	if err := r.fab.WaitRouted(ctx); err != nil {
		t.Fatal(err)
	}
	for _, h := range r.fab.Hosts {
		r.openHost(h)
	}
	return r
}

// newProcessRig makes the fabric with a gleamd in every switch, which can be restarted and killed.
func newProcessRig(t testing.TB, c fabric.Config) *fabricRig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*timeout)
	t.Cleanup(cancel)
	c.Count = true
	f := bedtest.Fabric(t, testbed.FabricConfig{Gleamd: programs.Path(t, "gleamd"), State: true, Fabric: c})
	r := &fabricRig{t: t, ctx: ctx, top: c.Topology, fab: f.Fabric, gleamds: f.Gleamds, key: f.Key}
	for _, h := range r.fab.Hosts {
		r.openHost(h)
	}
	return r
}

// startSwitch runs a switch in its namespace until the test ends.
func (r *fabricRig) startSwitch(s *fabric.Switch, more string) *fabricEngine {
	t := r.t
	t.Helper()
	text := s.Config(fabricKeys[1]) + fmt.Sprintf("envelope: {keys: [{id: 1, secret: \"hex:%x\"}]}\n", fabricKeys[0]) +
		"umem: {frames: 8192}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\n" + more
	if strings.Contains(more, listsAtLinks) {
		text = withListsAtLinks(s, text)
	}
	cfg, err := config.Parse(s.Name+".yaml", []byte(labtest.WithFastPath(text, true)))
	if err != nil {
		t.Fatal(err)
	}
	e := &fabricEngine{}
	if err := s.NS.Do(func() (err error) { e.Engine, err = control.Open(cfg, e.notes.add); return err }); err != nil {
		t.Fatalf("switch %s: %v", s.Name, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	ended := make(chan error, 1)
	go func() { ended <- s.NS.Do(func() error { return e.Run(ctx) }) }()
	t.Cleanup(func() {
		countFast(e.Engine)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("switch %s: run: %v", s.Name, err)
		}
		if err := e.Close(); err != nil {
			t.Errorf("switch %s: close: %v", s.Name, err)
		}
		if t.Failed() {
			for _, l := range e.notes.lines {
				t.Log(s.Name, l)
			}
		}
	})
	return e
}

func (r *fabricRig) openHost(h *fabric.Host) {
	t := r.t
	t.Helper()
	x, err := testbed.Open(h.Host, testbed.Endpoints{Key: r.key, IPv6: r.v6, Device: soft.Config{Seed: uint64(len(r.hosts))}, Answer: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	r.hosts = append(r.hosts, &fabricHost{x, h.Switch})
}

// with returns a host with another region.
func (h *fabricHost) with(memory int, address uint64) (*testbed.Host, error) {
	x := *h.Host
	return &x, x.Register(make([]byte, memory), address)
}

// fabricMembers are the members of a group, with a region each.
type fabricMembers struct {
	r       *fabricRig
	ip      netip.Addr
	hosts   []*fabricHost
	groups  []*endpoint.Group
	regions []endpoint.MR
	joined  []fabricJoiner // members that have joined since, and are not among the others yet
}

// fabricJoiner is a host that has joined a group that was there.
type fabricJoiner struct {
	host   *fabricHost
	group  *endpoint.Group
	region endpoint.MR
}

// join makes a group of hosts by envelopes, the first as its master.
func (r *fabricRig) join(ip netip.Addr, memory int, hosts ...*fabricHost) *fabricMembers {
	r.t.Helper()
	m, err := r.tryJoin(ip, memory, hosts...)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *fabricRig) tryJoin(ip netip.Addr, memory int, hosts ...*fabricHost) (*fabricMembers, error) {
	r.t.Helper()
	m := &fabricMembers{r: r, ip: ip, hosts: hosts}
	all := make([]*testbed.Host, len(hosts))
	for i, h := range hosts {
		var err error
		if all[i], err = h.with(memory, 0x7000_0000_0000+uint64(i)<<32); err != nil {
			r.t.Fatal(err)
		}
		m.regions = append(m.regions, all[i].Memory)
	}
	var err error
	m.groups, err = testbed.Join(r.ctx, endpoint.MasterConfig{GroupIP: ip, PathMTU: 1024, WindowBase: groupBase}, all)
	return m, err
}

// leave ends the group.
func (m *fabricMembers) leave() {
	m.r.t.Helper()
	if err := session.Leave(m.groups); err != nil {
		m.r.t.Error(err)
	}
}

// fill puts random bytes into a member's region, and others into those of the rest.
func (m *fabricMembers) fill(from int) {
	for i, mr := range m.regions {
		var seed [32]byte
		seed[0], seed[1] = byte(i), byte(from)
		_, _ = rand.NewChaCha8(seed).Read(mr.Bytes())
	}
}

// writeAll sends a region by WRITEs of message bytes each, and waits for their completions, after
// which it calls completed with their number.
func (r *fabricRig) writeAll(qp endpoint.QP, mr endpoint.MR, base uint64, rkey uint32, message int, completed func(int)) error {
	return r.writePart(qp, mr, 0, mr.Len(), base, rkey, message, completed)
}

// writePart is writeAll for size bytes of the region from offset on.
func (r *fabricRig) writePart(qp endpoint.QP, mr endpoint.MR, offset, size int, base uint64, rkey uint32, message int, completed func(int)) error {
	m, done := testbed.Messages{Op: endpoint.Write, Offset: int64(offset), Len: int64(size), Message: int64(message)}, 0
	return m.Send(r.ctx, qp, mr, base, rkey, 32, func(int) { done++; completed(done) })
}

// send sends a member's region to the group in messages, and compares the bytes of all others.
func (m *fabricMembers) send(from, message int) error {
	m.fill(from)
	mr, w := m.regions[from], m.groups[from].Info().Window
	if err := m.r.writeAll(m.groups[from].QP(), mr, w.Base, w.RKey, message, func(int) {}); err != nil {
		return fmt.Errorf("%s: %w\n%s", m.hosts[from].Name, err, m.r.describe(m.ip))
	}
	for i, other := range m.regions {
		if !bytes.Equal(other.Bytes(), mr.Bytes()) {
			return fmt.Errorf("%s does not have the bytes of %s", m.hosts[i].Name, m.hosts[from].Name)
		}
	}
	return nil
}

// mustSend is send that ends the test.
func (m *fabricMembers) mustSend(from, message int) {
	m.r.t.Helper()
	if err := m.send(from, message); err != nil {
		m.r.t.Fatal(err)
	}
}

// describe is what every switch says of a group.
func (r *fabricRig) describe(ip netip.Addr) string {
	var b strings.Builder
	for _, s := range r.fab.Switches {
		g, st, err := r.groupAt(s.Name, ip)
		if err != nil {
			fmt.Fprintf(&b, "%s: %v\n", s.Name, err)
			continue
		}
		fmt.Fprintf(&b, "%s: %s source %v ack 0x%06x next 0x%06x waits for %v, %+v drops %v normal %v\n", s.Name, g.State, g.Source, g.AckPSN, g.NextPSN, g.WaitsFor, g.Counters, st.Drops, st.Normal)
	}
	return b.String()
}

// groupAt is what a switch says of a group, and of itself.
func (r *fabricRig) groupAt(name string, ip netip.Addr) (g *api.Group, s *api.Stats, err error) {
	if e := r.engines[name]; e != nil {
		if g, err = e.Group(ip); err == nil {
			s, err = e.Stats()
		}
		return g, s, err
	}
	c := r.gleamds[name].Client
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if g, err = c.Group(ctx, ip); err == nil {
		s, err = c.Stats(ctx)
	}
	return g, s, err
}

// carried is what each direction of each link has carried.
type carried map[[2]string]fabric.Traffic

func (r *fabricRig) carried() carried {
	r.t.Helper()
	c := make(carried)
	for _, l := range r.top.Links {
		for _, d := range [][2]string{{l.A, l.B}, {l.B, l.A}} {
			x, err := r.fab.Traffic(d[0], d[1])
			if err != nil {
				r.t.Fatal(err)
			}
			c[d] = x
		}
	}
	return c
}

// since returns the traffic since an earlier reading.
func (c carried) since(old carried) carried {
	d := make(carried)
	for k, x := range c {
		d[k] = x.Sub(old[k])
	}
	return d
}

// inner returns the group data on all links between switches, and the most in one direction
// of one of them.
func (r *fabricRig) inner(c carried) (all, most uint64) {
	for d, x := range c {
		if r.fab.Switch(d[0]) != nil && r.fab.Switch(d[1]) != nil {
			all += x.GroupData.Frames
			most = max(most, x.GroupData.Frames)
		}
	}
	return all, most
}

// unicast sends as many bytes to one receiver, and returns the feedback that the source got.
func (r *fabricRig) unicast(from, to *fabricHost, memory, message int) uint64 {
	r.t.Helper()
	in := [2]string{from.Switch.Name, from.Name}
	a, err := from.with(memory, 0x6000_0000_0000)
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := to.with(memory, 0x6000_0000_0000)
	if err != nil {
		r.t.Fatal(err)
	}
	qa, qb, err := testbed.Connect(r.ctx, a, b, 1024)
	if err != nil {
		r.t.Fatal(err)
	}
	defer qa.Close()
	defer qb.Close()
	before := r.carried()
	if err := r.writeAll(qa, a.Memory, b.Memory.Addr(), b.Memory.RKey(), message, func(int) {}); err != nil {
		r.t.Fatal(err)
	}
	return r.carried().since(before)[in].Feedback.Frames
}
