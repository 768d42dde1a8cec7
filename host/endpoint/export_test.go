// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
)

// TestRegistrar runs the switch's side of the envelope protocol on a UDP
// socket at a group's address, in the namespace of the calling thread.
type TestRegistrar struct {
	drv *driver
	reg *envelope.Registrar
}

// ListenRegistrar starts a TestRegistrar.
func ListenRegistrar(at netip.AddrPort, r *envelope.Registrar) (*TestRegistrar, error) {
	conn, err := listenUDP(at)
	if err != nil {
		return nil, err
	}
	return &TestRegistrar{newDriver(conn, r, func(envelope.Event) {}), r}, nil
}

// Evict makes the switch report that it has evicted a member.
func (r *TestRegistrar) Evict(group netip.Addr, k envelope.MemberKey) {
	r.drv.call(func(now time.Duration, out *envelope.Output) { r.reg.MemberEvicted(now, group, k, 0, 77, out) })
}

// Fail makes the switch report that the group has failed because of a member.
func (r *TestRegistrar) Fail(group netip.Addr, k envelope.MemberKey) {
	r.drv.call(func(now time.Duration, out *envelope.Output) { r.reg.GroupFailed(now, group, k, 0x62, 77, out) })
}

// Group returns the registration of a group.
func (r *TestRegistrar) Group(group netip.Addr) (reg envelope.Registration, ok bool) {
	r.drv.call(func(time.Duration, *envelope.Output) { reg, _, ok = r.reg.Group(group) })
	return reg, ok
}

// Close stops the registrar.
func (r *TestRegistrar) Close() error { return r.drv.close() }
