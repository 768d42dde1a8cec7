// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"context"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// membership is a replica's part in the groups of one gateway: one after the other.
type membership struct {
	*Replica
	w   *wire
	ctx context.Context

	cancel context.CancelFunc // ends the join and the group
	done   chan struct{}      // closed when the queue pair is gone and all that it had received is applied
}

// join leaves the last group and has the next one joined; the answer says up to which entry this replica has
// applied all, and the exchange follows, at the same listener.
func (m *membership) join(f *frame) error {
	m.leave()
	fresh := f.n != 0
	if err := m.store.Relabel(func(l *Label) {
		l.Device, l.Clean = string(f.data), false
		if fresh {
			l.Consistent = false
		}
	}); err != nil {
		return err
	}
	m.mu.Lock()
	m.fresh, m.joinID = fresh, f.id
	if fresh {
		m.applied, m.flushed, m.flushTo, m.members, m.live = 0, 0, 0, nil, false
	} else {
		m.applied = max(m.applied, f.seq)
	}
	a := &frame{kind: frameAnswer, id: f.id, seq: m.applied}
	m.mu.Unlock()
	if err := m.w.send(a); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(m.ctx)
	m.cancel, m.done = cancel, make(chan struct{})
	go func() {
		defer close(m.done)
		if err := m.run(ctx); err != nil && ctx.Err() == nil {
			m.cfg.Log(err.Error())
			_ = m.w.c.Close()
		}
	}()
	return nil
}

// leave ends the membership; what has arrived is applied.
func (m *membership) leave() {
	if m.cancel != nil {
		m.cancel()
		<-m.done
		m.cancel = nil
	}
}

func (m *membership) run(ctx context.Context) error {
	joining, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	qp, err := m.cfg.Device.CreateQP(endpoint.QPConfig{
		LocalIP: m.cfg.LocalIP, SQPSN: endpoint.RandomPSN(), RQPSN: endpoint.RandomPSN(),
		MaxSend: 1, MaxRecv: recvDepth, Timeout: m.cfg.QPTimeout,
	})
	if err != nil {
		return err
	}
	defer qp.Close()
	if _, err := qp.PostRecv(make([]endpoint.RecvWR, recvDepth)...); err != nil {
		return err
	}
	g, err := endpoint.Member(joining, endpoint.MemberConfig{
		Local: endpoint.Local{QP: qp, Memory: m.ring, ReceiveOnly: true, Host: m.host}, Listener: m.ln,
	})
	if err != nil {
		if ctx.Err() == nil {
			m.cfg.Log(fmt.Sprintf("no group: %v", err)) // the gateway asks again
		}
		return nil
	}
	defer g.Close()
	stop := context.AfterFunc(ctx, func() { _ = qp.Close() }) // ends receive, behind what has arrived
	defer stop()
	return m.receive(qp)
}

// receive applies entries until the queue pair is closed.
func (m *membership) receive(qp endpoint.QP) error {
	wc := make([]endpoint.Completion, 64)
	for {
		n, err := qp.Poll(context.Background(), wc)
		if err != nil {
			return nil // closed
		}
		for i := range n {
			if wc[i].Status == endpoint.WRFlushErr {
				return nil
			}
			if err := wc[i].Err(); err != nil {
				return err
			}
			if wc[i].Imm == noEntry {
				m.mu.Lock()
				f := &frame{kind: frameHeard, id: m.joinID}
				m.mu.Unlock()
				_ = m.w.send(f) // the end of the connection is noticed by its reader
				continue
			}
			if err := m.apply(int64(wc[i].Imm) * entryAlign); err != nil {
				return err
			}
		}
		_, _ = qp.PostRecv(make([]endpoint.RecvWR, n)...) // fails once it is closed; there may be more completions then
	}
}

const silence = 5 * time.Second // the silence of the other side after which a connection is given up
