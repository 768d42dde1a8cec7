// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package lockstep

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
)

// machine is what envelope's Master and Member have in common.
type machine interface {
	Input(now time.Duration, from netip.AddrPort, b []byte, out *envelope.Output)
	Advance(now time.Duration, out *envelope.Output)
	NextDeadline() (time.Duration, bool)
}

// twin is a machine of package envelope with the one of libgleam at the same inputs.
type twin struct {
	name   string
	c      *process
	number int
	local  netip.AddrPort
	master *envelope.Master // one of the two
	member *envelope.Member
	out    envelope.Output
	events map[envelope.EventKind]int // how many there were
}

func (x *twin) machine() machine {
	if x.master != nil {
		return x.master
	}
	return x.member
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// lines are the output and the deadline of the machine in Go as machine.c prints its own.
func (x *twin) lines(failure error) []string {
	var s []string
	if failure != nil { // Go says "update: group …: no member fits" where C says "update group …"
		s = append(s, "F "+strings.Replace(failure.Error(), ": group", " group", 1))
	}
	for _, p := range x.out.Packets {
		s = append(s, fmt.Sprintf("P %s %d %x", p.Dst.Addr(), p.Dst.Port(), p.Data))
	}
	for _, e := range x.out.Events {
		ip := "-"
		if e.Member.IP.IsValid() {
			ip = e.Member.IP.String()
		}
		s = append(s, fmt.Sprintf("E %d %d %s %d %d %d %d %d %d %d %d|%s", e.Kind, e.Epoch, ip, e.Member.QPN, e.EndReason, e.Status, e.Code, e.PSN,
			e.Done, e.Total, e.Lease, text(e.Err)))
	}
	s = append(s, fmt.Sprintf("D %d", x.out.Drop))
	if at, ok := x.machine().NextDeadline(); ok {
		return append(s, fmt.Sprintf("T %d", at))
	}
	return append(s, "T never")
}

// same compares the answer of C with what Go has put out.
func (x *twin) same(what string, failure error, got []string) {
	x.c.t.Helper()
	for _, e := range x.out.Events {
		if x.events == nil {
			x.events = map[envelope.EventKind]int{}
		}
		x.events[e.Kind]++
	}
	if want := x.lines(failure); !slices.Equal(got, want) {
		x.c.t.Fatalf("%s: %s: in C\n%s\nin Go\n%s", x.name, what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (x *twin) input(now time.Duration, from netip.AddrPort, b []byte) {
	x.machine().Input(now, from, b, &x.out)
	x.same(fmt.Sprintf("input %x", b), nil, x.c.ask("in %d %d %s %d %x", x.number, now, from.Addr(), from.Port(), b))
}

func (x *twin) advance(now time.Duration) {
	x.machine().Advance(now, &x.out)
	x.same("advance", nil, x.c.ask("advance %d %d", x.number, now))
}

// trouble compares what a machine waits for, or what it knows about a join that fails.
func (x *twin) trouble(now time.Duration, group netip.Addr) {
	want := ""
	if x.master != nil {
		if f := x.master.Unfinished(now); f != nil {
			want = f.Error()
		}
	} else {
		want = text(x.member.Problem(group))
	}
	if got := x.c.ask("trouble %d %d", x.number, now); got[0] != want {
		x.c.t.Fatalf("%s: trouble: in C %q, in Go %q", x.name, got[0], want)
	}
}

func windowArgs(w mcast.Window) string { return fmt.Sprintf("%d %d %d", w.Base, w.Len, w.RKey) }

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (x *twin) giveRecords(ms []envelope.MemberRecord) {
	for _, m := range ms {
		x.c.ask("record %s %d %d %d %s %d", m.IP, m.QPN, m.SQPSN, m.RQPSN, windowArgs(m.Window), flag(m.ReceiveOnly))
	}
}

// newMaster makes the same master in both; nil if both refuse the registration in the same
// words.
func newMaster(c *process, number int, cfg envelope.MasterConfig, r envelope.Registration) *twin {
	c.t.Helper()
	x := &twin{name: fmt.Sprintf("master %d", number), c: c, number: number, local: cfg.Local}
	x.giveRecords(r.Members)
	got := c.ask("master %d %s %d %d %d %d %d 0 %d %s %d %d %d %d %d %d %d %d %d %d %d %s %d %d", number, cfg.Local.Addr(), cfg.Local.Port(), cfg.Port, cfg.Seed,
		cfg.MTU, cfg.Deadline, cfg.RenewWithin, r.Group, r.Epoch, r.QPN, r.PathMTU, r.Policy, r.Quorum, r.DeadAfter, r.LagPSNs, r.LagTime, r.SenderTimeout, r.SenderRetries,
		r.Lease, windowArgs(r.Window), r.TargetKey, flag(r.NoRepair))
	m, err := envelope.NewMaster(cfg, r)
	if err != nil {
		if want := "F " + strings.Replace(err.Error(), ": group", " group", 1); got[0] != want {
			c.t.Fatalf("in C %q, in Go %q", got[0], want)
		}
		return nil
	}
	x.master = m
	x.same("new", nil, append([]string{"D 0"}, got...))
	return x
}

func newMember(c *process, number int, cfg envelope.MemberConfig) *twin {
	c.t.Helper()
	m, err := envelope.NewMember(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.ask("member %d %s %d %d %d 0 %d %d 0", number, cfg.Local.Addr(), cfg.Local.Port(), cfg.Port, cfg.Seed, cfg.Deadline, cfg.AskEvery)
	return &twin{name: fmt.Sprintf("member %d", number), c: c, number: number, local: cfg.Local, member: m}
}

func (x *twin) join(ms envelope.Membership) {
	if x.member.Join(ms) == nil {
		x.c.ask("join %d %s %d %d %d %d %d %s", x.number, ms.Group, ms.VirtualQPN, ms.QPN, ms.SQPSN, ms.RQPSN, ms.PathMTU, windowArgs(ms.Window))
	}
}

func (x *twin) start(now time.Duration) {
	x.master.Start(now, &x.out)
	x.same("start", nil, x.c.ask("start %d %d", x.number, now))
}

// leave is a member's own leaving, or the master's removal of k.
func (x *twin) leave(now time.Duration, group netip.Addr, k envelope.MemberKey) {
	if x.master != nil {
		err := x.master.Leave(now, k, &x.out)
		x.same("remove", err, x.c.ask("leave %d %d %s %d", x.number, now, k.IP, k.QPN))
		return
	}
	if x.member.Leave(now, group, &x.out) == nil { // C has no word for a group that was never joined
		x.same("leave", nil, x.c.ask("leave %d %d", x.number, now))
	}
}

func (x *twin) update(now time.Duration, ms []envelope.MemberRecord) {
	x.giveRecords(ms)
	err := x.master.Update(now, ms, &x.out)
	x.same("update", err, x.c.ask("update %d %d", x.number, now))
}

func (x *twin) delete(now time.Duration) {
	x.master.Delete(now, &x.out)
	x.same("delete", nil, x.c.ask("delete %d %d", x.number, now))
}
