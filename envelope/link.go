// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
	"time"
)

// endpointLink is the common part of the three machines: sealing, opening and counting.
type endpointLink struct {
	auth Auth
	// retiredAuth are keys that are no longer configured: no message is accepted under
	// them.
	retiredAuth Keys
	drops       [NumDrops]uint64
}

// Drops returns how many messages had no effect, by reason.
func (l *endpointLink) Drops() [NumDrops]uint64 { return l.drops }

// drop counts d and tells the caller of Input.
func (l *endpointLink) drop(d Drop, out *Output) {
	l.drops[d]++
	out.Drop = d
}

// send appends the packet, under the key for requests.
func (l *endpointLink) send(src, dst netip.AddrPort, m *Message, out *Output) {
	l.sendUnder(l.auth.Send, src, dst, m, out)
}

// sendUnder appends the packet, under the given key. An answer is sent under the key of
// its request, because the requester may have no other. The machines check their inputs,
// and build only messages that can be encoded: failure is a bug of this package.
func (l *endpointLink) sendUnder(key KeyID, src, dst netip.AddrPort, m *Message, out *Output) {
	keys := l.auth.Keys
	if _, ok := keys[key]; !ok {
		keys = l.retiredAuth
	}
	b, err := Append(nil, m, keys, key)
	if err != nil {
		panic("envelope: a message of our own making: " + err.Error())
	}
	out.Packets = append(out.Packets, Packet{Src: src, Dst: dst, Data: b, Key: key, Promises: promises(m.Body), Lasts: lasts(m.Body)})
}

// backoff paces retransmissions: each wait is twice the one before, up to max. A jitter
// of up to a quarter separates hosts that began at the same time.
type backoff struct {
	next time.Duration // time of the next retransmission
	wait time.Duration // the wait before jitter
}

func (b *backoff) start(now, min time.Duration, r *random) {
	b.wait = min
	b.next = now + r.jitter(b.wait)
}

func (b *backoff) retry(now, max time.Duration, r *random) {
	if b.wait *= 2; b.wait > max {
		b.wait = max
	}
	b.next = now + r.jitter(b.wait)
}

// random is splitmix64 (Steele, Lea, Flood 2014), seeded by the driver: the
// machines have no randomness of their own.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9E3779B97F4A7C15
	return mix(uint64(*r))
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// jitter returns a duration from 3d/4 to 5d/4.
func (r *random) jitter(d time.Duration) time.Duration {
	return d - d/4 + time.Duration(r.next()%uint64(d/2+1))
}

// deadlines finds the earliest of several deadlines.
type deadlines struct {
	at time.Duration
	ok bool
}

func (d *deadlines) add(t time.Duration) {
	if !d.ok || t < d.at {
		d.at, d.ok = t, true
	}
}

// defaultTo sets *d to v if it is zero.
func defaultTo[T comparable](d *T, v T) {
	var zero T
	if *d == zero {
		*d = v
	}
}

// checkRetries checks the waits for answers, whose defaults are set.
func checkRetries(min, max, deadline time.Duration) error {
	if min < 0 || max < min || deadline < 0 {
		return fmt.Errorf("retry from %v to %v, deadline %v: need 0 < RetryMin <= RetryMax and a positive deadline", min, max, deadline)
	}
	return nil
}

// checkLocal checks the address of a master or member.
func checkLocal(a netip.AddrPort) error {
	if !unicast(a.Addr()) || a.Addr().Is4In6() || a.Port() == 0 {
		return fmt.Errorf("local address %s: need the unicast address and port at which the switch reaches us", a)
	}
	return nil
}
