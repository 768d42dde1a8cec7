// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"errors"
	"net/netip"
	"sync"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// Pinner pins members to their locations, in the kernel's tables and in the XDP programs'
// watchlist. A separate goroutine makes the system calls, since they may take long; the
// last location set for a host counts.
type Pinner struct {
	kernel kernelPins
	failed func(ip netip.Addr, err error)

	mu      sync.Mutex
	pending map[netip.Addr]PinTarget // set, but not applied yet
	order   []netip.Addr
	working bool
	closed  bool
	idle    *sync.Cond

	watchedHosts // used by the goroutine
}

// PinTarget is the location of a host, the zero Location if the host is to be forgotten.
// Install says that the kernel holds the host there; otherwise the host is only watched
// for elsewhere.
type PinTarget struct {
	At      locate.Location
	Install bool
}

// kernelPins is the part of locate.Pins, and watchlist that of bpf.Watchlist, that pinner
// uses.
type kernelPins interface {
	Set(ip netip.Addr, at locate.Location) error
	Close() error
}

type watchlist interface {
	SetMAC(mac [6]byte, ifindex int) error
	ClearMAC(mac [6]byte) error
	SetAddr(ip netip.Addr, ifindex int, mac [6]byte) error
	ClearAddr(ip netip.Addr) error
}

var _ watchlist = (*bpf.Watchlist)(nil)

func NewPinner(k kernelPins, l watchlist, failed func(netip.Addr, error)) *Pinner {
	p := &Pinner{kernel: k, failed: failed, pending: make(map[netip.Addr]PinTarget)}
	p.idle = sync.NewCond(&p.mu)
	p.watchedHosts = watchedHosts{list: l, hosts: make(map[netip.Addr]locate.Location), macs: make(map[locate.MAC]map[int]int), hops: make(map[netip.Addr]int)}
	return p
}

// Set pins a host. It does not block.
func (p *Pinner) Set(ip netip.Addr, x PinTarget) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	if _, waits := p.pending[ip]; !waits {
		p.order = append(p.order, ip)
	}
	p.pending[ip] = x
	if !p.working {
		p.working = true
		go p.work()
	}
}

// work applies the pending pins.
func (p *Pinner) work() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.order) > 0 {
		ip := p.order[0]
		p.order = p.order[1:]
		x := p.pending[ip]
		delete(p.pending, ip)
		p.mu.Unlock()
		held := x.At
		if !x.Install {
			held = locate.Location{}
		}
		if err := errors.Join(p.kernel.Set(ip, held), p.watchedHosts.set(ip, x.At)); err != nil {
			p.failed(ip, err)
		}
		p.mu.Lock()
	}
	p.working = false
	p.idle.Broadcast()
}

// Close removes all pins.
func (p *Pinner) Close() error {
	p.mu.Lock()
	p.closed, p.order = true, nil
	for p.working {
		p.idle.Wait()
	}
	p.mu.Unlock()
	return p.kernel.Close()
}

// watchedHosts are the entries of the watchlist. Hosts may share a hop, or a MAC address;
// a MAC address that is at several ports is not watched.
type watchedHosts struct {
	list  watchlist
	hosts map[netip.Addr]locate.Location
	macs  map[locate.MAC]map[int]int // number of hosts, by port
	hops  map[netip.Addr]int         // number of hosts
}

func (w *watchedHosts) set(ip netip.Addr, at locate.Location) error {
	var errs []error
	old, had := w.hosts[ip]
	has := at.Ifindex != 0 && len(at.MAC) == len(locate.MAC{})
	if has {
		w.hosts[ip] = at
		mac := locate.MAC(at.MAC)
		if w.macs[mac] == nil {
			w.macs[mac] = make(map[int]int)
		}
		w.macs[mac][at.Ifindex]++
		w.hops[at.Hop]++
		errs = append(errs, w.list.SetAddr(at.Hop, at.Ifindex, mac))
	} else {
		delete(w.hosts, ip)
	}
	if had {
		mac := locate.MAC(old.MAC)
		if w.macs[mac][old.Ifindex]--; w.macs[mac][old.Ifindex] == 0 {
			delete(w.macs[mac], old.Ifindex)
		}
		errs = append(errs, w.mac(mac))
		if w.hops[old.Hop]--; w.hops[old.Hop] == 0 {
			delete(w.hops, old.Hop)
			errs = append(errs, w.list.ClearAddr(old.Hop))
		}
	}
	if has {
		errs = append(errs, w.mac(locate.MAC(at.MAC)))
	}
	return errors.Join(errs...)
}

// mac updates the entry of a MAC address.
func (w *watchedHosts) mac(mac locate.MAC) error {
	switch at := w.macs[mac]; len(at) {
	case 0:
		delete(w.macs, mac)
		return w.list.ClearMAC(mac)
	case 1:
		for ifindex := range at {
			return w.list.SetMAC(mac, ifindex)
		}
		return nil
	default:
		return w.list.SetMAC(mac, 0)
	}
}

// SetPinner has p, a Pinner, pin hosts to their locations.
func (x *Hosts) SetPinner(p interface{ Set(netip.Addr, PinTarget) }) {
	x.onPinChange = func(h *Host) {
		pi := x.ports.Index(h.pinned.Ifindex)
		if pi < 0 || !h.isPinned() {
			p.Set(h.ip, PinTarget{})
			return
		}
		// A pin would keep the kernel from finding a member elsewhere while its port is down.
		p.Set(h.ip, PinTarget{h.pinned, x.ports.Port(pi).Up})
	}
}

// Repin renews the pins of the hosts behind an interface whose port has come up or gone down.
func (x *Hosts) Repin(ifindex int) {
	for h := range x.byLink[ifindex] {
		x.onPinChange(h)
	}
}
