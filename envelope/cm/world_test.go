// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// world is a switch, hosts, and the links between them, in a time of its own.
type world struct {
	t       *testing.T
	r       *rand.Rand
	now     time.Duration
	m       *Manager
	out     Output
	group   netip.Addr
	port    uint16
	mtu     uint8
	key     []byte
	hosts   []*host
	flights []flight
	loss    float64 // the share of MADs lost, each way; as many are duplicated
	delay   time.Duration
	file    file

	registering  func() // the registration under way, due at registered
	registered   time.Duration
	refuse       float64 // the share of registrations that are refused
	inForce      []mcast.MemberRecord
	waited       map[*hostConn]bool
	killed       map[*hostConn]bool
	seen         map[Drop]int
	captured     []Message // REQs of members that have been taken
	connections  int
	refusalsSeen []Refusal
	creates      int // members that REQs name; 0: the group is there from the beginning
	created      int // groups that REQs have made
}

type flight struct {
	at       time.Duration
	from, to netip.Addr
	mad      []byte
}

const testKey = 7

func newWorld(t *testing.T, seed uint64, hosts int, key bool) *world {
	w := &world{
		t: t, r: rand.New(rand.NewPCG(seed, 17)), group: netip.MustParseAddr("10.0.0.100"), port: 7471, mtu: 3, delay: time.Millisecond,
		waited: map[*hostConn]bool{}, killed: map[*hostConn]bool{}, seen: map[Drop]int{},
	}
	if seed%2 == 1 {
		w.group = netip.MustParseAddr("fd00::100")
	}
	l := Listen{Group: w.group, Port: w.port, Expect: hosts, QPN: 0x123456, Wait: 30 * time.Second, From: []netip.Prefix{netip.PrefixFrom(w.group, 8)}}
	keys := map[uint16][]byte{}
	if key {
		w.key = []byte("thirty-two bytes of a secret key")
		keys[testKey], l.Key, l.From = w.key, testKey, nil
	}
	w.m = NewManager(Config{Seed: [32]byte{byte(seed), byte(seed >> 8)}, Keys: keys})
	if err := w.m.Open(l); err != nil {
		t.Fatal(err)
	}
	for i := range hosts + 1 { // one more than there is room for
		ip := w.group
		for range i + 1 {
			ip = ip.Next()
		}
		w.hosts = append(w.hosts, &host{w: w, ip: ip, guid: GUID(0xFE0000 + i), all: map[CommID]*hostConn{}})
	}
	return w
}

// privateData is what a program of ours says; without a key it is another program's.
func (w *world) privateData(h *host, c *hostConn, nonce uint64) []byte {
	if w.key == nil {
		return []byte("hello")
	}
	b := make([]byte, privateLen)
	copy(b, privateMagic)
	b[4], b[5] = privateVersion, flagWindow
	binary.BigEndian.PutUint16(b[6:], testKey)
	binary.BigEndian.PutUint64(b[privateNonceAt:], nonce)
	binary.BigEndian.PutUint64(b[16:], 0x7000)
	binary.BigEndian.PutUint64(b[24:], 0x1000)
	binary.BigEndian.PutUint32(b[32:], uint32(c.qpn))
	if w.creates > 0 {
		b[5] |= flagCreate
		binary.BigEndian.PutUint16(b[36:], uint16(w.creates))
	}
	copy(b[privateMACAt:], privateMAC(w.key, w.group, h.ip, w.port, c.qpn, b))
	return b
}

func (w *world) transmit(from, to netip.Addr, mad []byte) {
	copies := 1
	if w.r.Float64() < w.loss {
		copies = 0
	} else if w.r.Float64() < w.loss {
		copies = 2
	}
	for range copies {
		w.flights = append(w.flights, flight{w.now + time.Duration(w.r.Int64N(int64(w.delay))), from, to, mad})
	}
}

// send sends packets that wait for nothing.
func (w *world) send(packets []Packet) {
	for _, p := range packets {
		if p.From != w.group {
			w.t.Fatalf("a packet from %s", p.From)
		}
		w.transmit(p.From, p.To, p.MAD)
	}
}

// do executes the output of a call of the manager.
func (w *world) do() {
	w.seen[w.out.Drop]++
	w.send(w.file.note(&w.out))
	for _, e := range w.out.Events {
		if e.Refusal != (Refusal{}) {
			w.refusalsSeen = append(w.refusalsSeen, e.Refusal)
		}
	}
	vacant := slices.Clone(w.out.Vacant)
	defer func() {
		for _, g := range vacant {
			if w.m.IsVacant(g) {
				w.m.Close(w.now, g, &w.out)
				w.do()
			}
		}
	}()
	for _, g := range slices.Clone(w.out.Changed) {
		l, records, ok := w.m.Wanted(g)
		if !ok {
			continue
		}
		if w.registering != nil {
			w.t.Fatal("two registrations at a time")
		}
		if len(records) == 1 || l.Expect < len(records)-1 || w.inForce == nil && len(records) != l.Expect {
			w.t.Fatalf("%d records are wanted, %d members expected, %d registered", len(records), l.Expect, len(w.inForce))
		}
		records = slices.Clone(records)
		w.registered = w.now + time.Duration(w.r.Int64N(int64(200*time.Millisecond)))
		w.registering = func() {
			w.registering = nil
			var err error
			if len(records) > 0 && w.r.Float64() < w.refuse {
				err = errors.New("not today")
			} else {
				w.inForce = records
			}
			w.m.Registered(w.now, g, err, &w.out)
			w.do()
		}
	}
}

// connected checks what a host that is connected can send: all members have to be there.
func (w *world) connected(h *host, c *hostConn) {
	w.connections++
	want := mcast.MemberRecord{IP: h.ip, QPN: c.qpn, SQPSN: c.reply.PSN, RQPSN: c.psn}
	if w.key != nil {
		want.Window = mcast.Window{Base: 0x7000, Len: 0x1000, RKey: uint32(c.qpn)}
	}
	if c.reply.QPN != 0x123456 {
		w.t.Fatalf("the REP has %+v", c.reply)
	}
	if slices.Contains(w.inForce, want) {
		return
	}
	if x := w.m.byID[c.remote]; x == nil || x.state == leaving || x.state == lingering {
		return // an old REP: a DREQ has followed it, or will
	}
	w.t.Fatalf("%s is connected, and not registered: %+v\nin force %+v", h.ip, want, w.inForce)
}

// run lets time pass, in steps, up to a time.
func (w *world) run(until time.Duration) {
	for w.now < until {
		w.now += 10 * time.Millisecond
		for i := 0; i < len(w.flights); i++ {
			f := w.flights[i]
			if f.at > w.now {
				continue
			}
			w.flights[i] = w.flights[len(w.flights)-1]
			w.flights = w.flights[:len(w.flights)-1]
			i--
			if f.to == w.group {
				w.input(&f)
				w.do()
			} else {
				w.hosts[slices.IndexFunc(w.hosts, func(h *host) bool { return h.ip == f.to })].receive(f.mad)
			}
		}
		if w.registering != nil && w.registered <= w.now {
			w.registering()
		}
		for _, h := range w.hosts {
			h.advance()
		}
		w.send(w.file.step(w.m, w.group, w.now, w.r))
		if at, ok := w.m.NextDeadline(); ok && at <= w.now {
			w.m.Advance(w.now, &w.out)
			w.do()
			if at, ok := w.m.NextDeadline(); ok && at <= w.now {
				w.t.Fatalf("a deadline %s ago stays", w.now-at)
			}
		}
	}
}

// input passes a MAD to the manager, and opens the group that it makes.
func (w *world) input(f *flight) {
	defer w.capture(f)
	w.m.Input(w.now, f.from, f.to, f.mad, &w.out)
	x := w.out.Creation
	if x == nil {
		return
	}
	if x.Group != w.group || x.Port != w.port || x.Expect != w.creates || x.Key != testKey || x.Member != f.from || !x.Temporary {
		w.t.Fatalf("a group is made of %+v", x)
	}
	w.created++
	x.QPN, x.Wait = 0x123456, time.Minute
	if err := w.m.Open(x.Listen); err != nil {
		w.t.Fatal(err)
	}
	w.m.Input(w.now, f.from, f.to, f.mad, &w.out)
}

// capture remembers a REQ that the switch has taken.
func (w *world) capture(f *flight) {
	var x Message
	if Decode(f.mad, &x) == OK && x.Attribute == ConnectRequest && w.m.byPeer[peer{f.from, x.Request.GUID, x.LocalID}] != nil {
		x.Data = slices.Clone(x.Data)
		w.captured = append(w.captured, x)
	}
}

// replay sends a REQ that was captured, with another PSN and ID, from where its member is. It must have no effect.
func (w *world) replay() {
	if w.key == nil || len(w.captured) == 0 {
		return
	}
	x := w.captured[w.r.IntN(len(w.captured))]
	x.LocalID, x.Request.PSN = CommID(w.r.Uint32()), rocev2.PSN(w.r.Uint32N(1<<24))
	connections := len(w.m.byID)
	w.m.Input(w.now, x.Request.Src, w.group, x.Append(nil), &w.out)
	if w.out.Creation != nil || len(w.m.byID) != connections || len(w.out.Events)+len(w.out.Changed) > 0 {
		w.t.Fatalf("a captured REQ has had an effect: %+v", x)
	}
	w.do()
}

// members are the hosts whose program is connected.
func (w *world) members() (n int) {
	for _, h := range w.hosts {
		if h.now != nil && h.now.state == "established" {
			n++
		}
	}
	return n
}

// settled checks, with all in order for a while, that the switch and the hosts agree.
func (w *world) settled() {
	w.t.Helper()
	have := w.inForce
	for _, h := range w.hosts {
		i := slices.IndexFunc(have, func(r mcast.MemberRecord) bool { return r.IP == h.ip })
		if h.silent {
			continue
		}
		connected := h.now != nil && h.now.state == "established"
		if connected != (i >= 0) || connected && (have[i].QPN != h.now.qpn || have[i].SQPSN != h.now.reply.PSN || have[i].RQPSN != h.now.psn) {
			w.t.Logf("now %+v", h.now)
			for _, c := range w.m.byPeer {
				if c.peer.ip == h.ip {
					w.t.Logf("switch: %+v", c)
				}
			}
			w.t.Fatalf("host %s: connected is %v, the record is at %d of %+v", h.ip, connected, i, have)
		}
	}
	for id, c := range w.m.byID {
		if c.state != established && c.state != requested {
			w.t.Fatalf("connection %x of %s is %s still", id, c.peer.ip, c.state)
		}
	}
}

// evict removes a member, if it is one.
func (w *world) evict(ip netip.Addr) {
	i := slices.IndexFunc(w.inForce, func(r mcast.MemberRecord) bool { return r.IP == ip })
	if i < 0 {
		return
	}
	r := w.inForce[i]
	w.inForce = slices.Delete(slices.Clone(w.inForce), i, i+1)
	w.m.Gone(w.now, w.group, ip, r.QPN, &w.out)
	w.do()
}

// empty checks that nothing is left of members that have all gone.
func (w *world) empty() {
	w.t.Helper()
	if len(w.m.byID)+len(w.m.byPeer)+len(w.m.byHost)+len(w.m.retries)+len(w.m.timers)+len(w.inForce) > 0 {
		w.t.Fatalf("left: %d connections, %d by peer, %d timers, %d records", len(w.m.byID), len(w.m.byPeer), len(w.m.timers), len(w.inForce))
	}
	if w.creates > 0 && w.m.listeners[w.group] != nil {
		w.t.Fatal("a group that a REQ has made is left")
	}
	if l := w.m.listeners[w.group]; l != nil && len(l.members)+len(l.registered) > 0 {
		w.t.Fatalf("left: members %v, registered %v", l.members, l.registered)
	}
}

func (h *host) qpn() rocev2.QPN { return h.now.qpn }
