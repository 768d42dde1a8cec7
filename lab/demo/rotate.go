// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

// SourceTurn is one transfer of a rotation: another source, other bytes.
type SourceTurn struct {
	Source  string  `json:"source"`
	OK      bool    `json:"ok"` // all others have its bytes
	SHA256  string  `json:"sha256"`
	Seconds float64 `json:"seconds"`
}

// sendByTurns makes every member the source, o.Rotate times over, each time with bytes
// of its own. No message announces it to the switch or the other hosts: queue pairs
// stay connected, each with its first PSNs.
func (r *run) sendByTurns(ctx context.Context, res *Result) error {
	turns := r.opts.Rotate * len(r.hosts)
	before, err := r.readCounts(ctx)
	if err != nil {
		return err
	}
	for _, h := range r.hosts {
		res.Receivers = append(res.Receivers, Receiver{Name: h.Name, IP: h.IP.String(), OK: true})
	}
	bar := r.log.begin("rotation", r.plan.Len*int64(turns))
	defer bar.end()
	for t := range turns {
		from := t % len(r.hosts)
		if err := r.turn(ctx, from, t, bar, res); err != nil {
			return fmt.Errorf("turn %d, source %s: %w", t+1, r.hosts[from].Name, r.explain(err))
		}
	}
	after, err := r.readCounts(ctx)
	if err != nil {
		return err
	}
	res.Switch = difference(before, after)
	res.PayloadBytes = r.plan.Len * int64(turns)
	for i := range res.Receivers {
		if v := &res.Receivers[i]; v.Seconds > 0 {
			v.Goodput = float64(v.Bytes) / v.Seconds
		}
	}
	return nil
}

// turn is the transfer of host from to all others, with the bytes of turn t.
func (r *run) turn(ctx context.Context, from, t int, bar *meter, res *Result) error {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeout)
	defer cancel()
	source := r.hosts[from]
	_, _ = testbed.Random(r.opts.Seed + uint64(t)).Read(source.out.Bytes())
	sum := digest(source.out.Bytes())
	receivers := slices.Delete(slices.Clone(r.hosts), from, from+1)
	boxes, err := r.inboxes(receivers)
	if err != nil {
		return err
	}
	m, err := r.measure(ctx, source, boxes, func() error { return r.send(ctx, source, bar.add) })
	if err != nil {
		return err
	}
	turn := SourceTurn{Source: source.Name, OK: true, SHA256: sum, Seconds: m.seconds}
	for i, h := range receivers {
		got := r.receiver(h, boxes[i], m.seconds, source.out.Bytes(), sum)
		v := &res.Receivers[slices.Index(r.hosts, h)]
		v.OK, v.Bytes, v.Seconds, v.SHA256 = v.OK && got.OK, v.Bytes+got.Bytes, v.Seconds+got.Seconds, got.SHA256
		turn.OK = turn.OK && got.OK
	}
	res.Turns = append(res.Turns, turn)
	res.Seconds += m.seconds
	res.SenderLinkBytes += m.linkBytes
	res.Messages += r.plan.Count()
	res.SenderRetransmitted = r.retransmitted()
	return nil
}

// retransmitted is the number of packets that all members sent again.
func (r *run) retransmitted() (n uint64) {
	for _, h := range r.hosts {
		n += h.group.QP().Stats().Retransmitted
	}
	return n
}

// outgoing makes the region from which host i sends: the payload itself, or with
// --rotate one of its own.
func (r *run) outgoing(h *host, i int) (err error) {
	buf := r.data.bytes
	switch {
	case r.opts.Rotate > 0:
		if buf, err = anonymous(r.plan.Len); err != nil {
			return err
		}
		h.maps = append(h.maps, buf)
	case i > 0:
		return nil
	}
	h.out, err = h.Device.RegisterMemory(buf, outBase, endpoint.Access(0))
	return err
}
