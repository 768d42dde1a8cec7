// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// What is refused because of a place says which port, or why there is none: to the operator who asks,
// and in the journal.
func TestRefusalsNamePortAndCause(t *testing.T) {
	f := newFakeSwitch(t, 6, 1)
	f.locator.set(3, 4, 3, errors.New("10.77.0.4 is reached through eth9, which is no port of this switch"))
	f.locator.set(4, 5, 4, fmt.Errorf("10.77.0.5 on br0: %w", locate.ErrPending))
	f.control.do(func() {
		f.control.ports[5].allow = &config.Allow{Addresses: []netip.Prefix{netip.MustParsePrefix("10.99.0.0/16")}}
	})
	for i, c := range []struct {
		pmtu, member int
		want         string
	}{
		{4096, 2, "; the MTU of f0, f1, f2, f3, f4, f5 has no room for more"},
		{1024, 3, "; 10.77.0.4 is reached through eth9, which is no port of this switch"},
		{1024, 4, "; 10.77.0.5 on br0: neighbour is being resolved, and no host answers there"},
		{1024, 5, "is not in the allow lists of port f5"},
	} {
		r := &api.Register{Group: fakeGroup(i), QPN: 0x4711, PMTU: c.pmtu, Policy: "strict", NoRepair: true}
		for _, m := range []int{0, 1, c.member} {
			r.Members = append(r.Members, f.record(m, api.QPN(0x100*(i+1)+m)))
		}
		if err := f.Register(r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the operator hears %v, want %q", err, c.want)
		}
		if c.member == 4 {
			continue // the journal has one of a reason in 10 s
		}
		if es := f.events(i, api.EventRejected); len(es) != 1 || !strings.Contains(es[0].Reason, c.want) {
			t.Errorf("the journal has %+v, want %q", es, c.want)
		}
	}
}

// Registrations without end of hosts that cannot be members are a few lines of the log, whatever the reason.
func TestUnlocatableMembersFillNoLog(t *testing.T) {
	f := newFakeSwitch(t, 6, 1)
	f.locator.set(3, 4, 3, errors.New("10.77.0.4 is reached through eth9, which is no port of this switch"))
	f.control.do(func() {
		f.control.ports[5].allow = &config.Allow{Addresses: []netip.Prefix{netip.MustParsePrefix("10.99.0.0/16")}}
	})
	const times = 30
	for i := range times {
		for _, member := range []int{3, 5} {
			r := &api.Register{Group: fakeGroup(0), QPN: 0x4711, PMTU: 1024, Policy: "strict", NoRepair: true}
			for _, m := range []int{0, 1, member} {
				r.Members = append(r.Members, f.record(m, api.QPN(0x100*(i+1)+m)))
			}
			if err := f.Register(r); err == nil {
				t.Fatal("a host that cannot be a member is one")
			}
		}
	}
	f.control.do(func() {
		for range times {
			if v := f.control.dir.Ways(fakeHost(3)); v.Verdict.Kind == envelope.VerdictAccepted {
				t.Errorf("%+v", v)
			}
		}
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.warnings); n < 2 || n > 4 {
		t.Errorf("%d warnings about %d registrations:\n%s", n, 2*times, strings.Join(f.warnings, "\n"))
	}
}
