// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// routed waits until all routes are as they should be, and returns the time that took.
func routed(t *testing.T, f *fabric.Fabric) time.Duration {
	t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	if err := f.WaitRouted(ctx); err != nil {
		for _, s := range f.Switches[:1] {
			for _, c := range []string{"show bgp summary", "show ip ospf neighbor", "show ip route"} {
				out, err := s.Show(c)
				t.Logf("%s: %s: %v\n%s", s.Name, c, err, out)
			}
		}
		t.Fatal(err)
	}
	return time.Since(begin)
}

// setLink changes a link and waits for the routes.
func setLink(t *testing.T, f *fabric.Fabric, a, b string, up bool) time.Duration {
	t.Helper()
	if err := f.SetLink(a, b, up); err != nil {
		t.Fatal(err)
	}
	return routed(t, f)
}

// reaches waits until the next hops of a switch to the hosts of another are these, over IPv4
// and IPv6. The kernel changes the two families one after the other, and on a busy machine a
// routing engine may lose a neighbour for a moment.
func reaches(t *testing.T, f *fabric.Fabric, from, to, want string) {
	t.Helper()
	four, six := nextHops(t, f, from, to)
	for end := time.Now().Add(20 * time.Second); four != want || six != want; four, six = nextHops(t, f, from, to) {
		if time.Now().After(end) {
			t.Fatalf("%s reaches %s through %q over IPv4, %q over IPv6, want %q", from, to, four, six, want)
		}
		time.Sleep(time.Millisecond)
	}
}

// nextHops returns the next hops from a switch to another's first host, in the order of their names.
func nextHops(t *testing.T, f *fabric.Fabric, from, to string) (four, six string) {
	t.Helper()
	h := f.Switch(to).Hosts[0]
	overIPv4, err := f.Switch(from).NextHops(h.IPv4)
	if err != nil {
		t.Fatal(err)
	}
	overIPv6, err := f.Switch(from).NextHops(h.IPv6)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(overIPv4, " "), strings.Join(overIPv6, " ")
}

// TestLeafSpine: with each kind of routing, all hosts reach each other, the leaves use both
// spines, and the routes follow a link that goes down and comes up.
func TestLeafSpine(t *testing.T) {
	for _, routing := range []fabric.Routing{fabric.Static, fabric.BGP, fabric.OSPF} {
		t.Run(string(routing), func(t *testing.T) {
			begin := time.Now()
			f := labtest.Fabric(t, fabric.Config{Topology: fabric.LeafSpine(4, 2, 3), Routing: routing})
			t.Logf("%d switches and %d hosts, daemons up: %v", len(f.Switches), len(f.Hosts), time.Since(begin))
			t.Logf("all shortest paths: after %v more", routed(t, f))
			everyHostPingsEveryOther(t, f)
			for _, leaf := range []string{"l2", "l3", "l4"} {
				reaches(t, f, "l1", leaf, "s1 s2")
			}
			if routing == fabric.Static {
				staticLink(t, f)
				return
			}
			t.Logf("link l1-s1 down: routes everywhere after %v", setLink(t, f, "l1", "s1", false))
			reaches(t, f, "l1", "l2", "s2")
			reaches(t, f, "l2", "l1", "s2")
			everyHostPingsEveryOther(t, f)
			t.Logf("link l1-s1 up: routes everywhere after %v", setLink(t, f, "l1", "s1", true))
			reaches(t, f, "l1", "l2", "s1 s2")
		})
	}
}

// TestCarrier: without a carrier the routes of a link's own ends do not use it, and are back with
// the carrier.
func TestCarrier(t *testing.T) {
	f := labtest.Fabric(t, fabric.Config{Topology: fabric.LeafSpine(2, 2, 1), Count: true})
	routed(t, f)
	for _, want := range []struct {
		on   bool
		hops string
	}{{false, "s2"}, {true, "s1 s2"}} {
		if err := f.SetCarrier("s1", "l1", want.on); err != nil {
			t.Fatal(err)
		}
		reaches(t, f, "l1", "l2", want.hops)
	}
	routed(t, f)
	if err := f.SetCarrier("l1", "l2", false); err == nil {
		t.Error("a link that is not there has no carrier")
	}
	without := labtest.Fabric(t, fabric.Config{Topology: fabric.LeafSpine(1, 1, 1)})
	if err := without.SetCarrier("l1", "s1", false); err == nil {
		t.Error("a link without a wire has lost its carrier")
	}
}

// staticLink: of static routes, those of the link's own ends follow it.
func staticLink(t *testing.T, f *fabric.Fabric) {
	for _, want := range []struct {
		up     bool
		l1, l2 string
	}{{false, "s2", "s1 s2"}, {true, "s1 s2", "s1 s2"}} {
		if err := f.SetLink("l1", "s1", want.up); err != nil {
			t.Fatal(err)
		}
		reaches(t, f, "l1", "l2", want.l1)
		reaches(t, f, "l2", "l1", want.l2)
	}
	everyHostPingsEveryOther(t, f)
}

// TestFatTree: between edge switches of two pods there are as many shortest paths as cores,
// so an edge switch uses both aggregation switches, and these use both of their cores.
func TestFatTree(t *testing.T) {
	for _, routing := range []fabric.Routing{fabric.Static, fabric.BGP} {
		t.Run(string(routing), func(t *testing.T) {
			tree, err := fabric.FatTree(4)
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			f := labtest.Fabric(t, fabric.Config{Topology: tree, Routing: routing})
			t.Logf("%d switches and %d hosts, daemons up: %v", len(f.Switches), len(f.Hosts), time.Since(begin))
			t.Logf("all shortest paths: after %v more", routed(t, f))
			everyHostPingsEveryOther(t, f)
			reaches(t, f, "e1-1", "e4-2", "a1-1 a1-2")
			reaches(t, f, "a1-2", "e4-2", "c3 c4")
		})
	}
}

// TestWire: a link loses, and slows down, as much as its description says.
func TestWire(t *testing.T) {
	top, err := fabric.Parse([]byte(`
switches: [l1, l2]
hosts: [h1, h2]
links:
  - {a: l1, b: l2, mtu: 4200, loss: 20%}
  - {a: l1, b: h1, mtu: 4200}
  - {a: l2, b: h2, mtu: 4200, rate: 1mbit}
`))
	if err != nil {
		t.Fatal(err)
	}
	f := labtest.Fabric(t, fabric.Config{Topology: top})
	routed(t, f)
	everyHostPingsEveryOther(t, f)
	for port, mtu := range map[string]int{"l2": 4200, "h1": 4200, "br0": 4200} {
		if l, err := f.Switch("l1").NS.Handle().LinkByName(port); err != nil || l.Attrs().MTU != mtu {
			t.Errorf("MTU of %s is %d, want %d: %v", port, l.Attrs().MTU, mtu, err)
		}
	}
	p, err := newPinger(f.Hosts[0], false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.conn.Close()
	// Of 400 requests and their replies, each way loses 20 %, so 256 replies are expected,
	// with a standard deviation of 9.6. A request takes 74 bytes on the wire; the
	// first 16 KB pass as a burst. Of the 320 requests at the second wire, 25 KB, the other
	// 9 KB take 70 ms at 1 Mbit/s.
	const requests = 400
	begin := time.Now()
	for i := range requests {
		if err := p.send(f.Hosts[1].IPv4, i); err != nil {
			t.Fatal(err)
		}
	}
	answered := 0
	last := begin
	for {
		if _, _, err := p.receive(time.Now().Add(time.Second)); err != nil {
			break
		}
		answered++
		last = time.Now()
	}
	t.Logf("%d of %d answered, the last after %v", answered, requests, last.Sub(begin))
	if answered < 256-60 || answered > 256+60 {
		t.Errorf("%d of %d answered, want about 256", answered, requests)
	}
	if slow := last.Sub(begin); slow < 35*time.Millisecond {
		t.Errorf("the last answer came after %v, too soon for 1 Mbit/s", slow)
	}
}

// TestDelay: a delay is kept, or refused with the module that the kernel lacks.
func TestDelay(t *testing.T) {
	labtest.Require(t)
	top := fabric.LeafSpine(1, 1, 1)
	top.Links[0].Delay = 50 * time.Millisecond
	f, err := fabric.New(fabric.Config{Topology: top})
	if err != nil {
		if !strings.Contains(err.Error(), "sch_netem") {
			t.Error(err)
		}
		return
	}
	defer f.Close()
	routed(t, f)
	p, err := newPinger(f.Hosts[0], false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.conn.Close()
	begin := time.Now()
	if err := p.send(f.Switch("s1").IPv4, 1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.receive(begin.Add(5 * time.Second)); err != nil || time.Since(begin) < 100*time.Millisecond {
		t.Errorf("answered after %v, want at least twice 50 ms: %v", time.Since(begin), err)
	}
}

// TestRefusals: what cannot be made is refused before anything is made.
func TestRefusals(t *testing.T) {
	for _, c := range []fabric.Config{
		{Topology: &fabric.Topology{}},
		{Topology: fabric.LeafSpine(1, 1, 1), Routing: "rip"},
		{Topology: fabric.LeafSpine(1, 1, 201)},
	} {
		if f, err := fabric.New(c); err == nil {
			t.Errorf("New(%+v) accepted", c)
			_ = f.Close()
		}
	}
}

// echoes sends n echo requests to another host, one by one, and returns the number of answers.
func echoes(t *testing.T, h, other *fabric.Host, n int) (answered int) {
	t.Helper()
	p, err := newPinger(h, false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.conn.Close()
	for i := range n {
		if err := p.send(other.IPv4, i); err != nil {
			t.Fatal(err)
		}
		if seq, _, err := p.receive(time.Now().Add(50 * time.Millisecond)); err == nil && seq == i {
			answered++
		}
	}
	return answered
}

// TestImpair: one direction of a link gets a loss, or a rate, while frames flow, and loses it again.
func TestImpair(t *testing.T) {
	f := labtest.Fabric(t, fabric.Config{Topology: fabric.LeafSpine(1, 1, 2), Count: true})
	routed(t, f)
	h, other := f.Hosts[0], f.Hosts[1]
	echoes(t, h, other, 3) // addresses are resolved
	for _, step := range []struct {
		loss        float64
		rate        linkrate.Rate
		least, most int
	}{{0.5, 0, 20, 80}, {0, 1_000_000, 99, 100}, {0, 2_000_000, 99, 100}, {0, linkrate.None, 99, 100}} {
		if err := f.Impair(h.Switch.Name, h.Name, step.loss, step.rate, 0); err != nil {
			t.Fatal(err)
		}
		if n := echoes(t, h, other, 100); n < step.least || n > step.most {
			t.Errorf("loss %v, rate %v: %d of 100 echo requests were answered, want %d to %d", step.loss, step.rate, n, step.least, step.most)
		}
	}
	if err := f.Impair("l1", "nobody", 0, 0, 0); err == nil {
		t.Error("a link that is not there was impaired")
	}
	if err := f.Impair(h.Switch.Name, h.Name, 2, 0, 0); err == nil {
		t.Error("a link loses twice its frames")
	}
}
