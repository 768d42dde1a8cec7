// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpointtest

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
)

// fill writes a pattern that depends on place and seed.
func fill(b []byte, seed uint64) {
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + int(seed))
	}
}

func receives(op endpoint.WROp) bool { return op != endpoint.Write }
func hasImm(op endpoint.WROp) bool   { return op == endpoint.SendImm || op == endpoint.WriteImm }
func isSend(op endpoint.WROp) bool   { return op == endpoint.Send || op == endpoint.SendImm }

// sizes are those where packets begin and end.
func sizes(pmtu int) []int {
	return []int{0, 1, 3, pmtu - 1, pmtu, pmtu + 1, 2*pmtu + 2, 64*pmtu + 5, 300 * pmtu}
}

// transfer does one message of each operation and size, and compares bytes and
// completions.
func transfer(ctx context.Context, cfg Config) error {
	return transferFrom(ctx, cfg, endpoint.RandomPSN(), sizes(cfg.PathMTU))
}

// psnWrap sends over the end of the PSNs, and over the place where their sign
// changes.
func psnWrap(ctx context.Context, cfg Config) error {
	for _, from := range []rocev2.PSN{0, 0x7FFFF0, 0xFFFFF0} {
		if err := transferFrom(ctx, cfg, from, []int{1, 30 * cfg.PathMTU}); err != nil {
			return fmt.Errorf("from PSN 0x%x: %w", uint32(from), err)
		}
	}
	return nil
}

func transferFrom(ctx context.Context, cfg Config, sqpsn rocev2.PSN, sizes []int) error {
	p, err := connect(ctx, cfg, sizes[len(sizes)-1]+1, sqpsn)
	if err != nil {
		return err
	}
	id := uint64(0)
	for _, op := range []endpoint.WROp{endpoint.Send, endpoint.SendImm, endpoint.Write, endpoint.WriteImm} {
		for _, n := range sizes {
			id++
			if err := p.message(ctx, op, n, id); err != nil {
				return fmt.Errorf("%v of %d bytes: %w", op, n, err)
			}
		}
	}
	return p.close()
}

// message sends n bytes and compares what arrives.
func (p *pair) message(ctx context.Context, op endpoint.WROp, n int, id uint64) error {
	fill(p.send.Bytes()[:n], id)
	clear(p.recv.Bytes())
	if receives(op) {
		local := endpoint.Segment{MR: p.recv, Len: n}
		if op == endpoint.WriteImm {
			local = endpoint.Segment{}
		}
		if _, err := p.qp[1].PostRecv(endpoint.RecvWR{ID: id + 1000, Local: local}); err != nil {
			return err
		}
	}
	_, err := p.qp[0].PostSend(endpoint.SendWR{
		ID: id, Op: op, Local: endpoint.Segment{MR: p.send, Len: n},
		Imm: 0x01020304 + uint32(id), RemoteAddr: p.recv.Addr(), RKey: p.recv.RKey(),
	})
	if err != nil {
		return err
	}
	done, err := one(ctx, p.qp[0], id, endpoint.Success)
	if err != nil {
		return err
	}
	if (done.Op == endpoint.SendDone) != isSend(op) {
		return fmt.Errorf("completion %+v is of another operation", done)
	}
	if receives(op) {
		got, err := one(ctx, p.qp[1], id+1000, endpoint.Success)
		if err != nil {
			return err
		}
		if got.Len != n || got.HasImm != hasImm(op) || hasImm(op) && got.Imm != 0x01020304+uint32(id) || (got.Op == endpoint.Recv) != isSend(op) {
			return fmt.Errorf("completion %+v at the receiver, want %d bytes", got, n)
		}
	}
	if !bytes.Equal(p.recv.Bytes()[:n], p.send.Bytes()[:n]) {
		return fmt.Errorf("other bytes arrived")
	}
	if p.recv.Bytes()[n] != 0 {
		return fmt.Errorf("the byte behind the message was written")
	}
	return nil
}

// manyMessages keeps the send queue full, and posts many at a time.
func manyMessages(ctx context.Context, cfg Config) error {
	const count, size, at = 1000, 777, 50
	cfg.QP.MaxSend, cfg.QP.MaxRecv = 100, 100
	p, err := connect(ctx, cfg, count*size, endpoint.RandomPSN())
	if err != nil {
		return err
	}
	fill(p.send.Bytes(), 1)
	sent, done := 0, 0
	for done < count {
		for sent < count && sent+at-done <= cfg.QP.MaxSend {
			wrs := make([]endpoint.SendWR, at)
			for i := range wrs {
				off := (sent + i) * size
				wrs[i] = endpoint.SendWR{
					ID: uint64(sent + i), Op: endpoint.Write, Local: endpoint.Segment{MR: p.send, Offset: off, Len: size},
					RemoteAddr: p.recv.Addr() + uint64(off), RKey: p.recv.RKey(),
				}
			}
			if n, err := p.qp[0].PostSend(wrs...); n != at || err != nil {
				return fmt.Errorf("%d of %d taken with %d under way: %w", n, at, sent-done, err)
			}
			sent += at
		}
		if _, err := one(ctx, p.qp[0], uint64(done), endpoint.Success); err != nil {
			return err
		}
		done++
	}
	if !bytes.Equal(p.send.Bytes(), p.recv.Bytes()) {
		return fmt.Errorf("other bytes arrived")
	}
	return p.close()
}

// receiverNotReady posts a receive only after the message has been sent.
func receiverNotReady(ctx context.Context, cfg Config) error {
	p, err := connect(ctx, cfg, cfg.PathMTU, endpoint.RandomPSN())
	if err != nil {
		return err
	}
	fill(p.send.Bytes(), 9)
	if _, err := p.qp[0].PostSend(endpoint.SendWR{ID: 1, Op: endpoint.Send, Local: endpoint.Segment{MR: p.send, Len: p.send.Len()}}); err != nil {
		return err
	}
	if err := idle(ctx, p.qp[0]); err != nil {
		return fmt.Errorf("sent before there was a receive: %w", err)
	}
	if _, err := p.qp[1].PostRecv(endpoint.RecvWR{ID: 2, Local: endpoint.Segment{MR: p.recv, Len: p.recv.Len()}}); err != nil {
		return err
	}
	if _, err := one(ctx, p.qp[0], 1, endpoint.Success); err != nil {
		return err
	}
	if _, err := one(ctx, p.qp[1], 2, endpoint.Success); err != nil {
		return err
	}
	if !bytes.Equal(p.send.Bytes(), p.recv.Bytes()) {
		return fmt.Errorf("other bytes arrived")
	}
	return p.close()
}
