// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// fake is a connection of an address.
type fake struct {
	net.Conn
	from   string
	closed int
}

func (f *fake) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.from))
}

func (f *fake) Close() error { f.closed++; return nil }

// Addresses in the 64 bits of one host of IPv6 are one network; each address of IPv4 is one.
func TestNetwork(t *testing.T) {
	for from, want := range map[string]string{
		"[fd00::2]:1": "fd00::/64", "[fd00::3%eth0]:2": "fd00::/64", "[fd00:0:0:1::2]:1": "fd00:0:0:1::/64",
		"10.0.0.1:1": "10.0.0.1/32", "[::ffff:10.0.0.1]:1": "10.0.0.1/32",
	} {
		if got := Network((&fake{from: from}).RemoteAddr()).String(); got != want {
			t.Errorf("%s is of %s, want %s", from, got, want)
		}
	}
}

// The address that has the most gives way, with its oldest connection. Settled ones stay, and
// count. IPv6 addresses of one host's 64 bits are one.
func TestDisplaced(t *testing.T) {
	p := New(8)
	enter := func(from string) (*Place, *fake) {
		c := &fake{from: from}
		return p.Enter(c), c
	}
	lone, loneConn := enter("10.0.0.1:1")
	kept, keptConn := enter("10.0.0.2:1")
	if !kept.Settle() {
		t.Error("a new connection cannot be settled")
	}
	var greedy []*Place
	var conns []*fake
	for range 20 {
		v, c := enter("[fd00::2]:1")
		greedy, conns = append(greedy, v), append(conns, c)
		if v, c := enter("[fd00::3]:1"); len(conns) > 6 && c.closed == 0 {
			greedy, conns = append(greedy, v), append(conns, c)
		}
	}
	last, lastConn := enter("10.0.0.3:1")
	if n := len(p.waiting) + p.settled; n != 8 {
		t.Errorf("%d connections are there, want 8", n)
	}
	if loneConn.closed+keptConn.closed+lastConn.closed > 0 {
		t.Error("an address with one connection gave way to one with many")
	}
	if conns[0].closed != 1 || conns[len(conns)-1].closed != 0 || greedy[0].Settle() || greedy[0].Leave() {
		t.Error("not the oldest connection gave way")
	}
	kept.Wait()
	if !lone.Leave() || !last.Leave() || !kept.Leave() || kept.Leave() {
		t.Error("a connection that was not displaced cannot leave, or twice")
	}
	if n := len(p.waiting) + p.settled; n != 5 {
		t.Errorf("%d connections are left, want 5", n)
	}
}

// Whatever happens, there are at most as many connections as may be, each address with fewer
// connections than another keeps those that it has, and settled ones stay.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 6).Draw(t, "max")
		p := New(most)
		var all []*Place
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case what > 2 || len(all) == 0:
				before := make(map[netip.Prefix]int)
				for _, v := range p.waiting {
					before[v.from]++
				}
				c := &fake{from: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, 4).Draw(t, "from"))}), 1).String()}
				all = append(all, p.Enter(c))
				before[all[len(all)-1].from]++
				after := make(map[netip.Prefix]int)
				for _, v := range p.waiting {
					after[v.from]++
				}
				for from, n := range before {
					for _, m := range before {
						if after[from] < n && m > n {
							t.Fatalf("%s gives way with %d, and another has %d", from, n, m)
						}
					}
				}
			default:
				v := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
				stays := v.state == settled
				switch what {
				case 0:
					if v.Settle() && stays {
						t.Fatal("settled twice")
					}
				case 1:
					v.Wait()
				case 2:
					v.Leave()
				}
			}
			settledNow := 0
			for _, v := range all {
				if v.state == settled {
					settledNow++
				}
				if c := v.c.(*fake); (v.state == displaced) != (c.closed > 0) {
					t.Fatalf("state %d, closed %d times", v.state, c.closed)
				}
			}
			if settledNow != p.settled || len(p.waiting)+p.settled > most {
				t.Fatalf("%d wait, %d are settled (%d by count), of %d", len(p.waiting), settledNow, p.settled, most)
			}
		}
	})
}

// Hosts of one link of IPv6 have the same first 64 bits: one that opens many connections displaces its own.
func TestNeighboursOfALink(t *testing.T) {
	p := New(8)
	honest := &fake{from: "[fd00::1]:1"}
	v := p.Enter(honest)
	for range 100 {
		p.Enter(&fake{from: "[fd00::2]:1"})
	}
	if honest.closed > 0 || !v.Settle() {
		t.Error("a host gave way to another one of its link that has many connections")
	}
	v.Wait()
	for i := range 100 {
		p.Enter(&fake{from: fmt.Sprintf("[fd00:0:0:9::%x]:1", i)})
	}
	if honest.closed > 0 {
		t.Error("a host gave way to one with many addresses")
	}
}

var _ = []mutant.Mutant{
	mutant.New("connections are without bound", "connlimit", mutant.In((*Pool).Enter,
		"if len(p.waiting)+p.settled > p.max {",
		"if false {")),
	mutant.New("settled connections do not count", "connlimit", mutant.In((*Pool).Enter,
		"if len(p.waiting)+p.settled > p.max {",
		"if len(p.waiting) > p.max {")),
	mutant.New("the oldest connection gives way, whoever's", "connlimit", mutant.In((*Pool).displace,
		"if cmp.Or(cmp.Compare(networks[v.from], networks[than.from]), cmp.Compare(addresses[v.ip], addresses[than.ip])) > 0 {",
		"if cmp.Or(cmp.Compare(networks[v.from], networks[than.from]), cmp.Compare(addresses[v.ip], addresses[than.ip])) > 1 {")),
	mutant.New("any address of the network gives way", "connlimit", mutant.In((*Pool).displace,
		"if cmp.Or(cmp.Compare(networks[v.from], networks[than.from]), cmp.Compare(addresses[v.ip], addresses[than.ip])) > 0 {",
		"if cmp.Compare(networks[v.from], networks[than.from]) > 0 && len(addresses) > 0 {")),
	mutant.New("a displaced connection is settled", "connlimit", mutant.In((*Place).move,
		"if v.state != from {",
		"if v.state != from && v.state != $1 {", displaced)),
	mutant.New("each address of IPv6 is a host of its own", "connlimit", mutant.In(Network,
		"return netip.PrefixFrom(ip, 64).Masked()",
		"return netip.PrefixFrom(ip, 128)")),
}
