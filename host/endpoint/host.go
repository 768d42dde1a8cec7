// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint/oob"
)

// HostConfig configures a host's side of the envelope protocol.
type HostConfig struct {
	Port uint16 // UDP port of the switch, which members use as well [envelope.DefaultPort]
	// Auth has the keys shared with the switch, for envelopes, and with the other
	// hosts, for the exchange between them (package oob).
	Auth envelope.Auth
	// Deadline bounds a registration, a leave and a delete [10 s].
	Deadline time.Duration
	// MTU bounds the IP packets of a registration, in bytes [1500].
	MTU int
	// Log gets a line for each refused connection to the exchange, one call at a time and
	// at most one in a second: those of strangers, and of hosts with another key. May be
	// nil. Such connections are closed and do not disturb a join otherwise.
	Log func(text string)
}

// Host answers envelopes for one address: it confirms the groups that queue
// pairs of this address have joined. A process that is in several groups with
// one address shares a Host between them; [Master] and [Member] make one of
// their own otherwise. Groups of a Host share the connections of the exchange, too: a
// master that makes group after group at one Listener, and members that stay with their
// Host, prove their key once and not for each group.
type Host struct {
	ip       netip.Addr
	cfg      HostConfig
	driver   *driver
	identity *oob.Identity // the identity for the exchange

	member *envelope.Member // guarded by driver: used within driver.call

	mu     sync.Mutex
	groups map[netip.Addr]*Group
}

// A host hears of a switch that has started again without its groups when it asks next.
const (
	askEvery    = 3 * time.Second // a member; two answers have to say so
	renewWithin = 2 * time.Second // a master
	// groupsPerRenewal is the number of groups of a host that are renewed within renewWithin. Each further one is
	// renewed more rarely, so that a host with thousands of groups sends some tens of Renews a second.
	groupsPerRenewal = 32
)

// renewWithin bounds the time between two Renews of the host's next group.
func (h *Host) renewWithin() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return renewWithin * time.Duration(1+len(h.groups)/groupsPerRenewal)
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
		Local: at, Port: cfg.Port, Auth: cfg.Auth, Seed: rand.Uint64(), Deadline: cfg.Deadline, AskEvery: askEvery,
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

// event passes an event of the member machine to its group.
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

// forget makes the host drop the membership at ip.
func (h *Host) forget(ip netip.Addr) {
	h.driver.call(func(time.Duration, *envelope.Output) { h.member.Forget(ip) })
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.groups, ip)
}

// problem returns the reason, if known here, why a group is not registered.
func (h *Host) problem(ip netip.Addr) (err error) {
	h.driver.call(func(time.Duration, *envelope.Output) { err = h.member.Problem(ip) })
	return err
}

// leave asks the switch to remove this host; the outcome is an event.
func (h *Host) leave(ip netip.Addr) error {
	var err error
	h.driver.call(func(now time.Duration, out *envelope.Output) { err = h.member.Leave(now, ip, out) })
	return err
}

// RefusedConnections returns the number of refused connections to exchanges with this
// host: the other side did not prove that it has the key, or was not admitted.
func (h *Host) RefusedConnections() uint64 { return h.identity.Refused() }

// Close stops the answers, and closes the connections that are kept for further groups.
// Close the groups first.
func (h *Host) Close() error {
	h.identity.Close()
	return h.driver.close()
}
