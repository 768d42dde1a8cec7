// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/rocev2"
)

// paced reports whether the rate of requests is bounded.
func (c *Config) paced() bool { return c.Congestion != nil || c.MaxRate > 0 }

// completePacing checks Congestion and MaxRate, and replaces Congestion by a
// complete copy within MaxRate.
func (c *Config) completePacing() error {
	if c.MaxRate < 0 {
		return fmt.Errorf("rc: MaxRate is %d: want 0 or more bits/s", c.MaxRate)
	}
	if !c.paced() {
		return nil
	}
	p := dcqcn.Config{LineRate: c.MaxRate}
	if c.Congestion != nil {
		p = *c.Congestion
	}
	if c.MaxRate > 0 && (p.LineRate == 0 || p.LineRate > c.MaxRate) {
		p.LineRate = c.MaxRate
		for _, v := range []*int64{&p.MinRate, &p.AI, &p.HAI} {
			*v = min(*v, c.MaxRate)
		}
	}
	p, err := p.Complete()
	if err == nil && c.Congestion != nil {
		c.Congestion = &p
	}
	return err
}

// maxRateBurst bounds the time that a sender with MaxRate alone may catch up on. No queue
// depends on it, so it can be long enough for a driver on a busy machine.
const maxRateBurst = 20 * time.Millisecond

// initPacing makes the reaction point and the notification point of a complete
// configuration.
func (q *QP) initPacing() error {
	c := q.cfg.Congestion
	switch {
	case c != nil:
		q.notificationPoint = dcqcn.NewNotificationPoint(c.CNPInterval)
	case q.cfg.MaxRate > 0:
		c = &dcqcn.Config{LineRate: q.cfg.MaxRate, Burst: maxRateBurst}
	default:
		return nil
	}
	var err error
	q.requester.pacer, err = dcqcn.NewReactionPoint(*c)
	return err
}

// Rate returns the bound on the rate of requests in bits/s: that of congestion control,
// or Config.MaxRate; 0 if there is no bound.
func (q *QP) Rate(now time.Duration) int64 {
	if !q.cfg.paced() {
		return 0
	}
	return q.requester.pacer.Rate(now)
}

// pace reports whether the pacer lets a packet go now. If not, it arms pacerTimer.
func (r *requester) pace(now time.Duration) bool {
	if !r.cfg.paced() {
		return true
	}
	at := r.pacer.NextSend(now)
	if at > now {
		r.pacerTimer.arm(at)
	}
	return at <= now
}

// chargePacer counts a packet sent against the rate.
func (r *requester) chargePacer(now time.Duration, p *Packet) {
	if r.cfg.paced() {
		r.pacer.OnSent(now, r.cfg.FrameOverhead+rocev2.BTHLen+p.Op.ExtLen()+(p.PayloadLen()+3)&^3+rocev2.ICRCLen)
	}
}

// paceNeedsAckReq reports whether the packet just sent must have AckReq because the pacer
// will not release the next one before much of the timeout has passed since the first
// packet without AckReq. At a low rate the timeout would otherwise fire before any packet
// asks for an ACK, again and again, with nothing lost.
func (r *requester) paceNeedsAckReq(now time.Duration) bool {
	if !r.cfg.paced() || r.cfg.Timeout == 0 {
		return false
	}
	if r.sinceAckReq == 1 {
		r.sinceAckReqAt = now
	}
	return r.pacer.NextSend(now)-r.sinceAckReqAt >= r.retryInterval()/4
}

// handleCNP processes a congestion notification of the peer about this QP's requests.
func (q *QP) handleCNP(now time.Duration) {
	if q.cfg.Congestion != nil {
		q.requester.pacer.OnCNP(now)
	}
}

// handleCE processes a request that arrived with CE: the peer gets a CNP, if one is due
// (annex A17.9.3).
func (q *QP) handleCE(now time.Duration, out *Output) {
	q.stats.CEReceived++
	if q.cfg.Congestion == nil || !q.notificationPoint.OnCE(now) {
		return
	}
	q.stats.CNPsSent++
	out.Packets = append(out.Packets, Packet{Op: rocev2.CNP, DestQP: q.cfg.DestQPN, BECN: true, Payload: rocev2.CNPPayload})
}
