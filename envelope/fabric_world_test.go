// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

var switchKeys = Keys{3: bytes.Repeat([]byte{0x33}, 32)}

// fabric is a world of several switches, hosts and the links between the switches.
type fabric struct {
	t        testing.TB
	now      time.Duration
	switches []*fabricSwitch
	hosts    map[netip.AddrPort]machine
	at       map[netip.Addr]int // the switch of a host
	net      []fabricFlight
	seq      int
	sessions uint64
	events   map[netip.AddrPort][]Event
	// fault decides about a relay between two switches: after which delays copies arrive.
	fault     func(from, to int, b []byte) []time.Duration
	captured  []capturedRelay
	restarted bool            // a switch may have lost what it had installed
	silent    map[int]bool    // switches that neither send nor receive relays
	severed   map[[2]int]bool // links that are cut, which routes avoid
}

type capturedRelay struct {
	from, to int
	b        []byte
}

// fabricSwitch is a switch, and its Planner.
type fabricSwitch struct {
	f       *fabric
	n       int
	sw      *Registrar
	table   *tableStub
	peers   []int // the switches by Neighbor-1
	check   map[netip.Addr]Verdict
	traffic map[mcast.Neighbor]uint64
	noWay   map[netip.Addr]Reason
	events  []Event
	full    bool     // true: what promises something waits for the state file
	waiting []func() // the sending of what waits
}

type fabricFlight struct {
	at     time.Duration
	seq    int
	to     int // a switch, -1: a host
	from   mcast.Neighbor
	packet Packet
}

// newFabric makes n switches with the given links.
func newFabric(t testing.TB, n int, links [][2]int) *fabric {
	t.Helper()
	f := &fabric{
		t: t, hosts: map[netip.AddrPort]machine{}, at: map[netip.Addr]int{}, events: map[netip.AddrPort][]Event{}, silent: map[int]bool{}, severed: map[[2]int]bool{},
		fault: func(int, int, []byte) []time.Duration { return []time.Duration{hop} },
	}
	for i := range n {
		f.switches = append(f.switches, &fabricSwitch{f: f, n: i, check: map[netip.Addr]Verdict{}, traffic: map[mcast.Neighbor]uint64{}, noWay: map[netip.Addr]Reason{}})
	}
	for _, l := range links {
		a, b := f.switches[l[0]], f.switches[l[1]]
		a.peers, b.peers = append(a.peers, b.n), append(b.peers, a.n)
	}
	for i := range n {
		f.boot(i)
	}
	return f
}

func switchID(i int) SwitchID { return SwitchID(0x100 + i) }

// boot starts switch i anew, and all its adjacencies with it. It has forgotten all groups.
func (f *fabric) boot(i int) { f.start(i, nil) }

// reboot starts switch i anew, with the groups that it had.
func (f *fabric) reboot(i int) {
	var saved []SavedGroup
	for _, ip := range f.switches[i].sw.Groups() {
		s, ok := f.switches[i].sw.Saved(ip)
		if !ok {
			f.t.Errorf("switch %d: %s is not saved", i, ip)
		}
		saved = append(saved, s)
	}
	f.start(i, saved)
}

// start starts switch i anew, with some groups of before.
func (f *fabric) start(i int, saved []SavedGroup) {
	s := f.switches[i]
	s.table = newTableStub()
	f.sessions++
	sw, err := NewRegistrar(RegistrarConfig{
		Secret: [SecretLen]byte{byte(i), 1, byte(f.sessions)}, Seed: uint64(i), Auth: testAuth(), Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")},
		EpochBase: f.sessions << 30, // boots are more than EpochStep apart
		Switch:    SwitchConfig{ID: switchID(i), Auth: Auth{Keys: switchKeys, Send: 3}, Planner: s},
	}, s.table)
	if err != nil {
		f.t.Fatal(err)
	}
	s.sw = sw
	for k := range saved {
		g := &saved[k]
		reg := g.Registration
		reg.Members, reg.Numbers, reg.Tree = slices.Clone(reg.Members), slices.Clone(reg.Numbers), reg.Tree.clone()
		s.table.groups[reg.Group] = &reg
		if err := sw.Restore(f.now, g); err != nil {
			f.t.Errorf("switch %d: %v", i, err)
		}
	}
	for n, p := range s.peers {
		if f.severed[[2]int{min(i, p), max(i, p)}] {
			continue
		}
		f.connect(i, mcast.Neighbor(n+1), p)
	}
}

// connect gives the adjacency of switch i that is its nth, to p, a new session.
func (f *fabric) connect(i int, n mcast.Neighbor, p int) {
	o := f.switches[p]
	if o.sw == nil {
		return
	}
	f.sessions++
	f.switches[i].sw.SetNeighbour(f.now, n, &Adjacency{ID: switchID(p), Session: f.sessions, MTU: 1500, Port: portName(n)})
	o.sw.SetNeighbour(f.now, f.reverse(i, n), &Adjacency{ID: switchID(i), Session: f.sessions, MTU: 1500, Port: portName(f.reverse(i, n))})
}

// portName is the name of the port of a switch toward its neighbour n.
func portName(n mcast.Neighbor) string { return fmt.Sprintf("eth%d", n) }

// cut takes the adjacency of switch i that is its nth away from both ends.
func (f *fabric) cut(i int, n mcast.Neighbor) {
	f.switches[i].sw.SetNeighbour(f.now, n, nil)
	f.switches[f.switches[i].peers[n-1]].sw.SetNeighbour(f.now, f.reverse(i, n), nil)
}

// reverse returns the number that the neighbour n of switch i has for i.
func (f *fabric) reverse(i int, n mcast.Neighbor) mcast.Neighbor {
	nth := 0 // of the links between the two
	p := f.switches[i].peers[n-1]
	for k := range int(n) - 1 {
		if f.switches[i].peers[k] == p {
			nth++
		}
	}
	for k, q := range f.switches[p].peers {
		if q == i {
			if nth == 0 {
				return mcast.Neighbor(k + 1)
			}
			nth--
		}
	}
	panic("no such link")
}

// distances returns the hops from each switch to switch d.
func (f *fabric) distances(d int) []int {
	dist := slices.Repeat([]int{1 << 20}, len(f.switches))
	dist[d] = 0
	for queue := []int{d}; len(queue) > 0; queue = queue[1:] {
		for _, p := range f.switches[queue[0]].peers {
			if dist[p] > dist[queue[0]]+1 && !f.severed[[2]int{min(p, queue[0]), max(p, queue[0])}] {
				dist[p] = dist[queue[0]] + 1
				queue = append(queue, p)
			}
		}
	}
	return dist
}

func (s *fabricSwitch) Ways(host netip.Addr) Ways {
	home, ok := s.f.at[host]
	switch why := s.noWay[host]; {
	case !ok || why == NoWay:
		return Ways{Verdict: Verdict{VerdictRejected, Problem{Reason: NoWay, Value: 0x0A000001}}}
	case why != 0:
		return Ways{Verdict: Verdict{VerdictRejected, Problem{Reason: why}}}
	}
	w := Ways{Verdict: Verdict{Kind: VerdictAccepted}, Here: home == s.n}
	dist := s.f.distances(home)
	for i, p := range s.peers {
		if dist[p] < dist[s.n] && !s.f.severed[[2]int{min(p, s.n), max(p, s.n)}] {
			w.Hops = append(w.Hops, mcast.Neighbor(i+1))
		}
	}
	return w
}

func (s *fabricSwitch) Traffic(n mcast.Neighbor) uint64 { return s.traffic[n] }

func (s *fabricSwitch) Check(reg *Registration, _ KeyID) Verdict {
	for i := range reg.Members {
		m := &reg.Members[i]
		if reg.Tree.Leg(i) == NoNeighbour && s.f.at[m.IP] != s.n {
			s.f.t.Errorf("switch %d: member %s is at %d, its leg leads to %d", s.n, m.IP, s.f.at[m.IP], reg.Tree.Leg(i))
		}
		if v, ok := s.check[m.IP]; ok && reg.Tree.Leg(i) == NoNeighbour {
			v.Problem.Member = m.Key()
			return v
		}
	}
	return Verdict{Kind: VerdictAccepted}
}

// host puts a machine behind a switch.
func (f *fabric) host(a netip.AddrPort, at int, m machine) {
	f.hosts[a], f.at[a.Addr()] = m, at
}

// members makes the hosts of reg's members; member i is behind switch homes[i].
func (f *fabric) members(reg Registration, homes []int) {
	f.t.Helper()
	for i, rec := range reg.Members {
		a := netip.AddrPortFrom(rec.IP, DefaultPort)
		m, _ := f.hosts[a].(*Member)
		if m == nil {
			var err error
			if m, err = NewMember(MemberConfig{Local: a, Auth: testAuth(), Seed: uint64(i)}); err != nil {
				f.t.Fatal(err)
			}
			f.host(a, homes[i], m)
		}
		if err := m.Join(membershipOf(rec, reg)); err != nil {
			f.t.Fatal(err)
		}
	}
}

// master starts a master of reg behind a switch.
func (f *fabric) master(a netip.AddrPort, at int, reg Registration) *Master {
	f.t.Helper()
	m, err := NewMaster(MasterConfig{Local: a, Auth: testAuth(), Seed: uint64(at)}, reg)
	if err != nil {
		f.t.Fatal(err)
	}
	f.host(a, at, m)
	var out Output
	m.Start(f.now, &out)
	f.hostDid(a, &out)
	return m
}

// checkTree fails the test unless all switches below switch i have installed its group,
// and each member is behind the leg that leads to it.
func (f *fabric) checkTree(i int, ip netip.Addr) {
	f.t.Helper()
	s := f.switches[i]
	reg := s.table.groups[ip]
	if reg == nil || reg.Tree == nil || f.restarted {
		return
	}
	for _, n := range s.sw.groups[ip].branch.children {
		below := f.switches[s.peers[n.to-1]].table.groups[ip]
		if below == nil || below.Epoch < reg.Epoch {
			f.t.Errorf("%v: switch %d has installed %s, and switch %d below it has not", f.now, i, ip, s.peers[n.to-1])
		}
	}
	if !s.sw.groups[ip].isRoot() {
		return
	}
	for k := range reg.Members {
		m, at := &reg.Members[k], i
		for range len(f.switches) + 1 {
			r := f.switches[at].table.groups[ip]
			if r == nil || r.Find(m.Key()) < 0 {
				f.t.Errorf("switch %d lacks member %s", at, m.IP)
				break
			}
			to := r.Tree.Legs[r.Find(m.Key())]
			if to == NoNeighbour {
				break
			}
			at = f.switches[at].peers[to-1]
		}
		if at != f.at[m.IP] {
			f.t.Errorf("the legs toward member %s end at switch %d, it is at %d", m.IP, at, f.at[m.IP])
		}
	}
}

// step lets the next thing happen, if it is due by limit.
func (f *fabric) step(limit time.Duration) bool {
	var d deadlines
	for _, x := range f.net {
		d.add(x.at)
	}
	for _, s := range f.switches {
		if t, ok := s.sw.NextDeadline(); ok {
			d.add(t)
		}
	}
	addrs := f.addresses()
	for _, a := range addrs {
		if t, ok := f.hosts[a].NextDeadline(); ok {
			d.add(t)
		}
	}
	if !d.ok || d.at > limit {
		f.now = max(f.now, limit)
		return false
	}
	f.now = max(f.now, d.at)
	var out Output
	first := -1
	for i, x := range f.net {
		if x.at <= f.now && (first < 0 || x.at < f.net[first].at || x.at == f.net[first].at && x.seq < f.net[first].seq) {
			first = i
		}
	}
	if first >= 0 {
		x := f.net[first]
		f.net = slices.Delete(f.net, first, first+1)
		f.deliver(x, &out)
		return true
	}
	for i, s := range f.switches {
		if t, ok := s.sw.NextDeadline(); ok && t <= f.now {
			s.sw.Advance(f.now, &out)
			f.switchDid(i, &out)
		}
	}
	for _, a := range addrs {
		f.hosts[a].Advance(f.now, &out)
		f.hostDid(a, &out)
	}
	return true
}

func (f *fabric) deliver(x fabricFlight, out *Output) {
	switch {
	case x.to < 0:
		if m := f.hosts[x.packet.Dst]; m != nil {
			m.Input(f.now, x.packet.Src, x.packet.Data, out)
			f.hostDid(x.packet.Dst, out)
		}
	case x.from != 0:
		f.switches[x.to].sw.InputFromSwitch(f.now, x.from, x.packet.Data, out)
		f.switchDid(x.to, out)
	default:
		f.switches[x.to].sw.Input(f.now, x.packet.Src, x.packet.Data, out)
		f.switchDid(x.to, out)
	}
}

func (f *fabric) addresses() []netip.AddrPort {
	var as []netip.AddrPort
	for a := range f.hosts {
		as = append(as, a)
	}
	slices.SortFunc(as, netip.AddrPort.Compare)
	return as
}

func (f *fabric) run(d time.Duration) {
	for limit := f.now + d; f.step(limit); {
	}
}

// last returns the newest event of a host.
func (f *fabric) last(a netip.AddrPort) Event {
	if es := f.events[a]; len(es) > 0 {
		return es[len(es)-1]
	}
	return Event{}
}

// installed returns the switches that serve a group.
func (f *fabric) installed(ip netip.Addr) (on []int) {
	for i, s := range f.switches {
		if s.table.groups[ip] != nil {
			on = append(on, i)
		}
	}
	return on
}

// lossyLinks returns a fault of links: a fifth of the relays is lost, some come twice, and each
// takes up to 30 ms.
func lossyLinks(rnd *rand.Rand) func(int, int, []byte) []time.Duration {
	return func(int, int, []byte) (ds []time.Duration) {
		for rnd.IntN(10) < 8 && len(ds) < 2 {
			ds = append(ds, time.Duration(1+rnd.IntN(30))*time.Millisecond)
		}
		return ds
	}
}
