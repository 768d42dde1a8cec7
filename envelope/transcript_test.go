// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// TestTranscripts plays the scenarios in testdata/transcripts. Commands:
//
//	switch [max-groups=N] [max-members=N] [max-pmtu=N] [insecure]
//	register NAME group=IP members=N [epoch=N] [lease=D] [mtu=N] [deadline=D] [key=N] [pmtu=N] [policy=evict] [nojoin=IP] [wrong=IP]
//	    makes the members and the master, and starts it
//	update NAME [add=I,...] [remove=I,...] [restart=I,...] [nojoin] [wrong]
//	    members by their number; those that are new or restart join first, unless
//	    nojoin is given, or with another rq_psn than the master says
//	leave NAME member=I | delete NAME | member-leave IP group=IP
//	fault TYPE drop|dup|late [to=NAME] [count=N]
//	    changes what happens to the next N messages of the type (default 1)
//	verdict group=IP later|reject=REASON|accept
//	evict group=IP member=IP | fail group=IP member=IP
//	where group=IP member=IP [nonce=N]
//	    the switch asks a member where it is
//	run D
//	table
//
// Transcripts show what is sent, what the machines report and what they drop.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		s := &script{t: t}
		datadriven.RunTest(t, path, s.run)
	})
}

type rule struct {
	typ    Type
	action string
	to     string
	count  int
}

type script struct {
	t     *testing.T
	w     *world
	log   strings.Builder
	rules []*rule
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	s.log.Reset()
	switch d.Cmd {
	case "switch":
		s.makeSwitch(d)
	case "register":
		s.register(d)
	case "leave":
		m := s.w.masters[d.CmdArgs[0].Key]
		var i int
		d.ScanArgs(t, "member", &i)
		var out Output
		if err := m.Leave(s.w.now, m.reg.Members[i].Key(), &out); err != nil {
			fmt.Fprintln(&s.log, err)
		}
		s.w.do(d.CmdArgs[0].Key, &out)
	case "update":
		s.update(d)
	case "delete":
		var out Output
		s.w.masters[d.CmdArgs[0].Key].Delete(s.w.now, &out)
		s.w.do(d.CmdArgs[0].Key, &out)
	case "member-leave":
		var g string
		d.ScanArgs(t, "group", &g)
		var out Output
		if err := s.w.members[d.CmdArgs[0].Key].Leave(s.w.now, netip.MustParseAddr(g), &out); err != nil {
			fmt.Fprintln(&s.log, err)
		}
		s.w.do(d.CmdArgs[0].Key, &out)
	case "fault":
		s.addRule(d)
	case "verdict":
		s.setVerdict(d)
	case "evict", "fail":
		s.dataPath(d)
	case "where":
		s.where(d)
	case "run":
		dur, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		s.w.run(dur)
	case "table":
		for _, c := range s.w.table.calls {
			fmt.Fprintln(&s.log, c)
		}
		s.w.table.calls = nil
		for _, ip := range s.w.sw.Groups() {
			reg, until, _ := s.w.sw.Group(ip)
			fmt.Fprintf(&s.log, "%s epoch %d members %d lease until %v\n", ip, reg.Epoch, len(reg.Members), until)
		}
	default:
		t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	}
	return s.log.String()
}

func (s *script) makeSwitch(d *datadriven.TestData) {
	cfg := RegistrarConfig{}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "max-groups":
			cfg.MaxGroups = atoi(s.t, a.Vals[0])
		case "max-members":
			cfg.MaxMembers = atoi(s.t, a.Vals[0])
		case "max-pmtu":
			cfg.MaxPMTU = atoi(s.t, a.Vals[0])
		case "insecure":
			cfg.Auth = Auth{Insecure: true}
		}
	}
	s.w = newWorld(s.t, cfg)
	s.w.log = func(f string, args ...any) { fmt.Fprintf(&s.log, f+"\n", args...) }
	s.w.fault = s.fault
}

func atoi(t *testing.T, v string) int {
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *script) register(d *datadriven.TestData) {
	name := d.CmdArgs[0].Key
	var group, nojoin, wrong string
	members := 0
	cfg := MasterConfig{Local: masterAddr, Seed: 42}
	if name != "A" {
		cfg.Local = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, name[0]}), 5000)
	}
	if s.w.sw.auth.Insecure {
		cfg.Auth = Auth{Insecure: true}
	}
	d.ScanArgs(s.t, "group", &group)
	d.ScanArgs(s.t, "members", &members)
	g := netip.MustParseAddr(group)
	reg := sample(g.As4()[3], members)
	for _, a := range d.CmdArgs[1:] {
		switch a.Key {
		case "epoch":
			reg.Epoch = uint64(atoi(s.t, a.Vals[0]))
		case "lease":
			reg.Lease, _ = time.ParseDuration(a.Vals[0])
		case "mtu":
			cfg.MTU = atoi(s.t, a.Vals[0])
		case "deadline":
			cfg.Deadline, _ = time.ParseDuration(a.Vals[0])
		case "key":
			cfg.Auth = Auth{Keys: Keys{KeyID(atoi(s.t, a.Vals[0])): make([]byte, 32)}, Send: KeyID(atoi(s.t, a.Vals[0]))}
		case "pmtu":
			reg.PathMTU = atoi(s.t, a.Vals[0])
		case "policy":
			reg.Policy = mcast.Evict
		case "nojoin":
			nojoin = a.Vals[0]
		case "wrong":
			wrong = a.Vals[0]
		}
	}
	for _, rec := range reg.Members {
		if old := s.w.members[rec.IP.String()]; old != nil {
			old.Forget(reg.Group)
		}
		if rec.IP.String() == wrong {
			rec.RQPSN = rec.RQPSN.Add(-1)
		}
		m := s.w.addMember(s.t, rec, reg)
		if rec.IP.String() == nojoin {
			m.Forget(reg.Group)
		}
	}
	m := s.w.addMaster(s.t, name, cfg, reg)
	var out Output
	m.Start(s.w.now, &out)
	s.w.do(name, &out)
}

func (s *script) update(d *datadriven.TestData) {
	name := d.CmdArgs[0].Key
	m := s.w.masters[name]
	all := sample(m.reg.Group.As4()[3], 16).Members
	ms := m.Members()
	without := func(ip netip.Addr) {
		ms = slices.DeleteFunc(ms, func(r MemberRecord) bool { return r.IP == ip })
	}
	join := func(rec MemberRecord) {
		ms = append(ms, rec)
		if d.HasArg("nojoin") {
			return
		}
		if old := s.w.members[rec.IP.String()]; old != nil {
			old.Forget(m.reg.Group)
		}
		if d.HasArg("wrong") {
			rec.RQPSN = rec.RQPSN.Add(-1)
		}
		s.w.addMember(s.t, rec, m.reg)
	}
	for _, a := range d.CmdArgs[1:] {
		for _, v := range a.Vals {
			rec := all[atoi(s.t, v)]
			switch a.Key {
			case "remove":
				without(rec.IP)
			case "restart":
				without(rec.IP)
				rec.QPN, rec.RQPSN = rec.QPN+0x1000, rec.RQPSN+0x1000
				join(rec)
			case "add":
				join(rec)
			}
		}
	}
	var out Output
	if err := m.Update(s.w.now, ms, &out); err != nil {
		fmt.Fprintln(&s.log, err)
	}
	s.w.do(name, &out)
}

func (s *script) addRule(d *datadriven.TestData) {
	r := &rule{action: d.CmdArgs[1].Key, count: 1}
	for t := Type(1); t < numTypes; t++ {
		if t.String() == d.CmdArgs[0].Key {
			r.typ = t
		}
	}
	if r.typ == 0 {
		s.t.Fatalf("%s: unknown type", d.Pos)
	}
	for _, a := range d.CmdArgs[2:] {
		switch a.Key {
		case "to":
			r.to = a.Vals[0]
		case "count":
			r.count = atoi(s.t, a.Vals[0])
		}
	}
	s.rules = append(s.rules, r)
}

func (s *script) fault(m Message, p Packet) []time.Duration {
	for _, r := range s.rules {
		if r.count == 0 || r.typ != m.Type || r.to != "" && r.to != s.w.nameOf(p.Dst) {
			continue
		}
		r.count--
		switch r.action {
		case "drop":
			return nil
		case "dup":
			return []time.Duration{hop, hop}
		case "late":
			return []time.Duration{10 * hop}
		}
	}
	return []time.Duration{hop}
}

func (s *script) setVerdict(d *datadriven.TestData) {
	var group string
	d.ScanArgs(s.t, "group", &group)
	g := netip.MustParseAddr(group)
	missing := sample(g.As4()[3], 2).Members[1].Key()
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "accept":
			delete(s.w.table.verdict, g)
		case "later":
			s.w.table.verdict[g] = Verdict{Kind: VerdictLater, Problem: Problem{Reason: UnknownMemberLocation, Member: missing}}
		case "reject":
			s.w.table.verdict[g] = Verdict{Kind: VerdictRejected, Problem: Problem{Reason: Reason(atoi(s.t, a.Vals[0])), Member: missing}}
		}
	}
}

func (s *script) where(d *datadriven.TestData) {
	var group, member string
	nonce := 1
	d.ScanArgs(s.t, "group", &group)
	d.ScanArgs(s.t, "member", &member)
	d.MaybeScanArgs(s.t, "nonce", &nonce)
	p, err := s.w.sw.Where(netip.MustParseAddr(group), netip.MustParseAddr(member), Nonce{NonceLen - 1: byte(nonce)})
	if err != nil {
		fmt.Fprintln(&s.log, err)
		return
	}
	s.w.do("switch", &Output{Packets: []Packet{p}})
}

func (s *script) dataPath(d *datadriven.TestData) {
	var group, member string
	d.ScanArgs(s.t, "group", &group)
	d.ScanArgs(s.t, "member", &member)
	g := netip.MustParseAddr(group)
	reg, _, _ := s.w.sw.Group(g)
	var out Output
	for _, rec := range reg.Members {
		if rec.IP.String() != member {
			continue
		}
		if d.Cmd == "fail" {
			s.w.sw.GroupFailed(s.w.now, g, rec.Key(), rocev2.SyndromeNAKAccess, 0x77, &out)
		} else {
			s.w.sw.MemberEvicted(s.w.now, g, rec.Key(), 0, 0x77, &out)
		}
	}
	s.w.do("switch", &out)
}
