// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// asker sends requests by hand, as a master or member would.
type asker struct {
	t    *testing.T
	w    *world
	from netip.AddrPort
	tx   uint32
}

func newAsker(t *testing.T, cfg RegistrarConfig) *asker {
	return &asker{t: t, w: newWorld(t, cfg), from: masterAddr}
}

// head returns the header of a new request.
func (a *asker) head(group netip.Addr, epoch uint64) Header {
	a.tx++
	return Header{Epoch: epoch, Instance: a.cookie(), Transaction: a.tx, Total: 1, Group: group, ReplyTo: a.from}
}

// raw hands bytes to the switch and returns what it wants done.
func (a *asker) raw(b []byte) Output {
	var out Output
	a.w.sw.Input(a.w.now, a.from, b, &out)
	return out
}

func (a *asker) ask(h Header, body Body) Output {
	a.t.Helper()
	h.KeyID = a.w.sw.auth.Send
	return a.askUnder(h, body)
}

// cookie is what the asker's requests carry.
func (a *asker) cookie() uint64 { return a.w.sw.cookie(a.from, a.w.sw.auth.Send) }

// askUnder is ask under the key that h names.
func (a *asker) askUnder(h Header, body Body) Output {
	a.t.Helper()
	if h.Instance == a.cookie() { // of head
		h.Instance = a.w.sw.cookie(h.ReplyTo, h.KeyID)
	}
	b, err := Append(nil, &Message{h, body}, testKeys, h.KeyID)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.raw(b)
}

// register sends reg in one segment.
func (a *asker) register(reg Registration) Output {
	a.t.Helper()
	return a.ask(a.head(reg.Group, reg.Epoch), &Register{reg.groupBody(reg.Members)})
}

// answers returns the bodies that out sends to the asker.
func (a *asker) answers(out Output) (bs []Body) {
	a.t.Helper()
	for _, p := range out.Packets {
		m, err := Open(p.Data, testKeys, true)
		if err != nil {
			a.t.Fatal(err)
		}
		if p.Dst == a.from {
			if _, ok := m.Body.(*Gone); !ok {
				bs = append(bs, m.Body)
			}
		}
	}
	return bs
}

// reason returns why out rejects, NoReason if it accepts; it fails the test if
// it does neither, or both.
func (a *asker) reason(out Output) Reason {
	a.t.Helper()
	bs := a.answers(out)
	if len(bs) != 1 {
		a.t.Fatalf("%d answers: %v (drop %v)", len(bs), bs, out.Drop)
	}
	switch b := bs[0].(type) {
	case *Accept:
		return NoReason
	case *Reject:
		return b.Reason
	}
	a.t.Fatalf("answer is a %v", bs[0].kind())
	return 0
}

func epoch(r Registration, e uint64) Registration {
	r.Epoch = e
	return r
}

// TestRejections: every reason for which a registration is turned down.
func TestRejections(t *testing.T) {
	change := func(f func(*Registration)) Registration {
		r := epoch(sample(1, 3), 5)
		f(&r)
		return r
	}
	second := func(f func(*MemberRecord)) Registration { return change(func(r *Registration) { f(&r.Members[1]) }) }
	windows := func(f func(*Registration)) Registration {
		r := epoch(withWindows(sample(1, 3)), 5)
		f(&r)
		return r
	}
	six := epoch(sample(1, 2), 5)
	six.Group = netip.MustParseAddr("fd00:9::1")
	six.Members[0].IP, six.Members[1].IP = netip.MustParseAddr("fd00::2"), netip.MustParseAddr("::ffff:10.0.0.3")
	for _, c := range []struct {
		name string
		reg  Registration
		want Reason
	}{
		{"sound", change(func(*Registration) {}), NoReason},
		{"sound with windows", windows(func(*Registration) {}), NoReason},
		{"one without a window can be the source", windows(func(r *Registration) { r.Members[0].Window = mcast.Window{} }), NoReason},
		{"path MTU", change(func(r *Registration) { r.PathMTU = 1500 }), PathMTUMismatch},
		{"path MTU above the ports'", change(func(r *Registration) { r.PathMTU = 4096 }), PathMTUMismatch},
		{"too many", change(func(r *Registration) { r.Members = sample(1, 9).Members }), TooManyMembers},
		{"one member", change(func(r *Registration) { r.Members = r.Members[:1] }), TooFewMembers},
		{"no member", change(func(r *Registration) { r.Members = nil }), TooFewMembers},
		{"same member twice", second(func(m *MemberRecord) { *m = sample(1, 1).Members[0] }), OverlappingMembers},
		{"same IP twice", second(func(m *MemberRecord) { m.IP = sample(1, 1).Members[0].IP }), OverlappingMembers},
		{"member of another group", second(func(m *MemberRecord) { *m = sample(77, 1).Members[0] }), OverlappingMembers},
		{"another QP of a host in another group", second(func(m *MemberRecord) { m.IP = sample(77, 1).Members[0].IP }), NoReason},
		{"two without a window", windows(func(r *Registration) { r.Members[0].Window, r.Members[1].Window = mcast.Window{}, mcast.Window{} }), BadWindow},
		{"window too short", windows(func(r *Registration) { r.Members[1].Window.Len-- }), BadWindow},
		{"window past the end", windows(func(r *Registration) { r.Members[1].Window.Base = ^uint64(0) - 10 }), BadWindow},
		{"window without the group's", windows(func(r *Registration) { r.Window = mcast.Window{} }), BadWindow},
		{"group window empty", windows(func(r *Registration) { r.Window.Len = 0 }), BadWindow},
		{"family", six, FamilyMismatch},
		{"multicast member", second(func(m *MemberRecord) { m.IP = netip.MustParseAddr("224.0.0.5") }), BadMember},
		{"member is the group", second(func(m *MemberRecord) { m.IP = netip.MustParseAddr("10.9.0.1") }), BadMember},
		{"member in a group prefix", second(func(m *MemberRecord) { m.IP = netip.MustParseAddr("10.9.3.3") }), BadMember},
		{"member QPN", second(func(m *MemberRecord) { m.QPN = 1 }), BadMember},
		{"virtual QPN", change(func(r *Registration) { r.QPN = 1 }), BadVirtualQPN},
		{"policy", change(func(r *Registration) { r.Policy = 9 }), Malformed},
		{"prefix", change(func(r *Registration) { r.Group = netip.MustParseAddr("10.8.0.1") }), NotGroupPrefix},
		{"stale epoch", func() Registration { r := epoch(sample(77, 2), 4); return r }(), StaleEpoch},
		{"epoch conflict", func() Registration { r := epoch(sample(77, 3), 5); return r }(), EpochConflict},
		{"same again", epoch(sample(77, 2), 5), NoReason},
		{"table full", epoch(sample(3, 2), 5), TableFull},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAsker(t, RegistrarConfig{MaxMembers: 8, MaxPMTU: 2048, MaxGroups: 2})
			if r := a.reason(a.register(epoch(sample(77, 2), 5))); r != NoReason {
				t.Fatal(r)
			}
			if c.want == TableFull {
				a.register(epoch(sample(2, 2), 5))
			}
			if c.reg.Group.Is6() {
				a.from = netip.MustParseAddrPort("[fd00::1]:5000")
			}
			before := len(a.w.table.calls)
			out := a.register(c.reg)
			if got := a.reason(out); got != c.want {
				t.Fatalf("%v, want %v", got, c.want)
			}
			if c.want != NoReason && (len(a.w.table.calls) != before || out.Drop != Rejected) {
				t.Errorf("rejected, but drop is %v and the table got %v", out.Drop, a.w.table.calls[before:])
			}
			if c.want == NoReason || c.want == NotGroupPrefix {
				return
			}
			// The same question gets the same answer, and after it nothing else.
			if got := a.reason(a.register(c.reg)); got != c.want {
				t.Errorf("asked again: %v, want %v", got, c.want)
			}
		})
	}
}

// TestRejectedEpochIsUsedUp: a registration whose master has been told no must
// not come to life when somebody replays it later, with room in the table.
func TestRejectedEpochIsUsedUp(t *testing.T) {
	a := newAsker(t, RegistrarConfig{MaxGroups: 1})
	a.register(epoch(sample(1, 2), 1))
	out := a.register(epoch(sample(2, 2), 1))
	if a.reason(out) != TableFull {
		t.Fatal("not full")
	}
	if r := a.reason(a.ask(a.head(sample(1, 2).Group, 1), &Delete{})); r != NoReason {
		t.Fatal(r)
	}
	if r := a.reason(a.register(epoch(sample(2, 2), 1))); r != TableFull {
		t.Errorf("replayed after there is room: %v", r)
	}
	if r := a.reason(a.register(epoch(sample(2, 2), 2))); r != NoReason {
		t.Errorf("next epoch: %v", r)
	}
}

// TestUnauthenticated: without the key nothing changes, and no more bytes come
// back than went in.
func TestUnauthenticated(t *testing.T) {
	reg := epoch(sample(1, 2), 1)
	strange := Keys{7: make([]byte, 32), 99: make([]byte, 32)}
	for _, c := range []struct {
		name string
		id   KeyID
		want Drop
	}{{"no MAC", 0, Unauthenticated}, {"unknown key", 99, UnknownKey}, {"wrong key", 7, BadMAC}} {
		a := newAsker(t, RegistrarConfig{})
		hints, bytesIn, bytesOut := 0, 0, 0
		for i, body := range []Body{
			&Register{reg.groupBody(reg.Members)}, &Renew{}, &Leave{reg.Members[0].Key()}, &Delete{}, &Ack{}, &Accept{}, &Gone{EndReason: Deleted}, &Challenge{},
		} {
			b, err := Append(nil, &Message{a.head(reg.Group, 1), body}, strange, c.id)
			if err != nil {
				t.Fatal(err)
			}
			for range 50 {
				a.w.now = time.Duration(i) * 10 * time.Second
				out := a.raw(b)
				if out.Drop != c.want || len(out.Events) > 0 {
					t.Errorf("%s, %v: drop %v, events %v", c.name, body.kind(), out.Drop, out.Events)
				}
				for _, p := range out.Packets {
					hints++
					bytesOut += len(p.Data)
					if len(p.Data) > len(b) {
						t.Errorf("%s, %v: %d bytes answered with %d", c.name, body.kind(), len(b), len(p.Data))
					}
				}
				bytesIn += len(b)
			}
		}
		if hints == 0 || hints > 4 {
			t.Errorf("%s: %d hints", c.name, hints)
		}
		if len(a.w.table.calls) > 0 {
			t.Errorf("%s: table got %v", c.name, a.w.table.calls)
		}
		if n := a.w.sw.Drops()[c.want]; n != 400 {
			t.Errorf("%s: counted %d", c.name, n)
		}
	}
	a := newAsker(t, RegistrarConfig{HintInterval: -1})
	b, _ := Append(nil, &Message{a.head(reg.Group, 1), &Register{reg.groupBody(reg.Members)}}, strange, 7)
	if out := a.raw(b); len(out.Packets) > 0 {
		t.Error("hints are off, but there is one")
	}
}

// TestMalformedIsRejected: an authentic message whose body is wrong gets an
// answer, since its sender is one of ours.
func TestMalformedIsRejected(t *testing.T) {
	a := newAsker(t, RegistrarConfig{Auth: Auth{Insecure: true}})
	reg := epoch(sample(1, 2), 1)
	b, err := Append(nil, &Message{a.head(reg.Group, 1), &Register{reg.groupBody(reg.Members)}}, testKeys, 0)
	if err != nil {
		t.Fatal(err)
	}
	b[headerLen(false)] = 0x80 // group flags
	out := a.raw(b)
	if a.reason(out) != Malformed || out.Drop != BadFormat {
		t.Errorf("%v", out)
	}
}

// TestNotAllowed: only the master may delete, renew or remove others; a member
// may leave.
func TestNotAllowed(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 3), 1)
	a.register(reg)
	key := reg.Members[1].Key()
	for _, from := range []netip.Addr{netip.MustParseAddr("10.0.0.66"), reg.Members[0].IP} {
		a.from = netip.AddrPortFrom(from, DefaultPort)
		for i, body := range []Body{&Delete{}, &Leave{key}, &Renew{Lease: time.Hour}} {
			if i == 2 {
				a.from = netip.AddrPortFrom(from, DefaultPort+1) // at a member's port it is a question
			}
			if r := a.reason(a.ask(a.head(reg.Group, 1), body)); r != NotAllowed {
				t.Errorf("%v from %s: %v", body.kind(), from, r)
			}
		}
	}
	a.from = netip.AddrPortFrom(key.IP, DefaultPort)
	if r := a.reason(a.ask(a.head(reg.Group, 1), &Leave{key})); r != NoReason {
		t.Errorf("a member leaves: %v", r)
	}
	if r := a.reason(a.ask(a.head(netip.MustParseAddr("10.9.0.200"), 1), &Renew{})); r != UnknownGroup {
		t.Errorf("renew of nothing: %v", r)
	}
	if r := a.reason(a.ask(a.head(reg.Group, 2), &Leave{key})); r != UnknownGroup {
		t.Errorf("leave of a later epoch: %v", r)
	}
	if got, _, _ := a.w.sw.Group(reg.Group); len(got.Members) != 2 {
		t.Errorf("%d members", len(got.Members))
	}
}

// TestMasterOnMembersHost: a master removes its own host's member, and the
// member there leaves by itself; the port tells who asks.
func TestMasterOnMembersHost(t *testing.T) {
	for _, c := range []struct {
		port uint16
		want EndReason
		told uint16
	}{{5000, Removed, DefaultPort}, {DefaultPort, Left, 5000}} {
		a := newAsker(t, RegistrarConfig{})
		reg := epoch(sample(1, 3), 1)
		host := reg.Members[0].IP
		a.from = netip.AddrPortFrom(host, 5000)
		a.register(reg)
		a.from = netip.AddrPortFrom(host, c.port)
		out := a.ask(a.head(reg.Group, 1), &Leave{reg.Members[0].Key()})
		if len(out.Events) != 1 || out.Events[0].EndReason != c.want {
			t.Errorf("events %v, want %v", out.Events, c.want)
		}
		if p := out.Packets[0]; p.Dst != netip.AddrPortFrom(host, c.told) {
			t.Errorf("%v told %v, want port %d", c.want, p.Dst, c.told)
		}
	}
}

// TestWrongSource: an authentic message that comes from elsewhere than it says.
func TestWrongSource(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 2), 1)
	h := a.head(reg.Group, 1)
	a.from = netip.MustParseAddrPort("10.0.0.66:5000")
	if out := a.ask(h, &Register{reg.groupBody(reg.Members)}); out.Drop != WrongSource || len(out.Packets) > 0 {
		t.Errorf("%v, %d packets", out.Drop, len(out.Packets))
	}
	a.from = masterAddr
	for _, body := range []Body{&Accept{}, &Reject{}, &Challenge{}, &Notify{}, &Confirm{Member: reg.Members[0].Key()}, &Gone{}} {
		if out := a.ask(a.head(reg.Group, 1), body); out.Drop != WrongRole || len(out.Packets) > 0 {
			t.Errorf("%v: %v", body.kind(), out.Drop)
		}
	}
	h = a.head(reg.Group, 1)
	h.Relay = true
	if out := a.ask(h, &Register{reg.groupBody(reg.Members)}); out.Drop != WrongRole {
		t.Errorf("relayed: %v", out.Drop)
	}
}
