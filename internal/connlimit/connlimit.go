// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package connlimit bounds the connections of others to a listener, so that no address keeps
// the rest out. Whoever connects while there are too many displaces the oldest connection that
// waits, of the address that has the most of them: an address that opens many displaces its own. Of IPv6, where
// a host chooses among 2^64 addresses, it is the network that has the most, and in it the address.
package connlimit

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Pool has the connections of a listener. Each waits until its other side has proved what it
// has to prove, or has sent a request that is served; from then on it is settled.
type Pool struct {
	max int

	mu      sync.Mutex
	waiting []*Place // oldest first
	settled int
}

// Place is a connection's place in a Pool.
type Place struct {
	pool  *Pool
	c     net.Conn
	from  netip.Prefix // the network
	ip    netip.Addr
	state state
}

type state uint8

const (
	waiting state = iota
	settled
	displaced // closed to make room for others
	left
)

// New makes a pool of at most max connections.
func New(max int) *Pool { return &Pool{max: max} }

// Enter adds a connection, which waits. One that waits is displaced if there are too many: c
// itself if all others are settled.
func (p *Pool) Enter(c net.Conn) *Place {
	v := &Place{pool: p, c: c, from: Network(c.RemoteAddr()), ip: address(c.RemoteAddr())}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, v)
	if len(p.waiting)+p.settled > p.max {
		p.displace()
	}
	return v
}

// displace closes the oldest waiting connection of the address that has the most, in the network that has the most: hosts
// of one link of IPv6 are in one network.
func (p *Pool) displace() {
	networks, addresses := make(map[netip.Prefix]int), make(map[netip.Addr]int)
	for _, v := range p.waiting {
		networks[v.from]++
		addresses[v.ip]++
	}
	i := 0
	for j, v := range p.waiting {
		than := p.waiting[i]
		if cmp.Or(cmp.Compare(networks[v.from], networks[than.from]), cmp.Compare(addresses[v.ip], addresses[than.ip])) > 0 {
			i = j
		}
	}
	v := p.waiting[i]
	p.waiting = slices.Delete(p.waiting, i, i+1)
	v.state = displaced
	_ = v.c.Close()
}

// Settle keeps the connection from being displaced, until Wait. It returns false for one that
// has been.
func (v *Place) Settle() bool { return v.move(waiting, settled) }

// Wait lets a settled connection be displaced again, as the newest one.
func (v *Place) Wait() { v.move(settled, waiting) }

// Leave gives the place up. It returns false for a connection that has been displaced.
func (v *Place) Leave() bool {
	return v.move(waiting, left) || v.move(settled, left)
}

// move changes the state, if it is from.
func (v *Place) move(from, to state) bool {
	p := v.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.state != from {
		return false
	}
	v.state = to
	switch from {
	case waiting:
		p.waiting = slices.DeleteFunc(p.waiting, func(o *Place) bool { return o == v })
	case settled:
		p.settled--
	}
	switch to {
	case waiting:
		p.waiting = append(p.waiting, v)
	case settled:
		p.settled++
	}
	return true
}

// address is the IP of an address, without zone; the zero Addr if it has none.
func address(a net.Addr) netip.Addr {
	at, _ := netip.ParseAddrPort(a.String())
	return at.Addr().Unmap().WithZone("")
}

// Network is the part of an address that one host has: an IPv4 address, or the first 64 bits
// of one of IPv6. The zero Prefix stands for what is no address of IP.
func Network(a net.Addr) netip.Prefix {
	ip := address(a)
	if ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked()
	}
	return netip.PrefixFrom(ip, ip.BitLen())
}
