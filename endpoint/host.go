// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/endpoint/oob"
	"github.com/gleam-rdma/gleam/envelope"
)

// HostConfig says how a host speaks the envelope protocol.
type HostConfig struct {
	Port uint16 // UDP port of the switch, which members use as well [envelope.DefaultPort]
	// Auth has the keys shared with the switch, for envelopes, and with the other
	// hosts, for the exchange between them (package oob).
	Auth envelope.Auth
	// Deadline bounds a registration, a leave and a delete [10 s].
	Deadline time.Duration
	// MTU is the size in bytes of the IP packets that a registration is cut
	// into [1500].
	MTU int
	// Log hears, in a line each, one call at a time and at most one in a second, of
	// connections to the exchange that were refused: strangers', and hosts' with another key. May be
	// nil. Such connections are closed and cost a join nothing else.
	Log func(text string)
}

// Host answers envelopes for one address: it confirms the groups that queue
// pairs of this address have joined. A process that is in several groups with
// one address shares a Host between them; [Master] and [Member] make one of
// their own otherwise.
type Host struct {
	ip       netip.Addr
	cfg      HostConfig
	driver   *driver
	identity *oob.Identity // for the exchange

	member *envelope.Member // in drv's hands: touched within drv.call

	mu     sync.Mutex
	groups map[netip.Addr]*Group
}

// NewHost binds ip's UDP port in the network namespace of the calling thread.
func NewHost(ip netip.Addr, cfg HostConfig) (*Host, error) {
	if cfg.Port == 0 {
		cfg.Port = envelope.DefaultPort
	}
	h := &Host{ip: ip, cfg: cfg, groups: make(map[netip.Addr]*Group)}
	at := netip.AddrPortFrom(ip, cfg.Port)
	var err error
	if h.identity, err = oob.NewIdentity(cfg.Auth); err != nil {
		return nil, fmt.Errorf("answer envelopes at %s: %w", at, err)
	}
	h.identity.Log = cfg.Log
	h.member, err = envelope.NewMember(envelope.MemberConfig{
		Local: at, Port: cfg.Port, Auth: cfg.Auth, Seed: rand.Uint64(), Deadline: cfg.Deadline,
	})
	if err != nil {
		return nil, fmt.Errorf("answer envelopes at %s: %w", at, err)
	}
	conn, err := listenUDP(at)
	if err != nil {
		return nil, fmt.Errorf("answer envelopes at %s: %w", at, err)
	}
	h.driver = newDriver(conn, h.member, h.event)
	return h, nil
}

// event passes an event of the member machine to the group it is about.
func (h *Host) event(e envelope.Event) {
	h.mu.Lock()
	g := h.groups[e.Group]
	h.mu.Unlock()
	if g != nil {
		g.memberEvent(e)
	}
}

// join makes the host confirm g's membership.
func (h *Host) join(g *Group, ms envelope.Membership) error {
	var err error
	h.driver.call(func(time.Duration, *envelope.Output) {
		if err = h.member.Join(ms); err == nil {
			h.mu.Lock()
			h.groups[ms.Group] = g
			h.mu.Unlock()
		}
	})
	return err
}

// forget ends that.
func (h *Host) forget(ip netip.Addr) {
	h.driver.call(func(time.Duration, *envelope.Output) { h.member.Forget(ip) })
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.groups, ip)
}

// problem says what is known here of why a group is not registered.
func (h *Host) problem(ip netip.Addr) (err error) {
	h.driver.call(func(time.Duration, *envelope.Output) { err = h.member.Problem(ip) })
	return err
}

// leave asks the switch to take us out; the outcome is an event.
func (h *Host) leave(ip netip.Addr) error {
	var err error
	h.driver.call(func(now time.Duration, out *envelope.Output) { err = h.member.Leave(now, ip, out) })
	return err
}

// RefusedConnections is the number of connections to exchanges with this host
// that were refused: their other side had not proved that it has the key, or was
// not let in.
func (h *Host) RefusedConnections() uint64 { return h.identity.Refused() }

// Close stops answering. Close the groups first.
func (h *Host) Close() error { return h.driver.close() }
