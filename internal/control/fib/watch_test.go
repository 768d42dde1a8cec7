// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fib

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// bench is a namespace with links p1 to p3 to another one, and a watcher of its routes.
type bench struct {
	t        *testing.T
	ns, far  *lab.Namespace
	w        *Watcher
	mu       sync.Mutex
	problems []error
}

// newBench watches with a receive buffer of that size, from run on.
func newBench(t *testing.T, buffer int) *bench {
	t.Helper()
	l := labtest.New(t)
	b := &bench{t: t}
	var err error
	if b.ns, err = l.Namespace("sw"); err == nil {
		b.far, err = l.Namespace("far")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range []string{"ipv4.conf.all", "ipv4.conf.default", "ipv6.conf.all", "ipv6.conf.default"} {
		b.must(b.ns.Sysctl("net."+kv+".ignore_routes_with_linkdown", "1"))
	}
	b.must(b.ns.Sysctl("net.ipv6.conf.default.keep_addr_on_down", "1"))
	for i := 1; i <= 3; i++ {
		p := fmt.Sprintf("p%d", i)
		b.must(lab.Veth(lab.End{NS: b.ns, Name: p, Index: 100 + i}, lab.End{NS: b.far, Name: p}, 0))
		b.must(b.ns.AddAddr(p, netip.MustParsePrefix(fmt.Sprintf("10.0.%d.1/24", i))))
		b.must(b.ns.AddAddr(p, netip.MustParsePrefix(fmt.Sprintf("fd00:%d::1/64", i))))
	}
	b.must(errors.Join(b.ns.WaitUp(10*time.Second), b.far.WaitUp(10*time.Second)))
	b.must(b.ns.Do(func() (err error) { b.w, err = newWatcher(b.problem, buffer); return err }))
	b.w.interval = time.Hour // changes are found by notifications
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) problem(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, err)
}

// run lets the watcher run until the test ends.
func (b *bench) run() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.w.Run(ctx)
	}()
	b.t.Cleanup(func() {
		cancel()
		<-ended
		b.w.Close()
		if len(b.problems) > 0 {
			b.t.Error(b.problems)
		}
	})
}

// ip runs `ip` in the namespace.
func (b *bench) ip(args string) {
	b.t.Helper()
	if out, err := b.exec("ip", strings.Fields(args)...); err != nil {
		b.t.Fatalf("ip %s: %v: %s", args, err, out)
	}
}

func (b *bench) exec(name string, args ...string) (out []byte, err error) {
	_ = b.ns.Do(func() error {
		out, err = exec.Command(name, args...).CombinedOutput()
		return nil
	})
	return out, err
}

// waits waits for the route of a destination to be as text says, and returns how long it
// took.
func (b *bench) waits(a, text string) time.Duration {
	b.t.Helper()
	begin := time.Now()
	for {
		r, _ := b.w.Route(addr(a))
		if r.String() == text {
			return time.Since(begin)
		}
		if time.Since(begin) > 5*time.Second {
			b.t.Fatalf("%s: %v\nwant %s", a, r, text)
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// step is a command, with the routes that two destinations have after it.
type step struct{ ip, four, six string }

func (b *bench) steps(steps ...step) {
	b.t.Helper()
	for _, s := range steps {
		for c := range strings.SplitSeq(s.ip, ";") {
			b.ip(c)
		}
		took := b.waits(four, s.four)
		b.t.Logf("%-60s %v, %v", s.ip, took, b.waits(six, s.six))
	}
}

const four, six = "10.9.0.7", "fd09::7"

func both(t *testing.T) *bench {
	b := newBench(t, eventsBuffer)
	labtest.Needs(t, "ip")
	b.w.Subscribe(addr(four))
	b.w.Subscribe(addr(six))
	b.run()
	return b
}

const none = "has no route: give this switch one, or a routing engine"

// TestRoutes: next hops are as the routes say, through every way to change them.
func TestRoutes(t *testing.T) {
	both(t).steps(
		step{"link show p1", none, none},
		step{"route add 10.9.0.0/16 via 10.0.1.2; -6 route add fd09::/32 via fd00:1::2",
			"10.9.0.0/16 by 10.0.1.2 link 101 weight 1", "fd09::/32 by fd00:1::2 link 101 weight 1"},
		step{"route add 10.9.0.0/24 dev p2; -6 route add fd09::/64 dev p2",
			"10.9.0.0/24 by link 102 weight 1", "fd09::/64 by link 102 weight 1"},
		step{"route replace 10.9.0.0/24 nexthop via 10.0.1.2 weight 1 nexthop via 10.0.2.2 weight 3; -6 route replace fd09::/64 nexthop via fd00:1::2 weight 1 nexthop via fd00:2::2 weight 3",
			"10.9.0.0/24 by 10.0.1.2 link 101 weight 1, 10.0.2.2 link 102 weight 3", "fd09::/64 by fd00:1::2 link 101 weight 1, fd00:2::2 link 102 weight 3"},
		step{"route replace blackhole 10.9.0.7/32; -6 route replace blackhole fd09::7/128", "has a blackhole route", "has a blackhole route"},
		step{"route replace unreachable 10.9.0.7/32; -6 route replace unreachable fd09::7/128", "has a route of type unreachable", "has a route of type unreachable"},
		step{"route replace prohibit 10.9.0.7/32; -6 route replace prohibit fd09::7/128", "has a route of type prohibit", "has a route of type prohibit"},
		step{"route del 10.9.0.7/32; -6 route del fd09::7/128",
			"10.9.0.0/24 by 10.0.1.2 link 101 weight 1, 10.0.2.2 link 102 weight 3", "fd09::/64 by fd00:1::2 link 101 weight 1, fd00:2::2 link 102 weight 3"},
		step{"route del 10.9.0.0/24; -6 route del fd09::/64",
			"10.9.0.0/16 by 10.0.1.2 link 101 weight 1", "fd09::/32 by fd00:1::2 link 101 weight 1"},
		step{"addr add 10.9.0.7/32 dev lo; -6 addr add fd09::7/128 dev lo nodad", "is an address of this switch itself", "is an address of this switch itself"},
		step{"addr del 10.9.0.7/32 dev lo; -6 addr del fd09::7/128 dev lo",
			"10.9.0.0/16 by 10.0.1.2 link 101 weight 1", "fd09::/32 by fd00:1::2 link 101 weight 1"},
		// The gateway of an IPv4 route has an IPv6 address, as with unnumbered BGP.
		step{"route replace 10.9.0.0/16 nexthop via inet6 fe80::2 dev p1 nexthop via inet6 fe80::2 dev p2; -6 route replace fd09::/32 via fe80::2 dev p1",
			"10.9.0.0/16 by fe80::2 link 101 weight 1, fe80::2 link 102 weight 1", "fd09::/32 by fe80::2 link 101 weight 1"},
		step{"rule add to 10.9.0.0/16 prohibit; -6 rule add to fd09::/32 prohibit", "has a route of type prohibit", "has a route of type prohibit"},
		step{"rule del to 10.9.0.0/16 prohibit; -6 rule del to fd09::/32 prohibit",
			"10.9.0.0/16 by fe80::2 link 101 weight 1, fe80::2 link 102 weight 1", "fd09::/32 by fe80::2 link 101 weight 1"},
	)
}

// TestLinks: next hops follow links that lose their carrier, or go down, and come back;
// also where the kernel removes the route, or its next hop, without a notification.
func TestLinks(t *testing.T) {
	b := both(t)
	const (
		default4, default6 = "0.0.0.0/0 by 10.0.3.2 link 103 weight 1", "::/0 by fd00:3::2 link 103 weight 1"
		single4, single6   = "10.9.0.0/16 by 10.0.1.2 link 101 weight 1", "fd09::/32 by fd00:1::2 link 101 weight 1"
		two4               = "10.9.0.0/16 by 10.0.1.2 link 101 weight 1, 10.0.2.2 link 102 weight 1"
		two6               = "fd09::/32 by fd00:1::2 link 101 weight 1, fd00:2::2 link 102 weight 1"
	)
	b.steps(step{"route add default via 10.0.3.2; -6 route add default via fd00:3::2", default4, default6},
		step{"route add 10.9.0.0/16 via 10.0.1.2; -6 route add fd09::/32 via fd00:1::2", single4, single6})
	carrier := func(up bool, want4, want6 string) {
		t.Helper()
		if up {
			b.must(b.far.SetUp("p1"))
		} else {
			b.must(b.far.SetDown("p1"))
		}
		took := b.waits(four, want4)
		t.Logf("carrier of p1 %-46t %v, %v", up, took, b.waits(six, want6))
	}
	carrier(false, default4, default6)
	carrier(true, single4, single6)
	b.steps(step{"route replace 10.9.0.0/16 nexthop via 10.0.1.2 nexthop via 10.0.2.2; -6 route replace fd09::/32 nexthop via fd00:1::2 nexthop via fd00:2::2", two4, two6})
	carrier(false, "10.9.0.0/16 by 10.0.2.2 link 102 weight 1", "fd09::/32 by fd00:2::2 link 102 weight 1")
	carrier(true, two4, two6)
	b.steps(
		step{"link set p1 down", "10.9.0.0/16 by 10.0.2.2 link 102 weight 1", "fd09::/32 by fd00:2::2 link 102 weight 1"},
		step{"link set p2 down", default4, default6},
		step{"link set p3 down", none, none},
	)
}

// TestNexthopObjects: groups of nexthop objects change, shrink and go, some of it without a
// notification about the route.
func TestNexthopObjects(t *testing.T) {
	b := both(t)
	const (
		two4 = "10.9.0.0/16 by 10.0.1.2 link 101 weight 1, 10.0.2.2 link 102 weight 2"
		two6 = "fd09::/32 by fd00:1::2 link 101 weight 1, fd00:2::2 link 102 weight 2"
	)
	b.steps(
		step{"nexthop add id 1 via 10.0.1.2 dev p1; nexthop add id 2 via 10.0.2.2 dev p2; nexthop add id 3 group 1/2,2; nexthop add id 11 via fd00:1::2 dev p1; nexthop add id 12 via fd00:2::2 dev p2; nexthop add id 13 group 11/12,2", none, none},
		step{"route add 10.9.0.0/16 nhid 3; -6 route add fd09::/32 nhid 13", two4, two6},
		step{"nexthop replace id 1 via 10.0.1.3 dev p1; nexthop replace id 11 via fd00:1::3 dev p1",
			strings.Replace(two4, "10.0.1.2", "10.0.1.3", 1), strings.Replace(two6, "fd00:1::2", "fd00:1::3", 1)},
		step{"nexthop del id 1; nexthop del id 11", "10.9.0.0/16 by 10.0.2.2 link 102 weight 1", "fd09::/32 by fd00:2::2 link 102 weight 1"},
		step{"nexthop replace id 3 group 2; nexthop replace id 13 group 12", "10.9.0.0/16 by 10.0.2.2 link 102 weight 1", "fd09::/32 by fd00:2::2 link 102 weight 1"},
		step{"nexthop del id 3; nexthop del id 13", none, none},
	)
	b.must(b.ns.Sysctl("net.ipv4.nexthop_compat_mode", "0"))
	const withheld = "has a route with a nexthop object, which the kernel does not show: set the sysctl net.ipv4.nexthop_compat_mode to 1"
	b.steps(step{"route add 10.9.0.0/16 nhid 2; -6 route add fd09::/32 nhid 12", withheld, withheld})
}

// TestLostNotifications: after more notifications than the socket has room for, the table
// is as the FIB.
func TestLostNotifications(t *testing.T) {
	b := newBench(t, 4096)
	b.w.Subscribe(addr(four))
	b.run()
	b.waits(four, none)
	h := b.ns.Handle()
	route := func(third, last byte) *netlink.Route {
		return &netlink.Route{
			Dst: &net.IPNet{IP: net.IPv4(10, 9, third, last).To4(), Mask: net.CIDRMask(32, 32)},
			Gw:  net.IPv4(10, 0, 1, 2), LinkIndex: 101, Protocol: unix.RTPROT_STATIC,
		}
	}
	b.w.mu.Lock() // holds up the reader
	var err error
	for i := 0; i < 500 && err == nil; i++ { // the one that counts comes last
		err = h.RouteAdd(route(1+byte(i>>8), byte(i)))
	}
	err = errors.Join(err, h.RouteAdd(route(0, 7)))
	b.w.mu.Unlock()
	b.must(err)
	b.waits(four, "10.9.0.7/32 by 10.0.1.2 link 101 weight 1")
	for end := time.Now().Add(5 * time.Second); b.w.Lost() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no notification was lost: the test shows nothing")
		}
	}
}

// TestSocketIsReplaced: a subscription that breaks is made anew, in the watched namespace.
func TestSocketIsReplaced(t *testing.T) {
	b := both(t)
	b.w.current().Close()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		n := len(b.problems)
		b.mu.Unlock()
		if n > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing reported")
		}
	}
	b.steps(step{"route add 10.9.0.0/16 via 10.0.1.2; -6 route add fd09::/32 via fd00:1::2",
		"10.9.0.0/16 by 10.0.1.2 link 101 weight 1", "fd09::/32 by fd00:1::2 link 101 weight 1"})
	b.mu.Lock()
	b.problems = nil
	b.mu.Unlock()
}

// TestSilentChange: what no notification tells is found by the periodic sweep.
func TestSilentChange(t *testing.T) {
	b := newBench(t, eventsBuffer)
	b.w.interval = SweepInterval
	deaf, err := b.w.subscribeTo(nil)
	if err != nil {
		t.Fatal(err)
	}
	b.w.events.Close()
	b.w.events = deaf
	b.w.Subscribe(addr(four))
	b.run()
	b.waits(four, none)
	b.ip("route add 10.9.0.0/16 via 10.0.1.2")
	if took := b.waits(four, "10.9.0.0/16 by 10.0.1.2 link 101 weight 1"); took > 3*SweepInterval {
		t.Errorf("found after %v, want %v", took, SweepInterval)
	}
}

// TestFRR: the watcher at a leaf has the next hops that the kernel shows, with the routes
// of BGP and OSPF, and follows a link that fails.
func TestFRR(t *testing.T) {
	for _, routing := range []fabric.Routing{fabric.BGP, fabric.OSPF} {
		t.Run(string(routing), func(t *testing.T) { followFRR(t, routing) })
	}
}

func followFRR(t *testing.T, routing fabric.Routing) {
	f := labtest.Fabric(t, fabric.Config{Topology: fabric.LeafSpine(4, 2, 3), Routing: routing})
	leaf := f.Switch("l1")
	b := &bench{t: t, ns: leaf.NS}
	b.must(b.ns.Do(func() (err error) { b.w, err = NewWatcher(b.problem); return err }))
	for _, h := range f.Hosts {
		b.w.Subscribe(h.IPv4)
		b.w.Subscribe(h.IPv6)
	}
	b.run()
	agree := func(what string, hops int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		begin := time.Now()
		b.must(f.WaitRouted(ctx))
		fabricAt := time.Since(begin)
		for _, h := range f.Hosts {
			for _, ip := range []netip.Addr{h.IPv4, h.IPv6} {
				b.agrees(leaf, h, ip, hops)
			}
		}
		t.Logf("%s: kernels after %v, the watcher after %v", what, fabricAt, time.Since(begin))
	}
	agree("begin", 2)
	b.must(f.SetLink("l1", "s1", false))
	agree("l1-s1 down", 1)
	b.must(f.SetLink("l1", "s1", true))
	agree("l1-s1 up", 2)
}

// agrees waits until the watcher has the same next hops to a host as the kernel, of that
// number if the host is at another leaf.
func (b *bench) agrees(leaf *fabric.Switch, h *fabric.Host, ip netip.Addr, hops int) {
	b.t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		kernel, err := leaf.NextHops(ip)
		b.must(err)
		r, _ := b.w.Route(ip)
		var names []string
		for _, n := range r.Hops {
			if l, err := leaf.NS.Handle().LinkByIndex(n.Link); err == nil {
				names = append(names, l.Attrs().Name)
			}
			if n.Gateway.IsValid() == (h.Switch == leaf) {
				b.t.Errorf("%s: gateway of %v", ip, n)
			}
		}
		slices.Sort(names)
		if slices.Equal(names, kernel) && (h.Switch == leaf && len(names) == 1 || len(names) == hops) {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s: the watcher has %v, the kernel %v, want %d", ip, r, kernel, hops)
		}
	}
}

// BenchmarkMatch is the cost of one destination, with a FIB of one route and of many.
func BenchmarkMatch(b *testing.B) {
	for _, routes := range []int{1, 50_000} {
		b.Run(fmt.Sprint(routes), func(b *testing.B) {
			labtest.Enter(b)
			runtime.LockOSThread()
			h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
			if err != nil {
				b.Fatal(err)
			}
			defer h.Close()
			lo, err := h.LinkByName("lo")
			if err == nil {
				err = h.LinkSetUp(lo)
			}
			for i := 0; i < routes && err == nil; i++ {
				err = h.RouteAdd(&netlink.Route{
					Dst:       &net.IPNet{IP: net.IPv4(11, byte(i>>16), byte(i>>8), byte(i)).To4(), Mask: net.CIDRMask(32, 32)},
					LinkIndex: lo.Attrs().Index, Scope: netlink.SCOPE_LINK,
				})
			}
			if err != nil {
				b.Fatal(err)
			}
			m, err := newMatcher(-1)
			if err != nil {
				b.Fatal(err)
			}
			defer m.close()
			for i := 0; b.Loop(); i++ {
				n := i % routes
				if r, err := m.match(netip.AddrFrom4([4]byte{11, byte(n >> 16), byte(n >> 8), byte(n)}), 0); err != nil || r.Status != Usable {
					b.Fatal(r, err)
				}
			}
		})
	}
}
