// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// TestConfigLimits: the ends of each range of a configuration are taken, what is next to
// them is not.
func TestConfigLimits(t *testing.T) {
	registrar := func(f func(*RegistrarConfig)) error {
		c := RegistrarConfig{Secret: [SecretLen]byte{1}, Auth: testAuth(), Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}}
		f(&c)
		_, err := NewRegistrar(c, newTableStub())
		return err
	}
	for _, x := range []struct {
		name        string
		set         func(*RegistrarConfig, int)
		least, most int
	}{
		{"MaxGroups", func(c *RegistrarConfig, v int) { c.MaxGroups = v }, 1, 1 << 20},
		{"MaxMembers", func(c *RegistrarConfig, v int) { c.MaxMembers = v }, 2, 0xFFFF},
		{"MaxPending", func(c *RegistrarConfig, v int) { c.MaxPending = v }, 1, 0},
		{"MaxEvents", func(c *RegistrarConfig, v int) { c.MaxEvents = v }, 1, 0},
		{"EventTries", func(c *RegistrarConfig, v int) { c.EventTries = v }, 1, 0},
		{"MaxEpochs", func(c *RegistrarConfig, v int) { c.MaxGroups, c.MaxEpochs = 9, v }, 20, 0},
		{"ReassemblyTimeout", func(c *RegistrarConfig, v int) { c.ReassemblyTimeout = time.Duration(v) }, 1, 0},
		{"LocateRetry", func(c *RegistrarConfig, v int) { c.LocateRetry = time.Duration(v) }, 1, 0},
		{"LocateTimeout", func(c *RegistrarConfig, v int) { c.LocateTimeout = time.Duration(v) }, 1, 0},
		{"EventRetry", func(c *RegistrarConfig, v int) { c.EventRetry = time.Duration(v) }, 1, 0},
		{"CookiePeriod", func(c *RegistrarConfig, v int) { c.CookiePeriod = time.Duration(v) }, 1, 0},
		{"MinLease", func(c *RegistrarConfig, v int) {
			c.MinLease, c.DefaultLease, c.MaxLease = time.Duration(v), max(1, time.Duration(v)), 10
		}, 1, 10},
		{"DefaultLease", func(c *RegistrarConfig, v int) { c.MinLease, c.DefaultLease, c.MaxLease = 5, time.Duration(v), 10 }, 5, 10},
		{"MaxLease", func(c *RegistrarConfig, v int) { c.MinLease, c.DefaultLease, c.MaxLease = 5, 5, time.Duration(v) }, 5, 0},
	} {
		for _, v := range []int{x.least - 1, x.least, x.most, x.most + 1} {
			if v == 0 {
				v = -1 // 0 is the default
			}
			if x.most == 0 && v != x.least && v != x.least-1 && v != -1 || x.name == "MaxGroups" && v > x.least {
				continue
			}
			err := registrar(func(c *RegistrarConfig) { x.set(c, v) })
			if in := v >= x.least && (x.most == 0 || v <= x.most); in != (err == nil) {
				t.Errorf("%s %d: %v", x.name, v, err)
			}
		}
	}
	for prefix, good := range map[string]bool{"10.0.0.0/8": true, "0.0.0.0/0": true, "::/0": true, "fd00::/8": true, "224.0.0.0/8": false, "ff00::/8": false, "::ffff:10.0.0.0/104": false} {
		if err := registrar(func(c *RegistrarConfig) { c.Prefixes = append(c.Prefixes, netip.MustParsePrefix(prefix)) }); good != (err == nil) {
			t.Errorf("%s: %v", prefix, err)
		}
	}
	if err := registrar(func(c *RegistrarConfig) { c.Prefixes = append(c.Prefixes, netip.Prefix{}) }); err == nil {
		t.Error("an invalid prefix is taken")
	}
	for _, x := range []struct {
		min, max, deadline time.Duration
		good               bool
	}{{1, 1, 1, true}, {5, 4, 1, false}, {-1, 4, 1, false}, {1, 4, -1, false}, {0, 100 * time.Millisecond, 1, true}, {0, 99 * time.Millisecond, 1, false}, {2 * time.Second, 0, 0, true}, {2*time.Second + 1, 0, 0, false}} {
		_, err := NewMaster(MasterConfig{Local: masterAddr, Auth: testAuth(), RetryMin: x.min, RetryMax: x.max, Deadline: x.deadline}, sample(1, 2))
		if x.good != (err == nil) {
			t.Errorf("master %+v: %v", x, err)
		}
		_, err = NewMember(MemberConfig{Local: masterAddr, Auth: testAuth(), RetryMin: x.min, RetryMax: x.max, Deadline: x.deadline})
		if x.good != (err == nil) {
			t.Errorf("member %+v: %v", x, err)
		}
	}
	for mtu, good := range map[int]bool{0xFFFF: true, 0x10000: false, 100: false, 200: true} {
		if _, err := NewMaster(MasterConfig{Local: masterAddr, Auth: testAuth(), MTU: mtu}, sample(1, 2)); good != (err == nil) {
			t.Errorf("MTU %d: %v", mtu, err)
		}
	}
	for addr, good := range map[string]bool{"10.0.0.1:1": true, "10.0.0.1:0": false, "224.0.0.1:1": false, "[::ffff:10.0.0.1]:1": false, "0.0.0.0:1": false, "[fd00::1]:65535": true} {
		if err := checkLocal(netip.MustParseAddrPort(addr)); good != (err == nil) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, x := range []struct {
		auth Auth
		good bool
	}{
		{Auth{}, false},
		{Auth{Insecure: true}, true},
		{Auth{Keys: Keys{1: make([]byte, MinKeyLen)}, Send: 1}, true},
		{Auth{Keys: Keys{1: make([]byte, MinKeyLen-1)}, Send: 1}, false},
		{Auth{Keys: Keys{0: make([]byte, MinKeyLen), 1: make([]byte, MinKeyLen)}, Send: 1}, false},
		{Auth{Keys: Keys{1: make([]byte, MinKeyLen)}, Send: 2}, false},
		{Auth{Keys: Keys{1: make([]byte, MinKeyLen)}}, false},
	} {
		if err := x.auth.check(); x.good != (err == nil) {
			t.Errorf("%+v: %v", x.auth, err)
		}
	}
}

// TestJoinLimits: what a member may join with.
func TestJoinLimits(t *testing.T) {
	for i, x := range []struct {
		change func(*Membership)
		good   bool
	}{
		{func(*Membership) {}, true},
		{func(m *Membership) { m.QPN = 0xF }, false},
		{func(m *Membership) { m.VirtualQPN = 0xF }, false},
		{func(m *Membership) { m.PathMTU = 1000 }, false},
		{func(m *Membership) { m.SQPSN = rocev2.PSNMask }, true},
		{func(m *Membership) { m.SQPSN = rocev2.PSNMask + 1 }, false},
		{func(m *Membership) { m.RQPSN = rocev2.PSNMask }, true},
		{func(m *Membership) { m.RQPSN = rocev2.PSNMask + 1 }, false},
		{func(m *Membership) { m.Group = netip.MustParseAddr("fd00:9::1") }, false},
		{func(m *Membership) { m.Group = netip.MustParseAddr("224.0.0.1") }, false},
	} {
		m, err := NewMember(MemberConfig{Local: masterAddr, Auth: testAuth()})
		if err != nil {
			t.Fatal(err)
		}
		reg := sample(1, 2)
		ms := membershipOf(reg.Members[0], reg)
		x.change(&ms)
		if err := m.Join(ms); x.good != (err == nil) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// parameters are changes of each parameter of a group, and what an update calls them.
var parameters = []struct {
	name   string
	change func(*Registration)
	is     Parameter
}{
	{"QPN", func(r *Registration) { r.QPN++ }, ParameterQPN},
	{"PMTU", func(r *Registration) { r.PathMTU = 512 }, ParameterPMTU},
	{"Window", func(r *Registration) { r.Window.RKey++ }, ParameterWindow},
	{"TargetKey", func(r *Registration) { r.TargetKey++ }, ParameterWindow},
	{"Policy", func(r *Registration) { r.Policy = mcast.Evict }, ParameterPolicy},
	{"Quorum", func(r *Registration) { r.Quorum++ }, ParameterPolicy},
	{"DeadAfter", func(r *Registration) { r.DeadAfter++ }, ParameterPolicy},
	{"LagPSNs", func(r *Registration) { r.LagPSNs++ }, ParameterPolicy},
	{"LagTime", func(r *Registration) { r.LagTime++ }, ParameterPolicy},
	{"SenderTimeout", func(r *Registration) { r.SenderTimeout++ }, ParameterPolicy},
	{"SenderRetries", func(r *Registration) { r.SenderRetries++ }, ParameterPolicy},
	{"NoRepair", func(r *Registration) { r.NoRepair = true }, ParameterPolicy},
}

// TestEachParameterCounts: segments of a registration, and updates, that differ in any
// parameter are not of the same group; each comes back from the wire as it was.
func TestEachParameterCounts(t *testing.T) {
	reg := epoch(withWindows(sample(1, 3)), 5)
	for _, x := range parameters {
		other := reg
		x.change(&other)
		if got := changedParameter(&reg, &other); got != x.is {
			t.Errorf("%s: %v, want %v", x.name, got, x.is)
		}
		a, b := reg.groupBody(reg.Members), other.groupBody(reg.Members)
		if sameGroup(&a, &b) || !sameGroup(&b, &b) {
			t.Errorf("%s makes no difference", x.name)
		}
		data, err := (&b).append(nil, false)
		if err != nil {
			t.Fatal(err)
		}
		r := &reader{b: data}
		back := parseGroup(r, false)
		if r.truncated || r.malformed != "" || len(r.b) > 0 || !sameGroup(&back, &b) {
			t.Errorf("%s: %v, want %v", x.name, back, b)
		}
		section, err := appendSection(nil, reg.Members, false)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(data) - len(section); n != b.size() {
			t.Errorf("%s: size %d, want %d", x.name, b.size(), n)
		}
		for n := range len(data) - len(section) { // nothing is wrong with what is cut off but that
			if r := (&reader{b: data[:n]}); !r.truncated {
				if parseGroup(r, false); !r.truncated || r.malformed != "" {
					t.Errorf("%s: %d bytes: short %t, bad %q", x.name, n, r.truncated, r.malformed)
				}
			}
		}
	}
	update := reg
	update.Base = 4
	g := update.groupBody(nil)
	if data, err := (&g).append(nil, false); err != nil || len(data)-(section{}).size() != g.size() {
		t.Errorf("an update: %d bytes without members, size %d; %v", len(data), g.size(), err)
	}
	for _, f := range []func(*GroupBody){
		func(g *GroupBody) { g.Base++ }, func(g *GroupBody) { g.Lease++ }, func(g *GroupBody) { g.TotalMembers++ },
	} {
		a, b := reg.groupBody(reg.Members), reg.groupBody(reg.Members)
		f(&b)
		if sameGroup(&a, &b) {
			t.Errorf("%+v is the same as %+v", a, b)
		}
	}
}

// TestFieldLimits: the largest value of each field is encoded, and none beyond it.
func TestFieldLimits(t *testing.T) {
	for i, x := range []struct {
		change func(*GroupBody)
		good   bool
	}{
		{func(g *GroupBody) { g.QPN = rocev2.PSNMask }, true}, {func(g *GroupBody) { g.QPN = rocev2.PSNMask + 1 }, false},
		{func(g *GroupBody) { g.PathMTU = 0 }, true}, {func(g *GroupBody) { g.PathMTU = -1 }, false},
		{func(g *GroupBody) { g.PathMTU = 0xFFFF }, true}, {func(g *GroupBody) { g.PathMTU = 0x10000 }, false},
		{func(g *GroupBody) { g.TotalMembers = 0 }, true}, {func(g *GroupBody) { g.TotalMembers = -1 }, false},
		{func(g *GroupBody) { g.TotalMembers = 0xFFFF }, true}, {func(g *GroupBody) { g.TotalMembers = 0x10000 }, false},
		{func(g *GroupBody) { g.DeadAfter = -1 }, false}, {func(g *GroupBody) { g.Lease = -1 }, false}, {func(g *GroupBody) { g.Lease = 0 }, true},
		{func(g *GroupBody) { g.Quorum = -1 }, false}, {func(g *GroupBody) { g.Quorum = 0xFFFF }, true}, {func(g *GroupBody) { g.Quorum = 0x10000 }, false},
		{func(g *GroupBody) { g.LagPSNs = -1 }, false}, {func(g *GroupBody) { g.LagPSNs = rocev2.PSNMask }, true}, {func(g *GroupBody) { g.LagPSNs = rocev2.PSNMask + 1 }, false},
		{func(g *GroupBody) { g.LagTime = -1 }, false},
		{func(g *GroupBody) { g.Members[0].QPN = rocev2.PSNMask }, true}, {func(g *GroupBody) { g.Members[0].QPN = rocev2.PSNMask + 1 }, false},
		{func(g *GroupBody) { g.Members[0].SQPSN = rocev2.PSNMask }, true}, {func(g *GroupBody) { g.Members[0].SQPSN = rocev2.PSNMask + 1 }, false},
		{func(g *GroupBody) { g.Members[0].RQPSN = rocev2.PSNMask }, true}, {func(g *GroupBody) { g.Members[0].RQPSN = rocev2.PSNMask + 1 }, false},
		{func(g *GroupBody) { g.Members[0].IP = netip.MustParseAddr("fd00::1") }, false}, {func(g *GroupBody) { g.Members[0].IP = netip.Addr{} }, false},
	} {
		r := sample(1, 2)
		g := r.groupBody(r.Members)
		x.change(&g)
		if _, err := g.append(nil, false); x.good != (err == nil) {
			t.Errorf("%d: %v", i, err)
		}
	}
	key := MemberKey{IP: netip.MustParseAddr("10.0.0.1"), QPN: rocev2.PSNMask}
	zone := netip.MustParseAddr("fe80::1%eth0")
	for i, x := range []struct {
		k    MemberKey
		v6   bool
		good bool
	}{{key, false, true}, {key, true, false}, {MemberKey{IP: key.IP, QPN: rocev2.PSNMask + 1}, false, false}, {MemberKey{QPN: 5}, false, false}, {MemberKey{}, false, true},
		{MemberKey{}, true, true}, {MemberKey{IP: zone, QPN: 5}, true, false}, {MemberKey{IP: zone.WithZone(""), QPN: 5}, true, true}} {
		_, err := appendKey(nil, x.k, x.v6)
		var p *Problem
		if x.good != (err == nil) || err != nil && !errors.As(err, &p) {
			t.Errorf("%d: %v", i, err)
		}
	}
	for _, b := range [][]byte{{0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 1}, {1, 0, 0, 0, 0, 0, 0}} {
		k := (&reader{b: b}).optionalKey(false)
		if (k == MemberKey{}) != (b[0] == 0 && b[6] == 0) {
			t.Errorf("% x: %v", b, k)
		}
	}
	four, six := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("fd00::1")
	for i, x := range []struct {
		group, reply netip.Addr
		good         bool
	}{{four, four, true}, {six, six, true}, {four, six, false}, {six, four, false}, {netip.Addr{}, four, false}, {four, netip.Addr{}, false},
		{six.WithZone("a"), six, false}, {six, six.WithZone("a"), false}, {netip.AddrFrom16(four.As16()), six, false}} {
		m := Message{Header{Total: 1, Group: x.group, ReplyTo: netip.AddrPortFrom(x.reply, 5)}, &Delete{}}
		if _, err := m.append(nil, 0); x.good != (err == nil) {
			t.Errorf("%d: %v", i, err)
		}
	}
	// 65,535 bytes are what a UDP packet's length counts to.
	big := Message{Header{Total: 1, Group: four, ReplyTo: masterAddr}, &Renew{ListUnconfirmed: sample(1, 3).Members}}
	one, err := big.append(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := big.append(nil, 0xFFFF-len(one)); err != nil {
		t.Error(err)
	}
	if _, err := big.append(nil, 0xFFFF-len(one)+1); err == nil {
		t.Error("65,536 bytes are encoded")
	}
	if got := joinKeys(make([]MemberKey, 8)); strings.Contains(got, "more") || strings.Count(got, ",") != 7 {
		t.Error(got)
	}
	if got := joinKeys(make([]MemberKey, 10)); !strings.HasSuffix(got, ", and 2 more") {
		t.Error(got)
	}
}

// TestDropKinds: which messages nobody answers, and which are a usual part of the protocol.
func TestDropKinds(t *testing.T) {
	unanswered := map[Drop]bool{BadVersion: true, Unauthenticated: true, UnknownKey: true, BadMAC: true, WrongSource: true, WrongLocation: true, NotFromSwitch: true}
	normal := map[Drop]bool{NoDrop: true, WrongInstance: true, DuplicateMsg: true}
	for d := NoDrop; d < NumDrops; d++ {
		if d.Unanswered() != unanswered[d] || d.Normal() != normal[d] {
			t.Errorf("%v: unanswered %t, normal %t", d, d.Unanswered(), d.Normal())
		}
	}
	if NumDrops.Text() != "" || NumDrops.String() != "invalid" {
		t.Error("a drop that there is not")
	}
}

// TestOneTry: a Gone that is sent once waits for no Ack, nor does one beyond the limit.
func TestOneTry(t *testing.T) {
	for _, x := range []struct {
		cfg  RegistrarConfig
		want int
	}{{RegistrarConfig{EventTries: 1}, 0}, {RegistrarConfig{EventTries: 2}, 4}, {RegistrarConfig{MaxEvents: 3}, 3}} {
		a := newAsker(t, x.cfg)
		a.register(epoch(sample(1, 3), 5))
		a.w.now = time.Hour
		var out Output
		a.w.sw.Advance(a.w.now, &out)
		if len(out.Packets) != 4 || len(a.w.sw.events.byID) != x.want {
			t.Errorf("%d packets, %d wait for their Acks, want %d", len(out.Packets), len(a.w.sw.events.byID), x.want)
		}
	}
}

// TestQuotaLimits: groups and members up to a key's quota are taken; those of other keys,
// and the group itself, do not count.
func TestQuotaLimits(t *testing.T) {
	quota := func(groups, members int) RegistrarConfig {
		return RegistrarConfig{Rights: map[KeyID]Rights{7: {Quota: Quota{Groups: groups, Members: members}}}}
	}
	for _, x := range []struct {
		cfg  RegistrarConfig
		want []Reason // the answers to groups of 2, 3 and 4 members, then to the second with 4
	}{
		{quota(0, 0), []Reason{0, 0, 0, 0}},
		{quota(2, 0), []Reason{0, 0, QuotaExceeded, 0}},
		{quota(3, 0), []Reason{0, 0, 0, 0}},
		{quota(1, 0), []Reason{0, QuotaExceeded, QuotaExceeded, QuotaExceeded}},
		{quota(0, 5), []Reason{0, 0, QuotaExceeded, QuotaExceeded}},
		{quota(0, 9), []Reason{0, 0, 0, QuotaExceeded}},
		{quota(0, 10), []Reason{0, 0, 0, 0}},
	} {
		a := newAsker(t, x.cfg)
		h := a.head(sample(8, 3).Group, 1)
		h.KeyID = 8
		r := sample(8, 3)
		if got := a.reason(a.askUnder(h, &Register{r.groupBody(r.Members)})); got != NoReason {
			t.Fatal(got)
		}
		for i, reg := range []Registration{epoch(sample(1, 2), 1), epoch(sample(2, 3), 1), epoch(sample(3, 4), 1), epoch(sample(2, 4), 2)} {
			if got := a.reason(a.register(reg)); got != x.want[i] {
				t.Errorf("%+v, registration %d: %v, want %v", x.cfg.Rights[7].Quota, i, got, x.want[i])
			}
		}
	}
}

// TestLocalLimits: what an operator registers has the switch's limits, and calls for a
// group that there is not do nothing.
func TestLocalLimits(t *testing.T) {
	a := newAsker(t, RegistrarConfig{MaxMembers: 3})
	var out Output
	if _, err := a.w.sw.RegisterLocal(0, sample(1, 3), &out); err != nil {
		t.Error(err)
	}
	if _, err := a.w.sw.RegisterLocal(0, sample(2, 4), &out); err == nil {
		t.Error("four of three members are taken")
	}
	none := netip.MustParseAddr("10.9.0.99")
	if reg, until, ok := a.w.sw.Group(none); ok || until != 0 || reg.Group.IsValid() {
		t.Error(reg, until, ok)
	}
	if key, ok := a.w.sw.Key(none); ok || key != 0 {
		t.Error(key, ok)
	}
	if err := a.w.sw.DeleteLocal(0, none, &out); err == nil {
		t.Error("a group that there is not is deleted")
	}
}
