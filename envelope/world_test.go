// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// testKeys are what the hosts and the switch of a world share.
var testKeys = Keys{7: bytes.Repeat([]byte{0xA5}, 32), 8: bytes.Repeat([]byte{0x5A}, 32)}

func testAuth() Auth { return Auth{Keys: testKeys, Send: 7} }

// tableStub is a Table that remembers what it was told, and answers as scripted.
type tableStub struct {
	groups  map[netip.Addr]*Registration
	verdict map[netip.Addr]Verdict // verdicts by GroupIP; default accepted
	carried map[netip.Addr]bool    // groups whose members have used their PSNs
	away    map[netip.Addr]string  // hosts whose messages come from elsewhere: "" as members, "left" as former ones
	calls   []string
}

func newTableStub() *tableStub {
	return &tableStub{groups: map[netip.Addr]*Registration{}, verdict: map[netip.Addr]Verdict{}, carried: map[netip.Addr]bool{}}
}

func (t *tableStub) Install(r *Registration, _ KeyID) Verdict {
	if v, ok := t.verdict[r.Group]; ok {
		t.calls = append(t.calls, fmt.Sprintf("install %s epoch %d: verdict %d", r.Group, r.Epoch, v.Kind))
		return v
	}
	c := *r
	c.Members = slices.Clone(r.Members)
	c.Numbers, c.Tree = slices.Clone(r.Numbers), t.checkInstall(&c).clone()
	t.groups[r.Group] = &c
	if r.Base != 0 {
		t.calls = append(t.calls, fmt.Sprintf("update %s from epoch %d to %d with %d members", r.Group, r.Base, r.Epoch, len(r.Members)))
		return Verdict{Kind: VerdictAccepted}
	}
	t.calls = append(t.calls, fmt.Sprintf("install %s epoch %d with %d members", r.Group, r.Epoch, len(r.Members)))
	return Verdict{Kind: VerdictAccepted}
}

func (t *tableStub) HadSource(g netip.Addr) bool { return t.carried[g] }

func (t *tableStub) FromMember(_, host netip.Addr, _ KeyID, left bool) bool {
	as, away := t.away[host]
	return !away || left != (as == "left")
}

func (t *tableStub) Remove(g netip.Addr, why EndReason) {
	if t.groups[g] == nil {
		panic("remove of a group that is not installed")
	}
	delete(t.groups, g)
	t.calls = append(t.calls, fmt.Sprintf("remove %s: %v", g, why))
}

func (t *tableStub) RemoveMember(g netip.Addr, k MemberKey, why EndReason) {
	r := t.groups[g]
	i := r.Find(k)
	if i < 0 {
		panic("remove of a member that is not installed")
	}
	r.loseMember(i)
	t.calls = append(t.calls, fmt.Sprintf("remove member %s of %s: %v", k, g, why))
}

// machine is what the three have in common.
type machine interface {
	Input(now time.Duration, from netip.AddrPort, b []byte, out *Output)
	Advance(now time.Duration, out *Output)
	NextDeadline() (time.Duration, bool)
}

// flight is a packet on its way.
type flight struct {
	at  time.Duration
	seq int
	Packet
}

// world joins machines by a network that loses, copies and reorders.
type world struct {
	now      time.Duration
	table    *tableStub
	sw       *Registrar
	books    func() // checks those of sw
	prefix   netip.Prefix
	hosts    map[netip.AddrPort]machine
	names    map[netip.AddrPort]string
	order    []netip.AddrPort
	masters  map[string]*Master
	members  map[string]*Member
	net      []flight
	sent     int
	events   map[string][]Event
	log      func(format string, args ...any)
	bytes    bool     // log every message in full
	captured []Packet // all that was sent
	// fault decides about one packet: the delays after which copies arrive; none
	// means lost.
	fault func(m Message, p Packet) []time.Duration
}

const hop = time.Millisecond

func newWorld(t testing.TB, cfg RegistrarConfig) *world {
	t.Helper()
	w := &world{
		table: newTableStub(), prefix: netip.MustParsePrefix("10.9.0.0/16"),
		hosts: map[netip.AddrPort]machine{}, names: map[netip.AddrPort]string{}, masters: map[string]*Master{}, members: map[string]*Member{},
		events: map[string][]Event{}, log: func(string, ...any) {},
		fault: func(Message, Packet) []time.Duration { return []time.Duration{hop} },
	}
	defaultTo(&cfg.Secret, [SecretLen]byte{0xC0, 0xFF, 0xEE})
	if cfg.Prefixes == nil {
		cfg.Prefixes = []netip.Prefix{w.prefix, netip.MustParsePrefix("fd00:9::/64")}
	}
	if !cfg.Auth.Insecure && cfg.Auth.Keys == nil {
		cfg.Auth = testAuth()
	}
	sw, err := NewRegistrar(cfg, w.table)
	if err != nil {
		t.Fatal(err)
	}
	w.sw, w.books = sw, func() { checkBooks(t, sw) }
	return w
}

func (w *world) add(name string, a netip.AddrPort, m machine) {
	if w.hosts[a] == nil {
		w.order = append(w.order, a)
	}
	w.hosts[a], w.names[a] = m, name
}

func (w *world) addMaster(t testing.TB, name string, cfg MasterConfig, reg Registration) *Master {
	t.Helper()
	if !cfg.Auth.Insecure && cfg.Auth.Keys == nil {
		cfg.Auth = testAuth()
	}
	m, err := NewMaster(cfg, reg)
	if err != nil {
		t.Fatal(err)
	}
	w.masters[name] = m
	w.add(name, cfg.Local, m)
	return m
}

// startMaster makes a master and starts its registration.
func (w *world) startMaster(t testing.TB, name string, cfg MasterConfig, reg Registration) *Master {
	t.Helper()
	m := w.addMaster(t, name, cfg, reg)
	var out Output
	m.Start(w.now, &out)
	w.do(name, &out)
	return m
}

// addMembers makes the members of recs, joined to the group of reg.
func (w *world) addMembers(t testing.TB, reg Registration, recs []MemberRecord) {
	t.Helper()
	for _, rec := range recs {
		w.addMember(t, rec, reg)
	}
}

// addMember makes the member of rec, joined to what reg says about it.
func (w *world) addMember(t testing.TB, rec MemberRecord, reg Registration) *Member {
	t.Helper()
	name := rec.IP.String()
	m := w.members[name]
	if m == nil {
		auth := testAuth()
		if w.sw.auth.Insecure {
			auth = Auth{Insecure: true}
		}
		var err error
		if m, err = NewMember(MemberConfig{Local: netip.AddrPortFrom(rec.IP, DefaultPort), Auth: auth, Seed: 5}); err != nil {
			t.Fatal(err)
		}
		w.members[name] = m
		w.add(name, netip.AddrPortFrom(rec.IP, DefaultPort), m)
	}
	if err := m.Join(membershipOf(rec, reg)); err != nil {
		t.Fatal(err)
	}
	return m
}

func membershipOf(rec MemberRecord, reg Registration) Membership {
	return Membership{MemberRecord: rec, Group: reg.Group, VirtualQPN: reg.QPN, PathMTU: reg.PathMTU}
}

// do takes what a machine wants done.
func (w *world) do(name string, out *Output) {
	if name == "switch" {
		w.books()
	}
	for _, e := range out.Events {
		w.events[name] = append(w.events[name], e)
		w.log("%v %s: %s", w.now, name, eventString(e))
	}
	for _, p := range out.Packets {
		w.inject(p)
	}
}

// inject puts p on the network.
func (w *world) inject(p Packet) {
	m, err := Parse(p.Data)
	if err != nil && !w.bytes { // only exchanges send what cannot be parsed
		panic(err)
	}
	w.captured = append(w.captured, p)
	delays := w.fault(m, p)
	what := "lost"
	if len(delays) == 1 {
		what = ""
	} else if len(delays) > 1 {
		what = fmt.Sprintf("%d times", len(delays))
	}
	text := describe(m)
	if err != nil {
		text = err.Error()
	}
	w.log("%v %s → %s: %s", w.now, w.nameOf(p.Src), w.nameOf(p.Dst), strings.TrimSpace(text+" "+what))
	if w.bytes {
		tx := "" // of what cannot be parsed
		if err == nil {
			tx = fmt.Sprintf("    tx 0x%08x", m.Transaction)
		}
		w.log("%s", strings.TrimPrefix(tx+hexLines(p.Data), "\n"))
	}
	for _, d := range delays {
		w.sent++
		w.net = append(w.net, flight{w.now + d, w.sent, p})
	}
}

// hexLines writes b in lines of 32 bytes.
func hexLines(b []byte) string {
	var s strings.Builder
	for i, x := range b {
		switch {
		case i%32 == 0:
			s.WriteString("\n    ")
		case i%4 == 0:
			s.WriteByte(' ')
		}
		fmt.Fprintf(&s, "%02x", x)
	}
	return s.String()
}

func (w *world) nameOf(a netip.AddrPort) string {
	if n := w.names[a]; n != "" {
		return n
	}
	if w.sw.Serves(a.Addr()) {
		return "switch"
	}
	return a.String()
}

// deliver hands a packet to whom it is for.
func (w *world) deliver(p Packet) {
	var out Output
	if w.sw.Serves(p.Dst.Addr()) {
		w.sw.Input(w.now, p.Src, p.Data, &out)
		w.dropLog("switch", out.Drop)
		w.do("switch", &out)
	} else if m := w.hosts[p.Dst]; m != nil {
		m.Input(w.now, p.Src, p.Data, &out)
		w.dropLog(w.names[p.Dst], out.Drop)
		w.do(w.names[p.Dst], &out)
	}
}

func (w *world) dropLog(name string, d Drop) {
	if d != NoDrop {
		w.log("%v %s: drop %v", w.now, name, d)
	}
}

// step lets the next thing happen, if it is due by limit.
func (w *world) step(limit time.Duration) bool {
	var d deadlines
	for _, f := range w.net {
		d.add(f.at)
	}
	if t, ok := w.sw.NextDeadline(); ok {
		d.add(t)
	}
	for _, a := range w.order {
		if t, ok := w.hosts[a].NextDeadline(); ok {
			d.add(t)
		}
	}
	if !d.ok || d.at > limit {
		w.now = max(w.now, limit)
		return false
	}
	w.now = max(w.now, d.at)
	slices.SortStableFunc(w.net, func(a, b flight) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.seq - b.seq
	})
	if len(w.net) > 0 && w.net[0].at <= w.now {
		f := w.net[0]
		w.net = w.net[1:]
		w.deliver(f.Packet)
		return true
	}
	var out Output
	w.sw.Advance(w.now, &out)
	w.do("switch", &out)
	for _, a := range w.order {
		w.hosts[a].Advance(w.now, &out)
		w.do(w.names[a], &out)
	}
	return true
}

// run lets d pass.
func (w *world) run(d time.Duration) {
	limit := w.now + d
	for w.step(limit) {
	}
}

// last returns the newest event of a machine, or the zero Event.
func (w *world) last(name string) Event {
	if es := w.events[name]; len(es) > 0 {
		return es[len(es)-1]
	}
	return Event{}
}

func (w *world) count(name string, k EventKind) (n int) {
	for _, e := range w.events[name] {
		if e.Kind == k {
			n++
		}
	}
	return n
}

var eventNames = map[EventKind]string{
	SwitchAccepted: "SwitchAccepted", MemberConfirmed: "MemberConfirmed", Registered: "Registered",
	RegistrationFailed: "RegistrationFailed", MemberGone: "MemberGone", GroupGone: "GroupGone", Stalled: "Stalled", Resumed: "Resumed", LeaveFailed: "LeaveFailed",
	MemberJoined: "MemberJoined", Unchanged: "Unchanged", Updated: "Updated", UpdateFailed: "UpdateFailed",
	MemberHere: "MemberHere",
}

func eventString(e Event) string {
	s := fmt.Sprintf("%s %s epoch %d", eventNames[e.Kind], e.Group, e.Epoch)
	if e.Member.IP.IsValid() {
		s += " member " + e.Member.String()
	}
	if e.Total > 0 {
		s += fmt.Sprintf(" %d/%d", e.Done, e.Total)
	}
	if e.EndReason != 0 {
		s += fmt.Sprintf(" (%v)", e.EndReason)
	}
	if e.Status != 0 {
		s += fmt.Sprintf(" (%v)", e.Status)
	}
	if e.Nonce != (Nonce{}) {
		s += fmt.Sprintf(" nonce %x", e.Nonce)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// describe shows what matters of a message, without transaction numbers.
func describe(m Message) string {
	s := fmt.Sprintf("%v epoch %d", m.Type, m.Epoch)
	if m.Total > 1 {
		s += fmt.Sprintf(" %d/%d", m.Seq+1, m.Total)
	}
	switch b := m.Body.(type) {
	case *Register:
		s += fmt.Sprintf(" members %d", len(b.Members))
		if b.Base != 0 {
			s += fmt.Sprintf(", update of %d", b.Base)
		}
	case *Renew:
		s += fmt.Sprintf(" remind %d", len(b.ListUnconfirmed))
	case *Accept:
		s += fmt.Sprintf(" of %v, lease %v", b.Request, b.Lease)
	case *Reject:
		s += fmt.Sprintf(" of %v: %v", b.Request, b.Error())
	case *Challenge:
		s += fmt.Sprintf(" of %v, known %d", b.Request, b.EpochKnown)
	case *Confirm:
		s += fmt.Sprintf(" %v %v", b.Member, b.Status)
	case *Gone:
		s += fmt.Sprintf(" %v", b.EndReason)
		if b.Member.IP.IsValid() {
			s += " " + b.Member.String()
		}
	case *Leave:
		s += " " + b.Member.String()
	case *Where:
		s += fmt.Sprintf(" %v nonce %x", b.Member, b.Nonce)
	case *Here:
		s += fmt.Sprintf(" %v nonce %x", b.Member, b.Nonce)
	}
	return s
}

// sample returns a registration of n members under group 10.9.0.g.
func sample(g byte, n int) Registration {
	r := Registration{Group: netip.AddrFrom4([4]byte{10, 9, 0, g}), GroupParams: mcast.GroupParams{QPN: 0x4001, PathMTU: 1024}, Lease: 30 * time.Second}
	for i := range n {
		r.Members = append(r.Members, MemberRecord{
			IP: netip.AddrFrom4([4]byte{10, g, byte(i >> 8), byte(i + 1)}), QPN: rocev2.QPN(0x100 + i), SQPSN: 0x1000, RQPSN: 0x2000,
		})
	}
	return r
}

func withWindows(r Registration) Registration {
	r.Window = mcast.Window{Base: 0x7f0000000000, Len: 1 << 20, RKey: 0xDEADBEEF}
	r.Members = slices.Clone(r.Members)
	for i := range r.Members {
		r.Members[i].Window = mcast.Window{Base: uint64(i+1) << 32, Len: 1 << 20, RKey: 0xFACE0000 + uint32(i)}
	}
	return r
}

var masterAddr = netip.MustParseAddrPort("10.0.0.1:5000")
