// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
)

// TestSecondHostIsRefused has two Hosts for one address.
func TestSecondHostIsRefused(t *testing.T) {
	w := newWorld(t, 1, false, accepted, auth)
	err := w.Hosts[0].NS.Do(func() error {
		h, err := endpoint.NewHost(w.ip(0), endpoint.HostConfig{Auth: auth})
		if err != nil {
			return err
		}
		defer h.Close()
		if _, err := endpoint.NewHost(w.ip(0), endpoint.HostConfig{Auth: auth}); err == nil || !strings.Contains(err.Error(), "share a Host") {
			t.Errorf("a second Host for the address: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTwoGroupsShareAHost joins two groups with the same addresses, and checks that one
// ends without the other.
func TestTwoGroupsShareAHost(t *testing.T) {
	w := newWorld(t, 2, false, accepted, auth)
	first := w.group
	hosts := make([]*endpoint.Host, 2)
	for i := range hosts {
		err := w.Hosts[i].NS.Do(func() (err error) {
			hosts[i], err = endpoint.NewHost(w.ip(i), endpoint.HostConfig{Auth: auth})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { hosts[i].Close() })
	}
	w.hosts = hosts
	one, errs := w.join(t, w.ctx, endpoint.MasterConfig{})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	w.serve(t, netip.MustParseAddr("10.77.254.2"), lab.StarGroupsIPv4, accepted, auth)
	two, errs := w.join(t, w.ctx, endpoint.MasterConfig{VirtualQPN: 0x5000})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i := range two {
		if a, b := one[i].Info(), two[i].Info(); a.IP != first || b.IP != w.group || b.QPN != 0x5000 {
			t.Errorf("host %d is in %+v and %+v", i, a, b)
		}
		if e := next(t, w.ctx, two[i]); e.Kind != endpoint.Joined {
			t.Errorf("host %d: %+v", i, e)
		}
	}
	if err := two[0].Close(); err != nil {
		t.Fatal(err)
	}
	if e := next(t, w.ctx, two[1]); e.Kind != endpoint.Ended || e.Reason != envelope.Deleted {
		t.Errorf("member of the deleted group: %+v", e)
	}
	for i := range one {
		select {
		case <-one[i].Over():
			t.Errorf("host %d: the other group ended too", i)
		default:
		}
	}
}

// A master without a loopback interface is told so, with the command that mends it, and so are the members; a member
// needs none.
func TestLoopbackOfTheMasterIsDown(t *testing.T) {
	w := newWorld(t, 2, false, accepted, auth)
	for i := range 2 {
		if err := w.Hosts[i].NS.SetDown("lo"); err != nil {
			t.Fatal(err)
		}
	}
	_, errs := w.join(t, w.ctx, endpoint.MasterConfig{})
	for i, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "the loopback interface lo is down") || !strings.Contains(err.Error(), "ip link set lo up") {
			t.Errorf("host %d: %v", i, err)
		}
	}
	if err := w.Hosts[0].NS.SetUp("lo"); err != nil {
		t.Fatal(err)
	}
	if _, errs := w.join(t, w.ctx, endpoint.MasterConfig{}); errors.Join(errs...) != nil {
		t.Errorf("with the command that mends it: %v", errs)
	}
}
