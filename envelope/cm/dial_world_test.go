// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// dialWorld is a switch that dials listeners, their hosts, and diallers.
type dialWorld struct {
	t        *testing.T
	r        *rand.Rand
	now      time.Duration
	m        *Manager
	out      Output
	listen   Listen
	hosts    map[netip.Addr]*kernel
	order    []*kernel // the diallers, then the listeners
	flights  []flight
	loss     float64
	delay    time.Duration
	refuse   float64 // the share of registrations that are refused
	force    map[netip.Addr][]mcast.MemberRecord
	pending  map[netip.Addr]func()
	due      map[netip.Addr]time.Duration
	refusals []Refusal
	lost     map[CommID]int // DREQs: the last one comes, or the host would never hear
	made     int            // connections of diallers
	file     file
	filter   func(to netip.Addr, m *Message) bool // false: the MAD is lost
}

// kernel is Linux' CM at a host of a dialWorld, with its program.
type kernel struct {
	w     *dialWorld
	ip    netip.Addr
	guid  GUID
	conns map[CommID]*kconn
	// of a listener
	accepts time.Duration // the time from the REQ until the program accepts; below 0: never
	rejects bool          // its program refuses
	absent  bool          // its program does not listen
	deaf    bool          // true: the host has died
	late    time.Duration // the time from a DREQ until its program disconnects
}

// kconn is a connection in a kernel.
type kconn struct {
	id, remote CommID
	qpn        rocev2.QPN
	psn        rocev2.PSN
	peer       GUID // the switch's
	peerQPN    rocev2.QPN
	ask        Request // the REQ that a listener has got
	data       []byte  // the private data of the REQ
	passive    bool
	state      string // sent, received, replied, established, left, leaving, gone
	reply      Reply
	message    Message // the message that is repeated
	at         time.Duration
	tries      int
	waited     bool
	events     []string
}

func newDialWorld(t *testing.T, seed uint64, diallers, listeners, sessions int) *dialWorld {
	w := &dialWorld{
		t: t, r: rand.New(rand.NewPCG(seed, 18)), delay: time.Millisecond, hosts: map[netip.Addr]*kernel{},
		force: map[netip.Addr][]mcast.MemberRecord{}, pending: map[netip.Addr]func(){}, due: map[netip.Addr]time.Duration{}, lost: map[CommID]int{}, filter: func(netip.Addr, *Message) bool { return true },
	}
	group := netip.MustParseAddr("10.0.0.100")
	if seed%2 == 1 {
		group = netip.MustParseAddr("fd00::100")
	}
	w.listen = Listen{Group: group, Port: 7471, Wait: 30 * time.Second, From: []netip.Prefix{netip.PrefixFrom(group, 8)}, Sessions: sessions, Replies: Replies(seed % 3)}
	ip := group
	for range 16 {
		ip = ip.Next()
	}
	for i := range diallers + listeners {
		ip = ip.Next()
		k := &kernel{w: w, ip: ip, guid: GUID(0xFE0000 + i), conns: map[CommID]*kconn{}, accepts: 5 * time.Millisecond}
		w.hosts[ip], w.order = k, append(w.order, k)
		if i >= diallers {
			w.listen.Listeners = append(w.listen.Listeners, netip.AddrPortFrom(ip, uint16(9000+i)))
		}
	}
	w.m = NewManager(Config{Seed: [32]byte{byte(seed), byte(seed >> 8), 1}})
	if err := w.m.Open(w.listen); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *dialWorld) listeners() []*kernel { return w.order[len(w.order)-len(w.listen.Listeners):] }

func (w *dialWorld) transmit(from, to netip.Addr, mad []byte) {
	var m Message
	if d := Decode(mad, &m); d != OK {
		w.t.Fatalf("%s sends a MAD that is refused: %v", from, d)
	}
	if !w.filter(to, &m) {
		return
	}
	copies := 1
	if w.r.Float64() < w.loss {
		copies = 0
		if m.Attribute == DisconnectRequest && from == w.listen.Group {
			if w.lost[m.LocalID]++; w.lost[m.LocalID] == leaveTries {
				copies = 1
			}
		}
	} else if w.r.Float64() < w.loss {
		copies = 2
	}
	for range copies {
		w.flights = append(w.flights, flight{w.now + time.Duration(w.r.Int64N(int64(w.delay))), from, to, slices.Clone(mad)})
	}
}

// send sends packets that wait for nothing.
func (w *dialWorld) send(packets []Packet) {
	for _, p := range packets {
		if p.From != w.listen.Group {
			w.t.Fatalf("a packet from %s", p.From)
		}
		w.transmit(p.From, p.To, p.MAD)
	}
}

// do executes the output of a call of the manager.
func (w *dialWorld) do() {
	w.send(w.file.note(&w.out))
	for _, e := range w.out.Events {
		if e.Refusal != (Refusal{}) {
			w.refusals = append(w.refusals, e.Refusal)
		}
	}
	for _, key := range slices.Clone(w.out.Changed) {
		l, records, ok := w.m.Wanted(key)
		if !ok {
			continue
		}
		if w.pending[key] != nil {
			w.t.Fatal("two registrations at a time")
		}
		if len(records) == 1 || w.force[key] == nil && len(records) != len(w.listen.Listeners)+1 {
			w.t.Fatalf("%d records are wanted, %d are registered", len(records), len(w.force[key]))
		}
		for _, other := range w.keys() {
			if x := w.m.listeners[other]; x != nil && other != key && x.QPN == l.QPN {
				w.t.Fatal("two sessions have one virtual queue pair")
			}
		}
		records = slices.Clone(records)
		w.due[key] = w.now + time.Duration(w.r.Int64N(int64(200*time.Millisecond)))
		w.pending[key] = func() {
			delete(w.pending, key)
			var err error
			if len(records) > 0 && w.r.Float64() < w.refuse {
				err = errors.New("not today")
			} else if w.force[key] = records; len(records) == 0 {
				delete(w.force, key)
			}
			w.m.Registered(w.now, key, err, &w.out)
			w.do()
		}
	}
}

func (w *dialWorld) run(d time.Duration) {
	for until := w.now + d; w.now < until; {
		w.now += 5 * time.Millisecond
		for i := 0; i < len(w.flights); i++ {
			f := w.flights[i]
			if f.at > w.now {
				continue
			}
			w.flights[i] = w.flights[len(w.flights)-1]
			w.flights = w.flights[:len(w.flights)-1]
			i--
			if f.to == w.listen.Group {
				w.m.Input(w.now, f.from, f.to, f.mad, &w.out)
				w.do()
			} else {
				w.hosts[f.to].receive(f.mad)
			}
		}
		for _, key := range w.keys() {
			if w.pending[key] != nil && w.due[key] <= w.now {
				w.pending[key]()
			}
		}
		for _, k := range w.order {
			k.advance()
		}
		w.send(w.file.step(w.m, w.listen.Group, w.now, w.r))
		if at, ok := w.m.NextDeadline(); ok && at <= w.now {
			w.m.Advance(w.now, &w.out)
			w.do()
		}
	}
}

// close ends the group, and the registrations of its sessions as the caller of Close does.
func (w *dialWorld) close() bool {
	known := w.m.Close(w.now, w.listen.Group, &w.out)
	clear(w.force)
	clear(w.pending)
	w.do()
	return known
}

// keys are the addresses that sessions may be registered under.
func (w *dialWorld) keys() (all []netip.Addr) {
	key := w.listen.Group
	for range w.listen.Sessions {
		all = append(all, key)
		key = key.Next()
	}
	return all
}

// recordOf reports whether k's connection c is registered, in any session.
func (w *dialWorld) recordOf(k *kernel, c *kconn) bool {
	want := mcast.MemberRecord{IP: k.ip, QPN: c.qpn, RQPSN: c.psn, SQPSN: c.reply.PSN, ReceiveOnly: c.passive && w.listen.Replies == Refuse}
	if c.passive {
		want.SQPSN = c.ask.PSN
	}
	if c.passive && w.listen.Replies == Leader {
		want.Reply = map[bool]mcast.ReplyKind{true: mcast.ReplyForwarded, false: mcast.ReplyDiscarded}[k == w.listeners()[0]]
	}
	for _, records := range w.force {
		if slices.Contains(records, want) {
			return true
		}
	}
	return false
}

// established returns the connections of k in that state.
func (k *kernel) established() (all []*kconn) {
	for _, c := range k.list() {
		if c.state == "established" {
			all = append(all, c)
		}
	}
	return all
}

// settled checks, with all in order for a while, that the switch and the hosts agree.
func (w *dialWorld) settled() {
	w.t.Helper()
	for _, k := range w.order {
		for _, c := range k.established() {
			if !w.recordOf(k, c) && !k.deaf {
				w.t.Fatalf("%s is connected and not registered: %+v\n%+v", k.ip, c, w.force)
			}
		}
	}
	for id, c := range w.m.byID {
		if c.state != established && c.state != accepted && c.state != requested && c.state != dialling && c.state != answered {
			w.t.Fatalf("connection %x of %s is %s still", id, c.peer.ip, c.state)
		}
	}
}

// empty checks that nothing is left.
func (w *dialWorld) empty() {
	w.t.Helper()
	if len(w.m.byID)+len(w.m.byPeer)+len(w.m.byHost)+len(w.m.retries)+len(w.m.timers)+len(w.m.listeners)+len(w.force) > 0 {
		w.t.Fatalf("left: %d connections, %d by peer, %d timers, %d sessions, %v", len(w.m.byID), len(w.m.byPeer), len(w.m.timers), len(w.m.listeners), w.force)
	}
	if f := w.m.fronts[w.listen.Group]; f != nil && len(f.sessions) > 0 {
		w.t.Fatalf("left: %d sessions of the front", len(f.sessions))
	}
}
