// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// manyGroups are groups of the hosts of a lab, whose first host sends.
type manyGroups struct {
	*fastLab
	groups []manyGroup
}

type manyGroup struct {
	group *Group
	spec  mcast.GroupSpec
	hosts []*fastHost
}

// addGroups adds n groups with windows of that many bytes; the first one has that of the lab. The lab's own group is none of
// them.
func (x *fastLab) addGroups(n int, others uint64) *manyGroups {
	x.Helper()
	m := &manyGroups{fastLab: x}
	ip := x.spec.IP
	window := x.window
	for k := range n {
		ip = ip.Next()
		spec, table := x.spec, x.table
		spec.ID, spec.IP, spec.QPN, spec.Members, spec.Window.Len = mcast.GroupID(k+1), ip, x.spec.QPN+rocev2.QPN(k+1), nil, window
		table.IP, table.QPN, table.Destinations = ip, spec.QPN, nil
		g := manyGroup{}
		for i, h := range x.hosts {
			q := &fastHost{host: h.host, port: h.port, device: h.device}
			var err error
			if q.qp, err = h.device.CreateQP(endpoint.QPConfig{LocalIP: h.qp.Info().IP, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN()}); err != nil {
				x.Fatal(err)
			}
			if q.send, err = h.device.RegisterMemory(make([]byte, window), 0, 0); err != nil {
				x.Fatal(err)
			}
			va := uint64(0x6000_0000_0000 + 0x100_0000*(k*len(x.hosts)+i))
			if q.recv, err = h.device.RegisterMemory(make([]byte, window), va, endpoint.RemoteWrite); err != nil {
				x.Fatal(err)
			}
			info := q.qp.Info()
			spec.Members = append(spec.Members, mcast.MemberSpec{
				MemberRecord: mcast.MemberRecord{IP: info.IP, QPN: info.QPN, SQPSN: info.SQPSN, RQPSN: info.RQPSN, Window: mcast.Window{Base: va, Len: window, RKey: q.recv.RKey()}}, Leg: mcast.LegID(i),
			})
			d := x.table.Destinations[i]
			d.QPN = info.QPN
			table.Destinations = append(table.Destinations, d)
			g.hosts = append(g.hosts, q)
		}
		g.spec, g.group = spec, x.plane.NewGroup(spec.ID, ip)
		if err := g.group.Install(spec, &table, &GroupState{}); err != nil {
			x.Fatal(err)
		}
		for _, h := range g.hosts {
			if err := h.qp.Connect(x.ctx, endpoint.Remote{IP: ip, QPN: spec.QPN, PathMTU: spec.PathMTU, RQPSN: h.qp.Info().RQPSN}); err != nil {
				x.Fatal(err)
			}
		}
		m.groups = append(m.groups, g)
		window = others
	}
	return m
}

// transfer has the source of group k write its window, and compares the bytes at the receivers.
func (m *manyGroups) transfer(k, round int) error {
	g := &m.groups[k]
	b := g.hosts[0].send.Bytes()
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + round*31 + k*3)
	}
	lab := *m.fastLab
	lab.window = uint64(len(b))
	if err := lab.write(g.hosts[0], 2000); err != nil {
		return fmt.Errorf("group %d, round %d: %w", k, round, err)
	}
	for i, h := range g.hosts[1:] {
		if !bytes.Equal(h.recv.Bytes(), b) {
			return fmt.Errorf("group %d, round %d: receiver %d has other bytes", k, round, i+1)
		}
	}
	return nil
}

// rings returns the slots of all groups' rings together, and the groups that the programs have forwarded for.
func (m *manyGroups) rings() (slots, fast int) {
	m.Helper()
	s := &GroupState{}
	for k := range m.groups {
		if err := m.groups[k].group.Read(s); err != nil {
			m.Fatal(err)
		}
		if slots += s.Fast.Ring; s.Fast.Packets > 0 {
			fast++
		}
	}
	return slots, fast
}

// Many groups share the memory of the fast path: each of them takes it, in a ring that is small, and all bytes are right.
// When all but one are idle they give their rings up to that one, which has use for more.
func TestFastManyGroups(t *testing.T) {
	const n, slots = 200, 4 << 10
	x := newFastLab(t, fastLabConfig{hosts: 3, more: "fast_path_memory: 16777216\nlimits: {groups: 256}\n"}) // half of it for long packets
	machine, m := labtest.Watch(), x.addGroups(n, 64<<10)
	fast := 0
	for round, end := 0, time.Now().Add(time.Minute); time.Now().Before(end); round++ {
		for k := range m.groups {
			if err := m.transfer(k, round); err != nil {
				t.Fatal(err)
			}
		}
		var used int
		used, fast = m.rings()
		t.Logf("round %d: %d groups took the fast path, their rings have %d of %d slots", round, fast, used, slots)
		if used > slots {
			t.Fatalf("the rings have %d slots, and there are %d", used, slots)
		}
		if fast == n {
			break
		}
	}
	if fast < n {
		machine.Timing(t, "%d of %d groups took the fast path", fast, n)
	}
	s, round := &GroupState{}, 1000
	for end := time.Now().Add(30 * time.Second); s.Fast.Ring < 256; round++ {
		if time.Now().After(end) {
			used, _ := m.rings()
			machine.Timing(t, "the ring of the only group that sends has %d slots, all together %d: %+v", s.Fast.Ring, used, s.Fast)
			return
		}
		if err := m.transfer(0, round); err != nil {
			t.Fatal(err)
		}
		if err := m.groups[0].group.Read(s); err != nil {
			t.Fatal(err)
		}
	}
	gave := 0
	for k := range m.groups[1:] {
		if err := m.groups[k+1].group.Read(s); err != nil {
			t.Fatal(err)
		}
		if s.Fast.Ring == 0 && s.Fast.Why == whyReclaimed {
			gave++
		}
	}
	if gave == 0 {
		t.Error("no idle group has given its ring up")
	}
	for k := range m.groups { // and they get one again
		if err := m.transfer(k, round); err != nil {
			t.Fatal(err)
		}
	}
	used, _ := m.rings()
	t.Logf("%d groups have given their rings up; then the rings have %d slots", gave, used)
	if used > slots {
		t.Errorf("the rings have %d slots, and there are %d", used, slots)
	}
}

// smallFastMemory has room for smallFastSlots short packets and 128 long ones, so that the largest ring has 128 slots.
const (
	smallFastSlots  = 272
	smallFastMemory = "fast_path_memory: 1114112\n"
)

// Groups that have filled the memory of the fast path shrink, while they send, when others come: all have rings then.
func TestFastLargeRingsShrink(t *testing.T) {
	const n, slots = 6, smallFastSlots
	x := newFastLab(t, fastLabConfig{hosts: 3, more: smallFastMemory})
	machine, m := labtest.Watch(), x.addGroups(n, 1<<18)
	s := &GroupState{}
	ring := func(k int) int {
		if err := m.groups[k].group.Read(s); err != nil {
			t.Fatal(err)
		}
		return s.Fast.Ring
	}
	until := func(what string, groups int, done func() bool) {
		for round, end := 0, time.Now().Add(30*time.Second); !done(); round++ {
			if used, _ := m.rings(); used > slots {
				t.Fatalf("the rings have %d slots, and there are %d", used, slots)
			} else if time.Now().After(end) {
				machine.Timing(t, "%s: not in 30 s; %d slots are used, the last group: %+v", what, used, s.Fast)
				t.SkipNow()
			}
			for k := range groups {
				if err := m.transfer(k, round); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	until("two groups fill the memory", 2, func() bool { return ring(0)+ring(1) >= 192 })
	large := max(ring(0), ring(1))
	until("all have rings", n, func() bool {
		for k := range n {
			if ring(k) == 0 || s.Fast.Packets == 0 {
				return false
			}
		}
		return true
	})
	t.Logf("of %d slots at first the largest ring has %d now", large, max(ring(0), ring(1)))
}
