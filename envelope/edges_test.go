// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// sealed is a message under key 7 with a body that was changed after it was encoded.
func sealed(t *testing.T, h Header, b Body, change func(data []byte) []byte) []byte {
	t.Helper()
	h.KeyID = 7
	m := Message{h, b}
	data, err := m.append(nil, MACLen)
	if err != nil {
		t.Fatal(err)
	}
	data = change(data)
	binary.BigEndian.PutUint16(data[lenOffset:], uint16(len(data)+MACLen))
	return append(data, macOf(testKeys[7], Type(data[5]), data)...)
}

// TestMalformedRequests: an authentic request whose body makes no sense is rejected if it
// is one, comes from where its answer goes, and has a cookie.
func TestMalformedRequests(t *testing.T) {
	reg := sample(1, 2)
	longer := func(b []byte) []byte { return append(b, 0) }
	for _, x := range []struct {
		name   string
		body   Body
		from   netip.AddrPort
		change func(h *Header)
		want   bool
	}{
		{"Register", &Register{reg.groupBody(reg.Members)}, masterAddr, nil, true},
		{"Leave", &Leave{reg.Members[0].Key()}, masterAddr, nil, true},
		{"Delete", &Delete{}, masterAddr, nil, true},
		{"Renew", &Renew{}, masterAddr, nil, true},
		{"Ack", &Ack{}, masterAddr, nil, false},
		{"Accept", &Accept{}, masterAddr, nil, false},
		{"from elsewhere", &Delete{}, netip.MustParseAddrPort("10.0.0.77:5000"), nil, false},
		{"without a cookie", &Delete{}, masterAddr, func(h *Header) { h.Instance = 0 }, false},
		{"without a port", &Delete{}, masterAddr, func(h *Header) { h.ReplyTo = netip.AddrPortFrom(h.ReplyTo.Addr(), 0) }, false},
	} {
		a := newAsker(t, RegistrarConfig{})
		h := a.head(reg.Group, 1)
		if x.change != nil {
			x.change(&h)
		}
		var out Output
		a.w.sw.Input(0, x.from, sealed(t, h, x.body, longer), &out)
		if out.Drop != BadFormat || (len(out.Packets) == 1) != x.want || x.want && a.reason(out) != Malformed {
			t.Errorf("%s: drop %v, %d answers", x.name, out.Drop, len(out.Packets))
		}
	}
}

// TestNoAnswerToABrokenHeader: what has no valid header is not answered, even with a MAC
// and a cookie.
func TestNoAnswerToABrokenHeader(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	a.from = netip.MustParseAddrPort("[fd00::5]:5000")
	data := sealed(t, a.head(netip.MustParseAddr("fd00:9::1"), 1), &Delete{}, func(b []byte) []byte {
		mapped := netip.MustParseAddr("::ffff:10.9.0.1").As16()
		copy(b[fixedLen:], mapped[:])
		return b
	})
	if out := a.raw(data); out.Drop != BadFormat || len(out.Packets) > 0 {
		t.Errorf("drop %v %s, %d answers", out.Drop, out.Detail, len(out.Packets))
	}
}

// TestHeaderEdges: types and segments at the ends of their ranges.
func TestHeaderEdges(t *testing.T) {
	h := Header{Total: 1, Group: sample(1, 2).Group, ReplyTo: masterAddr}
	m := Message{h, &Delete{}}
	b, err := m.append(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		at   int
		v    byte
		good bool
	}{{5, byte(TypeDelete), true}, {5, 0, false}, {5, byte(numTypes), false}, {5, byte(TypeAck), true}, {33, 1, false}, {35, 0, false}, {35, 2, false}, {8, 4, false}, {8, flagRelay, true}, {9, 1, false}} {
		c := append([]byte(nil), b...)
		c[x.at] = x.v
		if _, err := Parse(c); x.good != (err == nil) {
			t.Errorf("byte %d is %d: %v", x.at, x.v, err)
		}
	}
	for n := range b {
		if _, err := Parse(b[:n]); err == nil || !strings.Contains(err.Error(), "truncated") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	reg := Registration{Group: h.Group, Members: make([]MemberRecord, 0x10000)}
	for i := range reg.Members {
		reg.Members[i].IP = netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
	}
	if _, err := appendSection(nil, reg.Members, false); err == nil {
		t.Error("65,536 records in a section")
	}
	if _, err := appendSection(nil, reg.Members[1:], false); err != nil {
		t.Error(err)
	}
	if _, err := reg.Segments(1500); err == nil {
		t.Error("65,536 members in a registration")
	}
	zone := MemberRecord{IP: netip.MustParseAddr("fe80::1%eth0")}
	if _, err := appendSection(nil, []MemberRecord{zone}, true); err == nil {
		t.Error("an address with a zone is encoded")
	}
}

// TestRefusalTexts: a refusal says what the member has and what was registered.
func TestRefusalTexts(t *testing.T) {
	for s, want := range map[Status]string{
		QPNMismatch: "has another QPN: 0x77", SQPSNMismatch: "has another sq_psn: 0x5, registered was 0x1000",
		RQPSNMismatch: "has another rq_psn: 0x6, registered was 0x2000", NotJoined: "has not joined the group", WindowMismatch: "has another WRITE window",
	} {
		rec := sample(1, 1).Members[0]
		f := Failure{Action: "register", Refusal: &Confirm{Member: rec.Key(), Status: s, QPN: 0x77, SQPSN: 5, RQPSN: 6}, Registered: rec}
		if got := f.Error(); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestHintIsOurs: an unauthenticated Reject is a hint if it is about our registration.
func TestHintIsOurs(t *testing.T) {
	reg := sample(1, 2)
	for _, x := range []struct {
		name   string
		change func(m *Message)
		want   bool
	}{
		{"ours", func(*Message) {}, true},
		{"another group's", func(m *Message) { m.Group = netip.MustParseAddr("10.9.0.2") }, false},
		{"another transaction's", func(m *Message) { m.Transaction++ }, false},
		{"another reason", func(m *Message) { m.Body = &Reject{Problem: Problem{Reason: TableFull}} }, false},
		{"another message", func(m *Message) { m.Body = &Accept{} }, false},
	} {
		m, err := NewMaster(MasterConfig{Local: masterAddr, Auth: testAuth()}, reg)
		if err != nil {
			t.Fatal(err)
		}
		var out Output
		m.Start(0, &out)
		msg := Message{Header{Total: 1, Transaction: m.registerTx, Group: reg.Group, ReplyTo: masterAddr}, &Reject{Request: TypeRegister, Problem: Problem{Reason: BadAuthentication}}}
		x.change(&msg)
		b, err := msg.append(nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		m.Input(0, netip.AddrPortFrom(reg.Group, DefaultPort), b, &out)
		if m.authHint != x.want {
			t.Errorf("%s: %t", x.name, m.authHint)
		}
	}
}

// TestTroubleCounts: messages that are not authentic are a member's trouble, whatever is
// wrong with them, from when it has joined.
func TestTroubleCounts(t *testing.T) {
	reg := sample(1, 2)
	for _, d := range []Drop{Unauthenticated, UnknownKey, BadMAC, WrongRole} {
		m, err := NewMember(MemberConfig{Local: netip.AddrPortFrom(reg.Members[0].IP, DefaultPort), Auth: testAuth()})
		if err != nil {
			t.Fatal(err)
		}
		var out Output
		m.drop(Unauthenticated, &out)
		m.drop(UnknownKey, &out)
		m.drop(BadMAC, &out)
		if err := m.Join(membershipOf(reg.Members[0], reg)); err != nil {
			t.Fatal(err)
		}
		if err := m.Problem(reg.Group); err != nil {
			t.Error(err)
		}
		m.drop(d, &out)
		m.drop(d, &out)
		if err := m.Problem(reg.Group); (err != nil) != (d != WrongRole) || err != nil && !strings.HasPrefix(err.Error(), "2 messages") {
			t.Errorf("%v: %v", d, err)
		}
	}
}

// TestBackoffEnds: waits double up to the longest, and jitter takes or adds a quarter.
func TestBackoffEnds(t *testing.T) {
	var b backoff
	var r random
	b.start(0, 100, &r)
	for _, want := range []time.Duration{200, 400, 800, 1000, 1000} {
		if b.retry(0, 1000, &r); b.wait != want || b.next < want*3/4 || b.next > want*5/4 {
			t.Errorf("wait %d, next at %d, want %d", b.wait, b.next, want)
		}
	}
	for _, d := range []time.Duration{0, 1} {
		if got := r.jitter(d); got != d {
			t.Errorf("jitter of %d: %d", d, got)
		}
	}
}

// TestKeysThatGo: what is being put together under a key ends with it, what is under one
// that stays goes on; groups of a key that has gone are counted.
func TestKeysThatGo(t *testing.T) {
	for _, stays := range []KeyID{7, 8} {
		a := newAsker(t, RegistrarConfig{})
		a.register(epoch(sample(1, 2), 1))
		h := a.head(sample(2, 2).Group, 1)
		h.KeyID, h.Total = 7, 2
		r := sample(2, 2)
		b := r.groupBody(r.Members)
		b.Members = r.Members[:1]
		a.askUnder(h, &Register{b})
		if len(a.w.sw.pending) != 1 {
			t.Fatal("nothing is put together")
		}
		orphans, err := a.w.sw.SetKeys(0, Auth{Keys: Keys{stays: testKeys[stays]}, Send: stays}, nil)
		if err != nil || (len(a.w.sw.pending) == 1) != (stays == 7) || (orphans[7] == 1) != (stays == 8) || len(orphans) > 1 {
			t.Errorf("key %d stays: %d pending, %v, %v", stays, len(a.w.sw.pending), orphans, err)
		}
		if _, ok := a.w.sw.retiredAuth[7]; ok != (stays == 8) {
			t.Errorf("key %d stays: retired %v", stays, a.w.sw.retiredAuth)
		}
	}
}

// TestRejectsSayHow: a Reject has the value that would do, and names no member of another
// IP family than the group's.
func TestRejectsSayHow(t *testing.T) {
	a := newAsker(t, RegistrarConfig{MaxPMTU: 2048})
	for _, pmtu := range []int{1500, 4096} {
		reg := epoch(sample(1, 2), uint64(pmtu))
		reg.PathMTU = pmtu
		if j, ok := a.answers(a.register(reg))[0].(*Reject); !ok || j.Reason != PathMTUMismatch || j.Value != 2048 {
			t.Errorf("path MTU %d: %+v", pmtu, j)
		}
	}
	var out Output
	six := MemberKey{IP: netip.MustParseAddr("fd00::2"), QPN: 0x100}
	a.w.sw.answerReject(&Header{Type: TypeRegister, KeyID: 7, Epoch: 1, Group: sample(1, 2).Group, ReplyTo: masterAddr}, Problem{Reason: FamilyMismatch, Member: six}, &out)
	if j, ok := a.answers(out)[0].(*Reject); !ok || j.Reason != FamilyMismatch || j.Member != (MemberKey{}) {
		t.Errorf("%+v", j)
	}
	_, err := NewRegistrar(RegistrarConfig{Secret: [SecretLen]byte{1}, Auth: testAuth(), Prefixes: []netip.Prefix{a.w.prefix}, MaxGroups: 9, MaxEpochs: 19}, a.w.table)
	if err == nil || !strings.Contains(err.Error(), "19 epochs remembered for 9 groups; need at least 20") {
		t.Error(err)
	}
}

// TestMoreEdges: what is checked before anything is sent.
func TestMoreEdges(t *testing.T) {
	if _, err := NewMember(MemberConfig{Local: masterAddr}); err == nil {
		t.Error("a member without a key")
	}
	m := Message{Header{Group: sample(1, 2).Group, ReplyTo: masterAddr}, &Delete{}}
	if _, err := m.append(nil, 0); err == nil {
		t.Error("a message of no segments is encoded")
	}
	if _, err := appendNonce(nil, netip.Addr{}, &Nonce{}, false); err == nil {
		t.Error("a question about no address is encoded")
	}
	reg := sample(1, 3)
	a, err := NewMaster(MasterConfig{Local: masterAddr, Auth: testAuth()}, reg)
	if err != nil {
		t.Fatal(err)
	}
	reg.Members[0].QPN++
	if a.Members()[0].QPN == reg.Members[0].QPN {
		t.Error("a master keeps the caller's members")
	}
	for _, f := range []func(*MemberRecord){func(m *MemberRecord) { m.SQPSN = 1 << 24 }, func(m *MemberRecord) { m.RQPSN = 1 << 24 }, func(m *MemberRecord) { m.QPN = 1 << 24 }} {
		bad := sample(1, 3)
		f(&bad.Members[1])
		if p := bad.Validate(); p == nil || p.Reason != BadMember {
			t.Errorf("%v: %v", bad.Members[1], p)
		}
	}
}
