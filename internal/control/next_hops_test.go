// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/internal/control/fib"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// fakeHellos has the state of links as the test sets it.
type fakeHellos struct {
	mu    sync.Mutex
	links []neighbours.Link
	bell  chan struct{}
}

func (h *fakeHellos) Links() []neighbours.Link {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.links)
}

func (h *fakeHellos) Has(port int) bool {
	return slices.ContainsFunc(h.Links(), func(l neighbours.Link) bool { return l.Port == port })
}

func (h *fakeHellos) SetLink(int, bool, int) {}

func (h *fakeHellos) SetInterface(int, int, rocev2.MAC) error { return nil }
func (h *fakeHellos) SetPort(neighbours.Port) error           { return nil }
func (h *fakeHellos) ID() hello.SwitchID                      { return 1 }

// set changes the link of a port.
func (h *fakeHellos) set(l neighbours.Link) {
	h.mu.Lock()
	i := slices.IndexFunc(h.links, func(o neighbours.Link) bool { return o.Port == l.Port })
	if i < 0 {
		h.links = append(h.links, l)
	} else {
		h.links[i] = l
	}
	h.mu.Unlock()
	select {
	case h.bell <- struct{}{}:
	default:
	}
}

// switchAt is the state of a port's link to a switch whose MAC address ends in mac.
func switchAt(port int, id hello.SwitchID, mac byte, session uint64) neighbours.Link {
	n := hello.Neighbour{Speaker: hello.Speaker{ID: id, Incarnation: 1}, Interval: 100 * time.Millisecond, Session: session}
	n.MAC = rocev2.MAC{2, 0, 0, 0, 0, mac}
	return neighbours.Link{Port: port, State: hello.Up, Neighbour: n}
}

// fakeRoutes has the routes that the test sets.
type fakeRoutes struct {
	mu      sync.Mutex
	route   map[netip.Addr]fib.Route
	users   map[netip.Addr]int
	changed []netip.Addr
	bell    chan struct{}
}

func (r *fakeRoutes) Subscribe(a netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.users[a]++
}

func (r *fakeRoutes) Unsubscribe(a netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users[a]--; r.users[a] == 0 {
		delete(r.users, a)
	}
}

func (r *fakeRoutes) Route(a netip.Addr) (fib.Route, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.route[a], r.users[a] > 0
}

func (r *fakeRoutes) SetVRFs([]int) {}

func (r *fakeRoutes) Changed() (list []netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, r.changed = r.changed, nil
	return list
}

func (r *fakeRoutes) set(a netip.Addr, to fib.Route) {
	r.mu.Lock()
	r.route[a] = to
	r.changed = append(r.changed, a)
	r.mu.Unlock()
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

// by is a route with gateways: those of ports, each of which has the address 10.77.1.PORT and
// the MAC address 02:00:00:00:01:PORT.
func by(ports ...int) fib.Route {
	r := fib.Route{Status: fib.Usable, Prefix: netip.MustParsePrefix("10.78.0.0/16")}
	for _, p := range ports {
		r.Hops = append(r.Hops, fib.NextHop{Link: p + 1, Gateway: gatewayOf(p), Weight: 1})
	}
	return r
}

func gatewayOf(port int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 1, byte(port)}) }

// newFakeTree is a fake switch with hellos at the ports that are named.
func newFakeTree(t *testing.T, ports int, at ...int) (*fakeSwitch, *fakeHellos, *fakeRoutes) {
	t.Helper()
	f := newFakeSwitch(t, ports, 1)
	h, r := f.addSwitches(at...)
	f.locator.mu.Lock()
	for p := range ports {
		f.locator.at[gatewayOf(p)] = locate.Location{Hop: gatewayOf(p), Ifindex: p + 1, MAC: []byte{2, 0, 0, 0, 1, byte(p)}}
	}
	f.locator.mu.Unlock()
	return f, h, r
}

// addSwitches has the switch exchange hellos at the ports that are named, and watch routes.
func (f *fakeSwitch) addSwitches(at ...int) (*fakeHellos, *fakeRoutes) {
	h := &fakeHellos{bell: make(chan struct{}, 1)}
	for _, p := range at {
		h.links = append(h.links, neighbours.Link{Port: p, State: hello.Down, Reason: hello.Silent})
	}
	r := &fakeRoutes{route: make(map[netip.Addr]fib.Route), users: make(map[netip.Addr]int), bell: make(chan struct{}, 1)}
	f.control.do(func() { f.control.setSwitches(h, h.bell, r, r.bell) })
	return h, r
}

// gatewayAt is the state of a port's link to a switch that is that port's gateway.
func gatewayAt(port int, id hello.SwitchID, session uint64) neighbours.Link {
	l := switchAt(port, id, byte(port), session)
	l.Neighbour.MAC[4] = 1
	return l
}

// ways asks until the answer is not pending.
func (f *fakeSwitch) ways(ip netip.Addr) (w ways) {
	f.t.Helper()
	f.eventually("ways to "+ip.String(), func() bool {
		f.control.do(func() { w = f.control.dir.waysTo(ip) })
		return !w.pending
	})
	return w
}

// A member's ways are the neighbours that its gateways are, by port and MAC address; a
// gateway that is none has its reason, and one at a port without hellos is a router.
func TestWays(t *testing.T) {
	f, h, r := newFakeTree(t, 5, 0, 1, 2)
	far := netip.MustParseAddr("10.78.0.1")
	for _, c := range []struct {
		name  string
		route fib.Route
		links []neighbours.Link
		want  string // the hops expected, or a part of the error
	}{
		{"no route", fib.Route{Status: fib.NoRoute}, nil, "10.78.0.1 has no route: give this switch one, or a routing engine"},
		{"no hello", by(0), nil, "10.78.0.1 is behind other switches: next hop 10.77.1.0 on f0 is not a gleamd switch: no neighbour is heard"},
		{"another key", by(0), []neighbours.Link{{Port: 0, Reason: hello.Silent, LastDrop: neighbours.Dropped{Drop: hello.BadMAC, From: rocev2.MAC{2, 9}}}},
			"is not a gleamd switch: no neighbour is heard, and 02:09:00:00:00:00 sends a hello with a wrong HMAC"},
		{"one", by(0), []neighbours.Link{gatewayAt(0, 10, 100)}, "[1]"},
		{"two", by(0, 1), []neighbours.Link{gatewayAt(1, 11, 200)}, "[1 2]"},
		{"one of two is up", by(0, 1), []neighbours.Link{{Port: 0, Reason: hello.Silent}}, "[2]"},
		{"again", by(0, 1), []neighbours.Link{gatewayAt(0, 10, 101)}, "[1 2]"},
		{"another MAC address", by(2), []neighbours.Link{switchAt(2, 12, 99, 300)},
			"next hop 10.77.1.2 on f2 has the MAC address 02:00:00:00:01:02, and the switch 000000000000000c that says hello there has 02:00:00:00:00:63"},
		{"one is a router", by(0, 3), nil, "[1]"},
	} {
		for _, l := range c.links {
			h.set(l)
		}
		r.set(far, c.route)
		var got string
		f.eventually(c.name, func() bool {
			w := f.ways(far)
			if got = fmt.Sprint(w.hops); w.err != nil {
				got = w.err.Error()
			}
			return !w.here && strings.Contains(got, c.want)
		})
	}
	f.locator.mu.Lock()
	f.locator.at[far] = locate.Location{Hop: gatewayOf(3), Ifindex: 4, MAC: []byte{2, 0, 0, 0, 1, 3}, Links: []int{4}}
	f.locator.mu.Unlock()
	r.set(far, by(3, 4))
	f.eventually("behind routers", func() bool { return f.ways(far).here })
	r.set(fakeHost(1), fib.Route{Status: fib.Usable, Hops: []fib.NextHop{{Link: 2}}})
	if w := f.ways(fakeHost(1)); !w.here || len(w.hops) > 0 {
		t.Errorf("a host at a port: %+v", w)
	}
}

// A gateway whose MAC address the kernel is resolving is waited for, unless another one is
// there; hosts that nobody asks about any more are not watched.
func TestWaysArePending(t *testing.T) {
	f, h, r := newFakeTree(t, 2, 0, 1)
	h.set(gatewayAt(0, 10, 100))
	h.set(gatewayAt(1, 11, 100))
	far := netip.MustParseAddr("10.78.0.1")
	resolving := func(p int, err error) {
		f.locator.mu.Lock()
		defer f.locator.mu.Unlock()
		f.locator.err[gatewayOf(p)] = err
	}
	resolving(0, locate.ErrPending)
	resolving(1, locate.ErrPending)
	r.set(far, by(0, 1))
	var w ways
	ask := func() { f.control.do(func() { w = f.control.dir.waysTo(far) }) }
	f.eventually("the gateways are asked for", func() (asked bool) {
		ask()
		f.control.do(func() { x := f.control.dir.hosts.Of(far); asked = x != nil && len(x.Hops()) == 2 })
		return asked
	})
	if ask(); !w.pending || w.err != nil || len(w.hops) > 0 {
		t.Errorf("%+v", w)
	}
	resolving(1, nil)
	if w := f.ways(far); fmt.Sprint(w.hops) != "[2]" || w.err != nil {
		t.Errorf("%+v", w)
	}
	f.control.do(func() { f.control.dir.expirePending(f.control.now() + time.Minute) })
	if _, watched := r.Route(far); watched {
		t.Error("the routes of a host that is forgotten are watched")
	}
}

// What has become of a neighbour is in log and journal, a restart as an end and a beginning,
// and the workers have those that are up.
func TestNeighboursAreReported(t *testing.T) {
	f, h, _ := newFakeTree(t, 2, 0, 1)
	steps := []neighbours.Link{
		gatewayAt(0, 10, 0x100), {Port: 0, Reason: hello.Silent, Lost: hello.Silent}, gatewayAt(0, 10, 0x101),
	}
	restarted := gatewayAt(0, 10, 0x102)
	restarted.Lost = hello.Restarted
	for i, l := range append(steps, restarted) {
		h.set(l)
		f.eventually("the state is taken over", func() (same bool) {
			f.control.do(func() {
				a, up := f.control.switches.Table.At(0)
				same = up == (l.State == hello.Up) && a.Session == l.Neighbour.Session
			})
			return same
		})
		if i > 0 && i != 1 {
			f.control.do(func() {
				if a, _ := f.control.switches.Table.At(0); a.Number != mcast.Neighbor(1) {
					t.Errorf("number %d", a.Number)
				}
			})
		}
	}
	var got []string
	for _, e := range f.control.journal.After(ended(), 0).Events {
		if e.Kind == api.EventNeighbour {
			got = append(got, e.Reason)
		}
	}
	want := []string{
		"switch 000000000000000a at port f0 is up, session 0000000000000100", "switch 000000000000000a at port f0 is down: no neighbour is heard",
		"switch 000000000000000a at port f0 is up, session 0000000000000101", "switch 000000000000000a at port f0 is down: the neighbour has started anew",
		"switch 000000000000000a at port f0 is up, session 0000000000000102",
	}
	if !slices.Equal(got, want) {
		t.Errorf("journal:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if log := strings.Join(f.log, "\n"); strings.Count(log, "a neighbour switch is up") != 3 || strings.Count(log, "a neighbour switch is down") != 2 {
		t.Errorf("log:\n%s", log)
	}
}
