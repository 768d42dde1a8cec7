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

// The instance in a message's header is a cookie: a number that the switch computes from
// its secret, the time, and the address and key of the host that the cookie is for. The
// switch stores no cookie. A request with a valid cookie proves that its sender receives
// at the address that the request names, recently, and in this run of the switch. A
// request without a valid cookie is answered by a Challenge, which is no longer than the
// request, before any member is located and before any state is stored. Recordings from
// before a restart, or of another host, are void.

// SecretLen is the length in bytes of a registrar's secret.
const SecretLen = sha256.Size

// cookieFor returns the instance that the host at to uses under key in the period with
// number period. It is never 0.
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

// cookie returns the current instance for the host at to.
func (r *Registrar) cookie(to netip.AddrPort, key KeyID) uint64 {
	return r.cookieFor(to, key, r.cookiePeriod())
}

// checkCookie reports whether h carries a cookie for its ReplyTo address, of this period
// or of the one before.
func (r *Registrar) checkCookie(h *Header) bool {
	p := r.cookiePeriod()
	return h.Instance == r.cookieFor(h.ReplyTo, h.KeyID, p) || h.Instance == r.cookieFor(h.ReplyTo, h.KeyID, p-1)
}

// setTime records the time of a call. Every method that takes the time begins with it.
func (r *Registrar) setTime(now time.Duration) { r.now = max(r.now, now) }
