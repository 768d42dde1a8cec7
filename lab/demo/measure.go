// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
)

// measured has the times of one transfer.
type measured struct {
	seconds   float64
	linkBytes int64 // out of the sender, frames without FCS
}

// measure runs send, from the given host, while the inboxes drain.
func (r *run) measure(ctx context.Context, from *host, boxes []*receiveQueue, send func() error) (m measured, err error) {
	for _, b := range boxes {
		if err := b.prime(); err != nil {
			return m, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	drained := make(chan error, 1)
	go func() { drained <- session.Each(len(boxes), func(i int) error { return boxes[i].drain(ctx) }) }()
	before, err := from.NS.LinkStats(from.Interface)
	if err != nil {
		return m, err
	}
	start := time.Now()
	err = send()
	m.seconds = time.Since(start).Seconds()
	for _, b := range boxes {
		b.lastProgress = start
	}
	if err != nil {
		cancel()
		<-drained // its error is ours
	} else {
		err = <-drained // messages complete at the sender are at the receivers: no long wait
	}
	after, statErr := from.NS.LinkStats(from.Interface)
	m.linkBytes = int64(after.TxBytes - before.TxBytes)
	return m, errors.Join(err, statErr)
}

// receiver compares the bytes of h with the source's, whose digest is sum.
func (r *run) receiver(h *host, b *receiveQueue, seconds float64, source []byte, sum string) Receiver {
	v := Receiver{Name: h.Name, IP: h.IP.String(), Seconds: seconds, SHA256: digest(h.mem)}
	if r.plan.Op == endpoint.Write { // a WRITE has no completion at a receiver: compare memory
		v.Bytes = int64(samePrefix(h.mem, source))
	} else {
		v.Bytes, v.Seconds = b.bytes, b.last.Sub(b.lastProgress).Seconds()
	}
	v.OK = v.SHA256 == sum && v.Bytes == int64(len(source))
	if v.Seconds > 0 {
		v.Goodput = float64(v.Bytes) / v.Seconds
	}
	return v
}
