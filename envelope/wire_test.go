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

	"github.com/gleam-rdma/gleam/mcast"
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
	key := MemberKey{IP: netip.MustParseAddr("10.0.0.2"), QPN: 0x000A01}
	key6 := MemberKey{IP: netip.MustParseAddr("fd00::2"), QPN: 0x000A01}
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
		return GroupBody{GroupParams: mcast.GroupParams{QPN: 0x4001, PathMTU: 1024, Policy: mcast.Evict, DeadAfter: 50 * time.Millisecond}, TotalMembers: len(ms), Lease: 30 * time.Second, Members: ms}
	}
	winBody := body(win)
	winBody.Window = mcast.Window{Base: 0x10000, Len: 0x1000, RKey: 0x0BADCAFE}
	quorumBody := body(recs)
	quorumBody.Policy, quorumBody.Quorum, quorumBody.LagPSNs, quorumBody.LagTime = mcast.Quorum, 1, 0x10203, time.Second
	quorumBody.SenderTimeout, quorumBody.SenderRetries = 14, 7
	updateBody := winBody
	updateBody.Base = 0x0102030405060707
	targetBody := body(recs)
	targetBody.TargetKey = 0x7A76E700
	alone := body(recs)
	alone.NoRepair = true
	oneSender := append([]MemberRecord(nil), win...)
	oneSender[1].ReceiveOnly = true
	oneSenderBody := winBody
	oneSenderBody.Members = oneSender
	seg := head(g4)
	seg.Seq, seg.Total = 1, 3
	nonce := Nonce{0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8B, 0x8C, 0x8D, 0x8E, 0x8F}
	relay := head(g4)
	relay.Relay, relay.Hops = true, 1
	return map[string]Message{
		"Register":              {head(g4), &Register{body(recs)}},
		"Register-segment":      {seg, &Register{body(recs[1:])}},
		"Register-psns":         {head(g4), &Register{body(each)}},
		"Register-windows":      {head(g4), &Register{winBody}},
		"Register-policy":       {head(g4), &Register{quorumBody}},
		"Register-update":       {head(g4), &Register{updateBody}},
		"Register-target":       {head(g4), &Register{targetBody}},
		"Register-no-repair":    {head(g4), &Register{alone}},
		"Register-v6":           {head(g6), &Register{body(six)}},
		"Register-receive-only": {head(g4), &Register{oneSenderBody}},
		"Register-relay":        {relay, &Register{body(recs)}},
		"Leave":                 {head(g4), &Leave{key}},
		"Leave-v6":              {head(g6), &Leave{key6}},
		"Delete":                {head(g4), &Delete{}},
		"Renew":                 {head(g4), &Renew{Lease: time.Minute, ListUnconfirmed: []MemberRecord{{IP: key.IP, QPN: key.QPN}}}},
		"Renew-nobody":          {head(g4), &Renew{Lease: time.Minute}},
		"Accept":                {head(g4), &Accept{Request: TypeRegister, Members: 3, Lease: time.Minute}},
		"Reject":                {head(g4), &Reject{TypeRegister, Problem{UnknownMemberLocation, key, 0}}},
		"Reject-nobody":         {head(g4), &Reject{TypeRegister, Problem{StaleEpoch, MemberKey{}, 99}}},
		"Challenge":             {head(g4), &Challenge{TypeRegister, 99}},
		"Notify":                {head(g4), &Notify{body(recs[:1])}},
		"Confirm":               {head(g4), &Confirm{Member: key}},
		"Confirm-refusal":       {head(g4), &Confirm{key, RQPSNMismatch, key.QPN, 0x111111, 0x222223}},
		"Gone":                  {head(g4), &Gone{Member: key, EndReason: Evicted, Code: 0x62, PSN: 0x123456}},
		"Gone-group":            {head(g4), &Gone{EndReason: Expired}},
		"Gone-group-v6":         {head(g6), &Gone{EndReason: Expired}},
		"Gone-lost":             {head(g4), &Gone{EndReason: SwitchLost, Lost: LostLink{At: 0x101, To: 0x102, Port: "eth1"}}},
		"Ack":                   {head(g4), &Ack{}},
		"Where":                 {head(g4), &Where{key.IP, nonce}},
		"Where-v6":              {head(g6), &Where{key6.IP, nonce}},
		"Here":                  {head(g4), &Here{key.IP, nonce}},
		"Notice":                {head(g4), &Notice{Kind: NoticeFailed, Member: key, Code: 3, PSN: 0xABCDEF, Serial: 0x0102030405060708}},
		"Notice-v6":             {head(g6), &Notice{Kind: NoticeStalled, Member: key6, PSN: 0xABCDEF, Serial: 1}},
		"Here-v6":               {head(g6), &Here{key6.IP, nonce}},
		"Ack-not-authentic":     {head(g4), &Ack{}},
		"Reject-bad-auth":       {head(g4), &Reject{TypeRegister, Problem{Reason: BadAuthentication}}},
		"Confirm-not-joined":    {head(g4), &Confirm{Member: key, Status: NotJoined}},
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
		b, err := Append(nil, &m, testKeys, keyFor(name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Open(b, testKeys, true)
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
		b, err := Append(nil, &m, testKeys, keyFor(name))
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
				if _, err := Open(c, testKeys, false); err == nil {
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
	b, err := Append(nil, &m, testKeys, 7)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(b) {
		b[i/8] ^= 1 << (i % 8)
		if _, err := Open(b, testKeys, false); err == nil {
			t.Fatalf("bit %d of byte %d is not covered", i%8, i/8)
		}
		b[i/8] ^= 1 << (i % 8)
	}
}

func TestParseErrors(t *testing.T) {
	good, _ := Append(nil, ptr(examples()["Register"]), testKeys, 0)
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
		"pmtu":          bad(func(_ *Message, b *GroupBody) { b.PathMTU = 1 << 16 }),
		"lease":         bad(func(_ *Message, b *GroupBody) { b.Lease = -1 }),
		"member family": bad(func(_ *Message, b *GroupBody) { b.Members[1].IP = netip.MustParseAddr("::1") }),
		"member psn":    bad(func(_ *Message, b *GroupBody) { b.Members[1].SQPSN = 1 << 24 }),
	} {
		if _, err := Append(nil, &m, testKeys, 7); err == nil {
			t.Errorf("%s: encodes", name)
		}
	}
	if _, err := Append(nil, &ok, testKeys, 3); err == nil {
		t.Error("encodes with a key that is not there")
	}
}

// genRecords draws members whose addresses, PSNs and windows are alike in all
// the ways that the record section makes use of.
// TestNoRKeyInText: whatever prints a value of ours prints no R_Key.
func TestNoRKeyInText(t *testing.T) {
	reg := withWindows(sample(1, 3))
	m := examples()["Register-windows"]
	ms := membershipOf(reg.Members[0], reg)
	f := &Failure{Group: reg.Group, Action: "register", Refusal: &Confirm{Member: reg.Members[0].Key(), Status: WindowMismatch}, Registered: reg.Members[0]}
	for _, v := range []any{reg, &reg, reg.Members, reg.Members[0], m, &m, m.Body, ms, &ms, f, f.Registered, []any{*f}, Event{Err: f}, testKeys, testAuth(), MemberConfig{Auth: testAuth()}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			s := strings.ToLower(fmt.Sprintf(verb, v))
			if strings.Contains(s, "a5a5") || strings.Contains(s, "165") {
				t.Errorf("%s of %T prints a key", verb, v)
			}
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
		b, err := Append(nil, &m, testKeys, keyFor(name))
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
