// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"time"
)

// The instance in a message's header is a cookie: a number that the switch makes of
// a secret of its own, the time, and the address and key of the host that it is for.
// The switch keeps nothing of it. A request that carries the right one proves that
// its sender receives at the address that it asks from, lately, in this life of the
// switch; what does not is answered by a Challenge, no longer than it is, before any
// member is located or anything is remembered. What was recorded before a restart, or
// from another host, is void.

// SecretLen is the length in bytes of a registrar's secret.
const SecretLen = sha256.Size

// cookieFor returns the instance for what the host at to sends under key in the
// period of time with number period. It is never 0.
func (r *Registrar) cookieFor(to netip.AddrPort, key KeyID, period uint64) uint64 {
	be := binary.BigEndian
	a := to.Addr().As16()
	b := append(make([]byte, 0, 48), a[:]...)
	b = be.AppendUint16(b, to.Port())
	b = be.AppendUint16(b, uint16(key))
	b = be.AppendUint64(be.AppendUint64(b, r.generation), period)
	h := hmac.New(sha256.New, r.cfg.Secret[:])
	h.Write(b)
	return max(1, be.Uint64(h.Sum(nil)))
}

func (r *Registrar) cookiePeriod() uint64 { return uint64(r.now / r.cfg.CookiePeriod) }

// cookie returns the instance to tell the host at to.
func (r *Registrar) cookie(to netip.AddrPort, key KeyID) uint64 {
	return r.cookieFor(to, key, r.cookiePeriod())
}

// checkCookie reports that h carries a cookie of its ReplyTo address: of this period or
// the one before.
func (r *Registrar) checkCookie(h *Header) bool {
	p := r.cookiePeriod()
	return h.Instance == r.cookieFor(h.ReplyTo, h.KeyID, p) || p > 0 && h.Instance == r.cookieFor(h.ReplyTo, h.KeyID, p-1)
}

// setTime takes note of the time of a call. All methods that take it begin so.
func (r *Registrar) setTime(now time.Duration) { r.now = max(r.now, now) }
