// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Learnt is an entry of a bridge's forwarding database: the port that a MAC address is
// behind, and the VLAN if the bridge filters VLANs.
type Learnt struct {
	Bridge, Port int // interface indexes; 0: there is no bridge on the way
	VID          uint16
}

// Pins pins hosts to their locations in the kernel's tables. Hosts may share a hop, and
// hops a MAC address: an entry is removed with its last user. Pins may be used from any
// goroutine.
type Pins struct {
	mu     sync.Mutex
	handle *netlink.Handle
	kernel *kernel
	hosts  map[netip.Addr]Location
	hops   map[hop]int // number of users
	macs   map[station]int
}

// hop is a neighbour at an interface.
type hop struct {
	link int
	ip   netip.Addr
}

// station is a MAC address at a bridge.
type station struct {
	bridge int
	vid    uint16
	mac    MAC
}

func (l *Location) hop() hop { return hop{l.Links[0], l.Hop} }

func (l *Location) station() station {
	return station{l.Learnt.Bridge, l.Learnt.VID, MAC(l.MAC)}
}

// NewPins opens netlink in the calling thread's namespace, and removes pins that a killed
// gleamd has left at the given interfaces; stale is their number.
func NewPins(ports []int) (p *Pins, stale int, err error) {
	p = &Pins{hosts: make(map[netip.Addr]Location), hops: make(map[hop]int), macs: make(map[station]int)}
	if p.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return nil, 0, fmt.Errorf("open netlink for pins: %w", err)
	}
	if p.kernel, err = openKernel(); err != nil {
		p.handle.Close()
		return nil, 0, fmt.Errorf("open netlink for pins: %w", err)
	}
	chosen := make(map[int]bool)
	for _, i := range ports {
		chosen[i] = true
	}
	if stale, err = p.kernel.release(p.handle, chosen); err != nil {
		p.kernel.close()
		p.handle.Close()
		return nil, 0, err
	}
	return p, stale, nil
}

// Set pins a host to a location, or restores missing entries of its pin; with the zero
// Location it removes the pin. A location that is not whole is refused, and changes nothing.
func (p *Pins) Set(ip netip.Addr, at Location) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := at.Check(); err != nil {
		return fmt.Errorf("pin %s: %w", ip, err)
	}
	old, had := p.hosts[ip]
	has := at.Known()
	if !had && !has {
		return nil
	}
	var errs []error
	if has {
		p.hosts[ip] = at
		p.hops[at.hop()]++
		errs = append(errs, p.kernel.pinNeighbour(at.Links[0], at.Hop, at.MAC))
		if at.Learnt.Bridge != 0 {
			p.macs[at.station()]++
			errs = append(errs, p.kernel.pinLearnt(at.Learnt, at.MAC))
		}
	} else {
		delete(p.hosts, ip)
	}
	if had {
		errs = append(errs, p.drop(&old))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("pin %s: %w", ip, err)
	}
	return nil
}

// drop removes the entries of a host's pin that no other host uses.
func (p *Pins) drop(at *Location) error {
	var errs []error
	if h := at.hop(); p.hops[h] > 1 {
		p.hops[h]--
	} else {
		delete(p.hops, h)
		errs = append(errs, p.kernel.unpinNeighbour(h.link, h.ip))
	}
	if at.Learnt.Bridge == 0 {
		return errors.Join(errs...)
	}
	if s := at.station(); p.macs[s] > 1 {
		p.macs[s]--
	} else {
		delete(p.macs, s)
		errs = append(errs, p.kernel.unpinLearnt(s.bridge, at.MAC, s.vid))
	}
	return errors.Join(errs...)
}

// Close removes all pins.
func (p *Pins) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for ip, at := range p.hosts {
		errs = append(errs, p.drop(&at))
		delete(p.hosts, ip)
	}
	p.kernel.close()
	p.handle.Close()
	return errors.Join(errs...)
}
