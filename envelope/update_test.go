// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"errors"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

func TestUpdateRejections(t *testing.T) {
	base := func(f func(*Registration)) Registration {
		r := epoch(sample(1, 3), 6)
		r.Base = 5
		f(&r)
		return r
	}
	for _, c := range []struct {
		name  string
		reg   Registration
		want  Reason
		value uint64
	}{
		{"the same members", base(func(*Registration) {}), NoReason, 0},
		{"one more", base(func(r *Registration) { r.Members = sample(1, 4).Members }), NoReason, 0},
		{"older base", base(func(r *Registration) { r.Base = 4 }), WrongBase, 5},
		{"base of the future", base(func(r *Registration) { r.Epoch, r.Base = 9, 8 }), WrongBase, 5},
		{"base not below the epoch", base(func(r *Registration) { r.Base = 6 }), Malformed, 0},
		{"no such group", base(func(r *Registration) { *r = epoch(sample(2, 3), 6); r.Base = 5 }), WrongBase, 0},
		{"virtual QPN", base(func(r *Registration) { r.QPN++ }), FixedParameter, uint64(ParameterQPN)},
		{"path MTU", base(func(r *Registration) { r.PathMTU = 2048 }), FixedParameter, uint64(ParameterPMTU)},
		{"window", base(func(r *Registration) { *r = withWindows(*r) }), FixedParameter, uint64(ParameterWindow)},
		{"policy", base(func(r *Registration) { r.Policy = mcast.Evict }), FixedParameter, uint64(ParameterPolicy)},
		{"dead after", base(func(r *Registration) { r.DeadAfter = time.Second }), FixedParameter, uint64(ParameterPolicy)},
		{"a member of another group", base(func(r *Registration) { r.Members[1] = sample(77, 1).Members[0] }), OverlappingMembers, 0},
		{"one member left", base(func(r *Registration) { r.Members = r.Members[:1] }), TooFewMembers, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAsker(t, RegistrarConfig{})
			a.register(epoch(sample(77, 2), 5))
			if r := a.reason(a.register(epoch(sample(1, 3), 5))); r != NoReason {
				t.Fatal(r)
			}
			before := len(a.w.table.calls)
			out := a.register(c.reg)
			if got := a.reason(out); got != c.want {
				t.Fatalf("%v, want %v", got, c.want)
			}
			if j, ok := a.answers(out)[0].(*Reject); ok && j.Value != c.value && c.value != 0 {
				t.Errorf("value %d, want %d", j.Value, c.value)
			}
			if c.want != NoReason && len(a.w.table.calls) != before {
				t.Errorf("rejected, but the table got %v", a.w.table.calls[before:])
			}
		})
	}
}

// Another host with the key may register a group anew, but not update one whose
// state it cannot know.
func TestUpdateIsTheMasters(t *testing.T) {
	a := newAsker(t, RegistrarConfig{})
	reg := epoch(sample(1, 3), 5)
	a.register(reg)
	up := epoch(reg, 6)
	up.Base = 5
	a.from = netip.MustParseAddrPort("10.0.0.66:5000")
	if r := a.reason(a.register(up)); r != NotAllowed {
		t.Errorf("another host: %v", r)
	}
	var out Output
	local := epoch(up, 7)
	if _, err := a.w.sw.RegisterLocal(a.w.now, local, &out); err == nil {
		t.Error("the operator updated a master's group")
	} else if p := (*Problem)(nil); !errors.As(err, &p) || p.Reason != NotAllowed {
		t.Error(err)
	}
	a.from = netip.AddrPortFrom(masterAddr.Addr(), 6000)
	if r := a.reason(a.register(epoch(up, 8))); r != NoReason {
		t.Errorf("the master from another port: %v", r)
	}
}

// The operator's own groups are updated by hand.
func TestUpdateLocal(t *testing.T) {
	w := newWorld(t, RegistrarConfig{})
	var out Output
	reg := sample(1, 3)
	e, err := w.sw.RegisterLocal(0, reg, &out)
	if err != nil {
		t.Fatal(err)
	}
	reg.Members = sample(1, 4).Members[1:]
	reg.Base = e
	if _, err = w.sw.RegisterLocal(0, reg, &out); err != nil {
		t.Fatal(err)
	}
	kinds := map[EventKind]int{}
	for _, ev := range out.Events {
		kinds[ev.Kind]++
	}
	if kinds[Registered] != 1 || kinds[MemberJoined] != 1 || kinds[MemberGone] != 1 || len(out.Packets) != 0 {
		t.Errorf("events %v, %d packets", out.Events, len(out.Packets))
	}
}

func TestPolicies(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		f    func(*Registration)
		want Reason
	}{
		{"quorum", func(r *Registration) { r.Policy, r.Quorum = mcast.Quorum, 2 }, NoReason},
		{"quorum of all", func(r *Registration) { r.Policy, r.Quorum = mcast.Quorum, 3 }, NoReason},
		{"quorum of more", func(r *Registration) { r.Policy, r.Quorum = mcast.Quorum, 4 }, BadPolicy},
		{"quorum of none", func(r *Registration) { r.Policy = mcast.Quorum }, BadPolicy},
		{"quorum without the policy", func(r *Registration) { r.Policy, r.Quorum = mcast.Evict, 2 }, BadPolicy},
		{"lag limits", func(r *Registration) { r.Policy, r.LagPSNs, r.LagTime = mcast.Evict, 100, time.Second }, NoReason},
		{"lag limit under strict", func(r *Registration) { r.LagPSNs = 100 }, BadPolicy},
		{"lag limit beyond PSNs", func(r *Registration) { r.Policy, r.LagPSNs = mcast.Evict, 1<<22+1 }, BadPolicy},
		{"unknown policy", func(r *Registration) { r.Policy = mcast.Quorum + 1 }, Malformed},
		{"100 ms for 67 ms * 7", func(r *Registration) {
			r.Policy, r.DeadAfter, r.SenderTimeout, r.SenderRetries = mcast.Evict, 100*ms, 14, 7
		}, NoReason},
		{"not above the timeout", func(r *Registration) {
			r.Policy, r.DeadAfter, r.SenderTimeout, r.SenderRetries = mcast.Evict, 67*ms, 14, 7
		}, BadDeadAfter},
		{"not below the last retry", func(r *Registration) {
			r.Policy, r.DeadAfter, r.SenderTimeout, r.SenderRetries = mcast.Evict, 470*ms, 14, 7
		}, BadDeadAfter},
		{"undeclared", func(r *Registration) { r.Policy, r.DeadAfter = mcast.Evict, time.Hour }, NoReason},
		{"timeout without retries", func(r *Registration) { r.SenderTimeout = 14 }, Malformed},
		{"retries beyond 7", func(r *Registration) { r.SenderTimeout, r.SenderRetries = 14, 8 }, Malformed},
		{"timeout beyond 31", func(r *Registration) { r.SenderTimeout, r.SenderRetries = 32, 7 }, Malformed},
	} {
		r := epoch(sample(1, 4), 1)
		c.f(&r)
		a := newAsker(t, RegistrarConfig{})
		if got := a.reason(a.register(r)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestMessagesCarryAllParams: a registration's parameters come back from the wire, each of them.
func TestMessagesCarryAllParams(t *testing.T) {
	r := Registration{GroupParams: mcast.GroupParams{
		QPN: 0x99, PathMTU: 4096, Policy: mcast.Quorum, Quorum: 1, DeadAfter: time.Second, LagPSNs: 64, LagTime: time.Minute, SenderTimeout: 15, SenderRetries: 7,
	}}
	for v, i := reflect.ValueOf(r.GroupParams), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not set: give it a value here", v.Type().Field(i).Name)
		}
	}
	g := r.groupBody(nil)
	data, err := g.append(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	back := parseGroup(&reader{b: data}, false)
	if got := back.registration(&Header{}).GroupParams; got != r.GroupParams {
		t.Errorf("%+v came back as %+v", r.GroupParams, got)
	}
}
