// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
)

// ErrNoNeighbour says that an address had no answer within Config.ResolveTimeout. Verbs
// return ETIMEDOUT from modify to RTR in that case.
var ErrNoNeighbour = errors.New("no answer to address resolution")

// noNeighbour is ErrNoNeighbour with the address and its gateway.
type noNeighbour struct{ ip, gateway netip.Addr }

func (e *noNeighbour) Error() string {
	protocol, hop := "ARP", e.ip
	if e.gateway.IsValid() {
		hop = e.gateway
	}
	if hop.Is6() {
		protocol = "neighbour discovery"
	}
	if e.gateway.IsValid() {
		return fmt.Sprintf("nobody answers %s for %s, the gateway to %s: is it up?", protocol, e.gateway, e.ip)
	}
	return fmt.Sprintf("nobody answers %s for %s: is it in gleamd's group_prefixes, is gleamd running? (if it is a host's address: is the host up?)", protocol, e.ip)
}

func (e *noNeighbour) Is(target error) bool {
	return target == ErrNoNeighbour || target == unix.ETIMEDOUT
}

// resolve returns the Ethernet address for packets to ip: that of ip, or of its gateway.
// The kernel sends the solicitation (NTF_USE), as for its own packets. With confirm it
// also verifies an entry that it has not verified recently: then resolve may return the
// old address, and a later call the new one.
func (d *Device) resolve(ctx context.Context, ip netip.Addr, confirm bool) (rocev2.MAC, error) {
	d.nlUse.RLock()
	defer d.nlUse.RUnlock()
	if d.ctx.Err() != nil {
		return rocev2.MAC{}, fmt.Errorf("device on %s: %w", d.cfg.Interface, endpoint.ErrClosed)
	}
	gateway, err := d.gateway(ip)
	if err != nil {
		return rocev2.MAC{}, err
	}
	hop := ip
	if gateway.IsValid() {
		hop = gateway
	}
	family := netlink.FAMILY_V4
	if hop.Is6() {
		family = netlink.FAMILY_V6
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.cfg.ResolveTimeout, &noNeighbour{ip, gateway})
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	use := &netlink.Neigh{LinkIndex: d.ifindex, Family: family, Flags: netlink.NTF_USE, IP: hop.AsSlice()}
	asked := false
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		n, err := d.neighbour(family, hop)
		if err != nil {
			return rocev2.MAC{}, err
		}
		const valid = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE | netlink.NUD_PERMANENT | netlink.NUD_NOARP
		if confirm && n != nil {
			confirm = false
			if err := d.nl.NeighSet(use); err != nil {
				return rocev2.MAC{}, fmt.Errorf("confirm %s on %s: %w", hop, d.cfg.Interface, err)
			}
		}
		if n != nil && n.State&valid != 0 && len(n.HardwareAddr) == 6 {
			return rocev2.MAC(n.HardwareAddr), nil
		}
		if !asked || n == nil || n.State&netlink.NUD_FAILED != 0 {
			if err := d.nl.NeighSet(use); err != nil {
				return rocev2.MAC{}, fmt.Errorf("resolve %s on %s: %w", hop, d.cfg.Interface, err)
			}
			asked = true
		}
		select {
		case <-ctx.Done():
			if d.ctx.Err() != nil {
				return rocev2.MAC{}, fmt.Errorf("device on %s: %w", d.cfg.Interface, endpoint.ErrClosed)
			}
			return rocev2.MAC{}, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// gateway returns the gateway to ip; not valid if ip is on the link.
func (d *Device) gateway(ip netip.Addr) (netip.Addr, error) {
	routes, err := d.nl.RouteGetWithOptions(ip.AsSlice(), &netlink.RouteGetOptions{OifIndex: d.ifindex})
	if err != nil {
		return netip.Addr{}, fmt.Errorf("no route to %s by %s: %w", ip, d.cfg.Interface, err)
	}
	if len(routes) == 0 {
		return netip.Addr{}, fmt.Errorf("no route to %s by %s", ip, d.cfg.Interface)
	}
	r := routes[0]
	switch {
	case r.Type == unix.RTN_LOCAL:
		return netip.Addr{}, fmt.Errorf("%s is an address of this host: a queue pair's peer must be another", ip)
	case r.Type != unix.RTN_UNICAST && r.Type != 0:
		return netip.Addr{}, fmt.Errorf("%s is no unicast address to this host (route type %d)", ip, r.Type)
	case r.LinkIndex != d.ifindex:
		return netip.Addr{}, fmt.Errorf("the route to %s does not lead out of %s", ip, d.cfg.Interface)
	}
	gw, _ := netip.AddrFromSlice(r.Gw)
	return gw.Unmap(), nil
}

// neighbour returns the kernel's entry for hop, nil if there is none.
func (d *Device) neighbour(family int, hop netip.Addr) (*netlink.Neigh, error) {
	list, err := d.nl.NeighListExecute(netlink.Ndmsg{Family: uint8(family), Index: uint32(d.ifindex)})
	if errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, nil // the table was changed meanwhile: the next lookup tells
	}
	if err != nil {
		return nil, fmt.Errorf("neighbours on %s: %w", d.cfg.Interface, err)
	}
	for i := range list {
		if ip, ok := netip.AddrFromSlice(list[i].IP); ok && ip.Unmap() == hop {
			return &list[i], nil
		}
	}
	return nil, nil
}

// refreshEvery is the least time between two address resolutions for a queue pair that
// gets no answers.
const refreshEvery = time.Second

// noteTimeout resolves the peer's Ethernet address again after a timeout: the peer may
// have moved. Only the loop calls it.
func (q *qp) noteTimeout(now time.Duration) {
	n := q.rc.Stats().Timeouts
	if n == q.timeouts || q.refreshing || q.refreshed != 0 && now-q.refreshed < refreshEvery {
		return
	}
	q.timeouts, q.refreshing = n, true
	go q.refresh(q.path.Dst)
}

// refresh resolves ip and adopts a change. Without an answer the old address stays.
func (q *qp) refresh(ip netip.Addr) {
	d := q.dev
	mac, err := d.resolve(d.ctx, ip, true)
	_ = d.do(func() { // fails only if the device is closed
		q.refreshing, q.refreshed = false, d.now()
		if err == nil && mac != q.path.DstMAC {
			q.path.DstMAC = mac
			d.loop.stats.NeighbourMoves++
		}
	})
}
