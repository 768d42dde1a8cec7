// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/bedtest"
	"github.com/gleam-rdma/gleam/test/cmhost"
	"github.com/gleam-rdma/gleam/test/labtest"
	"github.com/gleam-rdma/gleam/test/stranger"
)

// patience bounds every wait. It is longer than a start of gleamd and a source's retransmissions on a busy machine take.
const patience = 25 * time.Second

// oneSwitch has the members a, b and c, d for what a situation needs one more host for, and a stranger.
const oneSwitch = `
switches: [l1]
hosts: [a, b, c, d, x]
links: [{a: l1, b: a}, {a: l1, b: b}, {a: l1, b: c}, {a: l1, b: d}, {a: l1, b: x}]
`

// twoSwitches has a stranger at each.
const twoSwitches = `
switches: [l1, l2]
hosts: [a, b, c, x, y]
links: [{a: l1, b: l2}, {a: l1, b: a}, {a: l2, b: b}, {a: l2, b: c}, {a: l1, b: x}, {a: l2, b: y}]
`

// scene is a network of hosts, with a gleamd in each switch, one group, and strangers who attack it.
type scene struct {
	t         *testing.T
	ctx       context.Context
	situation *situation
	bed       *testbed.Fabric
	dir       string // the folder of all that the gleamds write
	at        string // the switch that is restarted
	v6        bool
	number    int // number of the cell
	hosts     map[string]*host
	group     *group
	strangers []*attacker
	attacked  atomic.Pointer[group]
	mend      func()                   // a function that has the state file work again, if it has failed
	cm        map[string]*cmhost.Agent // the agents of groups by RDMA-CM
	rack      *lab.Namespace           // the namespace of the operator's move
	told      bool                     // the answer to a DREQ has come
}

// host is a host with what its programs have open.
type host struct {
	*fabric.Host
	s  *scene
	ip netip.Addr
	// gateway is the address by which groups are reached.
	gateway rocev2.MAC
	dev     *soft.Device   // nil: not yet, or it has been killed
	envs    *endpoint.Host // nil: it answers no envelopes
}

// newScene makes the network of a situation. Where an ending needs a small disk, all that the gleamds write is on one.
func newScene(t *testing.T, r *situation, c *ending, v6 bool) *scene {
	t.Helper()
	labtest.Require(t)
	ctx, cancel := context.WithTimeout(context.Background(), 6*patience)
	t.Cleanup(cancel)
	s := &scene{t: t, ctx: ctx, situation: r, dir: t.TempDir(), at: "l1", v6: v6, hosts: make(map[string]*host)}
	if c.disk {
		labtest.SmallDisk(t, s.dir)
	}
	for _, d := range []string{s.dir, filepath.Dir(s.dir)} { // gleamd becomes another user
		s.must(os.Chmod(d, 0o755))
	}
	text := oneSwitch
	if r.tree {
		text = twoSwitches
	}
	top, err := fabric.Parse([]byte(text))
	s.must(err)
	s.bed = bedtest.Fabric(t, testbed.FabricConfig{
		Dir: s.dir, Gleamd: programs.Path(t, "gleamd"), State: true, FastPath: r.fast, More: r.config,
		Fabric: fabric.Config{Topology: top, Count: r.wired},
	})
	for _, h := range s.bed.Hosts {
		x := &host{Host: h, s: s, ip: h.IPv4, gateway: stranger.GatewayMAC(t, h.Switch)}
		if v6 {
			x.ip = h.IPv6
		}
		s.hosts[h.Name] = x
	}
	return s
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Error(err)
	}
}

// until waits for a condition, and ends the test if it does not come.
func (s *scene) until(what string, holds func() bool) {
	s.t.Helper()
	if !s.within(patience, holds) {
		s.t.Fatalf("not within %v: %s\n%s", patience, what, s.describe())
	}
}

// within waits for a condition that may not come, and reports whether it has.
func (s *scene) within(d time.Duration, holds func() bool) bool {
	for end := time.Now().Add(d); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// describe is what the switches say of the group.
func (s *scene) describe() string {
	var b strings.Builder
	for name, g := range s.bed.Gleamds {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		x, err := g.Client.Group(ctx, s.address())
		cancel()
		if err != nil {
			fmt.Fprintf(&b, "%s: %v\n", name, err)
			continue
		}
		fmt.Fprintf(&b, "%s: %s %s %s source %v ack 0x%06x next 0x%06x waits for %v drops %v normal %v", name, x.Origin, x.Policy, x.State, x.Source, x.AckPSN, x.NextPSN, x.WaitsFor, x.Drops, x.Normal)
		for _, m := range x.Members {
			fmt.Fprintf(&b, "; %s at %s %s %s live %v lag %d %s", m.IP, m.Port, m.MAC, m.Role, m.Live, m.Lag, m.Diagnosis)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// address is the group's.
func (s *scene) address() netip.Addr {
	if s.v6 {
		return fabric.GroupsIPv6.Addr().Next()
	}
	return fabric.GroupsIPv4.Addr().Next()
}

func (s *scene) gleamd() *testbed.Gleamd { return s.bed.Gleamds[s.at] }

// client is that of the switch that is restarted.
func (s *scene) client() *api.Client { return s.gleamd().Client }

// folder is the one of the state file of the switch that is restarted.
func (s *scene) folder() string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.dir, "run-*", s.at, "state"))
	if err != nil || len(found) != 1 {
		s.t.Fatalf("the folder of the state file: %v, %v", found, err)
	}
	return found[0]
}

// stop ends gleamd by a signal, and waits until it is gone.
func (s *scene) stop(how syscall.Signal) {
	s.t.Helper()
	p := s.gleamd().Process
	s.must(p.Signal(how))
	select {
	case <-p.Done():
	case <-time.After(patience):
		s.t.Fatalf("gleamd is still there %v after %v", patience, how)
	}
	if how == syscall.SIGTERM {
		s.check(p.Wait())
	}
}

func (s *scene) start() {
	s.t.Helper()
	s.must(s.gleamd().Start(s.ctx))
}

// failing waits until gleamd knows that its state file cannot be written, or can be again. Changes of another group make
// it try.
func (s *scene) failing(want bool) {
	s.t.Helper()
	other := s.address()
	for range 100 {
		other = other.Next()
	}
	s.until(fmt.Sprintf("the state file fails: %v", want), func() bool {
		r := &api.Register{Group: other, QPN: 0x77, PMTU: 1024, Policy: api.PolicyStrict, Members: []api.RegisterMember{{IP: s.hosts["a"].ip, QPN: 0x78}, {IP: s.hosts["b"].ip, QPN: 0x79}}}
		if s.at != "l1" || s.hosts["b"].Switch != s.hosts["a"].Switch {
			r.Members = nil
			for _, h := range s.bed.Switch(s.at).Hosts {
				r.Members = append(r.Members, api.RegisterMember{IP: s.hosts[h.Name].ip, QPN: 0x78})
			}
		}
		_ = s.client().Register(s.ctx, r)
		_ = s.client().Delete(s.ctx, other)
		x, err := s.client().Stats(s.ctx)
		return err == nil && x.Control.State != nil && (x.Control.State.Failing != "") == want
	})
}

// personality is that of a host's queue pairs. Those of a cell differ, and each situation has all of them as source in time.
func (s *scene) personality(name string) soft.Personality {
	all := rc.Personalities()
	return all[(s.number+3*int(name[0]-'a'))%len(all)]
}

// open opens the device of a host, and its answers to envelopes if it has a key.
func (s *scene) open(name string, keys envelope.Keys, send envelope.KeyID) *host {
	s.t.Helper()
	h := s.hosts[name]
	s.must(h.NS.Do(func() (err error) {
		if h.dev == nil {
			if h.dev, err = soft.Open(soft.Config{Interface: fabric.HostInterface, Seed: uint64(len(s.hosts)), Personality: s.personality(name)}); err != nil {
				return err
			}
			dev := h.dev
			s.t.Cleanup(func() { dev.Close() })
		}
		if h.envs == nil && keys != nil {
			if h.envs, err = endpoint.NewHost(h.ip, endpoint.HostConfig{Auth: envelope.Auth{Keys: keys, Send: send}}); err != nil {
				return err
			}
			envs := h.envs
			s.t.Cleanup(func() { envs.Close() })
		}
		return nil
	}))
	return h
}

// kill ends the programs of a host without a word to anybody.
func (h *host) kill() {
	if h.envs != nil {
		h.envs.Close()
	}
	h.dev.Close()
	h.dev, h.envs = nil, nil
}

// place is where the switch that is restarted has a member; "gone" if it has none.
func (s *scene) place(h *host) string {
	g, err := s.client().Group(s.ctx, s.address())
	if err != nil {
		return err.Error()
	}
	i := slices.IndexFunc(g.Members, func(m api.Member) bool { return m.IP == h.ip })
	if i < 0 {
		return "gone"
	}
	return g.Members[i].Port + " " + g.Members[i].MAC
}

// home is where a host is, as place says it.
func (h *host) home() string { return h.Name + " " + h.MAC.String() }

// pinned reports whether the kernel of a member's switch has entries for it that no frame can change.
func (s *scene) pinned(h *host) bool {
	k := h.Switch.NS.Handle()
	all, err := k.NeighList(0, unix.AF_UNSPEC)
	sticky, err2 := k.NeighList(0, unix.AF_BRIDGE)
	s.must(errors.Join(err, err2))
	mac := h.MAC.String()
	return slices.ContainsFunc(all, func(e netlink.Neigh) bool {
		return e.IP.Equal(h.ip.AsSlice()) && e.State&netlink.NUD_PERMANENT != 0 && e.HardwareAddr.String() == mac
	}) && slices.ContainsFunc(sticky, func(e netlink.Neigh) bool {
		return e.Flags&netlink.NTF_STICKY != 0 && e.HardwareAddr.String() == mac
	})
}
