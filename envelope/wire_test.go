// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// examples has one message of each type and form, by name.
func examples() map[string]Message {
	g4, g6 := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("fd00:9::1")
	head := func(g netip.Addr) Header {
		r := netip.MustParseAddrPort("10.0.0.1:5000")
		if g.Is6() {
			r = netip.MustParseAddrPort("[fd00::1]:5000")
		}
		return Header{Epoch: 0x0102030405060708, Instance: 0x1112131415161718, Transaction: 0x21222324, Total: 1, Group: g, ReplyTo: r}
	}
	key := MemberKey{netip.MustParseAddr("10.0.0.2"), 0x000A01}
	key6 := MemberKey{netip.MustParseAddr("fd00::2"), 0x000A01}
	recs := []MemberRecord{
		{IP: key.IP, QPN: key.QPN, SQPSN: 0x111111, RQPSN: 0x222222},
		{IP: netip.MustParseAddr("10.0.3.4"), QPN: 0x000A02, SQPSN: 0x111111, RQPSN: 0x222222},
	}
	each := []MemberRecord{recs[0], recs[1]}
	each[1].SQPSN, each[1].RQPSN = 0x333333, 0x444444
	win := []MemberRecord{recs[0], recs[1]}
	win[1].Window = mcast.Window{Base: 0x7f0000001000, Len: 0x2000, RKey: 0xCAFEF00D}
	six := []MemberRecord{
		{IP: key6.IP, QPN: key6.QPN, SQPSN: 1, RQPSN: 2}, {IP: netip.MustParseAddr("fd00::3"), QPN: 0xA02, SQPSN: 1, RQPSN: 2},
	}
	body := func(ms []MemberRecord) GroupBody {
		return GroupBody{QPN: 0x4001, PMTU: 1024, Policy: mcast.Evict, TotalMembers: len(ms), DeadAfter: 50 * time.Millisecond, Lease: 30 * time.Second, Members: ms}
	}
	winBody := body(win)
	winBody.Window = mcast.Window{Base: 0x10000, Len: 0x1000, RKey: 0x0BADCAFE}
	seg := head(g4)
	seg.Seq, seg.Total = 1, 3
	relay := head(g4)
	relay.Relay, relay.Hops = true, 1
	return map[string]Message{
		"Register":           {head(g4), &Register{body(recs)}},
		"Register-segment":   {seg, &Register{body(recs[1:])}},
		"Register-psns":      {head(g4), &Register{body(each)}},
		"Register-windows":   {head(g4), &Register{winBody}},
		"Register-v6":        {head(g6), &Register{body(six)}},
		"Register-relay":     {relay, &Register{body(recs)}},
		"Leave":              {head(g4), &Leave{key}},
		"Leave-v6":           {head(g6), &Leave{key6}},
		"Delete":             {head(g4), &Delete{}},
		"Renew":              {head(g4), &Renew{Lease: time.Minute, Remind: []MemberRecord{{IP: key.IP, QPN: key.QPN}}}},
		"Renew-nobody":       {head(g4), &Renew{Lease: time.Minute}},
		"Accept":             {head(g4), &Accept{Request: TypeRegister, Members: 3, Lease: time.Minute}},
		"Reject":             {head(g4), &Reject{TypeRegister, Problem{UnknownMemberLocation, key, 0}}},
		"Reject-nobody":      {head(g4), &Reject{TypeRegister, Problem{StaleEpoch, MemberKey{}, 99}}},
		"Challenge":          {head(g4), &Challenge{TypeRegister, 99}},
		"Notify":             {head(g4), &Notify{body(recs[:1])}},
		"Confirm":            {head(g4), &Confirm{Member: key}},
		"Confirm-refusal":    {head(g4), &Confirm{key, RQPSNMismatch, key.QPN, 0x111111, 0x222223}},
		"Gone":               {head(g4), &Gone{Member: key, Why: Evicted, Code: 0x62, PSN: 0x123456}},
		"Gone-group":         {head(g4), &Gone{Why: Expired}},
		"Gone-group-v6":      {head(g6), &Gone{Why: Expired}},
		"Ack":                {head(g4), &Ack{}},
		"Ack-not-authentic":  {head(g4), &Ack{}},
		"Reject-bad-auth":    {head(g4), &Reject{TypeRegister, Problem{Reason: BadAuthentication}}},
		"Confirm-not-joined": {head(g4), &Confirm{Member: key, Status: NotJoined}},
	}
}

func keyFor(name string) KeyID {
	if name == "Ack-not-authentic" || name == "Reject-bad-auth" {
		return 0
	}
	return 7
}

// TestGoldenWire compares every message, byte for byte, with testdata/wire, and
// decodes it again.
func TestGoldenWire(t *testing.T) {
	ex := examples()
	seen := map[string]bool{}
	datadriven.RunTest(t, "testdata/wire", func(t *testing.T, d *datadriven.TestData) string {
		name := d.CmdArgs[0].Key
		m, ok := ex[name]
		if !ok {
			t.Fatalf("%s: no example %q", d.Pos, name)
		}
		seen[name] = true
		b, err := testKeys.Append(nil, &m, keyFor(name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := testKeys.Open(b, true)
		if err != nil {
			t.Fatal(err)
		}
		m.Type = m.Body.kind()
		if !reflect.DeepEqual(got, m) {
			t.Errorf("%s: decoded %#v body %#v, want body %#v", name, got, got.Body, m.Body)
		}
		return hex.Dump(b)
	})
	for name := range ex {
		if !seen[name] {
			t.Errorf("testdata/wire lacks %s", name)
		}
	}
}

// TestTruncated cuts every message everywhere: no prefix is a message.
func TestTruncated(t *testing.T) {
	for name, m := range examples() {
		b, err := testKeys.Append(nil, &m, keyFor(name))
		if err != nil {
			t.Fatal(err)
		}
		for n := range b {
			if _, err := Parse(b[:n]); err == nil {
				t.Errorf("%s: the first %d of %d bytes parse", name, n, len(b))
			}
			// A lying length field does not help.
			if n >= fixedLen {
				c := append([]byte(nil), b[:n]...)
				c[lenOffset], c[lenOffset+1] = byte(n>>8), byte(n)
				if _, err := testKeys.Open(c, false); err == nil {
					t.Errorf("%s: the first %d of %d bytes open", name, n, len(b))
				}
			}
		}
		if _, err := Parse(append(b, 0)); err == nil {
			t.Errorf("%s: parses with a byte too many", name)
		}
	}
}

// TestEveryBitIsAuthenticated flips each bit of a message in turn.
func TestEveryBitIsAuthenticated(t *testing.T) {
	m := examples()["Register-windows"]
	b, err := testKeys.Append(nil, &m, 7)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(b) {
		b[i/8] ^= 1 << (i % 8)
		if _, err := testKeys.Open(b, false); err == nil {
			t.Fatalf("bit %d of byte %d is not covered", i%8, i/8)
		}
		b[i/8] ^= 1 << (i % 8)
	}
}

func TestParseErrors(t *testing.T) {
	good, _ := testKeys.Append(nil, ptr(examples()["Register"]), 0)
	set := func(at int, v byte) func([]byte) []byte { return func(b []byte) []byte { b[at] = v; return b } }
	body := headerLen(false)
	section := body + groupFixedLen
	for _, c := range []struct {
		name string
		f    func([]byte) []byte
		want Drop
	}{
		{"empty", func([]byte) []byte { return nil }, Truncated},
		{"magic", set(0, 'X'), BadMagic},
		{"version", set(4, 2), BadVersion},
		{"type 0", set(5, 0), BadFormat},
		{"type", set(5, byte(numTypes)), BadFormat},
		{"flags", set(8, 0x80), BadFormat},
		{"v6 flag on v4", set(8, flagIPv6), Truncated},
		{"length", set(lenOffset+1, 1), Truncated},
		{"segment", set(33, 1), BadFormat},
		{"no segments", set(35, 0), BadFormat},
		{"group flags", set(body, 2), BadFormat},
		{"negative duration", set(body+9, 0x80), BadFormat},
		{"record flags", set(section, 0x10), BadFormat},
		{"prefix", set(section+1, 5), BadFormat},
		{"more records", set(section+3, 200), Truncated},
		{"fewer records", set(section+3, 1), BadFormat},
		{"windows flag", set(section, hasWindows), Truncated},
	} {
		_, err := Parse(c.f(append([]byte(nil), good...)))
		var pe *ParseError
		if !errors.As(err, &pe) || pe.Drop != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestEncodeErrors(t *testing.T) {
	ok := examples()["Register"]
	body := ok.Body.(*Register).GroupBody
	bad := func(f func(*Message, *GroupBody)) Message {
		m, b := ok, body
		b.Members = append([]MemberRecord(nil), b.Members...)
		f(&m, &b)
		if m.Body == ok.Body {
			m.Body = &Register{b}
		}
		return m
	}
	for name, m := range map[string]Message{
		"no group":      bad(func(m *Message, _ *GroupBody) { m.Group = netip.Addr{} }),
		"family":        bad(func(m *Message, _ *GroupBody) { m.Group = netip.MustParseAddr("fd00::1") }),
		"zone":          bad(func(m *Message, _ *GroupBody) { m.Group = netip.MustParseAddr("fe80::1%eth0") }),
		"segment":       bad(func(m *Message, _ *GroupBody) { m.Seq = 1 }),
		"delete in two": bad(func(m *Message, _ *GroupBody) { m.Total, m.Body = 2, &Delete{} }),
		"qpn":           bad(func(_ *Message, b *GroupBody) { b.QPN = 1 << 24 }),
		"pmtu":          bad(func(_ *Message, b *GroupBody) { b.PMTU = 1 << 16 }),
		"lease":         bad(func(_ *Message, b *GroupBody) { b.Lease = -1 }),
		"member family": bad(func(_ *Message, b *GroupBody) { b.Members[1].IP = netip.MustParseAddr("::1") }),
		"member psn":    bad(func(_ *Message, b *GroupBody) { b.Members[1].SQPSN = 1 << 24 }),
	} {
		if _, err := testKeys.Append(nil, &m, 7); err == nil {
			t.Errorf("%s: encodes", name)
		}
	}
	if _, err := testKeys.Append(nil, &ok, 3); err == nil {
		t.Error("encodes with a key that is not there")
	}
}

// genRecords draws members whose addresses, PSNs and windows are alike in all
// the ways that the record section makes use of.
func genRecords(v6 bool) *rapid.Generator[[]MemberRecord] {
	return rapid.Custom(func(t *rapid.T) []MemberRecord {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		size := 4
		if v6 {
			size = 16
		}
		common := rapid.IntRange(0, size).Draw(t, "common")
		base := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "base")
		psn := func(label string) func() rocev2.PSN {
			one := rapid.Bool().Draw(t, label+" common")
			v := rapid.Uint32Range(0, rocev2.PSNMask)
			first := v.Draw(t, label)
			return func() rocev2.PSN {
				if one {
					return rocev2.PSN(first)
				}
				return rocev2.PSN(v.Draw(t, label))
			}
		}
		sq, rq := psn("sq"), psn("rq")
		windows := rapid.SampledFrom([]int{0, 1, 100}).Draw(t, "windows")
		var ms []MemberRecord
		for range n {
			ip := append([]byte(nil), base...)
			copy(ip[common:], rapid.SliceOfN(rapid.Byte(), size-common, size-common).Draw(t, "ip"))
			a, _ := netip.AddrFromSlice(ip)
			m := MemberRecord{IP: a, QPN: rocev2.QPN(rapid.Uint32Range(0, rocev2.PSNMask).Draw(t, "qpn")), SQPSN: sq(), RQPSN: rq()}
			if rapid.IntRange(0, 100).Draw(t, "window?") < windows {
				m.Window = mcast.Window{Base: rapid.Uint64().Draw(t, "base"), Len: rapid.Uint64().Draw(t, "len"), RKey: rapid.Uint32().Draw(t, "rkey")}
			}
			ms = append(ms, m)
		}
		return ms
	})
}

// TestRoundTrip: what is encoded decodes to the same, in every form of the
// record section, and its size is what the cutter into segments counted.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v6 := rapid.Bool().Draw(t, "v6")
		ms := genRecords(v6).Draw(t, "members")
		m := examples()["Register"]
		if v6 {
			m = examples()["Register-v6"]
		}
		b := m.Body.(*Register).GroupBody
		b.Members = ms
		b.DeadAfter = time.Duration(rapid.Int64Min(0).Draw(t, "dead"))
		m.Body = &Register{b}
		m.Type = TypeRegister
		enc, err := testKeys.Append([]byte("front"), &m, 7)
		if err != nil {
			t.Fatal(err)
		}
		enc = enc[len("front"):]
		got, err := testKeys.Open(enc, false)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Fatalf("decoded %+v, want %+v", got.Body, m.Body)
		}
		s := section{v6: v6}
		for i := range ms {
			s = s.add(&ms[0], &ms[i])
		}
		if want := headerLen(v6) + b.size() + s.size() + MACLen; len(enc) != want {
			t.Fatalf("%d bytes, the cutter counts %d", len(enc), want)
		}
	})
}

// TestSegmentsFit: segments are in order, complete, and as large as they may be.
func TestSegmentsFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reg := sample(1, 2)
		reg.Members = genRecords(false).Draw(t, "members")
		mtu := rapid.IntRange(200, 1500).Draw(t, "mtu")
		segs, err := reg.Segments(mtu)
		if err != nil {
			t.Fatal(err)
		}
		var all []MemberRecord
		for i, s := range segs {
			all = append(all, s.Members...)
			m := Message{Header{Total: uint16(len(segs)), Seq: uint16(i), Group: reg.Group, ReplyTo: masterAddr}, s}
			b, err := testKeys.Append(nil, &m, 7)
			if err != nil {
				t.Fatal(err)
			}
			if 20+8+len(b) > mtu {
				t.Fatalf("segment %d is a packet of %d bytes, MTU %d", i, 28+len(b), mtu)
			}
		}
		if !reflect.DeepEqual(all, reg.Members) {
			t.Fatal("members differ")
		}
	})
	if _, err := ptr(sample(1, 2)).Segments(100); err == nil {
		t.Error("members fit into 100 bytes")
	}
}

// TestCapacity counts how many members fit into one packet of 1500 bytes; the
// table is in docs/PROTOCOL.md. The paper's figure is 183, of 7 bytes each.
func TestCapacity(t *testing.T) {
	type form struct {
		name                  string
		v6, prefix, psns, win bool
		want                  int
	}
	for _, f := range []form{
		{"IPv4, any addresses, common PSNs", false, false, false, false, 194},
		{"IPv4, one /24, common PSNs", false, true, false, false, 254}, // all hosts of it
		{"IPv4, any addresses, all PSNs distinct", false, false, true, false, 105},
		{"IPv4, one /24, all PSNs distinct", false, true, true, false, 136},
		{"IPv4, any addresses, common PSNs, windows", false, false, false, true, 49},
		{"IPv4, any addresses, all PSNs distinct, windows", false, false, true, true, 40},
		{"IPv6, any addresses, common PSNs", true, false, false, false, 69},
		{"IPv6, one /64, common PSNs", true, true, false, false, 118},
		{"IPv6, one /64, all PSNs distinct", true, true, true, false, 77},
	} {
		most := 0
		for n := 2; n <= 400 && !(f.prefix && !f.v6 && n > 254); n++ {
			segs, err := capacityReg(n, f.v6, f.prefix, f.psns, f.win).Segments(1500)
			if err != nil {
				t.Fatal(err)
			}
			if len(segs) == 1 {
				most = n
			}
		}
		if most != f.want {
			t.Errorf("%s: %d members, documented %d", f.name, most, f.want)
		}
		t.Logf("%s: %d members", f.name, most)
	}
	// The requirement, through to the bytes and back.
	reg := capacityReg(183, false, false, false, false)
	segs, _ := reg.Segments(1500)
	m := Message{Header{Type: TypeRegister, KeyID: 7, Total: 1, Group: reg.Group, ReplyTo: masterAddr}, segs[0]}
	b, err := testKeys.Append(nil, &m, 7)
	if err != nil || len(segs) != 1 || 28+len(b) > 1500 {
		t.Fatalf("183 members: %d segments, packet of %d bytes, %v", len(segs), 28+len(b), err)
	}
	if got, err := testKeys.Open(b, false); err != nil || !reflect.DeepEqual(got.Body.(*Register).Members, reg.Members) {
		t.Fatalf("183 members do not come back: %v", err)
	}
}

func capacityReg(n int, v6, prefix, psns, win bool) *Registration {
	r := sample(1, 2)
	r.Members = nil
	if v6 {
		r.Group = netip.MustParseAddr("fd00:9::1")
	}
	rnd := random(n)
	for i := range n {
		x := rnd.next()
		a := [16]byte{0xFD, 14: byte(i >> 8), 15: byte(i + 1)}
		if !prefix { // differ in the first byte
			a[0], a[12] = byte(2*i)|0xE1, byte(10+i%100)
			a[13], a[8] = byte(x), byte(x>>8)
		} else if !v6 {
			a[12], a[13], a[14] = 10, 1, 2
		}
		if prefix && v6 {
			a[8] = byte(i) // the /64 is common, no more
		}
		ip := netip.AddrFrom16(a)
		if !v6 {
			ip = netip.AddrFrom4([4]byte(a[12:]))
		}
		m := MemberRecord{IP: ip, QPN: rocev2.QPN(x>>40) | 0x10, SQPSN: 1, RQPSN: 2}
		if psns {
			m.SQPSN, m.RQPSN = rocev2.PSN(rnd.next()>>40), rocev2.PSN(rnd.next()>>40)
		}
		if win {
			m.Window = mcast.Window{Base: x, Len: 1, RKey: uint32(x)}
		}
		r.Members = append(r.Members, m)
	}
	if win {
		r.Window = mcast.Window{Base: 1, Len: 1, RKey: 1}
	}
	return &r
}

// TestNoRKeyInText: whatever prints a value of ours prints no R_Key.
func TestNoRKeyInText(t *testing.T) {
	reg := withWindows(sample(1, 3))
	m := examples()["Register-windows"]
	ms := membershipOf(reg.Members[0], reg)
	f := &Failure{Group: reg.Group, Doing: "register", Refusal: &Confirm{Member: reg.Members[0].Key(), Status: WindowMismatch}, Want: reg.Members[0]}
	for _, v := range []any{reg, &reg, reg.Members, reg.Members[0], m, &m, m.Body, ms, &ms, f, f.Want, []any{*f}, Event{Err: f}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			s := strings.ToLower(fmt.Sprintf(verb, v))
			for _, k := range []uint32{0xDEADBEEF, 0xFACE0000, 0xCAFEF00D, 0x0BADCAFE} {
				if strings.Contains(s, fmt.Sprintf("%x", k)) || strings.Contains(s, fmt.Sprint(k)) {
					t.Errorf("%s of %T prints an R_Key: %s", verb, v, s)
				}
			}
		}
	}
}

// FuzzParse: nothing panics, and what parses encodes to something that parses
// to the same.
func FuzzParse(f *testing.F) {
	for name, m := range examples() {
		b, err := testKeys.Append(nil, &m, keyFor(name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		trailer := 0
		if m.KeyID != 0 {
			trailer = MACLen
		}
		enc, err := m.append(nil, trailer)
		if err != nil {
			t.Fatalf("parses but does not encode: %v", err)
		}
		again, err := Parse(append(enc, make([]byte, trailer)...))
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("encoded again it is different: %v", err)
		}
	})
}
