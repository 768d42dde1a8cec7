// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestExchanges plays docs/exchanges, whose output has every byte of every
// message: what docs/PROTOCOL.md says by words, held by the machines. The
// commands are those of TestTranscripts, and
//
//	ask TYPE from=IP:PORT group=IP epoch=N tx=N [source=IP:PORT] [instance=N] [key=N] [hops=N]
//	    sends one request made by hand, its source being ReplyTo unless another
//	    is given, and lets 5 ms pass. By type:
//	    Register members=N [first=I] [base=N] [pmtu=N] [seq=N total=N count=N]
//	    Renew [lease=D] [remind=I], Leave member=I, Here member=IP nonce=N,
//	    Where member=IP nonce=N to=IP:PORT
//	    [section=HEX] takes the place of the record section, [patch=OFFSET:HEX]
//	    of bytes anywhere; the length and the MAC are made after it.
//	carried group=IP
//	    the group carries data from now on
//
// `go test ./envelope -run TestExchanges -rewrite` brings the files up to date.
func TestExchanges(t *testing.T) {
	n := 0
	datadriven.Walk(t, "../docs/exchanges", func(t *testing.T, path string) {
		n++
		e := &exchange{script{t: t}}
		datadriven.RunTest(t, path, e.run)
	})
	if n < 8 {
		t.Errorf("%d exchanges in docs/exchanges", n)
	}
}

type exchange struct{ script }

func (e *exchange) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "ask":
		e.log.Reset()
		e.ask(d)
		return e.log.String()
	case "carried":
		var group string
		d.ScanArgs(t, "group", &group)
		e.w.table.carried[netip.MustParseAddr(group)] = true
		return ""
	}
	out := e.script.run(t, d)
	e.w.bytes = true
	return out
}

// asked is what an ask command says.
type asked struct {
	t *testing.T
	d *datadriven.TestData
}

func (a asked) text(name, none string) string {
	if !a.d.HasArg(name) {
		return none
	}
	var v string
	a.d.ScanArgs(a.t, name, &v)
	return v
}

func (a asked) number(name string, none uint64) uint64 {
	n, err := strconv.ParseUint(a.text(name, strconv.FormatUint(none, 10)), 0, 64)
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

func (a asked) duration(name string) time.Duration {
	d, err := time.ParseDuration(a.text(name, "0s"))
	if err != nil {
		a.t.Fatal(err)
	}
	return d
}

func (a asked) address(name, none string) netip.AddrPort {
	p, err := netip.ParseAddrPort(a.text(name, none))
	if err != nil {
		a.t.Fatal(err)
	}
	return p
}

// ask sends one message made by hand.
func (e *exchange) ask(d *datadriven.TestData) {
	a := asked{e.t, d}
	group := netip.MustParseAddr(a.text("group", ""))
	reg := sample(group.As4()[3], 16)
	m := Message{Header: Header{
		KeyID: KeyID(a.number("key", 7)), Hops: uint8(a.number("hops", 0)), Epoch: a.number("epoch", 0),
		Transaction: uint32(a.number("tx", 1)),
		Seq:         uint16(a.number("seq", 0)), Total: uint16(a.number("total", 1)), Group: group, ReplyTo: a.address("from", ""),
	}}
	m.Instance = a.number("instance", e.w.sw.cookie(m.ReplyTo, m.KeyID))
	if e.w.hosts[m.ReplyTo] == nil && !e.w.sw.Serves(m.ReplyTo.Addr()) { // who only asks
		e.w.names[m.ReplyTo] = m.ReplyTo.String()
	}
	section := headerLen(false)
	switch d.CmdArgs[0].Key {
	case "Register":
		reg.Members, reg.Base, reg.PathMTU = reg.Members[a.number("first", 0):][:a.number("members", 2)], a.number("base", 0), int(a.number("pmtu", 1024))
		n := int(a.number("count", uint64(len(reg.Members))))
		b := reg.groupBody(reg.Members[int(m.Seq)*n:][:n])
		m.Body, section = &Register{b}, section+b.size()
	case "Renew":
		b := &Renew{Lease: a.duration("lease")}
		if d.HasArg("remind") {
			i := a.number("remind", 0)
			b.ListUnconfirmed = reg.Members[i : i+1]
		}
		m.Body, section = b, section+8
	case "Leave":
		m.Body = &Leave{Member: reg.Members[a.number("member", 0)].Key()}
	case "Delete":
		m.Body = &Delete{}
	case "Where":
		m.Body = &Where{netip.MustParseAddr(a.text("member", "")), Nonce{NonceLen - 1: byte(a.number("nonce", 0))}}
	case "Here":
		m.Body = &Here{netip.MustParseAddr(a.text("member", "")), Nonce{NonceLen - 1: byte(a.number("nonce", 0))}}
	default:
		e.t.Fatalf("%s: unknown type", d.Pos)
	}
	e.w.inject(Packet{Src: a.address("source", m.ReplyTo.String()), Dst: a.address("to", netip.AddrPortFrom(group, DefaultPort).String()), Data: e.seal(&m, a, section)})
	e.w.run(5 * time.Millisecond)
}

// seal encodes m as the command wants it, with a right length and MAC.
func (e *exchange) seal(m *Message, a asked, section int) []byte {
	b, err := m.append(nil, MACLen)
	if err != nil {
		e.t.Fatal(err)
	}
	decode := func(s string) []byte {
		x, err := hex.DecodeString(s)
		if err != nil {
			e.t.Fatal(err)
		}
		return x
	}
	if s := a.text("section", ""); s != "" {
		b = append(b[:section], decode(s)...)
		binary.BigEndian.PutUint16(b[lenOffset:], uint16(len(b)+MACLen))
	}
	if at, bytes, ok := strings.Cut(a.text("patch", ""), ":"); ok {
		copy(b[atoi(e.t, at):], decode(bytes))
	}
	return append(b, macOf(testKeys[m.KeyID], Type(b[5]), b)...)
}

// TestDocumentedSection: the record sections of PROTOCOL.md's example decode to
// the members that it says, in either form.
func TestDocumentedSection(t *testing.T) {
	doc := readDoc(t, "PROTOCOL.md")
	var forms [][]MemberRecord
	for _, line := range strings.Split(doc, "\n") {
		if h, ok := strings.CutPrefix(line, "section: "); ok {
			b, err := hex.DecodeString(strings.ReplaceAll(h, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			r := &reader{b: b}
			ms := parseSection(r, false)
			if r.truncated || r.malformed != "" || len(r.b) > 0 {
				t.Fatalf("%s: short %v, %q, %d bytes are left", h, r.truncated, r.malformed, len(r.b))
			}
			forms = append(forms, ms)
		}
	}
	two := sample(1, 2).Members
	if len(forms) != 3 || fmt.Sprint(forms[0]) != fmt.Sprint(two) || fmt.Sprint(forms[1]) != fmt.Sprint(two) || len(forms[2]) != 0 {
		t.Errorf("%v", forms)
	}
	if two[0].QPN != rocev2.QPN(0x100) {
		t.Error("the example has another QPN")
	}
}
