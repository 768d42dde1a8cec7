// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// chaos does one thing to the world.
func (w *world) chaos(masters []*twin, reg *envelope.Registration) {
	master := masters[w.r.IntN(len(masters))]
	host := w.hosts[w.order[w.r.IntN(len(w.order))]]
	var out envelope.Output
	k := reg.Members[w.r.IntN(len(reg.Members))].Key()
	switch w.r.IntN(14) {
	case 0:
		master.leave(w.now, w.group, k)
		w.send(&master.out)
	case 1:
		if host.member != nil {
			host.leave(w.now, w.group, k)
			w.send(&host.out)
		}
	case 2, 3, 4, 12, 13:
		w.update(master, reg)
	case 5:
		w.sw.MemberEvicted(w.now, w.group, k, rocev2.Syndrome(w.r.IntN(256)), rocev2.PSN(w.r.IntN(1<<24)), &out)
	case 6:
		if w.r.IntN(9) == 0 {
			w.sw.GroupFailed(w.now, w.group, k, rocev2.Syndrome(w.r.IntN(256)), 77, &out)
		}
	case 7:
		if w.r.IntN(6) == 0 {
			w.boot()
		}
	case 8: // a recording, to whom it was for, or to somebody else
		for range 5 {
			p := w.captured[w.r.IntN(len(w.captured))]
			if w.r.IntN(3) == 0 {
				p.Dst = w.order[w.r.IntN(len(w.order))]
			}
			if w.r.IntN(3) == 0 {
				p.Src = w.order[w.r.IntN(len(w.order))]
			}
			w.deliver(p)
		}
	case 9:
		w.forge(host)
	case 10:
		if p, err := w.sw.Where(w.group, k.IP, envelope.Nonce{1, 2, 3}); err == nil {
			out.Packets = append(out.Packets, p)
		}
	case 11:
		w.silence(master, reg)
	}
	w.send(&out)
	w.hosts[w.order[w.r.IntN(len(w.order))]].trouble(w.now, w.group)
}

// silence has the last member leave, or be removed, while nothing arrives.
func (w *world) silence(master *twin, reg *envelope.Registration) {
	k := reg.Members[len(reg.Members)-1].Key()
	loss := w.loss
	w.loss = 100
	x := master
	if h := w.hosts[netip.AddrPortFrom(k.IP, envelope.DefaultPort)]; h != nil && w.r.IntN(2) == 0 {
		x = h
	}
	x.leave(w.now, w.group, k)
	w.send(&x.out)
	w.run(5 * time.Second)
	w.loss = loss
}

// update changes the members: one goes, one comes, one restarts its queue pair.
func (w *world) update(master *twin, reg *envelope.Registration) {
	ms := master.master.Members()
	if len(ms) == 0 {
		return
	}
	if w.r.IntN(2) == 0 {
		i := w.r.IntN(len(ms))
		ms = slices.Delete(ms, i, i+1)
	}
	if w.r.IntN(2) == 0 {
		m := w.record(len(reg.Members)+1+w.r.IntN(3), reg.Window.Len > 0)
		ms = append(ms, m)
		w.addMember(40+int(m.IP.As16()[15])%20, m, reg)
	}
	if len(ms) > 0 && w.r.IntN(3) == 0 {
		m := &ms[w.r.IntN(len(ms))]
		m.SQPSN = rocev2.PSN(w.r.IntN(1 << 24))
		if x := w.hosts[netip.AddrPortFrom(m.IP, envelope.DefaultPort)]; x != nil && w.r.IntN(4) > 0 {
			x.member.Forget(w.group)
			x.c.ask("member %d %s %d %d 1 0 %d 0 0", x.number, x.local.Addr(), x.local.Port(), envelope.DefaultPort, 3*time.Second)
			*x = *newMember(x.c, x.number, envelope.MemberConfig{Local: x.local, Port: envelope.DefaultPort, Auth: w.auth, Seed: 9, Deadline: 3 * time.Second})
			w.addMember(x.number, *m, reg)
		}
	}
	master.update(w.now, ms)
	w.send(&master.out)
}

// forge sends a host what the switch may never send: any type, under any key, about any
// member, with numbers that may fit.
func (w *world) forge(x *twin) {
	seen, err := envelope.Parse(w.captured[w.r.IntN(len(w.captured))].Data)
	if err != nil {
		return
	}
	h := seen.Header
	h.Transaction += uint32(w.r.IntN(3)) - 1
	h.Epoch += uint64(w.r.IntN(3)) - 1
	h.Seq, h.Total = 0, 1
	reject := &envelope.Reject{Request: envelope.Type(w.r.IntN(5))}
	reject.Reason, reject.Value = envelope.Reason(w.r.IntN(44)), w.r.Uint64()>>w.r.IntN(64)
	k := envelope.MemberKey{IP: x.local.Addr(), QPN: 0x100}
	bodies := []envelope.Body{
		reject, seen.Body, &envelope.Accept{Request: envelope.Type(w.r.IntN(5)), Lease: time.Second}, &envelope.Challenge{Request: envelope.Type(w.r.IntN(5)), EpochKnown: w.r.Uint64() >> w.r.IntN(64)},
		&envelope.Gone{Member: k, EndReason: envelope.EndReason(w.r.IntN(11)), Lost: envelope.LostLink{At: 1, To: 2, Port: "p1"}},
		&envelope.Gone{EndReason: envelope.SwitchLost, Lost: envelope.LostLink{At: 1, To: 2, Port: "port 1"}},
		&envelope.Confirm{Member: k, Status: envelope.Status(w.r.IntN(9)), QPN: 0x99, SQPSN: 1, RQPSN: 2}, &envelope.Where{Member: k.IP}, &envelope.Ack{},
		&envelope.Notice{Kind: envelope.NoticeKind(w.r.IntN(4)), Member: k, Code: 2, PSN: 3, Serial: w.r.Uint64N(9)}, &envelope.Reject{Request: envelope.TypeRenew, Problem: envelope.Problem{Reason: envelope.UnknownGroup}},
	}
	key := []envelope.KeyID{0, 7, 7, 7, 8}[w.r.IntN(5)]
	if w.auth.Insecure {
		key = 0
	}
	b, err := envelope.Append(nil, &envelope.Message{Header: h, Body: bodies[w.r.IntN(len(bodies))]}, envelope.Keys{7: secret, 8: other}, key)
	if err != nil {
		return // the header is of a group of another family than the body
	}
	from := netip.AddrPortFrom(w.group, envelope.DefaultPort)
	if w.r.IntN(4) == 0 {
		from = w.order[w.r.IntN(len(w.order))]
	}
	x.input(w.now, from, b)
	w.send(&x.out)
	h = seen.Header
	h.Seq, h.Total = 0, 1
	n := &envelope.Notice{Kind: envelope.NoticeKind(1 + w.r.IntN(2)), Member: k, PSN: 3, Serial: w.r.Uint64N(1 << 20)}
	if b, err = envelope.Append(nil, &envelope.Message{Header: h, Body: n}, (envelope.Keys{7: secret}), min(key, 7)); err != nil {
		return
	}
	x.input(w.now, netip.AddrPortFrom(w.group, envelope.DefaultPort), b)
	w.send(&x.out)
}

// TestLockstep: worlds of one switch, two masters and up to 12 members, with all that can
// go wrong between them.
func TestLockstep(t *testing.T) {
	c := start(t)
	total := map[envelope.EventKind]int{}
	for seed := range uint64(40) {
		w := newWorld(t, c, seed)
		reg := w.registration(2 + w.r.IntN(11))
		var masters []*twin
		for number := range 2 {
			if x := w.addMaster(number, reg); x != nil {
				masters = append(masters, x)
			}
		}
		for i, m := range reg.Members {
			if w.r.IntN(30) > 0 {
				w.addMember(2+i, m, &reg)
			}
		}
		if len(masters) < 2 {
			continue
		}
		masters[0].start(w.now)
		w.send(&masters[0].out)
		w.run(time.Duration(w.r.IntN(2000)) * time.Millisecond)
		if seed%4 == 0 { // the switch is out of reach
			w.silence(masters[0], &reg)
		}
		if w.r.IntN(3) == 0 {
			masters[1].start(w.now)
			w.send(&masters[1].out)
		}
		for range 12 {
			w.run(time.Duration(w.r.IntN(1500)) * time.Millisecond)
			w.chaos(masters, &reg)
		}
		masters[0].delete(w.now)
		w.send(&masters[0].out)
		w.run(12 * time.Second)
		for _, x := range w.hosts {
			for k, n := range x.events {
				total[k] += n
			}
		}
	}
	for _, k := range []envelope.EventKind{
		envelope.SwitchAccepted, envelope.MemberConfirmed, envelope.Registered, envelope.RegistrationFailed, envelope.MemberGone, envelope.GroupGone,
		envelope.LeaveFailed, envelope.Updated, envelope.UpdateFailed, envelope.Stalled, envelope.Resumed,
	} {
		if total[k] < 2 {
			t.Errorf("only %d events of kind %d: the worlds do not show it", total[k], k)
		}
	}
	t.Logf("events by kind: %v", total)
}

// TestFaultyRegistrations: both refuse the same ones, in the same words.
func TestFaultyRegistrations(t *testing.T) {
	c := start(t)
	w := newWorld(t, c, 1)
	faults := map[string]func(*envelope.Registration){
		"no members": func(r *envelope.Registration) { r.Members = nil }, "one": func(r *envelope.Registration) { r.Members = r.Members[:1] },
		"twice": func(r *envelope.Registration) { r.Members[2].IP = r.Members[0].IP }, "group": func(r *envelope.Registration) { r.Members[1].IP = r.Group },
		"qpn": func(r *envelope.Registration) { r.Members[1].QPN = 1 }, "psn": func(r *envelope.Registration) { r.Members[1].SQPSN = 1 << 24 },
		"virtual": func(r *envelope.Registration) { r.QPN = 0xffffff }, "mtu": func(r *envelope.Registration) { r.PathMTU = 1000 },
		"policy": func(r *envelope.Registration) { r.Policy = 3 }, "quorum": func(r *envelope.Registration) { r.Quorum = 99 },
		"lag": func(r *envelope.Registration) { r.LagPSNs = 1 << 23 }, "dead": func(r *envelope.Registration) { r.DeadAfter = time.Millisecond },
		"long dead": func(r *envelope.Registration) { r.Policy, r.DeadAfter = mcast.Evict, time.Minute }, "timeout": func(r *envelope.Registration) { r.SenderTimeout = 0 },
		"retries": func(r *envelope.Registration) { r.SenderRetries = 9 }, "window": func(r *envelope.Registration) { r.Members[1].Window.Len = 1 },
		"group window": func(r *envelope.Registration) { r.Window.Base = ^uint64(0); r.Window.Len = 9 }, "multicast": func(r *envelope.Registration) { r.Members[1].IP = netip.MustParseAddr("ff02::1") },
		"family": func(r *envelope.Registration) { r.Members[1].IP = netip.MustParseAddr("fd00::1") }, "base": func(r *envelope.Registration) { r.Epoch, r.Base = 3, 3 },
		"receivers": func(r *envelope.Registration) {
			for i := range r.Members {
				r.Members[i].ReceiveOnly = true
			}
		},
		"broadcast": func(r *envelope.Registration) { r.Group = netip.MustParseAddr("255.255.255.255") }, "loopback": func(r *envelope.Registration) { r.Members[0].IP = netip.MustParseAddr("127.0.0.1") },
	}
	for name, spoil := range faults {
		reg := w.registration(3)
		for reg.Policy != 0 || reg.Window.Len == 0 || reg.TargetKey != 0 {
			reg = w.registration(3)
		}
		if spoil(&reg); name == "base" {
			continue // C takes a base in an update alone
		}
		if w.addMaster(0, reg) != nil {
			t.Errorf("%s: both take it", name)
		}
	}
}

// TestWords: every number that can be on the wire has the same words.
func TestWords(t *testing.T) {
	c := start(t)
	same := func(want, format string, args ...any) {
		t.Helper()
		if got := c.ask(format, args...); got[0] != want {
			t.Errorf("in C %q, in Go %q", got[0], want)
		}
	}
	for i := range 256 {
		same(envelope.EndReason(i).String(), "words end %d", i)
		same(envelope.Status(i).String(), "words status %d", i)
		same(envelope.Cause(rocev2.Syndrome(i)), "words cause %d", i)
		for _, v := range []uint64{0, 1, 2, 3, 4, 5, 6, 0x0a000001, 0x020304050607, 1 << 62, 67108864} {
			p := envelope.Problem{Reason: envelope.Reason(i), Value: v}
			same(p.Error(), "words problem %d - 0 %d", i, v)
			p.Member = envelope.MemberKey{IP: netip.MustParseAddr("fd00::7"), QPN: 0x17}
			same(p.Error(), "words problem %d fd00::7 23 %d", i, v)
		}
	}
	for _, d := range []time.Duration{0, 1, 999, 1000, 1500, 999999, 1e6, 1e9, 1.5e9, 59e9, 60e9, 61.25e9, 3600e9, 3723.5e9, 268435456} {
		same(d.String(), "words duration %d", d)
	}
}

// TestMACs: HMAC and HKDF of all lengths around the block's.
func TestMACs(t *testing.T) {
	c := start(t)
	for _, n := range []int{32, 63, 64, 65, 200} {
		for _, m := range []int{1, 54, 55, 56, 63, 64, 65, 119, 120, 1000} {
			key, data := bytes.Repeat([]byte{0xAB}, n), bytes.Repeat([]byte{0x5C, 1, 2}, m)
			got := c.ask("mac %x %x", key, data)
			if want := hmacOf(t, key, data); !slices.Equal(got, want) {
				t.Fatalf("key of %d bytes, %d of data: %q, want %q", n, 3*m, got, want)
			}
		}
	}
}
